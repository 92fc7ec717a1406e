//! Tables and drawings of what was measured, beside the paper and the simulator.

use super::claims::workers;
use super::facts::{Facts, Spread, skew};
use super::lab::{Link, shape_told};
use super::measure::{CLIENTS, DELAYS, LINKS, Load, Parts, WORKERS};
use super::target::Server;
use crate::chart::{Line, Lines, Places};
use crate::mean::{Mean, shown};
use crate::s4::data::PrintedIscsi;
use crate::{Figure, FigureTable};

const NOT_MEASURED: &str = "not measured";

fn table(id: &str, title: String, columns: &[&str], rows: Vec<Vec<String>>) -> FigureTable {
    FigureTable::new(format!("S4/hosts/{id}"), title, columns.iter().copied(), rows)
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
fn three(values: Vec<f64>, digits: usize) -> [String; 3] {
    let none = || NOT_MEASURED.to_owned();
    let mean = Mean::of(&values).map_or_else(none, |mean| mean.text(digits));
    let spread = Spread::of(values);
    let median = spread.map_or_else(none, |spread| format!("{:.digits$}", spread.median));
    [mean, median, spread.map_or_else(none, |spread| spread.range(digits))]
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
            let mut row = vec![server.name().to_owned(), link.name().to_owned(), n.to_string()];
            row.extend(three(of(|load| load.megabytes), 1));
            row.push(each.collect::<Vec<_>>().join(" + "));
            row.push(median(of(|load| 100.0 * load.cpu.core), 0));
            // The threads of our target are not told from those of the controller.
            let unknown = server == Server::Own;
            let shares = of(|load| 100.0 * load.cpu.processes).into_iter();
            row.push(median(shares.filter(|_| !unknown).collect(), 0));
            row.push(own.iter().map(|one| format!("{one:.1}")).collect::<Vec<_>>().join(" + "));
            row.push(format!("{:.1}", printed.totals[usize::from(n - 1)]));
            row.extend(
                ["assumed", "fitted"]
                    .map(|variant| shown(facts.simulated_megabytes(variant, n), 1)),
            );
            rows.push(row);
        }
    }
    let printed = printed.totals.map(Some).to_vec();
    drawn.push(Line { label: "S4".to_owned(), values: printed, dashed: true });
    let columns = [
        "target",
        "link",
        "clients",
        "MB/s",
        "median",
        "range",
        "each client",
        "target's core, %",
        "its programs, %",
        "S4, each",
        "S4, MB/s",
        "simulated, assumed",
        "simulated, fitted",
    ];
    let title_of_table = format!("{title} (1 Gbit/s: {}, each way)", shape_told());
    let figure =
        lines("table4", title, "throughput of all clients (MB/s)", "clients", &CLIENTS, drawn);
    (figure, table("table4", title_of_table, &columns, rows))
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
            let mut row = vec![n.to_string()];
            row.extend(three(loads.iter().map(|load| load.iops / 1e3).collect(), 2));
            row.push(median(loads.iter().map(|load| 100.0 * load.iops / limit).collect(), 1));
            row.push(median(loads.iter().map(|load| load.latency_us).collect(), 1));
            let simulated = facts.simulated_iops(figure, n).map(|iops| iops.times(1e-3));
            row.push(shown(simulated, 2));
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
        let columns = [
            "workers",
            "kIOPS",
            "median",
            "range",
            "of the limit, %",
            "latency, us",
            "simulated, kIOPS",
        ];
        tables.push(table(figure, title, &columns, rows));
        let late = facts.outcome.late.get(&delay).map_or(&[][..], Vec::as_slice);
        // The worst lateness is shown beside the mean. A thread that loses its core once is late by
        // milliseconds, which the mean over thousands of answers hides.
        let most = late.iter().map(|late| late.most.as_secs_f64() * 1e6).reduce(f64::max);
        let told =
            |needed: Option<Option<u16>>| needed.map_or_else(|| NOT_MEASURED.to_owned(), workers);
        needed.push(vec![
            delay.to_string(),
            told(facts.needed(delay)),
            told(facts.simulated_needed(figure)),
            if delay == 100 { "2" } else { "not printed" }.to_owned(),
            median(late.iter().map(|late| late.mean_us()).collect(), 2),
            most.map_or_else(|| NOT_MEASURED.to_owned(), |most| format!("{most:.0}")),
        ]);
    }
    let title =
        "Workers for 95 % of the storage's limit, and the delay of the storage's completions";
    let columns = ["delay, us", "measured", "simulated", "S4", "late, mean, us", "late, most, us"];
    tables.push(table("figure7", title.to_owned(), &columns, needed));
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
            rows.push(vec![
                server.name().to_owned(),
                link.name().to_owned(),
                n.to_string(),
                number(skews.map(|skews| skews.median), 0),
                number(skews.map(|skews| skews.most), 0),
                median(each.clone(), 1),
                number(each.into_iter().reduce(f64::max), 1),
                never.to_string(),
                median(all, 2),
            ]);
        }
    }
    let title = "Ramp-up: the time between the first and the last start of a client, and the time until rates are within 10 % of the rates in the second half \
                 (clients by snapshots of 0.1 s, the total by steps of 10 ms)";
    let columns = [
        "target",
        "link",
        "clients",
        "apart, median, us",
        "apart, most, us",
        "client steady after, s",
        "at most, s",
        "never steady",
        "total steady after, s",
    ];
    table("ramp_up", title.to_owned(), &columns, rows)
}
