//! Faults that a device file asks for: what fails, comes late, gets lost, hangs or is removed (S4-48).
//!
//! Key types: [`FaultConfig`] (the `[faults]` table), [`FaultDraw`] (the lots, and what was done),
//! [`Injected`] (the counts), [`Faulty`] (a device with faults where nobody drives it: no controller, no
//! driver). The NVMe controller and the ring card draw their own lots, one for each command.
//!
//! Lots have streams of randomness of their own: the same seed gives the same faults, and what the
//! workload asks for is the same with and without.
//!
//! Errors: [`ConfigError`] names the key.
//!
//! Not modelled: faults that depend on the address, the age or the history of the flash (what wears out
//! does so by `flash.endurance_cycles`); data that comes back wrong without an error.

mod faulty;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::Span;
use ssdyno_block::{ConfigError, Time};
use ssdyno_engine::Rng;

pub use faulty::Faulty;

/// The `[faults]` table of a device. Left out, and with every key left out, nothing goes wrong.
///
/// A command meets one kind of fault at most, so that the shares may sum to 1 at most. Commands are those
/// that the device gets: reads, writes, trims and flushes; of the ring card one for each page.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FaultConfig {
    /// Share of commands that end with an error, 0 to 1: reads with an unrecovered read error, others
    /// with a write fault. They take their time first.
    pub error: f64,
    /// Share of commands that are answered late, 0 to 1.
    pub delay: f64,
    /// By so much; up to an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_by: Option<Span>,
    /// Share of commands that never complete, 0 to 1: the timeout of the driver has to end them.
    pub drop: f64,
    /// Share of interrupts that never arrive, 0 to 1.
    pub lost_interrupts: f64,
    /// The device hangs from this time of the run on, until its driver resets it. It does so
    /// once; where nothing is asked of it then, with the next command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang_at: Option<Span>,
    /// The device is removed (surprise removal) at this time of the run. Where nothing is asked of it then, that shows with the
    /// next command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove_at: Option<Span>,
}

/// Checks a share of a table `[faults]`.
///
/// # Errors
/// [`ConfigError`] names `faults.` and `key`.
pub fn check_share(key: &str, share: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    let problem = format!("{share} is no share: it is outside 0 to 1");
    Err(ConfigError::new(format!("faults.{key}"), problem, "write a share such as 0.001"))
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
        let help = "each meets one kind of fault at most: write shares that sum to 1 or less";
        return Err(ConfigError::new(format!("faults.{key}"), problem, help));
    }
    match delay {
        (share, None) if share > 0.0 => {
            let help = "write how late, such as delay_by = \"100ms\"";
            return Err(ConfigError::new("faults.delay", "nothing says by how much", help));
        }
        (share, Some(_)) if share <= 0.0 => {
            let help = "write which share is late, such as delay = 0.001, or leave both keys out";
            return Err(ConfigError::new("faults.delay_by", "nothing is delayed", help));
        }
        _ => {}
    }
    for (key, time) in times {
        let Some(Span(time)) = time else { continue };
        if *time == Time::ZERO || *time > Time::from_s(3600) {
            let problem = format!("{time} is not more than 0 and up to an hour");
            let help = "write a time such as \"100ms\", or leave the key out";
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

    /// Some commands fail, come late or get lost.
    fn hits_commands(&self) -> bool {
        self.error > 0.0 || self.delay > 0.0 || self.drop > 0.0
    }

    /// Checks the values.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        check_share("lost_interrupts", self.lost_interrupts)?;
        let times =
            [("delay_by", self.delay_by), ("hang_at", self.hang_at), ("remove_at", self.remove_at)];
        let shares = [("error", self.error), ("delay", self.delay), ("drop", self.drop)];
        check_faults(&times, &shares, (self.delay, self.delay_by))
    }
}

/// What a command meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultOutcome {
    /// Nothing.
    Spared,
    /// It ends with an error.
    Error,
    /// It is so much later.
    Delay(Time),
    /// It never completes.
    Drop,
}

/// What was done to those who use a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Injected {
    /// Commands that ended with an error.
    pub errors: u64,
    /// Commands that came late.
    pub delays: u64,
    /// Commands that never completed.
    pub drops: u64,
    /// Interrupts that never arrived.
    pub lost_interrupts: u64,
    /// When the device stood still, on the clock of the run.
    pub hung_at: Option<Time>,
    /// When it was removed, on the clock of the run.
    pub removed_at: Option<Time>,
}

