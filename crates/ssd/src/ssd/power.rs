//! The permitted power of the SSD: low-power states, and a limit (S1-45).

use ssdyno_block::{ConfigError, Time};
use ssdyno_energy::Facts;
use ssdyno_engine::events::EventLog;

use crate::Config;
use crate::governor::Governor;
use crate::sleep::Sleep;

/// Sleep, and the limit of power.
#[derive(Debug)]
pub(super) struct Power {
    pub(super) sleep: Sleep,
    /// When it had last come out of a low-power state.
    pub(super) awake_at: Time,
    /// When something last happened in the device; while it is sanitized that lies ahead.
    pub(super) last_activity: Time,
    /// Only once there was a limit of power.
    governor: Option<Box<Governor>>,
}

impl Power {
    pub(super) fn new(config: &Config) -> Power {
        Power {
            sleep: Sleep::new(&config.power),
            awake_at: Time::ZERO,
            last_activity: Time::ZERO,
            governor: None,
        }
    }

    /// Something comes at `now` to a device that does nothing.
    #[inline]
    pub(super) fn wake(&mut self, now: Time, log: &mut EventLog) {
        if self.sleep.has_states() {
            self.awake_at = self.sleep.wake(self.last_activity, now, log);
        }
    }

    /// From now on the device sleeps as `policy` says; `idle`: it does nothing at `now`.
    pub(super) fn set_policy(
        &mut self,
        now: Time,
        policy: &[(u8, Time)],
        idle: bool,
        log: &mut EventLog,
    ) {
        if idle && self.last_activity <= now {
            // The idle time so far counts under the present policy.
            self.sleep.wake(self.last_activity, now, log);
            self.last_activity = now;
        }
        self.sleep.set_policy(policy);
    }

    /// See [`PowerControl::limit_power`](ssdyno_device::PowerControl::limit_power).
    ///
    /// # Errors
    /// A device with these numbers cannot be governed.
    pub(super) fn limit(
        &mut self,
        from: Time,
        watts: Option<f64>,
        device: (&Config, &Facts),
        log: &EventLog,
    ) -> Result<bool, ConfigError> {
        let governor = match &mut self.governor {
            Some(governor) => governor,
            None if watts.is_none() => return Ok(true),
            none => none.insert(Box::new(Governor::new(device.0, device.1, log)?)),
        };
        Ok(governor.limit(from, watts))
    }

    #[inline]
    pub(super) fn is_governed(&self) -> bool {
        self.governor.is_some()
    }

    /// When a request that moves `pages` pages, and could begin at `ready`, may.
    #[cold]
    pub(super) fn admit(&mut self, ready: Time, pages: u64, log: &EventLog) -> Time {
        match &mut self.governor {
            Some(governor) => governor.admit(ready, pages, log),
            None => ready,
        }
    }

    /// A request that moved `pages` pages completed.
    #[cold]
    pub(super) fn ended(&mut self, pages: u64) {
        if let Some(governor) = &mut self.governor {
            governor.ended(pages);
        }
    }

    /// `log` may be cleared after this.
    pub(super) fn look(&mut self, log: &EventLog) {
        if let Some(governor) = &mut self.governor {
            governor.look(log);
        }
    }
}
