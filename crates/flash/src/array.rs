//! Dies with their queues, and the channels between them and the controller.
//!
//! Each plane has one queue, served in order; with read priority each die has a second one for
//! reads. A die that falls idle takes, in this order: reads that may overtake, what it suspended,
//! the oldest head of its planes' queues together with the heads that may join it. A channel is a
//! [`Server`]: transfers are reserved at the moment they are ready, first come, first served.

use ssdyno_block::Time;
use ssdyno_engine::events::{Activity, Busy, Cause, EventLog, Part, PartKind};
use ssdyno_engine::{Event, EventQueue, Server};

use crate::die::{Die, Fifo, Group, NIL, Phase, Queued, Slab, Suspended};
use crate::{
    Config, ConfigError, CopyMode, FlashOp, Geometry, MultiPlane, NO_OWNER, OpKind, Timing,
};

/// Something that happens to a die; packs into 26 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashEvent {
    kind: Kind,
    /// The die's generation when an event that can be overtaken was scheduled: older ones are
    /// void. Eight bits suffice, since no event outlives 256 suspensions of its die.
    generation: u8,
    die: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The array phase of the current operation ends.
    ArrayDone,
    /// The next page of a read left the die.
    PageOut,
    /// A program or erase enters its array phase with reads waiting: suspend it now.
    Suspend,
    /// The die has suspended and is free for reads.
    Suspended,
}

impl FlashEvent {
    /// Bits that [`pack`](FlashEvent::pack) needs.
    pub const BITS: u32 = 26;

    /// The event as a number.
    #[inline]
    pub fn pack(self) -> u32 {
        u32::from(self.die) | u32::from(self.generation) << 16 | (self.kind as u32) << 24
    }

    /// The event that was packed into `code`.
    #[inline]
    pub fn unpack(code: u32) -> FlashEvent {
        let kind = match code >> 24 & 3 {
            0 => Kind::ArrayDone,
            1 => Kind::PageOut,
            2 => Kind::Suspend,
            _ => Kind::Suspended,
        };
        FlashEvent { kind, generation: (code >> 16) as u8, die: code as u16 }
    }
}

/// What the array needs of its device at one moment.
pub struct Port<'a, E> {
    /// The moment.
    pub now: Time,
    /// Where the array's events go.
    pub queue: &'a mut EventQueue<E>,
    /// Where the array reports what is busy.
    pub log: &'a mut EventLog,
    /// Owners of the operations that completed, in order; one entry an operation.
    pub done: &'a mut Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    multi_plane: MultiPlane,
    copy: CopyMode,
    read_priority: bool,
    read_burst: u32,
    program_suspend: bool,
    erase_suspend: bool,
}

/// All the flash of a device.
#[derive(Clone, Debug)]
pub struct FlashArray {
    geometry: Geometry,
    timing: Timing,
    rules: Rules,
    dies: Vec<Die>,
    planes: Vec<Fifo>,
    channels: Vec<Server>,
    slab: Slab,
    /// Pages programmed in each block since its erase: programs go upwards, reads stay below.
    written: Vec<u16>,
    channel_of_die: Vec<u16>,
    die_of_plane: Vec<u16>,
    sequence: u32,
}

impl FlashArray {
    /// An erased array.
    pub fn new(config: &Config) -> Result<FlashArray, ConfigError> {
        let geometry = config.geometry()?;
        let timing = config.timing()?;
        if geometry.dies() > u32::from(u16::MAX) {
            return Err(ConfigError::new(
                "flash.chips_per_channel",
                format!("the device would have {} dies", geometry.dies()),
                "65535 dies are supported",
            ));
        }
        let channel_of_die = |die| geometry.channel_of_die(die) as u16;
        let die_of_plane = |plane| geometry.die_of_plane(plane) as u16;
        Ok(FlashArray {
            geometry,
            timing,
            rules: Rules {
                multi_plane: config.multi_plane,
                copy: config.copy,
                read_priority: config.read_priority,
                read_burst: config.read_burst,
                program_suspend: config.program_suspend,
                erase_suspend: config.erase_suspend,
            },
            dies: vec![Die::new(); geometry.dies() as usize],
            planes: vec![Fifo::default(); geometry.planes() as usize],
            channels: vec![Server::default(); geometry.channels as usize],
            slab: Slab::default(),
            written: vec![0; geometry.blocks() as usize],
            channel_of_die: (0..geometry.dies()).map(channel_of_die).collect(),
            die_of_plane: (0..geometry.planes()).map(die_of_plane).collect(),
            sequence: 0,
        })
    }

