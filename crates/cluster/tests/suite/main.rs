//! Controllers and workers over real connections.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod common;
#[cfg(target_os = "linux")]
mod enrolment;
mod failures;
mod hosts;
mod plan;
#[cfg(target_os = "linux")]
mod revocation;
mod rows;
mod stops;
