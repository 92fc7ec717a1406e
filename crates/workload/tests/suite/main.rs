//! The tests of this crate from outside, in one binary: each is linked anew whenever a crate below it changes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;
mod compressed_traces;
mod disksim;
mod generators;
mod random_once;
mod researchers;
mod traces;
mod writes;
