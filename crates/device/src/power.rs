//! When the device sleeps.

use ssdyno_block::Time;
use ssdyno_engine::events::{Activity, Busy, Cause, EventLog, Part, PartKind};

use crate::PowerConfig;

/// Decides about low-power states. Nothing happens while the device sleeps, so the whole stretch
/// is worked out when the next request wakes it.
#[derive(Clone, Debug)]
pub(crate) struct Sleep {
    config: PowerConfig,
}

impl Sleep {
    pub(crate) fn new(config: &PowerConfig) -> Sleep {
        Sleep { config: config.clone() }
    }

    /// A request comes at `now` after idleness since `idle_since`: reports the states that were
    /// entered and gives the time at which the device is awake.
    pub(crate) fn wake(&self, idle_since: Time, now: Time, log: &mut EventLog) -> Time {
        let mut awake = now;
        let mut states = self.config.states.iter().enumerate().peekable();
        while let Some((number, state)) = states.next() {
            let entered = idle_since.saturating_add(state.idle_after.0);
            if entered >= now {
                break;
            }
            let deeper = states.peek().map(|(_, next)| idle_since + next.idle_after.0);
            let left = deeper.map_or(now, |at| at.min(now));
            log.push(Busy {
                part: Part { kind: PartKind::Controller, index: 0 },
                activity: Activity::LowPower(number as u8),
                cause: Cause::None,
                operations: 1,
                from: entered,
                to: left,
            });
            let entry_ends = entered.saturating_add(state.entry_latency.0);
            awake = entry_ends.max(now) + state.exit_latency.0;
        }
        awake
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PowerState;
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
    }
}
