//! The parts of latencies, as lines and rows.

use std::fmt::Write;

use ssdyno_figures::{
    LatencyPartsByOp, MeanParts, OpLatencyParts, PartComparison, RunResult, nanoseconds,
};

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

/// The key of the sum of all parts.
const TOTAL: &str = "total";

/// The parts of the mean latencies of two runs: of each operation that both have the total, then the parts that occur, the
/// greatest difference first. Empty unless both runs say where their time goes.
pub(crate) fn compared_parts(first: &RunResult, second: &RunResult) -> Vec<PartComparison> {
    let (Some(first), Some(second)) = (&first.latency_parts_ns, &second.latency_parts_ns) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (op, one) in first.iter() {
        let Some((_, other)) = second.iter().find(|(name, _)| *name == op) else { continue };
        let row = |part: &str, first_ns, second_ns| PartComparison {
            op: op.to_owned(),
            part: part.to_owned(),
            first_ns,
            second_ns,
        };
        all.push(row(TOTAL, one.mean.total, other.mean.total));
        let pairs = one.mean.list().into_iter().zip(other.mean.list());
        let mut parts: Vec<PartComparison> =
            pairs.map(|((key, _, first), (.., second))| row(key, first, second)).collect();
        parts.retain(|part| part.first_ns > 0.0 || part.second_ns > 0.0);
        let difference = |part: &PartComparison| (part.second_ns - part.first_ns).abs();
        parts.sort_by(|a, b| difference(b).total_cmp(&difference(a)));
        all.append(&mut parts);
    }
    all
}

/// A row of a table: part, first, second, difference. The total has the name of its operation.
pub(crate) fn compared_row(part: &PartComparison) -> [String; 4] {
    let name = match part.part.as_str() {
        TOTAL => part.op.clone(),
        key => {
            let known = MeanParts::default().list();
            let name =
                known.iter().find(|(name, ..)| *name == key).map_or(key, |(_, name, _)| name);
            format!("  {name}")
        }
    };
    let difference = part.second_ns - part.first_ns;
    let sign = if difference < 0.0 { '-' } else { '+' };
    // Less than a nanosecond is rounding beside any part that somebody would act on.
    let difference = match difference.abs() {
        small if small < 0.5 => "-".to_owned(),
        difference => format!("{sign}{}", nanoseconds(difference)),
    };
    [name, time_of(part.first_ns), time_of(part.second_ns), difference]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_two_runs_stand_side_by_side_the_greatest_difference_first() {
        let run = |flash, cleaning, has_trims: bool| {
            let mean = MeanParts {
                total: 30e3 + flash + cleaning,
                link: 30e3,
                flash,
                cleaning,
                ..MeanParts::default()
            };
            let op = Some(OpLatencyParts { requests: 10, mean, slowest_1_percent: None });
            let trim = op.filter(|_| has_trims);
            let parts = LatencyPartsByOp { read: op, trim, ..LatencyPartsByOp::default() };
            RunResult { latency_parts_ns: Some(parts), ..RunResult::default() }
        };
        let rows: Vec<[String; 4]> = compared_parts(&run(50e3, 10e3, true), &run(55e3, 0.0, false))
            .iter()
            .map(compared_row)
            .collect();
        assert_eq!(rows[0], ["read", "90.00 µs", "85.00 µs", "-5.000 µs"]);
        assert_eq!(rows[1], ["  die: garbage collection", "10.00 µs", "-", "-10.00 µs"]);
        assert_eq!(rows[2], ["  die: own pages", "50.00 µs", "55.00 µs", "+5.000 µs"]);
        assert_eq!(rows[3], ["  link", "30.00 µs", "30.00 µs", "-"]);
        assert_eq!(rows.len(), 4);
        assert!(compared_parts(&run(1.0, 1.0, true), &RunResult::default()).is_empty());
    }
}
