//! The drive: commands from the bus to the medium and back.

use ssdyno_block::{
    BlockTarget, Completion, ConfigError, Op, Request, Status, SubmitError, Time, Token,
};
use ssdyno_device::{Device, DeviceConfig, DeviceFacts, DeviceReport, Medium};
use ssdyno_energy::{PartPower, PowerModel};
use ssdyno_engine::events::EventLog;
use ssdyno_engine::{EventQueue, FifoResource, SlotTable};

use crate::cache::{Extent, ReadCache, Stretches};
use crate::config::{DiskConfig, DiskTable};
use crate::layout::Run;
use crate::mechanics::Mechanics;
use crate::parts::Parts;
use crate::schedule::{Job, Schedule};
use crate::write_back::WriteBack;

ssdyno_engine::event_kinds! {
    /// The events inside, by slot of the command.
    #[derive(Clone, Copy, Debug)]
    enum Event << 29 {
        /// The electronics have decoded the command.
        Ready(u32) = 0,
        /// The first data of a read are there for the bus.
        Media(u32) = 1,
        /// The data of a write are in the cache.
        Written(u32) = 2,
        /// The command completes.
        Done(u32) = 3,
        /// The arm is free.
        Free = 4,
    }
}

/// A command inside.
#[derive(Clone, Copy, Debug)]
struct Slot {
    token: Token,
    accepted: Time,
    op: Op,
    block: u64,
    blocks: u32,
    /// Of a write-through: when the last of its data is across.
    across: Time,
}

/// The commands inside, and the time of each step.
#[derive(Debug, Default)]
struct Commands {
    slots: SlotTable<Slot>,
    inside: u32,
    /// The last command was a write.
    after_write: bool,
    /// Where the last write ended.
    write_end: u64,
    /// Where the last read ended.
    read_end: u64,
    arrivals: u64,
}

/// The present work of the arm.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// A command reads these blocks, which begin with what lies together.
    Read(Extent, Run),
    /// A command writes through.
    Write,
    /// An extent of the cache is written back.
    Back(u32),
    /// The spindle comes to speed.
    SpinUp,
}

/// The arm and whoever waits for it.
#[derive(Debug)]
struct Arm {
    mechanics: Mechanics,
    schedule: Schedule,
    waiting: Vec<Job>,
    work: Option<Work>,
}

/// See the crate.
#[derive(Debug)]
pub struct Disk {
    table: DiskTable,
    queue: EventQueue<Event>,
    commands: Commands,
    arm: Arm,
    reads: ReadCache,
    writes: WriteBack,
    electronics: FifoResource,
    bus: FifoResource,
    /// Picoseconds of a block on the bus.
    bus_block: u64,
    /// When the drive was last at work, for its standby timer.
    quiet_since: Time,
    parts: Parts,
    stretches: Stretches,
}

