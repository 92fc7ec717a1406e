//! A RAID controller before the members of an array: a queue, processors, a link to the host and a cache.
//!
//! Each command occupies one of the cores for the latency, in order of arrival. Then
//!
//! * a **read** takes from the cache what is dirty there or was read ahead, waits for what is being read ahead, and
//!   reads the rest from the members, each range once. Its data cross the link when all of them are there;
//! * a **write** waits for room in the cache, its data cross the link, and it completes. The dirty data are
//!   written to the members afterwards: destaging begins at once, with a bounded number of writes under way, each of
//!   which joins the contiguous dirty data inside a full stripe. Without write-back, the write completes with the
//!   members. While the cache is full, a write waits for the next destage;
//! * a **trim** drops the dirty data and goes to the members after changes of the same range that are under way;
//! * a **flush** completes, or waits for the dirty data and goes to the members.
//!
//! Closed forms, to which the tests hold the model: a random read at depth 1 takes the latency, the time of the member
//! and that of the link; `cores / latency` limits commands a second; a write takes the latency and the time of the
//! link until the cache is full, and the streaming rate of the members from then on; sequential reads with
//! read-ahead take the latency and the time of the link, or the streaming rate of the members.
//!
//! **Errors of members.** A failed read fails. If a read-ahead fails, the reads that wait for it go to the members
//! themselves. If a destage fails, its data are lost and the next write or flush fails with the same status, without
//! effect: the deferred error of SCSI (SPC-4, clause 4.5.7). Once a member was removed, every write and flush
//! fails: the virtual disk is offline.
//!
//! *Not modelled*: bandwidth of the cache memory; clean data that stay in the cache after they were read or destaged
//! (Direct I/O of MegaRAID); a battery that is empty or charges; retries; patrol reads; data of a lost member that
//! the cache keeps (preserved cache).

mod config;
mod extent;
#[cfg(test)]
mod order_tests;
mod parts;
mod purpose;
mod read_ahead;
#[cfg(test)]
mod tests;
mod write_cache;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssdyno_block::units::Bytes;
use ssdyno_block::{Completion, ConfigError, Op, Request, Status, SubmitError, Time, Token};
use ssdyno_energy::PartPower;
use ssdyno_engine::events::EventLog;
use ssdyno_engine::{EventQueue, SlotTable};

use super::striping::Striping;
use crate::DeviceFacts;
use crate::link::{Direction, HostLink};
use config::wrong;
pub use config::{ControllerTable, DestageOrder, FlushPolicy, ReadAheadPolicy};
use extent::Extent;
use parts::{Parts, powers};
use purpose::{Event, Purpose};
use read_ahead::ReadAhead;
use write_cache::WriteCache;

