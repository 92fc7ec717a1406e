//! Tests whether intervals cover the truth as often as they claim if neighbouring requests are not
//! independent. By simulation of processes whose truth is known.
//!
//! Of 200 seeds at 95 %, 190 +- 12 (4 standard deviations) would cover if intervals were exact. The
//! borders are 180 and 200: no interval may be far too narrow; a few in a hundred too wide is the
//! price of not knowing the correlation.

use ssdyno_block::{Completion, Request, Status, Time, Token};
use ssdyno_figures::{Interval, Keep, LatencyIntervals, RunResult};
use ssdyno_record::{Precise, Recorder};

use crate::processes::{Ar1, CENTRE_NS, ClosedLoop, Mm1, OUTSIDE_NS, Process, StartsFast};

pub(crate) const SEEDS: u64 = 200;

/// Records the next request of `process`.
pub(crate) fn record(recorder: &mut Recorder, process: &mut impl Process) -> Time {
    record_in(std::slice::from_mut(recorder), process)
}

/// Records the next request of `process` in each of `recorders`.
fn record_in(recorders: &mut [Recorder], process: &mut impl Process) -> Time {
    let (arrival, latency) = process.next();
    let at = |ns: f64| Time::from_ps((ns * 1e3) as u64);
    let completed = at(arrival + latency);
    let accepted = at(arrival + process.outside_ns());
    let completion = Completion { token: Token(0), status: Status::Ok, accepted, completed };
    let request = Request { op: process.op(), ..Request::read(0, 512) };
    for recorder in recorders {
        recorder.record(&request, at(arrival), &completion);
    }
    completed
}

/// The intervals of the figures in [`Process::truth`].
pub(crate) fn intervals(result: &RunResult) -> [Option<Interval>; 5] {
    let confidence = result.confidence.as_ref().unwrap();
    let [mean, p50, p95, p99, _] = confidence.latency_ns.all.list();
    [mean, p50, p95, p99, confidence.iops]
}

pub(crate) fn covers(interval: &Interval, truth: f64) -> bool {
    // A latency is whole nanoseconds, and within 0.4 % without rows.
    interval.low * (1.0 - 0.004) <= truth && truth <= interval.high * 1.004 + 1.0
}

/// How often the intervals of the figures in [`Process::truth`] cover it, for each of `keeps`: the
/// same requests go to a recorder of each.
fn coverage<P: Process>(requests: u64, keeps: &[Keep]) -> Vec<[u64; 5]> {
    let mut covered = vec![[0; 5]; keeps.len()];
    for seed in 0..SEEDS {
        let mut recorders: Vec<_> = keeps.iter().map(|keep| Recorder::new(*keep, None)).collect();
        let mut process = P::new(seed);
        let mut end = Time::ZERO;
        for _ in 0..requests {
            end = record_in(&mut recorders, &mut process);
        }
        for ((recorder, keep), covered) in recorders.into_iter().zip(keeps).zip(&mut covered) {
            let mut result = RunResult::default();
            recorder.finish(end).fill(&mut result);
            for ((n, interval), truth) in covered.iter_mut().zip(intervals(&result)).zip(P::truth())
            {
                let covers_it = match keep {
                    // Exact bounds get no more slack than rounding.
                    Keep::All => |i: &Interval, t: f64| i.low <= t && t <= i.high + 1.0,
                    _ => covers,
                };
                // A missing interval is not a wrong interval; but there must be an interval after
                // this many requests.
                let interval = interval.unwrap_or_else(|| panic!("no interval, seed {seed}"));
                *n += u64::from(covers_it(&interval, truth));
            }
        }
    }
    covered
}

fn check<P: Process>(requests: u64, keeps: &[Keep]) {
    let covered = coverage::<P>(requests, keeps);
    eprintln!("{covered:?} of {SEEDS}");
    assert!(covered.iter().flatten().all(|n| (180..=200).contains(n)), "{covered:?} of {SEEDS}");
}

const BOTH: &[Keep] = &[Keep::All, Keep::Summary];

#[test]
fn independent_latencies() {
    check::<Ar1<0>>(8_000, BOTH);
}

#[test]
fn latencies_correlated_over_twenty_requests() {
    check::<Ar1<95>>(20_000, BOTH);
}

/// The integrated correlation is 199 requests; 20 000 requests are worth 100 independent ones.
#[test]
fn latencies_correlated_over_two_hundred_requests() {
    check::<Ar1<99>>(20_000, &[Keep::All]);
}

#[test]
fn a_queue() {
    check::<Mm1<50>>(20_000, &[Keep::All]);
    check::<Mm1<80>>(40_000, BOTH);
}

/// The end of a closed loop is part of the figure and differs from seed to seed: an interval that
/// left it out would be too narrow (129 of 200 would cover the rate of the first).
#[test]
fn a_closed_loop_that_runs_empty() {
    check::<ClosedLoop<256, 5_000>>(5_000, &[Keep::All]);
    check::<ClosedLoop<32, 20_000>>(20_000, &[Keep::All]);
}

