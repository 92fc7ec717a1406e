//! Faults that a device file asks for: what fails, comes late, gets lost, hangs or is removed (S4-48).
//!
//! Key types: [`FaultConfig`] (the `[faults]` table), which gives a [`FaultPlan`]; [`Faulty`] (a device with
//! faults where nobody drives it: no controller, no driver); [`Slowed`] (a device in which everything takes longer). The NVMe controller and the ring card carry out
//! plans of their own.
//!
//! A plan has its own random numbers: the same seed gives the same faults, and the load is the same with and without
//! faults.
//!
//! Errors: [`ConfigError`] names the key.
//!
//! Not modelled: faults that depend on the address, the age or the history of the flash (what wears out
//! does so by `flash.endurance_cycles`); data that comes back wrong without an error.

mod faulty;
mod slowed;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::Span;
use ssdyno_block::{ConfigError, Fault, FaultPlan, FaultSite, Rng, Time};

pub use faulty::Faulty;
pub use slowed::Slowed;

/// The `[faults]` table of a device. Without the table or without keys, no faults are injected.
///
/// A command has at most one kind of fault, so that the shares sum to at most 1. The shares count commands to the
/// device: reads, writes, trims and flushes; for the ring card one command per page.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FaultConfig {
    /// Share of commands that end with an error, 0 to 1: reads with an unrecovered read error, others with a write
    /// fault. The error comes after the normal time of the command.
    #[serde(skip_serializing_if = "is_zero")]
    pub error: f64,
    /// Share of commands that complete late, 0 to 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub delay: f64,
    /// The delay of late commands; up to an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_by: Option<Span>,
    /// Share of commands that never complete, 0 to 1: the timeout of the driver has to end them.
    #[serde(skip_serializing_if = "is_zero")]
    pub drop: f64,
    /// Share of interrupts that never arrive, 0 to 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_interrupts: f64,
    /// Time of the run at which the device hangs until its driver resets it. It hangs once; if it has no commands at
    /// that time, it hangs with the next command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang_at: Option<Span>,
    /// Mean slowdown: the extra time of every operation in the device, divided by its normal time; 0 to 100. A new
    /// slowdown is drawn for each `slow_for` from an exponential distribution, so that runs differ as on a real machine
    /// (S2-25). The driver `ring` refuses it.
    #[serde(skip_serializing_if = "is_zero")]
    pub slow_by: f64,
    /// Time for which each drawn slowdown applies; 1 ms to 24 hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_for: Option<Span>,
    /// Time of the run at which the device is removed (surprise removal). If it has no commands at that time, the next
    /// command finds it removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove_at: Option<Span>,
}

/// Whether a share is left out of a spec: it is the same as none. A spec with one fault would otherwise list all others
/// as changed beside a spec without faults.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// Checks a share of a table `[faults]`.
///
/// # Errors
/// [`ConfigError`] names `faults.` and `key`.
pub fn check_share(key: &str, share: f64) -> Result<(), ConfigError> {
    let help = "use a share such as 0.001";
    ConfigError::within(format!("faults.{key}"), share, 0.0..=1.0, help)
}

/// Checks the times of a table `[faults]` by their keys, and that the shares, with their keys, leave
/// something for the rest.
///
/// # Errors
/// [`ConfigError`] names the key.
pub fn check_faults(
    times: &[(&str, Option<Span>)],
    shares: &[(&str, f64)],
    delay: (f64, Option<Span>),
) -> Result<(), ConfigError> {
    for (key, share) in shares {
        check_share(key, *share)?;
    }
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    if sum > 1.0 + 1e-12 {
        let names: Vec<_> = shares.iter().map(|(key, _)| *key).collect();
        let key = shares.iter().find(|(_, share)| *share > 0.0).map_or("error", |(key, _)| *key);
        let problem = format!("{} together are more than 1", names.join(", "));
        let help = "a request has at most one kind of fault: use shares that sum to 1 or less";
        return Err(ConfigError::new(format!("faults.{key}"), problem, help));
    }
    match delay {
        (share, None) if share > 0.0 => {
            let help = "set how long a late completion is delayed, such as delay_by = \"100ms\"";
            return Err(ConfigError::new("faults.delay", "the delay is missing", help));
        }
        (share, Some(_)) if share <= 0.0 => {
            let help =
                "set the share of late completions, such as delay = 0.001, or leave both keys out";
            return Err(ConfigError::new("faults.delay_by", "nothing is delayed", help));
        }
        _ => {}
    }
    for (key, time) in times {
        let Some(Span(time)) = time else { continue };
        if *time == Time::ZERO || *time > Time::from_s(3600) {
            let problem = format!("{time} must be above 0 and at most an hour");
            let help = "use a time such as \"100ms\", or leave the key out";
            return Err(ConfigError::new(format!("faults.{key}"), problem, help));
        }
    }
    Ok(())
}

impl FaultConfig {
    /// Nothing goes wrong.
    pub fn is_none(&self) -> bool {
        *self == FaultConfig::default()
    }

    /// The plan of the faults: drawn with `seed`, with times counted from `epoch`.
    pub fn plan(&self, seed: u64, epoch: Time) -> FaultPlan {
        let late = Fault::Delay(self.delay_by.map_or(Time::ZERO, |Span(by)| by));
        let at = |time: Option<Span>| time.map(|Span(time)| epoch.saturating_add(time));
        FaultPlan::new(seed)
            .share(FaultSite::Command, Fault::Error, self.error)
            .share(FaultSite::Command, Fault::Drop, self.drop)
            .share(FaultSite::Command, late, self.delay)
            .share(FaultSite::Interrupt, Fault::Drop, self.lost_interrupts)
            .at(at(self.hang_at), Fault::Hang(Time::MAX))
            .at(at(self.remove_at), Fault::Remove)
    }

