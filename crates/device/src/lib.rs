//! Assembly of simulated devices: what is behind the connector.
//!
//! Key types: [`Config`] (a device file), [`Ssd`] (controller, DRAM, host link, FTL and flash as one
//! [`BlockTarget`](ssdyno_block::BlockTarget)), [`Device`] (what a runner needs beyond that),
//! [`DeviceReport`] (what it says of itself), [`DeviceConfig`] (the file of one kind), [`DeviceSpec`] (one of any
//! kind), [`DeviceKinds`] (the kinds that a program knows, which it composes itself),
//! [`delay::DelayDevice`] (nothing but a delay), [`array::StripedArray`] (devices made one),
//! [`volume::Volume`] (a device behind limits), [`nvme`] (what the controller in front of one is, for a driver),
//! [`faults`] (what is injected as a fault), and
//! [`presets`].
//!
//! Errors: a file that cannot be read is TOML's error, with its place;
//! [`ConfigError`](ssdyno_block::ConfigError) names a key whose value cannot be and what to write
//! instead.
//!
//! Not modelled: firmware beyond a cost per command and page, thermal throttling; what controllers
//! leave out stands in their modules.

pub mod array;
mod config;
mod contents;
mod contract;
pub mod delay;
pub mod faults;
mod governor;
mod kinds;
mod last_transfer;
pub mod link;
pub mod nvme;
mod power;
pub mod presets;
mod report;
mod ssd;
mod task;
pub mod volume;
mod waiting;

pub use config::{
    Config, ControllerConfig, PartialPage, PowerConfig, PowerState, QueueConfig, WaitingOrder,
};
pub use contents::{Contents, Ranges};
pub use contract::{Device, Medium, PowerControl, Sanitize, SanitizeMethod, Sanitized};
pub use kinds::{DeviceConfig, DeviceFileError, DeviceKind, DeviceKinds, DeviceSpec};
pub use link::{HostLink, LinkConfig};
pub use report::{DeviceFacts, DeviceReport, FlashReport, UnitReport};
pub use ssd::Ssd;
pub use ssdyno_ftl::PrepareError;
