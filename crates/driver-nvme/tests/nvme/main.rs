//! The driver against controllers behind a simulated connector.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod admin;
mod again;
mod classes;
mod double;
#[path = "../../examples/drivers_and_classes/drivers/mod.rs"]
mod drivers;
mod faults;
mod io;
mod late;
mod linux;
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
