//! Register writes on their way to the device.

use alloc::collections::VecDeque;

use ssdyno_block::Time;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) arrives: Time,
    pub(super) bar: u8,
    pub(super) offset: u32,
    pub(super) value: u32,
}

/// All of them, in the order of the calls, which is that of their arrival.
#[derive(Debug)]
pub(super) struct Writes {
    queue: VecDeque<Write>,
    /// When the next one arrives, [`Time::MAX`] if there is none.
    due: Time,
    /// When the one arrives, or arrived, that set out last.
    last: Time,
}

impl Writes {
    pub(super) fn new() -> Writes {
        Writes { queue: VecDeque::with_capacity(64), due: Time::MAX, last: Time::ZERO }
    }

    /// When the next one arrives, [`Time::MAX`] if there is none.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// What sets out to arrive at `arrives` is not there before this time: nothing overtakes.
    #[inline]
    pub(super) fn after_all(&self, arrives: Time) -> Time {
        arrives.max(self.last)
    }

    /// As [`after_all`](Writes::after_all), and nothing that sets out later will be there before.
    #[inline]
    pub(super) fn set_out(&mut self, arrives: Time) -> Time {
        self.last = self.after_all(arrives);
        self.last
    }

    /// Sends `write`; none arrives before those that set out earlier.
    #[inline]
    pub(super) fn push(&mut self, write: Write) {
        let arrives = self.set_out(write.arrives);
        self.due = self.due.min(arrives);
        self.queue.push_back(Write { arrives, ..write });
    }

    /// The next one.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Write> {
        let write = self.queue.pop_front();
        self.due = self.queue.front().map_or(Time::MAX, |write| write.arrives);
        write
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.due = Time::MAX;
    }
}
