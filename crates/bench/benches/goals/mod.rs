//! The performance goals relative to fio, and the measured values.

use ssdyno_figures::Interval;
use ssdyno_record::mean_interval;

use crate::{
    Compared, DEPTH, FIO_AGAIN, FIO_BATCH, FIO_DEFAULTS, Figures, LOOP, OURS, OURS_EFFICIENT,
    OURS_NO_FILES, OURS_SUMMARY, OURS_TUNED, RAW,
};

/// A goal: `what`, at most or at least `bound`; `None` where it could not be measured.
struct Goal {
    what: String,
    bound: f64,
    at_least: bool,
    /// One for each run: runs alternate, so those of the same number met the same neighbours.
    reached: Option<Vec<f64>>,
}

impl Goal {
    fn at_most(what: String, bound: f64, reached: Option<Vec<f64>>) -> Goal {
        Goal { what, bound, at_least: false, reached }
    }

    fn at_least(what: String, bound: f64, reached: Option<Vec<f64>>) -> Goal {
        Goal { what, bound, at_least: true, reached }
    }
}

/// Half of the distance from the lowest to the highest.
pub(crate) fn spread(values: &[f64]) -> f64 {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.is_empty() { f64::NAN } else { (high - low) / 2.0 }
}

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().saturating_sub(1) / 2, values.len() / 2);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (at(low) + at(high)) / 2.0
}

/// The verdict of the rounds on a goal: undecided if the interval of their mean has values on both sides of it.
fn verdict(goal: &Goal, reached: f64, interval: Option<Interval>) -> &'static str {
    if interval.is_some_and(|interval| interval.low <= goal.bound && goal.bound <= interval.high) {
        return "undecided";
    }
    let met = if goal.at_least { reached >= goal.bound } else { reached <= goal.bound };
    if met { "reached" } else { "NOT reached" }
}

fn shown(interval: Option<Interval>) -> String {
    interval
        .map_or_else(String::new, |interval| format!("{:.3} to {:.3}", interval.low, interval.high))
}

/// Prints what two runs of the same peer in the same round differ by: what no ratio on this machine can be
/// better known than.
fn print_noise(tables: &[Compared]) {
    println!(
        "\n{:75} {:>8} {:>17}",
        "Noise: fio beside itself (1 without any)", "median", "95 % interval"
    );
    type Pick = fn(&Figures) -> f64;
    let figures: [(&str, Pick); 3] =
        [("IOPS", |f| f.iops), ("p50", |f| f.p50_ns), ("CPU", Figures::cpu_ns)];
    for table in tables {
        for (name, pick) in figures {
            let Some(values) = ratios(table, (FIO_AGAIN, FIO_DEFAULTS), pick) else { continue };
            let what = format!("{}, depth {}: {name}", table.title, table.depth);
            let interval = shown(mean_interval(&values));
            println!("{what:75} {:>8.3} {interval:>17}", median(values));
        }
    }
}

/// Prints every goal beside what `tables` say: the median of the rounds decides, and the interval of
/// their mean shows how sure that is. Where it covers the goal nothing is decided.
pub(crate) fn print(tables: &[Compared]) {
    print_noise(tables);
    println!("\n{:66} {:>8} {:>8} {:>17}", "Goals", "goal", "median", "95 % interval");
    for goal in goals(tables) {
        let bound = format!("{} {}", if goal.at_least { ">=" } else { "<=" }, goal.bound);
        let values = goal.reached.clone().unwrap_or_default();
        if values.is_empty() {
            println!("{:66} {bound:>8} {:>8} {:>17}  not measured", goal.what, "-", "");
            continue;
        }
        let interval = mean_interval(&values);
        let reached = median(values);
        let verdict = verdict(&goal, reached, interval);
        let interval = shown(interval);
        println!("{:66} {bound:>8} {reached:>8.3} {interval:>17}  {verdict}", goal.what);
    }
}

