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

/// The same in words of 64 bits. It is read a moment after it was written, and a processor that must
/// put one wide load together out of narrow stores waits until all stores before them are done: 25 ns
/// a doorbell, as measured.
#[derive(Clone, Copy, Debug)]
struct Packed {
    arrives: Time,
    /// Bar and offset.
    target: u64,
    value: u64,
}

/// All of them, in the order of the calls, which is that of their arrival.
#[derive(Debug)]
pub(super) struct Writes {
    queue: VecDeque<Packed>,
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

    /// A write that arrives at `arrives` is not visible before this time: nothing overtakes.
    #[inline]
    pub(super) fn after_all(&self, arrives: Time) -> Time {
        arrives.max(self.last)
    }

    /// As [`after_all`](Writes::after_all), and nothing that sets out later will be there before.
    #[inline]
    pub(super) fn set_out(&mut self, arrives: Time) -> Time {
        // Cores have different clocks, so a later call can carry an earlier time. The maximum keeps
        // posted writes in the order of the calls, which PCI requires of one requester.
        self.last = self.after_all(arrives);
        self.last
    }

    /// Sends `write`; none arrives before those that set out earlier.
    #[inline]
    pub(super) fn push(&mut self, write: Write) {
        let arrives = self.set_out(write.arrives);
        self.due = self.due.min(arrives);
        let target = u64::from(write.bar) << 32 | u64::from(write.offset);
        self.queue.push_back(Packed { arrives, target, value: write.value.into() });
    }

    /// The next one.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Write> {
        let &Packed { arrives, target, value } = self.queue.front()?;
        self.queue.pop_front();
        self.due = self.queue.front().map_or(Time::MAX, |write| write.arrives);
        Some(Write {
            arrives,
            bar: (target >> 32) as u8,
            offset: target as u32,
            value: value as u32,
        })
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.due = Time::MAX;
    }
}