impl Disk {
    /// The drive that the file describes, with an empty cache. `seed` decides about the angle of the
    /// spindle at time 0.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn new(config: &DiskConfig, seed: u64) -> Result<Disk, ConfigError> {
        let table = &config.disk;
        table.check()?;
        let mechanics = Mechanics::new(table, seed)?;
        let cache = table.cache.as_ref();
        Ok(Disk {
            queue: EventQueue::new(),
            commands: Commands { write_end: u64::MAX, read_end: u64::MAX, ..Commands::default() },
            reads: ReadCache::new(table, cache),
            writes: WriteBack::new(table, cache),
            arm: Arm {
                mechanics,
                schedule: Schedule::new(table.scheduler),
                waiting: Vec::new(),
                work: None,
            },
            electronics: FifoResource::default(),
            bus: FifoResource::default(),
            bus_block: (table.sector.0 as f64 * 1e12 / table.bus.0).round() as u64,
            quiet_since: Time::ZERO,
            parts: Parts::default(),
            stretches: Stretches::new(),
            table: table.clone(),
        })
    }

    /// Time of `blocks` on the bus, from `ready` on.
    fn transfer(&mut self, ready: Time, blocks: u32) -> Time {
        let length = Time::from_ps(self.bus_block * u64::from(blocks));
        let (from, to) = self.bus.reserve(ready, length);
        self.parts.bus(from, to);
        to
    }

    /// How long the electronics think about a command that arrives at `now`.
    fn overhead(&mut self, now: Time, op: Op, extent: &Extent) -> Time {
        let overhead = &self.table.overhead;
        let after_write = self.commands.after_write;
        match op {
            Op::Read => {
                self.reads.advance(now, &mut self.arm.mechanics, &mut self.stretches);
                let hit = self.reads.has(extent) || self.writes.has(extent);
                let apart =
                    overhead.read_hit_apart.filter(|_| extent.start != self.commands.read_end);
                let base = match hit {
                    true => apart.unwrap_or(overhead.read_hit),
                    false => overhead.read_miss,
                };
                let more = if after_write { overhead.read_after_write.0 } else { Time::ZERO };
                base.0 + more
            }
            Op::Write => {
                let hit = extent.start == self.commands.write_end || self.reads.touches(extent);
                let base = if hit { overhead.write_hit } else { overhead.write_miss };
                let more = if after_write { Time::ZERO } else { overhead.write_after_read.0 };
                base.0 + more
            }
            Op::Trim | Op::Flush => overhead.read_hit.0,
        }
    }

    /// When the spindle stops if nothing more comes; `None` if the drive works, or never rests.
    fn rests_from(&self) -> Option<Time> {
        let after = self.table.power.standby_after?.0;
        let quiet = self.commands.inside == 0 && self.arm.work.is_none() && self.writes.is_empty();
        quiet.then(|| self.quiet_since.saturating_add(after))
    }

    /// Spins up where the drive went to rest.
    fn wake(&mut self, now: Time) {
        let Some(rests_from) = self.rests_from().filter(|at| *at < now) else { return };
        self.reads.stop(rests_from, &mut self.arm.mechanics, &mut self.stretches);
        let ready = now + self.table.power.spin_up_time.0;
        self.parts.standby(rests_from, now, ready);
        self.arm.work = Some(Work::SpinUp);
        self.queue.schedule(ready, Event::Free);
    }

    fn ready(&mut self, at: Time, slot: u32) {
        let Slot { op, block, blocks, .. } = self.commands.slots[slot];
        let extent = Extent::new(block, blocks);
        match op {
            Op::Trim => self.queue.schedule(at, Event::Done(slot)),
            Op::Flush => {
                if self.writes.flush(slot) {
                    self.queue.schedule(at, Event::Done(slot));
                }
            }
            Op::Read => {
                self.reads.advance(at, &mut self.arm.mechanics, &mut self.stretches);
                if self.reads.has(&extent) {
                    self.reads.hit(&extent, at, &mut self.arm.mechanics);
                    self.queue.schedule(at, Event::Media(slot));
                } else if self.writes.has(&extent) {
                    self.queue.schedule(at, Event::Media(slot));
                } else {
                    self.wait(slot, false, block, blocks);
                    self.dispatch(at);
                }
            }
            Op::Write => {
                self.reads
                    .written(&extent, self.table.cache.as_ref().is_some_and(|c| c.keep_written));
                if !self.writes.is_on() {
                    self.commands.slots[slot].across = self.transfer(at, blocks);
                    self.wait(slot, true, block, blocks);
                    self.dispatch(at);
                } else if self.writes.reserve(slot, &extent) {
                    let across = self.transfer(at, blocks);
                    self.queue.schedule(across, Event::Written(slot));
                }
            }
        }
    }

    /// Puts a command into the queue of the arm.
    fn wait(&mut self, slot: u32, write: bool, block: u64, blocks: u32) {
        self.commands.arrivals += 1;
        let run = self.arm.mechanics.layout.run(block);
        let order = self.commands.arrivals;
        self.arm.waiting.push(Job { id: slot, write, block, blocks, run, order });
    }

    /// The data of a write are in the cache: the command completes, and the arm may write them.
    fn written(&mut self, at: Time, slot: u32, out: &mut Vec<Completion>) {
        let Slot { block, blocks, .. } = self.commands.slots[slot];
        let layout = &self.arm.mechanics.layout;
        self.writes.insert(Extent::new(block, blocks), |start| layout.run(start));
        self.done(at, slot, out);
        self.dispatch(at);
    }

    /// Gives the arm something to do, where it has nothing.
    fn dispatch(&mut self, at: Time) {
        if self.arm.work.is_some() {
            return;
        }
        let Arm { mechanics, schedule, waiting, .. } = &mut self.arm;
        // Commands of the host first, unless one of them waits for room in the cache.
        if !self.writes.is_pressed()
            && let Some(index) = schedule.choose(at, waiting, mechanics)
        {
            let job = waiting.remove(index);
            return if job.write { self.write(at, job) } else { self.read(at, job) };
        }
        if let Some(index) = schedule.choose(at, self.writes.jobs(), mechanics) {
            let job = self.writes.take(index);
            return self.write_back(at, job);
        }
        if let Some(index) = schedule.choose(at, waiting, mechanics) {
            let job = waiting.remove(index);
            if job.write { self.write(at, job) } else { self.read(at, job) }
        }
    }

    /// The arm reads for a command.
    fn read(&mut self, at: Time, job: Job) {
        let wanted = Extent::new(job.block, job.blocks);
        let mechanics = &mut self.arm.mechanics;
        let stretches = &mut self.stretches;
        let (first, end) = match self.reads.goes_on(&wanted, at, mechanics, stretches) {
            Some(passed) => {
                self.parts.read_on(at, stretches);
                passed
            }
            None => {
                let free = self.reads.stop(at, mechanics, stretches);
                let access = mechanics.access(free, &job.run, job.block, job.blocks, false);
                self.parts.read_ahead(stretches);
                self.parts.access(free, &access, false);
                (access.first, access.end)
            }
        };
        self.parts.read_ahead(&mut self.stretches);
        // The bus ends with the last block, or later where it is slower than the medium.
        let before_last = Time::from_ps(self.bus_block * u64::from(job.blocks - 1));
        let begins = first.max(end.saturating_sub(before_last));
        self.queue.schedule(begins, Event::Media(job.id));
        self.occupy(end, Work::Read(wanted, job.run));
    }

    /// The arm writes for a command, past the cache.
    fn write(&mut self, at: Time, job: Job) {
        let across = self.commands.slots[job.id].across;
        let end = self.put(at, &job, across);
        self.queue.schedule(end, Event::Done(job.id));
        self.occupy(end, Work::Write);
    }

    fn write_back(&mut self, at: Time, job: Job) {
        let end = self.put(at, &job, at);
        self.occupy(end, Work::Back(job.id));
    }

    /// Writes a job's blocks, the last of which are there at `across`; gives the end.
    fn put(&mut self, at: Time, job: &Job, across: Time) -> Time {
        let mechanics = &mut self.arm.mechanics;
        let free = self.reads.stop(at, mechanics, &mut self.stretches);
        let mut access = mechanics.access(free, &job.run, job.block, job.blocks, true);
        // Data that is not there when its sector passes waits for the next turn.
        let turn = mechanics.layout.turn();
        let late = across.saturating_sub(access.end).as_ps().div_ceil(turn);
        let late = Time::from_ps(late * turn);
        (access.from, access.end) = (access.from + late, access.end + late);
        self.parts.read_ahead(&mut self.stretches);
        self.parts.access(free, &access, true);
        access.end
    }

    fn occupy(&mut self, until: Time, work: Work) {
        self.arm.work = Some(work);
        self.queue.schedule(until, Event::Free);
    }

    /// The arm has done what it was at.
    fn free(&mut self, at: Time) {
        match self.arm.work.take() {
            Some(Work::Read(extent, run)) => {
                self.reads.fill(&extent, &run, at, &self.arm.mechanics);
            }
            Some(Work::Back(id)) => {
                for slot in self.writes.finish(id) {
                    self.queue.schedule(at, Event::Done(slot));
                }
                while let Some(slot) = self.writes.next_stalled() {
                    let Slot { blocks, .. } = self.commands.slots[slot];
                    let across = self.transfer(at, blocks);
                    self.queue.schedule(across, Event::Written(slot));
                }
            }
            Some(Work::Write | Work::SpinUp) | None => {}
        }
        self.quiet_since = at;
        self.dispatch(at);
    }

    fn done(&mut self, at: Time, slot: u32, out: &mut Vec<Completion>) {
        let Slot { token, accepted, .. } = self.commands.slots.take(slot);
        self.commands.inside -= 1;
        self.quiet_since = at;
        out.push(Completion { token, status: Status::Ok, accepted, completed: at });
    }
}

