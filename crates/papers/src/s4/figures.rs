//! Figures and the tables beside them.

use std::collections::BTreeSet;

use ssdyno_figures::NetworkResult;

use super::data::{
    Case, FILE_SYSTEMS, LOADS, NETWORK_VARIANTS, Plan, QUICK, SUITES, TOOLS, TOOLS_OF_7, ZCAV,
    one_after_another,
};
use super::simulate::Measured;
use crate::chart::{Bar, Bars, Curve, Curves, Lines, Places};
use crate::mean::{Mean, shown};
use crate::printed::Titled;
use crate::series::{Column, Series};
use crate::{Figure, FigureTable};

/// The table that is measured, not simulated.
pub(super) const MACHINE: &str = "machine";

/// A drawing and what stands in its table.
struct Drawn {
    svg: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// The points of those of the figures that are called `names`.
pub(super) fn points<'a>(names: impl Iterator<Item = &'a str>, plan: &Plan) -> BTreeSet<Case> {
    let mut points = BTreeSet::new();
    for name in names.filter(|name| *name != MACHINE) {
        let figure = plan.figures.iter().find(|figure| figure.id == name);
        let drawn = figure.map(|figure| Measured::asked_by(|nothing| draw(figure, plan, nothing)));
        points.extend(drawn.into_iter().flatten());
        if name == "figure5d" {
            // It is not drawn: a claim beside the figure is about it.
            points.insert(one_after_another());
        }
    }
    points
}

/// The drawing and the numbers of a figure.
pub(super) fn draw(part: &Titled, plan: &Plan, measured: &Measured) -> (Figure, FigureTable) {
    let (figure, title) = (part.id.as_str(), part.title.as_str());
    let drawn = match figure {
        "figure1" => suites(title, measured),
        "figure3" => over_time(title, plan, measured),
        "figure4" => zones(title, plan, measured),
        "figure6" => loads(title, measured),
        "figure7a" | "figure7b" => by_workers(title, figure, plan, measured),
        "table3" => switches(title, measured),
        "table4" => clients(title, plan, measured),
        _ => by_size(title, figure, plan, measured),
    };
    let Drawn { svg, columns, rows } = drawn;
    Figure::with_table(format!("S4/{figure}"), title, svg, columns, rows)
}

const MEGABYTES: Column<Case> = Column::new("MB/s", 2, Measured::megabytes);
const CPU: Column<Case> = Column::new("CPU per request, us", 2, |measured, case| {
    measured.host(case, |host| host.cpu_ns_per_request / 1e3)
});

fn suites(title: &str, measured: &Measured) -> Drawn {
    const HITS: Column<Case> = Column::new("pages found in the cache, %", 1, |measured, case| {
        measured
            .host(case, |host| host.cache.and_then(|cache| cache.hit_ratio).unwrap_or(0.0) * 100.0)
    });
    let mut series = Series::new(measured, &[MEGABYTES, HITS]);
    for (load, size) in SUITES {
        for stack in FILE_SYSTEMS {
            let case = Case::new("seagate", stack, load, size, 1);
            series.bar(load, stack, [&format!("{load}, {size} KiB"), stack], &case);
        }
    }
    let columns = series.columns(&["in kind of", "file system"]);
    let (unit, parts) = ("throughput (MB/s)", &["throughput"]);
    let svg = Bars { title, unit, parts, bars: series.bars }.draw();
    Drawn { svg, columns, rows: series.rows }
}

/// IOPS of each second, of the first seed.
pub(super) fn seconds(measured: &Measured, case: &Case) -> Vec<(f64, f64)> {
    let run = measured.runs(case).next();
    let points = run.into_iter().flat_map(|run| &run.series);
    // The last point of a series is shorter than a second. Its rate has few requests and could be
    // the minimum or maximum of the figure.
    let whole = points.filter(|point| point.length_seconds > 0.99);
    whole.map(|point| (point.start_seconds, point.iops)).collect()
}

