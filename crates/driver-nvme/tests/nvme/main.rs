//! The driver against controllers behind a simulated connector.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod admin;
mod again;
mod double;
mod faults;
mod io;
mod late;
mod nature;
mod origins;
mod owner;
mod quirks;
mod real;
mod rig;
mod split;
mod start;
mod suspend;
mod threads;
mod turns;
mod units;
