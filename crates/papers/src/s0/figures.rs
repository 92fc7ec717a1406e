//! Figures 5 to 8 and what is beyond them: plots and tables.

use std::collections::BTreeSet;

use super::data::{Case, Completion, Plan, RESPONSES, WAYS};
use super::simulate::Measured;
use crate::chart::{Curve, Curves, Line, Lines, Places};
use crate::mean::shown;
use crate::printed::Titled;
use crate::series::{Column, Series};
use crate::{Figure, FigureTable};

/// A drawing with the numbers behind it.
struct Drawn {
    /// Suffix of the drawing's identifier, title, document.
    drawings: Vec<(&'static str, String)>,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// The points of those of the figures that are called `names`.
pub(super) fn points<'a>(names: impl Iterator<Item = &'a str>, plan: &Plan) -> BTreeSet<Case> {
    let figures = names.filter_map(|name| plan.figures.iter().find(|figure| figure.id == name));
    figures.flat_map(|figure| Measured::asked_by(|nothing| draw(figure, plan, nothing))).collect()
}

/// The drawings and the table of a figure.
pub(super) fn draw(
    figure: &Titled,
    plan: &Plan,
    measured: &Measured,
) -> (Vec<Figure>, FigureTable) {
    let title = figure.title.as_str();
    let view = View { title, plan, measured };
    let drawn = match figure.id.as_str() {
        "figure5" => view.figure5(),
        "figure6" => view.figure6(),
        "figure7" => view.figure7(),
        "figure8" => view.figure8(),
        "mixed" => view.mixed(),
        "prefetch" => view.prefetch(),
        _ => view.completion(),
    };
    let id = format!("S0/{}", figure.id);
    let drawings = drawn.drawings.into_iter().map(|(suffix, svg)| Figure {
        id: format!("{id}{suffix}"),
        title: title.to_owned(),
        svg,
    });
    let table = FigureTable::new(id.clone(), title, drawn.columns, drawn.rows);
    (drawings.collect(), table)
}

struct View<'a> {
    title: &'a str,
    plan: &'a Plan,
    measured: &'a Measured,
}

const KIOPS: &str = "throughput (kIOPS)";
const LATENCY: &str = "mean latency (us)";

const RATE: Column<Case> = Column::new("kIOPS", 1, Measured::kiops);
const TIME: Column<Case> = Column::new("mean latency, us", 1, Measured::latency_us);