/// A point of figure 3.
pub(super) fn series_case(plan: &Plan, stack: &str) -> Case {
    Case::new("seagate", stack, "long-random-write", plan.figure3.size_kib, 1)
}

/// The points of figure 4.
pub(super) fn sweeps(plan: &Plan) -> [Case; 2] {
    ZCAV.map(|load| Case::new("seagate", "spek", load, plan.figure4.size_kib, 1))
}

fn over_time(title: &str, plan: &Plan, measured: &Measured) -> Drawn {
    let (mut curves, mut rows) = (Vec::new(), Vec::new());
    for case in TOOLS.map(|tool| series_case(plan, tool)) {
        let points = seconds(measured, &case);
        let values: Vec<f64> = points.iter().map(|point| point.1).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        // S4-25: IoMeter swings between 0 and 300 IOPS. The share of seconds at zero shows the
        // flushes, which a mean of 175 hides.
        let idle = values.iter().filter(|value| **value < 1.0).count();
        rows.push(vec![
            case.stack.clone(),
            shown(measured.iops(&case), 1),
            format!("{least:.0}"),
            format!("{most:.0}"),
            format!("{:.1}", 100.0 * idle as f64 / values.len().max(1) as f64),
        ]);
        let dashed = case.stack == "spek";
        // What the cache takes at memory speed would hide everything else.
        let points = points.into_iter().map(|(at, iops)| (at, iops.min(600.0))).collect();
        curves.push(Curve { label: format!("{} (cut at 600)", case.stack), points, dashed });
    }
    Drawn {
        svg: Curves { title, across: "time (s)", unit: "requests per second", curves }.draw(),
        columns: vec!["tool", "IOPS, mean", "lowest in 1 s", "most", "seconds at zero, %"],
        rows,
    }
}

/// MB/s over time, of the first seed: means of [`SWEEP_STEP`] seconds.
pub(super) fn sweep(measured: &Measured, case: &Case) -> Vec<(f64, f64)> {
    let megabytes = f64::from(case.size_kib) * 1024.0 / 1e6;
    // S4-27: a sweep takes about 383 s, so means over 5 s keep its shape and remove the noise of
    // caches within a second.
    let each = seconds(measured, case);
    let mean = |group: &[(f64, f64)]| {
        let iops: f64 = group.iter().map(|(_, iops)| iops).sum();
        (group[0].0, iops / group.len() as f64 * megabytes)
    };
    each.chunks_exact(SWEEP_STEP).map(mean).collect()
}

/// A second of a sweep has whole read-ahead windows and whole write-backs of a cache in it only by chance.
const SWEEP_STEP: usize = 5;

/// What a curve that falls from zone to zone and begins again says: the most, the least, and the time between two
/// beginnings, where there are two.
pub(super) struct Sweep {
    pub(super) outer: f64,
    pub(super) inner: f64,
    pub(super) period_seconds: Option<f64>,
}

impl Sweep {
    pub(super) fn of(points: &[(f64, f64)]) -> Option<Sweep> {
        let outer = points.iter().map(|point| point.1).fold(0.0, f64::max);
        let inner = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        if outer <= inner {
            return None;
        }
        // From the slow quarter to the fast one the disk begins again: everywhere else it falls, with a little noise
        // where a step of time has a track more or less in it.
        // Two thresholds form a hysteresis. With one, the noise near the threshold would count as
        // several beginnings of a sweep.
        let quarter = (outer - inner) / 4.0;
        let (mut slow, mut begins) = (false, Vec::new());
        for (at, rate) in points {
            if *rate <= inner + quarter {
                slow = true;
            } else if *rate >= outer - quarter && std::mem::take(&mut slow) {
                begins.push(*at);
            }
        }
        let period_seconds = match begins[..] {
            [] => None,
            // The first sweep begins with the run.
            [second] => Some(second),
            // The mean over all periods is used. The first beginning and the last one give it
            // without the noise of the single ones between.
            [first, .., last] => Some((last - first) / (begins.len() - 1) as f64),
        };
        Some(Sweep { outer, inner, period_seconds })
    }
}

