//! The tests of this crate from outside, in one binary: each is linked anew whenever a crate below it changes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cache;
mod claims;
mod common;
mod s0;
mod s1;
mod s3;
mod s4;
