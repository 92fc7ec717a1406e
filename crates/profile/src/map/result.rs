//! The shape of a map.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capacity::DepthRate;

/// What `--map` found: the latency of reads over the rates of reads and writes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MapResult {
    /// Relative difference of interpolated and measured latency that is small enough, and the share of the greatest
    /// rates within which the border of overload is known.
    pub error: f64,
    /// Size of reads, which are random.
    pub read_bytes: u64,
    /// Size of writes, which are sequential.
    pub write_bytes: u64,
    /// Reads per second without writes, with the depth of saturation outstanding: the end of that axis.
    pub read_iops_max: f64,
    /// Bytes written per second without reads: the end of that axis. The second half of a long load, when a write cache
    /// may be full.
    pub write_bytes_per_second_max: f64,
    /// Reads per second by depth, in search of `read_iops_max`.
    pub read_depths: Vec<DepthRate>,
    /// Writes per second by depth, in search of `write_bytes_per_second_max`.
    pub write_depths: Vec<DepthRate>,
    /// Points that were measured, in their order; then corners of `triangles` that were not, because less of both was
    /// overloaded already.
    pub points: Vec<MapPoint>,
    /// Three indices into `points` each: between them latency is interpolated, linear in its logarithm.
    pub triangles: Vec<[u32; 3]>,
    /// Points that were predicted before they were measured; `null` where there was no time for any.
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
    /// The rates were not reached: a queue grew as long as requests arrived. Then there is no latency: it is a matter of
    /// how long the load lasts.
    pub overloaded: bool,
    /// Whether it was loaded at all; if not, it is overloaded because less of both was.
    pub measured: bool,
    /// Reads completed per second; `null` where nothing was measured.
    pub read_iops_reached: Option<f64>,
    /// Bytes written per second; `null` where nothing was measured.
    pub write_bytes_per_second_reached: Option<f64>,
    /// 95th percentile of the latency of reads, from arrival to completion; `null` where overloaded.
    pub read_p95_us: Option<f64>,
    /// Lower end of its 90 % interval; `null` where overloaded, or where the load was too short to tell.
    pub low_us: Option<f64>,
    /// Upper end.
    pub high_us: Option<f64>,
    /// Reads that count.
    pub reads: u64,
}

/// How far interpolation was from measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MapHeldOut {
    /// Points that were drawn at random when the map was finished, and are in it since then. With fewer than three, those
    /// that halve triangles.
    pub points: u32,
    /// Whether they were drawn at random.
    pub random: bool,
    /// Median of the relative differences beyond noise.
    pub median: f64,
    /// The greatest.
    pub max: f64,
    /// Share of the points within `error`, 0 to 1.
    pub within_error: f64,
}
