//! Processes of requests whose true figures are known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssdyno_block::Op;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::load::draw;

/// Uniform in (0, 1).
pub(crate) fn uniform(state: &mut u64) -> f64 {
    ((draw(state) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

pub(crate) fn exponential(state: &mut u64) -> f64 {
    -uniform(state).ln()
}

pub(crate) fn normal(state: &mut u64) -> f64 {
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
pub(crate) const FASTER: f64 = 10.0;
pub(crate) const FAST_SHARE: f64 = 0.05;
pub(crate) const OUTSIDE_NS: f64 = 5_000.0;

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

pub(crate) const SERVICE_NS: f64 = 10_000.0;

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
        // Lindley: a later request waits for the remaining work of earlier requests.
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

pub(crate) const CENTRE_NS: f64 = 100_000.0;
pub(crate) const SPREAD_NS: f64 = 10_000.0;

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

/// `DEPTH` requests at a time, `REQUESTS` in all, each with an exponential latency of its own. When no more requests
/// arrive, the remaining requests end ever more slowly: their time differs from seed to seed by as much as all the rest
/// of a short run.
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
