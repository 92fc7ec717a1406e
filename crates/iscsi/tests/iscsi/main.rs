//! The target against initiators: one of our own, one that says anything, libiscsi's suite, and
//! QEMU's tools.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod conformance;
mod device;
mod initiator;
mod protocol;
mod random;
mod stock;
