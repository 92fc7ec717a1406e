//! What carries requests out.

mod discard;
pub(crate) mod network;
pub(crate) mod null;
mod nvme_command;
pub(crate) mod passthrough;
pub(crate) mod threads;
pub(crate) mod uring;
pub(crate) mod why_not;

use std::io;
use std::time::Duration;

use ssdyno_block::Request;

/// Bytes that were moved, or the system's error number, negated (as io_uring answers).
pub(crate) type Outcome = i32;

/// Carries requests out, many at a time where it can.
///
/// The caller owes: a slot is below the number that the engine was made for and is not used
/// again before it was reaped; requests are inside the target and aligned to its sectors. The
/// engine owes: every slot pushed is reaped exactly once.
pub(crate) trait Engine {
    /// Whether requests are on their way only after a [`turn`](Engine::turn).
    const HANDS_OVER: bool = true;

    /// Takes a request. It may begin at once or with the next [`turn`](Engine::turn).
    fn push(&mut self, slot: u32, request: &Request);

    /// Lets everything pushed begin, and waits until `want` requests can be reaped, but not for
    /// longer than `wait`, if there is one: a wait without end costs no timer. May return early.
    /// `want` is at most what is outstanding.
    ///
    /// # Errors
    /// The engine as a whole failed; a request that fails is reaped like another.
    fn turn(&mut self, want: u32, wait: Option<Duration>) -> io::Result<()>;

    /// Whether `want` requests can be reaped, 1 or more, found out without a system call where nothing has
    /// completed: for callers that spin.
    fn ready(&mut self, want: u32) -> io::Result<bool>;

    /// Hands over what has completed, in order.
    fn reap(&mut self, each: impl FnMut(u32, Outcome));

    /// System calls made so far.
    fn system_calls(&self) -> u64 {
        0
    }

    /// The messages besides the outcomes, for a reader of the figures.
    fn remarks(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The reason why it can carry out no more requests, if known.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// The outstanding requests are no longer needed. An engine that can call it back does, and it
    /// fails.
    fn give_up(&mut self) {}

    /// The engine is idle and gets no more requests: it releases reusable resources.
    fn end(self)
    where
        Self: Sized,
    {
    }
}

/// The error that an outcome stands for.
pub(crate) fn error_of(outcome: Outcome) -> io::Error {
    io::Error::from_raw_os_error(-outcome)
}
