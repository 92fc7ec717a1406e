//! A passive NVMe driver: rings, commands and recovery; no clock, no thread, no log.
//!
//! Key types: [`NvmeDriver`] (start, submit, poll, interrupts, watchdog, shutdown) with its
//! [`NvmeConfig`]; [`IoCommand`] and [`IoCompletion`]; [`AdminCommand`] and [`Feature`];
//! [`QueuePolicy`] and [`QueueSelector`] (which queue a core uses); [`NvmeTarget`] (a driver and a
//! simulated device as a block target).
//!
//! Whoever uses it says what time it is with each call, brings interrupts, and calls
//! [`NvmeDriver::poll`] at [`NvmeDriver::next_deadline`]. The function is lent to each call, so the
//! owner of a simulated one can advance it in between, and a host can give each core its own.
//! Nothing is allocated for an I/O command: all slots, lists and rings are made at the start.
//!
//! Errors: [`NvmeError`] for start, stop and recovery, [`IoError`] and [`AdminError`] for what is not
//! taken; a command that was taken is answered exactly once, by [`IoResult::Answered`] or, after a reset
//! or a removal, by [`IoResult::Abandoned`]. Nothing is retried here: the data of a command is its
//! submitter's, who decides.
//!
//! Not modelled: scatter-gather lists, fused commands, reservations, end-to-end protection and
//! interleaved metadata (such namespaces are refused), host memory buffer, controller memory buffer,
//! streams, zones, fabrics, memory pages other than 4 KiB.

#![no_std]

extern crate alloc;

mod admin;
mod command;
mod config;
mod driver;
mod error;
mod policy;
mod prp;
mod queue;
mod ring;
mod start;
mod steps;
mod target;
mod wait;
mod watch;

pub use admin::{AdminCommand, AdminCompletion, Feature};
pub use command::{DataBuffer, IoCommand, IoCompletion, IoOperation, IoResult, Namespace};
pub use config::{HeadDoorbell, InterruptChoice, NvmeConfig};
pub use driver::{DriverEvent, DriverState, NvmeCounters, NvmeDriver, ResetCause};
pub use error::{AdminError, IoError, NvmeError, Unusable};
pub use policy::{MFI_COMMANDS, PriorityClass, QueueChoice, QueuePolicy, QueueSelector, Weights};
pub use target::NvmeTarget;
