//! How long an operation keeps its die and channel.

use ssdyno_block::Time;
use ssdyno_engine::Event;
use ssdyno_engine::events::{Activity, Busy, FlashCause, PartEvent, PartKind};

use super::FlashArray;
use super::event::{FlashEvent, Kind, PlanePort};
use super::line::{Step, Transfer};
use crate::die::{Die, Group, NIL, Phase, Queued};
use crate::{CopyMode, OpKind};

impl FlashArray {
    /// Array read of the pages that `group` comes from, and the strict check that they hold data.
    #[inline(always)]
    pub(super) fn read_time(&self, group: &Group) -> Time {
        let mut longest = Time::ZERO;
        for (_, op) in self.slab.members(group) {
            let Queued { kind, page, .. } = *op;
            // A program that joined copies needs nothing from the array before its data comes
            // in. Only the pages of the copies are read.
            if kind == OpKind::Program {
                continue;
            }
            let number = self.geometry.pages_per_block.remainder(page);
            let block = self.geometry.block_of_page(page);
            if !self.written.holds(block, number) {
                not_programmed(block, number);
            }
            // Planes that work together start together, and the die is busy until the slowest
            // has ended. With several page types in a block their times differ.
            longest = longest.max(self.timing.read(number));
        }
        longest
    }

    #[inline(always)]
    pub(super) fn program_time(&self, group: &Group) -> Time {
        let mut longest = Time::ZERO;
        for (_, op) in self.slab.members(group) {
            let number = self.page_number(op);
            if number == 0 {
                // Nothing was heard of this block for long.
                self.written.prefetch_pages(self.geometry.block_of_page(op.target()));
            }
            longest = longest.max(self.timing.program(number));
        }
        longest
    }

    #[inline(always)]
    pub(super) fn log_die<E>(
        &self,
        die: u16,
        activity: Activity,
        (from, to): (Time, Time),
        operations: u8,
        port: &mut PlanePort<'_, E>,
    ) {
        let cause = self.dies[die as usize].group.cause;
        let part = PartEvent::new(PartKind::Die, die);
        port.log.push(Busy { part, activity, cause, operations, from, to });
    }

    /// The work of the array of `die` for its current group: `operations`, of its members that are
    /// `counted`.
    #[inline(always)]
    fn log_array<E>(
        &self,
        die: u16,
        activity: Activity,
        (from, to): (Time, Time),
        (operations, counted): (u8, impl Fn(&Queued) -> bool),
        port: &mut PlanePort<'_, E>,
    ) {
        if self.dies[die as usize].group.mixed {
            self.log_causes(die, activity, (from, to), counted, port);
        } else {
            self.log_die(die, activity, (from, to), operations, port);
        }
    }

    /// Members of different causes share the time, which is that of the oldest; each counts for
    /// its own cause.
    fn log_causes<E>(
        &self,
        die: u16,
        activity: Activity,
        (from, to): (Time, Time),
        counted: impl Fn(&Queued) -> bool,
        port: &mut PlanePort<'_, E>,
    ) {
        // A program of the host that joined a copy of cleaning once counted as cleaning.
        // Relocations and host programs together were then more than all programs.
        let group = &self.dies[die as usize].group;
        let part = PartEvent::new(PartKind::Die, die);
        for cause in FlashCause::ALL {
            let members = self.slab.members(group);
            let own = members.filter(|(_, op)| op.cause == cause && counted(op)).count() as u8;
            // The die is busy once, not once for each cause. One cause alone gets the time, or
            // the parts of the busy time would add up to more than the whole.
            let to = if cause == group.cause { to } else { from };
            // Neither time nor operations: the log leaves it out.
            port.log.push(Busy { part, activity, cause, operations: own, from, to });
        }
    }

