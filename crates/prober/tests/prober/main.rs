//! The prober over directories that the tests write, and over the machine on which they run.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod bad_input;
mod common;
mod open_metrics;
mod rates;
#[cfg(target_os = "linux")]
mod this_machine;