/// Means of all, of reads, of writes and in the device, and the rate: one estimator, the same answers. An interval
/// reaches from the figure of the whole run to that behind the start, and both truths are in it. A start that repeats
/// with every seed does not widen the spread: beyond the two truths, half its width is that of the spread between
/// seeds.
#[test]
fn a_start_that_is_always_the_same_does_not_widen_the_spread() {
    const REQUESTS: u32 = 20_000;
    type Started = StartsFast<90, REQUESTS>;
    let mut covered = [0; 5];
    let (mut estimates, mut halves) = ([const { Vec::new() }; 5], [0.0; 5]);
    for seed in 0..SEEDS {
        let (mut recorder, mut process) = (Recorder::new(Keep::Summary, None), Started::new(seed));
        let mut end = Time::ZERO;
        for _ in 0..REQUESTS {
            end = record(&mut recorder, &mut process);
        }
        let mut result = RunResult::default();
        recorder.finish(end).fill(&mut result);
        let confidence = result.confidence.unwrap();
        let latency = &confidence.latency_ns;
        let mean = |by_op: &Option<LatencyIntervals>| by_op.as_ref().unwrap().mean.unwrap();
        let [truth, .., rate] = Started::truth();
        let inside = confidence.device_latency_ns.mean.unwrap();
        for (at, (interval, truth, behind)) in [
            (latency.all.mean.unwrap(), truth, CENTRE_NS),
            (mean(&latency.read), truth, CENTRE_NS),
            (mean(&latency.write), truth, CENTRE_NS),
            (inside, truth - OUTSIDE_NS, CENTRE_NS - OUTSIDE_NS),
            (confidence.iops.unwrap(), rate, 1e9 / CENTRE_NS),
        ]
        .into_iter()
        .enumerate()
        {
            let (low, high) = (truth.min(behind), truth.max(behind));
            covered[at] += u64::from(interval.low <= low && high <= interval.high);
            estimates[at].push(interval.estimate);
            let beyond = interval.high - interval.low - (high - low);
            halves[at] += beyond / 2.0 / SEEDS as f64;
        }
    }
    let spread = |values: &Vec<f64>| {
        let mean = values.iter().sum::<f64>() / SEEDS as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        1.96 * (squares / (SEEDS as f64 - 1.0)).sqrt()
    };
    let widths = std::array::from_fn::<f64, 5, _>(|at| halves[at] / spread(&estimates[at]));
    eprintln!("{covered:?} of {SEEDS}; {widths:.2?} of the spread");
    assert!(covered.iter().all(|n| (180..=200).contains(n)), "{covered:?} of {SEEDS}");
    assert!(widths.iter().all(|w| (0.85..1.4).contains(w)), "{widths:?} of the spread");
    // Percentiles, too.
    check::<Started>(u64::from(REQUESTS), &[Keep::All]);
}

/// Of 100 seeds 95 +- 9 (4 standard deviations) would cover if stopping cost nothing.
const STOPPED_SEEDS: u64 = 100;

/// How long a run to a precision takes, and whether its interval still covers the truth although
/// it was looked at again and again.
fn coverage_until<P: Process>(until: &str, metric: usize) -> (u64, u64) {
    let until: ssdyno_figures::Until = until.parse().unwrap();
    let (mut covered, mut requests) = (0, 0);
    for seed in 0..STOPPED_SEEDS {
        let (mut recorder, mut process) = (Recorder::new(Keep::Summary, None), P::new(seed));
        let mut precise = Precise::new(until);
        let mut completed = 0;
        let end = loop {
            let end = record(&mut recorder, &mut process);
            completed += 1;
            if precise.due(completed) && precise.look(completed, &recorder.evidence()) {
                break end;
            }
            assert!(completed < 5_000_000, "seed {seed} never gets precise");
        };
        let mut result = RunResult::default();
        recorder.finish(end).fill(&mut result);
        let interval = intervals(&result)[metric].unwrap();
        covered += u64::from(covers(&interval, P::truth()[metric]));
        requests += completed;
        // The figures seen during the run equal those of the result, within the resolution of a
        // bucket.
        let half = interval.relative_half_width().unwrap();
        assert!(half <= until.relative_half_width * 1.1 + 0.004, "{half}");
        assert!(precise.precision().reached);
    }
    (covered, requests / STOPPED_SEEDS)
}

#[test]
fn stopping_when_precise_keeps_the_coverage() {
    for (covered, requests) in [
        coverage_until::<Mm1<50>>("mean=6%", 0),
        coverage_until::<Mm1<80>>("10%", 0),
        coverage_until::<Mm1<50>>("p95=8%", 2),
        coverage_until::<Ar1<95>>("iops=1%", 4),
    ] {
        assert!((88..=100).contains(&covered), "{covered} of 100, {requests} requests");
    }
}

/// A precise figure is one of the steady state: start-up must have lost its weight. Of 20 seeds all
/// stop within 5 % of it, where the mean at the first narrow interval would be up to 45 % off.
#[test]
fn stopping_when_precise_waits_for_start_up_to_lose_its_weight() {
    for seed in 0..20 {
        let (mut recorder, mut process) =
            (Recorder::new(Keep::Summary, None), StartsFast::<50, 40_000>::new(seed));
        let mut precise = Precise::new("3%".parse().unwrap());
        let mut completed = 0;
        loop {
            let end = record(&mut recorder, &mut process);
            completed += 1;
            // The start-up itself is steady, too; this cannot be known before it ends.
            let due = completed > 4_000 && precise.due(completed);
            if due && precise.look(completed, &recorder.evidence()) {
                let mut result = RunResult::default();
                recorder.finish(end).fill(&mut result);
                let mean = result.latency_ns.unwrap().all.mean;
                assert!((mean / CENTRE_NS - 1.0).abs() < 0.05, "seed {seed}: {mean}, {completed}");
                break;
            }
        }
    }
}
