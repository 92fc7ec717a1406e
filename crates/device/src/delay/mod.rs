//! A device with a given delay: so many requests at a time, each for so long, then its data over
//! one path (S4-35).
//!
//! Throughput in a closed loop of depth N has a closed form: the least of N / (delay + transfer),
//! servers / delay and bandwidth / size; the tests hold the model to it.
//!
//! Trims and flushes take no time: it has nothing to trim and no cache to flush.

mod config;
pub mod presets;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssdyno_block::{
    BlockTarget, Completion, ConfigError, Op, Request, Status, SubmitError, Time, Token,
};
use ssdyno_energy::{Facts, PowerModel};
use ssdyno_engine::events::{Activity, EventLog, PartKind};
use ssdyno_engine::{EventQueue, FifoResource, Rng, SlotTable};

use crate::{Device, DeviceConfig, DeviceFacts, DeviceReport};
pub use config::{DelayConfig, DelayTable, Spread};

ssdyno_engine::event_kinds! {
    /// The possible events inside the device, by slot of the request.
    #[derive(Clone, Copy, Debug)]
    enum Event << 31 {
        /// Its server is done with it.
        Served(u32) = 0,
        /// Its data is across.
        Done(u32) = 1,
    }
}

/// A request inside.
#[derive(Clone, Copy, Debug)]
struct Slot {
    token: Token,
    /// When a server took it.
    accepted: Time,
    /// The data that has to cross the path.
    bytes: u32,
}

/// See the module.
#[derive(Debug)]
pub struct DelayDevice {
    config: DelayConfig,
    /// When each server is free.
    servers: BinaryHeap<Reverse<Time>>,
    path: FifoResource,
    ps_per_byte: f64,
    rng: Rng,
    queue: EventQueue<Event>,
    slots: SlotTable<Slot>,
    in_flight: u32,
    /// Since when there is something to do.
    busy_since: Time,
    /// Where the last read and the last write ended.
    ends: [u64; 2],
    events: EventLog,
}

impl DelayDevice {
    /// The device that the file describes.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn new(config: &DelayConfig, seed: u64) -> Result<DelayDevice, ConfigError> {
        config.check()?;
        let delay = &config.delay;
        Ok(DelayDevice {
            servers: (0..delay.servers).map(|_| Reverse(Time::ZERO)).collect(),
            path: FifoResource::default(),
            ps_per_byte: delay.bandwidth.map_or(0.0, |rate| 1e12 / rate.0),
            rng: Rng::new(seed, "delay"),
            queue: EventQueue::new(),
            slots: SlotTable::default(),
            in_flight: 0,
            busy_since: Time::ZERO,
            ends: [u64::MAX; 2],
            events: EventLog::default(),
            config: config.clone(),
        })
    }

    /// How long a server works on `request`.
    fn service(&mut self, request: &Request) -> Time {
        let delay = &self.config.delay;
        let (mean, last) = match request.op {
            Op::Read => (delay.read.0, &mut self.ends[0]),
            Op::Write => (delay.write.0, &mut self.ends[1]),
            Op::Trim | Op::Flush => return Time::ZERO,
        };
        let follows = *last == request.offset_bytes;
        *last = request.offset_bytes + u64::from(request.length_bytes);
        if delay.streams && follows {
            return Time::ZERO;
        }
        match delay.spread {
            Spread::Fixed => mean,
            Spread::Exponential => Time::from_s_f64(mean.as_s_f64() * self.rng.exponential()),
        }
    }

    /// When `bytes` that are ready at `ready` are across.
    fn transfer(&mut self, bytes: u32, ready: Time) -> Time {
        let length = Time::from_ps((f64::from(bytes) * self.ps_per_byte).round() as u64);
        if length == Time::ZERO {
            return ready;
        }
        let (from, to) = self.path.reserve(ready, length);
        self.events.busy((PartKind::HostLink, 0), Activity::Transfer, (from, to));
        to
    }

    fn idle_from(&mut self, now: Time) {
        let work = (self.busy_since, now);
        self.events.busy((PartKind::Controller, 0), Activity::InService, work);
    }
}

impl BlockTarget for DelayDevice {
    fn capacity_bytes(&self) -> u64 {
        self.config.delay.capacity.0
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        if self.in_flight == self.config.delay.depth {
            return Err(SubmitError::Full);
        }
        let service = self.service(&request);
        let mut accepted = now;
        let mut ready = now;
        if service > Time::ZERO
            && let Some(Reverse(free)) = self.servers.pop()
        {
            accepted = free.max(now);
            ready = accepted + service;
            self.servers.push(Reverse(ready));
        }
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        self.in_flight += 1;
        let bytes = match request.op {
            Op::Read | Op::Write => request.length_bytes,
            Op::Trim | Op::Flush => 0,
        };
        let entry = Slot { token, accepted, bytes };
        let slot = self.slots.insert(entry);
        self.queue.schedule(ready, Event::Served(slot));
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        while let Some((at, event)) = self.queue.pop_due(now) {
            let slot = match event {
                Event::Done(slot) => slot,
                Event::Served(slot) => {
                    let across = self.transfer(self.slots[slot].bytes, at);
                    if across > at {
                        self.queue.schedule(across, Event::Done(slot));
                        continue;
                    }
                    slot
                }
            };
            let Slot { token, accepted, .. } = self.slots.take(slot);
            self.in_flight -= 1;
            if self.in_flight == 0 {
                self.idle_from(at);
            }
            out.push(Completion { token, status: Status::Ok, accepted, completed: at });
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.queue.next_time()
    }
}

impl Device for DelayDevice {
    fn events(&mut self) -> &mut EventLog {
        &mut self.events
    }

    fn report(&self, report: &mut DeviceReport) {
        let facts = DeviceFacts::of(self, self.config.delay.depth);
        let power = PowerModel::Controller {
            config: Box::new(self.config.energy.clone()),
            facts: Facts { dies_per_package: 1, ..Facts::default() },
        };
        report.unit(DelayConfig::NAME, facts, power);
    }
}
