//! A device and the clock that it follows.

use std::time::Duration;

use ssdyno_block::Time;

use crate::ServedClock;

/// A device's obligations to its server.
///
/// The caller owes times that do not go back. The device owes events at their own times: what fell due
/// before `now` happens as if somebody had looked at that moment.
pub trait Served {
    /// Brings the device to `now`, or a part of the way where that is much work, so that others can have the
    /// lock in between: then [`next_event`](Served::next_event) is not after `now`.
    fn advance(&mut self, now: Time);

    /// When something happens next by itself; `None`: never.
    fn next_event(&self) -> Option<Time>;
}

/// A device and its clock.
#[derive(Debug)]
pub struct Paced<S> {
    /// The device.
    pub served: S,
    clock: ServedClock,
    /// How far it was brought.
    reached: Time,
}

impl<S: Served> Paced<S> {
    /// `served` at time 0 of `clock`.
    pub fn new(served: S, clock: ServedClock) -> Paced<S> {
        Paced { served, clock, reached: Time::ZERO }
    }

    /// Gives it another clock. Time does not go back: the device waits until the new one is as far.
    pub fn set_clock(&mut self, clock: ServedClock) {
        self.clock = clock;
    }

    /// The clock.
    pub fn clock(&self) -> &ServedClock {
        &self.clock
    }

    /// What time it is.
    pub fn now(&self) -> Time {
        self.clock.now(self.reached)
    }

    /// Lets happen what is due, and gives how long nothing will happen from now on; `None`: nothing is to
    /// come. [`Duration::ZERO`] says that the device is behind its time.
    pub fn catch_up(&mut self) -> Option<Duration> {
        let now = self.now();
        self.served.advance(now);
        // The device may have gone only a part of the way. `reached` is still `now`, because events keep
        // their own times, and no client may see an earlier one.
        self.reached = now;
        let next = self.served.next_event()?;
        let left = next.saturating_sub(self.now());
        // The sleep is rounded up to whole nanoseconds. A sleep that ends a moment too early would
        // find nothing to do, and the thread would spin.
        Some(Duration::from_nanos(left.as_ps().div_ceil(1000)))
    }

    /// With [`ServedClock::Device`]: lets time go on while `pending` says so and something is to come. With
    /// other clocks it does nothing, for they go on by themselves.
    pub fn settle(&mut self, pending: impl Fn(&S) -> bool) {
        while matches!(self.clock, ServedClock::Device) && pending(&self.served) {
            let Some(next) = self.served.next_event() else { break };
            // The next event may lie before `reached`, if the device is
            // behind. Time must not go back for it.
            self.reached = self.reached.max(next);
            self.served.advance(self.reached);
        }
    }
}
