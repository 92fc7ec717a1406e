//! The target against initiators: one of our own, one that says anything, libiscsi's suite,
//! QEMU's tools, and a stock Linux.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod conformance;
mod device;
mod disk;
mod faults;
mod guest;
mod initiator;
mod pending;
mod protocol;
mod random;
mod sanitize;
mod stock;
