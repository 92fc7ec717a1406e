//! Tests whether the bounds of far percentiles are right if few independent requests lie beyond
//! them. By simulation of processes whose truth is known.
//!
//! A statement is an interval, or a lower bound where the upper one is not known. Of 100 seeds at
//! 95 %, 95 +- 9 (4 standard deviations) would be right if statements were exact.

use ssdyno_block::{Completion, Request, Status, Time, Token};
use ssdyno_figures::{Interval, Keep, Metric, RunResult};
use ssdyno_record::{Precise, Recorder};

use crate::coverage::covers;
use crate::processes::{Ar1, Process, exponential, uniform};

const SEEDS: u64 = 100;

/// Records latencies in ns, one after the other.
struct Run {
    recorder: Recorder,
    now: Time,
}

impl Run {
    fn new() -> Run {
        Run { recorder: Recorder::new(Keep::Summary, None), now: Time::ZERO }
    }

    fn add(&mut self, latency_ns: f64) {
        let start = self.now;
        self.now = start + Time::from_ps((latency_ns * 1e3) as u64);
        let (token, status) = (Token(0), Status::Ok);
        let completion = Completion { token, status, accepted: start, completed: self.now };
        self.recorder.record(&Request::read(0, 512), start, &completion);
    }

    /// Around p95, p99, p99.9.
    fn intervals(self) -> [Option<Interval>; 3] {
        let mut result = RunResult::default();
        self.recorder.finish(self.now).fill(&mut result);
        let l = result.confidence.unwrap().latency_ns.all;
        [l.p95, l.p99, l.p99_9]
    }
}

/// What was said of one percentile, of all seeds.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    two_sided: u64,
    two_sided_right: u64,
    one_sided: u64,
    one_sided_right: u64,
}

impl Said {
    fn add(&mut self, interval: Option<Interval>, truth: f64) {
        let Some(interval) = interval else { return };
        let right = u64::from(covers(&interval, truth));
        if interval.upper().is_some() {
            self.two_sided += 1;
            self.two_sided_right += right;
        } else {
            self.one_sided += 1;
            self.one_sided_right += right;
        }
    }

    fn right(&self) -> u64 {
        self.two_sided_right + self.one_sided_right
    }
}

/// The bounds of p95, p99 and p99.9 for given true values.
fn said(truth: [f64; 3], load: impl Fn(u64, &mut Run)) -> [Said; 3] {
    let mut said = [Said::default(); 3];
    for seed in 0..SEEDS {
        let mut run = Run::new();
        load(seed, &mut run);
        for ((said, interval), truth) in said.iter_mut().zip(run.intervals()).zip(truth) {
            said.add(interval, truth);
        }
    }
    said.iter().for_each(|said| eprintln!("{said:?}"));
    said
}

const SERVICE_NS: f64 = 10_000.0;

/// Sojourn times of M/D/1, steady from the start: random arrivals at `load`, each served for
/// [`SERVICE_NS`].
fn sojourns(load: f64, requests: u32) -> impl Fn(u64, &mut Run) {
    move |seed, run| {
        let mut state = seed;
        let mut wait = 0.0f64;
        let warm = (40.0 / (1.0 - load).powi(2)) as u32;
        for at in 0..warm + requests {
            if at >= warm {
                run.add((wait + 1.0) * SERVICE_NS);
            }
            wait = (wait + 1.0 - exponential(&mut state) / load).max(0.0);
        }
    }
}

/// Of its far tail, c exp(-r t) with r = load (exp r - 1) (Tijms, *A First Course in Stochastic
/// Models*, 2003, section 9.6: asymptotic expansion of the M/D/1 waiting time). From p95 on it is
/// the closed form to four digits.
fn queue_truth(load: f64) -> [f64; 3] {
    let (mut low, mut high) = (1e-9, 10.0);
    for _ in 0..100 {
        let r = f64::midpoint(low, high);
        (low, high) = if load * r.exp_m1() < r { (r, high) } else { (low, r) };
    }
    let c = (1.0 - load) / (load * low.exp() - 1.0);
    [0.05, 0.01, 0.001].map(|beyond: f64| SERVICE_NS * (1.0 + (c / beyond).ln() / low))
}

/// Without the rule 78, 54, 34 and none of a hundred intervals were right.
#[test]
fn queues_with_long_memory() {
    let queue = |load: f64, requests| said(queue_truth(load), sojourns(load, requests));
    let [_, p99, p99_9] = queue(0.8, 50_000);
    assert!(p99.right() >= 90 && p99.two_sided >= 95, "{p99:?}");
    assert!(p99_9.right() >= 93 && p99_9.two_sided <= 10, "{p99_9:?}");
    for (load, requests) in [(0.95, 20_000), (0.95, 100_000)] {
        let [_, p99, p99_9] = queue(load, requests);
        for said in [p99, p99_9] {
            assert!(said.right() >= 93 && said.two_sided <= 10, "{load}, {requests}: {said:?}");
        }
    }
}

