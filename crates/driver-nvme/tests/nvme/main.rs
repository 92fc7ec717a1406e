//! The driver against controllers behind a simulated connector.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod admin;
mod double;
mod faults;
mod io;
mod origins;
mod owner;
mod real;
mod rig;
mod split;
mod start;
mod threads;
mod turns;
mod units;
