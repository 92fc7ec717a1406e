//! A hard disk: zones, seek, rotation, cache and command queue.
//!
//! Key types: [`DiskConfig`] (a drive file: nothing about a drive is in the code), [`Disk`] (the
//! drive, a [`Device`](ssdyno_device::Device)).
//!
//! A command passes the electronics, then the cache or the queue of the arm, then the medium and the
//! bus. The angle of the spindle follows from the time, so rotational waits depend on when the arm
//! arrives, as in a drive. Reading ahead is not an event for each sector: where it has come to is
//! worked out when a command arrives.
//!
//! Errors: [`ConfigError`](ssdyno_block::ConfigError) names the key that is wrong.
//!
//! Not modelled: retries and remapping while the drive works, thermal recalibration, partial hits that
//! a drive serves before its arm has moved, a seek that is given up on its way. A drive in standby at
//! the end of a run is counted as spinning from its last command on.

mod cache;
mod check;
mod config;
mod disk;
mod kind;
mod layout;
mod measured;
mod mechanics;
mod parts;
pub mod presets;
mod schedule;
mod seek;
#[cfg(test)]
mod tests;
mod write_back;

pub use config::{
    CacheTable, DiskConfig, DiskPower, DiskTable, OverheadTable, Scheduler, SeekTable, TrackOrder,
    ZoneTable, ZonesByRule,
};
pub use disk::Disk;
pub use measured::{MeasuredError, MeasuredRequest, measured_requests, replay, rms_ms};