fn goals(tables: &[Compared]) -> Vec<Goal> {
    let mut goals = overhead(tables);
    let loops = |depth: u32| tables.iter().find(move |t| t.title == LOOP && t.depth == depth);
    let deep = loops(DEPTH);
    let cost = |method: &str, bound: f64, peer: &'static str, ours: &'static str| {
        let reached = deep.and_then(|table| ratios(table, (ours, peer), Figures::cpu_ns));
        Goal::at_most(format!("{LOOP}, depth 32, {method}: CPU by {peer}"), bound, reached)
    };
    goals.push(cost("efficient", 0.5, FIO_DEFAULTS, OURS_EFFICIENT));
    goals.push(cost("efficient", 0.95, FIO_BATCH, OURS_EFFICIENT));
    goals.push(cost("efficient", 1.05, RAW, OURS_EFFICIENT));
    goals.push(cost("default", 0.75, FIO_DEFAULTS, OURS));
    for (what, bound, pick) in [
        ("system calls", 0.035, (|ours| ours.calls) as fn(&Figures) -> Option<f64>),
        ("context switches", 0.04, |ours| Some(ours.switches)),
    ] {
        let what = format!("{LOOP}, depth 32, efficient: {what} by request");
        let reached = deep.and_then(|table| each(table, OURS_EFFICIENT, pick));
        goals.push(Goal::at_most(what, bound, reached));
    }
    for table in tables.iter().filter(|table| table.title == LOOP) {
        let what =
            |figure| format!("{LOOP}, depth {}, default: {figure} by {FIO_DEFAULTS}", table.depth);
        let pair = (OURS, FIO_DEFAULTS);
        goals.push(Goal::at_least(what("IOPS"), 0.97, ratios(table, pair, |f| f.iops)));
        goals.push(Goal::at_most(what("p50"), 1.0, ratios(table, pair, |f| f.p50_ns)));
    }
    for table in tables.iter().filter(|table| table.title != "null:") {
        // Threads have one method, and nothing to search for.
        let ours = if runs(table, OURS_TUNED).is_some() { OURS_TUNED } else { OURS };
        let best = fastest(table, None).unwrap_or("the best of fio");
        let what = format!("{}, depth {}, {ours}: IOPS by {best}", table.title, table.depth);
        goals.push(Goal::at_least(what, 1.0, by_the_fastest(table, ours)));
    }
    goals
}

/// The cost of a request on a target that costs nothing.
fn overhead(tables: &[Compared]) -> Vec<Goal> {
    let null = tables.iter().find(|table| table.title == "null:");
    let user = |name| null.and_then(|table| each(table, name, |ours| Some(ours.user_ns)));
    let goal = |what: &str, bound, name| {
        Goal::at_most(format!("null:, {what}: user CPU ns by request"), bound, user(name))
    };
    let told = |ours: &Figures| Some(ours.overhead_ns? / ours.cpu_ns());
    let told = || null.and_then(|table| each(table, OURS_NO_FILES, told));
    let what = |end| format!("tool overhead as told, by what null: costs without files, {end}");
    vec![
        goal("everything recorded and written to Parquet", 45.0, OURS),
        goal("keep summary", 30.0, OURS_SUMMARY),
        Goal::at_least(what("at least"), 0.8, told()),
        Goal::at_most(what("at most"), 1.2, told()),
    ]
}

/// Our IOPS by those of fio's best setting, round by round. Which one is best the other rounds tell: the
/// best of several in the same rounds is too fast, by what chance gave it.
fn by_the_fastest(table: &Compared, ours: &str) -> Option<Vec<f64>> {
    let ours = runs(table, ours)?;
    let ratio = |round: usize| {
        let theirs = runs(table, fastest(table, Some(round))?)?.get(round)?;
        Some(ours[round].iops / theirs.iops)
    };
    (0..ours.len()).map(ratio).collect()
}

/// The peer with the highest median of IOPS in all rounds but `left_out`.
fn fastest(table: &Compared, left_out: Option<usize>) -> Option<&'static str> {
    let iops = |runs: &[Figures]| {
        let others = runs.iter().enumerate().filter(|(round, _)| Some(*round) != left_out);
        crate::median(&others.map(|(_, run)| *run).collect::<Vec<_>>()).iops
    };
    let is_setting = |name: &str| name.starts_with("fio") && name != FIO_AGAIN;
    let theirs = table.peers.iter().filter(|(name, _)| is_setting(name));
    let known = theirs.filter(|(_, runs)| !runs.is_empty());
    known.max_by(|(_, a), (_, b)| iops(a).total_cmp(&iops(b))).map(|(name, _)| *name)
}

fn runs<'a>(table: &'a Compared, peer: &str) -> Option<&'a [Figures]> {
    table.peers.iter().find(|(name, _)| *name == peer).map(|(_, runs)| &runs[..])
}

/// A figure of `peer`, for each run.
fn each(table: &Compared, peer: &str, pick: impl Fn(&Figures) -> Option<f64>) -> Option<Vec<f64>> {
    runs(table, peer)?.iter().map(pick).collect()
}

/// A figure of one peer divided by that of another, round by round: neighbours and drift affect
/// both.
fn ratios(
    table: &Compared,
    (ours, theirs): (&str, &str),
    pick: impl Fn(&Figures) -> f64,
) -> Option<Vec<f64>> {
    let (ours, theirs) = (runs(table, ours)?, runs(table, theirs)?);
    Some(ours.iter().zip(theirs).map(|(ours, theirs)| pick(ours) / pick(theirs)).collect())
}
