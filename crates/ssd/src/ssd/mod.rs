//! The simulated SSD.
//!
//! The way of a request: it waits outside until the queue has room; takes a firmware core; a write
//! crosses host link and DRAM; the FTL says which flash operations it means; reads cross DRAM and
//! link as their pages arrive; it completes. Only steps that cannot be worked out at once cost an
//! event.

mod ahead;
mod buffered;
mod contents;
mod flash_side;
mod limited;
mod requests;
mod sanitize;
mod sector_bus;
mod target;

use std::collections::VecDeque;
use std::ops::Range;

use ssdyno_block::{Completion, ConfigError, Op, Request, Status, Time};
use ssdyno_device::Device;
use ssdyno_device::link::{Direction, HostLink};
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::{Activity, Busy, EventLog, FlashCause, PartEvent, PartKind};
use ssdyno_engine::{EventQueue, FifoResource, LastTransferTime};
use ssdyno_flash::{FlashArray, FlashEvent, FlashOp};
use ssdyno_ftl::Ftl;
use ssdyno_ftl::buffer::{WriteBack, WriteBuffer};

use crate::governor::Governor;
use crate::sleep::Sleep;
use crate::task::{Goal, Owner, Tasks};
use crate::waiting::Waiting;
use crate::{Config, PartialPage};

use contents::Contents;
use flash_side::Turns;
use requests::{Requests, Slot};
use sector_bus::SectorBus;

/// What can happen inside the device.
#[derive(Clone, Copy, Debug)]
enum Event {
    Flash(FlashEvent),
    /// The command (and the data of a write) is in the controller.
    Dispatch(u32),
    /// The answer is at the host.
    Complete(u32),
    /// The request's data has crossed the sector bus.
    BusFree(u32),
}

impl From<FlashEvent> for Event {
    #[inline]
    fn from(event: FlashEvent) -> Event {
        Event::Flash(event)
    }
}

/// Two bits for the kind, thirty for the rest.
impl ssdyno_engine::Event for Event {
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Event::Flash(event) => event.pack(),
            Event::Dispatch(slot) => slot | 1 << 30,
            Event::Complete(slot) => slot | 2 << 30,
            Event::BusFree(slot) => slot | 3 << 30,
        }
    }
    #[inline]
    fn unpack(code: u32) -> Event {
        let rest = code & !(3 << 30);
        match code >> 30 {
            0 => Event::Flash(FlashEvent::unpack(rest)),
            1 => Event::Dispatch(rest),
            2 => Event::Complete(rest),
            _ => Event::BusFree(rest),
        }
    }
}

const _: () = assert!(FlashEvent::BITS <= 30, "flash events fit beside the kind");

/// Events after which [`Ssd::run_until_completion`](Device::run_until_completion) lets its caller look after
/// other things.
const STEPS: u32 = 256;

/// A simulated SSD.
#[derive(Debug)]
pub struct Ssd {
    config: Config,
    capacity_bytes: u64,
    page_bytes: u64,
    /// Its logarithm, where it is a power of two (it nearly always is): saves dividing.
    page_shift: Option<u32>,
    queue: EventQueue<Event>,
    log: EventLog,
    ftl: Box<dyn Ftl>,
    flash: FlashArray,
    buffer: Option<WriteBuffer>,
    link: HostLink,
    sector_bus: Option<SectorBus>,
    cores: Vec<FifoResource>,
    dram: FifoResource,
    dram_usual: LastTransferTime,
    sleep: Sleep,
    /// When it had last come out of a low-power state.
    awake_at: Time,
    /// Only once there was a limit of power.
    governor: Option<Box<Governor>>,
    requests: Requests,
    waiting: Waiting,
    tasks: Tasks,
    /// Writes that found the buffer full: slot and next page.
    stalled: VecDeque<(u32, u32)>,
    /// Flushes that wait for the buffer, one after another.
    flushes: VecDeque<u32>,
    inside: u32,
    busy_since: Time,
    last_activity: Time,
    completions: Vec<Completion>,
    ops: Vec<FlashOp>,
    done: Vec<u32>,
    batch: Vec<WriteBack>,
    turns: Turns,
    background: bool,
    /// A write was refused: the flash is worn out.
    read_only: bool,
    /// Of preconditioning.
    seed: u64,
    /// Only in tests.
    contents: Contents,
}

