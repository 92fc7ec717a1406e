//! The simulated SSD.
//!
//! The way of a request: it waits outside until the queue has room; takes a firmware core; a write
//! crosses host link and DRAM; the FTL says which flash operations it means; reads cross DRAM and
//! link as their pages arrive; it completes. Only steps that cannot be worked out at once cost an
//! event.

mod ahead;
mod buffered;
mod contents;
mod event;
mod explain;
mod flash_side;
mod history;
mod limited;
mod pages;
mod path;
mod power;
mod requests;
mod sanitize;
mod sector_bus;
mod target;

use ssdyno_block::{ConfigError, Op, Request, Status, Time};
use ssdyno_device::{Device, LatencyPart, PagesRead};
use ssdyno_engine::events::{Activity, EventLog, PartKind};
use ssdyno_engine::{EventQueue, PrepareError};
use ssdyno_flash::FlashArray;
use ssdyno_ftl::buffer::WriteBuffer;

use crate::task::{Goal, Owner, Tasks};
use crate::{Config, PartialPage};

use buffered::Buffer;
use event::Event;
use explain::{Entry, Explain};
use flash_side::FlashSide;
use pages::Pages;
use path::DataPath;
use power::Power;
use requests::Requests;

/// Events after which [`Ssd::run_until_completion`](Device::run_until_completion) lets its caller look after
/// other things.
const STEPS: u32 = 256;