/// A command inside.
#[derive(Clone, Copy, Debug)]
struct Command {
    token: Token,
    request: Request,
    /// When a core took it.
    accepted: Time,
    status: Status,
    /// Parts that it waits for.
    left: u32,
    /// The lock of what it changes on the members.
    lock: Option<u32>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Controller {
    table: ControllerTable,
    link: HostLink,
    /// When each core is free, and its number.
    cores: BinaryHeap<Reverse<(Time, u16)>>,
    queue: EventQueue<Event>,
    commands: SlotTable<Command>,
    inside: u32,
    writes: WriteCache,
    ahead: ReadAhead,
    /// Locks that wait for earlier ones, each with its command.
    waiting: Vec<(u32, u32)>,
    /// Flushes that wait for the data up to an age.
    flushes: Vec<(u32, u64)>,
    /// A destage failed, which no command has reported.
    deferred: Option<Status>,
    /// A destage failed, and a member was removed.
    has_lost_member: bool,
    parts: Parts,
    now: Time,
    batch: Vec<Completion>,
}

impl Controller {
    pub(super) fn new(
        table: &ControllerTable,
        striping: &Striping,
    ) -> Result<Controller, ConfigError> {
        table.check()?;
        let link = HostLink::new(&table.link).map_err(|error| {
            let key = error.key.trim_start_matches("host_link.");
            ConfigError { key: format!("array.controller.link.{key}"), ..error }
        })?;
        let (stripe, members) = (striping.stripe, striping.members.len() as u64);
        let full = stripe * members;
        let distance = table.read_ahead_size.map_or(2 * full, |size| size.0).min(1 << 30);
        let sector = u64::from(striping.sector_bytes);
        if let Some(size) = table.read_ahead_size
            && (size.0 > 1 << 30 || size.0 < sector || !size.0.is_multiple_of(sector))
        {
            let problem = format!("{size} is not a multiple of {sector} B up to 1GiB");
            return Err(wrong("read_ahead_size", problem, "use a size such as \"1MiB\""));
        }
        let ahead_most = match table.read_ahead {
            ReadAheadPolicy::None => 0,
            _ => u64::from(table.streams) * distance,
        };
        let room = table.cache.0.saturating_sub(ahead_most);
        if ahead_most > table.cache.0 || (table.write_back && room == 0) {
            let problem = format!(
                "{} leaves no room in addition to the {} that read-ahead may take",
                table.cache,
                Bytes(ahead_most)
            );
            let help = "set a larger cache, or reduce read_ahead_size or streams";
            return Err(wrong("cache", problem, help));
        }
        // A request has 32 bits for its length.
        let unit = if full <= 1 << 30 { full } else { stripe };
        let room = if table.write_back { room } else { 0 };
        let geometry = (stripe, striping.capacity_bytes);
        Ok(Controller {
            link,
            cores: (0..table.cores).map(|core| Reverse((Time::ZERO, core as u16))).collect(),
            queue: EventQueue::new(),
            commands: SlotTable::default(),
            inside: 0,
            writes: WriteCache::new(room, unit, table.destage, table.destage_depth),
            ahead: ReadAhead::new(table.read_ahead, table.streams, distance, geometry),
            waiting: Vec::new(),
            flushes: Vec::new(),
            deferred: None,
            has_lost_member: false,
            parts: Parts::default(),
            now: Time::ZERO,
            batch: Vec::new(),
            table: table.clone(),
        })
    }

    /// Takes `request`, which was checked.
    pub(super) fn submit(
        &mut self,
        now: Time,
        request: Request,
        token: Token,
    ) -> Result<(), SubmitError> {
        if self.inside == self.table.depth {
            return Err(SubmitError::Full);
        }
        self.now = self.now.max(now);
        self.inside += 1;
        self.note_work();
        let arrived = self.link.command(self.now);
        let (free, core) = self.cores.pop().map_or((arrived, 0), |Reverse(next)| next);
        let accepted = arrived.max(free);
        let executed = accepted + self.table.latency.0;
        self.cores.push(Reverse((executed, core)));
        self.parts.execute(core, self.link.ways(), accepted, executed);
        let status = Status::Ok;
        let command = Command { token, request, accepted, status, left: 0, lock: None };
        let slot = self.commands.insert(command);
        self.queue.schedule(executed, Event::Executed(slot));
        Ok(())
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        self.queue.next_time()
    }

    /// Brings controller and members to `now`.
    pub(super) fn reap(&mut self, striping: &mut Striping, now: Time, out: &mut Vec<Completion>) {
        let mut batch = std::mem::take(&mut self.batch);
        loop {
            let times = (striping.next_event(), self.queue.next_time());
            let members_first = match times {
                (Some(members), own) => own.is_none_or(|own| members <= own),
                (None, _) => false,
            };
            let next = if members_first { times.0 } else { times.1 };
            let Some(at) = next.filter(|at| *at <= now) else { break };
            self.now = self.now.max(at);
            if members_first {
                striping.reap(self.now, &mut batch);
                for done in batch.drain(..) {
                    self.members_done(&done, striping);
                }
            } else if let Some((_, event)) = self.queue.pop_due(self.now) {
                match event {
                    Event::Executed(slot) => self.executed(slot, striping),
                    Event::Received(slot) => self.received(slot, striping),
                    Event::Done(slot) => self.done(slot, out),
                }
            }
        }
        self.now = self.now.max(now);
        self.batch = batch;
    }

    /// A core is done with a command.
    fn executed(&mut self, slot: u32, striping: &mut Striping) {
        let Command { request, .. } = self.commands[slot];
        match request.op {
            Op::Read => self.read(slot, striping),
            Op::Write | Op::Flush if self.fails_deferred(slot) => {}
            Op::Write if self.table.write_back => {
                if self.writes.reserve(slot, u64::from(request.length_bytes)) {
                    self.receive(slot);
                }
            }
            Op::Write => self.receive(slot),
            Op::Trim => {
                let extent = Extent::of(&request);
                self.writes.discard(&extent);
                self.admit_stalled();
                self.change(slot, striping);
            }
            Op::Flush => match self.table.flush() {
                FlushPolicy::Complete => self.queue.schedule(self.now, Event::Done(slot)),
                FlushPolicy::PassOn => {
                    self.flushes.push((slot, self.writes.youngest()));
                    self.pass_on_flushes(striping);
                }
            },
        }
    }

