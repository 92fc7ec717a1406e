//! The common base of all front ends: from names, files and settings to a run, and from its errors back to the wrong
//! key.
//!
//! Key types: [`RunSpec`] (everything that decides a run, real or simulated, as one value that can be
//! written down), [`resolve`] (reads what it names and refuses what cannot be), [`Prepared`] (a run that can
//! start), [`Runner`] (one that is under way: begin at a moment, poll, stop, result), [`Measured`] (its figures,
//! with the spec that repeats them), [`RunList`] (many of them, over the cores),
//! [`KeptTarget`] (one target under many loads, which keeps what was written), [`DEVICE_KINDS`]
//! (every kind of device that the program knows).
//! Below them [`named`] (devices, hosts, networks and workloads by name), [`Setting`] (one `--set KEY=VALUE`),
//! [`Document`] (a TOML text with what was set over it), [`Failure`] (one message, its place, its key, what to
//! do).
//!
//! Errors: every [`Failure`] has one message, help, and a place and a key where there are some. Nothing here
//! prints, ends the program, or knows the command line.
//!
//! Not here: models, statistics, file formats of results. They are in the crates below.

mod attach;
pub mod catalogue;
#[cfg(target_os = "linux")]
mod consent;
mod document;
mod failure;
mod file_mark;
pub mod files;
mod fio;
mod folder;
mod goal;
mod kept;
mod kinds;
mod many;
pub mod named;
mod observer;
mod overlay;
mod prepare;
mod prompt;
mod provenance;
mod real;
pub mod reference;
mod ring;
mod runner;
mod schema_keys;
mod simulated;
mod source;
mod spec;
mod toml_places;
mod unknown_key;

pub use catalogue::CatalogueEntry;
#[cfg(target_os = "linux")]
pub use consent::access;
pub use document::Document;
pub use failure::{ErrorBody, Failure, FailureKind, FailurePlace, nearest};
pub use file_mark::FileMark;
pub use folder::{ResultFolder, lost_rows, unwritable};
pub use goal::Goal;
pub use kept::{KeptTarget, LoadProgress};
pub use kinds::DEVICE_KINDS;
pub use many::{RunList, RunListProgress, StopFlag, side_by_side};
pub use named::look_at_the_log;
pub use observer::{Observer, Stage};
pub use overlay::{Setting, device_keys, refuse_workload_keys, settings, workload_keys};
pub use prepare::{Measured, Prepared, is_real, resolve};
pub use prompt::{Prompt, Unattended};
pub use provenance::{ProgramIdentity, is_secret, record_provenance, without_secrets};
pub use real::refuse_real;
pub use ring::RingSpec;
pub use runner::{BeginAt, RunPhase, RunSnapshot, Runner};
pub use spec::{
    Batch, DEFAULT_HOST, DEFAULT_TARGET, Doorbell, DriverSpec, FileContents, HostSpec, Pin, Queues,
    RealSpec, RunSpec, SPEC_VERSION, StackKind, TraceSpec, WriteSpec, given, is_time_limit,
    keys_in_tables, timing,
};
