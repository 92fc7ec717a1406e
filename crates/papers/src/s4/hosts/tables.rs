//! Tables and drawings of what was measured, beside the paper and the simulator.

use super::claims::workers;
use super::facts::{Facts, Spread, skew};
use super::lab::{Link, shape_told};
use super::measure::{CLIENTS, DELAYS, LINKS, Load, Parts, WORKERS};
use super::target::Server;
use crate::chart::{Line, Lines, Places};
use crate::mean::{Mean, shown};
use crate::report::Row;
use crate::s4::data::PrintedIscsi;
use crate::{Figure, FigureTable};

const NOT_MEASURED: &str = "not measured";

fn table(id: &str, title: &str, rows: Vec<Row>) -> FigureTable {
    FigureTable::of(format!("S4/hosts/{id}"), title, rows)
}

fn lines(
    id: &str,
    title: &str,
    unit: &str,
    across: &str,
    places: &[u16],
    lines: Vec<Line>,
) -> Figure {
    let places = Places::values(places);
    let svg = Lines { title, unit, across, places, lines }.draw();
    Figure { id: format!("S4/hosts/{id}"), title: title.to_owned(), svg }
}

/// Mean with interval, median, and range.
fn three(unit: &'static str, values: Vec<f64>, digits: usize) -> [(&'static str, String); 3] {
    let none = || NOT_MEASURED.to_owned();
    let mean = Mean::of(&values).map_or_else(none, |mean| mean.text(digits));
    let spread = Spread::of(values);
    let median = spread.map_or_else(none, |spread| format!("{:.digits$}", spread.median));
    let range = spread.map_or_else(none, |spread| spread.range(digits));
    [(unit, mean), ("median", median), ("range", range)]
}

fn median(values: Vec<f64>, digits: usize) -> String {
    let values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
    Spread::of(values)
        .map_or_else(|| NOT_MEASURED.to_owned(), |spread| format!("{:.digits$}", spread.median))
}

/// The targets of table 4, each over every link.
fn groups() -> impl Iterator<Item = (Server, Link)> {
    Server::ALL.into_iter().flat_map(|server| LINKS.map(|link| (server, link)))
}

