//! What is to be reached beside fio, and what was.

use ssdyno_result::Interval;

use crate::{Compared, FIO_BATCH, FIO_DEFAULTS, Figures, LOOP, OURS_BATCH, OURS_UNWRITTEN, RAW};

/// A goal: `what`, at most or at least `bound`; `None` where it could not be measured.
struct Goal {
    what: String,
    bound: f64,
    at_least: bool,
    /// One for each run: runs alternate, so those of the same number met the same neighbours.
    reached: Option<Vec<f64>>,
}

/// Half of the distance from the lowest to the highest.
pub(crate) fn spread(values: &[f64]) -> f64 {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.is_empty() { f64::NAN } else { (high - low) / 2.0 }
}

/// Prints every goal beside what `tables` say, with a verdict: whether the interval of the mean over the
/// rounds lies on one side of the goal.
pub(crate) fn print(tables: &[Compared]) {
    println!("\n{:64} {:>8} {:>8} {:>17}", "Goals", "goal", "reached", "95 % interval");
    for goal in goals(tables) {
        let bound = format!("{} {}", if goal.at_least { ">=" } else { "<=" }, goal.bound);
        let values = goal.reached.unwrap_or_default();
        let Some(Interval { estimate, low, high, .. }) = Interval::of_mean(&values) else {
            println!("{:64} {bound:>8} {:>8}", goal.what, "-");
            continue;
        };
        let verdict = match goal.at_least {
            true if low >= goal.bound => "met",
            true if high < goal.bound => "NOT MET",
            false if high <= goal.bound => "met",
            false if low > goal.bound => "NOT MET",
            _ => "cannot tell",
        };
        println!(
            "{:64} {bound:>8} {estimate:>8.3} {:>17}  {verdict}",
            goal.what,
            format!("{low:.3} to {high:.3}"),
        );
    }
}

fn goals(tables: &[Compared]) -> Vec<Goal> {
    let find = |title: &str| tables.iter().find(|table| table.title == title);
    let mut goals = vec![Goal {
        what: "null:, batch 32, user CPU ns by request, everything recorded".to_owned(),
        bound: 30.0,
        at_least: false,
        reached: find("null:")
            .and_then(|table| each(table, OURS_UNWRITTEN, |ours| Some(ours.user_ns))),
    }];
    let cost = |what: &str, bound: f64, peer: &str| Goal {
        what: format!("{LOOP}, batch 32, CPU by {what}"),
        bound,
        at_least: false,
        reached: find(LOOP).and_then(|table| ratios(table, (OURS_BATCH, peer), Figures::cpu_ns)),
    };
    goals.push(cost(FIO_DEFAULTS, 0.5, FIO_DEFAULTS));
    goals.push(cost(FIO_BATCH, 0.95, FIO_BATCH));
    goals.push(cost(RAW, 1.05, RAW));
    goals.push(Goal {
        what: format!("{LOOP}, batch 32, system calls by request"),
        bound: 0.035,
        at_least: false,
        reached: find(LOOP).and_then(|table| each(table, OURS_BATCH, |ours| ours.calls)),
    });
    goals.push(Goal {
        what: format!("{LOOP}, batch 32, context switches by request"),
        bound: 0.04,
        at_least: false,
        reached: find(LOOP).and_then(|table| each(table, OURS_BATCH, |ours| Some(ours.switches))),
    });
    for table in tables.iter().filter(|table| table.title != "null:") {
        let best = fastest(table, None);
        goals.push(Goal {
            what: format!("{}, IOPS by {}", table.title, best.unwrap_or("the best of fio")),
            bound: 1.0,
            at_least: true,
            reached: by_the_fastest(table),
        });
    }
    goals
}

/// Our IOPS by those of fio's best setting, round by round. Which one is best the other rounds tell: the
/// best of several in the same rounds is too fast, by what chance gave it.
fn by_the_fastest(table: &Compared) -> Option<Vec<f64>> {
    let ours = runs(table, "ours")?;
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
    let theirs = table.peers.iter().filter(|(name, _)| name.starts_with("fio"));
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

/// A figure of one peer by that of another, round by round: neighbours and drift meet both.
fn ratios(
    table: &Compared,
    (ours, theirs): (&str, &str),
    pick: impl Fn(&Figures) -> f64,
) -> Option<Vec<f64>> {
    let (ours, theirs) = (runs(table, ours)?, runs(table, theirs)?);
    Some(ours.iter().zip(theirs).map(|(ours, theirs)| pick(ours) / pick(theirs)).collect())
}
