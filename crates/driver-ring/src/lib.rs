//! The driver of the descriptor-ring card of S0: passive, without operating system, without
//! allocation per I/O.
//!
//! Key types: [`RingDriver`] over any [`PciFunction`](ssdyno_pci::PciFunction), with the paper's three
//! functions as methods: [`submit`](RingDriver::submit) (I/O Requests Handler, S0-27),
//! [`process_new_block`](RingDriver::process_new_block) (S0-28),
//! [`generate_responses`](RingDriver::generate_responses) (S0-29); [`RingDriverOptions`] with the
//! [`BlockPolicy`] (static or dynamic, S0-31, S0-32) and the [`CompletionPolicy`] (the paper's and
//! others, side by side); [`RingParameters`] of the card (S0-10); [`SimulatedRing`], the driver and a
//! simulated card on one clock.
//!
//! A request is cut into bios of one page of 4 KiB (S0-1); each becomes a descriptor at the index of
//! the ring where its bio stands in the bios array (S0-30). The host calls
//! [`on_interrupt`](RingDriver::on_interrupt), [`poll`](RingDriver::poll) where that asks for it, and
//! `poll` again at [`next_deadline`](RingDriver::next_deadline).
//!
//! In a kernel: the crate needs `core` and `alloc`, an implementation of
//! [`PciFunction`](ssdyno_pci::PciFunction) that it owns, a
//! [`MonotonicTime`](ssdyno_block::MonotonicTime) from any origin with each call, and a lock around it where several cores submit. Memory - ring, bios array -
//! is asked for at the start, and where the heap has no room the start says so ([`RingError::NoMemory`]); pages
//! with [`RingDriverOptions::own_pages`] are pinned as they are needed, within a bound. Without own
//! pages each [`Submission`] brings the bus address of its data, in one piece, which belongs to the
//! card until the request completes.
//!
//! Errors: [`RingError`] at the start; later each request carries its own
//! [`Status`](ssdyno_block::Status) to the application (S0-7). A card that hangs is reset, one
//! that is gone answers every request with an error: each exactly once.
//!
//! Not here: copies of data (a bio's page is given by address), locks (one driver, one caller), block
//! layer merging: a bio is one page, which is the paper's simplification (S0-51).

#![no_std]

extern crate alloc;

mod counters;
mod driver;
mod error;
mod options;
mod parameters;
mod recover;
mod requests;
mod ring;
mod simulated;

pub use counters::RingCounters;
pub use driver::{Polled, RingDriver, Submission};
pub use error::RingError;
pub use options::{BlockPolicy, CompletionPolicy, IdleDispatch, RingDriverOptions};
pub use parameters::RingParameters;
pub use simulated::SimulatedRing;
pub use ssdyno_spec::ring::{ResponseMode, Technology};
