//! The NVM subsystem: controller, namespaces, features, log pages and commands over any [`Device`].
//!
//! Nothing here knows how commands and data come: no registers, no queues, no pages of host memory, no interrupts. A
//! transport (PCI in this crate) takes a command from the host, gives it to [`NvmeSubsystem`] together with a
//! [`HostData`] that moves its data, and does what the [`AdminOutcome`] says, or the [`NvmStep`] of an I/O command.
//! After each command it asks for the asynchronous events that are due.
//!
//! Errors: commands end with the [`NvmeStatus`] that the specification names.
//!
//! Not here: the features of the transport (arbitration, number of queues, interrupts), timers, Abort, injected faults.

mod admin;
mod datasets;
mod events;
mod feature_values;
mod features;
mod host_behavior;
mod identify;
mod io;
mod logs;
mod media;
mod namespace_commands;
mod namespaces;
mod offered;
mod ranges;
mod sanitize;
mod sanitizing;
mod text;
mod versions;

use ssdyno_block::{ConfigError, Time};
use ssdyno_spec::nvme::NvmeStatus;

use ssdyno_device::Device;
use ssdyno_device::nvme::PowerState;
use ssdyno_device::nvme::{NvmeControllerConfig, NvmeSetup};

pub use admin::AdminOutcome;
pub use features::FeatureValue;
pub(crate) use identify::{ABORTS_MAX, OPTIONAL};
pub(crate) use io::Kind;
pub use io::{NvmCommand, NvmStep};
pub use logs::FailedCommand;
pub use sanitizing::SanitizeOrder;
pub(crate) use versions::{Field, Part, Version};

use events::Events;
use feature_values::Features;
use logs::Logs;
use media::Media;
use namespaces::Namespaces;
use ranges::Datasets;
use sanitizing::Sanitizing;

/// Moves the data of one command between the subsystem and its host.
pub trait HostData {
    /// Gives `data` to the host.
    ///
    /// # Errors
    /// The status with which the command ends: the host's memory is not there, or is too small.
    fn send(&mut self, data: &[u8]) -> Result<(), NvmeStatus>;

    /// Fills `data` with what the host sends.
    ///
    /// # Errors
    /// As [`send`](HostData::send).
    fn receive(&mut self, data: &mut [u8]) -> Result<(), NvmeStatus>;
}

/// The device file's description of the device, as far as a host can read it.
#[derive(Clone, Debug)]
struct DeviceLimits {
    /// Low-power states of the device, as power state descriptors come after the operational ones.
    low_power_states: Vec<PowerState>,
    /// The volatile write cache exists.
    has_cache: bool,
    /// Erases that a block stands.
    endurance_cycles: u32,
}

/// A subsystem with one controller, in front of `D`.
#[derive(Debug)]
pub struct NvmeSubsystem<D> {
    device: D,
    config: NvmeControllerConfig,
    version: Version,
    limits: DeviceLimits,
    namespaces: Namespaces,
    features: Features,
    pub(crate) logs: Logs,
    events: Events,
    media: Media,
    datasets: Datasets,
    sanitizing: Sanitizing,
}

impl<D: Device> NvmeSubsystem<D> {
    /// A subsystem as `setup` says in front of `device`.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn new(device: D, setup: NvmeSetup) -> Result<NvmeSubsystem<D>, ConfigError> {
        let NvmeSetup { nvme, low_power_states, volatile_cache, endurance_cycles, .. } = setup;
        nvme.check()?;
        let version = Version::parse(&nvme.version).unwrap_or(Version::LATEST);
        let namespaces = Namespaces::new(&nvme, device.capacity_bytes(), device.sector_bytes())?;
        let mut subsystem = NvmeSubsystem {
            version,
            namespaces,
            features: Features::new(&nvme, version, &low_power_states),
            logs: Logs::default(),
            events: Events::default(),
            media: Media::new(nvme.contents),
            datasets: Datasets::default(),
            sanitizing: Sanitizing::default(),
            limits: DeviceLimits { low_power_states, has_cache: volatile_cache, endurance_cycles },
            config: nvme,
            device,
        };
        subsystem.apply_features(Time::ZERO);
        Ok(subsystem)
    }

    /// The device: its events, facts and health.
    #[inline]
    pub fn device(&self) -> &D {
        &self.device
    }
    /// The device.
    #[inline]
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }
    /// The configuration that it was built from.
    #[inline]
    pub fn config(&self) -> &NvmeControllerConfig {
        &self.config
    }
    /// The version of NVM Express that it follows.
    pub(crate) fn version(&self) -> Version {
        self.version
    }
    /// There is a volatile write cache.
    #[inline]
    pub(crate) fn has_cache(&self) -> bool {
        self.limits.has_cache
    }
    /// The hints that Dataset Management gave for `namespace`, the latest last; the newest 256 are
    /// kept (S1-44). No model acts on them.
    pub fn hints(&self, namespace: u32) -> &[ssdyno_spec::nvme::DatasetRange] {
        self.namespaces.get(namespace).map_or(&[], |ns| &ns.hints)
    }

    /// A controller level reset (base 2.0c, clause 3.7.2): features are those after power-on, and event requests are
    /// dropped. Namespaces, logs and a sanitize operation stay.
    pub fn reset(&mut self, now: Time) {
        self.events.reset();
        self.features = self.fresh_features();
        self.apply_features(now);
    }

    /// The features after a reset.
    fn fresh_features(&self) -> Features {
        Features::new(&self.config, self.version, &self.limits.low_power_states)
    }
}
