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
//! # In a kernel, in firmware, in user space
//!
//! The crate needs `core` and `alloc` and nothing else (`cargo check -p ssdyno-driver-nvme --target
//! x86_64-unknown-none`). What surrounds it supplies:
//!
//! - **Registers, configuration space, memory for DMA, interrupts:** an implementation of
//!   [`PciFunction`], whose documentation says what order of accesses it owes. It is the only trait to
//!   write, and every method of this crate is generic over it: no dynamic dispatch. Memory is asked for
//!   at the start and at resets only.
//! - **A heap** for start, reset and scan of namespaces. Submitting and completing allocate nothing
//!   where the vector for completions has room: give it as many places as commands are outstanding.
//! - **A clock:** a [`Time`] with each call, from any origin, never going back; a microsecond is fine
//!   enough. `poll` wants to be called at `next_deadline`, from a timer or an idle loop.
//! - **Interrupts:** for each vector [`on_interrupt`](NvmeDriver::on_interrupt), from a handler or a
//!   thread of it; it never waits. A pin that others share is fine: one call too many finds nothing.
//!   Without interrupts ([`InterruptChoice::Polling`]) call [`poll_queue`](NvmeDriver::poll_queue).
//! - **A lock** around the driver where several cores use it: every method takes `&mut self`.
//!   [`choose`](NvmeDriver::choose) tells which queue a core uses and which lock a driver with one for
//!   each queue would take; what that saves is modelled by the host, not done here.
//! - **The data:** its bus address, or that of each of its pages ([`DataBuffer`]). It belongs to the
//!   device until the completion; the driver never looks at it.
//!
//! A controller brought up and read from by polling, as firmware does; a kernel would rather follow
//! `next_deadline` and its interrupts:
//!
//! ```
//! use ssdyno_block::{Time, Token};
//! use ssdyno_driver_nvme::*;
//! use ssdyno_pci::PciFunction;
//!
//! /// The state of the first block; `clock` says what time it is.
//! fn read_block_0<F: PciFunction>(
//!     function: &mut F,
//!     clock: &mut impl FnMut(&mut F) -> Time,
//! ) -> Result<IoResult, NvmeError> {
//!     let polling = InterruptChoice::Polling;
//!     let mut driver = NvmeDriver::new(NvmeConfig { interrupts: polling, ..NvmeConfig::default() });
//!     driver.start_and_wait(function, &mut *clock)?;
//!     let page = function.dma_allocate(4096)?;
//!     let nsid = driver.namespaces()[0].id;
//!     let read = IoCommand::read(nsid, 0, 1, DataBuffer::Contiguous(page.address));
//!     let (queue, mut done) = (1, Vec::with_capacity(1));
//!     let now = clock(function);
//!     driver.submit(function, now, queue, &read, Token(7)).expect("an empty queue takes it");
//!     while done.is_empty() {
//!         let now = clock(function);
//!         driver.poll_queue(function, queue, &mut done);
//!         // Time limits, aborts, resets.
//!         driver.poll(function, now, &mut done);
//!     }
//!     assert_eq!(done[0].token, Token(7));
//!     Ok(done[0].result)
//! }
//! # use ssdyno_device::{nvme::NvmeController, Config, Ssd};
//! # use ssdyno_pci::{PciTiming, SimulatedPci};
//! # let file = include_str!("../../device/tests/small_nvme.toml");
//! # let config = Config::parse(&format!("{file}\n[nvme]\nready_time = \"1ms\"")).unwrap();
//! # let controller = NvmeController::new(&config, Ssd::new(&config, 1).unwrap()).unwrap();
//! # let us = Time::from_us(1);
//! # let timing = PciTiming { posted_write: us, read_round_trip: us, interrupt: us };
//! # let mut function = SimulatedPci::new(controller, timing);
//! # let mut now = Time::ZERO;
//! # let mut clock = |pci: &mut SimulatedPci<_>| {
//! #     now += Time::from_us(10);
//! #     pci.advance(now);
//! #     pci.set_now(now);
//! #     now
//! # };
//! # let result = read_block_0(&mut function, &mut clock).unwrap();
//! # assert_eq!(result, IoResult::Answered(ssdyno_spec::nvme::Status::SUCCESS));
//! ```
//!
//! Errors: [`NvmeError`] for start, stop and recovery, [`IoError`] and [`AdminError`] for what is not
//! taken; a command that was taken is answered exactly once, by [`IoResult::Answered`] or, after a reset
//! or a removal, by [`IoResult::Abandoned`]. Nothing is retried here: the data of a command is its
//! submitter's, who decides.
//!
//! Not modelled: scatter-gather lists, fused commands, reservations, end-to-end protection and
//! interleaved metadata (such namespaces are refused), host memory buffer, controller memory buffer,
//! streams, zones, fabrics, memory pages other than 4 KiB.
//!
//! [`PciFunction`]: ssdyno_pci::PciFunction
//! [`Time`]: ssdyno_block::Time

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
