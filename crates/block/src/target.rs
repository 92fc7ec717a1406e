//! The contract between a runner and anything that takes block requests.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::{Completion, Request, Time, Token};

/// Why a target did not take a request. The request left no trace in the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SubmitError {
    /// No room; submit again after the next completion.
    #[error("the target's queue is full")]
    Full,
    /// The range ends beyond the last byte.
    #[error("the request ends at byte {end_bytes}, beyond the target's {capacity_bytes} bytes")]
    OutOfRange {
        /// One past the request's last byte (saturated at 2^64 - 1).
        end_bytes: u64,
        /// Size of the target.
        capacity_bytes: u64,
    },
    /// Offset or length is not a multiple of the sector, or the length is 0 where it must not be.
    #[error("offset and length must be multiples of {sector_bytes} bytes and the length positive")]
    Misaligned {
        /// The target's sector.
        sector_bytes: u32,
    },
}

/// Anything that takes block requests: a simulated SSD, a driver over one, a real device, nothing.
///
/// The target owes: every token it took is completed (or reported [`Abandoned`]) exactly once, with
/// `submission <= accepted <= completed <= now`; the same calls in the same order give the same
/// answers; nothing sleeps, spawns or reads a clock.
///
/// The caller owes: `now` never goes back, over all calls; a token is not used again before it
/// was completed; `reap` is called at every time that [`next_event`] names. It need not check
/// ranges: `submit` refuses bad ones.
///
/// [`Abandoned`]: crate::Status::Abandoned
/// [`next_event`]: BlockTarget::next_event
pub trait BlockTarget {
    /// Size in bytes: the first address that is out of range.
    fn capacity_bytes(&self) -> u64;

    /// Unit of address and length, in bytes.
    fn sector_bytes(&self) -> u32 {
        crate::SECTOR_BYTES
    }

    /// Takes `request` at `now`.
    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError>;

    /// Asks that everything completed before `now` be durable once `token` completes.
    fn flush(&mut self, now: Time, token: Token) -> Result<(), SubmitError> {
        self.submit(now, Request::flush(), token)
    }

    /// Brings the target to `now` and appends what has completed, in order of completion.
    fn reap(&mut self, now: Time, out: &mut Vec<Completion>);

    /// The next time at which `reap` may find something to do: an upper bound on how long the
    /// caller may wait. `None` when nothing will happen without a further submission.
    fn next_event(&self) -> Option<Time>;

    /// Checks `request` against size and alignment: what every `submit` begins with.
    fn check(&self, request: &Request) -> Result<(), SubmitError> {
        request.check(self.capacity_bytes(), self.sector_bytes())
    }
}

/// One behind a pointer: what a registry of kinds builds.
impl<T: BlockTarget + ?Sized> BlockTarget for Box<T> {
    fn capacity_bytes(&self) -> u64 {
        (**self).capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        (**self).sector_bytes()
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        (**self).submit(now, request, token)
    }

    fn flush(&mut self, now: Time, token: Token) -> Result<(), SubmitError> {
        (**self).flush(now, token)
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        (**self).reap(now, out);
    }

    fn next_event(&self) -> Option<Time> {
        (**self).next_event()
    }

    fn check(&self, request: &Request) -> Result<(), SubmitError> {
        (**self).check(request)
    }
}