    /// A command that reports a failed destage, instead of what it was to do.
    fn fails_deferred(&mut self, slot: u32) -> bool {
        let Some(status) = self.deferred else { return false };
        // A removed member does not come back.
        if !self.has_lost_member {
            self.deferred = None;
        }
        self.end(slot, status);
        true
    }

    fn end(&mut self, slot: u32, status: Status) {
        self.commands[slot].status = status;
        self.queue.schedule(self.now, Event::Done(slot));
    }

    /// The data of a write cross the link.
    fn receive(&mut self, slot: u32) {
        let bytes = self.commands[slot].request.length_bytes;
        let at = self.cross(Direction::ToDevice, bytes);
        self.queue.schedule(at, Event::Received(slot));
    }

    /// When `bytes` that are ready now are across the link.
    fn cross(&mut self, direction: Direction, bytes: u32) -> Time {
        let wire = self.link.reserve(direction, self.now, u64::from(bytes));
        let Some((from, to)) = wire else { return self.now };
        let way = u16::from(direction == Direction::ToHost && self.link.ways() > 1);
        self.parts.transfer(way, from, to);
        to
    }

    fn received(&mut self, slot: u32, striping: &mut Striping) {
        let Command { request, .. } = self.commands[slot];
        if !self.table.write_back {
            self.change(slot, striping);
            return;
        }
        let extent = Extent::of(&request);
        self.ahead.invalidate(&extent);
        self.writes.insert(extent);
        self.queue.schedule(self.now, Event::Done(slot));
        // Overwritten data takes no room twice.
        self.admit_stalled();
        self.destage(striping);
    }

    /// The command changes data on the members, after changes of the same range.
    fn change(&mut self, slot: u32, striping: &mut Striping) {
        let Command { request, .. } = self.commands[slot];
        let extent = Extent::of(&request);
        self.ahead.invalidate(&extent);
        let (lock, free) = self.writes.lock(extent);
        let command = &mut self.commands[slot];
        command.lock = Some(lock);
        command.left = 1;
        if free {
            striping.submit(self.now, request, Purpose::Command(slot).token());
        } else {
            self.waiting.push((lock, slot));
        }
    }

    fn read(&mut self, slot: u32, striping: &mut Striping) {
        let read = Extent::of(&self.commands[slot].request);
        let mut wanted = vec![read];
        self.writes.subtract_from(&mut wanted);
        let waits = self.ahead.subtract_from(&mut wanted, slot);
        self.commands[slot].left = waits + wanted.len() as u32;
        for part in wanted {
            self.read_from_members(slot, &part, striping);
        }
        if self.commands[slot].left == 0 {
            self.send(slot);
        }
        if let Some(stream) = self.ahead.observe(&read) {
            self.read_ahead(stream, striping);
        }
    }

    fn read_from_members(&self, slot: u32, part: &Extent, striping: &mut Striping) {
        // A part is no longer than the request.
        let request = Request::read(part.start, part.bytes() as u32);
        striping.submit(self.now, request, Purpose::Command(slot).token());
    }

    fn read_ahead(&mut self, stream: usize, striping: &mut Striping) {
        let writes = &self.writes;
        while let Some((fetch, extent)) =
            self.ahead.next_fetch(stream, |extent| writes.first_changed(extent))
        {
            let request = Request::read(extent.start, extent.bytes() as u32);
            striping.submit(self.now, request, Purpose::Fetch(fetch).token());
        }
    }

    /// All data of a read are there.
    fn send(&mut self, slot: u32) {
        let Command { status, request, .. } = self.commands[slot];
        let bytes = if status == Status::Ok { request.length_bytes } else { 0 };
        let at = self.cross(Direction::ToHost, bytes);
        self.queue.schedule(at, Event::Done(slot));
    }

