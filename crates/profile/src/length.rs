//! How long a slice is.

use crate::measure::Cell;
use crate::measure::{Measurement, Measurements};
use crate::strategy::Slice;

/// Requests of the first slice and its bytes at most, and bounds of the others: fewer are mostly the way to the first
/// record, more hide drift. With at most 256, a slice of a fast drive took less time than the start of a load on a real
/// target (some 15 ms), and 3 minutes contained too few slices: half widths were 6 % on a file where 1024 gave 5 %.
const REQUESTS_FIRST: u64 = 64;
const BYTES_FIRST: u64 = 16 << 20;
const REQUESTS_MIN: u64 = 8;
const REQUESTS_MAX: u64 = 1024;

/// Requests of a slice at least, and its seconds at most, where a request takes long: eight requests of 4 MiB would take
/// seven seconds with a disk that transfers 5 MB/s.
const SLOW_REQUESTS_MIN: u64 = 3;
const SLICE_SECONDS_MAX: f64 = 1.0;

/// Requests of a sequential slice at most. Small requests are served from the device's read-ahead: 256 requests of 8
/// KiB lie in one or two of its stretches, and two slices of an array of disks differed by a factor of six.
const SEQUENTIAL_MAX: u64 = 8192;

/// Requests of a sequential slice divided by those of its lead. With an eighth, two disks with stripes came out 2 % too
/// slow: their heads need some revolutions until one disk reads while the data of the other are on the way.
const SEQUENTIAL_LEAD: u64 = 2;

/// Device time that a long test of writes aims at (`history.rs`): what a slow flash drive needs for the usual span.
const LONG_SECONDS: f64 = 12.0;

/// The first slice of a cell, whose length was a guess, counts if it has this share of the requests of the others.
pub(crate) const FIRST_SHARE_MIN: f64 = 0.5;

/// Device time that a slice aims at.
const SLICE_SECONDS: f64 = 0.1;

/// A slice of a test of reads whose access time is `time` nanoseconds; `None` where that is not known.
pub(crate) fn of_reads(cell: Cell, time: Option<f64>) -> Slice {
    let requests = requests(cell, time, SLICE_SECONDS).min(most(cell));
    let of_lead = if cell.0.is_random() { 8 } else { SEQUENTIAL_LEAD };
    // The change from another test costs the same however short the slice is. So the lead has a
    // fixed part, and a part that grows with the slice.
    Slice { lead: requests.div_ceil(2).min(4) + requests / of_lead, requests }
}

/// A slice of a test of writes after a burst of `lead` requests.
pub(crate) fn of_writes(cell: Cell, time: Option<f64>, lead: u64) -> Slice {
    let requests = requests(cell, time, SLICE_SECONDS).min(most(cell));
    // A long lead is the price of the slice. Half as many counted requests as lead requests
    // keep that price in proportion.
    Slice { lead: lead + 4 + requests / 8, requests: requests.max(lead / 2) }
}

/// A long test of writes.
pub(crate) fn long(cell: Cell, time: Option<f64>) -> Slice {
    Slice { lead: 0, requests: requests(cell, time, LONG_SECONDS) }
}

fn most((test, _): Cell) -> u64 {
    if test.is_random() { REQUESTS_MAX } else { SEQUENTIAL_MAX }
}

/// Requests of `seconds` of device time.
fn requests(cell: Cell, time: Option<f64>, seconds: f64) -> u64 {
    // Nothing is known about the first slice of a test. The limit in bytes keeps a first slice
    // of large requests short on a slow disk.
    let Some(time) = time else {
        return REQUESTS_FIRST.min(BYTES_FIRST / cell.1).max(REQUESTS_MIN);
    };
    let within = |seconds: f64| (seconds * 1e9 / time) as u64;
    // Fewer than eight requests have much noise, but eight large requests take seconds on a
    // slow disk. There the least number shrinks, down to three.
    let least = within(SLICE_SECONDS_MAX).clamp(SLOW_REQUESTS_MIN, REQUESTS_MIN);
    within(seconds).max(least)
}

/// Whether a measurement is as long as a long test is planned.
pub(crate) fn is_long(one: &Measurement) -> bool {
    // `seconds` does not include the lead, but a long test is planned with it. So the lead is
    // added at the rate of the counted requests.
    let seconds = one.seconds * (1.0 + one.lead as f64 / one.requests as f64);
    one.whole || seconds >= FIRST_SHARE_MIN * LONG_SECONDS
}

/// The access time of a cell, from the nearest size that was measured: a sequential test takes as long for a byte, and a
/// random one no longer for a byte of a larger request and no longer for a smaller request.
pub(crate) fn guess((test, size): Cell, so_far: &Measurements) -> Option<f64> {
    let known = so_far.all().iter().filter(|one| one.test == test && one.counts());
    let apart = |one: &&Measurement| (one.size_bytes as f64 / size as f64).ln().abs();
    let nearest = known.min_by(|a, b| apart(a).total_cmp(&apart(b)))?;
    let bytes = size as f64 / nearest.size_bytes as f64;
    Some(nearest.access_time_ns() * if test.is_random() { bytes.max(1.0) } else { bytes })
}
