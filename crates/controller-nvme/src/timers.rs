//! The controller's actions at a later time, outside the steady flow of commands.

use ssdyno_block::Time;

/// Something that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// CSTS.RDY is set.
    Ready,
    /// The command in this slot ends, as its status says.
    Finish(u32),
    /// The command in this slot begins.
    Begin(u32),
    /// Completions of this vector have waited long enough for company.
    Coalesced(u16),
    /// The shutdown is complete.
    ShutDown,
    /// The host gave no sign for too long.
    KeepAlive,
    /// The sanitize operation is over: no reset ends it.
    Sanitized,
}

/// A few timers, the next one last.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    pending: Vec<(Time, Timer)>,
}

impl Timers {
    /// Timers of one time go off in the order in which they were set.
    pub(super) fn set(&mut self, at: Time, timer: Timer) {
        // The list is sorted with the next timer last, because a vector gives up its last
        // element at no cost. A new timer goes before those of the same time, which then go off
        // first.
        let place = self.pending.partition_point(|(due, _)| *due > at);
        self.pending.insert(place, (at, timer));
    }
    #[inline]
    pub(super) fn next_time(&self) -> Time {
        self.pending.last().map_or(Time::MAX, |(due, _)| *due)
    }
    #[inline]
    pub(super) fn pop_due(&mut self, now: Time) -> Option<Timer> {
        if self.next_time() > now {
            return None;
        }
        self.pending.pop().map(|(_, timer)| timer)
    }
    pub(super) fn cancel(&mut self, timer: Timer) {
        self.pending.retain(|(_, pending)| *pending != timer);
    }
    /// What a reset leaves.
    pub(super) fn clear(&mut self) {
        // A sanitize operation goes on over a reset (base 2.0c, clause 8.21), so the timer of
        // its end stays.
        self.pending.retain(|(_, pending)| *pending == Timer::Sanitized);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_off_in_order() {
        let mut timers = Timers::default();
        let ns = Time::from_ns;
        for (at, slot) in [(5, 1), (3, 2), (5, 3), (4, 4)] {
            timers.set(ns(at), Timer::Finish(slot));
        }
        timers.cancel(Timer::Finish(4));
        assert_eq!(timers.pop_due(ns(2)), None);
        let order = [(); 4].map(|()| timers.pop_due(ns(9)));
        assert_eq!(order, [Some(2), Some(1), Some(3), None].map(|slot| slot.map(Timer::Finish)));
    }
}
