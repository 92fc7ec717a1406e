//! The `[nvme]` table of a device file: what the controller in front of the device is. The controller itself is a
//! crate above this one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bytes, Span, Watts};
use ssdyno_block::{ConfigError, Time};
use ssdyno_pci::Identity;
use ssdyno_spec::nvme::registers::DOORBELLS;

use crate::LinkConfig;

/// Versions of NVM Express that can be named.
pub const VERSIONS: [&str; 6] = ["1.0", "1.1", "1.2", "1.3", "1.4", "2.0"];

/// Class code: mass storage, non-volatile memory, NVM Express I/O controller.
const CLASS: u32 = 0x01_08_02;

/// Commands that the arbiter takes from a queue at a time (base 2.0c, clause 5.27.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Burst {
    /// All commands in the queue.
    Unlimited,
    /// 1, 2, 4, 8, 16, 32 or 64.
    #[serde(untagged)]
    Commands(u8),
}

impl Burst {
    /// Bits 2:0 of the arbitration feature, AB.
    pub fn exponent(self) -> u8 {
        match self {
            Burst::Unlimited => 7,
            Burst::Commands(commands) => commands.trailing_zeros() as u8,
        }
    }
}

/// A namespace that the device has at the start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamespaceConfig {
    /// Size of the namespace; if omitted, the rest of the capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Logical block size of the namespace: 512B or 4KiB.
    #[serde(default = "sector")]
    pub block_size: Bytes,
}

/// An operational power state (base 2.0c, clause 8.15): commands are processed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationalState {
    /// Maximum average power over a few milliseconds. The first state only reports it; the others also limit the power
    /// to it. 0 W: not reported, no limit.
    pub power: Watts,
    /// Time to enter.
    #[serde(default)]
    pub entry_latency: Span,
    /// Time to leave.
    #[serde(default)]
    pub exit_latency: Span,
}

/// A low-power state (NVM Express base specification 2.0, clause 8.15).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerState {
    /// Power of the whole device.
    pub power: Watts,
    /// Idle time before the device enters the state (the host's autonomous transition table).
    pub idle_after: Span,
    /// Time to enter; a request that arrives during this time waits for it.
    pub entry_latency: Span,
    /// Time to leave; the request that wakes the device waits for it.
    pub exit_latency: Span,
}

fn sector() -> Bytes {
    Bytes(512)
}

/// The `[nvme]` table: the NVMe controller between host and device.
///
/// A device file without this table has no controller: requests reach the device without queues and cost the host
/// nothing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NvmeControllerConfig {
    /// Version of the specification that the controller reports, 1.0 to 2.0. The controller neither announces nor
    /// accepts features of later versions.
    pub version: String,
    /// PCI vendor.
    pub pci_vendor: u16,
    /// PCI device.
    pub pci_device: u16,
    /// Model, up to 40 ASCII characters.
    pub model: String,
    /// Serial number, up to 20 ASCII characters.
    pub serial: String,
    /// Firmware revision, up to 8 ASCII characters.
    pub firmware: String,
    /// I/O queue pairs, 1 to 1024.
    pub io_queues: u16,
    /// Maximum number of entries of a queue, 2 to 65536.
    pub queue_entries: u32,
    /// Maximum data size of a command: a power of two from 8KiB, the smallest MDTS value, to 4MiB.
    pub max_transfer: Bytes,
    /// Commands taken from a queue at a time, until the host sets another value: 1 to 64, or "unlimited".
    pub arbitration_burst: Burst,
    /// The controller offers weighted round robin with urgent class.
    pub weighted_round_robin: bool,
    /// Distance between doorbells: a power of two from 4B to 128KiB.
    pub doorbell_stride: Bytes,
    /// Number of MSI-X vectors; if omitted, one for each queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msix_vectors: Option<u16>,
    /// Number of MSI vectors: 0, or a power of two to 32.
    pub msi_vectors: u16,
    /// Time from the moment a read of host memory leaves the controller until its last data
    /// arrives, without the transfer time of the data.
    pub fetch_latency: Span,
    /// Number of submission queue entries per read, 1 to 64.
    pub fetch_entries: u32,
    /// Maximum number of submission queue reads in progress, 1 to 256.
    pub fetches: u32,
    /// Time from the end of a command until its completion entry is in host memory, without the
    /// transfer time.
    pub completion_latency: Span,
    /// Time of an admin command.
    pub admin_time: Span,
    /// From CC.EN = 1 to CSTS.RDY = 1.
    pub ready_time: Span,
    /// Keep the written data and return it when it is read. Costs memory and time on the host.
    pub contents: bool,
    /// Maximum number of namespaces, 1 to 1024.
    pub namespaces_max: u32,
    /// Namespaces that the device has at the start.
    pub namespaces: Vec<NamespaceConfig>,
    /// Operational power states, the state with the most power first; the low-power states of `[power]` are numbered
    /// after them.
    pub operational_states: Vec<OperationalState>,
    /// The link between the host and a controller in front of a disk, an array, a volume or a delay: entries of
    /// queues and data cross it [default: PCI Express 3.0 with 4 lanes]. An SSD has `[host_link]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkConfig>,
}

