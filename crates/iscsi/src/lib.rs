//! An iSCSI target (RFC 7143): login, text, tasks with their data, task management; one connection
//! a session, error recovery level 0, no authentication.
//!
//! Key types: [`IscsiServer`] listens and gives each connection its threads; [`IscsiTarget`] is what they
//! share; [`LogicalUnits`] is what is served. [`NvmeUnits`] are the SCSI translation over the NVMe driver over a
//! controller at a [`PciFunction`]; [`BlockUnits`] a device itself, such as a hard disk, behind the device server.
//! Underneath, without sockets: [`Pdu`] and [`Framing`] (bytes), [`Connection`] (what is answered
//! to what).
//!
//! Commands stay pending as long as the drive takes, by the [`ServedClock`] of the target: wall-clock time, unless
//! another clock is set. Meanwhile other commands go on, of the same session too, and are answered when they end, in
//! whatever order. Up to 64 of a session can be pending; the window of CmdSN says so. ABORT TASK, resets and the loss
//! of the nexus end pending commands: an SCSI command whose NVMe commands are at the controller ends with the last of
//! them, and then the function completes.
//!
//! To serve a drive takes three steps: put it into a slot, [`NvmeUnits::start`], [`IscsiServer::start`]. A disk needs
//! no slot: [`BlockUnits::over`]. To initiators behind an address translation, such as a virtual machine's, the address
//! of our socket means nothing: [`Portal`] sets the address reported to them.
//!
//! Errors: [`StackError`] where the device cannot be served. Errors of an initiator are reported as RFC 7143 requires
//! (a status of login, Reject, CHECK CONDITION, or the end of the connection), and never end more than its own
//! connection.
//!
//! # Not modelled
//!
//! Authentication (offer None); more than one connection in a session; error recovery levels 1 and 2
//! (SNACK is rejected); bidirectional commands and CDBs longer than 16 bytes; asynchronous messages;
//! NVMe Abort: what a task management function ends is waited for. A device behind [`BlockUnits`] does not hear of START
//! STOP UNIT, and force unit access flushes all of its cache. A
//! PREEMPT AND ABORT does not end a write whose data are still on their way.
//!
//! [`PciFunction`]: ssdyno_pci::PciFunction

mod connection;
mod line;
mod login;
mod manage;
mod parameters;
mod pdu;
mod pending;
mod server;
mod stack;
mod target;
mod tasks;
mod text;
mod transfer;
mod units;
mod wire;

pub use connection::{Connection, ConnectionFlow};
pub use pdu::{BHS_BYTES, Framing, Pdu, PduError, opcode};
pub use pending::Transport;
pub use server::IscsiServer;
pub use ssdyno_serve::ServedClock;
pub use stack::{
    BlockBackend, BlockUnits, DiskOptions, NvmeBackend, NvmeUnits, StackError, UnitOptions, Units,
};
pub use target::{IscsiTarget, NameError, Portal};
pub use units::{LogicalUnits, ScsiTask, TaskAttribute, TaskEnd, TaskId, TaskResponse};
