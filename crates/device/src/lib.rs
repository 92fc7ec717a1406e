//! Assembly of simulated devices: what is behind the connector.
//!
//! Key types: [`Config`] (a device file), [`Ssd`] (controller, DRAM, host link, FTL and flash as one
//! [`BlockTarget`](ssdyno_block::BlockTarget)), [`Device`] (what a runner needs beyond that), and
//! [`presets`].
//!
//! Errors: [`ConfigError`](ssdyno_flash::ConfigError) names the key that is wrong and what to
//! write instead; [`LoadError`] adds where in the text.
//!
//! Not modelled: the NVMe command set and its queues (a driver and a controller stand before this
//! one), firmware beyond a cost per command and page, thermal throttling.

mod config;
mod link;
mod power;
pub mod presets;
mod ssd;
mod task;
mod waiting;

pub use config::{
    Config, ControllerConfig, LoadError, PartialPage, PowerConfig, PowerState, QueueConfig,
    WaitingOrder,
};
pub use link::{HostLink, LinkConfig};
pub use ssd::{Device, DeviceFacts, Ssd};
