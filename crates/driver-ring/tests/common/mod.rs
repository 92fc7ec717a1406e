//! The driver and the simulated card as one target, for a host that costs nothing.

#![allow(clippy::unwrap_used, reason = "support of tests: what fails here fails the test")]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use std::collections::VecDeque;

use ssdyno_block::{BlockTarget, Completion, MonotonicTime, Request, SubmitError, Time, Token};
use ssdyno_controller_ring::{RingCard, RingConfig};
use ssdyno_driver_ring::{RingDriver, RingDriverOptions, SimulatedRing, Submission};
use ssdyno_pci::{PciTiming, SimulatedPci};

pub const ZC706: &str = include_str!("../../../../presets/devices/zc706-ring.toml");

/// The preset with some words replaced.
pub fn card(changes: &[(&str, &str)]) -> RingConfig {
    let mut text = ZC706.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    RingConfig::parse(&text).unwrap()
}

pub type Driver = RingDriver<SimulatedPci<RingCard>>;

pub fn driver(config: &RingConfig, options: RingDriverOptions) -> Driver {
    let ns = Time::from_ns;
    let timing = PciTiming { posted_write: ns(300), read_round_trip: ns(800), interrupt: ns(2000) };
    let card = RingCard::new(config, 1).unwrap();
    RingDriver::new(SimulatedPci::new(card, timing), options).unwrap()
}

/// Driver and card as a target.
pub struct RingTarget {
    pub ring: SimulatedRing<RingCard>,
    done: Vec<Completion<MonotonicTime>>,
    /// The time of the driver's clock when the target's clock begins.
    origin: MonotonicTime,
    /// Sends what is left when nothing else will happen; else the target hangs.
    pub drains: bool,
}

impl RingTarget {
    pub fn new(driver: Driver) -> RingTarget {
        RingTarget::with_driver_clock(driver, MonotonicTime::ZERO)
    }

    pub fn with_driver_clock(driver: Driver, origin: MonotonicTime) -> RingTarget {
        let ring = SimulatedRing::new(driver).with_driver_clock(origin);
        RingTarget { ring, done: Vec::new(), origin, drains: true }
    }

    pub fn card(&mut self) -> &mut RingCard {
        self.ring.driver.function_mut().device_mut()
    }

    fn is_to_drain(&self) -> bool {
        self.drains && self.ring.driver.stalled()
    }

    fn next_step(&self) -> Option<Time> {
        if self.is_to_drain() { Some(self.ring.now()) } else { self.ring.next_event() }
    }

    pub fn submit_with(&mut self, now: Time, submission: Submission) -> Result<(), SubmitError> {
        self.ring.submit(now, submission)
    }
}

impl BlockTarget for RingTarget {
    fn capacity_bytes(&self) -> u64 {
        self.ring.driver.capacity_bytes()
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.submit_with(now, Submission { request, token, address: None, urgent: false })
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        while let Some(at) = self.next_step().filter(|at| *at <= now) {
            self.ring.run_to(at, &mut self.done);
            if self.is_to_drain() {
                let now = self.ring.driver_now();
                self.ring.driver.send_pending(now);
            }
        }
        let origin = self.origin;
        out.extend(self.done.drain(..).map(|done| Completion {
            token: done.token,
            status: done.status,
            accepted: done.accepted.since(origin),
            completed: done.completed.since(origin),
        }));
    }

    fn next_event(&self) -> Option<Time> {
        if self.done.is_empty() { self.next_step() } else { Some(self.ring.now()) }
    }
}

/// What a closed loop of synchronous threads measured, ramp-up left out; latencies with the think time.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    pub requests_per_second: f64,
    pub latency_s_mean: f64,
}

/// `threads` threads, each with one request at a time, and `think` between two of its requests.
pub fn closed_loop(
    target: &mut RingTarget,
    threads: u32,
    write: bool,
    requests: u64,
    think: Time,
) -> Loop {
    let mut submitted = vec![Time::ZERO; threads as usize];
    let pages = target.capacity_bytes() / 4096;
    let (mut done, mut sum, mut start, mut counted) = (0u64, 0.0, Time::ZERO, 0u64);
    let mut ready: VecDeque<(Time, u32)> =
        (0..threads).map(|thread| (Time::ZERO, thread)).collect();
    let mut page = 0;
    let mut batch = Vec::new();
    let mut now = Time::ZERO;
    while done < requests {
        // All think for as long, so they are ready in order.
        while let Some((at, thread)) = ready.front().copied().filter(|(at, _)| *at <= now) {
            ready.pop_front();
            page = (page + 7919) % pages;
            let op = if write { Request::write } else { Request::read };
            target.submit(now, op(page * 4096, 4096), Token(thread)).unwrap();
            submitted[thread as usize] = at;
        }
        let wake = ready.front().map(|(at, _)| *at);
        let Some(next) = target.next_event().into_iter().chain(wake).min() else { break };
        now = now.max(next);
        target.reap(now, &mut batch);
        for completion in batch.drain(..) {
            done += 1;
            let thread = completion.token.0;
            if done == requests / 4 {
                start = completion.completed;
            } else if done > requests / 4 {
                let latency = completion.completed - submitted[thread as usize] + think;
                sum += latency.as_s_f64();
                counted += 1;
            }
            ready.push_back((completion.completed + think, thread));
        }
    }
    let seconds = (now - start).as_s_f64();
    Loop {
        requests_per_second: counted as f64 / seconds,
        latency_s_mean: sum / counted.max(1) as f64,
    }
}