    /// Sizes and addresses.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Times.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// States that block `block` holds `pages` programmed pages, as after preconditioning.
    pub fn set_written(&mut self, block: u32, pages: u32) {
        self.written[block as usize] = pages as u16;
    }

    /// True when die `die` does nothing and nothing waits for it.
    pub fn is_quiet(&self, die: u32) -> bool {
        let die = &self.dies[die as usize];
        die.phase == Phase::Idle && die.waiting == 0 && die.reads.head == NIL
    }

    /// How much waits for die `die`: operations queued, plus one if it is busy.
    pub fn load(&self, die: u32) -> u32 {
        let die = &self.dies[die as usize];
        die.waiting + u32::from(die.phase != Phase::Idle)
    }

    /// Queues `op`; `owner` appears in [`Port::done`] when it completes, unless [`NO_OWNER`].
    #[inline]
    pub fn enqueue<E: From<FlashEvent> + Event>(
        &mut self,
        op: FlashOp,
        owner: u32,
        port: &mut Port<'_, E>,
    ) {
        self.sequence = self.sequence.wrapping_add(1);
        let die = self.die_of_plane[op.plane as usize];
        let at = self.slab.insert(Queued {
            page: op.page,
            to: op.to,
            owner,
            next: NIL,
            sequence: self.sequence,
            plane: op.plane,
            kind: op.kind,
            sector_only: op.sector_only,
            cause: op.cause,
        });
        let overtakes =
            self.rules.read_priority && op.kind == OpKind::Read && op.cause != Cause::Cleaning;
        if overtakes {
            self.slab.push_back(&mut self.dies[die as usize].reads, at);
        } else {
            self.slab.push_back(&mut self.planes[op.plane as usize], at);
            self.dies[die as usize].waiting += 1;
        }
        match self.dies[die as usize].phase {
            Phase::Idle => self.start(die, port),
            Phase::Array if overtakes => self.want_suspension(die, port),
            _ => {}
        }
    }

    /// Handles one event; returns the die it concerned.
    #[inline]
    pub fn handle<E: From<FlashEvent> + Event>(
        &mut self,
        event: FlashEvent,
        port: &mut Port<'_, E>,
    ) -> u32 {
        let FlashEvent { kind, generation, die } = event;
        let current = self.dies[die as usize].generation == generation;
        match kind {
            Kind::ArrayDone if current => self.array_done(die, port),
            Kind::Suspend if current => {
                if self.dies[die as usize].phase == Phase::Array {
                    self.want_suspension(die, port);
                }
            }
            Kind::ArrayDone | Kind::Suspend => {}
            Kind::PageOut => self.page_out(die, port),
            Kind::Suspended => self.release(die, port),
        }
        u32::from(die)
    }

    /// The next page of a read is at the controller; with the last the die is free.
    fn page_out<E: From<FlashEvent> + Event>(&mut self, die: u16, port: &mut Port<'_, E>) {
        let d = &mut self.dies[die as usize];
        let at = d.pages_out;
        d.pages_out += 1;
        let Some(op) = d.group.ops().get(at as usize).copied() else { return };
        let last = at + 1 == d.group.len;
        self.complete(op, port);
        if last {
            self.release(die, port);
        }
    }

    fn release<E: From<FlashEvent> + Event>(&mut self, die: u16, port: &mut Port<'_, E>) {
        self.dies[die as usize].phase = Phase::Idle;
        self.start(die, port);
    }

    fn complete<E>(&mut self, op: u32, port: &mut Port<'_, E>) {
        let op = self.slab.remove(op);
        if op.owner != NO_OWNER {
            port.done.push(op.owner);
        }
    }

    /// Gives an idle die its next work.
    fn start<E: From<FlashEvent> + Event>(&mut self, die: u16, port: &mut Port<'_, E>) {
        let d = &self.dies[die as usize];
        let other_work = d.suspended.is_some() || d.waiting > 0;
        let turn_over =
            self.rules.read_burst > 0 && d.reads_in_row >= self.rules.read_burst && other_work;
        if d.reads.head != NIL
            && (!turn_over || self.erase_would_hurt(die))
            && let Some(group) = self.pick_reads(die)
        {
            self.dies[die as usize].reads_in_row += 1;
            return self.begin_read(die, group, port);
        }
        let d = &mut self.dies[die as usize];
        d.reads_in_row = 0;
        if let Some(suspended) = d.suspended.take() {
            d.group = suspended.group;
            d.phase = Phase::Array;
            d.array_from = port.now + self.timing.suspend;
            d.array_to = d.array_from + suspended.remaining;
            return self.schedule_array_done(die, port);
        }
        if d.waiting == 0 {
            return;
        }
        let group = self.pick_oldest(die);
        match group.kind {
            OpKind::Read => self.begin_read(die, group, port),
            OpKind::Program => self.begin_program(die, group, port),
            OpKind::Copy => self.begin_copy(die, group, port),
            OpKind::Erase => self.begin_erase(die, group, port),
        }
    }

