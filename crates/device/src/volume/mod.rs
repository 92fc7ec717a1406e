//! A rented volume: any device behind limits of requests and bytes, with credits for bursts, as clouds rent out
//! block storage.
//!
//! A request waits until the tokens that it takes are there, in order of arrival; then it costs the fixed latency
//! and goes to the device. A limit lets through what its baseline allows forever, and more, up to the rate of the
//! burst, while its bucket pays for it: `bucket / (burst - baseline)` seconds from a full one. With two limits a
//! request waits for both. What goes more slowly than the limits takes the time of the device and the latency,
//! exactly; the tests hold the model to all of that.
//!
//! Trims and flushes take no tokens and wait for their turn only.
//!
//! Not modelled: limits of the machine that rents the volume, noise of those who share the hardware, first
//! accesses to what was restored from a snapshot.

mod bucket;
mod config;
pub mod presets;

use std::collections::{BTreeMap, VecDeque};

use ssdyno_block::{BlockTarget, Completion, ConfigError, Op, Request, SubmitError, Time, Token};
use ssdyno_energy::PowerModel;
use ssdyno_engine::PrepareError;
use ssdyno_engine::Rng;
use ssdyno_engine::events::EventLog;

use crate::array::{Renumber, UNITS_MOST};
use crate::{BurstCredits, Device, DeviceConfig, DeviceFacts, DeviceReport};
use bucket::{Bucket, Fine, fine, whole};
use config::DEVICE;
pub use config::{BandwidthLimit, IopsLimit, VolumeConfig, VolumeTable};

/// A request that has its tokens, or will have them.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: Request,
    token: Token,
    /// When it has its tokens.
    started: Time,
    /// When it reaches the device.
    ready: Time,
}

/// Where requests of one kind that follow one another are.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Where the last one ended.
    end: u64,
    /// Bytes since the first of them began.
    bytes: u64,
}

/// See the module.
pub struct Volume {
    device: Box<dyn Device>,
    config: VolumeConfig,
    iops: Option<Bucket>,
    bandwidth: Option<Bucket>,
    /// When the last request had its tokens: none overtakes it.
    turn: Fine,
    /// Of reads and of writes.
    runs: [Run; 2],
    /// In order of arrival, which is that of `ready`, too.
    waiting: VecDeque<Waiting>,
    /// Requests that have not completed.
    inside: u32,
    /// Of those in the device, when they had their tokens, by token.
    started: BTreeMap<u32, Time>,
    /// The latest time that the device knows.
    now: Time,
    log: EventLog,
    batch: Vec<Completion>,
}

impl Volume {
    /// The volume that the file describes, its device as it leaves the factory.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong, of the device as `volume.device.delay.read`.
    pub fn new(config: &VolumeConfig, seed: u64) -> Result<Volume, ConfigError> {
        config.check()?;
        let volume = &config.volume;
        let own_seed = Rng::new(seed, DEVICE).below(u64::MAX);
        let device = volume
            .device
            .checked(DEVICE, "the volume")?
            .build(own_seed)
            .map_err(|error| ConfigError { key: format!("{DEVICE}.{}", error.key), ..error })?;
        // The volume itself is a unit, too.
        if 1 + DeviceReport::of(device.as_ref()).units().len() > UNITS_MOST {
            let problem = format!("more than {UNITS_MOST} devices, including their members");
            return Err(ConfigError::new(DEVICE, problem, "use fewer members"));
        }
        let none = Run { end: u64::MAX, bytes: 0 };
        Ok(Volume {
            device,
            iops: volume.iops.as_ref().map(|limit| Bucket::new(limit.numbers(), volume.initial)),
            bandwidth: volume
                .bandwidth
                .as_ref()
                .map(|limit| Bucket::new(limit.numbers(), volume.initial)),
            config: config.clone(),
            turn: 0,
            runs: [none; 2],
            waiting: VecDeque::new(),
            inside: 0,
            started: BTreeMap::new(),
            now: Time::ZERO,
            log: EventLog::default(),
            batch: Vec::new(),
        })
    }

