//! The shape of a capacity profile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load::Figure;

/// Result of `--method capacity`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CapacityResult {
    /// Precision goal: half the width of a 90 % interval divided by its figure.
    pub error: f64,
    /// Size of the requests of the iops figures.
    pub small_bytes: u64,
    /// Size of the requests of the bandwidth figures.
    pub large_bytes: u64,
    /// The figures, in the order of `io.cost.model`; without writes only the figures of reads.
    pub figures: Vec<CapacityFigure>,
    /// Loads outside the fit of the figures, predicted and measured.
    pub checks: Vec<CheckedLoad>,
    /// Latencies at a moderate load, for `io.cost.qos`; `null` if the time was too short.
    pub moderate: Option<ModerateLatency>,
    /// Kind of disk, and its identity from the system.
    pub disk: DiskFacts,
    /// The processor limited a test; `null` without a limit, and for simulated targets.
    pub cpu_limit: Option<CpuLimit>,
    /// Reasons why the figures cannot be right, or cannot be used. With any reason, no scheduler file is written.
    pub implausible: Vec<String>,
    /// Warnings about the figures.
    pub warnings: Vec<String>,
}

impl CapacityResult {
    /// The figure called `figure`; `None` where it was not measured.
    pub fn figure(&self, figure: Figure) -> Option<&CapacityFigure> {
        self.figures.iter().find(|one| one.figure == figure)
    }

    /// A figure as an integer; files are written only where it is there.
    pub(super) fn rounded(&self, figure: Figure) -> u64 {
        self.figure(figure).map_or(1, CapacityFigure::rounded)
    }
}

/// One figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CapacityFigure {
    /// Its name in `io.cost.model`. Bandwidths are in bytes per second, all other figures in requests per second.
    pub figure: Figure,
    /// Mean of the rounds, after a burst.
    pub estimate: f64,
    /// Lower end of the 90 % interval of Student's t over rounds; `null` with fewer than two rounds.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Rounds that count.
    pub rounds: u32,
    /// Requests outstanding: the smallest depth whose rate is within 2 % of the highest.
    pub depth: u32,
    /// The depths that the test tried.
    pub depths: Vec<DepthRate>,
    /// Change from the first to the second half of the rounds, divided by the mean.
    pub drift: f64,
    /// A higher rate at the start, which the estimate excludes; `null` without a burst.
    pub burst: Option<RateBurst>,
    /// Longest continuous load in which the rate was observed, in seconds: a burst longer than this would go
    /// unnoticed.
    pub longest_seconds: f64,
}

impl CapacityFigure {
    /// Half the width of the interval divided by the estimate; `None` without an interval.
    pub fn relative_half_width(&self) -> Option<f64> {
        Some((self.high? - self.estimate) / self.estimate)
    }

    /// As an integer, which scheduler files take: at least 1.
    pub fn rounded(&self) -> u64 {
        self.estimate.round().max(1.0) as u64
    }
}

/// The rate at one depth.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DepthRate {
    /// Requests outstanding.
    pub depth: u32,
    /// Requests per second.
    pub iops: f64,
}

/// A period of higher rate before the sustained rate (a write cache, credits).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RateBurst {
    /// Rate of the burst, in the unit of the figure.
    pub rate: f64,
    /// Rate right after the burst.
    pub sustained: f64,
    /// Length of the burst, in seconds on the clock of the device; other tests that ran during the burst count.
    pub seconds: f64,
    /// Bytes of this load until the end of the burst.
    pub bytes: f64,
}

/// A load outside the fit of the figures.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckedLoad {
    /// The load in words.
    pub load: String,
    /// Size of every request.
    pub size_bytes: u64,
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// Requests outstanding.
    pub depth: u32,
    /// Requests per second: the mean of the rounds.
    pub measured_iops: f64,
    /// Lower end of the 90 % interval; `null` with fewer than two rounds.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Requests per second by the kernel's linear cost model with the figures; `null` if figures are missing.
    pub iocost_iops: Option<f64>,
    /// Predicted rate divided by measured rate, minus 1: above 0 if the model predicts too much.
    pub iocost_error: Option<f64>,
    /// Requests per second by Seastar's model; `null` if figures are missing.
    pub seastar_iops: Option<f64>,
    /// As `iocost_error`.
    pub seastar_error: Option<f64>,
}

/// Latencies at a moderate load: the small mix (small random reads without writes) at the greatest depth with at most
/// 80 % of the rate that its rounds sustain.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModerateLatency {
    /// Requests outstanding.
    pub depth: u32,
    /// Rate at that depth divided by the sustained rate: the mean of the rounds.
    pub load: f64,
    /// 99th percentile of reads.
    pub read_p99_us: f64,
    /// 99th percentile of writes; `null` without writes.
    pub write_p99_us: Option<f64>,
    /// 99th percentile of reads at saturation: the median of the rounds; `null` without rounds.
    pub read_p99_us_saturated: Option<f64>,
    /// 99th percentile of writes at saturation.
    pub write_p99_us_saturated: Option<f64>,
}

/// The kind of the medium, as measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// Small random reads at depth 1 take 2 ms or more, and four times as long as sequential reads.
    Hdd,
    /// Any faster medium.
    #[default]
    Ssd,
}

/// Properties of the disk.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiskFacts {
    /// Measured kind; `null` if the time was too short.
    pub media: Option<MediaKind>,
    /// The kernel's flag; `null` for simulated targets and without a flag.
    pub rotational: Option<bool>,
    /// `MAJOR:MINOR` of the whole disk; `null` without a single known disk.
    pub number: Option<String>,
    /// Name of the disk in the kernel.
    pub name: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Its firmware revision.
    pub firmware: Option<String>,
    /// Disks below a mapped device or an array.
    pub below: Vec<String>,
}

/// A processor that limited a test.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CpuLimit {
    /// The test with the highest share.
    pub load: String,
    /// CPU time of the jobs divided by the time of the test and the number of jobs, 0 to 1.
    pub share: f64,
    /// Number of threads that issued requests.
    pub jobs: u32,
    /// Cores that the threads were bound to; empty if the scheduler chose.
    pub cores: Vec<u32>,
}