    /// True if the next program or erase is the erase of a block that a waiting read wants.
    fn erase_would_hurt(&self, die: u16) -> bool {
        let d = &self.dies[die as usize];
        if d.suspended.is_some() {
            return false;
        }
        let next = self.oldest_plane(die).map(|plane| *self.slab.get(self.planes[plane].head));
        let Some(next) = next.filter(|op| op.kind == OpKind::Erase) else { return false };
        let block = self.geometry.block_of_page(next.page);
        let mut at = d.reads.head;
        while at != NIL {
            let read = self.slab.get(at);
            if self.geometry.block_of_page(read.page) == block {
                return true;
            }
            at = read.next;
        }
        false
    }

    /// True if a waiting read could start now. One that wants the very page that the die is
    /// programming could not, and must not suspend it.
    fn read_is_ready(&self, die: u16) -> bool {
        let mut at = self.dies[die as usize].reads.head;
        while at != NIL {
            let read = self.slab.get(at);
            let block = self.geometry.block_of_page(read.page);
            let number = self.geometry.pages_per_block.remainder(read.page);
            if u32::from(self.written[block as usize]) > number {
                return true;
            }
            at = read.next;
        }
        false
    }

    /// Reads that can start now, one a plane: their pages are programmed already.
    fn pick_reads(&mut self, die: u16) -> Option<Group> {
        let mut group = Group::new(OpKind::Read);
        let mut planes = 0u64;
        let mut page_in_block = None;
        let mut before = NIL;
        let mut at = self.dies[die as usize].reads.head;
        while at != NIL {
            let read = *self.slab.get(at);
            let number = self.geometry.pages_per_block.remainder(read.page);
            let block = self.geometry.block_of_page(read.page);
            let ready = u32::from(self.written[block as usize]) > number;
            let bit = 1 << (read.plane % self.geometry.planes_per_die);
            if ready && planes & bit == 0 && self.may_join(page_in_block, number) {
                let mut list = self.dies[die as usize].reads;
                let taken = self.slab.take_after(&mut list, before);
                self.dies[die as usize].reads = list;
                group.push(taken);
                planes |= bit;
                page_in_block = Some(number);
                if self.rules.multi_plane == MultiPlane::Off
                    || u32::from(group.len) == self.geometry.planes_per_die
                {
                    break;
                }
            } else {
                before = at;
            }
            at = read.next;
        }
        (group.len > 0).then_some(group)
    }

    fn may_join(&self, first: Option<u32>, number: u32) -> bool {
        match (first, self.rules.multi_plane) {
            (None, _) | (_, MultiPlane::Any) => true,
            (Some(first), MultiPlane::SamePage) => first == number,
            (Some(_), MultiPlane::Off) => false,
        }
    }

    fn planes_of(&self, die: u16) -> std::ops::Range<usize> {
        let planes = self.geometry.planes_per_die as usize;
        die as usize * planes..(die as usize + 1) * planes
    }

    /// The plane whose head waits longest.
    fn oldest_plane(&self, die: u16) -> Option<usize> {
        let waiting = self.planes_of(die).filter(|plane| self.planes[*plane].head != NIL);
        waiting.min_by_key(|plane| {
            // Distance from the newest: survives the wrap of the sequence.
            let sequence = self.slab.get(self.planes[*plane].head).sequence;
            std::cmp::Reverse(self.sequence.wrapping_sub(sequence))
        })
    }

    /// The oldest head, and the heads of other planes that may join it.
    fn pick_oldest(&mut self, die: u16) -> Group {
        let Some(oldest) = self.oldest_plane(die) else { return Group::new(OpKind::Read) };
        let first = *self.slab.get(self.planes[oldest].head);
        let mut group = Group::new(first.kind);
        self.take_head(die, oldest, &mut group);
        if self.rules.multi_plane == MultiPlane::Off {
            return group;
        }
        let number = self.page_number(&first);
        for plane in self.planes_of(die) {
            let head = self.planes[plane].head;
            if head == NIL || plane == oldest {
                continue;
            }
            let other = self.slab.get(head);
            if other.kind == first.kind && self.may_join(Some(number), self.page_number(other)) {
                self.take_head(die, plane, &mut group);
            }
        }
        group
    }

