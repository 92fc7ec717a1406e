//! Requests that failed.

use std::collections::BTreeMap;
use std::io;

use ssdyno_block::{Op, Request, counted};

use crate::engine::{Outcome, error_of};

/// So many failures in a row, and the target is taken for gone.
// Single errors are figures of the target. A thousand without a success between them are a
// target that is gone, and loading it further measures only how fast it fails.
const IN_A_ROW_MAX: u64 = 1_000;

/// Fewer bytes moved than asked for: no error number of the system, so one of ours.
const SHORT: i32 = 0;

/// Failures by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    by_error: BTreeMap<i32, (u64, Option<Request>)>,
    in_a_row: u64,
}

impl Faults {
    /// The outcome that `request` should have.
    #[inline]
    pub(crate) fn wanted(request: &Request) -> Outcome {
        match request.op {
            Op::Read | Op::Write => request.length_bytes as Outcome,
            Op::Trim | Op::Flush => 0,
        }
    }

    /// Whether `outcome` is the one that `request` should have.
    #[inline]
    pub(crate) fn is_ok(request: &Request, outcome: Outcome) -> bool {
        outcome == Faults::wanted(request)
    }

    /// The error number of the system in `outcome`; 0 if it has none.
    pub(crate) fn errno(outcome: Outcome) -> u16 {
        if outcome < 0 { u16::try_from(-i64::from(outcome)).unwrap_or(0) } else { 0 }
    }

    /// A request succeeded after others had failed.
    #[inline]
    pub(crate) fn end_row(&mut self) {
        self.in_a_row = 0;
    }

    /// Counts a failure. `Some` when the target is gone: failures in a row, and the last one.
    #[cold]
    pub(crate) fn add(&mut self, request: &Request, outcome: Outcome) -> Option<(u64, io::Error)> {
        let error = if outcome < 0 { -outcome } else { SHORT };
        let (count, first) = self.by_error.entry(error).or_default();
        *count += 1;
        first.get_or_insert(*request);
        self.in_a_row += 1;
        // These errors mean that the device or the connection does not exist any more. More
        // requests would only repeat them.
        let gone = matches!(
            error,
            libc::ENODEV | libc::ENXIO | libc::ENOMEDIUM | libc::ESHUTDOWN | libc::ECONNRESET
        );
        let last = || match outcome < 0 {
            true => error_of(outcome),
            false => io::Error::new(io::ErrorKind::UnexpectedEof, "fewer bytes than requested"),
        };
        (gone || self.in_a_row >= IN_A_ROW_MAX).then(|| (self.in_a_row, last()))
    }

    /// Adds those of another job.
    pub(crate) fn merge(&mut self, other: Faults) {
        for (error, (count, first)) in other.by_error {
            let mine = self.by_error.entry(error).or_default();
            mine.0 += count;
            mine.1 = mine.1.or(first);
        }
    }

    /// One line for each kind.
    pub(crate) fn notes(&self) -> Vec<String> {
        let line = |(error, (count, first)): (&i32, &(u64, Option<Request>))| {
            let what = match *error {
                SHORT => "moved fewer bytes than requested".to_owned(),
                error => format!("failed with {}", io::Error::from_raw_os_error(error)),
            };
            let first = first.map(|r| {
                let (op, bytes, at) = (r.op.name(), r.length_bytes, r.offset_bytes);
                format!("; the first was a {op} of {bytes} B at byte {at}")
            });
            format!(
                "{} {what}{}",
                counted(*count, "request", "requests"),
                first.unwrap_or_default()
            )
        };
        self.by_error.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_left_is_gone_at_once_and_one_that_fails_later() {
        let request = Request::read(4096, 512);
        let mut faults = Faults::default();
        assert!(faults.add(&request, -libc::ENODEV).is_some());
        let mut faults = Faults::default();
        for _ in 1..IN_A_ROW_MAX {
            assert!(faults.add(&request, -libc::EIO).is_none());
        }
        faults.end_row();
        assert!(faults.add(&request, -libc::EIO).is_none());
        assert!(faults.add(&request, 100).is_none());
        let notes = faults.notes().join("\n");
        assert!(notes.contains("1000 requests failed with Input/output error"), "{notes}");
        assert!(notes.contains("1 request moved fewer bytes"), "{notes}");
    }

    #[test]
    fn a_request_must_move_all_it_asked_for() {
        assert!(Faults::is_ok(&Request::read(0, 4096), 4096));
        assert!(!Faults::is_ok(&Request::write(0, 4096), 512));
        assert!(Faults::is_ok(&Request::flush(), 0) && Faults::is_ok(&Request::trim(0, 512), 0));
        assert!(!Faults::is_ok(&Request::trim(0, 512), -libc::EOPNOTSUPP));
    }
}