impl BlockTarget for Disk {
    fn capacity_bytes(&self) -> u64 {
        self.arm.mechanics.layout.blocks * self.table.sector.0
    }

    fn sector_bytes(&self) -> u32 {
        self.table.sector.0 as u32
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        if self.commands.inside == self.table.depth {
            return Err(SubmitError::Full);
        }
        self.wake(now);
        let (block, blocks) = match request.op {
            Op::Flush => (0, 0),
            Op::Read | Op::Write | Op::Trim => {
                let blocks = u64::from(request.length_bytes) / self.table.sector.0;
                (request.offset_bytes / self.table.sector.0, blocks as u32)
            }
        };
        let extent = Extent::new(block, blocks);
        let overhead = self.overhead(now, request.op, &extent);
        let (accepted, ready) = self.electronics.reserve(now, overhead);
        self.parts.command(accepted, ready);
        let commands = &mut self.commands;
        commands.inside += 1;
        commands.after_write = request.op == Op::Write;
        match request.op {
            Op::Write => commands.write_end = extent.end,
            Op::Read => commands.read_end = extent.end,
            Op::Trim | Op::Flush => {}
        }
        let entry = Slot { token, accepted, op: request.op, block, blocks, across: now };
        let slot = commands.slots.insert(entry);
        self.queue.schedule(ready, Event::Ready(slot));
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        while let Some((at, event)) = self.queue.pop_due(now) {
            match event {
                Event::Ready(slot) => self.ready(at, slot),
                Event::Media(slot) => {
                    let Slot { blocks, .. } = self.commands.slots[slot];
                    let across = self.transfer(at, blocks);
                    self.queue.schedule(across, Event::Done(slot));
                }
                Event::Written(slot) => self.written(at, slot, out),
                Event::Done(slot) => self.done(at, slot, out),
                Event::Free => self.free(at),
            }
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.queue.next_time()
    }
}

impl Device for Disk {
    fn events(&mut self) -> &mut EventLog {
        self.parts.log()
    }

    fn report(&self, report: &mut DeviceReport) {
        let cache = self.table.cache.as_ref();
        let write_buffer_bytes = cache.map_or(0, |cache| cache.write_back.0);
        let facts = DeviceFacts { write_buffer_bytes, ..DeviceFacts::of(self, self.table.depth) };
        let powers: Vec<PartPower> = Parts::powers(&self.table.power);
        let unit = report.unit(DiskConfig::NAME, facts, PowerModel::Parts(powers));
        unit.buffered_bytes = self.writes.held_bytes(u64::from(self.sector_bytes()));
        unit.buffer_waits = self.writes.waits();
        if let Some(at) = self.rests_from() {
            (unit.idle_states, unit.idle_part) = (vec![(0, at)], Some(Parts::resting()));
        }
    }

    fn volatile_cache(&self) -> bool {
        self.table.cache.as_ref().is_some_and(|cache| cache.write_back.0 > 0)
    }

    fn medium(&self) -> Medium {
        Medium { rotation_rpm: self.table.rpm.round() as u32, ..Medium::default() }
    }
}