    fn take_head(&mut self, die: u16, plane: usize, group: &mut Group) {
        let taken = self.slab.take_after(&mut self.planes[plane], NIL);
        self.dies[die as usize].waiting -= 1;
        group.push(taken);
    }

    /// The number in its block of the page that decides about joining: where data goes to.
    fn page_number(&self, op: &Queued) -> u32 {
        let page = if op.kind == OpKind::Copy { op.to } else { op.page };
        self.geometry.pages_per_block.remainder(page)
    }

    fn longest(&self, group: &Group, time: impl Fn(&Queued) -> Time) -> Time {
        group.ops().iter().map(|op| time(self.slab.get(*op))).max().unwrap_or(Time::ZERO)
    }

    /// Array read of the pages that `group` comes from, and the strict check that they hold data.
    fn read_time(&self, group: &Group) -> Time {
        self.longest(group, |op| {
            let number = self.geometry.pages_per_block.remainder(op.page);
            let block = self.geometry.block_of_page(op.page);
            assert!(
                number < u32::from(self.written[block as usize]),
                "read of page {number} of block {block}, which is not programmed"
            );
            self.timing.read(number)
        })
    }

    fn program_time(&self, group: &Group) -> Time {
        self.longest(group, |op| self.timing.program(self.page_number(op)))
    }

    /// Cause reported for a group: that of its oldest member.
    fn cause(&self, group: &Group) -> Cause {
        group.ops().first().map_or(Cause::None, |op| self.slab.get(*op).cause)
    }

    fn log_die<E>(
        &self,
        die: u16,
        activity: Activity,
        (from, to): (Time, Time),
        operations: u8,
        port: &mut Port<'_, E>,
    ) {
        let group = &self.dies[die as usize].group;
        let part = Part { kind: PartKind::Die, index: die };
        let cause = self.cause(group);
        port.log.push(Busy { part, activity, cause, operations, from, to });
    }

    /// Reserves die `die`'s channel from now on; `operations` counts pages, 0 = commands only.
    fn transfer<E>(
        &mut self,
        die: u16,
        length: Time,
        operations: u8,
        port: &mut Port<'_, E>,
    ) -> (Time, Time) {
        let index = self.channel_of_die[die as usize];
        let (from, to) = self.channels[index as usize].reserve(port.now, length);
        if operations > 0 {
            self.log_die(die, Activity::Transfer, (from, to), operations, port);
        }
        port.log.push(Busy {
            part: Part { kind: PartKind::Channel, index },
            activity: Activity::Transfer,
            cause: self.cause(&self.dies[die as usize].group),
            operations,
            from,
            to,
        });
        (from, to)
    }

    /// Command cycles on the bus; the array starts when they end.
    fn command<E>(&mut self, die: u16, port: &mut Port<'_, E>) -> Time {
        let commands = self.timing.command * u64::from(self.dies[die as usize].group.len);
        if commands == Time::ZERO { port.now } else { self.transfer(die, commands, 0, port).1 }
    }

