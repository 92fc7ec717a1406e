//! The host machine on virtual time: cores, threads, locks, interrupts, copies, and what each
//! costs.
//!
//! Key types: [`HostConfig`] (a host file; named ones in [`presets`]), [`HostUse`] (how it is used: cores,
//! threads, completion), [`Host`] (the machine, event-driven, over one [`HostPort`]), [`HostPort`] (what it
//! needs of a driver and the device behind it), [`Account`] (what it did: CPU time by core and
//! [`CpuCause`], interrupts, switches, register accesses), [`Watched`] (and when: for timelines).
//!
//! A core is a server with a run queue; interrupts pre-empt its thread and push the end of the
//! thread's work out by their own length. Work is a duration and its causes, so that every
//! nanosecond of a core is accounted for.
//!
//! Errors: [`ConfigError`](ssdyno_block::ConfigError) names the key that is wrong and what to write instead.
//!
//! Not modelled: caches and memory bandwidth beyond a copy rate, migration of threads between
//! cores, hyper-threading, frequency scaling (one clock), page faults, time slices shorter than a step
//! of work. Of file systems there is one large file: its metadata and its journal, no names.

mod account;
mod cache;
mod cached;
mod config;
mod contention;
mod core;
mod cost;
mod device;
mod host;
mod interrupts;
mod jobs;
mod lock;
mod port;
pub mod presets;
mod setup;
mod spin;
mod steps;
#[cfg(test)]
mod tests;
mod threads;
mod watch;

pub use account::{Account, CAUSES, CacheAccount, CpuCause, CpuTime};
pub use cache::{CacheConfig, FileSystemConfig, Journal};
pub use config::{
    CompletionWait, CostConfig, CpuConfig, HostConfig, HostUse, LoadError, LockConfig, LockOrder,
    StackConfig, ThreadMode,
};
pub use cost::{Cost, Frequency};
pub use host::Host;
pub use port::{Choice, HostPort, Registers, ResentCommand};
pub use watch::{CoreWatch, Unwatched, Watched};
