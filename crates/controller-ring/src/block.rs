//! The block that is with the card: its descriptors, and how far each of its stages is.

use std::collections::VecDeque;

use ssdyno_block::Time;
use ssdyno_engine::events::{Activity, EventLog, PartKind};
use ssdyno_spec::ring::{Descriptor, ErrorKind, RingFault};
use zerocopy::FromZeros;

use super::registers::Setup;

/// Where a command stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
    /// Nothing here.
    #[default]
    Empty,
    /// Fetched or under way.
    Pending,
    /// The answer is known.
    Done,
    /// Handed to a return.
    Returning,
}

/// A descriptor in the card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    /// As fetched.
    pub(super) descriptor: Descriptor,
    pub(super) state: State,
    pub(super) error: Option<ErrorKind>,
    /// The medium fails it: its time is taken first.
    pub(super) fails: bool,
}

impl Default for Local {
    fn default() -> Local {
        Local {
            descriptor: Descriptor::new_zeroed(),
            state: State::Empty,
            error: None,
            fails: false,
        }
    }
}

/// Numbers go round; `a` is before `b` if the shorter way leads up.
pub(super) fn before(a: u32, b: u32) -> bool {
    // The difference as a signed number is right as long as the two are less than 2^31 apart.
    // The ring has at most 65536 descriptors, so they always are.
    (a.wrapping_sub(b) as i32) < 0
}

/// The block with the card, and descriptors held behind it. Descriptors go by number; the last
/// ones have a slot each.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Descriptors in the card, by number modulo their count.
    pub(super) local: Vec<Local>,
    /// Number of the first descriptor of the block, and one past its last.
    pub(super) first: u32,
    pub(super) end: u32,
    /// A block is with the card.
    pub(super) outstanding: bool,
    /// Nothing was given since the card was switched on: the first descriptor says its number.
    fresh: bool,
    /// One past the last number that is in the card; behind `end` they are held.
    pub(super) fetched: u32,
    /// The next command to start.
    next_command: u32,
    /// Everything before it was handed to a return, in the modes that return in order.
    pub(super) answered: u32,
    /// Descriptors of the block that are back with the host.
    pub(super) returned: u32,
    /// Number of the first descriptor and how many, for each return that a microprocessor has to set up.
    pub(super) returns: VecDeque<(u32, u32)>,
    /// Since when something is in the card.
    busy_since: Option<Time>,
}

impl Block {
    /// No block, with room for `descriptors`, a power of two.
    pub(super) fn new(descriptors: u32) -> Block {
        Block {
            local: vec![Local::default(); descriptors as usize],
            fresh: true,
            returns: VecDeque::with_capacity(descriptors as usize),
            ..Block::default()
        }
    }

    /// The card is switched off: there is no block any more.
    pub(super) fn clear(&mut self, now: Time, log: &mut EventLog) {
        self.outstanding = false;
        self.fresh = true;
        (self.first, self.end, self.fetched, self.next_command) = (0, 0, 0, 0);
        (self.answered, self.returned) = (0, 0);
        self.returns.clear();
        self.idle(now, log);
    }

    /// Nothing is in the card any more.
    pub(super) fn idle(&mut self, now: Time, log: &mut EventLog) {
        if let Some(since) = self.busy_since.take() {
            log.busy((PartKind::Controller, 0), Activity::InService, (since, now));
        }
    }

