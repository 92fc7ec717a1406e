//! Device events in, joules out.
//!
//! Key types: [`EnergyConfig`] (the `[energy]` table of a device file), [`Meter`] (reads the device's
//! [`Busy`](ssdyno_engine::events::Busy) events) and [`Breakdown`] (what it found: joules by
//! component, activity and cause, by package, and power over time). [`Draw`] says the same event by event, for a
//! device that keeps to a power limit. [`Breakdown::check`] holds the
//! two accounts of the meter against each other: sums of busy time, and power over time.
//!
//! A device that is made of others has a [`Meter`] for each of those, in a [`DeviceMeter`]; one with other parts than
//! a controller's declares them, each with its name and powers ([`PartPower`]).
//!
//! Rules. Every part that is there all the time (die, CPU or core, DRAM) draws its idle power
//! except while it is busy, when it draws the power of its activity instead. Channels and host
//! links draw power only while they transfer. A low-power state of the device replaces the idle
//! powers of all parts by one figure. A CPU may be slowed while it is idle.
//!
//! Errors: [`ConfigError`](ssdyno_block::ConfigError) names the key of `[energy]` that is wrong; [`Imbalance`] says which
//! account does not add up. Nothing here panics on input.
//!
//! Not modelled: dependence of current on data, temperature, wear, or the number of planes that
//! work together; losses of voltage regulators; the energy of entering and leaving a low-power
//! state; leakage other than what the idle figures hold; the host.

mod breakdown;
mod config;
mod cpu;
mod device_meter;
mod draw;
mod meter;
mod parts;
mod power_model;
mod powers;
mod series;

pub use breakdown::{
    Breakdown, BreakdownRow, BusyPart, BusySeconds, Component, FlashOperationCounts, Imbalance,
    PackageBreakdown, PowerPoint, PowerSeries,
};
pub use config::{BusPower, CpuPower, CpuRule, DramPower, EnergyConfig, FlashPower};
pub use device_meter::{DeviceEnergy, DeviceMeter};
pub use draw::Draw;
pub use meter::{Facts, Meter};
pub use parts::PartPower;
pub use power_model::PowerModel;
