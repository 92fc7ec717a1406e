//! What an NVMe or a ring device has before it: when it hangs, and when it is removed.

use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_device::faults::FaultConfig;

/// What happens to the device at its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ScheduledFault {
    /// It hangs until it is reset.
    Hang,
    /// It is removed.
    Remove,
}

/// What is to come, on the clock of the device; [`Time::MAX`]: nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    hang_at: Time,
    remove_at: Time,
    /// When each of the two happened.
    pub(super) hung: Option<Time>,
    pub(super) removed: Option<Time>,
}

impl Schedule {
    /// Times of a file are those of the run, which begins at `epoch`.
    pub(super) fn new(faults: &FaultConfig, epoch: Time) -> Schedule {
        let at = |time: Option<Span>| time.map_or(Time::MAX, |Span(at)| epoch.saturating_add(at));
        Schedule {
            hang_at: at(faults.hang_at),
            remove_at: at(faults.remove_at),
            hung: None,
            removed: None,
        }
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Time {
        self.hang_at.min(self.remove_at)
    }

    /// What happens up to `now`, one after the other.
    pub(super) fn take_due(&mut self, now: Time) -> Option<ScheduledFault> {
        if self.next() > now {
            return None;
        }
        if self.hang_at <= self.remove_at {
            self.hang_at = Time::MAX;
            self.hung = Some(now);
            return Some(ScheduledFault::Hang);
        }
        (self.hang_at, self.remove_at) = (Time::MAX, Time::MAX);
        self.removed = Some(now);
        Some(ScheduledFault::Remove)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strikes_come_once_and_in_order() {
        let at = |us| Some(Span(Time::from_us(us)));
        let faults = FaultConfig { hang_at: at(5), remove_at: at(3), ..FaultConfig::default() };
        let epoch = Time::from_us(10);
        let mut both = Schedule::new(&faults, epoch);
        assert_eq!((both.next(), both.take_due(Time::from_us(12))), (Time::from_us(13), None));
        assert_eq!(both.take_due(Time::from_us(13)), Some(ScheduledFault::Remove));
        // What is removed hangs no more.
        assert_eq!((both.take_due(Time::from_s(1)), both.next()), (None, Time::MAX));
        let mut hangs = Schedule::new(&FaultConfig { remove_at: None, ..faults }, epoch);
        assert_eq!(hangs.take_due(Time::from_s(1)), Some(ScheduledFault::Hang));
        assert_eq!((hangs.take_due(Time::from_s(1)), hangs.hung), (None, Some(Time::from_s(1))));
    }
}
