//! What a device is: the contract that a runner needs, what a device says of itself, and the devices that are made of
//! others or of numbers alone.
//!
//! Key types: [`Device`] (what a runner needs beyond a [`BlockTarget`](ssdyno_block::BlockTarget)),
//! [`DeviceReport`] (what it says of itself), [`DeviceConfig`] (the file of one kind), [`DeviceSpec`] (one of any
//! kind), [`DeviceKinds`] (the kinds that a program knows, which it composes itself),
//! [`delay::DelayDevice`] (nothing but a delay), [`array::StripedArray`] (devices made one),
//! [`volume::Volume`] (a device behind limits), [`link`] (the wires to the host), [`nvme`] (what the controller in
//! front of a device is, for a driver), [`faults`] (what is injected as a fault), [`Contents`] (the data, where
//! somebody looks at it).
//!
//! Errors: a file that cannot be read is TOML's error, with its place;
//! [`ConfigError`](ssdyno_block::ConfigError) names a key whose value cannot be and what to write
//! instead.
//!
//! Not here: SSDs and disks, which are crates above this one, and the controllers in front of them.

pub mod array;
mod contents;
mod contract;
pub mod delay;
pub mod faults;
mod kinds;
mod latency_parts;
pub mod link;
pub mod nvme;
mod report;
pub mod volume;

pub use contents::{Contents, Ranges};
pub use contract::{Device, Medium, PowerControl, Sanitize, SanitizeMethod, Sanitized};
pub use kinds::{DeviceConfig, DeviceFileError, DeviceKind, DeviceKinds, DeviceSpec};
pub use latency_parts::{ExplainedRequest, LatencyPart, LatencyParts};
pub use link::{HostLink, LinkConfig};
pub use report::{
    BurstCredits, DeviceFacts, DeviceReport, FlashReport, FlashWork, PagesRead, UnitReport,
};
