//! Injected faults (S4-48): the faults of a network, the faults that each path to a device supports, and their report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::Span;
use ssdyno_block::{ConfigError, Fault, FaultPlan, FaultSite, Injected, Time};
use ssdyno_device::faults::{FaultConfig, check_faults};
use ssdyno_driver_ring::CompletionPolicy;
use ssdyno_figures::{
    DeviceFaults, DriverAction, DriverActionKind, FaultsResult, RunResult, WarningKind, seconds,
};
use ssdyno_host::CompletionWait;

use crate::attach::{Attach, DevicePath, HostSide};

/// The `[faults]` table of a network. Without the table, no faults are injected.
///
/// A command with its data is one message, and its completion is another. A message has at most one kind of fault, so
/// that the shares sum to at most 1; a repeated message can have the next fault.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkFaultConfig {
    /// Share of messages that arrive late, 0 to 1.
    pub delay: f64,
    /// The delay of late messages; up to an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_by: Option<Span>,
    /// Share of messages that are lost, 0 to 1; they are sent again after `resend_after`.
    pub drop: f64,
    /// Time from the sending of a lost message to its next sending: the retransmission time-out of TCP (RFC 6298; the
    /// minimum in Linux is 200 ms).
    pub resend_after: Span,
    /// Share of messages that arrive damaged, 0 to 1: their digest is wrong, the receiver reports it, and they are sent
    /// again at once (RFC 7143, clause 7.8).
    pub error: f64,
    /// Share of messages that break their session, 0 to 1: all incomplete commands of the session start again after
    /// `reconnect`, including commands in the device (RFC 7143, clause 7.5).
    pub reset: f64,
    /// Time of the run at which all sessions break, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<Span>,
    /// Time from the break of a session until it accepts commands again (RFC 7143, clause 13.15, `DefaultTime2Wait`: 2
    /// s).
    pub reconnect: Span,
    /// Maximum number of attempts of a command, 1 to 1000. If the session breaks after the last
    /// attempt, the command ends in an error.
    pub tries: u32,
}

impl Default for NetworkFaultConfig {
    fn default() -> NetworkFaultConfig {
        NetworkFaultConfig {
            delay: 0.0,
            delay_by: None,
            drop: 0.0,
            resend_after: Span(Time::from_ms(200)),
            error: 0.0,
            reset: 0.0,
            reset_at: None,
            reconnect: Span(Time::from_s(2)),
            tries: 5,
        }
    }
}

impl NetworkFaultConfig {
    /// Nothing goes wrong.
    pub fn is_none(&self) -> bool {
        let quiet = NetworkFaultConfig {
            resend_after: self.resend_after,
            reconnect: self.reconnect,
            tries: self.tries,
            ..NetworkFaultConfig::default()
        };
        *self == quiet
    }

    /// The configured faults, drawn with `seed`: a rejected message is corrupt, and a broken session is removed until
    /// it reconnects.
    pub(crate) fn plan(&self, seed: u64) -> FaultPlan {
        let late = Fault::Delay(self.delay_by.map_or(Time::ZERO, |Span(by)| by));
        FaultPlan::new(seed)
            .share(FaultSite::Message, Fault::Corrupt, self.error)
            .share(FaultSite::Message, Fault::Drop, self.drop)
            .share(FaultSite::Message, Fault::Remove, self.reset)
            .share(FaultSite::Message, late, self.delay)
            .at(self.reset_at.map(|Span(at)| at), Fault::Remove)
    }

