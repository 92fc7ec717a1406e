//! Figures and the tables beside them.

use super::data::{
    Case, FILE_SYSTEMS, LOADS, NETWORK_VARIANTS, Plan, QUICK, SUITES, TOOLS, TOOLS_OF_7,
};
use super::simulate::Measured;
use crate::chart::{Bar, Bars, Curve, Curves, Line, Lines, Places};
use crate::mean::shown;
use crate::printed::Titled;
use crate::{Figure, FigureTable};

/// A drawing and what stands in its table.
struct Drawn {
    svg: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
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

fn suites(title: &str, measured: &Measured) -> Drawn {
    let (mut bars, mut rows) = (Vec::new(), Vec::new());
    for (load, size) in SUITES {
        for stack in FILE_SYSTEMS {
            let case = Case::new("seagate", stack, load, size, 1);
            let mean = measured.megabytes(&case);
            let hits = measured.host(&case, |host| {
                host.cache.and_then(|cache| cache.hit_ratio).unwrap_or(0.0) * 100.0
            });
            bars.push(Bar {
                group: load.to_owned(),
                label: stack,
                parts: mean.map(|mean| vec![mean.mean]),
            });
            rows.push(vec![
                format!("{load}, {size} KiB"),
                stack.to_owned(),
                shown(mean, 2),
                shown(hits, 1),
            ]);
        }
    }
    let parts = ["throughput"];
    Drawn {
        svg: Bars { title, unit: "throughput (MB/s)", parts: &parts, bars }.draw(),
        columns: vec!["in kind of", "file system", "MB/s", "pages found in the cache, %"],
        rows,
    }
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

fn over_time(title: &str, plan: &Plan, measured: &Measured) -> Drawn {
    let (mut curves, mut rows) = (Vec::new(), Vec::new());
    for case in plan.cases("figure3") {
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
    for case in plan.cases("figure4") {
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
    let load = LOADS.iter().find(|(id, _)| *id == figure).map_or("", |(_, load)| load);
    let sizes = &plan.figure5.sizes_kib;
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    for stack in TOOLS {
        let case = |size: &u32| Case::new("seagate", stack, load, *size, 1);
        let value = |size: &u32| measured.megabytes(&case(size)).map(|mean| mean.mean);
        lines.push(Line {
            label: stack.to_owned(),
            values: sizes.iter().map(value).collect(),
            dashed: stack == "spek",
        });
        for size in sizes {
            let case = case(size);
            let busy = measured.host(&case, |host| {
                100.0 * host.cores.iter().map(|core| core.busy_share).sum::<f64>()
            });
            rows.push(vec![
                stack.to_owned(),
                size.to_string(),
                shown(measured.megabytes(&case), 2),
                shown(measured.iops(&case), 1),
                shown(busy, 1),
            ]);
        }
    }
    let (unit, across) = ("throughput (MB/s)", "request size (KiB)");
    Drawn {
        svg: Lines { title, unit, across, places: Places::values(sizes), lines }.draw(),
        columns: vec!["tool", "KiB", "MB/s", "IOPS", "core busy, %"],
        rows,
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
    let workers = &plan.figure7.workers;
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    for stack in TOOLS_OF_7 {
        let case = |n: &u16| worker_case(figure, plan, stack, *n);
        let value = |n: &u16| measured.iops(&case(n)).map(|mean| mean.mean / 1e3);
        lines.push(Line {
            label: stack.to_owned(),
            values: workers.iter().map(value).collect(),
            dashed: stack == "spek",
        });
        for n in workers {
            let case = case(n);
            let kiops = measured.mean(&case, |run| run.iops / 1e3);
            let cpu = measured.host(&case, |host| host.cpu_ns_per_request / 1e3);
            let latency = measured.mean(&case, |run| {
                run.latency_ns.as_ref().map_or(f64::NAN, |latency| latency.all.mean / 1e3)
            });
            rows.push(vec![
                stack.to_owned(),
                n.to_string(),
                shown(kiops, 2),
                shown(latency, 1),
                shown(cpu, 2),
            ]);
        }
    }
    let places = Places::values(workers);
    Drawn {
        svg: Lines {
            title,
            unit: "thousand requests per second",
            across: "workers",
            places,
            lines,
        }
        .draw(),
        columns: vec!["tool", "workers", "kIOPS", "latency, us", "CPU per request, us"],
        rows,
    }
}

fn switches(title: &str, measured: &Measured) -> Drawn {
    let (mut bars, mut rows) = (Vec::new(), Vec::new());
    for load in QUICK {
        for stack in TOOLS {
            // A device with a fixed delay shows the switches of the tool alone. On a disk, the
            // number of switches would depend on how many requests complete together.
            let case = Case::new("delay-100us", stack, load, 4, 1);
            let switches = measured.switches(&case);
            let calls =
                measured.host(&case, |host| host.system_calls_per_request.unwrap_or(f64::NAN));
            let cpu = measured.host(&case, |host| host.cpu_ns_per_request / 1e3);
            let name = load.strip_prefix("quick-").unwrap_or(load).to_owned();
            let parts = switches.map(|mean| vec![mean.mean]);
            bars.push(Bar { group: name.clone(), label: stack, parts });
            rows.push(vec![
                name,
                stack.to_owned(),
                shown(switches, 2),
                shown(calls, 2),
                shown(cpu, 2),
            ]);
        }
    }
    let parts = ["switches to threads and to idleness"];
    Drawn {
        svg: Bars { title, unit: "context switches per request", parts: &parts, bars }.draw(),
        columns: vec!["load", "tool", "switches", "system calls", "CPU per request, us"],
        rows,
    }
}

/// The point of table 4.
pub(super) fn client_case(plan: &Plan, variant: &'static str, clients: u16) -> Case {
    let size = plan.table4.size_kib;
    // S4-42: sequential reads of 32 KB over iSCSI. Each client is a core with its own session,
    // because clients of the paper are separate machines.
    let case = Case::new("iscsi-disks", "spek", "sequential-read", size, clients);
    Case { network: Some(variant), ..case }
}

fn clients(title: &str, plan: &Plan, measured: &Measured) -> Drawn {
    let clients = &plan.table4.clients;
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    for variant in NETWORK_VARIANTS {
        let case = |n: &u16| client_case(plan, variant, *n);
        let value = |n: &u16| measured.megabytes(&case(n)).map(|mean| mean.mean);
        lines.push(Line {
            label: format!("costs {variant}"),
            values: clients.iter().map(value).collect(),
            dashed: variant == "fitted",
        });
        for n in clients {
            let case = case(n);
            let network = |figure: fn(&ssdyno_figures::NetworkResult) -> f64| {
                measured.host(&case, move |host| host.network.as_ref().map_or(f64::NAN, figure))
            };
            rows.push(vec![
                variant.to_owned(),
                n.to_string(),
                shown(measured.megabytes(&case), 2),
                shown(network(|n| 100.0 * n.target_cpu_share), 1),
                shown(network(|n| n.target_cpu_ns_per_command / 1e3), 1),
                shown(network(|n| 100.0 * n.link_to_host_share), 1),
            ]);
        }
    }
    let places = Places::values(clients);
    Drawn {
        svg: Lines {
            title,
            unit: "throughput of all clients (MB/s)",
            across: "clients",
            places,
            lines,
        }
        .draw(),
        columns: vec![
            "costs",
            "clients",
            "MB/s",
            "target's CPU, %",
            "work per request, us",
            "link, %",
        ],
        rows,
    }
}
