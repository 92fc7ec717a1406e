//! When the device sleeps.

use ssdyno_block::Time;
use ssdyno_engine::events::{Activity, EventLog, PartKind};

use ssdyno_device::nvme::PowerState;

use crate::PowerConfig;

/// Decides about low-power states. Nothing happens while the device sleeps, so the whole stretch
/// is worked out when the next request wakes it.
#[derive(Clone, Debug)]
pub(crate) struct Sleep {
    config: PowerConfig,
    /// Which state is entered after how much idleness, in order of rising time.
    policy: Vec<(u8, Time)>,
}

impl Sleep {
    pub(crate) fn new(config: &PowerConfig) -> Sleep {
        let entered = |(number, state): (usize, &PowerState)| (number as u8, state.idle_after.0);
        let policy = config.states.iter().enumerate().map(entered).collect();
        Sleep { config: config.clone(), policy }
    }

    /// False if it never sleeps.
    #[inline]
    pub(crate) fn has_states(&self) -> bool {
        !self.config.states.is_empty()
    }

    /// From now on states are entered as `policy` says; numbers that the device does not have are
    /// left out.
    pub(crate) fn set_policy(&mut self, policy: &[(u8, Time)]) {
        let known = |(number, _): &&(u8, Time)| usize::from(*number) < self.config.states.len();
        self.policy = policy.iter().filter(known).copied().collect();
    }

    /// States that are entered, and when, if no request comes after `idle_since`.
    pub(crate) fn entered(&self, idle_since: Time) -> Vec<(u8, Time)> {
        let at = |(number, after): &(u8, Time)| (*number, idle_since.saturating_add(*after));
        self.policy.iter().map(at).collect()
    }

    /// A request comes at `now` after idleness since `idle_since`: reports the states that were
    /// entered and gives the time at which the device is awake.
    pub(crate) fn wake(&self, idle_since: Time, now: Time, log: &mut EventLog) -> Time {
        let mut awake = now;
        let mut policy = self.policy.iter().peekable();
        while let Some((number, idle_after)) = policy.next() {
            let state = &self.config.states[usize::from(*number)];
            let entered = idle_since.saturating_add(*idle_after);
            // The policy is in order of rising time, so no later state is entered either. A request
            // at the very moment of the entry finds the device awake.
            if entered >= now {
                break;
            }
            let deeper = policy.peek().map(|(_, after)| idle_since.saturating_add(*after));
            let left = deeper.map_or(now, |at| at.min(now));
            let asleep = Activity::LowPower(*number);
            log.busy((PartKind::Controller, 0), asleep, (entered, left));
            let entry_ends = entered.saturating_add(state.entry_latency.0);
            // A transition into a power state cannot be interrupted. A request during the entry
            // waits for its end and then for the exit latency (NVMe ENLAT and EXLAT).
            awake = entry_ends.max(now) + state.exit_latency.0;
        }
        awake
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdyno_block::units::{Span, Watts};

    #[test]
    fn deeper_states_after_longer_idleness() {
        let state = |idle, entry, exit| PowerState {
            power: Watts(0.01),
            idle_after: Span(Time::from_us(idle)),
            entry_latency: Span(Time::from_us(entry)),
            exit_latency: Span(Time::from_us(exit)),
        };
        let config = PowerConfig { states: vec![state(100, 10, 20), state(1000, 50, 500)] };
        let sleep = Sleep::new(&config);
        let us = Time::from_us;
        let mut log = EventLog::default();
        assert_eq!(sleep.wake(us(0), us(50), &mut log), us(50));
        assert!(log.is_empty());
        assert_eq!(sleep.wake(us(0), us(105), &mut log), us(130), "waits for the entry to end");
        assert_eq!(sleep.wake(us(0), us(500), &mut log), us(520));
        assert_eq!(sleep.wake(us(0), us(5000), &mut log), us(5500));
        assert_eq!(log.len(), 4);

        assert_eq!(sleep.entered(us(7)), [(0, us(107)), (1, us(1007))], "as `wake` reports them");
        let mut forced = sleep;
        forced.set_policy(&[(1, Time::ZERO), (9, us(1))]);
        assert_eq!(forced.wake(us(0), us(60), &mut log), us(560), "the second state at once");
    }
}
