//! The `[energy]` table of a device file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Amperes, Span, Volts, Watts};
use ssdyno_block::{ConfigError, Time};

/// The `[energy]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnergyConfig {
    /// The flash dies.
    pub flash: FlashPower,
    /// The firmware's processor.
    pub cpu: CpuPower,
    /// The controller's DRAM.
    pub dram: DramPower,
    /// Buses: flash channels and the link to the host.
    pub bus: BusPower,
}

/// The `[energy.flash]` table: currents of one die (S3-2, S3-16).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlashPower {
    /// Supply voltage of the dies (S3-16: 3.3 V).
    pub voltage: Volts,
    /// Current of a die while its array reads (S3-16: 15 mA).
    pub read_current: Amperes,
    /// Current of a die while its array programs (S3-16: 15 mA).
    pub program_current: Amperes,
    /// Current of a die while it erases (S3-16: 15 mA).
    pub erase_current: Amperes,
    /// Current of a die while its data crosses the channel (S3-16 prints 0.05 mA; S3-29: 5 mA).
    pub transfer_current: Amperes,
    /// Current of an idle die (S3-16: 1 mA, of a package with one die).
    pub idle_current: Amperes,
    /// True: a die draws its idle current also during cleaning, on top of the current of the
    /// activity. Physically wrong; the tables of S3 were computed this way (S3-33).
    #[serde(default)]
    pub idle_during_cleaning: bool,
}

/// When the CPU counts as active.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CpuRule {
    /// Each core counts while it executes a command; powers are of one core.
    #[default]
    Cores,
    /// The whole CPU counts while any request is inside the device (S3-3, S3-31); powers are of all
    /// cores together.
    InService,
}

/// The `[energy.cpu]` table (S3-3, S3-16).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuPower {
    /// When the CPU counts as active: `cores` or `in-service`.
    #[serde(default)]
    pub rule: CpuRule,
    /// Power while working (S3-16: 259 mW).
    pub normal_power: Watts,
    /// Power while idle (S3-16: 124 mW).
    pub idle_power: Watts,
    /// Power in slow mode (S3-16: 33 mW); needed with `slow_when_idle_after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_power: Option<Watts>,
    /// Idle time after which the CPU enters slow mode to save energy, until it is needed (S3-15). If omitted, never,
    /// as in S3. The return from slow mode takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_when_idle_after: Option<Span>,
}

/// The `[energy.dram]` table (S3-4, S3-16).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DramPower {
    /// Power while data goes in or out, the same for reads and writes (S3-4). S3-16 prints 80 mW,
    /// with the labels swapped (S3-30): 878 mW.
    pub active_power: Watts,
    /// Power while the DRAM only retains data (S3-16 prints 878 mW; the tables were computed with
    /// 80 mW, S3-30).
    pub idle_power: Watts,
}

/// The `[energy.bus]` table: buses have no idle power (S3-5).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BusPower {
    /// Supply voltage of the buses (S3-16: 3.3 V).
    pub voltage: Volts,
    /// Current of a channel's controller side while it transfers commands or data. S3 has none: it
    /// charges flash transfers to the package (S3-33).
    #[serde(default)]
    pub channel_current: Amperes,
    /// Current of the host link while it transfers (S3-16 prints 0.05 mA; S3-29: 5 mA).
    pub host_link_current: Amperes,
}

impl EnergyConfig {
    /// Checks the values against each other.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.cpu.slow_when_idle_after.is_some() && self.cpu.slow_power.is_none() {
            return Err(error(
                "energy.cpu.slow_power",
                "missing, although energy.cpu.slow_when_idle_after asks for slow mode",
                "set the power in slow mode, such as \"33mW\", or remove slow_when_idle_after",
            ));
        }
        self.check_range()
    }

    /// Keeps typing errors out, and sums of joules finite.
    fn check_range(&self) -> Result<(), ConfigError> {
        let EnergyConfig { flash, cpu, dram, bus } = self;
        let volts = [("flash.voltage", flash.voltage), ("bus.voltage", bus.voltage)];
        let amperes = [
            ("flash.read_current", flash.read_current),
            ("flash.program_current", flash.program_current),
            ("flash.erase_current", flash.erase_current),
            ("flash.transfer_current", flash.transfer_current),
            ("flash.idle_current", flash.idle_current),
            ("bus.channel_current", bus.channel_current),
            ("bus.host_link_current", bus.host_link_current),
        ];
        let watts = [
            ("cpu.normal_power", cpu.normal_power),
            ("cpu.idle_power", cpu.idle_power),
            ("cpu.slow_power", cpu.slow_power.unwrap_or_default()),
            ("dram.active_power", dram.active_power),
            ("dram.idle_power", dram.idle_power),
        ];
        let volts = volts.map(|(key, volts)| (key, volts.0, volts.to_string(), "0V to 1000V", 1e3));
        let amperes = amperes.map(|(key, a)| (key, a.0, a.to_string(), "0A to 1000A", 1e3));
        let watts = watts.map(|(key, w)| (key, w.0, w.to_string(), "0W to 1000000W", 1e6));
        for (key, value, text, range, most) in volts.into_iter().chain(amperes).chain(watts) {
            if !(0.0..=most).contains(&value) {
                let (key, problem) =
                    (format!("energy.{key}"), format!("{text} is outside {range}"));
                return Err(error(&key, problem, "use the value of a data sheet, with its unit"));
            }
        }
        match cpu.slow_when_idle_after {
            Some(span) if span.0 > Time::from_s(3600) => Err(error(
                "energy.cpu.slow_when_idle_after",
                format!("{span} is longer than an hour"),
                "use a time such as \"100us\"",
            )),
            _ => Ok(()),
        }
    }
}

pub(crate) fn error(key: &str, problem: impl Into<String>, help: &str) -> ConfigError {
    ConfigError { key: key.to_owned(), problem: problem.into(), help: help.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::tests::s3_text;

    #[test]
    fn reads_what_it_writes() {
        let config: EnergyConfig = toml::from_str(s3_text()).unwrap();
        let again: EnergyConfig = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
        assert_eq!(config, again);
    }

    #[test]
    fn refuses_unknown_keys_and_bare_numbers() {
        let unknown = s3_text().replace("idle_current", "idel_current");
        let error = toml::from_str::<EnergyConfig>(&unknown).unwrap_err().to_string();
        assert!(error.contains("idel_current"), "{error}");
        let bare = s3_text().replace("\"1mA\"", "1");
        assert!(toml::from_str::<EnergyConfig>(&bare).is_err());
    }

    #[test]
    fn slow_mode_needs_its_power() {
        let mut config: EnergyConfig = toml::from_str(s3_text()).unwrap();
        config.cpu.slow_when_idle_after = Some("100us".parse().unwrap());
        assert!(config.check().is_ok());
        config.cpu.slow_power = None;
        assert_eq!(config.check().unwrap_err().key, "energy.cpu.slow_power");
    }
}