/// The cells that name a load of table 4.
fn load_of(server: Server, link: Link, clients: u16) -> [(&'static str, String); 3] {
    let (server, link) = (server.name().to_owned(), link.name().to_owned());
    [("target", server), ("link", link), ("clients", clients.to_string())]
}

/// Table 4.
pub(super) fn table4(facts: &Facts<'_>, printed: &PrintedIscsi) -> (Figure, FigureTable) {
    let title = "Sequential reads of 32 KiB over a network: throughput by clients";
    let (mut drawn, mut rows) = (Vec::new(), Vec::new());
    for (server, link) in groups() {
        let mean = |n: u16| facts.megabytes(server, link, n).map(|mean| mean.mean);
        let label = format!("{}, {}", server.name(), link.name());
        drawn.push(Line { label, values: CLIENTS.map(mean).to_vec(), dashed: false });
        for (n, own) in CLIENTS.into_iter().zip(&printed.shares) {
            let loads = facts.loads(server, link, n);
            let of = |figure: fn(&Load) -> f64| loads.iter().map(figure).collect::<Vec<f64>>();
            let each = (0..usize::from(n)).map(|at| {
                let client = |load: &Load| load.clients.get(at).map(|client| client.megabytes);
                median(loads.iter().filter_map(client).collect(), 1)
            });
            // The threads of our target are not told from those of the controller.
            let unknown = server == Server::Own;
            let shares = of(|load| 100.0 * load.cpu.processes).into_iter();
            let own = own.iter().map(|one| format!("{one:.1}")).collect::<Vec<_>>();
            let simulated = |variant| shown(facts.simulated_megabytes(variant, n), 1);
            let mut row = load_of(server, link, n).to_vec();
            row.extend(three("MB/s", of(|load| load.megabytes), 1));
            row.extend([
                ("each client", each.collect::<Vec<_>>().join(" + ")),
                ("target's core, %", median(of(|load| 100.0 * load.cpu.core), 0)),
                ("its programs, %", median(shares.filter(|_| !unknown).collect(), 0)),
                ("S4, each", own.join(" + ")),
                ("S4, MB/s", format!("{:.1}", printed.totals[usize::from(n - 1)])),
                ("simulated, assumed", simulated("assumed")),
                ("simulated, fitted", simulated("fitted")),
            ]);
            rows.push(row);
        }
    }
    let printed = printed.totals.map(Some).to_vec();
    drawn.push(Line { label: "S4".to_owned(), values: printed, dashed: true });
    let title_of_table = format!("{title} (1 Gbit/s: {}, each way)", shape_told());
    let figure =
        lines("table4", title, "throughput of all clients (MB/s)", "clients", &CLIENTS, drawn);
    (figure, table("table4", &title_of_table, rows))
}

/// Figure 7 at each delay that was measured, and how many workers are needed.
pub(super) fn figure7(facts: &Facts<'_>, parts: Parts) -> (Vec<Figure>, Vec<FigureTable>) {
    let (mut figures, mut tables, mut needed) = (Vec::new(), Vec::new(), Vec::new());
    let chosen = DELAYS.into_iter().zip(parts.figure7).filter(|(_, on)| *on);
    for ((delay, figure), _) in chosen {
        // A storage that serves one request after the other has a limit of one request per delay:
        // 10,000 per second for 100 us and 100,000 for 10 us (S4-35).
        let limit = 1e6 / f64::from(delay);
        let mut rows = Vec::new();
        for n in WORKERS {
            let loads = facts.worker_loads(delay, n);
            let of = |figure: &dyn Fn(&Load) -> f64| loads.iter().map(figure).collect::<Vec<_>>();
            let simulated = facts.simulated_iops(figure, n).map(|iops| iops.times(1e-3));
            let mut row = vec![("workers", n.to_string())];
            row.extend(three("kIOPS", of(&|load| load.iops / 1e3), 2));
            row.extend([
                ("of the limit, %", median(of(&|load| 100.0 * load.iops / limit), 1)),
                ("latency, us", median(of(&|load| load.latency_us), 1)),
                ("simulated, kIOPS", shown(simulated, 2)),
            ]);
            rows.push(row);
        }
        let title = format!("Storage of {delay} us over a network: throughput by workers");
        let here = WORKERS.map(|n| facts.iops(delay, n).map(|iops| iops.mean / 1e3)).to_vec();
        let simulated =
            WORKERS.map(|n| facts.simulated_iops(figure, n).map(|iops| iops.mean / 1e3)).to_vec();
        let unit = "thousand requests per second";
        figures.push(lines(
            figure,
            &title,
            unit,
            "workers",
            &WORKERS,
            vec![
                Line { label: "measured".to_owned(), values: here, dashed: false },
                Line { label: "simulated, SPEK".to_owned(), values: simulated, dashed: true },
            ],
        ));
        tables.push(table(figure, &title, rows));
        let late = facts.outcome.late.get(&delay).map_or(&[][..], Vec::as_slice);
        // The worst lateness is shown beside the mean. A thread that loses its core once is late by
        // milliseconds, which the mean over thousands of answers hides.
        let most = late.iter().map(|late| late.most.as_secs_f64() * 1e6).reduce(f64::max);
        let most = most.map(|most| format!("{most:.0}"));
        let told =
            |needed: Option<Option<u16>>| needed.map_or_else(|| NOT_MEASURED.to_owned(), workers);
        needed.push(vec![
            ("delay, us", delay.to_string()),
            ("measured", told(facts.needed(delay))),
            ("simulated", told(facts.simulated_needed(figure))),
            ("S4", if delay == 100 { "2" } else { "not printed" }.to_owned()),
            ("late, mean, us", median(late.iter().map(|late| late.mean_us()).collect(), 2)),
            ("late, most, us", most.unwrap_or_else(|| NOT_MEASURED.to_owned())),
        ]);
    }
    let title =
        "Workers for 95 % of the storage's limit, and the delay of the storage's completions";
    tables.push(table("figure7", title, needed));
    (figures, tables)
}

/// The start of the loads of table 4.
pub(super) fn ramp_up(facts: &Facts<'_>) -> FigureTable {
    let mut rows = Vec::new();
    for (server, link) in groups() {
        for n in CLIENTS {
            let loads = facts.loads(server, link, n);
            let clients = || loads.iter().flat_map(|load| &load.clients);
            // Clients without a steady rate are counted and not left out of sight. The median of
            // the others alone would look better than the measurement was.
            let never = clients().filter(|client| client.steady_seconds.is_none()).count();
            let each: Vec<f64> = clients().filter_map(|client| client.steady_seconds).collect();
            let all = loads.iter().filter_map(|load| load.steady_seconds).collect();
            let skews = Spread::of(loads.iter().map(skew).collect()).filter(|_| n > 1);
            let number = |value: Option<f64>, digits: usize| {
                value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
            };
            let mut row = load_of(server, link, n).to_vec();
            row.extend([
                ("apart, median, us", number(skews.map(|skews| skews.median), 0)),
                ("apart, most, us", number(skews.map(|skews| skews.most), 0)),
                ("client steady after, s", median(each.clone(), 1)),
                ("at most, s", number(each.into_iter().reduce(f64::max), 1)),
                ("never steady", never.to_string()),
                ("total steady after, s", median(all, 2)),
            ]);
            rows.push(row);
        }
    }
    let title = "Ramp-up: the time between the first and the last start of a client, and the time until rates are within 10 % of the rates in the second half \
                 (clients by snapshots of 0.1 s, the total by steps of 10 ms)";
    table("ramp_up", title, rows)
}
