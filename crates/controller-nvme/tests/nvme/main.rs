//! The NVMe controller against the specification: NVM Express base 2.0c and NVM command set 1.0c. The
//! clause that a test checks stands before it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod admin;
mod arbitration;
mod asynchronous;
mod conformance;
mod control;
mod data;
mod faults;
mod interrupts;
mod io;
mod namespaces;
mod pages;
mod properties;
mod queue_model;
mod queues;
mod sanitize;
mod subsystem;
mod support;
mod timing;
