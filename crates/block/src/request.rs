//! The requests to a target and their completions.

use crate::{SubmitError, Time};

/// The smallest unit of address and length, in bytes (SBC-4 and NVM command set: 512 at least).
pub const SECTOR_BYTES: u32 = 512;

/// Identifies a request between submission and completion. The submitter chooses it; it must be
/// unique among the requests in flight. Small numbers keep targets fast: they may index by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub u32);

crate::named! {
    /// What a request does.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Op: name {
        /// Data from the device.
        Read = "read",
        /// Data to the device.
        Write = "write",
        /// The range no longer holds data (ATA TRIM, SCSI UNMAP, NVMe Dataset Management deallocate).
        Trim = "trim",
        /// Everything completed before is durable when this completes.
        Flush = "flush",
    }
}

/// One block request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request {
    /// Operation of the request.
    pub op: Op,
    /// First byte; a multiple of [`SECTOR_BYTES`]. 0 for a flush.
    pub offset_bytes: u64,
    /// Length; a positive multiple of [`SECTOR_BYTES`], 0 for a flush. Longer ranges are split by
    /// whoever makes them.
    pub length_bytes: u32,
}

impl Request {
    /// A read of `length_bytes` at `offset_bytes`.
    pub const fn read(offset_bytes: u64, length_bytes: u32) -> Request {
        Request { op: Op::Read, offset_bytes, length_bytes }
    }
    /// A write of `length_bytes` at `offset_bytes`.
    pub const fn write(offset_bytes: u64, length_bytes: u32) -> Request {
        Request { op: Op::Write, offset_bytes, length_bytes }
    }
    /// A trim of `length_bytes` at `offset_bytes`.
    pub const fn trim(offset_bytes: u64, length_bytes: u32) -> Request {
        Request { op: Op::Trim, offset_bytes, length_bytes }
    }
    /// A flush.
    pub const fn flush() -> Request {
        Request { op: Op::Flush, offset_bytes: 0, length_bytes: 0 }
    }
    /// One past the last byte; `None` where that leaves 64 bits.
    pub const fn end_bytes(&self) -> Option<u64> {
        self.offset_bytes.checked_add(self.length_bytes as u64)
    }

    /// Whether a target of `capacity_bytes` with sectors of `sector_bytes` can take it.
    ///
    /// # Errors
    /// [`SubmitError::Misaligned`], then [`SubmitError::OutOfRange`].
    #[inline]
    pub fn check(&self, capacity_bytes: u64, sector_bytes: u32) -> Result<(), SubmitError> {
        let whole = |bytes: u64| match sector_bytes.is_power_of_two() {
            // Nearly always, and it saves dividing.
            true => bytes & (u64::from(sector_bytes) - 1) == 0,
            false => bytes.is_multiple_of(sector_bytes.into()),
        };
        let aligned = whole(self.offset_bytes)
            && whole(self.length_bytes.into())
            && ((self.length_bytes == 0) == (self.op == Op::Flush));
        if !aligned {
            return Err(SubmitError::Misaligned { sector_bytes });
        }
        match self.end_bytes() {
            Some(end) if end <= capacity_bytes => Ok(()),
            end => {
                Err(SubmitError::OutOfRange { end_bytes: end.unwrap_or(u64::MAX), capacity_bytes })
            }
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The device could not do it (unrecoverable medium error, device gone).
    Error = 1,
    /// Writes are refused because the device reached its end of life.
    ReadOnly = 2,
    /// Given up by the target without a completion, as after a reset.
    Abandoned = 3,
}

/// The end of one request, on a clock of `At`: a simulated one, or a machine's
/// ([`MonotonicTime`](crate::MonotonicTime)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion<At = Time> {
    /// The token it was submitted with.
    pub token: Token,
    /// How it ended.
    pub status: Status,
    /// When the target began to work on it: later than the submission where it had to wait for a
    /// place in the device's queue (the "outside" wait of S3-37). A host in front of a device states
    /// `completed` less the time in the device, so that the difference contains none of its own work.
    pub accepted: At,
    /// When it ended. Never later than the `now` it is reaped at.
    pub completed: At,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_sectors_inside_the_target() {
        // Sectors with protection information are no power of two.
        for sector in [512, 520, 4096, 4104] {
            let (capacity, misaligned) = (10 * u64::from(sector), sector / 2);
            let check = |request: Request| request.check(capacity, sector);
            let wrong = Err(SubmitError::Misaligned { sector_bytes: sector });
            let beyond =
                |end_bytes| Err(SubmitError::OutOfRange { end_bytes, capacity_bytes: capacity });
            assert_eq!(check(Request::read(0, 10 * sector)), Ok(()));
            assert_eq!(check(Request::write(9 * u64::from(sector), sector)), Ok(()));
            assert_eq!(check(Request::flush()), Ok(()));
            assert_eq!(check(Request::read(u64::from(misaligned), sector)), wrong);
            assert_eq!(check(Request::trim(0, misaligned)), wrong);
            assert_eq!(check(Request::write(0, 0)), wrong);
            assert_eq!(check(Request { length_bytes: sector, ..Request::flush() }), wrong);
            assert_eq!(check(Request::read(capacity, sector)), beyond(11 * u64::from(sector)));
            assert_eq!(check(Request::read(0, 11 * sector)), beyond(11 * u64::from(sector)));
            let last = u64::MAX / u64::from(sector) * u64::from(sector);
            assert_eq!(check(Request::read(last, sector)), beyond(u64::MAX), "it wraps");
        }
    }
}
