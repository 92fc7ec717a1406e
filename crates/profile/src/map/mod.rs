//! A map of a device under reads and writes at once: the 95th percentile of read latency over the rates of both.
//!
//! Reads and writes arrive at rates of their own, whatever the device does (an open loop). The points are chosen by
//! [`mesh`]: close together where latency changes, far apart where it does not. ScyllaDB's diskplorer draws the same
//! picture from a full grid.

mod load;
mod mesh;
mod report;
mod result;
mod run;

use ssdyno_block::Time;

pub(crate) use report::{map_html, map_text};
pub use result::{MapHeldOut, MapPoint, MapResult};
pub(crate) use run::execute;

/// The least time for a map: its loads cannot be shorter than a few milliseconds.
pub(crate) const TIME_MIN: Time = Time::from_s(1);