    /// Checks the values.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let NetworkFaultConfig { delay, drop, error, reset, tries, .. } = *self;
        let times = [
            ("delay_by", self.delay_by),
            ("reset_at", self.reset_at),
            ("resend_after", Some(self.resend_after)),
            ("reconnect", Some(self.reconnect)),
        ];
        let shares = [("error", error), ("delay", delay), ("drop", drop), ("reset", reset)];
        check_faults(&times, &shares, (delay, self.delay_by))?;
        for (key, share) in shares {
            // A message that never gets through is sent forever.
            if key != "delay" && share > 0.9 {
                let problem = format!("with {share}, almost no command gets through");
                let help = "use a share up to 0.9, such as 0.01";
                return Err(ConfigError::new(format!("faults.{key}"), problem, help));
            }
        }
        if error + drop + reset > 0.95 {
            let problem = "with error, drop and reset together, almost no command gets through";
            return Err(ConfigError::new("faults.drop", problem, "use shares such as 0.01"));
        }
        ConfigError::within("faults.tries", tries, 1..=1000, "use a number such as 5")
    }
}

/// Refuses faults that no component on this path to the device could detect or recover from.
pub(crate) fn check(attach: &Attach) -> Result<(), ConfigError> {
    let faults = attach.device.faults();
    match &attach.host {
        Some(HostSide { plan, path: DevicePath::Nvme(_) }) => {
            let polled = plan.plan.waiting != CompletionWait::Interrupt;
            with_interrupts(faults, polled, "leave `host.completion` out")
        }
        Some(HostSide { path: DevicePath::Ring(driver), .. }) => {
            if faults.slow_by > 0.0 {
                // The card carries out a plan of its own, which has shares of commands and no periods.
                let problem = "a ring card cannot be slowed temporarily";
                let help = "leave slow_by and slow_for out";
                return Err(ConfigError::new("faults.slow_by", problem, help));
            }
            let polled = matches!(driver.completion, CompletionPolicy::HybridPolling { .. });
            with_interrupts(faults, polled, "choose another completion in `host.ring`")
        }
        _ => without_driver(faults, attach.driver_name()),
    }
}

/// Drivers that are models of cost alone have neither timeouts nor interrupts that can be lost.
fn without_driver(faults: &FaultConfig, driver: &str) -> Result<(), ConfigError> {
    let (key, what) = if faults.drop > 0.0 {
        ("drop", "a command that never completes would hang the run")
    } else if faults.hang_at.is_some() {
        ("hang_at", "a device that hangs would hang the run")
    } else if faults.lost_interrupts > 0.0 {
        ("lost_interrupts", "interrupts cannot be lost")
    } else {
        return Ok(());
    };
    let problem = format!("the driver `{driver}` has no timeout and sends no reset: {what}");
    let help = "run an SSD with `host.driver=nvme`, or a ring card; or leave the key out";
    Err(ConfigError::new(format!("faults.{key}"), problem, help))
}

fn with_interrupts(faults: &FaultConfig, polled: bool, help: &str) -> Result<(), ConfigError> {
    if polled && faults.lost_interrupts > 0.0 {
        let problem = "the host polls: it uses no interrupts that could be lost";
        return Err(ConfigError::new(
            "faults.lost_interrupts",
            problem,
            format!("{help}, or the key"),
        ));
    }
    Ok(())
}

/// When the driver aborted commands and reset its device.
#[derive(Debug, Default)]
pub(crate) struct DriverActions {
    kept: Vec<DriverAction>,
    aborts: u64,
    resets: u64,
}

impl DriverActions {
    /// Notes what is new at `now` of the run, by the counts of the driver so far: drivers keep no clock.
    pub(crate) fn note(&mut self, now: Time, aborts: u64, resets: u64) {
        for (kind, before, count) in [
            (DriverActionKind::Abort, &mut self.aborts, aborts),
            (DriverActionKind::Reset, &mut self.resets, resets),
        ] {
            let room = FaultsResult::ACTIONS_MOST.saturating_sub(self.kept.len());
            let new = usize::try_from(count - *before).unwrap_or(room).min(room);
            self.kept.extend(vec![DriverAction { time_ns: now.as_ns(), kind }; new]);
            *before = count;
        }
    }

    /// For the result.
    pub(crate) fn result(&self) -> Vec<DriverAction> {
        self.kept.clone()
    }
}

