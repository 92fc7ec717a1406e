//! The tests of this crate from outside, in one binary: each is linked anew whenever a crate below it changes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod agrawal;
mod classes;
mod classes_suite;
mod every_ftl;
mod mapping_costs;
mod mapping_in_one_pool;
mod page_map;
mod steady;
mod worked_example;
mod write_amplification;
