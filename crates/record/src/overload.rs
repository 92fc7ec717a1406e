//! Whether requests arrive faster than the target completes them.

use ssdyno_figures::{Warning, WarningKind, rate, significant};

use crate::batches::Batches;
use crate::statistics::mean;

/// Parts of the run whose backlogs are compared; the second half of them must rise.
const PARTS: usize = 8;
/// The relative amount by which arrivals must exceed completions.
const LEAST: f64 = 1.01;
/// The growth of the backlog, in standard deviations of a Poisson process, that counts: a queue near its limit wanders.
const DEVIATIONS: f64 = 4.0;
/// The backlog at the end by its smallest: a queue that only wanders about its level grows less.
const GROWTH: f64 = 1.5;

/// The ratio of the backlog of the last part to that of the first, at the limit.
const AT_LIMIT: f64 = 2.0;

/// An open loop that the target does not keep up with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Overload {
    /// Requests that arrive per second; `None` where they are too near to the completions to tell.
    arriving: Option<f64>,
    /// Requests that complete per second.
    completing: f64,
    /// Requests in the system in the last part of the run.
    backlog: f64,
}

impl Overload {
    /// Of the second half of a run, when buffers are full. A batch that completed at `e` after the mean latency `l` arrived
    /// about `e - l`; in an overload the arrivals of a number of batches lie closer together than their completions. A
    /// closed loop never looks so: its backlog is its depth, and does not grow.
    pub(crate) fn find(batches: &Batches) -> Option<Overload> {
        let (ends, latencies) = (batches.ends_seconds(), batches.means_ns());
        Overload::of(&ends, &latencies, &batches.counts())
    }

    fn of(ends: &[f64], latencies_ns: &[f64], counts: &[f64]) -> Option<Overload> {
        let n = ends.len();
        // The time of a part lies between its first and its last end, so a part of one batch has
        // none. Four batches leave three stretches to divide by.
        if n < 4 * PARTS {
            return None;
        }
        // Requests in the system, by Little's law, on the mean of each part.
        let backlog = |part: usize| {
            let (from, to) = (part * n / PARTS, ((part + 1) * n / PARTS).min(n) - 1);
            let seconds = ends[to] - ends[from];
            let completed: f64 = counts[from + 1..=to].iter().sum();
            (seconds > 0.0).then(|| mean(&latencies_ns[from..=to]) / 1e9 * completed / seconds)
        };
        let backlogs: Vec<f64> = (0..PARTS).map(backlog).collect::<Option<_>>()?;
        // Only the second half must rise. A buffer that takes the first requests at once keeps
        // the backlog low until it is full.
        let rises = backlogs[PARTS / 2..].windows(2).all(|pair| pair[0] < pair[1]);
        let least = backlogs.iter().copied().fold(f64::INFINITY, f64::min);
        let last = backlogs[PARTS - 1];
        // Half a part at each end: the mean latency of a single batch is noise.
        let (from, to) = (n / 2, n - 1);
        let width = (n / (2 * PARTS)).max(1);
        let [first_ns, last_ns] =
            [&latencies_ns[from..from + width], &latencies_ns[n - width..]].map(mean);
        let completing_seconds = ends[to - width / 2] - ends[from + width / 2];
        // Requests arrive earlier than they complete by their latency. If the latency grows, the
        // arrivals took less time than the completions by that growth.
        let arriving_seconds = completing_seconds - (last_ns - first_ns) / 1e9;
        let requests: f64 = counts[from + width / 2 + 1..=to - width / 2].iter().sum();
        let grown = last - backlogs[PARTS / 2];
        let found = rises
            && last > GROWTH * least
            && arriving_seconds > 0.0
            && completing_seconds > LEAST * arriving_seconds
            && grown > DEVIATIONS * requests.sqrt();
        let arriving = found.then(|| requests / arriving_seconds);
        // A queue at its limit (load 1) grows by the root of the requests; one with room stays far below that.
        let most = backlogs[..PARTS - 2].iter().copied().fold(0.0, f64::max);
        let at_limit = last.min(backlogs[PARTS - 2]) > most
            && last > AT_LIMIT * backlogs[0]
            && last > counts.iter().sum::<f64>().sqrt();
        let completing = requests / completing_seconds;
        (found || at_limit).then_some(Overload { arriving, completing, backlog: last })
    }

