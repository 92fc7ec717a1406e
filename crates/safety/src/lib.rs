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
mod backing;
#[cfg(target_os = "linux")]
mod below;
#[cfg(target_os = "linux")]
mod create;
#[cfg(target_os = "linux")]
mod device;
#[cfg(target_os = "linux")]
mod disk_identity;
#[cfg(target_os = "linux")]
pub mod file_system;
#[cfg(target_os = "linux")]
mod inspect;
#[cfg(target_os = "linux")]
mod mark;
mod permit;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod scratch;
#[cfg(target_os = "linux")]
mod signature;

#[cfg(target_os = "linux")]
pub use create::{Space, create, is_place_of_devices};
#[cfg(target_os = "linux")]
pub use disk_identity::DiskIdentity;
#[cfg(target_os = "linux")]
pub use inspect::{Consent, Export, Inspection, SafetyError, inspect, inspect_export};
pub use permit::{Access, WritePermit};
#[cfg(target_os = "linux")]
pub use scratch::ScratchFile;
#[cfg(target_os = "linux")]
pub use signature::{Signature, signatures};
