//! Which commands are late: lines of the outstanding ones in the order of their deadlines, so that the watchdog looks
//! at few of them.

use ssdyno_block::MonotonicTime;

use super::{IoQueue, LINES, Overdue, Slot, SlotState};

impl IoQueue {
    /// Puts `tag` at the end of a line; gives its place there.
    #[inline(always)]
    pub(super) fn line_up(&mut self, tag: u16, line: usize) -> u16 {
        // Entries of commands that have completed stay in the line. They are removed only when the
        // line is full of them, which is rare and takes constant time per command.
        if self.lines[line].is_full() {
            self.tidy(line);
        }
        self.lines[line].push(tag)
    }

    #[cold]
    fn tidy(&mut self, line: usize) {
        let (slots, state) = (&mut self.slots, LINES[line]);
        self.lines[line].tidy(|tag, from, to| {
            let is_in = is_in(slots, tag, from, state);
            if is_in {
                slots[usize::from(tag)].place = to;
            }
            is_in
        });
    }

    /// The first command of a line, and its deadline.
    fn first(&mut self, line: usize) -> Option<(u16, MonotonicTime)> {
        let (slots, state) = (&self.slots, LINES[line]);
        let tag = self.lines[line].first(|tag, at| is_in(slots, tag, at, state))?;
        Some((tag, self.slots[usize::from(tag)].deadline))
    }

    /// The first deadline of an outstanding command, if any.
    pub(crate) fn deadline(&mut self) -> Option<MonotonicTime> {
        (0..LINES.len()).filter_map(|line| self.first(line)).map(|(_, deadline)| deadline).min()
    }

    /// A command whose time is up; those that an abort did not help first.
    pub(crate) fn overdue(&mut self, now: MonotonicTime) -> Option<Overdue> {
        let [waiting, late, aborting] = [0, 1, 2].map(|line| self.first(line));
        // A command whose abort did not help needs a reset. A reset ends all others, too, so
        // nothing else is worth doing.
        if aborting.is_some_and(|(_, deadline)| deadline <= now) {
            return Some(Overdue::Lost);
        }
        let due = waiting.into_iter().chain(late).filter(|(_, deadline)| *deadline <= now);
        // The command that has waited longest comes first: the controller takes few aborts at a
        // time (ACL), and others may still complete by themselves.
        due.min_by_key(|(_, deadline)| *deadline).map(|(tag, _)| Overdue::Late(tag))
    }

    /// The identifier of the command in slot `tag`.
    pub(crate) fn identifier(&self, tag: u16) -> u16 {
        self.slots[usize::from(tag)].identifier(tag, self.tag_bits)
    }

    /// The late command in slot `tag` gets until `deadline`, which is not earlier than any before;
    /// `aborting` if the controller was asked to abort it.
    pub(crate) fn extend(&mut self, tag: u16, deadline: MonotonicTime, aborting: bool) {
        let line = if aborting { 2 } else { 1 };
        let place = self.line_up(tag, line);
        let slot = &mut self.slots[usize::from(tag)];
        (slot.deadline, slot.place, slot.state) = (deadline, place, LINES[line]);
    }

    /// Command `id` is outstanding, and its abort was asked for.
    pub(crate) fn is_aborting(&self, id: u16) -> bool {
        let tag = self.tag_of(id);
        let slot = self.slots.get(usize::from(tag));
        slot.is_some_and(|s| {
            s.state == SlotState::Aborting && s.identifier(tag, self.tag_bits) == id
        })
    }

    /// Entries that were looked at to find deadlines.
    pub(crate) fn watchdog_steps(&self) -> u64 {
        self.lines.iter().map(|line| line.steps).sum()
    }
}

/// The entry of `tag` at place `at` of the line of `state` counts: it is not that of an earlier use.
fn is_in(slots: &[Slot], tag: u16, at: u16, state: SlotState) -> bool {
    let slot = &slots[usize::from(tag)];
    // The place distinguishes the uses of the slot. A command that ended and a new one in the same
    // slot have different places.
    slot.state == state && slot.place == at
}