impl Injected {
    /// What two devices did together; of moments the first.
    pub fn with(self, other: Injected) -> Injected {
        let first = |a: Option<Time>, b: Option<Time>| a.into_iter().chain(b).min();
        Injected {
            errors: self.errors + other.errors,
            delays: self.delays + other.delays,
            drops: self.drops + other.drops,
            lost_interrupts: self.lost_interrupts + other.lost_interrupts,
            hung_at: first(self.hung_at, other.hung_at),
            removed_at: first(self.removed_at, other.removed_at),
        }
    }
}

/// Draws what goes wrong, and counts it.
#[derive(Clone, Debug)]
pub struct FaultDraw {
    config: FaultConfig,
    commands: Rng,
    interrupts: Rng,
    /// What was done so far; whoever does it counts it here.
    pub injected: Injected,
}

impl FaultDraw {
    /// The lots of `config` with `seed`.
    pub fn new(config: &FaultConfig, seed: u64) -> FaultDraw {
        FaultDraw {
            config: *config,
            commands: Rng::new(seed, "faults"),
            interrupts: Rng::new(seed, "faults of interrupts"),
            injected: Injected::default(),
        }
    }

    /// What the next command meets. Whoever does it counts it.
    pub fn command(&mut self) -> FaultOutcome {
        let FaultConfig { error, delay, delay_by, drop, .. } = self.config;
        if !self.config.hits_commands() {
            return FaultOutcome::Spared;
        }
        let lot = self.commands.unit();
        match delay_by {
            _ if lot < error => FaultOutcome::Error,
            _ if lot < error + drop => FaultOutcome::Drop,
            Some(Span(by)) if lot < error + drop + delay => FaultOutcome::Delay(by),
            _ => FaultOutcome::Spared,
        }
    }

    /// Some interrupts are lost.
    pub(crate) fn hits_interrupts(&self) -> bool {
        self.config.lost_interrupts > 0.0
    }

    /// True, and counted, if the next interrupt is lost.
    pub fn loses_interrupt(&mut self) -> bool {
        let lost = self.hits_interrupts() && self.interrupts.unit() < self.config.lost_interrupts;
        self.injected.lost_interrupts += u64::from(lost);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(keys: &str) -> Result<(), String> {
        let config: FaultConfig = toml::from_str(keys).map_err(|error| error.to_string())?;
        config.check().map_err(|error| error.key)
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
            ("drop = 0.6\nerror = 0.6", "faults.error"),
        ] {
            assert_eq!(parsed(keys), Err(key.to_owned()), "{keys}");
        }
        assert!(parsed("eror = 0.1").unwrap_err().contains("unknown field `eror`"));
        assert_eq!(parsed("error = 0.5\ndrop = 0.25\ndelay = 0.25\ndelay_by = \"1us\""), Ok(()));
        assert_eq!(parsed(""), Ok(()));
    }

    /// 100 000 lots: each count within five standard deviations of a binomial, for three seeds.
    #[test]
    fn shares_are_what_was_asked_for() {
        let config = FaultConfig {
            error: 0.1,
            delay: 0.02,
            delay_by: Some(Span(Time::from_us(3))),
            drop: 0.005,
            lost_interrupts: 0.3,
            ..FaultConfig::default()
        };
        let n = 100_000;
        for seed in [1, 2, 3] {
            let mut draw = FaultDraw::new(&config, seed);
            let lots: Vec<FaultOutcome> = (0..n).map(|_| draw.command()).collect();
            let lost = (0..n).filter(|_| draw.loses_interrupt()).count();
            assert_eq!(draw.injected.lost_interrupts, lost as u64);
            let count = |lot| lots.iter().filter(|other| **other == lot).count();
            for (count, share) in [
                (count(FaultOutcome::Error), 0.1),
                (count(FaultOutcome::Delay(Time::from_us(3))), 0.02),
                (count(FaultOutcome::Drop), 0.005),
                (lost, 0.3),
            ] {
                let (mean, n) = (share * f64::from(n), f64::from(n));
                let slack = 5.0 * (n * share * (1.0 - share)).sqrt();
                assert!((count as f64 - mean).abs() < slack, "seed {seed}: {count}, not {mean}");
            }
            // Interrupts have lots of their own: those of commands stay where they are.
            let mut quiet = FaultDraw::new(&FaultConfig { lost_interrupts: 0.0, ..config }, seed);
            assert!(lots.iter().all(|lot| *lot == quiet.command()));
        }
    }
}
