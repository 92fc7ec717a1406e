//! Slow mode: which stretches of idleness are long enough.

use ssdyno_block::Time;

/// One core's (or the whole CPU's) idleness.
///
/// Works on intervals in the order in which they begin. Where the device sleeps its own figure
/// holds, so those stretches are cut out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idleness {
    /// Slow mode from here on unless work comes before; all earlier slow time was given out.
    slow_from: Time,
}

impl Idleness {
    /// Idle since time zero; slow after `patience`, [`Time::MAX`] = never.
    pub(crate) fn new(patience: Time) -> Idleness {
        Idleness { slow_from: patience }
    }

    /// Work from `from` to `to`: gives the stretch of slow mode that it ends.
    #[inline]
    pub(crate) fn work(&mut self, from: Time, to: Time, patience: Time) -> Option<(Time, Time)> {
        let slow = (self.slow_from < from).then_some((self.slow_from, from));
        self.slow_from = self.slow_from.max(to.saturating_add(patience));
        slow
    }

    /// How much of a sleep from `from` to `to` the core would have spent in slow mode, had the device stayed awake. To be
    /// asked before [`sleep`](Idleness::sleep).
    pub(crate) fn slow_if_awake(&self, from: Time, to: Time) -> Time {
        to.saturating_sub(self.slow_from.max(from))
    }

    /// The device sleeps from `from` to `to`: gives the slow stretch before it.
    pub(crate) fn sleep(&mut self, from: Time, to: Time) -> Option<(Time, Time)> {
        if self.slow_from >= to {
            return None;
        }
        let slow = (self.slow_from < from).then_some((self.slow_from, from));
        self.slow_from = to;
        slow
    }

    /// Gives the slow stretch that lasts at `end`, and takes up again there.
    pub(crate) fn end(&mut self, end: Time) -> Option<(Time, Time)> {
        let slow = (self.slow_from < end).then_some((self.slow_from, end));
        self.slow_from = self.slow_from.max(end);
        slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_only_after_the_patience_and_outside_sleep() {
        let at = Time::from_us;
        let patience = at(10);
        let mut core = Idleness::new(patience);
        assert_eq!(core.work(at(5), at(20), patience), None);
        assert_eq!(core.work(at(30), at(40), patience), None, "exactly the patience");
        assert_eq!(core.work(at(70), at(80), patience), Some((at(50), at(70))));
        assert_eq!(core.sleep(at(100), at(150)), Some((at(90), at(100))));
        assert_eq!(core.sleep(at(150), at(200)), None, "the next state follows at once");
        assert_eq!(core.work(at(210), at(220), patience), Some((at(200), at(210))));
        assert_eq!(core.end(at(225)), None);
        assert_eq!(core.end(at(240)), Some((at(230), at(240))));
        assert_eq!(core.end(at(250)), Some((at(240), at(250))));
    }

    #[test]
    fn sleep_inside_the_patience_takes_its_place() {
        let at = Time::from_us;
        let mut core = Idleness::new(at(100));
        assert_eq!(core.sleep(at(50), at(80)), None);
        assert_eq!(core.sleep(at(80), at(150)), None);
        assert_eq!(core.work(at(160), at(170), at(100)), Some((at(150), at(160))));
    }
}
