//! The tests of this crate from outside, in one binary: each is linked anew whenever a crate below it changes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod array;
mod cache;
mod closed_forms;
mod exact;
mod machine;
