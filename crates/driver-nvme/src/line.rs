//! Commands in the order of their deadlines.
//!
//! All commands of a pair have the same timeout, and time does not go back, so the order of submission is the order of
//! deadlines. A command that ends stays in its line until it is the first; then it is left behind. It costs one write
//! per I/O command, and finds the next deadline in a constant number of steps for any number of late commands.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

use ssdyno_block::try_list;

/// A line. Places are numbered modulo 2^16; the slot shows by its place whether the command of an entry is still the
/// one that was entered there.
#[derive(Debug)]
pub(crate) struct Line {
    /// A power of two of them, at least twice the commands that can be in the line.
    tags: Vec<u16>,
    head: u16,
    tail: u16,
    /// Entries that were looked at.
    pub(crate) steps: u64,
}

impl Line {
    /// For up to `commands` commands, 2^14 at most.
    pub(crate) fn new(commands: u32) -> Result<Line, TryReserveError> {
        // Twice the commands: at most half of a full line is live, so `tidy` frees at least half
        // of the places and its cost spreads over as many later commands.
        let places = (commands.clamp(1, 1 << 14) * 2).next_power_of_two();
        Ok(Line { tags: try_list(0, places as usize)?, head: 0, tail: 0, steps: 0 })
    }

    #[inline(always)]
    fn place(&mut self, at: u16) -> &mut u16 {
        let mask = self.tags.len() - 1;
        &mut self.tags[usize::from(at) & mask]
    }

    /// There is no room: [`tidy`](Line::tidy) makes some.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        usize::from(self.tail.wrapping_sub(self.head)) == self.tags.len()
    }

    /// Puts `tag` at the end; gives its place.
    #[inline(always)]
    pub(crate) fn push(&mut self, tag: u16) -> u16 {
        debug_assert!(!self.is_full());
        let at = self.tail;
        *self.place(at) = tag;
        self.tail = at.wrapping_add(1);
        at
    }

    /// The first command that still is in the line, as `is_in` says by tag and place.
    pub(crate) fn first(&mut self, is_in: impl Fn(u16, u16) -> bool) -> Option<u16> {
        while self.head != self.tail {
            self.steps += 1;
            let at = self.head;
            let tag = *self.place(at);
            if is_in(tag, at) {
                return Some(tag);
            }
            self.head = at.wrapping_add(1);
        }
        None
    }

    /// Moves up those that still are in the line: `moves` says whether a command is, by its tag and its old
    /// place, and notes its new one. Half of the places are free after that, so it costs a constant number
    /// of steps for each command that was put in.
    #[cold]
    pub(crate) fn tidy(&mut self, mut moves: impl FnMut(u16, u16, u16) -> bool) {
        let (mut from, mut to) = (self.head, self.head);
        while from != self.tail {
            self.steps += 1;
            let tag = *self.place(from);
            if moves(tag, from, to) {
                *self.place(to) = tag;
                to = to.wrapping_add(1);
            }
            from = from.wrapping_add(1);
        }
        self.tail = to;
    }

    /// The line is empty.
    pub(crate) fn clear(&mut self) {
        self.tail = self.head;
    }
}
