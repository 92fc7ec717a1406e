//! The tests of this crate from outside, in one binary: each is linked anew whenever a crate below it changes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;
mod depth_search;
mod expected;
mod explain;
mod faults;
mod idle_baseline;
mod intervals;
mod machine;
mod namespaces;
mod placement;
mod power_states;
mod queued;
mod run;
mod sessions;
mod steady;
mod thrashing;
mod time_limits;
mod victims;
mod warnings;
mod worked_device;
