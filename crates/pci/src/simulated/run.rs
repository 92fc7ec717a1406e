//! The events at the connector, in the order of time.

use ssdyno_block::{Fault, FaultPlan, Time};

use super::SimulatedPci;
use super::writes::Write;
use crate::{FaultyDevice, PciDevice};

/// Steps after which [`SimulatedPci::run`] lets its caller look after other things.
const STEPS: u32 = 64;

impl<D: PciDevice> SimulatedPci<D> {
    /// The next time at which something arrives or the device has something to do.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        if self.gone {
            return None;
        }
        let due = if self.stale { due(&self.device) } else { self.device_due };
        let next = self.next_of_device(due).min(self.next_from_without());
        (next < Time::MAX).then_some(next)
    }

    /// The next write or event of the device, which is due at `due`, put off where it hangs.
    #[inline]
    fn next_of_device(&self, due: Time) -> Time {
        let next = due.min(self.writes.due()).max(self.device_now);
        if self.faulty { self.put_off(next) } else { next }
    }

    #[cold]
    fn put_off(&self, next: Time) -> Time {
        let (from, until) = self.stuck;
        if next >= from && next < until { until } else { next }
    }

    /// The first time after `at` at which a fault changes what the device may do.
    #[cold]
    fn next_fault(&self, at: Time) -> Time {
        if at < self.stuck.0 { self.stuck.0.min(self.removal) } else { self.removal }
    }

    /// When an interrupt reaches the host, or the device is removed (surprise removal).
    #[inline]
    fn next_from_without(&self) -> Time {
        self.bus.interrupts.next().min(self.removal)
    }

    /// Brings device and register writes to `now`, in the order of time.
    pub fn advance(&mut self, now: Time) {
        while self.step(now) {}
        self.remove_at(now);
    }

    /// As [`advance`](SimulatedPci::advance) to `until`, but no further than to the first time at
    /// which an interrupt arrives or, where memory is
    /// [watched](SimulatedPci::watch_memory), something in it has changed. It may stop anywhere before.
    /// Gives the time of the last thing that happened.
    pub fn run(&mut self, until: Time) -> Time {
        // A device can have internal events without end before the next visible one. The limit
        // returns control to the runner, which has to serve other devices and the request to stop.
        for _ in 0..STEPS {
            let event = self.next_from_without();
            let end = until.min(event);
            self.bus.shown = false;
            if !self.step(end) {
                self.remove_at(end);
                return if event <= until.min(Time::LAST) { event } else { self.device_now };
            }
            if self.bus.shown && self.bus.watched {
                break;
            }
        }
        self.device_now
    }

    /// The next register write, or the device's events up to that; false if there is neither up to
    /// `until`. Of what happens at one time the device's own events are first.
    #[inline(always)]
    fn step(&mut self, until: Time) -> bool {
        if self.stale {
            self.device_due = due(&self.device);
            self.stale = false;
        }
        let at = self.next_of_device(self.device_due);
        // An event at the time of the removal does not happen: the link is already down. Otherwise
        // a completion could still reach a host that has been told about the removal.
        if at > until || at >= self.removal || self.gone || at == Time::MAX {
            return false;
        }
        let arrival = self.writes.due();
        // At equal times the events of the device come first. The choice is arbitrary, but it must
        // be fixed: the same seed has to give the same bytes.
        if arrival < self.device_due
            && let Some(write) = self.writes.pop()
        {
            self.device_now = at;
            self.deliver(at, write);
            self.device_due = due(&self.device);
            return true;
        }
        // Up to the next thing that comes from without.
        let fault = if self.faulty { self.next_fault(at) } else { Time::MAX };
        // The device runs up to the next write or fault in one call. One call per internal event
        // would cost a dynamic dispatch each, and devices have several events per request.
        let until = until.min(arrival).min(fault.saturating_sub(Time::from_ps(1))).max(at);
        (self.device_now, self.device_due) = self.device.run(at, until, &mut self.bus);
        true
    }

    /// A register write arrives.
    #[inline(always)]
    fn deliver(&mut self, at: Time, write: Write) {
        if self.msix.is_some_and(|m| m.bar == write.bar) {
            self.deliver_to_table(at, write);
        } else {
            self.device.bar_write(at, write.bar, write.offset, write.value);
            self.device.advance(at, &mut self.bus);
        }
    }

    #[cold]
    fn deliver_to_table(&mut self, at: Time, write: Write) {
        self.bus.interrupts.table_write(at, write.offset, write.value);
        self.bus.shown = true;
    }

    #[inline]
    fn remove_at(&mut self, now: Time) {
        if self.faulty {
            self.fault_at(now);
        }
    }

    /// What faults do up to `now`.
    #[cold]
    fn fault_at(&mut self, now: Time) {
        if now >= self.stuck.0 {
            self.stood = self.stood.max(now);
        }
        if now >= self.removal && self.removal < Time::MAX && !self.gone {
            self.gone = true;
            // Posted writes on a broken link are lost without an error. They must not arrive at a
            // device that is inserted into the slot later.
            self.writes.clear();
            self.bus.interrupts.silence();
        }
    }
}

impl<D: FaultyDevice> SimulatedPci<D> {
    /// When the device hangs or is removed by its [plan](FaultyDevice::fault_plan); [`Time::MAX`]: never.
    pub fn next_injection(&self) -> Time {
        self.device.fault_plan().map_or(Time::MAX, FaultPlan::next_time)
    }

    /// The planned faults of the device up to `now` happen; true if it was removed, which the slot reports to the
    /// driver at once (PCI Express 5.0, clause 6.7: presence detect).
    pub fn inject_due(&mut self, now: Time) -> bool {
        while self.next_injection() <= now {
            match self.device_mut().fault_plan_mut().take_due(now) {
                Some(Fault::Remove) => {
                    self.inject(now, Fault::Remove);
                    self.advance(now);
                    return true;
                }
                _ => self.device_mut().hang_until_reset(),
            }
        }
        false
    }
}

/// The time of the next event of `device`; [`Time::MAX`] if there is none.
#[inline]
fn due<D: PciDevice>(device: &D) -> Time {
    device.next_event().unwrap_or(Time::MAX)
}
