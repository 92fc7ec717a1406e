//! The parts of latencies, as lines and rows.

use std::fmt::Write;

use ssdyno_figures::{LatencyPartsByOp, MeanParts, OpLatencyParts, nanoseconds};

/// A part that occurs: its name, and its share (0 to 1) and time in the mean and in the slowest 1 %.
pub(crate) struct PartLine {
    pub(crate) name: &'static str,
    pub(crate) mean: (f64, f64),
    pub(crate) slowest: Option<(f64, f64)>,
}

fn share(time: f64, of: &MeanParts) -> (f64, f64) {
    (if of.total > 0.0 { time / of.total } else { 0.0 }, time)
}

/// The parts of one operation that occur.
pub(crate) fn of_op(op: &OpLatencyParts) -> Vec<PartLine> {
    let mut lines = Vec::new();
    let slowest = op.slowest_1_percent.map(|parts| parts.list());
    for (at, (_, name, time)) in op.mean.list().into_iter().enumerate() {
        let tail = slowest.map(|list| list[at].2);
        if time > 0.0 || tail.is_some_and(|time| time > 0.0) {
            let tail = tail.zip(op.slowest_1_percent.as_ref());
            let slowest = tail.map(|(time, parts)| share(time, parts));
            lines.push(PartLine { name, mean: share(time, &op.mean), slowest });
        }
    }
    lines
}

/// `71.2 %`: one digit behind the point, so that the parts sum to 100 as near as can be.
pub(crate) fn percent_of(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A part that takes no time is not there: no `0 ns`, which would look like a small one.
fn time_of(time: f64) -> String {
    if time > 0.0 { nanoseconds(time) } else { "-".to_owned() }
}

/// The table of the terminal: of each operation the parts of its mean latency, and of the slowest 1 %.
pub(crate) fn text(parts: &LatencyPartsByOp) -> String {
    let mut text =
        format!("\n{:<28}{:>11} {:>8}{:>14}\n", "Where the time goes", "mean", "", "slowest 1 %");
    for (name, op) in parts.iter() {
        let tail = op.slowest_1_percent.map_or("-".into(), |parts| nanoseconds(parts.total));
        let mean = nanoseconds(op.mean.total);
        let _ = writeln!(text, "{name:<28}{mean:>11} {:>8}{tail:>14}", "");
        for line in of_op(op) {
            let (mean, of_mean) = (time_of(line.mean.1), percent_of(line.mean.0));
            let _ = write!(text, "  {:<26}{mean:>11} {of_mean:>8}", line.name);
            if let Some((share, time)) = line.slowest {
                let _ = write!(text, "{:>14} {:>8}", time_of(time), percent_of(share));
            }
            text.push('\n');
        }
    }
    text
}

/// The same for the page: name, mean, its share, slowest 1 %, its share.
pub(crate) fn rows(op: &OpLatencyParts) -> Vec<Vec<String>> {
    let row = |line: PartLine| {
        let cell = |(share, time): (f64, f64)| [time_of(time), percent_of(share)];
        let slowest = line.slowest.map_or(["-".to_owned(), "-".to_owned()], cell);
        let name = line.name.to_owned();
        std::iter::once(name).chain(cell(line.mean)).chain(slowest).collect()
    };
    let all = [
        "all".to_owned(),
        nanoseconds(op.mean.total),
        percent_of(1.0),
        op.slowest_1_percent.map_or("-".into(), |parts| nanoseconds(parts.total)),
        op.slowest_1_percent.map_or("-".into(), |_| percent_of(1.0)),
    ];
    of_op(op).into_iter().map(row).chain([all.to_vec()]).collect()
}