impl Default for NvmeControllerConfig {
    fn default() -> NvmeControllerConfig {
        let us = |us| Span(Time::from_us(us));
        NvmeControllerConfig {
            version: "2.0".to_owned(),
            // Registered by nobody: 0x1de5 and up would be somebody's.
            pci_vendor: 0xfff0,
            pci_device: 0x5d00,
            model: "SSDyno simulated NVMe SSD".to_owned(),
            serial: "SIM0000000000001".to_owned(),
            firmware: env!("CARGO_PKG_VERSION").to_owned(),
            io_queues: 32,
            queue_entries: 1024,
            max_transfer: Bytes(1 << 20),
            arbitration_burst: Burst::Commands(8),
            weighted_round_robin: true,
            doorbell_stride: Bytes(4),
            msix_vectors: None,
            msi_vectors: 1,
            fetch_latency: Span(Time::from_ns(900)),
            fetch_entries: 16,
            fetches: 8,
            completion_latency: Span(Time::from_ns(300)),
            admin_time: us(10),
            ready_time: us(10_000),
            contents: false,
            namespaces_max: 32,
            namespaces: vec![NamespaceConfig { size: None, block_size: sector() }],
            operational_states: vec![OperationalState {
                power: Watts(8.0),
                entry_latency: Span::default(),
                exit_latency: Span::default(),
            }],
            link: None,
        }
    }
}

/// The facts about the device behind it that a controller needs.
#[derive(Clone, PartialEq, Debug)]
pub struct NvmeSetup {
    /// The controller.
    pub nvme: NvmeControllerConfig,
    /// The link to the host.
    pub host_link: LinkConfig,
    /// I/O commands in the controller at most.
    pub depth: u32,
    /// Low-power states of the device, which are numbered after the operational ones.
    pub low_power_states: Vec<PowerState>,
    /// The device has a write cache that loses its data with the power.
    pub volatile_cache: bool,
    /// Erases that a block of flash stands; 0: not said, or no flash.
    pub endurance_cycles: u32,
}

impl NvmeSetup {
    /// I/O commands in a controller in front of a device that is not an SSD: one full queue.
    const DEPTH: u32 = 1024;

    /// The setup of a controller in front of a device that is not an SSD.
    pub fn in_front(nvme: &NvmeControllerConfig, volatile_cache: bool) -> NvmeSetup {
        let host_link = nvme.link.clone().unwrap_or(LinkConfig::Pcie {
            generation: 3,
            lanes: 4,
            max_payload: Bytes(256),
            packet_overhead: Bytes(24),
            latency: Span::default(),
        });
        NvmeSetup {
            nvme: nvme.clone(),
            host_link,
            depth: NvmeSetup::DEPTH,
            low_power_states: Vec::new(),
            volatile_cache,
            endurance_cycles: 0,
        }
    }
}

impl NvmeControllerConfig {
    /// The share of `capacity_bytes` that the namespaces have at the start, 0 to 1. No host can write the rest.
    pub fn allocated_share(&self, capacity_bytes: u64) -> f64 {
        // A namespace without a size has the rest of the capacity.
        let sizes = self.namespaces.iter().map(|one| Some(one.size?.0)).sum::<Option<u64>>();
        match sizes {
            Some(bytes) if bytes < capacity_bytes => bytes as f64 / capacity_bytes as f64,
            _ => 1.0,
        }
    }

