//! What happens at the connector, in the order of time.

use ssdyno_block::Time;

use super::SimulatedPci;
use super::writes::Write;
use crate::{InterruptMode, MsixPlace, PciDevice};

/// No event is later; [`Time::MAX`] stands for never.
const LAST: Time = Time::from_ps(u64::MAX - 1);
/// Steps after which [`SimulatedPci::run`] lets its caller look after other things.
const STEPS: u32 = 16;

impl<D: PciDevice> SimulatedPci<D> {
    /// The next time at which something arrives or the device has something to do.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        if self.gone {
            return None;
        }
        let due = if self.stale { due(&self.device) } else { self.device_due };
        let next = self.next_of_device(due).min(self.bus.interrupts.next()).min(self.removal);
        (next < Time::MAX).then_some(next)
    }

    /// The next write or event of the device, which is due at `due`, put off where it stands still.
    #[inline]
    fn next_of_device(&self, due: Time) -> Time {
        let next = due.min(self.writes.due()).max(self.device_now);
        let (from, until) = self.stuck;
        if next >= from && next < until { until } else { next }
    }

    /// Brings device and register writes to `now`, in the order of time.
    pub fn advance(&mut self, now: Time) {
        while self.step(now) {}
        self.remove_at(now);
        // What rested: a register that is read next may show it.
        let (from, until) = self.stuck;
        let stands_still = now >= from && now < until;
        let before = if stands_still { from } else { now.saturating_add(Time::from_ps(1)) };
        while self.take_resting(before) {}
    }

    /// As [`advance`](SimulatedPci::advance) to `until`, but no further than to the first time at
    /// which the host may see something: an interrupt arrives or is sent, or memory was written. It may
    /// stop anywhere before. Gives the time of the last thing that happened.
    pub fn run(&mut self, until: Time) -> Time {
        let arrival = self.bus.interrupts.next();
        let event = arrival.min(self.removal);
        let end = until.min(event);
        self.bus.shown = false;
        for _ in 0..STEPS {
            if !self.step(end) {
                self.remove_at(end);
                return if event <= until.min(LAST) { event } else { self.device_now };
            }
            if self.bus.shown {
                break;
            }
        }
        self.device_now
    }

    /// The next register write, or the device's events up to that; false if there is neither up to
    /// `until`. Of what happens at one time the device's own events are first.
    #[inline]
    fn step(&mut self, until: Time) -> bool {
        if self.stale {
            self.device_due = due(&self.device);
            self.stale = false;
            self.judge_writes();
        }
        let at = loop {
            let at = self.next_of_device(self.device_due);
            if at > until || at >= self.removal || self.gone || at == Time::MAX {
                return false;
            }
            // Behind a write that rests there may be another.
            if !self.take_resting(self.device_due) {
                break at;
            }
        };
        if self.writes.due() < self.device_due
            && let Some(write) = self.writes.pop()
        {
            self.device_now = at;
            self.deliver(at, write);
            self.judge_writes();
        } else {
            // Up to the next thing that comes from without.
            let fault =
                if at < self.stuck.0 { self.stuck.0.min(self.removal) } else { self.removal };
            let arrival = self.writes.arrival();
            let until = until.min(arrival).min(fault.saturating_sub(Time::from_ps(1))).max(at);
            self.device_now = self.device.run(at, until, &mut self.bus);
            if self.writes.rests() {
                self.judge_writes();
            }
        }
        self.device_due = due(&self.device);
        true
    }

    /// Delivers the next write if it rests and arrives before `before`.
    #[inline]
    fn take_resting(&mut self, before: Time) -> bool {
        let Some(write) = self.writes.take_resting(before) else { return false };
        let Write { arrives, bar, offset, value } = write;
        self.device.bar_write(arrives.max(self.device_now), bar, offset, value);
        self.judge_writes();
        true
    }

    /// Asks the device whether the next write may rest.
    #[inline]
    fn judge_writes(&mut self) {
        let (device, msix, mode) = (&self.device, self.msix, self.bus.interrupts.mode);
        self.writes.renew(|write| may_rest(device, msix, mode, write));
    }

    /// A register write arrives.
    fn deliver(&mut self, at: Time, write: Write) {
        if self.msix.is_some_and(|m| m.bar == write.bar) {
            self.bus.interrupts.table_write(at, write.offset, write.value);
            self.bus.shown = true;
        } else {
            self.device.bar_write(at, write.bar, write.offset, write.value);
            self.device.advance(at, &mut self.bus);
        }
    }

    #[inline]
    fn remove_at(&mut self, now: Time) {
        if now >= self.removal && !self.gone {
            self.gone = true;
            self.writes.clear();
            self.bus.interrupts.silence();
        }
    }
}

/// True if nothing comes of `write` at its own time. With a pin everything may: what is read
/// releases it.
#[inline]
pub(super) fn may_rest<D: PciDevice>(
    device: &D,
    msix: Option<MsixPlace>,
    mode: InterruptMode,
    write: &Write,
) -> bool {
    mode != InterruptMode::Pin
        && msix.is_none_or(|place| place.bar != write.bar)
        && device.may_rest(write.bar, write.offset, write.value)
}

/// When `device` has something to do, [`Time::MAX`] for never.
#[inline]
fn due<D: PciDevice>(device: &D) -> Time {
    device.next_event().unwrap_or(Time::MAX)
}
