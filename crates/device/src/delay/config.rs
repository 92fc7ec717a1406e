//! The file of a device with a given delay.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Amperes, Bandwidth, Bytes, Span, Volts, Watts};
use ssdyno_block::{ConfigError, SECTOR_BYTES, Time};
use ssdyno_energy::{BusPower, CpuPower, CpuRule, DramPower, FlashPower};

use super::DelayDevice;
use crate::faults::FaultConfig;
use crate::nvme::NvmeControllerConfig;
use crate::{Device, DeviceConfig};

/// Distribution of a request's delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Always the same.
    #[default]
    Fixed,
    /// Exponential with the given mean, as closed forms of queueing theory assume.
    Exponential,
}

/// The `[delay]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayTable {
    /// Size of the device, a multiple of 512 B.
    pub capacity: Bytes,
    /// Time that a server needs for a read (S4-35).
    pub read: Span,
    /// Time that a server needs for a write.
    pub write: Span,
    /// Maximum number of requests in progress, 1 to 65536; further requests wait in order of arrival. With one server,
    /// a delay of 10 us means at most 100 000 requests per second (S4-35).
    #[serde(default = "one")]
    pub servers: u32,
    /// Fixed, or drawn with the given mean.
    #[serde(default)]
    pub spread: Spread,
    /// Rate of the single path that the data of all requests crosses after their delay; if omitted,
    /// the transfer takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// True: a request that begins at the end of the last request of the same kind has no delay, only its transfer, as
    /// on a disk with read-ahead and a streaming write cache.
    #[serde(default)]
    pub streams: bool,
    /// Maximum number of requests inside the device and its queue; the device refuses further
    /// requests as if its queue were full.
    #[serde(default = "deep")]
    pub depth: u32,
}

ssdyno_block::defaults! {
    one: u32 = 1;
    deep: u32 = 1 << 16;
}

/// The file of a device with a given delay: a storage system of which only the latency is known (S4-35, after the Linux
/// module scsi_debug).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayConfig {
    /// One line about the device, and where its numbers come from.
    #[serde(default)]
    pub description: String,
    /// Size and times.
    pub delay: DelayTable,
    /// Currents and powers; if omitted, the result contains no energy.
    #[serde(default = "nothing")]
    pub energy: ssdyno_energy::EnergyConfig,
    /// An NVMe controller in front of the device, for `--driver nvme`; if omitted, every key has its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme: Option<NvmeControllerConfig>,
    /// Faults to inject; if omitted, none.
    #[serde(default, skip_serializing_if = "FaultConfig::is_none")]
    pub faults: FaultConfig,
}

fn nothing() -> ssdyno_energy::EnergyConfig {
    let none = Amperes(0.0);
    ssdyno_energy::EnergyConfig {
        flash: FlashPower {
            voltage: Volts(0.0),
            read_current: none,
            program_current: none,
            erase_current: none,
            transfer_current: none,
            idle_current: none,
            idle_during_cleaning: false,
        },
        cpu: CpuPower {
            rule: CpuRule::InService,
            normal_power: Watts(0.0),
            idle_power: Watts(0.0),
            slow_power: None,
            slow_when_idle_after: None,
        },
        dram: DramPower { active_power: Watts(0.0), idle_power: Watts(0.0) },
        bus: BusPower { voltage: Volts(0.0), channel_current: none, host_link_current: none },
    }
}

impl DeviceConfig for DelayConfig {
    const NAME: &'static str = "delay";
    const TABLE: &'static str = "delay";
    const WHAT: &'static str = "a delay";

    fn build(&self, seed: u64) -> Result<Box<dyn Device>, ConfigError> {
        Ok(Box::new(DelayDevice::new(self, seed)?))
    }

    crate::common_tables!();
}

ssdyno_block::toml_file!(DelayConfig);

impl DelayConfig {
    /// Checks the values.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let error = |key: &str, problem: String, help: &str| {
            Err(ConfigError::new(format!("delay.{key}"), problem, help))
        };
        let DelayTable { capacity, read, write, servers, bandwidth, depth, .. } = &self.delay;
        let sector = u64::from(SECTOR_BYTES);
        if capacity.0 < sector || !capacity.0.is_multiple_of(sector) || capacity.0 > 1 << 50 {
            let help = "use a multiple of 512B up to 1PiB, such as \"8GiB\"";
            return error("capacity", format!("{capacity} is not a valid size of a device"), help);
        }
        for (key, span) in [("read", read), ("write", write)] {
            if span.0 > Time::from_s(3600) {
                return error(key, "longer than an hour".into(), "use a time such as \"100us\"");
            }
        }
        let help = "set the number of requests that the device works on at a time, such as 1";
        ConfigError::within("delay.servers", *servers, 1..=1 << 16, help)?;
        let help = "set the number of requests that the queue holds, such as 256";
        ConfigError::within("delay.depth", *depth, 1..=1 << 20, help)?;
        if let Some(rate) = *bandwidth {
            let help = "use a rate such as \"53MB/s\", or leave the key out";
            let range = Bandwidth(1e3)..=Bandwidth(1e12);
            ConfigError::within("delay.bandwidth", rate, range, help)?;
        }
        self.faults.check()
    }
}