    /// As how many requests `request` counts.
    fn units(&mut self, request: &Request) -> u64 {
        let run = match request.op {
            Op::Read => &mut self.runs[0],
            Op::Write => &mut self.runs[1],
            Op::Trim | Op::Flush => return 0,
        };
        let bytes = u64::from(request.length_bytes);
        let follows = self.config.volume.merge && run.end == request.offset_bytes;
        let before = if follows { run.bytes } else { 0 };
        *run = Run { end: request.offset_bytes + bytes, bytes: before + bytes };
        let Some(unit) = self.config.volume.unit else { return 1 };
        run.bytes.div_ceil(unit.0) - before.div_ceil(unit.0)
    }

    /// When `request`, which comes at `now`, has its tokens: they are taken.
    fn admit(&mut self, now: Time, request: &Request) -> Time {
        let units = self.units(request);
        let bytes = match request.op {
            Op::Read | Op::Write => request.length_bytes,
            Op::Trim | Op::Flush => 0,
        };
        let asked = [(&mut self.iops, units as f64), (&mut self.bandwidth, f64::from(bytes))];
        let mut limits: Vec<_> = Vec::with_capacity(2);
        let mut at = self.turn.max(fine(now));
        for (bucket, tokens) in asked {
            if let Some(bucket) = bucket.as_mut().filter(|_| tokens > 0.0) {
                at = bucket.earliest(at);
                limits.push((bucket, tokens));
            }
        }
        for (bucket, tokens) in limits {
            bucket.take(at, tokens);
        }
        self.turn = at;
        whole(at)
    }

    /// Gives the device what has reached it, as far as it has room.
    fn feed(&mut self) {
        while let Some(first) = self.waiting.front().filter(|first| first.ready <= self.now) {
            match self.device.submit(self.now, first.request, first.token) {
                Ok(()) => self.started.insert(first.token.0, first.started),
                Err(SubmitError::Full) => return,
                Err(error) => unreachable!("the device refuses a checked request: {error}"),
            };
            self.waiting.pop_front();
        }
    }

    /// When the next request reaches the device. A request that is already there waits for a completion.
    fn arrival(&self) -> Option<Time> {
        self.waiting.front().map(|first| first.ready).filter(|ready| *ready > self.now)
    }
}

impl BlockTarget for Volume {
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        self.device.sector_bytes()
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        if self.inside == self.config.volume.depth {
            return Err(SubmitError::Full);
        }
        self.now = self.now.max(now);
        self.inside += 1;
        let started = self.admit(now, &request);
        let ready = started.saturating_add(self.config.volume.latency.0);
        self.waiting.push_back(Waiting { request, token, started, ready });
        self.feed();
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        let mut batch = std::mem::take(&mut self.batch);
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            // A request may have ended as it was submitted.
            self.now = self.now.max(at);
            self.device.reap(self.now, &mut batch);
            for done in batch.drain(..) {
                self.inside -= 1;
                let started = self.started.remove(&done.token.0);
                out.push(Completion { accepted: started.unwrap_or(done.accepted), ..done });
            }
            self.feed();
        }
        self.now = self.now.max(now);
        self.batch = batch;
    }

    fn next_event(&self) -> Option<Time> {
        [self.device.next_event(), self.arrival()].into_iter().flatten().min()
    }
}

impl Device for Volume {
    fn events(&mut self) -> &mut EventLog {
        let events = self.device.events();
        if !events.is_empty() {
            events.show_to(&mut Renumber { log: &mut self.log, first_unit: 1 });
            events.clear();
        }
        &mut self.log
    }

    fn report(&self, report: &mut DeviceReport) {
        let number = report.units().len();
        let facts = DeviceFacts::of(self, self.config.volume.depth);
        let unit = report.unit(VolumeConfig::NAME, facts, PowerModel::Parts(Vec::new()));
        for (bucket, of_bytes) in [(&self.iops, false), (&self.bandwidth, true)] {
            let left = bucket.as_ref().and_then(|bucket| bucket.left(fine(self.now)));
            unit.credits.extend(left.map(|(left, baseline)| BurstCredits {
                of_bytes,
                left,
                baseline,
            }));
        }
        report.member(number, 0, DEVICE, self.device.as_ref());
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        self.device.precondition(watcher)
    }

    fn begin_window(&mut self, at: Time) {
        self.device.begin_window(at);
    }

    fn volatile_cache(&self) -> bool {
        self.device.volatile_cache()
    }

    fn medium(&self) -> crate::Medium {
        self.device.medium()
    }

    fn is_gone(&self) -> bool {
        self.device.is_gone()
    }
}
