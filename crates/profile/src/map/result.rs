//! The shape of a map.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::DepthRate;

/// Result of `--map`: the latency of reads over the rates of reads and writes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MapResult {
    /// Precision goals: the relative difference between interpolated and measured latency, and the width of the border
    /// of overload as a share of the greatest rates.
    pub error: f64,
    /// Size of reads, which are random.
    pub read_bytes: u64,
    /// Size of writes, which are sequential.
    pub write_bytes: u64,
    /// Reads per second without writes, at the depth of saturation: the end of that axis.
    pub read_iops_max: f64,
    /// Bytes written per second without reads: the end of that axis. Measured in the second half of a long load, when a
    /// write cache may be full.
    pub write_bytes_per_second_max: f64,
    /// Reads per second by depth, from the search for `read_iops_max`.
    pub read_depths: Vec<DepthRate>,
    /// Writes per second by depth, from the search for `write_bytes_per_second_max`.
    pub write_depths: Vec<DepthRate>,
    /// Measured points, in the order of the measurements, including the `held_out` points; then corners of `triangles`
    /// that were not measured, because a point with lower rates was already overloaded.
    pub points: Vec<MapPoint>,
    /// Three indices into `points` each: inside a triangle the logarithm of the latency is interpolated linearly.
    pub triangles: Vec<[u32; 3]>,
    /// Points that were predicted before they were measured; `null` if there was no time.
    pub held_out: Option<MapHeldOut>,
}

impl MapResult {
    /// How many points were measured.
    pub fn measured(&self) -> usize {
        self.points.iter().filter(|point| point.measured).count()
    }
}

/// A pair of rates.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MapPoint {
    /// Reads that arrived per second.
    pub read_iops: f64,
    /// Bytes of writes that arrived per second.
    pub write_bytes_per_second: f64,
    /// The rates were not reached: the queue grew during the load, or it was still not settled in a longer load (the
    /// latency is not known to a factor of two). Then there is no latency, because it depends on the length of the load.
    pub overloaded: bool,
    /// Whether the point was measured; if not, it counts as overloaded because a point with lower rates was.
    pub measured: bool,
    /// Reads completed per second; `null` without a measurement.
    pub read_iops_reached: Option<f64>,
    /// Bytes written per second; `null` without a measurement.
    pub write_bytes_per_second_reached: Option<f64>,
    /// 95th percentile of the latency of reads, from arrival to completion; `null` if overloaded.
    pub read_p95_us: Option<f64>,
    /// Lower end of its 95 % interval; `null` if overloaded, or if the load was too short for an interval.
    pub low_us: Option<f64>,
    /// Upper end.
    pub high_us: Option<f64>,
    /// Reads that count.
    pub reads: u64,
}

impl MapPoint {
    /// The point as an overloaded one.
    pub(super) fn without_latency(self) -> MapPoint {
        MapPoint { overloaded: true, read_p95_us: None, low_us: None, high_us: None, ..self }
    }
}

/// Difference between interpolation and measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MapHeldOut {
    /// Number of points that were drawn at random after the map was finished. They are in `points`, but `triangles` does
    /// not use them. If fewer than three were drawn: the points that halve triangles.
    pub points: u32,
    /// Whether the points were drawn at random.
    pub random: bool,
    /// Median of the relative differences. They contain the noise of the points.
    pub median: f64,
    /// Greatest of the relative differences.
    pub max: f64,
    /// Share of the points within `error`, 0 to 1.
    pub within_error: f64,
}
