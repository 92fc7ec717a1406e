//! The `[array.controller]` table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bytes, Span, Watts};
use ssdyno_block::{ConfigError, Time};

use crate::LinkConfig;

ssdyno_block::defaults! {
    depth: u32 = 256;
    one: u32 = 1;
    ideal: LinkConfig = LinkConfig::Ideal;
    destage_depth: u32 = 8;
    streams: u32 = 8;
}

/// Which dirty data of the cache are written to the members first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DestageOrder {
    /// The dirty data at the next higher address; after the highest address, the lowest (C-LOOK).
    #[default]
    Address,
    /// The oldest dirty data first.
    Age,
}

/// How the controller handles a flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlushPolicy {
    /// The flush completes after `latency`. The cache is battery-backed: its data are durable. A MegaRAID works this
    /// way for virtual disks (Linux, `megaraid_sas`: the firmware takes care of the cache on its own).
    Complete,
    /// The flush waits until all data that are dirty at that time are on the members. Then each member gets a flush.
    PassOn,
}

/// When the controller reads ahead: the read policy of a virtual disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAheadPolicy {
    /// The controller reads only the data that the host requests.
    #[default]
    None,
    /// The controller reads ahead after each read.
    Always,
    /// The controller reads ahead if the two most recent reads of a stream were sequential, and not after a random
    /// read (Dell OpenManage Server Administrator 7.0, user's guide, "Read Policy"; the MegaRAID SAS Software
    /// User Guide says the same).
    Adaptive,
}

/// The `[array.controller]` table: a RAID controller with a queue, processors, a link to the host and a cache.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerTable {
    /// Maximum number of commands in the controller, 1 to 65536; the controller refuses further
    /// commands as if its queue were full.
    #[serde(default = "depth")]
    pub depth: u32,
    /// Maximum number of commands that the controller issues to a member at a time, 1 to 65536; if
    /// omitted, the limit of the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_depth: Option<u32>,
    /// Time for which each command of the host occupies a core, up to 1 s.
    #[serde(default)]
    pub latency: Span,
    /// Number of commands that the controller works on at a time, 1 to 1024. With one core, the controller is limited
    /// to 1 / `latency` commands a second.
    #[serde(default = "one")]
    pub cores: u32,
    /// The link to the host: the data of reads and writes cross it.
    #[serde(default = "ideal")]
    pub link: LinkConfig,
    /// Size of the cache memory, up to 1 TiB; 0: no cache. Read-ahead takes up to `streams` x `read_ahead_size` of the
    /// memory; dirty data may fill the rest.
    #[serde(default)]
    pub cache: Bytes,
    /// True: a write completes when its data are in the cache, which is battery-backed. The controller writes them
    /// to the members afterwards (destaging). False: a write completes when the data are on the members.
    #[serde(default)]
    pub write_back: bool,
    /// Which dirty data are destaged first.
    #[serde(default)]
    pub destage: DestageOrder,
    /// Maximum number of destage writes in progress, 1 to 1024. Each writes contiguous dirty data inside a full stripe:
    /// `stripe` x the number of members.
    #[serde(default = "destage_depth")]
    pub destage_depth: u32,
    /// How the controller handles a flush; if omitted, `complete` with `write_back` and `pass-on`
    /// without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<FlushPolicy>,
    /// When the controller reads ahead.
    #[serde(default)]
    pub read_ahead: ReadAheadPolicy,
    /// Maximum distance from the end of the last read of a stream to the end of its read-ahead, up to 1 GiB and a
    /// multiple of the array's sectors; if omitted, two full stripes. A read-ahead command reads one stripe of one
    /// member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_size: Option<Bytes>,
    /// Maximum number of sequential streams that the controller recognises, 1 to 256. A read that continues no stream
    /// replaces the least recently used stream.
    #[serde(default = "streams")]
    pub streams: u32,
    /// Power of the idle controller.
    #[serde(default)]
    pub idle_power: Watts,
    /// Power of the controller while it holds a command, destages data or reads ahead; if omitted,
    /// `idle_power`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_power: Option<Watts>,
}

/// An error at `key` of the table.
pub(super) fn wrong(key: &str, problem: String, help: &str) -> ConfigError {
    ConfigError::new(format!("array.controller.{key}"), problem, help)
}

impl ControllerTable {
    /// Checks what can be known before the members are built.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let member_depth = self.member_depth.unwrap_or(1);
        for (key, value, most) in [
            ("depth", self.depth, 1 << 16),
            ("member_depth", member_depth, 1 << 16),
            ("cores", self.cores, 1024),
            ("destage_depth", self.destage_depth, 1024),
            ("streams", self.streams, 256),
        ] {
            let key = format!("array.controller.{key}");
            ConfigError::within(key, value, 1..=most, "use a number such as 8")?;
        }
        let (key, most) = ("array.controller.latency", Span(Time::from_s(1)));
        ConfigError::no_longer(key, self.latency, most, "use a time such as \"50us\"")?;
        if self.cache.0 > 1 << 40 {
            let problem = format!("{} is more than 1TiB", self.cache);
            return Err(wrong("cache", problem, "use a size such as \"256MiB\""));
        }
        for (key, asked) in [
            ("write_back", self.write_back),
            ("read_ahead", self.read_ahead != ReadAheadPolicy::None),
        ] {
            if asked && self.cache.0 == 0 {
                let help = "set the size of the cache, such as cache = \"256MiB\"";
                return Err(wrong("cache", format!("not set, but {key} needs it"), help));
            }
        }
        if let LinkConfig::SectorBus { .. } = self.link {
            let problem = "a controller has no such link to its host".into();
            return Err(wrong("link.kind", problem, "use pcie, sata or ideal"));
        }
        for (key, watts) in [("idle_power", self.idle_power), ("active_power", self.active_power())]
        {
            if !(0.0..=1e6).contains(&watts.0) {
                let problem = format!("{watts} is outside 0W to 1000000W");
                return Err(wrong(key, problem, "use a power such as \"14W\""));
            }
        }
        Ok(())
    }

    pub(super) fn active_power(&self) -> Watts {
        self.active_power.unwrap_or(self.idle_power)
    }

    pub(super) fn flush(&self) -> FlushPolicy {
        let by_default = if self.write_back { FlushPolicy::Complete } else { FlushPolicy::PassOn };
        self.flush.unwrap_or(by_default)
    }
}
