//! The tests of this crate from outside, in one binary: each is linked anew whenever a crate below it changes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod absurd;
mod behind_nvme;
mod data_sheets;
mod faults;
mod kept;
mod printed;
mod runner;
mod spec;