/// A simulated SSD.
#[derive(Debug)]
pub struct Ssd {
    config: Config,
    /// Of preconditioning.
    seed: u64,
    pages: Pages,
    queue: EventQueue<Event>,
    log: EventLog,
    requests: Requests,
    tasks: Tasks,
    path: DataPath,
    buffer: Buffer,
    pages_read: PagesRead,
    flash: FlashSide,
    power: Power,
    /// Only where somebody asks what requests spend their time on.
    explain: Option<Box<Explain>>,
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
            seed,
            pages: Pages::new(pages, geometry.page_bytes),
            queue: EventQueue::new(),
            log: EventLog::default(),
            requests: Requests::new(&config.queue),
            tasks: Tasks::default(),
            path: DataPath::new(config)?,
            buffer: Buffer::new(buffer),
            pages_read: PagesRead::default(),
            flash: FlashSide::new(ftl, flash, &config.ftl),
            power: Power::new(config),
            explain: None,
            config: config.clone(),
        })
    }

    fn accept(&mut self, now: Time, slot: u32) {
        if self.requests.nobody_is_inside() {
            self.power.wake(now, &mut self.log);
        }
        self.requests.enter(now, slot);
        // Those that come while it wakes wait as the first does.
        // `awake_at` is in the future only after a wake-up (S1-45: exit latency of a power state).
        // The maximum also delays requests that arrive while the first one still waits for the
        // device.
        let mut ready = now.max(self.power.awake_at);
        if self.power.is_governed() {
            ready = self.begin_limited(ready, slot);
        }
        // The position in the log is remembered before the path appends to it. The explanation of a
        // latency reads the new events from there, instead of a second computation that could
        // differ.
        let (powered, events) = (ready, self.log.len());
        if let Some(bus) = &mut self.path.sector_bus {
            if let Some(explain) = &mut self.explain {
                let entry = Entry { now, powered, linked: powered, ready };
                explain.entered(slot, &entry, &[], Time::ZERO);
            }
            bus.commands.push_back(slot);
            return self.use_bus(ready);
        }
        let Request { op, offset_bytes, length_bytes } = self.requests.get(slot).request;
        let pages = self.pages.touched(offset_bytes, length_bytes);
        ready = self.path.command(ready, u64::from(pages.end - pages.start), &mut self.log);
        if op == Op::Write {
            ready = self.path.bring_in(ready, u64::from(length_bytes), &mut self.log);
        }
        if let Some(explain) = &mut self.explain {
            let linked = self.path.link.command(powered);
            let entry = Entry { now, powered, linked, ready };
            explain.entered(slot, &entry, self.log.skip(events), self.log.origin());
        }
        if ready == now {
            self.dispatch(now, slot);
        } else {
            self.queue.schedule(ready, Event::Dispatch(slot));
        }
    }

    #[inline(always)]
    fn dispatch(&mut self, now: Time, slot: u32) {
        let Request { op, offset_bytes, length_bytes } = self.requests.get(slot).request;
        if let Some(explain) = &mut self.explain {
            explain.dispatched(now, slot);
        }
        // Held until all pages are queued: an operation may complete at once.
        self.requests.hold(slot);
        match op {
            Op::Read => {
                for page in self.pages.touched(offset_bytes, length_bytes) {
                    self.read_page(now, slot, page);
                }
            }
            Op::Write if self.buffer.is_there() => self.write_buffered(now, slot),
            Op::Write => {
                for page in self.pages.touched(offset_bytes, length_bytes) {
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
        if self.buffer.read(page) {
            self.pages_read.buffer += 1;
            return self.page_arrived(now, slot);
        }
        if !self.flash.read(page) {
            self.pages_read.blank += 1;
            return self.page_arrived(now, slot);
        }
        self.pages_read.flash += 1;
        self.flash.contents.read(page);
        self.requests.hold(slot);
        // Only a page that can stay in the buffer needs a task. Without a buffer, the request
        // itself owns the operation, which saves one slot and one lookup per page of a read.
        let owner = if self.buffer.is_there() {
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
        if self.path.sector_bus.is_some() {
            return;
        }
        let bytes = self.pages.bytes.min(whole);
        let events = self.log.len();
        let at = self.path.send_out(now, bytes, &mut self.log);
        if let Some(explain) = &mut self.explain {
            explain.sent(slot, (now, at), self.log.skip(events), self.log.origin());
        }
        let request = self.requests.get_mut(slot);
        // Pages arrive in any order, because dies work in parallel and the channel is shared. The
        // answer goes out after the last page, so only the latest time is kept.
        request.ready = request.ready.max(at);
    }

    /// True if `request` covers `page` only in part, and the rest must be read first.
    fn must_merge(&self, request: &Request, page: u32) -> bool {
        !self.pages.is_covered(page, request)
            && self.config.controller.partial_page == PartialPage::ReadModifyWrite
    }

    fn write_page(&mut self, now: Time, slot: u32, page: u32) {
        let request = self.requests.get(slot).request;
        if self.must_merge(&request, page) && self.flash.read(page) {
            self.requests.hold(slot);
            let task = self.tasks.insert(Goal::Modify { slot, page });
            return self.enqueue(now, Owner::Task(task), page);
        }
        self.write_through(now, slot, page);
    }

    fn write_through(&mut self, now: Time, slot: u32, page: u32) {
        match self.flash.write(page) {
            Ok(()) => {
                self.flash.contents.written(page);
                self.flash.contents.stored(page);
            }
            // A worn-out device refuses writes but still serves reads. The request must complete
            // with a status; an abandoned token would violate the contract of a target.
            Err(_) => self.requests.get_mut(slot).status = Status::ReadOnly,
        }
        self.enqueue_for_request(now, slot);
    }

    #[inline(always)]
    fn operation_done(&mut self, now: Time, slot: u32) {
        let op = self.requests.get(slot).request.op;
        if let Some(explain) = &mut self.explain {
            explain.reached(slot, op, self.buffer.is_there());
        }
        if op == Op::Read {
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
        if let Some(bus) = &mut self.path.sector_bus {
            bus.finished.push_back(slot);
            return self.use_bus(now);
        }
        let at = self.requests.get(slot).ready.max(now);
        // There is nothing to wait for and no request to admit: no event is needed.
        if at == now && self.requests.nobody_waits() {
            return self.complete(now, slot);
        }
        self.queue.schedule(at, Event::Complete(slot));
    }

    fn trim(&mut self, now: Time, slot: u32) {
        let Request { offset_bytes, length_bytes, .. } = self.requests.get(slot).request;
        // Only whole pages can be forgotten.
        for page in self.pages.covered(offset_bytes, length_bytes) {
            self.buffer.trim(page);
            self.flash.trim(page);
            if !self.flash.ops.is_empty() {
                self.enqueue_for_request(now, slot);
            }
        }
    }

    /// The next event up to `limit`, and its time.
    #[inline(always)]
    fn step(&mut self, limit: Time) -> Option<Time> {
        let (at, event) = self.queue.pop_due(limit)?;
        self.power.last_activity = at;
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
        let request = self.requests.complete(now, slot);
        if let Some(explain) = &mut self.explain {
            let rest = match self.path.sector_bus {
                Some(_) => LatencyPart::Link,
                None => LatencyPart::Queue,
            };
            explain.completed(now, slot, request, rest);
        }
        if self.power.is_governed() {
            self.end_limited(&request);
        }
        // Exactly one request enters per completion, so the number inside never exceeds the depth
        // of the queue (S3-26: 20 outstanding requests at the device; the rest waits in the
        // driver).
        if let Some(next) = self.requests.next_waiting() {
            self.accept(now, next);
        } else if self.requests.nobody_is_inside() {
            // One event covers the whole busy period. The CPU energy of S3 depends on the union of
            // the times with at least one request in service (S3-31), so overlapping requests must
            // not add up.
            let since = self.requests.busy_since;
            self.log.busy((PartKind::Controller, 0), Activity::InService, (since, now));
        }
    }
}
