//! How a run ended.

use std::time::Duration;

use ssdyno_block::{Request, SubmitError, Time};
use ssdyno_device::DeviceReport;
use ssdyno_engine::Victims;
use ssdyno_figures::{BrokenBound, Precision};

use super::{State, Watch};
use crate::course::Course;

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub struct DriveEnd {
    /// When the last request completed; the end of its duration where an open loop has one.
    pub last_completion: Time,
    /// When the device had finished all it began.
    pub settled: Time,
    /// Requests issued.
    pub issued: u64,
    /// Bytes of the writes among them, with those of a ramp-up.
    pub written_bytes: u64,
    /// Bytes in write buffers when recording began and when the device had settled.
    pub buffered_bytes: [u64; 2],
    /// Bytes that waited in write buffers when the last request was issued.
    pub waiting_bytes: u64,
    /// The victims of garbage collection since recording began; `None` where the device has none.
    pub victims: Option<Victims>,
    /// What the device said when recording began.
    pub window: DeviceReport,
    /// True if it was told to stop.
    pub stopped: bool,
    /// True if there was no memory for more rows.
    pub out_of_memory: bool,
    /// What became of [`RunLimits::until`](ssdyno_figures::RunLimits::until), if it was set.
    pub precision: Option<Precision>,
    /// The one of [`RunLimits::bounds`](ssdyno_figures::RunLimits::bounds) that ended it.
    pub broken: Option<BrokenBound>,
    /// Why a request could not be issued, if that ended the run.
    pub refused: Option<(Request, SubmitError)>,
    /// Requests that ended in an error, with those of a ramp-up.
    pub failed: u64,
    /// When a request found the device gone, which ended the run.
    pub gone: Option<Time>,
    /// When no more requests were to come; `None` if the run was cut.
    pub done_at: Option<Time>,
    /// Wall-clock time of the loop.
    pub wall: Duration,
    /// What was counted in its course.
    pub(crate) course: Course,
}

impl State {
    /// How the run ended.
    pub(super) fn end(self, watch: Option<Watch>, wall: Duration, course: Course) -> DriveEnd {
        let (precise, hopeless) =
            watch.map_or((None, None), |watch| (watch.precise, watch.hopeless));
        let [window, last] = self.reports;
        let buffered_bytes = [window.buffered_bytes(), last.buffered_bytes()];
        DriveEnd {
            last_completion: self.last_completion,
            settled: self.now,
            issued: self.issued,
            written_bytes: self.written_bytes,
            buffered_bytes,
            waiting_bytes: self.waiting_bytes.unwrap_or(buffered_bytes[1]),
            victims: last.victims().zip(window.victims()).map(|(now, before)| now.since(before)),
            window,
            stopped: self.stopped,
            out_of_memory: self.out_of_memory,
            precision: precise.map(|precise| precise.precision()),
            broken: hopeless.and_then(|hopeless| hopeless.broken()),
            refused: self.refused,
            failed: self.failed,
            done_at: self.done_at,
            gone: self.gone,
            wall,
            course,
        }
    }
}