    /// Checks the values.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_share("lost_interrupts", self.lost_interrupts)?;
        self.check_slowness()?;
        let times =
            [("delay_by", self.delay_by), ("hang_at", self.hang_at), ("remove_at", self.remove_at)];
        let shares = [("error", self.error), ("delay", self.delay), ("drop", self.drop)];
        check_faults(&times, &shares, (self.delay, self.delay_by))
    }
}

impl FaultConfig {
    fn check_slowness(&self) -> Result<(), ConfigError> {
        let error = |key: &str, problem: &str, help: &str| {
            Err(ConfigError::new(format!("faults.{key}"), problem, help))
        };
        let help = "use a share such as 0.2";
        ConfigError::within("faults.slow_by", self.slow_by, 0.0..=100.0, help)?;
        match (self.slow_by > 0.0, self.slow_for) {
            (true, None) => {
                error("slow_by", "the duration is missing", "set a time such as slow_for = \"30s\"")
            }
            // With slow_by = 0 nothing is slow, for however long: `--set faults.slow_by=0` turns it off.
            (_, Some(Span(time))) if time < Time::from_ms(1) || time > Time::from_s(86_400) => {
                let problem = format!("{time} is outside 1 ms to 24 hours");
                error("slow_for", &problem, "use a time such as \"30s\"")
            }
            _ => Ok(()),
        }
    }

    /// How long a second of the device is at `at`: 1 or more. A pure function of the seed and the time, so it does not
    /// depend on the load of the device.
    pub fn slowness(&self, seed: u64, at: Time) -> f64 {
        match self.slow_for {
            Some(Span(period)) if self.slow_by > 0.0 => {
                let number = at.as_ps() / period.as_ps().max(1);
                let seed = seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                1.0 + self.slow_by * Rng::new(seed, "slowness").exponential()
            }
            _ => 1.0,
        }
    }

    /// The mean of [`slowness`](FaultConfig::slowness) from the start to `end`; 1 if nothing is slow.
    pub fn mean_slowness(&self, seed: u64, end: Time) -> f64 {
        let Some(Span(period)) = self.slow_for.filter(|_| self.slow_by > 0.0) else { return 1.0 };
        let mut sum = 0.0;
        let mut at = Time::ZERO;
        while at < end {
            let length = period.min(end.saturating_sub(at));
            sum += self.slowness(seed, at) * length.as_s_f64();
            at = at.saturating_add(period);
        }
        if end > Time::ZERO { sum / end.as_s_f64() } else { self.slowness(seed, end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(keys: &str) -> Result<(), String> {
        let config: FaultConfig = toml::from_str(keys).map_err(|error| error.to_string())?;
        config.check().map_err(|error| error.key)
    }

    /// Over two periods and a half, the mean is theirs, weighted with their lengths; over many it is the configured share.
    #[test]
    fn the_mean_slowness_is_weighted_by_time() {
        let slow = FaultConfig {
            slow_by: 0.3,
            slow_for: Some(Span(Time::from_ms(10))),
            ..FaultConfig::default()
        };
        let at = |ms| slow.slowness(5, Time::from_ms(ms));
        let want = (at(0) + at(10) + 0.5 * at(20)) / 2.5;
        assert!((slow.mean_slowness(5, Time::from_ms(25)) - want).abs() < 1e-12);
        assert!((slow.mean_slowness(5, Time::from_s(100)) - 1.3).abs() < 0.02);
        assert_eq!(slow.mean_slowness(5, Time::ZERO), at(0));
        assert_eq!(FaultConfig::default().mean_slowness(5, Time::from_s(1)), 1.0);
    }

    #[test]
    fn impossible_values_are_named() {
        for (keys, key) in [
            ("error = 1.5", "faults.error"),
            ("error = -0.1", "faults.error"),
            ("drop = nan", "faults.drop"),
            ("lost_interrupts = 2", "faults.lost_interrupts"),
            ("delay = 0.1", "faults.delay"),
            ("delay_by = \"1ms\"", "faults.delay_by"),
            ("delay = 0.1\ndelay_by = \"0ms\"", "faults.delay_by"),
            ("delay = 0.1\ndelay_by = \"2h\"", "faults.delay_by"),
            ("hang_at = \"0s\"", "faults.hang_at"),
            ("remove_at = \"0s\"", "faults.remove_at"),
            ("slow_by = 0.1", "faults.slow_by"),
            ("slow_by = -1\nslow_for = \"1s\"", "faults.slow_by"),
            ("slow_by = 0.1\nslow_for = \"25h\"", "faults.slow_for"),
            ("slow_by = 0.1\nslow_for = \"999us\"", "faults.slow_for"),
            ("drop = 0.6\nerror = 0.6", "faults.error"),
        ] {
            assert_eq!(parsed(keys), Err(key.to_owned()), "{keys}");
        }
        assert!(parsed("eror = 0.1").unwrap_err().contains("unknown field `eror`"));
        assert_eq!(parsed("error = 0.5\ndrop = 0.25\ndelay = 0.25\ndelay_by = \"1us\""), Ok(()));
        assert_eq!(parsed(""), Ok(()));
    }
}