/// The faults of a device for the report, in a run that began at `epoch`.
pub(crate) fn of_device(injected: Option<Injected>, epoch: Time) -> Option<DeviceFaults> {
    let Injected { errors, delays, drops, lost_interrupts, hung_at, removed_at, .. } = injected?;
    let seconds = |at: Time| at.saturating_sub(epoch).as_s_f64();
    Some(DeviceFaults {
        errors,
        delays,
        drops,
        lost_interrupts,
        hung_at_seconds: hung_at.map(seconds),
        removed_at_seconds: removed_at.map(seconds),
        slowed_percent: None,
    })
}

/// Adds how much slower `faults` made a device on average until `end`: it makes no event that anything counts.
pub(crate) fn add_slowness(result: &mut RunResult, faults: &FaultConfig, seed: u64, end: Time) {
    let slowness = faults.mean_slowness(seed, end);
    if slowness > 1.0 {
        let faults = result.faults.get_or_insert_with(FaultsResult::default);
        let device = faults.device.get_or_insert_with(DeviceFaults::default);
        device.slowed_percent = Some(100.0 * (slowness - 1.0));
    }
}

/// Notes that the energy of a hung device is a lower bound: the model takes no more commands, and then goes to sleep. What real
/// firmware draws while it hangs is not known. A reset revives the device.
pub(crate) fn note_hung_energy(result: &mut RunResult) {
    let Some(faults) = &result.faults else { return };
    let Some(at) = faults.device.and_then(|device| device.hung_at_seconds) else { return };
    // Times of actions are in whole nanoseconds.
    let revives = |action: &&DriverAction| {
        action.kind == DriverActionKind::Reset && action.time_ns as f64 >= (at * 1e9).floor()
    };
    let until = match faults.driver_actions.iter().find(revives) {
        Some(reset) => format!("until the reset at {}", seconds(reset.time_ns as f64 / 1e9)),
        // Only the first actions are kept.
        None if faults.driver_actions.len() == FaultsResult::ACTIONS_MOST
            && faults.driver.resets > 0 =>
        {
            "until the next reset".to_owned()
        }
        None => "from then on".to_owned(),
    };
    let text = format!(
        "the device hung at {}: {until} the model counts the energy of an idle device, which a real one may exceed",
        seconds(at)
    );
    result.notes.push(text);
}

/// Notes that faults count in the whole run. A fault of the ramp-up may still have its effect in the recorded window, so the
/// counts include it; errors of requests are those of the window.
pub(crate) fn note_ramp_up(result: &mut RunResult, skipped: u64) {
    let happened =
        result.faults.as_ref().is_some_and(|faults| faults.requests_failed > result.errors);
    if happened && skipped > 0 {
        let note = "the counts of faults include the ramp-up; all other figures do not";
        result.notes.push(note.to_owned());
    }
}

/// Notes the faults of `faults` whose time a run did not reach: its figures are those of a run without them.
pub(crate) fn note_unreached(result: &mut RunResult, faults: &FaultConfig) {
    let device = result.faults.as_ref().and_then(|faults| faults.device).unwrap_or_default();
    let keys = [
        ("hang_at", faults.hang_at, device.hung_at_seconds),
        ("remove_at", faults.remove_at, device.removed_at_seconds),
    ];
    for (key, at, happened) in keys {
        if let (Some(at), None) = (at, happened) {
            // Without the length of the run, which varies by the seed: repeated runs then have the same note.
            let note = format!("faults.{key}={at} did not happen: the run ended before this time");
            result.notes.push(note);
        }
    }
}

