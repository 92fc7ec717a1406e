//! Do intervals cover the truth as often as they say, where neighbouring requests are not
//! independent? By simulation of processes whose truth is known.
//!
//! Of 200 seeds at 95 %, 190 +- 12 (4 standard deviations) would cover if intervals were exact. The
//! borders are 180 and 200: no interval may be far too narrow; a few in a hundred too wide is the
//! price of not knowing the correlation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssdyno_block::{Completion, Op, Request, Status, Time, Token};
use ssdyno_result::{
    Interval, Keep, LatencyIntervals, Precise, Recorder, RunResult, Verdict, compare,
};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::sample::draw;

pub(crate) const SEEDS: u64 = 200;

/// Uniform in (0, 1).
pub(crate) fn uniform(state: &mut u64) -> f64 {
    ((draw(state) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

pub(crate) fn exponential(state: &mut u64) -> f64 {
    -uniform(state).ln()
}

fn normal(state: &mut u64) -> f64 {
    (2.0 * exponential(state)).sqrt() * (std::f64::consts::TAU * uniform(state)).cos()
}

/// Requests with their arrival and latency in ns, in the order of their completions.
pub(crate) trait Process {
    /// A process that is steady from the start.
    fn new(seed: u64) -> Self;
    fn next(&mut self) -> (f64, f64);
    /// Mean, p50, p95, p99 of the latency in ns, and requests per second.
    fn truth() -> [f64; 5];

    /// The operation of the next request; all processes are of reads but where they say so.
    fn op(&mut self) -> Op {
        Op::Read
    }

    /// How long the next request waits outside the device, in ns.
    fn outside_ns(&self) -> f64 {
        0.0
    }
}

/// A first-order autoregressive process that starts as an empty write buffer lets a device start:
/// the first twentieth of `REQUESTS` takes a tenth of the time. Half of the requests are writes,
/// by lot, and each waits 5 µs outside, so that every kind of mean has the same truth.
pub(crate) struct StartsFast<const CORRELATION_PERCENT: u32, const REQUESTS: u32> {
    steady: Ar1<CORRELATION_PERCENT>,
    done: u32,
    now_ns: f64,
}

/// What latencies are divided by at the start, and how many are.
const FASTER: f64 = 10.0;
const FAST_SHARE: f64 = 0.05;
const OUTSIDE_NS: f64 = 5_000.0;

impl<const C: u32, const REQUESTS: u32> Process for StartsFast<C, REQUESTS> {
    fn new(seed: u64) -> Self {
        StartsFast { steady: Ar1::new(seed), done: 0, now_ns: 0.0 }
    }

    fn next(&mut self) -> (f64, f64) {
        let (_, latency) = self.steady.next();
        let fast = f64::from(self.done) < FAST_SHARE * f64::from(REQUESTS);
        let latency = if fast { latency / FASTER } else { latency };
        let arrival = self.now_ns;
        (self.done, self.now_ns) = (self.done + 1, arrival + latency);
        (arrival, latency)
    }

    fn truth() -> [f64; 5] {
        // All fast ones are below the median.
        let quantile = |share: f64| {
            let normal = Normal::new(CENTRE_NS, SPREAD_NS).unwrap();
            normal.inverse_cdf((share - FAST_SHARE) / (1.0 - FAST_SHARE))
        };
        let mean = CENTRE_NS * (1.0 - FAST_SHARE + FAST_SHARE / FASTER);
        [mean, quantile(0.5), quantile(0.95), quantile(0.99), 1e9 / mean]
    }

    fn op(&mut self) -> Op {
        if uniform(&mut self.steady.state) < 0.5 { Op::Read } else { Op::Write }
    }

    fn outside_ns(&self) -> f64 {
        OUTSIDE_NS
    }
}

/// Arrivals at random, one server: the sojourn times of M/M/1 are exponential with mean
/// 1 / (mu - lambda) and correlated over many requests.
pub(crate) struct Mm1<const LOAD_PERCENT: u32> {
    state: u64,
    arrival_ns: f64,
    sojourn_ns: f64,
}

const SERVICE_NS: f64 = 10_000.0;

impl<const LOAD_PERCENT: u32> Mm1<LOAD_PERCENT> {
    const LOAD: f64 = LOAD_PERCENT as f64 / 100.0;
    const MEAN_NS: f64 = SERVICE_NS / (1.0 - Self::LOAD);
}

impl<const LOAD_PERCENT: u32> Process for Mm1<LOAD_PERCENT> {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        let sojourn_ns = Self::MEAN_NS * exponential(&mut state);
        Mm1 { state, arrival_ns: 0.0, sojourn_ns }
    }

    fn next(&mut self) -> (f64, f64) {
        // Lindley: who comes later waits for what is left of who came before.
        let gap = SERVICE_NS / Self::LOAD * exponential(&mut self.state);
        let wait = (self.sojourn_ns - gap).max(0.0);
        self.arrival_ns += gap;
        self.sojourn_ns = wait + SERVICE_NS * exponential(&mut self.state);
        (self.arrival_ns, self.sojourn_ns)
    }

    fn truth() -> [f64; 5] {
        let quantile = |share: f64| -Self::MEAN_NS * (1.0 - share).ln();
        [
            Self::MEAN_NS,
            quantile(0.5),
            quantile(0.95),
            quantile(0.99),
            1e9 * Self::LOAD / SERVICE_NS,
        ]
    }
}

/// Latencies around 100 µs that follow a first-order autoregressive process, one at a time.
pub(crate) struct Ar1<const CORRELATION_PERCENT: u32> {
    state: u64,
    now_ns: f64,
    deviation: f64,
}

const CENTRE_NS: f64 = 100_000.0;
const SPREAD_NS: f64 = 10_000.0;

impl<const CORRELATION_PERCENT: u32> Process for Ar1<CORRELATION_PERCENT> {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        let deviation = normal(&mut state);
        Ar1 { state, now_ns: 0.0, deviation }
    }

    fn next(&mut self) -> (f64, f64) {
        let correlation = f64::from(CORRELATION_PERCENT) / 100.0;
        let fresh = (1.0 - correlation * correlation).sqrt();
        self.deviation = correlation * self.deviation + fresh * normal(&mut self.state);
        let (arrival, latency) = (self.now_ns, CENTRE_NS + SPREAD_NS * self.deviation);
        self.now_ns += latency;
        (arrival, latency)
    }

    fn truth() -> [f64; 5] {
        let quantile = |normal: f64| CENTRE_NS + SPREAD_NS * normal;
        [CENTRE_NS, CENTRE_NS, quantile(1.644_854), quantile(2.326_348), 1e9 / CENTRE_NS]
    }
}

/// `DEPTH` requests at a time, `REQUESTS` in all, each with an exponential latency of its own. When no
/// more come those that are left end ever more slowly: how long that takes differs from seed to
/// seed by as much as all the rest of a short run.
pub(crate) struct ClosedLoop<const DEPTH: u32, const REQUESTS: u32> {
    state: u64,
    submitted: u32,
    /// When each outstanding request ends and when it began, in ps.
    outstanding: BinaryHeap<Reverse<(u64, u64)>>,
}

impl<const DEPTH: u32, const REQUESTS: u32> ClosedLoop<DEPTH, REQUESTS> {
    fn submit(&mut self, now_ps: u64) {
        let latency_ps = 1e3 * SERVICE_NS * exponential(&mut self.state);
        self.outstanding.push(Reverse((now_ps + latency_ps as u64, now_ps)));
        self.submitted += 1;
    }
}

impl<const DEPTH: u32, const REQUESTS: u32> Process for ClosedLoop<DEPTH, REQUESTS> {
    fn new(seed: u64) -> Self {
        let mut all = ClosedLoop { state: seed, submitted: 0, outstanding: BinaryHeap::new() };
        (0..DEPTH).for_each(|_| all.submit(0));
        all
    }

    fn next(&mut self) -> (f64, f64) {
        let Reverse((end, start)) = self.outstanding.pop().unwrap();
        if self.submitted < REQUESTS {
            self.submit(end);
        }
        (start as f64 / 1e3, (end - start) as f64 / 1e3)
    }

    fn truth() -> [f64; 5] {
        let quantile = |share: f64| -SERVICE_NS * (1.0 - share).ln();
        // While all are outstanding one ends every SERVICE_NS / DEPTH; then of k every 1 / k.
        let full = f64::from(REQUESTS - DEPTH) / f64::from(DEPTH);
        let drain: f64 = (1..=DEPTH).map(|k| 1.0 / f64::from(k)).sum();
        let seconds = (full + drain) * SERVICE_NS / 1e9;
        let rate = f64::from(REQUESTS) / seconds;
        [SERVICE_NS, quantile(0.5), quantile(0.95), quantile(0.99), rate]
    }
}

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
                // No interval is no false one; but there must be one where so much was recorded.
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

/// Means of all, of reads, of writes and in the device, and the rate: one estimator, the same
/// answers. What comes again with every seed - the start - is no reason for a wide interval: half
/// its width is that of the spread between seeds, which is the truth.
#[test]
fn a_start_that_is_always_the_same_does_not_widen_intervals() {
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
        for (at, (interval, truth)) in [
            (latency.all.mean.unwrap(), truth),
            (mean(&latency.read), truth),
            (mean(&latency.write), truth),
            (confidence.device_latency_ns.mean.unwrap(), truth - OUTSIDE_NS),
            (confidence.iops.unwrap(), rate),
        ]
        .into_iter()
        .enumerate()
        {
            covered[at] += u64::from(interval.low <= truth && truth <= interval.high);
            estimates[at].push(interval.estimate);
            halves[at] += (interval.high - interval.low) / 2.0 / SEEDS as f64;
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
    let until: ssdyno_result::Until = until.parse().unwrap();
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
        // What was seen on the way is what the result says, within the resolution of a bucket.
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
            // The start-up itself is steady, too; nobody can tell before it ends.
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

fn result_of<P: Process>(seed: u64, requests: u64, stretch: f64) -> RunResult {
    let (mut recorder, mut process) = (Recorder::new(Keep::All, None), P::new(seed));
    let mut end = Time::ZERO;
    for _ in 0..requests {
        let (arrival, latency) = process.next();
        let at = |ns: f64| Time::from_ps((stretch * ns * 1e3) as u64);
        end = at(arrival + latency);
        let (token, status) = (Token(0), Status::Ok);
        let completion = Completion { token, status, accepted: at(arrival), completed: end };
        recorder.record(&Request::read(0, 512), at(arrival), &completion);
    }
    let mut result = RunResult::default();
    recorder.finish(end).fill(&mut result);
    result
}

/// Of 200 pairs of runs of the same thing at most 20 may have any figure that is said to differ; of
/// 20 pairs where one takes 1.3 times as long all must be told apart.
#[test]
fn equal_runs_are_not_told_apart_and_unequal_ones_are() {
    fn false_verdicts<P: Process>(requests: u64) -> usize {
        let differs = |pair: &u64| {
            let one = result_of::<P>(2 * pair, requests, 1.0);
            let two = result_of::<P>(2 * pair + 1, requests, 1.0);
            let figures = compare(&one, &two).figures;
            figures.iter().any(|figure| figure.verdict != Verdict::CannotTell)
        };
        (0..200).filter(differs).count()
    }
    let wrong = [
        false_verdicts::<Ar1<0>>(5_000),
        false_verdicts::<Ar1<95>>(10_000),
        false_verdicts::<Mm1<80>>(20_000),
    ];
    assert!(wrong.iter().all(|n| *n <= 20), "{wrong:?} of 200");
    for seed in 0..20 {
        let one = result_of::<Ar1<95>>(seed, 10_000, 1.0);
        let two = result_of::<Ar1<95>>(seed + 1_000, 10_000, 1.3);
        assert_eq!(compare(&one, &two).verdict, Verdict::Worse, "seed {seed}");
    }
}