fn zones(title: &str, plan: &Plan, measured: &Measured) -> Drawn {
    let (mut curves, mut rows) = (Vec::new(), Vec::new());
    for case in sweeps(plan) {
        let points = sweep(measured, &case);
        let sweep = Sweep::of(&points);
        let number = |value: Option<f64>, digits| {
            value.map_or_else(|| "not run".to_owned(), |value| format!("{value:.digits$}"))
        };
        let mean = measured.megabytes(&case);
        let period = sweep.as_ref().and_then(|sweep| sweep.period_seconds);
        rows.push(vec![
            case.load.clone(),
            shown(mean, 2),
            number(sweep.as_ref().map(|sweep| sweep.outer), 1),
            number(sweep.as_ref().map(|sweep| sweep.inner), 1),
            number(period, 0),
            // Period times rate is the size of the disk: about 18 GB (S4-27). This check needs no
            // assumption about the zones.
            number(period.zip(mean).map(|(period, mean)| period * mean.mean / 1e3), 2),
        ]);
        curves.push(Curve { label: case.load.clone(), points, dashed: case.load != "zcav-read" });
    }
    Drawn {
        svg: Curves { title, across: "time (s)", unit: "throughput (MB/s)", curves }.draw(),
        columns: vec!["load", "MB/s, mean", "most", "least", "period, s", "period, GB"],
        rows,
    }
}

fn by_size(title: &str, figure: &str, plan: &Plan, measured: &Measured) -> Drawn {
    const IOPS: Column<Case> = Column::new("IOPS", 1, Measured::iops);
    const BUSY: Column<Case> = Column::new("core busy, %", 1, |measured, case| {
        measured
            .host(case, |host| 100.0 * host.cores.iter().map(|core| core.busy_share).sum::<f64>())
    });
    let load = LOADS.iter().find(|(id, _)| *id == figure).map_or("", |(_, load)| load);
    let sizes = &plan.figure5.sizes_kib;
    let mut series = Series::new(measured, &[MEGABYTES, IOPS, BUSY]);
    for stack in TOOLS {
        let case = |size: &u32| Some(Case::new("seagate", stack, load, *size, 1));
        series.line(stack, stack == "spek", &[stack], sizes, case);
    }
    let (unit, across) = ("throughput (MB/s)", "request size (KiB)");
    let (places, lines) = (Places::values(sizes), series.lines(0));
    Drawn {
        svg: Lines { title, unit, across, places, lines }.draw(),
        columns: series.columns(&["tool", "KiB"]),
        rows: series.rows,
    }
}

fn loads(title: &str, measured: &Measured) -> Drawn {
    let (mut bars, mut rows) = (Vec::new(), Vec::new());
    for (_, load) in LOADS {
        let at = |stack| measured.megabytes(&Case::new("ibm", stack, load, 16, 1));
        let ratio = match (at("spek"), at("iometer")) {
            // S4-33 prints a difference of up to 600 %. The ratio is computed from the means of the
            // seeds, for the same load and disk.
            (Some(spek), Some(iometer)) => format!("{:.2}", iometer.mean / spek.mean),
            _ => "not run".to_owned(),
        };
        for stack in TOOLS {
            let parts = at(stack).map(|mean| vec![mean.mean]);
            bars.push(Bar { group: load.to_owned(), label: stack, parts });
        }
        rows.push(vec![load.to_owned(), shown(at("spek"), 2), shown(at("iometer"), 2), ratio]);
    }
    let parts = ["throughput"];
    Drawn {
        svg: Bars { title, unit: "throughput (MB/s)", parts: &parts, bars }.draw(),
        columns: vec!["16 KiB", "spek, MB/s", "iometer, MB/s", "iometer / spek"],
        rows,
    }
}

/// The point of figure 7.
pub(super) fn worker_case(figure: &str, plan: &Plan, stack: &str, workers: u16) -> Case {
    let device = if figure == "figure7a" { "delay-100us" } else { "delay-10us" };
    Case::new(device, stack, "quick-random-read", plan.figure7.size_kib, workers)
}

