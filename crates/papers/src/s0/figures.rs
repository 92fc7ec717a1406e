//! Figures 5 to 8 and what is beyond them: plots and tables.

use super::data::{Case, Completion, Plan, RESPONSES, WAYS};
use super::simulate::Measured;
use crate::chart::{Curve, Curves, Line, Lines, Places};
use crate::mean::{Mean, shown};
use crate::printed::Titled;
use crate::{Figure, FigureTable};

/// A drawing with the numbers behind it.
struct Drawn {
    /// Suffix of the drawing's identifier, title, document.
    drawings: Vec<(&'static str, String)>,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
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

fn value(mean: Option<Mean>) -> Option<f64> {
    mean.map(|mean| mean.mean)
}

const KIOPS: &str = "throughput (kIOPS)";
const LATENCY: &str = "mean latency (us)";

impl View<'_> {
    fn lines(&self, unit: &str, places: &[u32], across: &str, lines: Vec<Line>) -> String {
        let places = Places::values(places);
        Lines { title: self.title, unit, across, places, lines }.draw()
    }

    /// Throughput and latency of `case`, for a table.
    fn figures(&self, case: &Case) -> [String; 2] {
        [shown(self.measured.kiops(case), 1), shown(self.measured.latency_us(case), 1)]
    }

    fn figure5(&self) -> Drawn {
        let sizes = &self.plan.block_sizes;
        let (mut lines, mut rows) = (Vec::new(), Vec::new());
        for (way, percent) in WAYS {
            for response in RESPONSES {
                let case = |size: &u32| self.plan.fed(*size, percent, response);
                lines.push(Line {
                    label: format!("{way}, {}", response.0),
                    values: sizes.iter().map(|b| value(self.measured.kiops(&case(b)))).collect(),
                    dashed: percent == 0,
                });
                for size in sizes {
                    let [kiops, latency] = self.figures(&case(size));
                    let row = [way.to_owned(), response.0.to_owned(), size.to_string()];
                    rows.push(row.into_iter().chain([kiops, latency]).collect());
                }
            }
        }
        Drawn {
            drawings: vec![("", self.lines(KIOPS, sizes, "descriptors in a block", lines))],
            columns: vec!["", "response", "block size", "kIOPS", "mean latency, us"],
            rows,
        }
    }

    fn figure6(&self) -> Drawn {
        let threads = &self.plan.threads;
        let (mut drawings, mut rows) = (Vec::new(), Vec::new());
        for ((way, percent), suffix) in WAYS.into_iter().zip(["/read", "/write"]) {
            let mut lines = Vec::new();
            for size in &self.plan.static_blocks {
                let case = |threads: &u32| Case::fixed(*size, *threads, percent);
                lines.push(Line {
                    label: format!("{way}, blocks of {size}"),
                    values: threads.iter().map(|n| value(self.measured.kiops(&case(n)))).collect(),
                    dashed: percent == 0,
                });
                // S0-36: there are no points with fewer threads than a block holds. Rows without
                // values would look like runs that failed.
                for n in threads.iter().filter(|n| *n >= size) {
                    let [kiops, latency] = self.figures(&case(n));
                    rows.push(vec![
                        way.to_owned(),
                        size.to_string(),
                        n.to_string(),
                        kiops,
                        latency,
                    ]);
                }
            }
            drawings.push((suffix, self.lines(KIOPS, threads, "threads", lines)));
        }
        let columns = vec!["", "block size", "threads", "kIOPS", "mean latency, us"];
        Drawn { drawings, columns, rows }
    }

    fn figure7(&self) -> Drawn {
        let threads = &self.plan.threads;
        let (mut rates, mut latencies) = (Vec::new(), Vec::new());
        let (mut curves, mut rows) = (Vec::new(), Vec::new());
        for (way, percent) in WAYS {
            let case = |threads: &u32| Case::dynamic(*threads, percent);
            let kiops = |n: &u32| value(self.measured.kiops(&case(n)));
            let latency = |n: &u32| value(self.measured.latency_us(&case(n)));
            let line = |values| Line { label: way.to_owned(), values, dashed: percent == 0 };
            rates.push(line(threads.iter().map(kiops).collect()));
            latencies.push(line(threads.iter().map(latency).collect()));
            curves.push(Curve {
                label: way.to_owned(),
                points: threads.iter().filter_map(|n| Some((kiops(n)?, latency(n)?))).collect(),
                dashed: percent == 0,
            });
            for n in threads {
                let [kiops, latency] = self.figures(&case(n));
                rows.push(vec![way.to_owned(), n.to_string(), kiops, latency]);
            }
        }
        // S0-38 also shows latency over throughput. Both are measured at the same number of
        // threads, so each point of the curve is one run.
        let curves = Curves { title: self.title, across: KIOPS, unit: LATENCY, curves }.draw();
        Drawn {
            drawings: vec![
                ("/throughput", self.lines(KIOPS, threads, "threads", rates)),
                ("/latency", self.lines(LATENCY, threads, "threads", latencies)),
                ("/curve", curves),
            ],
            columns: vec!["", "threads", "kIOPS", "mean latency, us"],
            rows,
        }
    }

    fn figure8(&self) -> Drawn {
        let sizes = &self.plan.sizes_kib;
        let (mut rates, mut latencies, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for (way, percent) in WAYS {
            for (at, how) in ["one thread", "many threads of 4 KiB"].into_iter().enumerate() {
                let case = |size: &u32| self.plan.large(*size, percent)[at].clone();
                let line =
                    |values| Line { label: format!("{way}, {how}"), values, dashed: percent == 0 };
                let megabytes = |size: &u32| value(self.measured.megabytes(&case(size)));
                let latency = |size: &u32| value(self.measured.latency_us(&case(size)));
                rates.push(line(sizes.iter().map(megabytes).collect()));
                latencies.push(line(sizes.iter().map(latency).collect()));
                for size in sizes {
                    rows.push(vec![
                        way.to_owned(),
                        how.to_owned(),
                        size.to_string(),
                        shown(self.measured.megabytes(&case(size)), 1),
                        shown(self.measured.latency_us(&case(size)), 1),
                    ]);
                }
            }
        }
        let unit = "throughput (MB/s)";
        Drawn {
            drawings: vec![
                ("/throughput", self.lines(unit, sizes, "outstanding (KiB)", rates)),
                ("/latency", self.lines(LATENCY, sizes, "outstanding (KiB)", latencies)),
            ],
            columns: vec!["", "threads", "outstanding, KiB", "MB/s", "mean latency, us"],
            rows,
        }
    }

    fn mixed(&self) -> Drawn {
        let percents = &self.plan.read_percents;
        let case = |percent: &u32| Case::dynamic(self.plan.mixed_threads, *percent);
        let values = percents.iter().map(|p| value(self.measured.kiops(&case(p)))).collect();
        let label = format!("{} threads", self.plan.mixed_threads);
        let rows = percents.iter().map(|percent| {
            let [kiops, latency] = self.figures(&case(percent));
            vec![percent.to_string(), kiops, latency]
        });
        let lines = vec![Line { label, values, dashed: false }];
        Drawn {
            drawings: vec![("", self.lines(KIOPS, percents, "reads (%)", lines))],
            columns: vec!["reads, %", "kIOPS", "mean latency, us"],
            rows: rows.collect(),
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
        let threads = &self.plan.completion_threads;
        let (mut lines, mut rows) = (Vec::new(), Vec::new());
        for completion in Completion::ALL {
            let case = |threads: &u32| self.plan.completed(*threads, completion);
            let latency = |n: &u32| value(self.measured.latency_us(&case(n)));
            let values = threads.iter().map(latency).collect();
            lines.push(Line { label: completion.name().to_owned(), values, dashed: false });
            for n in threads {
                let case = case(n);
                let [kiops, latency] = self.figures(&case);
                // Latency alone would favour one interrupt per return. Interrupts and CPU time per
                // request show what this policy costs, as in the comparison of calibrated
                // interrupts.
                let interrupts = self.measured.host(&case, |host| host.interrupts_per_request);
                let cpu = self.measured.host(&case, |host| host.cpu_ns_per_request / 1e3);
                let writes = self.measured.host(&case, |host| host.register_writes_per_request);
                rows.push(vec![
                    completion.name().to_owned(),
                    n.to_string(),
                    kiops,
                    latency,
                    shown(interrupts, 3),
                    shown(writes, 3),
                    shown(cpu, 2),
                ]);
            }
        }
        Drawn {
            drawings: vec![("", self.lines(LATENCY, threads, "threads", lines))],
            columns: vec![
                "completion",
                "threads",
                "kIOPS",
                "mean latency, us",
                "interrupts per request",
                "register writes per request",
                "CPU per request, us",
            ],
            rows,
        }
    }
}
