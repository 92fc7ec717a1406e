//! The time of a transfer with the same length as the previous one.

use ssdyno_block::Time;

/// How long the transfer took that was worked out last. Most are as long as the one before, and
/// working it out takes a division and a rounding.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastTransferTime {
    bytes: u64,
    time: Time,
}

impl LastTransferTime {
    /// The time of `bytes`, if they were the last to be worked out.
    #[inline]
    pub fn known(&self, bytes: u64) -> Option<Time> {
        (bytes == self.bytes && bytes > 0).then_some(self.time)
    }

    /// Remembers that `bytes` take `time`, and gives that back.
    pub fn learn(&mut self, bytes: u64, time: Time) -> Time {
        *self = LastTransferTime { bytes, time };
        time
    }
}
