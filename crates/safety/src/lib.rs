//! Other people's data: who may write where.
//!
//! [`inspect`] finds out what a target is and what lies on it, and [`Inspection::permit`] gives the
//! permit to write, or says why not. What is in use is refused whatever was typed: mounted, held
//! by another device, swap, a member of an array or a volume group, or below one of those. An idle
//! device needs its serial number, typed by somebody who has seen what is on it. A file needs
//! `--overwrite`, unless it was made by us. What a server exports needs its name, as a device its serial number: who
//! else uses it only the server knows.
//!
//! The last word is the kernel's: a device is opened exclusively (`O_EXCL`), which fails while
//! anybody has claimed it, in whatever name space.
//!
//! Not modelled: whether what lies there is still wanted.
//!
//! Key types: [`Inspection`], [`Consent`] (what somebody typed), [`WritePermit`] and [`Access`] (nothing is opened
//! for writing without one), [`ScratchFile`] (a file of ours that a run writes to). Errors: [`SafetyError`], with its [`help`](SafetyError::help). Linux only, but for the permit.

#[cfg(target_os = "linux")]
mod linux;
mod permit;

#[cfg(target_os = "linux")]
use linux::*;
#[cfg(target_os = "linux")]
pub use linux::{
    Consent, DiskIdentity, Export, Inspection, SafetyError, ScratchFile, Signature, Space, create,
    file_system, inspect, inspect_export, is_place_of_devices, signatures,
};
pub use permit::{Access, WritePermit};