    /// The warning about a load with at most `limit` outstanding requests.
    pub(crate) fn warning(self, limit: Option<u64>) -> Warning {
        let Overload { arriving, completing, backlog } = self;
        let Some(arriving) = arriving else {
            let message = format!(
                "at the limit of the target ({} requests per second): the queue grew to {} \
                 requests and has no steady length, so latencies depend on the length of the run",
                rate(completing),
                significant(backlog, 2)
            );
            return Warning::new(WarningKind::Overloaded, message)
                .with_help(format!("lower the arrival rate{}", or_raise(limit)));
        };
        let factor = arriving / completing;
        let message = format!(
            "overloaded {}x: {} requests arrive per second, the target completes {}; the queue grows during the whole run, so latencies depend on the length of the run",
            significant(factor, if factor < 1.1 { 3 } else { 2 }),
            rate(arriving),
            rate(completing)
        );
        Warning::new(WarningKind::Overloaded, message).with_help(format!(
            "lower the arrival rate below {} requests per second{}",
            rate(completing),
            or_raise(limit)
        ))
    }
}

/// With few requests outstanding it may be the limit that does not keep up, and not the target.
fn or_raise(limit: Option<u64>) -> String {
    limit.map_or_else(String::new, |limit| {
        format!(", or raise the depth: at most {limit} requests are outstanding")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;

    /// A queue with one server (Lindley's recursion) that serves 1 request per second and is offered `load`; `busy`
    /// arrivals at the start are served ten times as fast (a buffer).
    fn queue(load: f64, requests: usize, busy: usize, seed: u64) -> Option<Overload> {
        let mut draw = Draw(seed);
        let (mut arrival, mut free) = (0.0, 0.0f64);
        let (mut ends, mut latencies) = (Vec::new(), Vec::new());
        let mut sum = 0.0;
        for at in 0..requests {
            arrival += draw.exponential() / load;
            free = free.max(arrival) + draw.exponential() * if at < busy { 0.1 } else { 1.0 };
            sum += free - arrival;
            if at % 20 == 19 {
                ends.push(free);
                latencies.push(sum / 20.0 * 1e9);
                sum = 0.0;
            }
        }
        Overload::of(&ends, &latencies, &vec![20.0; ends.len()])
    }

    fn factor(found: Option<Overload>) -> f64 {
        found.map_or(0.0, |found| found.arriving.unwrap_or(0.0) / found.completing)
    }

    #[test]
    fn an_overload_is_found_with_its_factor() {
        for load in [1.1, 1.7, 5.0] {
            for seed in 0..50 {
                let found = factor(queue(load, 20_000, 0, seed));
                assert!((found / load - 1.0).abs() < 0.08, "{load}, seed {seed}: {found}");
                let found = factor(queue(load, 20_000, 5_000, seed));
                assert!((found / load - 1.0).abs() < 0.08, "{load}, buffer, seed {seed}: {found}");
            }
        }
    }

    /// Of 4000 runs below the limit, none is reported as overloaded; near it (0.97), fewer than one in a hundred.
    #[test]
    fn a_queue_that_keeps_up_is_not_overloaded() {
        for (load, most) in [(0.3, 0), (0.8, 0), (0.9, 0), (0.97, 10)] {
            let found = |seed| queue(load, 4_000, 0, seed);
            let told = (0..1_000).filter(|seed| factor(found(*seed)) > 0.0).count();
            assert!(told <= most, "{load}: {told}");
            let at_limit = (0..1_000).filter(|seed| found(*seed).is_some()).count();
            assert!(load > 0.9 || at_limit <= 10, "{load}: {at_limit} at the limit");
        }
    }

    /// So near that a longer run may or may not grow; never without a warning where the queue is long.
    #[test]
    fn a_queue_at_its_limit_is_told() {
        let told = (0..100).filter(|seed| queue(1.03, 20_000, 0, *seed).is_some()).count();
        assert!(told >= 80, "{told}");
    }

    /// The latency of a closed loop may grow as it will: its depth is the backlog.
    #[test]
    fn a_closed_loop_is_never_overloaded() {
        let (depth, mut now) = (256.0, 0.0);
        let (mut ends, mut latencies) = (Vec::new(), Vec::new());
        for at in 0..200 {
            let each = 1.0 + f64::from(at) / 50.0;
            now += 5.0 * each;
            ends.push(now);
            latencies.push(depth * each * 1e9);
        }
        assert_eq!(Overload::of(&ends, &latencies, &vec![5.0; ends.len()]), None);
    }
}
