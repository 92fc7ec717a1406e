//! The common base of all parts of the rig: time, requests, the target contract and units.
//!
//! Key types: [`Time`] (an instant or a span of a simulated clock, in picoseconds), [`MonotonicTime`] (an
//! instant of a machine's clock, for drivers), [`Request`] and [`Completion`],
//! the [`BlockTarget`] contract with its conformance suite in [`conformance`], the quantities of
//! configuration files in [`units`], and [`Preset`], such a file with a name. A [`FaultPlan`] says what goes wrong
//! where faults are injected, with seeded randomness ([`Rng`]). [`prefetch`] is the
//! processor's hint, here because models and drivers' test beds share it, and [`counted`] puts numbers into words. [`try_list`] and
//! [`has_room`] are for drivers, whose heap may have no room.
//!
//! Errors: [`SubmitError`] for what a target refuses, [`units::UnitError`] for a quantity that
//! cannot be read, [`ConfigError`] for a value of a configuration that cannot be. Nothing here panics
//! on outside input.
//!
//! Not here: clocks (only a runner owns one), devices, workloads, statistics.
//!
//! Without the feature `std` (drivers, which must run where there is no operating system) the
//! suite and the units are left out.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod config_error;
#[cfg(feature = "std")]
pub mod conformance;
mod counted;
mod each_once;
mod fault;
mod heap;
mod monotonic;
mod named;
mod prefetch;
mod preset;
mod request;
mod rng;
mod target;
mod time;
#[cfg(feature = "std")]
pub mod units;

pub use config_error::ConfigError;
pub use counted::counted;
pub use each_once::each_once;
pub use fault::{Fault, FaultPlan, FaultSite, FaultTrigger, Injected};
pub use heap::{ListGrowth, has_room, try_list};
pub use monotonic::MonotonicTime;
pub use prefetch::prefetch;
pub use preset::Preset;
pub use request::{Completion, Op, Request, SECTOR_BYTES, Status, Token};
pub use rng::Rng;
pub use target::{BlockTarget, SubmitError};
pub use time::Time;
