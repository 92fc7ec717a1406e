//! A simulated SSD: firmware, DRAM, host link and power over an FTL and flash.
//!
//! Key types: [`Config`] (a drive file: nothing about a drive is in the code), [`Ssd`] (the drive, a
//! [`Device`](ssdyno_device::Device)), and [`presets`].
//!
//! Errors: [`ConfigError`](ssdyno_block::ConfigError) names the key that is wrong.
//!
//! Not modelled: firmware beyond a cost per command and page, thermal throttling.

mod config;
mod governor;
mod kind;
pub mod presets;
mod sleep;
mod ssd;
mod task;
mod waiting;

pub use config::{Config, ControllerConfig, PartialPage, PowerConfig, QueueConfig, WaitingOrder};
pub use ssd::Ssd;
