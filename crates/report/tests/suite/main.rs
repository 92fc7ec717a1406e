//! Tests of the crate from outside, over one made-up run.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as the tests themselves")]

mod golden;
#[path = "../../../record/tests/suite/load.rs"]
mod load;
#[allow(dead_code, reason = "shared with the tests of the recorder, which use more of it")]
#[path = "../../../record/tests/suite/processes.rs"]
mod processes;
mod sample;
mod small;
mod verdicts;
