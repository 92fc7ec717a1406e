//! Tests of the crate from outside, over one made-up run.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as the tests themselves")]

mod coverage;
mod golden;
mod recorder;
mod sample;
mod small;
mod tails;
mod tape;