/// Fifty requests beyond p99.9 in about eight clusters, of which no more than five are believed:
/// most keep their upper ends.
#[test]
fn latencies_correlated_over_twenty_requests_keep_most() {
    // 3.090 standard deviations above the mean.
    let [_, _, p99_9] = said([0.0, 0.0, 130_902.3], |seed, run| {
        let mut process = Ar1::<95>::new(seed);
        (0..50_000).for_each(|_| run.add(process.next().1));
    });
    assert!(p99_9.two_sided >= 50 && p99_9.right() >= 94, "{p99_9:?}");
}

/// Fifty, and eight, requests beyond p99.9 that have nothing to do with each other are enough.
#[test]
fn independent_latencies_keep_their_upper_ends() {
    let truth = [0.05, 0.01, 0.001].map(|beyond: f64| -SERVICE_NS * beyond.ln());
    for (requests, two_sided) in [(50_000, 100), (8_000, 92)] {
        let said = said(truth, |mut seed, run| {
            (0..requests).for_each(|_| run.add(SERVICE_NS * exponential(&mut seed)));
        });
        for said in said {
            assert!(said.two_sided >= two_sided && said.right() >= 90, "{requests}: {said:?}");
        }
    }
}

/// Fast requests, and every so many a stall that holds up `held` of them for 25 to 75 ms.
fn stalls(held: usize, requests: usize, every: usize) -> impl Fn(u64, &mut Run) {
    move |seed, run| {
        let mut state = seed;
        let first = (uniform(&mut state) * (every - held) as f64) as usize;
        let mut stall_ns = 0.0;
        for at in 0..requests {
            let since = at.checked_sub(first).map(|since| since % every);
            if since == Some(0) {
                stall_ns = 5e7 * (0.5 + uniform(&mut state));
            }
            let fast = 1e5 * (0.5 + uniform(&mut state));
            let stalled = since.is_some_and(|since| since < held);
            run.add(if stalled { fast + stall_ns } else { fast });
        }
    }
}

/// One stall each second of a closed loop at depth 1: p99.9 lies among fifty of them.
#[test]
fn many_stalls_have_an_upper_end() {
    // Of 0.2 % of the requests, which are stalls, half take longer than 50 ms and 0.1 ms.
    let truth = 5e7 + 1e5;
    let [_, _, p99_9] = said([0.0, 0.0, truth], stalls(1, 50_000, 500));
    assert!(p99_9.two_sided == SEEDS && p99_9.right() >= 90, "{p99_9:?}");
}

/// Stalls that hold up 32 requests each: two, or one, of them make up all beyond p99.9.
#[test]
fn few_stalls_have_none() {
    for (requests, every) in [(20_000, 20_000), (50_000, 2_000)] {
        let [_, _, p99_9] = said([0.0; 3], stalls(32, requests, every));
        assert!(p99_9.two_sided <= 5 && p99_9.one_sided >= 95, "{p99_9:?}");
    }
}

/// Two stalls of 2048 requests each, of nearly the same length: the sample gives p99.9 to 10 %, but
/// the length of the next stall is unknown.
#[test]
fn a_run_until_it_is_precise_does_not_stop_at_two_stalls() {
    let mut run = Run::new();
    let mut precise = Precise::new("p99.9=10%".parse().unwrap());
    let mut state = 1;
    for at in 1..=130_000u64 {
        let stalled = matches!(at / 2_048, 10 | 20);
        let base = if stalled { 5e7 } else { 1e5 };
        run.add(base * (1.0 + 0.02 * exponential(&mut state)));
        let look = at >= 70_000 && precise.due(at);
        assert!(!(look && precise.look(at, &run.recorder.evidence())), "stopped at {at}");
    }
    let evidence = run.recorder.evidence();
    assert_eq!(evidence.relative_half_width(Metric::P99_9), None);
    assert!(evidence.relative_half_width(Metric::P50).unwrap() < 0.1);
    let [_, _, p99_9] = run.intervals();
    let p99_9 = p99_9.unwrap();
    assert!(p99_9.upper().is_none() && p99_9.low > 0.9 * p99_9.estimate, "{p99_9:?}");
    let json = serde_json::to_value(p99_9).unwrap();
    assert!(json["high"].is_null(), "{json}");
    assert_eq!(serde_json::from_value::<Interval>(json).unwrap(), p99_9);
}

/// Requests that never complete make latencies lower bounds: no number of them is precise, and a rate still is.
#[test]
fn lower_bounds_are_never_precise() {
    let reached = |goal: &str, lost_every: u64| {
        let mut recorder = Recorder::new(Keep::Summary, None);
        let mut precise = Precise::new(goal.parse().unwrap());
        let mut now = Time::ZERO;
        for at in 1..100_000_u64 {
            let latency = Time::from_ns(100_000 + at % 17);
            let completed = now + latency;
            let status = if at % lost_every == 0 { Status::Abandoned } else { Status::Ok };
            let completion = Completion { token: Token(0), status, accepted: now, completed };
            recorder.record(&Request::read(0, 4096), now, &completion);
            now = completed;
            if precise.due(at) && precise.look(at, &recorder.evidence()) {
                return true;
            }
        }
        false
    };
    assert!(reached("p99=5%", u64::MAX) && reached("mean=5%", u64::MAX));
    assert!(!reached("p99=5%", 50) && !reached("mean=5%", 50));
    assert!(reached("iops=5%", 50));
}