fn by_workers(title: &str, figure: &str, plan: &Plan, measured: &Measured) -> Drawn {
    const RATE: Column<Case> =
        Column::new("kIOPS", 2, |measured, case| measured.mean(case, |run| run.iops / 1e3));
    const LATENCY: Column<Case> = Column::new("latency, us", 1, Measured::latency_us);
    let workers = &plan.figure7.workers;
    let mut series = Series::new(measured, &[RATE, LATENCY, CPU]);
    for stack in TOOLS_OF_7 {
        let case = |n: &u16| Some(worker_case(figure, plan, stack, *n));
        series.line(stack, stack == "spek", &[stack], workers, case);
    }
    let (unit, across) = ("thousand requests per second", "workers");
    let (places, lines) = (Places::values(workers), series.lines(0));
    Drawn {
        svg: Lines { title, unit, across, places, lines }.draw(),
        columns: series.columns(&["tool", "workers"]),
        rows: series.rows,
    }
}

fn switches(title: &str, measured: &Measured) -> Drawn {
    const SWITCHES: Column<Case> = Column::new("switches", 2, Measured::switches);
    const CALLS: Column<Case> = Column::new("system calls", 2, |measured, case| {
        measured.host(case, |host| host.system_calls_per_request.unwrap_or(f64::NAN))
    });
    let mut series = Series::new(measured, &[SWITCHES, CALLS, CPU]);
    for load in QUICK {
        for stack in TOOLS {
            // A device with a fixed delay shows the switches of the tool alone. On a disk, the
            // number of switches would depend on how many requests complete together.
            let case = Case::new("delay-100us", stack, load, 4, 1);
            let name = load.strip_prefix("quick-").unwrap_or(load);
            series.bar(name, stack, [name, stack], &case);
        }
    }
    let columns = series.columns(&["load", "tool"]);
    let (unit, parts) = ("context switches per request", &["switches to threads and to idleness"]);
    let svg = Bars { title, unit, parts, bars: series.bars }.draw();
    Drawn { svg, columns, rows: series.rows }
}

/// The point of table 4.
pub(super) fn client_case(plan: &Plan, variant: &'static str, clients: u16) -> Case {
    let size = plan.table4.size_kib;
    // S4-42: sequential reads of 32 KB over iSCSI. Each client is a core with its own session,
    // because clients of the paper are separate machines.
    let case = Case::new("iscsi-disks", "spek", "sequential-read", size, clients);
    Case { network: Some(variant), ..case }
}

fn network(measured: &Measured, case: &Case, figure: fn(&NetworkResult) -> f64) -> Option<Mean> {
    measured.host(case, move |host| host.network.as_ref().map_or(f64::NAN, figure))
}

fn clients(title: &str, plan: &Plan, measured: &Measured) -> Drawn {
    const COLUMNS: &[Column<Case>] = &[
        MEGABYTES,
        Column::new("target's CPU, %", 1, |measured, case| {
            network(measured, case, |network| 100.0 * network.target_cpu_share)
        }),
        Column::new("work per request, us", 1, |measured, case| {
            network(measured, case, |network| network.target_cpu_ns_per_command / 1e3)
        }),
        Column::new("link, %", 1, |measured, case| {
            network(measured, case, |network| 100.0 * network.link_to_host_share)
        }),
    ];
    let clients = &plan.table4.clients;
    let mut series = Series::new(measured, COLUMNS);
    for variant in NETWORK_VARIANTS {
        let case = |n: &u16| Some(client_case(plan, variant, *n));
        series.line(format!("costs {variant}"), variant == "fitted", &[variant], clients, case);
    }
    let (unit, across) = ("throughput of all clients (MB/s)", "clients");
    let (places, lines) = (Places::values(clients), series.lines(0));
    Drawn {
        svg: Lines { title, unit, across, places, lines }.draw(),
        columns: series.columns(&["costs", "clients"]),
        rows: series.rows,
    }
}
