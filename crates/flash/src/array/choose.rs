//! The next operation of an idle die.

use ssdyno_engine::Event;
use ssdyno_engine::events::FlashCause;

use super::FlashArray;
use super::event::{FlashEvent, Other, PlanePort};
use crate::die::{Group, NIL, Phase, Queued};
use crate::{CopyMode, MultiPlane, OpKind};

impl FlashArray {
    /// Gives an idle die its next work.
    pub(super) fn start<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        // Reads of the host go first, because a host waits for them. A suspended operation comes
        // next: a die keeps only one, and another program or erase may not begin before it has
        // ended.
        if self.reads_have_turn(die)
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
            // Resuming takes as long as suspending. The rest of the array time starts after it,
            // and a further suspension counts from there.
            d.array_from = port.now + self.timing.suspend;
            d.array_to = d.array_from + suspended.remaining;
            // The event for the cache registers was ignored while the die was suspended. It is
            // scheduled again, or no data would come in before the array is done.
            if self.rules.cache_program {
                let at = d.array_from;
                port.queue.schedule(at, FlashEvent::other(Other::RegistersFree, die).into());
            }
            return self.schedule_array_done(die, port);
        }
        if d.waiting == 0 {
            return;
        }
        let group = self.pick_oldest(die, self.rules.copy == CopyMode::Controller);
        match group.kind {
            OpKind::Read => self.begin_read(die, group, port),
            OpKind::Program => self.begin_program(die, group, port),
            OpKind::Copy => self.begin_copy(die, group, port),
            OpKind::Erase => self.begin_erase(die, group, port),
        }
    }

    /// True if reads wait that may overtake, and have not had more than their turn.
    #[inline(always)]
    pub(super) fn reads_have_turn(&self, die: u16) -> bool {
        let d = &self.dies[die as usize];
        let other_work = d.suspended.is_some() || d.waiting > 0;
        // Without a limit an endless stream of reads would keep a program waiting forever. An erase
        // that would destroy the data of a waiting read must still come after that read, regardless
        // of the limit.
        let turn_over =
            self.rules.read_burst > 0 && d.reads_in_row >= self.rules.read_burst && other_work;
        d.reads.head != NIL && (!turn_over || self.erase_would_hurt(die))
    }

    /// True if the next program or erase is the erase of a block that a waiting read wants.
    pub(super) fn erase_would_hurt(&self, die: u16) -> bool {
        let d = &self.dies[die as usize];
        // The suspended operation goes on first. The erase in the queue cannot be the next
        // operation. The question is asked again when the die is idle once more.
        if d.suspended.is_some() {
            return false;
        }
        let next = self.oldest_plane(die).map(|plane| *self.slab.get(self.planes[plane].head));
        next.is_some_and(|op| op.kind == OpKind::Erase && self.is_wanted(die, op.page))
    }

    /// True if a waiting read wants what lies now in the block that `page` is in.
    pub(super) fn is_wanted(&self, die: u16, page: u32) -> bool {
        let block = self.geometry.block_of_page(page);
        let mut at = self.dies[die as usize].reads.head;
        while at != NIL {
            let read = self.slab.get(at);
            // A read of a later epoch waits for data that will be programmed after the erase.
            // The erase does not hurt it.
            if self.geometry.block_of_page(read.page) == block
                && self.epochs[block as usize].now == read.epoch
            {
                return true;
            }
            at = read.next;
        }
        false
    }

    /// True if a waiting read could start now. One that wants the very page that the die is
    /// programming could not, and must not suspend it.
    pub(super) fn read_is_ready(&self, die: u16) -> bool {
        let mut at = self.dies[die as usize].reads.head;
        while at != NIL {
            let read = self.slab.get(at);
            if self.is_there(read.page, read.epoch) {
                return true;
            }
            at = read.next;
        }
        false
    }

    /// The epoch that the operations queued so far leave the block of `page` in.
    #[inline]
    pub(super) fn epoch(&self, page: u32) -> u16 {
        let block = self.geometry.block_of_page(page) as usize;
        self.epochs.get(block).map_or(0, |epochs| epochs.queued)
    }

    /// The erase of the block of `page` was queued.
    pub(super) fn queue_erase(&mut self, page: u32) {
        let block = self.geometry.block_of_page(page) as usize;
        if let Some(epochs) = self.epochs.get_mut(block) {
            // Operations that are queued from now on belong to the contents after the erase.
            // They carry the new epoch, and they do not match the old data that still lies in
            // the block.
            epochs.queued = epochs.queued.wrapping_add(1);
        }
    }

    /// True if `page` is programmed with its data of `epoch`.
    #[inline]
    fn is_there(&self, page: u32, epoch: u16) -> bool {
        let block = self.geometry.block_of_page(page);
        let number = self.geometry.pages_per_block.remainder(page);
        self.epochs[block as usize].now == epoch && self.written.holds(block, number)
    }

    /// The place, and its epoch, from which the data of `page` can be read now: while a copy to it waits, this is the
    /// source of the copy, which stays until the erase after the copy. Without this a read would wait for all the
    /// cleaning that is queued before the copy.
    #[inline]
    pub(super) fn readable(&self, die: u16, plane: u32, page: u32, epoch: u16) -> (u32, u16) {
        if self.is_there(page, epoch) {
            return (page, epoch);
        }
        match self.copy_to(die, plane, page, epoch) {
            Some((from, epoch)) => self.readable(die, plane, from, epoch),
            // It waits for a program: the data is not in the flash yet.
            None => (page, epoch),
        }
    }

    /// The source of the write to `page` in `epoch`, waiting or under way, if that is a copy. A page
    /// is written once in an epoch, and its source was written before it, so following sources
    /// comes to an end.
    #[cold]
    fn copy_to(&self, die: u16, plane: u32, page: u32, epoch: u16) -> Option<(u32, u16)> {
        let is_it = |op: &Queued| match op.kind {
            OpKind::Copy => op.to == page && op.to_epoch == epoch,
            OpKind::Program => op.page == page && op.to_epoch == epoch,
            OpKind::Read | OpKind::Erase => false,
        };
        let source = |op: &Queued| (op.kind == OpKind::Copy).then_some((op.page, op.epoch));
        let d = &self.dies[die as usize];
        let current = if d.phase == Phase::Idle { None } else { Some(&d.group) };
        let suspended = d.suspended.as_ref().map(|suspended| &suspended.group);
        let groups = current.into_iter().chain(suspended);
        let mut begun = groups.flat_map(|group| self.slab.members(group));
        if let Some((_, op)) = begun.find(|(_, op)| is_it(op)) {
            return source(op);
        }
        let mut at = self.planes[plane as usize].head;
        while at != NIL {
            let op = self.slab.get(at);
            if is_it(op) {
                return source(op);
            }
            at = op.next;
        }
        None
    }

    /// Reads that can start now, one a plane: their pages are programmed already.
    pub(super) fn pick_reads(&mut self, die: u16) -> Option<Group> {
        let mut group = Group::new(OpKind::Read, FlashCause::Host);
        let mut planes = 0u64;
        let mut page_in_block = None;
        let mut before = NIL;
        let mut at = self.dies[die as usize].reads.head;
        while at != NIL {
            let Queued { page, epoch, plane, cause, next, .. } = *self.slab.get(at);
            let number = self.geometry.pages_per_block.remainder(page);
            let ready = self.is_there(page, epoch);
            // A plane has one page register, so it takes one read of a group. The bits mark the
            // planes that are in the group already; a die has at most 16 planes.
            let bit = 1 << (plane % self.geometry.planes_per_die);
            if ready && planes & bit == 0 && self.may_join(page_in_block, number) {
                let mut list = self.dies[die as usize].reads;
                let taken = self.slab.take_after(&mut list, before);
                self.dies[die as usize].reads = list;
                if group.len == 0 {
                    group.cause = cause;
                }
                self.slab.join(&mut group, taken);
                planes |= bit;
                page_in_block = Some(number);
                if self.rules.multi_plane == MultiPlane::Off
                    || u32::from(group.len) == self.geometry.planes_per_die
                    || group.is_full()
                {
                    break;
                }
            } else {
                // A read that cannot start stays where it is. The next one is linked to it, so
                // `before` moves on only past reads that stay.
                before = at;
            }
            at = next;
        }
        (group.len > 0).then_some(group)
    }

    pub(super) fn may_join(&self, first: Option<u32>, number: u32) -> bool {
        match (first, self.rules.multi_plane) {
            (None, _) | (_, MultiPlane::Any) => true,
            (Some(first), MultiPlane::SamePage) => first == number,
            (Some(_), MultiPlane::Off) => false,
        }
    }

    pub(super) fn planes_of(&self, die: u16) -> std::ops::Range<usize> {
        let planes = self.geometry.planes_per_die as usize;
        die as usize * planes..(die as usize + 1) * planes
    }

    /// The plane whose head waits longest.
    #[inline(always)]
    pub(super) fn oldest_plane(&self, die: u16) -> Option<usize> {
        let range = self.planes_of(die);
        let first = range.start;
        let mut oldest = None;
        let mut longest_wait = 0;
        for (plane, queue) in self.planes[range].iter().enumerate() {
            if queue.head == NIL {
                continue;
            }
            // Distance from the newest: survives the wrap of the sequence.
            let wait = self.sequence.wrapping_sub(self.slab.get(queue.head).sequence);
            if oldest.is_none() || wait > longest_wait {
                (oldest, longest_wait) = (Some(first + plane), wait);
            }
        }
        oldest
    }

    /// The oldest head, and the heads of other planes that may join it; copies and programs join one another
    /// where pages that move go `through` the controller.
    #[inline(always)]
    pub(super) fn pick_oldest(&mut self, die: u16, through: bool) -> Group {
        let Some(oldest) = self.oldest_plane(die) else {
            return Group::new(OpKind::Read, FlashCause::None);
        };
        let first = self.slab.get(self.planes[oldest].head);
        let number = self.page_number(first);
        let mut group = Group::new(first.kind, first.cause);
        self.take_head(die, oldest, &mut group);
        // Most groups have one member. The test spares them the walk over the planes of the die.
        // Nothing else can join if no operation waits.
        if self.rules.multi_plane == MultiPlane::Off || self.dies[die as usize].waiting == 0 {
            return group;
        }
        for plane in self.planes_of(die) {
            let head = self.planes[plane].head;
            if head == NIL || plane == oldest || group.is_full() {
                continue;
            }
            let other = self.slab.get(head);
            // An erase that only joins is not the oldest operation, so `erase_would_hurt` did
            // not look at it. It must not destroy what a waiting read wants either.
            let harmless = other.kind != OpKind::Erase || !self.is_wanted(die, other.page);
            if group.admits(other.kind, through)
                && harmless
                && self.may_join(Some(number), self.page_number(other))
            {
                self.take_head(die, plane, &mut group);
            }
        }
        group
    }

    #[inline(always)]
    pub(super) fn take_head(&mut self, die: u16, plane: usize, group: &mut Group) {
        let taken = self.slab.take_after(&mut self.planes[plane], NIL);
        self.dies[die as usize].waiting -= 1;
        if self.slab.get(taken).kind == OpKind::Copy {
            // An operation that joins a copy waits for its read.
            group.kind = OpKind::Copy;
        }
        self.slab.join(group, taken);
    }

    /// The number in its block of the page that decides about joining: where data goes to.
    pub(super) fn page_number(&self, op: &Queued) -> u32 {
        self.geometry.pages_per_block.remainder(op.target())
    }
}
