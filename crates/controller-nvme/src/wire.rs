//! The link between host and controller, as far as queue entries and interrupt messages use it.

use ssdyno_block::{ConfigError, Time};
use ssdyno_engine::FifoResource;

use ssdyno_device::{HostLink, LinkConfig};

/// Bytes of a submission queue entry.
pub(super) const ENTRY_BYTES: u64 = 64;

/// Times on the wire of what is not data.
#[derive(Clone, Debug)]
pub(super) struct WireTimes {
    /// For 1, 2 … entries of a submission queue in one read.
    pub(super) entries: Vec<Time>,
    pub(super) completion: Time,
    pub(super) message: Time,
}

impl WireTimes {
    /// For a PRP list, which is read in pieces as entries of a queue are.
    pub(super) fn list_time(&self, list_entries: u32) -> Time {
        let whole = self.entries.len() as u64;
        let entries = (u64::from(list_entries) * 8).div_ceil(ENTRY_BYTES);
        let rest = (entries % whole) as usize;
        let last = if rest == 0 { Time::ZERO } else { self.entries[rest - 1] };
        self.entries[self.entries.len() - 1] * (entries / whole) + last
    }
}

/// Both directions of the wire.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) times: WireTimes,
    /// The controller's reads: entries of submission queues, PRP lists.
    pub(super) to_controller: FifoResource,
    /// Its writes: completions and messages.
    pub(super) to_host: FifoResource,
}

impl Wire {
    /// The wire of `link`, on which up to `entries_max` entries of a submission queue are read at once.
    ///
    /// # Errors
    /// [`ConfigError`] names the key of the link that is wrong.
    pub(super) fn new(link: &LinkConfig, entries_max: u32) -> Result<Wire, ConfigError> {
        refuse_latency(link)?;
        let link = HostLink::new(link)?;
        let entries = (1..=u64::from(entries_max)).map(|count| link.time_for(count * ENTRY_BYTES));
        let times = WireTimes {
            entries: entries.collect(),
            completion: link.time_for(16),
            message: link.time_for(4),
        };
        let (to_controller, to_host) = (FifoResource::default(), FifoResource::default());
        Ok(Wire { times, to_controller, to_host })
    }
}

/// Queue entries have their own latencies; the link's would be a second charge.
fn refuse_latency(link: &LinkConfig) -> Result<(), ConfigError> {
    let latency = match link {
        LinkConfig::Pcie { latency, .. } | LinkConfig::Sata { latency, .. } => latency.0,
        LinkConfig::Ideal | LinkConfig::SectorBus { .. } => Time::ZERO,
    };
    if latency == Time::ZERO {
        return Ok(());
    }
    Err(ConfigError::new(
        "host_link.latency",
        format!("{latency} would be added to nvme.fetch_latency and nvme.completion_latency"),
        "leave the key out of a device file with a table [nvme]",
    ))
}
