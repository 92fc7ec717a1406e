//! A [`Time`] as an integer, for `#[serde(with = "picoseconds")]`: seconds in floating point would lose picoseconds
//! after an hour.

use serde::{Deserialize, Deserializer, Serializer};
use ssdyno_block::Time;

/// Writes `time` in picoseconds.
///
/// # Errors
/// Those of `to`.
pub fn serialize<S: Serializer>(time: &Time, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(time.as_ps())
}

/// Reads a time in picoseconds.
///
/// # Errors
/// Those of `from`.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
    u64::deserialize(from).map(Time::from_ps)
}
