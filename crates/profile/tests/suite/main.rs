//! The tests of this crate from outside, in one binary: each is linked anew whenever a crate below it changes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod adaptive;
mod capacity;
mod common;
mod depths;
mod map;
mod profile;
mod resume;
mod write_cache;
