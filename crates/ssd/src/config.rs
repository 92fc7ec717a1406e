//! The contents of a device file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bandwidth, Span};
use ssdyno_block::{ConfigError, Time};
use ssdyno_device::LinkConfig;
use ssdyno_device::faults::FaultConfig;
use ssdyno_device::link::RATES;
use ssdyno_device::nvme::{NvmeControllerConfig, NvmeSetup, PowerState};
use ssdyno_ftl::Precondition;
use ssdyno_ftl::buffer::{BufferConfig, BufferPolicy};

/// How to handle a write that covers only part of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartialPage {
    /// Read the rest of the page first.
    #[default]
    ReadModifyWrite,
    /// Write the page as a full page (as in the simulator behind S3).
    WholePage,
}

/// The order in which requests enter a full device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitingOrder {
    /// First come, first served.
    #[default]
    Fcfs,
    /// Circular scan by start address.
    CLook,
}

/// The `[controller]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ControllerConfig {
    /// Firmware cores. Each command takes one core for `command_time` plus `page_time` per page.
    pub cores: u32,
    /// Firmware time of a command.
    pub command_time: Span,
    /// Firmware time of each page of a command.
    pub page_time: Span,
    /// Bandwidth of the controller's DRAM, which all data crosses once; if omitted, the DRAM takes no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dram_bandwidth: Option<Bandwidth>,
    /// How to handle a write that covers only part of a page.
    pub partial_page: PartialPage,
}

impl Default for ControllerConfig {
    fn default() -> ControllerConfig {
        ControllerConfig {
            cores: 1,
            command_time: Span::default(),
            page_time: Span::default(),
            dram_bandwidth: None,
            partial_page: PartialPage::default(),
        }
    }
}

/// The `[queue]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QueueConfig {
    /// Maximum number of requests inside the device; further requests wait outside.
    pub depth: u32,
    /// The order in which waiting requests enter.
    pub waiting: WaitingOrder,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig { depth: 1024, waiting: WaitingOrder::default() }
    }
}

/// More than any device draws.
const POWER_WATTS_MAX: f64 = 1e6;

/// The `[power]` table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PowerConfig {
    /// Low-power states, in order of rising `idle_after`; if omitted, the device never sleeps.
    pub states: Vec<PowerState>,
}

/// A device file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// One line about the device, and where its numbers come from.
    #[serde(default)]
    pub description: String,
    /// Geometry, times and rules of the flash.
    pub flash: ssdyno_flash::FlashConfig,
    /// Mapping and cleaning.
    pub ftl: ssdyno_ftl::FtlConfig,
    /// Write buffer and read cache.
    #[serde(default)]
    pub buffer: BufferConfig,
    /// Firmware and DRAM.
    #[serde(default)]
    pub controller: ControllerConfig,
    /// The link to the host.
    pub host_link: LinkConfig,
    /// The device's queue.
    #[serde(default)]
    pub queue: QueueConfig,
    /// The NVMe controller; if omitted, requests reach the device without a controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme: Option<NvmeControllerConfig>,
    /// Currents and powers.
    pub energy: ssdyno_energy::EnergyConfig,
    /// Low-power states.
    #[serde(default)]
    pub power: PowerConfig,
    /// Contents of the device before the run.
    #[serde(default)]
    pub precondition: Precondition,
    /// Faults to inject; if omitted, none.
    #[serde(default, skip_serializing_if = "FaultConfig::is_none")]
    pub faults: FaultConfig,
}

ssdyno_block::toml_file!(Config);

impl Config {
    /// The facts that an NVMe controller in front of the SSD needs; `None` without `[nvme]`.
    pub fn nvme_setup(&self) -> Option<NvmeSetup> {
        Some(NvmeSetup {
            nvme: self.nvme.clone()?,
            host_link: self.host_link.clone(),
            depth: self.queue.depth,
            low_power_states: self.power.states.clone(),
            volatile_cache: self.volatile_cache(),
            endurance_cycles: self.flash.endurance_cycles.unwrap_or(0),
        })
    }

    /// The SSD with data in its namespaces only. A host cannot have written the rest of the capacity: cleaning uses it
    /// like over-provisioning.
    ///
    /// # Errors
    /// The flash or its over-provisioning is impossible.
    pub fn with_data_in_namespaces(&self) -> Result<Config, ConfigError> {
        let mut config = self.clone();
        if let Some(nvme) = &self.nvme {
            let geometry = self.flash.geometry()?;
            let pages = self.ftl.logical_pages(&geometry)?;
            let capacity_bytes = u64::from(pages) * u64::from(geometry.page_bytes);
            let share = nvme.allocated_share(capacity_bytes);
            config.precondition.share = self.precondition.share.min(share);
        }
        Ok(config)
    }

    /// The write buffer loses its data with the power.
    pub(crate) fn volatile_cache(&self) -> bool {
        !self.buffer.protected && self.buffer.policy != BufferPolicy::None
    }

    /// Checks what no part checks by itself.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let help = "set the number of requests that the device works on at a time, such as 1024";
        ConfigError::within("queue.depth", self.queue.depth, 1..=1 << 20, help)?;
        let help = "set the number of firmware cores; cores cost no time if command_time is 0us";
        ConfigError::within("controller.cores", self.controller.cores, 1..=256, help)?;
        if let Some(rate) = self.controller.dram_bandwidth {
            let help = "use a bandwidth such as \"3.2GB/s\", or leave the key out";
            ConfigError::within("controller.dram_bandwidth", rate, RATES, help)?;
        }
        let ControllerConfig { command_time, page_time, .. } = self.controller;
        for (key, span) in [("command_time", command_time), ("page_time", page_time)] {
            let (key, most) = (format!("controller.{key}"), Span(Time::from_s(1)));
            ConfigError::no_longer(key, span, most, "firmware takes microseconds")?;
        }
        if let Some(nvme) = &self.nvme {
            nvme.check()?;
            if nvme.link.is_some() {
                let problem = "the link of an SSD to the host needs its own table";
                return Err(ConfigError::new(
                    "nvme.link",
                    problem,
                    "set these keys in the table [host_link]",
                ));
            }
        }
        self.faults.check()?;
        self.check_power()
    }

    fn check_power(&self) -> Result<(), ConfigError> {
        let states = &self.power.states;
        let rising = states.windows(2).all(|two| two[0].idle_after <= two[1].idle_after);
        if !rising || states.len() > 31 {
            return Err(ConfigError::new(
                "power.states",
                "more than 31 states, or not in order of rising idle_after".to_owned(),
                "sort the states from the shallowest to the deepest",
            ));
        }
        if let Some(state) = states.iter().find(|state| state.power.0 > POWER_WATTS_MAX) {
            return Err(ConfigError::new(
                "power.states",
                format!("a power of {} is outside 0W to 1000000W", state.power),
                "set the power that the device draws, such as \"50mW\"",
            ));
        }
        let hour = Time::from_s(3600);
        let spans = |s: &PowerState| [s.idle_after.0, s.entry_latency.0, s.exit_latency.0];
        match states.iter().flat_map(spans).all(|span| span <= hour) {
            true => Ok(()),
            false => Err(ConfigError::new(
                "power.states",
                "a time is longer than an hour".to_owned(),
                "entry and exit take microseconds to seconds",
            )),
        }
    }
}