/// A run with faults is meant to be unsteady. The usual remedies, a ramp-up or a longer run, would take the faults out
/// of the figures.
pub(crate) fn blame(result: &mut RunResult) {
    let faults = result.faults.as_ref();
    if faults.is_none_or(|faults| faults.device.is_none() && faults.network.is_none()) {
        return;
    }
    let affected = |kind: WarningKind| {
        kind.is_unsteady() || matches!(kind, WarningKind::WarmUp | WarningKind::Overloaded)
    };
    for warning in result.warnings.iter_mut().filter(|warning| affected(warning.kind)) {
        let help = "the injected faults can cause this; compare with a run without `faults`, and \
                    do not exclude a part of this run";
        warning.help = Some(help.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::Warning;

    use super::*;

    #[test]
    fn a_warning_beside_faults_does_not_leave_them_out() {
        let warned = |device| {
            let warnings = [WarningKind::WarmUp, WarningKind::Memory];
            let warnings = warnings.map(|kind| Warning::new(kind, "").with_help("run longer"));
            let faults = Some(FaultsResult { device, ..FaultsResult::default() });
            let mut result =
                RunResult { faults, warnings: warnings.to_vec(), ..RunResult::default() };
            blame(&mut result);
            result.warnings.into_iter().map(|warning| warning.help.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(warned(None), ["run longer", "run longer"]);
        let [warm_up, memory] = &warned(Some(DeviceFaults::default()))[..] else { panic!("two") };
        assert!(warm_up.contains("injected faults"), "{warm_up}");
        assert_eq!(memory, "run longer");
    }

    #[test]
    fn a_device_hangs_until_it_is_reset() {
        let note = |actions: &[(u64, DriverActionKind)]| {
            let actions = actions.iter().map(|&(time_ns, kind)| DriverAction { time_ns, kind });
            let device = DeviceFaults { hung_at_seconds: Some(0.5), ..DeviceFaults::default() };
            let mut result = RunResult {
                faults: Some(FaultsResult {
                    device: Some(device),
                    driver_actions: actions.collect(),
                    ..FaultsResult::default()
                }),
                ..RunResult::default()
            };
            note_hung_energy(&mut result);
            result.notes.remove(0)
        };
        let (abort, reset) = (DriverActionKind::Abort, DriverActionKind::Reset);
        assert!(note(&[]).contains("from then on the model"));
        assert!(note(&[(600_000_000, abort)]).contains("from then on the model"));
        // A reset before has another cause.
        let text = note(&[(100_000_000, reset), (600_000_000, abort), (700_000_000, reset)]);
        assert!(text.contains(": until the reset at 700.0 ms the model"), "{text}");
    }

    /// Runs of other seeds, and of other lengths, have the same note.
    #[test]
    fn a_fault_that_did_not_happen_is_noted_in_the_same_words() {
        let faults = FaultConfig {
            hang_at: Some(Span(Time::from_s(5))),
            remove_at: Some(Span(Time::from_s(6))),
            ..FaultConfig::default()
        };
        let notes = |simulated_seconds| {
            let device = DeviceFaults { removed_at_seconds: Some(6.0), ..DeviceFaults::default() };
            let told = FaultsResult { device: Some(device), ..FaultsResult::default() };
            let mut result =
                RunResult { simulated_seconds, faults: Some(told), ..RunResult::default() };
            note_unreached(&mut result, &faults);
            result.notes
        };
        assert_eq!(
            notes(1.0),
            ["faults.hang_at=5s did not happen: the run ended before this time"]
        );
        assert_eq!(notes(1.0), notes(2.0));
    }

    #[test]
    fn impossible_values_are_named() {
        for (keys, key) in [
            ("drop = 1.5", "faults.drop"),
            ("drop = 1", "faults.drop"),
            ("error = -1", "faults.error"),
            ("reset = nan", "faults.reset"),
            ("error = 0.5\nreset = 0.49", "faults.drop"),
            ("delay = 0.5", "faults.delay"),
            ("delay_by = \"1ms\"", "faults.delay_by"),
            ("reset_at = \"0s\"", "faults.reset_at"),
            ("resend_after = \"0ms\"", "faults.resend_after"),
            ("reconnect = \"2h\"", "faults.reconnect"),
            ("tries = 0", "faults.tries"),
        ] {
            let config: NetworkFaultConfig = toml::from_str(keys).unwrap();
            assert_eq!(config.check().unwrap_err().key, key, "{keys}");
        }
        let waits: NetworkFaultConfig = toml::from_str("reconnect = \"1s\"\ntries = 2").unwrap();
        assert!(waits.is_none() && waits.check().is_ok());
    }
}
