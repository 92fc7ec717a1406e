//! Figures 5.1 to 5.7 and what is beyond them: plots and tables.

use super::data::{ALONE, Case, FigurePlan, alone, first_batch};
use super::simulate::Measured;
use crate::chart::{Bar, Bars, Line, Lines, Places};
use crate::mean::Mean;
use crate::{Figure, FigureTable};

/// The drawing and the numbers of a figure.
pub(super) fn draw(plan: &FigurePlan, measured: &Measured) -> (Figure, FigureTable) {
    let id = format!("S1/{}", plan.id);
    let (svg, columns, rows) = if plan.by_core {
        by_core(plan, measured)
    } else if plan.cores.len() > 1 {
        over_cores(plan, measured)
    } else {
        bars(plan, measured)
    };
    Figure::with_table(id, &plan.title, svg, columns, rows)
}

type Drawn = (String, Vec<String>, Vec<Vec<String>>);

fn heads(heads: &[&str]) -> Vec<String> {
    heads.iter().map(|head| (*head).to_owned()).collect()
}

/// `123.4` and `± 0.5`.
fn shown(mean: Option<Mean>, digits: usize) -> [String; 2] {
    match mean {
        None => ["not run".to_owned(), String::new()],
        Some(Mean { mean, half }) if half.is_finite() => {
            [format!("{mean:.digits$}"), format!("{half:.digits$}")]
        }
        // One seed has no interval. A zero in its place would claim that the run has no
        // uncertainty.
        Some(Mean { mean, .. }) => [format!("{mean:.digits$}"), "one seed".to_owned()],
    }
}

fn way(writes: bool) -> &'static str {
    if writes { "write" } else { "read" }
}

fn bars(plan: &FigurePlan, measured: &Measured) -> Drawn {
    let (mut bars, mut rows) = (Vec::new(), Vec::new());
    for case in plan.cases() {
        let mean = measured.megabytes(&case);
        let [value, half] = shown(mean, 1);
        let done = measured.device_throughput(&case);
        let [by_device, _] = shown(done, 1);
        let commands = measured.host(&case, |host| host.commands_per_request);
        let cpu = measured.host(&case, |host| host.cpu_ns_per_request / 1e6);
        let [[commands, _], [cpu, _]] = [shown(commands, 0), shown(cpu, 3)];
        let direction = way(case.writes).to_owned();
        rows.push(vec![case.policy.clone(), direction, value, half, by_device, commands, cpu]);
        let mut bar = |label, mean: Option<Mean>| {
            let parts = mean.map(|mean| vec![mean.mean]);
            bars.push(Bar { group: case.policy.clone(), label, parts });
        };
        bar(way(case.writes), mean);
        // A second bar shows the writes that the device completed. The thesis could only show the
        // first one, so its writes appear faster than the device (S1-56).
        if case.writes {
            bar("write, done", done);
        }
    }
    let parts = ["reported to the process; for writes, also the rate of the device"];
    let svg = Bars { title: &plan.title, unit: "throughput (MB/s)", parts: &parts, bars }.draw();
    let columns = [
        "queues",
        "",
        "reported, MB/s",
        "± 95 %",
        "completed by the device, MB/s",
        "commands per request",
        "CPU per request, ms",
    ];
    (svg, heads(&columns), rows)
}

fn by_core(plan: &FigurePlan, measured: &Measured) -> Drawn {
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    let cores = plan.cores.first().copied().unwrap_or(1);
    for case in plan.cases() {
        let total = measured.megabytes(&case);
        // The first seed, as the thesis shows one representative run; the core with most first.
        let shares = measured.shares(&case);
        let Some(first) = shares.first() else { continue };
        // The shares are those of one run and are scaled to the mean of all. A mean of the shares
        // over seeds would be nearly even, because the favoured core differs between seeds (S1-59).
        let value = |core: usize| Some(first.get(core)? * total?.mean);
        lines.push(Line {
            label: format!("{}, {}", case.policy, way(case.writes)),
            values: (0..usize::from(cores)).map(value).collect(),
            dashed: case.writes,
        });
        for (at, seed_shares) in shares.iter().enumerate() {
            let way = way(case.writes).to_owned();
            let mut row = vec![case.policy.clone(), way, format!("{}", at + 1)];
            row.extend(seed_shares.iter().map(|share| format!("{:.1}", 100.0 * share)));
            rows.push(row);
        }
    }
    let places = Places::Names((0..cores).map(|core| format!("core {core}")).collect());
    let unit = "throughput reported (MB/s)";
    let svg = Lines { title: &plan.title, unit, across: "", places, lines }.draw();
    let mut columns = heads(&["queues", "", "seed"]);
    columns.extend((0..cores).map(|core| format!("core {core}, % of all")));
    (svg, columns, rows)
}

fn over_cores(plan: &FigurePlan, measured: &Measured) -> Drawn {
    let iops = plan.kind == "iops";
    let done = |case: &Case| match iops {
        true => measured.device_iops(case, 4096.0),
        false => measured.device_throughput(case),
    };
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    for policy in &plan.policies {
        for writes in [false, true] {
            let case = |cores: u16| Case::new(&plan.kind, policy, cores, writes);
            let figure = |cores: u16| match iops {
                true => measured.iops(&case(cores)),
                false => measured.megabytes(&case(cores)),
            };
            lines.push(Line {
                label: format!("{} reported", way(writes)),
                values: plan.cores.iter().map(|n| figure(*n).map(|m| m.mean)).collect(),
                dashed: false,
            });
            for cores in &plan.cores {
                let [value, half] = shown(figure(*cores), 1);
                let device = shown(done(&case(*cores)), 1)[0].clone();
                let way = way(writes).to_owned();
                rows.push(vec![policy.clone(), way, cores.to_string(), value, half, device]);
            }
        }
    }
    if iops {
        // Two rows explain figure 5.7: the first batch of 1000 shows the rate of enqueueing, and
        // the drive alone shows what it can complete (S1-64, S1-66).
        for (name, case) in [("first batch", first_batch()), (ALONE, alone())] {
            let [value, half] = shown(measured.iops(&case), 1);
            let [device, _] = shown(done(&case), 1);
            let cores = if name == ALONE { "none".to_owned() } else { case.cores.to_string() };
            rows.push(vec![name.to_owned(), "write".to_owned(), cores, value, half, device]);
        }
    }
    let writes = |cores: &u16| {
        let case = Case::new(&plan.kind, &plan.policies[0], *cores, true);
        done(&case).map(|mean| mean.mean)
    };
    lines.push(Line {
        label: "write, completed by the device".to_owned(),
        values: plan.cores.iter().map(writes).collect(),
        dashed: true,
    });
    let unit = if iops { "requests per second" } else { "throughput (MB/s)" };
    let places = Places::values(&plan.cores);
    let svg = Lines { title: &plan.title, unit, across: "cores", places, lines }.draw();
    let [reported, done] = match iops {
        true => ["IOPS reported", "IOPS of the device, from the start"],
        false => ["reported, MB/s", "completed by the device, MB/s"],
    };
    (svg, heads(&["queues", "", "cores", reported, "± 95 %", done]), rows)
}
