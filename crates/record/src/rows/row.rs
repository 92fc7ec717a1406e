//! One request as a row.

use ssdyno_block::{Request, Status};

/// One request, as a row gives it back. Times are whole nanoseconds (rounded down).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Row {
    /// Intended start.
    pub issue_ns: u64,
    /// From the intended start to the completion.
    pub latency_ns: u64,
    /// When it was handed to the target: later than the intended start where the runner was late, or had
    /// as many outstanding as it may.
    pub submit_ns: u64,
    /// Error number of the system (errno(3)); 0 if the system gave none, and for a simulated
    /// target.
    pub errno: u16,
    /// Its operation, place and length.
    pub request: Request,
    /// How it ended.
    pub status: Status,
}

impl Row {
    /// The row of a request that was submitted when it was meant to start, and met no error of the system.
    #[inline]
    pub fn punctual(request: &Request, issue_ns: u64, latency_ns: u64, status: Status) -> Row {
        let submit_ns = issue_ns;
        Row { issue_ns, latency_ns, submit_ns, errno: 0, request: *request, status }
    }
}