impl Ssd {
    /// Builds and preconditions the device; `seed` decides about everything random in it.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn new(config: &Config, seed: u64) -> Result<Ssd, ConfigError> {
        let mut ssd = Ssd::fresh(config, seed)?;
        ssd.precondition(&mut |_| true).map_err(|error| match error {
            PrepareError::Config(error) => error,
            PrepareError::Interrupted => unreachable!("nobody interrupts"),
        })?;
        Ok(ssd)
    }

    /// As [`new`](Ssd::new), but as it leaves the factory: [`Device::precondition`], which takes
    /// seconds where the device is large, makes a used one of it.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn fresh(config: &Config, seed: u64) -> Result<Ssd, ConfigError> {
        config.check()?;
        let flash = FlashArray::new(&config.flash)?;
        let geometry = *flash.geometry();
        let facts =
            ssdyno_ftl::FtlFacts { geometry, flash: &config.flash, config: &config.ftl, seed };
        let ftl = ssdyno_ftl::build(&facts)?;
        let pages = ftl.logical_pages();
        // It is used later, and is to be refused now.
        config.precondition.pages(pages)?;
        let pages_per_block = geometry.pages_per_block.get();
        let buffer = WriteBuffer::new(&config.buffer, geometry.page_bytes, pages_per_block, pages)?;
        Ok(Ssd {
            capacity_bytes: u64::from(pages) * u64::from(geometry.page_bytes),
            page_bytes: u64::from(geometry.page_bytes),
            page_shift: (geometry.page_bytes.is_power_of_two())
                .then(|| geometry.page_bytes.trailing_zeros()),
            queue: EventQueue::new(),
            log: EventLog::default(),
            ftl,
            flash,
            buffer,
            link: HostLink::new(&config.host_link)?,
            sector_bus: SectorBus::new(&config.host_link),
            cores: vec![FifoResource::default(); config.controller.cores as usize],
            dram: FifoResource::default(),
            dram_usual: LastTransferTime::default(),
            sleep: Sleep::new(&config.power),
            awake_at: Time::ZERO,
            governor: None,
            requests: Requests::default(),
            waiting: Waiting::new(config.queue.waiting),
            tasks: Tasks::default(),
            stalled: VecDeque::new(),
            flushes: VecDeque::new(),
            inside: 0,
            busy_since: Time::ZERO,
            last_activity: Time::ZERO,
            completions: Vec::with_capacity(64),
            ops: Vec::with_capacity(1024),
            done: Vec::with_capacity(64),
            batch: Vec::new(),
            turns: Turns::default(),
            read_only: false,
            contents: Contents::default(),
            background: config.ftl.free_blocks_background > 0.0,
            seed,
            config: config.clone(),
        })
    }

    fn accept(&mut self, now: Time, slot: u32) {
        if self.inside == 0 {
            if !self.config.power.states.is_empty() {
                self.awake_at = self.sleep.wake(self.last_activity, now, &mut self.log);
            }
            self.busy_since = now;
        }
        // Those that come while it wakes wait as the first does.
        let mut ready = now.max(self.awake_at);
        self.inside += 1;
        self.requests.get_mut(slot).accepted = now;
        if self.governor.is_some() {
            ready = self.begin_limited(ready, slot);
        }
        if let Some(bus) = &mut self.sector_bus {
            bus.commands.push_back(slot);
            return self.use_bus(ready);
        }
        let Request { op, offset_bytes, length_bytes } = self.requests.get(slot).request;
        ready = self.link.command(ready);
        let pages = self.pages_of(offset_bytes, length_bytes);
        ready = self.execute(ready, u64::from(pages.end - pages.start));
        if op == Op::Write {
            let bytes = u64::from(length_bytes);
            ready = self.link.send(Direction::ToDevice, ready, bytes, &mut self.log);
            ready = self.through_dram(ready, bytes);
        }
        if ready == now {
            self.dispatch(now, slot);
        } else {
            self.queue.schedule(ready, Event::Dispatch(slot));
        }
    }

    /// Pages that a range touches.
    fn pages_of(&self, offset_bytes: u64, length_bytes: u32) -> Range<u32> {
        let end = offset_bytes + u64::from(length_bytes);
        self.page_at(offset_bytes)..self.page_at(end + self.page_bytes - 1)
    }

    /// The page that the byte at `offset_bytes` is in.
    #[inline]
    fn page_at(&self, offset_bytes: u64) -> u32 {
        match self.page_shift {
            Some(shift) => (offset_bytes >> shift) as u32,
            None => (offset_bytes / self.page_bytes) as u32,
        }
    }

    /// Firmware time for a command of `pages` pages on the core that is free first.
    fn execute(&mut self, ready: Time, pages: u64) -> Time {
        let controller = &self.config.controller;
        let length = controller.command_time.0 + controller.page_time.0 * pages;
        if length == Time::ZERO {
            return ready;
        }
        let core = (0..self.cores.len()).min_by_key(|core| self.cores[*core].free_at());
        let index = core.unwrap_or(0);
        let (from, to) = self.cores[index].reserve(ready, length);
        self.log_part(PartKind::Core, index as u16, Activity::Execute, from, to);
        to
    }

    fn through_dram(&mut self, ready: Time, bytes: u64) -> Time {
        let Some(rate) = self.config.controller.dram_bandwidth else { return ready };
        let length = match self.dram_usual.known(bytes) {
            Some(length) => length,
            None => self.dram_usual.learn(bytes, rate.time_for(bytes)),
        };
        let (from, to) = self.dram.reserve(ready, length);
        self.log_part(PartKind::Dram, 0, Activity::Transfer, from, to);
        to
    }

    fn log_part(&mut self, kind: PartKind, index: u16, activity: Activity, from: Time, to: Time) {
        let part = PartEvent::new(kind, index);
        self.log.push(Busy { part, activity, cause: FlashCause::None, operations: 1, from, to });
    }

    #[inline(always)]
    fn dispatch(&mut self, now: Time, slot: u32) {
        let Request { op, offset_bytes, length_bytes } = self.requests.get(slot).request;
        // Held until all pages are queued: an operation may complete at once.
        self.requests.hold(slot);
        match op {
            Op::Read => {
                for page in self.pages_of(offset_bytes, length_bytes) {
                    self.read_page(now, slot, page);
                }
            }
            Op::Write if self.buffer.is_some() => self.write_buffered(now, slot),
            Op::Write => {
                for page in self.pages_of(offset_bytes, length_bytes) {
                    self.write_page(now, slot, page);
                }
            }
            Op::Trim => self.trim(now, slot),
            Op::Flush => self.flush_all(now, slot),
        }
        self.request_part_done(now, slot);
    }

    #[inline(always)]
    fn read_page(&mut self, now: Time, slot: u32, page: u32) {
        if self.buffer.as_mut().is_some_and(|buffer| buffer.read(page)) {
            return self.page_arrived(now, slot);
        }
        self.ops.clear();
        if !self.ftl.read(page, &mut self.ops) {
            return self.page_arrived(now, slot);
        }
        self.contents.read(page);
        self.requests.hold(slot);
        let owner = if self.buffer.is_some() {
            Owner::Task(self.tasks.insert(Goal::Fill { slot, page }))
        } else {
            Owner::Request(slot)
        };
        self.enqueue(now, owner, page);
    }

    /// A page of a read is in the controller: on to the host.
    #[inline(always)]
    fn page_arrived(&mut self, now: Time, slot: u32) {
        let whole = u64::from(self.requests.get(slot).request.length_bytes);
        if self.sector_bus.is_some() {
            return;
        }
        let bytes = self.page_bytes.min(whole);
        let ready = self.through_dram(now, bytes);
        let at = self.link.send(Direction::ToHost, ready, bytes, &mut self.log);
        let request = self.requests.get_mut(slot);
        request.ready = request.ready.max(at);
    }

    /// True if `request` covers `page` only in part, and the rest must be read first.
    fn must_merge(&self, request: &Request, page: u32) -> bool {
        let first = u64::from(page) * self.page_bytes;
        let end = request.offset_bytes + u64::from(request.length_bytes);
        let whole = request.offset_bytes <= first && first + self.page_bytes <= end;
        !whole && self.config.controller.partial_page == PartialPage::ReadModifyWrite
    }

    fn write_page(&mut self, now: Time, slot: u32, page: u32) {
        let request = self.requests.get(slot).request;
        if self.must_merge(&request, page) {
            self.ops.clear();
            if self.ftl.read(page, &mut self.ops) {
                self.requests.hold(slot);
                let task = self.tasks.insert(Goal::Modify { slot, page });
                return self.enqueue(now, Owner::Task(task), page);
            }
        }
        self.write_through(now, slot, page);
    }

    fn write_through(&mut self, now: Time, slot: u32, page: u32) {
        self.ops.clear();
        let plane = self.preferred_plane();
        match self.ftl.write(page, plane, &mut self.ops) {
            Ok(()) => {
                self.contents.written(page);
                self.contents.stored(page);
            }
            Err(_) => self.requests.get_mut(slot).status = Status::ReadOnly,
        }
        self.enqueue_for_request(now, slot);
    }

    #[inline(always)]
    fn operation_done(&mut self, now: Time, slot: u32) {
        if self.requests.get(slot).request.op == Op::Read {
            self.page_arrived(now, slot);
        }
        self.request_part_done(now, slot);
    }

    /// One part of a request is done; with the last, its answer goes to the host.
    #[inline(always)]
    fn request_part_done(&mut self, now: Time, slot: u32) {
        if !self.requests.release(slot) {
            return;
        }
        if let Some(bus) = &mut self.sector_bus {
            bus.finished.push_back(slot);
            return self.use_bus(now);
        }
        let at = self.requests.get(slot).ready.max(now);
        // Nothing left to wait for, nobody to let in: no event needed.
        if at == now && self.waiting.is_empty() {
            return self.complete(now, slot);
        }
        self.queue.schedule(at, Event::Complete(slot));
    }

    fn trim(&mut self, now: Time, slot: u32) {
        let Request { offset_bytes, length_bytes, .. } = self.requests.get(slot).request;
        // Only whole pages can be forgotten.
        let first = self.page_at(offset_bytes + self.page_bytes - 1);
        let end = self.page_at(offset_bytes + u64::from(length_bytes));
        for page in first..end {
            self.ops.clear();
            if let Some(buffer) = &mut self.buffer {
                buffer.trim(page);
            }
            self.ftl.trim(page, &mut self.ops);
            if !self.ops.is_empty() {
                self.enqueue_for_request(now, slot);
            }
        }
    }

    /// The next event up to `limit`, and its time.
    #[inline(always)]
    fn step(&mut self, limit: Time) -> Option<Time> {
        let (at, event) = self.queue.pop_due(limit)?;
        self.last_activity = at;
        match event {
            Event::Flash(event) => self.flash_event(at, event),
            Event::Dispatch(slot) => self.dispatch(at, slot),
            Event::Complete(slot) => self.complete(at, slot),
            Event::BusFree(slot) => self.bus_free(at, slot),
        }
        Some(at)
    }

    #[inline(always)]
    fn complete(&mut self, now: Time, slot: u32) {
        let Slot { token, accepted, status, request, .. } = self.requests.remove(slot);
        if self.governor.is_some() {
            self.end_limited(&request);
        }
        self.completions.push(Completion { token, status, accepted, completed: now });
        self.inside -= 1;
        if let Some(next) = self.waiting.pop() {
            self.accept(now, next);
        } else if self.inside == 0 {
            let since = self.busy_since;
            self.log_part(PartKind::Controller, 0, Activity::InService, since, now);
        }
    }
}
