//! A device that has no link to the host of its own, behind that of an NVMe controller.
//!
//! Disks, arrays, volumes and delays charge the time of their own transfers, but none of them charges the link between
//! controller and host. This device adds it: a write reaches the device when its data have crossed the link, and a
//! read completes when its data have. The controller charges the time of queue entries.
//!
//! A device may refuse a request because its queue is full. The NVMe controller has already taken the command then, so
//! refused requests wait here, in order.
//!
//! Not modelled: energy of this link, and its share of busy time in reports.

use std::collections::{BTreeMap, VecDeque};

use ssdyno_block::{
    BlockTarget, Completion, ConfigError, Op, Request, Status, SubmitError, Time, Token,
};
use ssdyno_device::{Device, DeviceReport, HostLink, LinkConfig};
use ssdyno_engine::FifoResource;
use ssdyno_engine::events::EventLog;

/// See the module.
#[derive(Debug)]
pub struct BehindLink {
    device: Box<dyn Device>,
    link: HostLink,
    to_device: FifoResource,
    to_host: FifoResource,
    /// Writes whose data are on the way, and when they are there.
    arriving: VecDeque<(Time, Request, Token)>,
    /// Commands that have arrived, and for which the device has had no room.
    waiting: VecDeque<(Request, Token)>,
    /// Bytes of the reads that the device works on, by token.
    reads: BTreeMap<u32, u32>,
    /// Reads whose data are on the way, in the order in which they arrive.
    leaving: VecDeque<Completion>,
    /// The latest time that the device knows.
    now: Time,
    batch: Vec<Completion>,
}

impl BehindLink {
    /// `device` behind `link`.
    ///
    /// # Errors
    /// [`ConfigError`] names the key of the link that is wrong.
    pub fn new(device: Box<dyn Device>, link: &LinkConfig) -> Result<BehindLink, ConfigError> {
        Ok(BehindLink {
            device,
            link: HostLink::new(link)?,
            to_device: FifoResource::default(),
            to_host: FifoResource::default(),
            arriving: VecDeque::new(),
            waiting: VecDeque::new(),
            reads: BTreeMap::new(),
            leaving: VecDeque::new(),
            now: Time::ZERO,
            batch: Vec::new(),
        })
    }

    /// When `bytes` that are ready at `ready` are across.
    fn cross(&mut self, to_host: bool, ready: Time, bytes: u32) -> Time {
        let length = self.link.time_for(u64::from(bytes));
        // A half-duplex link has one server for both directions. Reads and writes then wait for
        // each other.
        let server = match to_host && self.link.ways() == 2 {
            true => &mut self.to_host,
            false => &mut self.to_device,
        };
        server.reserve(ready, length).1
    }

    /// Gives the device what is there, as far as it has room.
    fn feed(&mut self) {
        while let Some((at, request, token)) = self.arriving.front().copied()
            && at <= self.now
        {
            self.arriving.pop_front();
            self.waiting.push_back((request, token));
        }
        while let Some((request, token)) = self.waiting.front().copied() {
            match self.device.submit(self.now, request, token) {
                Ok(()) if request.op == Op::Read => {
                    self.reads.insert(token.0, request.length_bytes);
                }
                Ok(()) => {}
                // The request stays at the front. Requests behind it wait, too, so that the
                // device gets them in the order in which their data arrived.
                Err(SubmitError::Full) => return,
                // Checked as it came, a request can only be refused by a device that is no longer there.
                Err(_) => {
                    // `leaving` is in the order of completion. An error joins at its end and not
                    // before it, because `next_event` looks at the front only.
                    let at = self.leaving.back().map_or(self.now, |last| last.completed);
                    self.leaving.push_back(Completion {
                        token,
                        status: Status::Error,
                        accepted: self.now,
                        completed: at.max(self.now),
                    });
                }
            }
            self.waiting.pop_front();
        }
    }

    /// The device's completions by now.
    fn take(&mut self, out: &mut Vec<Completion>) {
        let mut batch = std::mem::take(&mut self.batch);
        self.device.reap(self.now, &mut batch);
        for done in batch.drain(..) {
            match self.reads.remove(&done.token.0) {
                Some(bytes) if done.status == Status::Ok => {
                    // The transfer begins when the device is done and not when this is noticed.
                    // Both are usually the same time; a late call must not make the data late.
                    let completed = self.cross(true, done.completed, bytes);
                    self.leaving.push_back(Completion { completed, ..done });
                }
                _ => out.push(done),
            }
        }
        self.batch = batch;
    }
}

