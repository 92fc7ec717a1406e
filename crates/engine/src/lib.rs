//! The ground that every model stands on: event queue, resources, seeded randomness, device events.
//!
//! Key types: [`EventQueue`] (deterministic order: time, then sequence), [`FifoResource`] (a resource
//! that serves first come, first served), [`Rng`] (seeded streams), [`events`] (what devices
//! report to energy, statistics and timelines), [`Health`], [`PlaneUse`] and [`Pool`] (what is known of flash, for reports),
//! [`PrepareError`] (why a device cannot be made a used one), [`HugePageTable`] (a large array of numbers), [`SlotTable`]
//! and [`SlotList`] (places that are used again, and lists through them), [`Scatter`] (a random order without a table), [`prefetch`]
//! (the processor's hint).
//!
//! Errors: an event in the past is a bug of the model that schedules it, and panics.
//!
//! Not modelled: pre-emption of a [`FifoResource`]. What can be interrupted (a flash die that suspends
//! a program for a read) keeps its own state and uses the queue alone.

pub mod events;
mod few;
mod flash_use;
mod last_transfer;
mod prepare_error;
mod queue;
mod scatter;
mod server;
mod slots;
mod table;
mod wheel;

pub use flash_use::{Health, PlaneUse, Pool, Victims};
pub use last_transfer::LastTransferTime;
pub use prepare_error::PrepareError;
pub use queue::{Event, EventQueue};
pub use scatter::Scatter;
pub use server::FifoResource;
pub use slots::{Linked, NO_SLOT, SlotLinks, SlotList, SlotTable};
pub use ssdyno_block::{Rng, prefetch};
pub use table::HugePageTable;
