//! Percentiles that rest on too few requests.

use ssdyno_block::counted;
use ssdyno_figures::{MORE_REQUESTS, RunResult, Warning, WarningKind, requests_needed};

use crate::quantiles::SHARES;

const NAMES: [&str; 4] = ["p50", "p95", "p99", "p99.9"];

/// The warning that the run has too few requests for some of its percentiles: of all operations or, if those suffice,
/// of single ones.
pub(crate) fn warnings(result: &RunResult) -> Vec<Warning> {
    // Requests that never completed are in the latencies, too.
    let all = result.requests + result.unanswered;
    if result.latency_ns.is_none() {
        return Vec::new();
    }
    let n = &result.requests_by_op;
    let ops = [("reads", n.read), ("writes", n.write), ("trims", n.trim), ("flushes", n.flush)];
    let used = ops.into_iter().filter(|(_, count)| *count > 0);
    let whole = warning("requests", all, u64::MAX);
    match whole {
        Some(_) => whole.into_iter().collect(),
        // An operation that is nearly all of the load has no line of its own to warn of.
        None => used.filter_map(|(name, count)| warning(name, count, all)).collect(),
    }
}

/// The number of requests that a closed loop needs per outstanding request: below this the queue fills and empties for
/// more than half of the run.
const ROUNDS: u64 = 4;

/// Warns if a closed loop with `depth` requests outstanding has so few of them that the queue mostly fills and empties. In the
/// batches such a run looks like an overload: all its latencies rise, because the first requests found no queue.
pub(crate) fn filling(requests: u64, depth: u64) -> Option<Warning> {
    let needed = depth.saturating_mul(ROUNDS);
    (0 < requests && requests < needed).then(|| {
        let message = format!(
            "not steady: {} too few for {depth} outstanding: the queue fills and empties for most of the run",
            counted(requests, "request is", "requests are")
        );
        Warning::new(WarningKind::NotSteady, message)
            .with_help(format!("{MORE_REQUESTS} {needed} requests or lower the depth"))
    })
}

fn warning(of: &str, count: u64, all: u64) -> Option<Warning> {
    let missing: Vec<(&str, u64)> = NAMES
        .into_iter()
        .zip(SHARES.map(requests_needed))
        .filter(|(_, needed)| count < *needed && all >= *needed)
        .collect();
    let (last, first) = missing.split_last()?;
    let names = match first {
        [] => last.0.to_owned(),
        _ => {
            let first: Vec<&str> = first.iter().map(|(name, _)| *name).collect();
            format!("{} and {}", first.join(", "), last.0)
        }
    };
    let needs: Vec<String> =
        missing.iter().map(|(name, needed)| format!("{name} needs {needed}")).collect();
    let message = format!(
        "too few {of} ({count}) for {names}: fewer than ten requests are slower than {}; {}",
        if first.is_empty() { "it" } else { "each" },
        needs.join(", ")
    );
    // Operations keep their shares in a run that is longer.
    // The last percentile needs the most requests, so its number serves the others too.
    // `u64::MAX` stands for the whole, which has no share.
    let in_all = last.1 as f64 * if all == u64::MAX { 1.0 } else { all as f64 / count as f64 };
    let help = format!("{MORE_REQUESTS} {:.0} requests", in_all.ceil());
    Some(Warning::new(WarningKind::FewRequests, message).with_help(help))
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::{ByOp, LatencyByOp};

    use super::*;

    fn told(read: u64, write: u64) -> Vec<String> {
        let result = RunResult {
            requests: read + write,
            requests_by_op: ByOp { read, write, ..ByOp::default() },
            latency_ns: Some(LatencyByOp::default()),
            ..RunResult::default()
        };
        warnings(&result).into_iter().map(|one| one.message).collect()
    }

    #[test]
    fn a_closed_loop_needs_more_requests_than_its_depth() {
        assert_eq!(filling(0, 32), None);
        assert_eq!(filling(128, 32), None);
        assert_eq!(filling(u64::MAX, u64::MAX), None);
        assert!(filling(1, 32).unwrap().message.contains("1 request is too few for 32"));
        let told = filling(127, 32).unwrap();
        assert_eq!(told.kind, WarningKind::NotSteady);
        assert_eq!(
            told.help.as_deref(),
            Some("give the run at least 128 requests or lower the depth")
        );
    }

    #[test]
    fn each_percentile_says_how_many_requests_it_needs() {
        assert_eq!(
            told(999, 0),
            [
                "too few requests (999) for p99 and p99.9: fewer than ten requests are slower than each; p99 needs 1000, \
              p99.9 needs 10000"
            ]
        );
        assert!(told(1_000, 0)[0].contains("for p99.9:"), "{:?}", told(1_000, 0));
        assert!(told(19, 0)[0].contains("for p50, p95, p99 and p99.9:"));
        assert!(told(10_000, 0).is_empty());
    }

    /// A mixed load with writes enough as a whole, and reads too few for a tail.
    #[test]
    fn a_rare_operation_is_told_by_its_name() {
        let told = told(700, 40_000);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("too few reads (700) for p99 and p99.9"), "{told:?}");
        // 10000 by 700 times 40700.
        let help = warning("reads", 700, 40_700).unwrap().help.unwrap();
        assert_eq!(help, "give the run at least 581429 requests");
    }

    #[test]
    fn a_run_without_latencies_has_none_to_warn_of() {
        assert!(warnings(&RunResult { requests: 5, ..RunResult::default() }).is_empty());
    }
}