    /// The slot of descriptor `number`.
    #[inline]
    pub(super) fn slot(&self, number: u32) -> usize {
        number as usize & (self.local.len() - 1)
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> &Local {
        &self.local[slot]
    }
    #[inline]
    pub(super) fn get_mut(&mut self, slot: usize) -> &mut Local {
        &mut self.local[slot]
    }

    /// The host gives `size` descriptors from index `offset` on, of which a block has at most
    /// `size_max`. Gives how many of them are held.
    ///
    /// # Errors
    /// [`RingFault::BadBlock`]: there cannot be such a block now.
    pub(super) fn give(
        &mut self,
        now: Time,
        setup: &Setup,
        size_max: u32,
        (offset, size): (u32, u32),
    ) -> Result<u32, RingFault> {
        let held = self.fetched.wrapping_sub(self.end);
        let due = self.end & (setup.size - 1);
        let most = size_max.min(setup.size);
        // The block must follow the one before, because descriptors that are held behind that
        // one belong to it. A block with fewer descriptors than are held would leave some of
        // them without a block.
        let fits = (1..=most).contains(&size) && size >= held && offset < setup.size;
        if !fits || !self.fresh && offset != due {
            return Err(RingFault::BadBlock);
        }
        if self.fresh {
            // Numbers begin anywhere that agrees with the index; the first descriptor will say.
            (self.end, self.fetched, self.next_command) = (offset, offset, offset);
        }
        // The card counts as busy from the first doorbell on, also while it only fetches. The
        // host waits for it in that time.
        self.busy_since.get_or_insert(now);
        self.outstanding = true;
        self.first = self.end;
        self.answered = self.first;
        self.end = self.first.wrapping_add(size);
        self.returned = 0;
        Ok(held)
    }

    /// Number of the first descriptor that is not in the card, and how many of the block are not.
    pub(super) fn missing(&self) -> (u32, u32) {
        (self.fetched, self.end.wrapping_sub(self.fetched))
    }

    /// True if all of the block is in the card, and nothing behind it.
    pub(super) fn holds_nothing(&self) -> bool {
        self.fetched == self.end
    }

    /// A descriptor comes into the card. False if it was prefetched and is not the next command of
    /// the host yet: it stays outside.
    pub(super) fn take(&mut self, setup: &Setup, descriptor: Descriptor, prefetch: bool) -> bool {
        if self.fresh {
            self.renumber(setup, descriptor.number.get());
        }
        let due = self.fetched;
        // Owner, kind and number must all be right. The number finds a descriptor of the last
        // round whose owner bit was left set.
        let right = descriptor.is_with_device()
            && descriptor.is_command()
            && descriptor.number.get() == due;
        if prefetch && !right {
            return false;
        }
        // A wrong descriptor of a block takes its place all the same and ends with an error. The
        // block can then be returned in full, and the host sees which descriptor was wrong.
        let error = (!right).then_some(ErrorKind::NotACommand);
        let slot = self.slot(due);
        self.local[slot] = Local { descriptor, state: State::Pending, error, fails: false };
        self.fetched = due.wrapping_add(1);
        true
    }

    /// The first descriptor since the card was switched on says where numbers stand.
    fn renumber(&mut self, setup: &Setup, number: u32) {
        self.fresh = false;
        // A number that does not fit its index is wrong. `take` will refuse the descriptor, and
        // the numbers stay as they are.
        if number & (setup.size - 1) != self.first & (setup.size - 1) {
            return;
        }
        let shift = number.wrapping_sub(self.first);
        // All counters move by the same amount, so that their differences stay. A driver that
        // was restarted may go on with its own numbers.
        for place in [
            &mut self.first,
            &mut self.end,
            &mut self.fetched,
            &mut self.next_command,
            &mut self.answered,
        ] {
            *place = place.wrapping_add(shift);
        }
    }

    /// True if a command is there that has not started.
    pub(super) fn has_command(&self) -> bool {
        before(self.next_command, self.fetched)
    }

    /// Number of the next command, which starts, and whether it is the last of its block.
    pub(super) fn next_command(&mut self) -> (u32, bool) {
        let number = self.next_command;
        self.next_command = number.wrapping_add(1);
        (number, self.next_command == self.end && self.outstanding)
    }
}

/// The prefetch that is under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefetch {
    /// Pieces that are still to come.
    pub(super) pieces: u32,
    /// A doorbell that came before it was through.
    pub(super) early_doorbell: Option<(u32, u32)>,
}

impl Prefetch {
    pub(super) fn is_under_way(&self) -> bool {
        self.pieces > 0
    }

    /// The doorbell that waited, once the prefetch is through.
    pub(super) fn take_doorbell(&mut self) -> Option<(u32, u32)> {
        if self.is_under_way() { None } else { self.early_doorbell.take() }
    }
}