    fn schedule_array_done<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut Port<'_, E>,
    ) {
        let d = &mut self.dies[die as usize];
        d.generation = d.generation.wrapping_add(1);
        let at = d.array_to;
        port.queue.schedule(at, self.event(Kind::ArrayDone, die).into());
    }

    fn begin_read<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        group: Group,
        port: &mut Port<'_, E>,
    ) {
        let length = self.read_time(&group);
        let d = &mut self.dies[die as usize];
        d.group = group;
        d.phase = Phase::Busy;
        let from = self.command(die, port);
        let to = from + length;
        self.log_die(die, Activity::Read, (from, to), group.len, port);
        self.dies[die as usize].array_to = to;
        self.schedule_array_done(die, port);
    }

    fn begin_program<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        group: Group,
        port: &mut Port<'_, E>,
    ) {
        self.dies[die as usize].group = group;
        let one = |op: &u32| match self.slab.get(*op).sector_only {
            true => self.timing.command + self.timing.sector_transfer,
            false => self.timing.command + self.timing.transfer,
        };
        let length = group.ops().iter().map(one).sum();
        let (_, arrived) = self.transfer(die, length, group.len, port);
        self.enter_array(die, arrived, self.program_time(&group), port);
    }

    fn begin_erase<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        group: Group,
        port: &mut Port<'_, E>,
    ) {
        self.dies[die as usize].group = group;
        let from = self.command(die, port);
        self.enter_array(die, from, self.timing.erase, port);
    }

    fn begin_copy<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        group: Group,
        port: &mut Port<'_, E>,
    ) {
        let length = self.read_time(&group);
        self.dies[die as usize].group = group;
        let from = self.command(die, port);
        let to = from + length;
        self.log_die(die, Activity::Read, (from, to), group.len, port);
        if self.rules.copy == CopyMode::CopyBack {
            return self.enter_array(die, to, self.program_time(&group), port);
        }
        let d = &mut self.dies[die as usize];
        d.phase = Phase::Busy;
        d.array_to = to;
        self.schedule_array_done(die, port);
    }

    fn enter_array<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        from: Time,
        length: Time,
        port: &mut Port<'_, E>,
    ) {
        let d = &mut self.dies[die as usize];
        d.phase = Phase::Array;
        d.array_from = from;
        d.array_to = from + length;
        self.schedule_array_done(die, port);
    }

    fn array_done<E: From<FlashEvent> + Event>(&mut self, die: u16, port: &mut Port<'_, E>) {
        let Die { phase, group, array_from, .. } = self.dies[die as usize];
        match group.kind {
            OpKind::Read => return self.pages_out(die, &group, port),
            // The pages are in the registers: out to the controller and in again.
            OpKind::Copy if phase == Phase::Busy => {
                let pages = u64::from(group.len);
                let length = (self.timing.transfer * 2 + self.timing.command) * pages;
                let (_, arrived) = self.transfer(die, length, group.len * 2, port);
                self.enter_array(die, arrived, self.program_time(&group), port);
                return self.want_suspension(die, port);
            }
            OpKind::Program | OpKind::Copy => {
                self.log_die(die, Activity::Program, (array_from, port.now), group.len, port);
            }
            OpKind::Erase => {
                self.log_die(die, Activity::Erase, (array_from, port.now), group.len, port);
            }
        }
        for op in group.ops() {
            self.note_written(*op);
            self.complete(*op, port);
        }
        self.release(die, port);
    }

    /// Sends the pages of a read over the channel, one after another.
    fn pages_out<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        group: &Group,
        port: &mut Port<'_, E>,
    ) {
        self.dies[die as usize].pages_out = 0;
        for _ in group.ops() {
            let (_, to) = self.transfer(die, self.timing.transfer, 1, port);
            port.queue.schedule(to, self.event(Kind::PageOut, die).into());
        }
    }

    fn event(&self, kind: Kind, die: u16) -> FlashEvent {
        FlashEvent { kind, die, generation: self.dies[die as usize].generation }
    }

    /// Keeps the record of programmed pages, and the strict check of their order.
    fn note_written(&mut self, op: u32) {
        let op = self.slab.get(op);
        let target = if op.kind == OpKind::Copy { op.to } else { op.page };
        let block = self.geometry.block_of_page(target);
        let written = &mut self.written[block as usize];
        if op.kind == OpKind::Erase {
            *written = 0;
            return;
        }
        let number = self.geometry.pages_per_block.remainder(target);
        assert!(
            number >= u32::from(*written),
            "program of page {number} of block {block} after page {written}: out of order"
        );
        *written = number as u16 + 1;
    }

    /// A read came while a program or erase is under way: suspend it where the rules allow.
    fn want_suspension<E: From<FlashEvent> + Event>(&mut self, die: u16, port: &mut Port<'_, E>) {
        let d = &self.dies[die as usize];
        let allowed = match d.group.kind {
            OpKind::Program | OpKind::Copy => self.rules.program_suspend,
            OpKind::Erase => self.rules.erase_suspend,
            OpKind::Read => false,
        };
        if !allowed || d.suspended.is_some() || !self.read_is_ready(die) {
            return;
        }
        if port.now >= d.array_from {
            self.suspend(die, port);
        } else {
            let at = d.array_from;
            port.queue.schedule(at, self.event(Kind::Suspend, die).into());
        }
    }

    fn suspend<E: From<FlashEvent> + Event>(&mut self, die: u16, port: &mut Port<'_, E>) {
        let Die { group, array_from, array_to, .. } = self.dies[die as usize];
        let remaining = array_to.saturating_sub(port.now);
        // Not worth it when it ends before the read could start.
        if remaining <= self.timing.suspend {
            return;
        }
        let activity =
            if group.kind == OpKind::Erase { Activity::Erase } else { Activity::Program };
        self.log_die(die, activity, (array_from, port.now), 0, port);
        let d = &mut self.dies[die as usize];
        d.generation = d.generation.wrapping_add(1);
        d.suspended = Some(Suspended { group, remaining });
        d.phase = Phase::Busy;
        let at = port.now + self.timing.suspend;
        port.queue.schedule(at, self.event(Kind::Suspended, die).into());
    }
}