impl BlockTarget for BehindLink {
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        self.device.sector_bytes()
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        self.now = self.now.max(now);
        if request.op == Op::Write {
            let at = self.cross(false, self.now, request.length_bytes);
            self.arriving.push_back((at, request, token));
        } else {
            self.waiting.push_back((request, token));
        }
        self.feed();
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            self.now = self.now.max(at);
            self.take(out);
            self.feed();
            while let Some(done) = self.leaving.pop_front_if(|done| done.completed <= self.now) {
                out.push(done);
            }
        }
        self.now = self.now.max(now);
    }

    fn next_event(&self) -> Option<Time> {
        let arrival = self.arriving.front().map(|(at, ..)| *at);
        let left = self.leaving.front().map(|done| done.completed);
        [self.device.next_event(), arrival, left].into_iter().flatten().min()
    }
}

impl Device for BehindLink {
    fn inner(&self) -> Option<&dyn Device> {
        Some(self.device.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Device> {
        Some(self.device.as_mut())
    }

    fn events(&mut self) -> &mut EventLog {
        self.device.events()
    }

    fn report(&self, report: &mut DeviceReport) {
        self.device.report(report);
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::conformance::check_target;
    use ssdyno_device::delay::{DelayConfig, DelayDevice};
    use ssdyno_device::nvme::{NvmeControllerConfig, NvmeSetup};

    use super::*;

    /// A delay that works on `servers` requests at a time and takes `depth`, behind PCI Express 3.0 x4.
    fn behind(servers: u32, depth: u32) -> BehindLink {
        let text = format!(
            "[delay]\ncapacity = \"1GiB\"\nread = \"100us\"\nwrite = \"30us\"\nservers = {servers}\n\
             depth = {depth}"
        );
        let device = DelayDevice::new(&DelayConfig::parse(&text).unwrap(), 1).unwrap();
        BehindLink::new(Box::new(device), &link()).unwrap()
    }

    fn link() -> LinkConfig {
        NvmeSetup::in_front(&NvmeControllerConfig::default(), false).host_link
    }

    /// 1 MiB at 8 GT/s, 4 lanes, 128b/130b, 24 B of overhead for 256 B: 291 us.
    fn crossing() -> Time {
        let bytes = (1u64 << 20) as f64 * (256.0 + 24.0) / 256.0;
        Time::from_s_f64(bytes / (8e9 * 128.0 / 130.0 / 8.0 * 4.0))
    }

    fn end_of(target: &mut BehindLink) -> Vec<(u32, Time)> {
        let mut out = Vec::new();
        while let Some(at) = target.next_event() {
            target.reap(at, &mut out);
        }
        out.iter().map(|done| (done.token.0, done.completed)).collect()
    }

    fn near(time: Time, expected: Time) {
        let difference = time.saturating_sub(expected).max(expected.saturating_sub(time));
        assert!(difference < Time::from_ns(1), "{time} and {expected}");
    }

    #[test]
    fn every_request_completes_once() {
        for (servers, depth) in [(1, 1), (4, 2), (4, 64)] {
            check_target(|| behind(servers, depth));
        }
    }

    /// Reads that are ready together leave one after another; a write is at the device once its data are.
    #[test]
    fn data_share_the_link() {
        let mut target = behind(4, 64);
        let read = |offset_bytes| Request::read(offset_bytes, 1 << 20);
        for token in 0..3 {
            target.submit(Time::ZERO, read(u64::from(token) << 20), Token(token)).unwrap();
        }
        for (token, time) in end_of(&mut target) {
            near(time, Time::from_us(100) + crossing() * u64::from(token + 1));
        }
        let mut target = behind(4, 64);
        for token in 0..3 {
            let write = Request::write(u64::from(token) << 20, 1 << 20);
            target.submit(Time::ZERO, write, Token(token)).unwrap();
        }
        let ends = end_of(&mut target);
        assert_eq!(ends.len(), 3);
        for (token, time) in ends {
            near(time, crossing() * u64::from(token + 1) + Time::from_us(30));
        }
    }

    /// A device with room for one request gets the others in turn.
    #[test]
    fn what_the_device_has_no_room_for_waits() {
        let mut target = behind(1, 1);
        for token in 0..100 {
            target.submit(Time::ZERO, Request::read(0, 512), Token(token)).unwrap();
        }
        let ends = end_of(&mut target);
        assert_eq!(
            ends.iter().map(|(token, _)| *token).collect::<Vec<_>>(),
            (0..100).collect::<Vec<_>>()
        );
        assert!(ends[99].1 > Time::from_ms(10) && ends[99].1 < Time::from_us(10_001));
    }
}