    pub(super) fn schedule_array_done<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        let d = &mut self.dies[die as usize];
        // A suspension cannot take an event out of the queue. It raises the generation instead,
        // and the event that was scheduled before is recognised as void when it comes.
        d.generation = d.generation.wrapping_add(1);
        let at = d.array_to;
        port.queue.schedule(at, self.event(Kind::ArrayDone, die).into());
    }

    #[inline(always)]
    pub(super) fn begin_read<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        group: Group,
        port: &mut PlanePort<'_, E>,
    ) {
        let d = &mut self.dies[die as usize];
        d.group = group;
        // Only programs and erases can be suspended. A read takes tens of microseconds, and
        // operations that arrive meanwhile wait for its end.
        d.phase = Phase::Busy;
        self.ask_command(Step::ReadCommand, die, port);
    }

    /// The array of `die` reads, from `from` on.
    #[inline(always)]
    pub(super) fn read_array<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        from: Time,
        port: &mut PlanePort<'_, E>,
    ) {
        let group = &self.dies[die as usize].group;
        let to = from + self.read_time(group);
        self.log_array(die, Activity::Read, (from, to), (group.len, |_| true), port);
        self.dies[die as usize].array_to = to;
        self.schedule_array_done(die, port);
    }

    pub(super) fn begin_program<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        group: Group,
        port: &mut PlanePort<'_, E>,
    ) {
        // With cache registers the data may come while the array still programs the page before.
        // The group of the die then describes the array, and the registers have a group of their
        // own.
        if self.rules.cache_program {
            return self.load_registers(die, group, port);
        }
        self.dies[die as usize].group = group;
        self.ask_data_in(Step::In, die, (&group, Time::ZERO), port);
    }

    /// Command, address and data of `group`'s programs on the bus, while the array works until `array_to`.
    #[inline(always)]
    pub(super) fn ask_data_in<E: From<FlashEvent> + Event>(
        &mut self,
        step: Step,
        die: u16,
        (group, array_to): (&Group, Time),
        port: &mut PlanePort<'_, E>,
    ) {
        // The planes of a die share one channel. Their data goes in one after another, and the
        // array starts only when the last plane has its data: the sum and not the maximum
        // counts.
        let length = self.slab.members(group).map(|(_, op)| self.time_in(op)).sum();
        let (pages, cause) = (group.len, group.cause);
        self.ask(Transfer { step, die, pages, cause, length, array_to }, port);
    }

    /// Command and data of a program on the bus.
    fn time_in(&self, op: &Queued) -> Time {
        let data = if op.sector_only { self.timing.sector_transfer } else { self.timing.transfer };
        self.timing.command + data
    }

    pub(super) fn begin_erase<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        group: Group,
        port: &mut PlanePort<'_, E>,
    ) {
        self.dies[die as usize].group = group;
        self.fetch_written(&group);
        self.ask_command(Step::EraseCommand, die, port);
    }

    /// Fetches ahead what [`note_written`](FlashArray::note_written) will change.
    fn fetch_written(&self, group: &Group) {
        for (_, op) in self.slab.members(group) {
            self.written.prefetch_pages(self.geometry.block_of_page(op.target()));
        }
    }

    pub(super) fn begin_copy<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        group: Group,
        port: &mut PlanePort<'_, E>,
    ) {
        self.dies[die as usize].group = group;
        self.ask_command(Step::CopyCommand, die, port);
    }

    /// The array of `die` reads what is to be copied, from `from` on.
    pub(super) fn read_to_copy<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        from: Time,
        port: &mut PlanePort<'_, E>,
    ) {
        let group = &self.dies[die as usize].group;
        let to = from + self.read_time(group);
        let copies = (group.copies, |op: &Queued| op.kind == OpKind::Copy);
        self.log_array(die, Activity::Read, (from, to), copies, port);
        // Copy-back stays inside the plane. Nothing crosses the channel between read and
        // program, so the two array times follow each other without an event in between.
        if self.rules.copy == CopyMode::CopyBack {
            let length = self.program_time(&self.dies[die as usize].group);
            return self.enter_array(die, to, length, port);
        }
        let d = &mut self.dies[die as usize];
        // The phase distinguishes the two halves of a copy when the array is done: `Busy` after the
        // read, `Array` after the program.
        d.phase = Phase::Busy;
        d.array_to = to;
        self.schedule_array_done(die, port);
    }

    pub(super) fn enter_array<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        from: Time,
        length: Time,
        port: &mut PlanePort<'_, E>,
    ) {
        let d = &mut self.dies[die as usize];
        d.phase = Phase::Array;
        d.array_from = from;
        d.array_to = from + length;
        self.schedule_array_done(die, port);
    }

    #[inline(always)]
    pub(super) fn array_done<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        let Die { phase, group, array_from, .. } = self.dies[die as usize];
        match group.kind {
            OpKind::Read => {
                self.note_contents(&group);
                if self.rules.cache_read {
                    return self.page_registers_full(die, port);
                }
                return self.pages_out(die, &group, port);
            }
            // The pages are in the registers: out to the controller and in again.
            OpKind::Copy if phase == Phase::Busy => {
                let one = |(_, op): (u32, &Queued)| match op.kind {
                    OpKind::Copy => self.timing.transfer + self.time_in(op),
                    _ => self.time_in(op),
                };
                let length = self.slab.members(&group).map(one).sum();
                // Each copy crosses the channel twice, out to the controller and in again. A
                // program that joined crosses once.
                let (pages, cause) = (group.len + group.copies, group.cause);
                let step = Step::Through;
                let array_to = Time::ZERO;
                return self.ask(Transfer { step, die, pages, cause, length, array_to }, port);
            }
            OpKind::Program | OpKind::Copy => {
                let span = (array_from, port.now);
                self.log_array(die, Activity::Program, span, (group.len, |_| true), port);
            }
            OpKind::Erase => {
                let span = (array_from, port.now);
                self.log_array(die, Activity::Erase, span, (group.len, |_| true), port);
            }
        }
        self.note_contents(&group);
        // The link and the operation are read before the member completes. Completing frees its
        // place in the slab, and `next` then belongs to the list of unused places.
        let mut at = group.first();
        while at != NIL {
            let next = self.slab.get(at).next;
            self.note_written(at);
            self.complete(at, port);
            at = next;
        }
        if self.rules.cache_program {
            return self.array_free(die, port);
        }
        self.release(die, port);
    }

    /// In tests: moves, or compares, the contents of the pages.
    #[inline]
    fn note_contents(&mut self, group: &Group) {
        if cfg!(debug_assertions)
            && let Some(shadow) = &mut self.shadow
        {
            for (at, op) in self.slab.members(group) {
                shadow.ended(at, op, &self.geometry);
            }
        }
    }

    /// Sends the pages of a read over the channel, one after another.
    pub(super) fn pages_out<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        group: &Group,
        port: &mut PlanePort<'_, E>,
    ) {
        let (cause, length) = (group.cause, self.timing.transfer);
        // Each page is a transfer of its own and completes its own request. With an order other
        // than first come, first served, another die may use the channel between two pages.
        for _ in 0..group.len {
            let array_to = Time::ZERO;
            self.ask(Transfer { step: Step::Out, die, pages: 1, cause, length, array_to }, port);
        }
    }

    pub(super) fn event(&self, kind: Kind, die: u16) -> FlashEvent {
        FlashEvent { kind, die, generation: self.dies[die as usize].generation }
    }

    /// Keeps the record of programmed pages, and the strict check of their order.
    #[inline(always)]
    pub(super) fn note_written(&mut self, op: u32) {
        let op = self.slab.get(op);
        let target = op.target();
        let block = self.geometry.block_of_page(target);
        // The epoch changes when the erase has ended and not when it was queued. Until then the
        // old data can still be read.
        if op.kind == OpKind::Erase {
            self.written.set(block, 0);
            if let Some(epochs) = self.epochs.get_mut(block as usize) {
                epochs.now = epochs.now.wrapping_add(1);
            }
            return;
        }
        let number = self.geometry.pages_per_block.remainder(target);
        // The FTL owes programs that go upwards in a block. A violation is a bug of the FTL, and
        // it shows here at the operation that broke the rule.
        let written = self.written.advance(block, number as u16);
        if number < u32::from(written) {
            out_of_order(block, number, written);
        }
    }
}

#[cold]
fn not_programmed(block: u32, number: u32) -> ! {
    panic!("read of page {number} of block {block}, which is not programmed")
}

#[cold]
fn out_of_order(block: u32, number: u32, written: u16) -> ! {
    panic!("program of page {number} of block {block} after page {written}: out of order")
}