    fn destage(&mut self, striping: &mut Striping) {
        while let Some((lock, extent)) = self.writes.next_destage() {
            let request = Request::write(extent.start, extent.bytes() as u32);
            striping.submit(self.now, request, Purpose::Destage(lock).token());
        }
    }

    fn admit_stalled(&mut self) {
        while let Some(slot) = self.writes.next_stalled() {
            self.receive(slot);
        }
    }

    fn pass_on_flushes(&mut self, striping: &mut Striping) {
        let writes = &self.writes;
        let ready = self.flushes.extract_if(.., |(_, age)| writes.are_destaged(*age));
        for (slot, _) in ready {
            self.commands[slot].left = 1;
            striping.submit(self.now, Request::flush(), Purpose::Command(slot).token());
        }
    }

    /// A change has reached the members: what waited for it goes on.
    fn unlock(&mut self, lock: u32, striping: &mut Striping) {
        self.writes.finish(lock);
        if !self.waiting.is_empty() {
            while let Some(free) = self.writes.next_unlocked() {
                let Some(at) = self.waiting.iter().position(|(lock, _)| *lock == free) else {
                    break;
                };
                let (_, slot) = self.waiting.remove(at);
                let request = self.commands[slot].request;
                striping.submit(self.now, request, Purpose::Command(slot).token());
            }
        }
        self.admit_stalled();
        self.destage(striping);
        self.pass_on_flushes(striping);
    }

    /// The members have completed a request.
    fn members_done(&mut self, done: &Completion, striping: &mut Striping) {
        match Purpose::of(done.token) {
            Purpose::Command(slot) => self.part_done(slot, done.status, striping),
            Purpose::Destage(lock) => {
                if done.status != Status::Ok {
                    // The command that reports it completes, so its status is an error.
                    let abandoned = done.status == Status::Abandoned;
                    self.deferred = Some(if abandoned { Status::Error } else { done.status });
                    self.has_lost_member |= striping.has_lost_member();
                }
                self.unlock(lock, striping);
                self.note_work();
            }
            Purpose::Fetch(fetch) => {
                let good = done.status == Status::Ok;
                for (slot, part) in self.ahead.arrived(fetch, good) {
                    match good {
                        true => self.part_done(slot, Status::Ok, striping),
                        false => self.read_from_members(slot, &part, striping),
                    }
                }
                self.note_work();
            }
        }
    }

    /// A part of a command is done.
    fn part_done(&mut self, slot: u32, status: Status, striping: &mut Striping) {
        let command = &mut self.commands[slot];
        if command.status == Status::Ok {
            command.status = status;
        }
        command.left -= 1;
        if command.left > 0 {
            return;
        }
        match (command.request.op, command.lock) {
            (Op::Read, _) => self.send(slot),
            (_, Some(lock)) => {
                self.queue.schedule(self.now, Event::Done(slot));
                self.unlock(lock, striping);
            }
            _ => self.queue.schedule(self.now, Event::Done(slot)),
        }
    }

    fn done(&mut self, slot: u32, out: &mut Vec<Completion>) {
        let Command { token, status, accepted, .. } = self.commands.take(slot);
        self.inside -= 1;
        self.note_work();
        out.push(Completion { token, status, accepted, completed: self.now });
    }

    fn note_work(&mut self) {
        let goes_on = self.inside > 0 || self.writes.is_destaging() || self.ahead.is_busy();
        self.parts.work(self.now, goes_on);
    }

    /// Whether a flush does nothing, because all written data is durable.
    pub(super) fn is_durable(&self) -> bool {
        self.table.flush() == FlushPolicy::Complete
    }

    /// Shows what the controller did to `log`.
    pub(super) fn show_events(&mut self, log: &mut EventLog) {
        self.parts.show_to(log);
    }

    /// Bytes that writes left in the cache and the members do not have yet.
    pub(super) fn buffered_bytes(&self) -> u64 {
        self.writes.held_bytes()
    }

    /// Writes that had to wait for room in the cache so far.
    pub(super) fn buffer_waits(&self) -> u64 {
        self.writes.waits()
    }

    /// Adds the controller's facts to those of the array; returns its parts.
    pub(super) fn describe(&self, facts: &mut DeviceFacts) -> Vec<PartPower> {
        facts.queue_depth = self.table.depth;
        facts.write_buffer_bytes = self.writes.room();
        facts.link_ways = self.link.ways();
        powers(&self.table, self.link.ways())
    }
}
