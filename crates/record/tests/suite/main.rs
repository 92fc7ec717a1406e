//! Tests of the crate from outside, over one made-up run.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as the tests themselves")]

mod coverage;
mod load;
mod processes;
mod recorder;
mod tails;
mod tape;
