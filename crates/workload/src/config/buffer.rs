//! What writes carry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bytes, Percent};

use crate::WorkloadError;

/// The data of writes to a real target, for targets that compress or deduplicate. Simulated targets store no data.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WriteData {
    /// Fill the buffer with new data for each write (fio: `refill_buffers`). Otherwise each buffer keeps the data that
    /// it was filled with at the start (default true).
    pub refill: bool,
    /// Share of each chunk that is zeroes, 0% to 100%. The rest comes first and is incompressible (fio:
    /// `buffer_compress_percentage`; default 0%).
    pub compress: Percent,
    /// Length of a chunk; 0B: the whole request (fio: `buffer_compress_chunk`; default 512B).
    pub compress_chunk: Bytes,
    /// Share of the writes that repeat the last new data of the job, 0% to 100% (fio: `dedupe_percentage`; default 0%).
    pub dedupe: Percent,
}

impl Default for WriteData {
    fn default() -> WriteData {
        WriteData {
            refill: true,
            compress: Percent(0.0),
            compress_chunk: Bytes(512),
            dedupe: Percent(0.0),
        }
    }
}

impl WriteData {
    /// Whether it is what is usual.
    pub fn is_default(&self) -> bool {
        *self == WriteData::default()
    }

    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        // The checks hold for simulated targets as well, although they store no data. A
        // configuration that is accepted there must not fail later on a real device.
        for (key, share) in [("buffer.compress", self.compress), ("buffer.dedupe", self.dedupe)] {
            if !(0.0..=100.0).contains(&share.0) {
                let what = format!("{share} is not a share between 0 (0 %) and 1 (100 %)");
                return Err(WorkloadError::of_key(key, what, "give 0% to 100%"));
            }
        }
        // A duplicate repeats the last fresh data. Without refilling, every write is a repetition
        // already, and the share that the user asked for could not be kept.
        if !self.refill && self.dedupe.0 > 0.0 {
            let what = "without fresh data there is nothing to repeat";
            return Err(WorkloadError::of_key("buffer.dedupe", what, "set buffer.refill = true"));
        }
        Ok(())
    }
}