    /// The identity of the controller on the bus.
    pub fn identity(&self) -> Identity {
        let doorbells = 2 * (u64::from(self.io_queues) + 1) * self.doorbell_stride.0;
        Identity {
            vendor: self.pci_vendor,
            device: self.pci_device,
            class: CLASS,
            revision: 0,
            bar_bytes: [(u64::from(DOORBELLS) + doorbells).next_power_of_two().max(1 << 14), 0, 0],
            msix_vectors: self.vectors(),
            msi_vectors: self.msi_vectors,
            interrupt_pin: 1,
        }
    }

    /// Vectors of MSI-X.
    pub fn vectors(&self) -> u16 {
        self.msix_vectors.unwrap_or(self.io_queues + 1)
    }

    /// Checks what needs nothing but the table.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let power_of_two = |bytes: Bytes, low: u64, high: u64| {
            bytes.0.is_power_of_two() && (low..=high).contains(&bytes.0)
        };
        let rules: [(&str, bool, &str); 14] = [
            (
                "version",
                VERSIONS.contains(&self.version.as_str()),
                "use \"1.0\" to \"1.4\" or \"2.0\"",
            ),
            ("io_queues", (1..=1024).contains(&self.io_queues), "use 1 to 1024"),
            ("queue_entries", (2..=65536).contains(&self.queue_entries), "use 2 to 65536"),
            (
                "max_transfer",
                // Base 2.0c, figure 275: MDTS = 0, 4 KiB, means no limit.
                power_of_two(self.max_transfer, 8192, 4 << 20),
                "use a power of two from \"8KiB\" to \"4MiB\"",
            ),
            (
                "arbitration_burst",
                match self.arbitration_burst {
                    Burst::Unlimited => true,
                    Burst::Commands(n) => n.is_power_of_two() && n <= 64,
                },
                "use 1, 2, 4, 8, 16, 32, 64 or \"unlimited\"",
            ),
            (
                "doorbell_stride",
                power_of_two(self.doorbell_stride, 4, 4 << 15),
                "use a power of two from \"4B\" to \"128KiB\"",
            ),
            ("msix_vectors", self.vectors() <= 2048, "PCI allows 2048 at most"),
            (
                "msi_vectors",
                self.msi_vectors == 0
                    || self.msi_vectors.is_power_of_two() && self.msi_vectors <= 32,
                "use 0, 1, 2, 4, 8, 16 or 32",
            ),
            ("fetch_entries", (1..=64).contains(&self.fetch_entries), "use 1 to 64"),
            ("fetches", (1..=256).contains(&self.fetches), "use 1 to 256"),
            ("namespaces_max", (1..=1024).contains(&self.namespaces_max), "use 1 to 1024"),
            (
                "namespaces",
                self.namespaces.len() as u32 <= self.namespaces_max,
                "give no more than nvme.namespaces_max",
            ),
            (
                "operational_states",
                (1..=16).contains(&self.operational_states.len()),
                "give 1 to 16 states",
            ),
            (
                "ready_time",
                self.ready_time.0 <= Time::from_s(127),
                "the maximum of CAP.TO is 127.5 s",
            ),
        ];
        for (key, holds, help) in rules {
            if !holds {
                let problem = "is outside what NVM Express allows".to_owned();
                return Err(ConfigError::new(format!("nvme.{key}"), problem, help));
            }
        }
        self.check_texts()?;
        self.check_times()
    }

    fn check_texts(&self) -> Result<(), ConfigError> {
        let texts = [
            ("model", &self.model, 40),
            ("serial", &self.serial, 20),
            ("firmware", &self.firmware, 8),
        ];
        for (key, text, length) in texts {
            if text.len() > length || !text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
                return Err(ConfigError::new(
                    format!("nvme.{key}"),
                    format!("`{text}` must be at most {length} ASCII characters"),
                    "shorten it",
                ));
            }
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        let spans = [
            ("fetch_latency", self.fetch_latency),
            ("completion_latency", self.completion_latency),
            ("admin_time", self.admin_time),
        ];
        let (most, help) =
            (Span(Time::from_s(1)), "a round trip on the bus takes about a microsecond");
        let check = |(key, span)| ConfigError::no_longer(format!("nvme.{key}"), span, most, help);
        spans.into_iter().try_for_each(check)
    }
}
