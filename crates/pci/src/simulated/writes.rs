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
///
/// The first one may [rest](crate::PciDevice::may_rest): then it is no event, and is there before the
/// next thing that is. One at a time, so that each is judged by a device that knows all before it.
#[derive(Debug)]
pub(super) struct Writes {
    queue: VecDeque<Write>,
    /// The first one rests.
    rests: bool,
    /// When the first arrives that does not rest, [`Time::MAX`] for none.
    due: Time,
    /// When the one arrives, or arrived, that set out last.
    last: Time,
}

impl Writes {
    pub(super) fn new() -> Writes {
        Writes {
            queue: VecDeque::with_capacity(64),
            rests: false,
            due: Time::MAX,
            last: Time::ZERO,
        }
    }

    /// When something has to happen, [`Time::MAX`] for never.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// True if the next one rests.
    #[inline]
    pub(super) fn rests(&self) -> bool {
        self.rests
    }

    /// When the next one arrives, [`Time::MAX`] if there is none.
    #[inline]
    pub(super) fn arrival(&self) -> Time {
        self.queue.front().map_or(Time::MAX, |write| write.arrives)
    }

    /// What sets out to arrive at `arrives` is not there before this time: nothing overtakes.
    #[inline]
    pub(super) fn after_all(&self, arrives: Time) -> Time {
        arrives.max(self.last)
    }

    /// Sends `write`; none arrives before those that set out earlier.
    #[inline]
    pub(super) fn push(&mut self, write: Write, may_rest: impl Fn(&Write) -> bool) {
        self.last = self.after_all(write.arrives);
        self.queue.push_back(Write { arrives: self.last, ..write });
        if self.queue.len() <= 2 {
            self.renew(may_rest);
        }
    }

    /// The next one, if it rests and arrives before `before`.
    #[inline]
    pub(super) fn take_resting(&mut self, before: Time) -> Option<Write> {
        if self.rests && self.arrival() < before { self.queue.pop_front() } else { None }
    }

    /// The next one. [`renew`](Writes::renew) must follow when the device has it.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Write> {
        self.queue.pop_front()
    }

    /// Judges the first one again, after the device has changed.
    #[inline]
    pub(super) fn renew(&mut self, may_rest: impl Fn(&Write) -> bool) {
        self.rests = self.queue.front().is_some_and(may_rest);
        let first = self.queue.get(usize::from(self.rests));
        self.due = first.map_or(Time::MAX, |write| write.arrives);
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
        (self.rests, self.due) = (false, Time::MAX);
    }
}