impl View<'_> {
    fn lines(&self, unit: &str, places: &[u32], across: &str, lines: Vec<Line>) -> String {
        let places = Places::values(places);
        Lines { title: self.title, unit, across, places, lines }.draw()
    }

    fn figure5(&self) -> Drawn {
        let sizes = &self.plan.block_sizes;
        let mut series = Series::new(self.measured, &[RATE, TIME]);
        for (way, percent) in WAYS {
            for response in RESPONSES {
                let label = format!("{way}, {}", response.0);
                let case = |size: &u32| Some(self.plan.fed(*size, percent, response));
                series.line(label, percent == 0, &[way, response.0], sizes, case);
            }
        }
        Drawn {
            drawings: vec![(
                "",
                self.lines(KIOPS, sizes, "descriptors in a block", series.lines(0)),
            )],
            columns: series.columns(&["", "response", "block size"]),
            rows: series.rows,
        }
    }

    fn figure6(&self) -> Drawn {
        let threads = &self.plan.threads;
        let (mut drawings, mut columns, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for ((way, percent), suffix) in WAYS.into_iter().zip(["/read", "/write"]) {
            let mut series = Series::new(self.measured, &[RATE, TIME]);
            for size in &self.plan.static_blocks {
                let label = format!("{way}, blocks of {size}");
                // S0-36: there are no points with fewer threads than a block holds.
                let case = |n: &u32| (n >= size).then(|| Case::fixed(*size, *n, percent));
                series.line(label, percent == 0, &[way, &size.to_string()], threads, case);
            }
            drawings.push((suffix, self.lines(KIOPS, threads, "threads", series.lines(0))));
            columns = series.columns(&["", "block size", "threads"]);
            rows.extend(series.rows);
        }
        Drawn { drawings, columns, rows }
    }

    fn figure7(&self) -> Drawn {
        let threads = &self.plan.threads;
        let mut series = Series::new(self.measured, &[RATE, TIME]);
        for (way, percent) in WAYS {
            let case = |threads: &u32| Some(Case::dynamic(*threads, percent));
            series.line(way, percent == 0, &[way], threads, case);
        }
        let (rates, latencies) = (series.lines(0), series.lines(1));
        // S0-38 also shows latency over throughput. Both are measured at the same number of
        // threads, so each point of the curve is one run.
        let curve = |(rate, latency): (&Line, &Line)| {
            let both = rate.values.iter().zip(&latency.values);
            let points = both.filter_map(|(rate, latency)| Some(((*rate)?, (*latency)?)));
            Curve { label: rate.label.clone(), points: points.collect(), dashed: rate.dashed }
        };
        let curves = rates.iter().zip(&latencies).map(curve).collect();
        let curves = Curves { title: self.title, across: KIOPS, unit: LATENCY, curves }.draw();
        Drawn {
            drawings: vec![
                ("/throughput", self.lines(KIOPS, threads, "threads", rates)),
                ("/latency", self.lines(LATENCY, threads, "threads", latencies)),
                ("/curve", curves),
            ],
            columns: series.columns(&["", "threads"]),
            rows: series.rows,
        }
    }

    fn figure8(&self) -> Drawn {
        const MEGABYTES: Column<Case> = Column::new("MB/s", 1, Measured::megabytes);
        let sizes = &self.plan.sizes_kib;
        let mut series = Series::new(self.measured, &[MEGABYTES, TIME]);
        for (way, percent) in WAYS {
            for (at, how) in ["one thread", "many threads of 4 KiB"].into_iter().enumerate() {
                let case = |size: &u32| Some(self.plan.large(*size, percent)[at].clone());
                series.line(format!("{way}, {how}"), percent == 0, &[way, how], sizes, case);
            }
        }
        let (unit, across) = ("throughput (MB/s)", "outstanding (KiB)");
        Drawn {
            drawings: vec![
                ("/throughput", self.lines(unit, sizes, across, series.lines(0))),
                ("/latency", self.lines(LATENCY, sizes, across, series.lines(1))),
            ],
            columns: series.columns(&["", "threads", "outstanding, KiB"]),
            rows: series.rows,
        }
    }

    fn mixed(&self) -> Drawn {
        let percents = &self.plan.read_percents;
        let mut series = Series::new(self.measured, &[RATE, TIME]);
        let case = |percent: &u32| Some(Case::dynamic(self.plan.mixed_threads, *percent));
        let label = format!("{} threads", self.plan.mixed_threads);
        series.line(label, false, &[], percents, case);
        Drawn {
            drawings: vec![("", self.lines(KIOPS, percents, "reads (%)", series.lines(0)))],
            columns: series.columns(&["reads, %"]),
            rows: series.rows,
        }
    }

    fn prefetch(&self) -> Drawn {
        let generations = &self.plan.generations;
        let (mut lines, mut rows) = (Vec::new(), Vec::new());
        for (way, percent) in WAYS {
            let gain = |generation: &u32| {
                let [without, with] = self.plan.prefetched(*generation, percent);
                let [without, with] = [without, with].map(|case| self.measured.kiops(&case));
                Some((with?.mean / without?.mean - 1.0) * 100.0)
            };
            let values = generations.iter().map(gain).collect();
            lines.push(Line { label: way.to_owned(), values, dashed: percent == 0 });
            for generation in generations {
                let [without, with] = self.plan.prefetched(*generation, percent);
                rows.push(vec![
                    way.to_owned(),
                    generation.to_string(),
                    shown(self.measured.kiops(&without), 1),
                    shown(self.measured.kiops(&with), 1),
                    gain(generation).map_or_else(String::new, |gain| format!("{gain:+.2}")),
                ]);
            }
        }
        // Generations of PCIe are names: nothing lies between Gen2 and Gen3. A joined line would
        // suggest values in between.
        let places = Places::Names(generations.iter().map(|g| format!("Gen{g}")).collect());
        let unit = "gain of prefetch (%)";
        let svg = Lines { title: self.title, unit, across: "", places, lines }.draw();
        Drawn {
            drawings: vec![("", svg)],
            columns: vec!["", "PCIe generation", "kIOPS without", "kIOPS with", "gain, %"],
            rows,
        }
    }

    fn completion(&self) -> Drawn {
        // Latency alone would favour one interrupt per return. Interrupts and CPU time per request
        // show what this policy costs, as in the comparison of calibrated interrupts.
        const COLUMNS: &[Column<Case>] = &[
            RATE,
            TIME,
            Column::new("interrupts per request", 3, |measured, case| {
                measured.host(case, |host| host.interrupts_per_request)
            }),
            Column::new("register writes per request", 3, |measured, case| {
                measured.host(case, |host| host.register_writes_per_request)
            }),
            Column::new("CPU per request, us", 2, |measured, case| {
                measured.host(case, |host| host.cpu_ns_per_request / 1e3)
            }),
        ];
        let threads = &self.plan.completion_threads;
        let mut series = Series::new(self.measured, COLUMNS);
        for completion in Completion::ALL {
            let case = |threads: &u32| Some(self.plan.completed(*threads, completion));
            series.line(completion.name(), false, &[completion.name()], threads, case);
        }
        Drawn {
            drawings: vec![("", self.lines(LATENCY, threads, "threads", series.lines(1)))],
            columns: series.columns(&["completion", "threads"]),
            rows: series.rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_points() {
        let plan = Plan::load().unwrap();
        let of = |name: &str| points([name].into_iter(), &plan);
        for figure in &plan.figures {
            assert!(!of(&figure.id).is_empty(), "{figure:?}");
        }
        assert!(plan.seeds.len() >= 5);
        assert!(of("figure6").iter().all(|case| case.block <= Some(case.threads)));
        // Both directions of each number of threads that fills a block.
        let fills = |size: &u32| plan.threads.iter().filter(|n| *n >= size).count();
        let pairs: usize = plan.static_blocks.iter().map(fills).sum();
        assert_eq!(of("figure6").len(), 2 * pairs);
        assert_eq!(of("arithmetic").len(), 0);
    }
}
