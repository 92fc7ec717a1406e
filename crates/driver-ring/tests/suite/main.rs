//! The tests of this crate from outside, in one binary: each is linked anew whenever a crate below it changes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod faults;
mod pin;
mod queueing;
