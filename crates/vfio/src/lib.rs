//! PCI devices in other processes, over vfio-user: registers by a UNIX socket, memory shared, interrupts by
//! eventfds. The drivers and the devices are the same as on the simulated connector; here they run in
//! wall time, in two processes (S0-33).
//!
//! Key types: [`VfioUserServer`] shows any [`PciDevice`](ssdyno_pci::PciDevice) at a socket, to our drivers and to
//! any other vfio-user client, such as QEMU's `vfio-user-pci`; [`VfioUserFunction`] is a
//! [`PciFunction`](ssdyno_pci::PciFunction) for our drivers, of that server or of any other.
//!
//! Time: the server's clock is real. What a device does at a time of its own happens when that time has come,
//! or as soon afterwards as the server is awake; a chain of events that is late catches up, so a card that
//! takes 10 µs takes 10 µs and one wake-up.
//!
//! Errors: [`ServerError`] for who starts a server, [`ClientEnd`] says how a client left, [`ProtocolError`] what
//! was nonsense; [`ClientError`] for who connects. Later a function whose server is gone, silent or
//! confused reads as ones and forgets writes, as the trait demands, and
//! [`why_gone`](VfioUserFunction::why_gone) says which it was.
//!
//! Not here: memory of the client that comes without a descriptor (it is accepted, and what the device
//! touches there is a fault: the messages `DMA_READ` and `DMA_WRITE` are not sent); registers that are mapped
//! into the client; migration; masks of the MSI-X table, which are the client's affair, as with VFIO in the
//! kernel. The protocol is our own code: the crates that speak it panic on messages that are too short,
//! wait without a timeout, and have no place for the device's own clock.
//!
//! Linux only; elsewhere the crate is empty.

#![cfg(target_os = "linux")]

mod client;
mod memory;
mod message;
mod server;
mod version;

pub use client::{ClientError, VfioUserFunction, Waited};
pub use message::ProtocolError;
pub use server::{ClientEnd, ServerCounters, ServerError, VfioUserServer};
