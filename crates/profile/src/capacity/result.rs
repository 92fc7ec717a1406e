//! The shape of a capacity profile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load::Figure;

/// What `--method capacity` found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CapacityResult {
    /// Half the width of a 90 % interval divided by its figure at which a figure is known well enough.
    pub error: f64,
    /// Size of the requests of the iops figures.
    pub small_bytes: u64,
    /// Size of the requests of the bandwidth figures.
    pub large_bytes: u64,
    /// The figures, in the order of `io.cost.model`; without writes only those of reads.
    pub figures: Vec<CapacityFigure>,
    /// Loads that no figure is fitted to, predicted and measured.
    pub checks: Vec<CheckedLoad>,
    /// Latencies at a moderate load, for `io.cost.qos`; `null` where the time did not suffice.
    pub moderate: Option<ModerateLatency>,
    /// Hard disk or not, and what the system says of the disk.
    pub disk: DiskFacts,
    /// The processor limited a test; `null` where none did, and for simulated targets.
    pub cpu_limit: Option<CpuLimit>,
    /// Why the figures cannot be right, or cannot be used. With any, no scheduler file is written.
    pub implausible: Vec<String>,
    /// What is unusual about the figures.
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
    /// Its name in `io.cost.model`. Bandwidths are in bytes per second, the others in requests per second.
    pub figure: Figure,
    /// Mean of the rounds, after a burst.
    pub estimate: f64,
    /// Lower end of the 90 % interval of Student's t over rounds; `null` with fewer than two.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Rounds that count.
    pub rounds: u32,
    /// Requests outstanding: the least depth whose rate is within 2 % of the highest.
    pub depth: u32,
    /// The depths that were tried.
    pub depths: Vec<DepthRate>,
    /// Change from the first to the second half of the rounds, divided by the mean.
    pub drift: f64,
    /// A faster time at first, which is not in the estimate; `null` without one.
    pub burst: Option<RateBurst>,
    /// The longest stretch of this load without a pause in which the rate was looked at, in seconds: a burst that is
    /// longer was not seen.
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

/// A faster time before a rate was sustained (a write cache, credits).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RateBurst {
    /// Rate of the burst, in the unit of the figure.
    pub rate: f64,
    /// Rate right after it.
    pub sustained: f64,
    /// How long it lasted, in seconds on the clock of the device; other tests that ran meanwhile count.
    pub seconds: f64,
    /// Bytes of this load until its end.
    pub bytes: f64,
}

/// A load that no figure is fitted to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckedLoad {
    /// In words.
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
    /// Requests per second by the kernel's linear cost model with the figures; `null` where some are missing.
    pub iocost_iops: Option<f64>,
    /// Predicted by measured, less 1: above 0 where the model promises too much.
    pub iocost_error: Option<f64>,
    /// Requests per second by Seastar's model; `null` where figures are missing.
    pub seastar_iops: Option<f64>,
    /// As `iocost_error`.
    pub seastar_error: Option<f64>,
}

/// Latencies at a moderate load: the small mix (small random reads where nothing is written) at the greatest depth with
/// at most 80 % of its highest rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModerateLatency {
    /// Requests outstanding.
    pub depth: u32,
    /// Rate at that depth divided by the highest.
    pub load: f64,
    /// 99th percentile of reads.
    pub read_p99_us: f64,
    /// 99th percentile of writes; `null` without writes.
    pub write_p99_us: Option<f64>,
    /// 99th percentile of reads at saturation: the median of the rounds; `null` without one.
    pub read_p99_us_saturated: Option<f64>,
    /// The same of writes.
    pub write_p99_us_saturated: Option<f64>,
}

/// The kind of the medium, as measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// Small random reads at depth 1 take 2 ms or more, and four times as long as sequential ones.
    Hdd,
    /// Anything faster.
    #[default]
    Ssd,
}

/// What is known of the disk.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiskFacts {
    /// As measured; `null` where the time did not suffice.
    pub media: Option<MediaKind>,
    /// The kernel's flag; `null` for simulated targets and where there is none.
    pub rotational: Option<bool>,
    /// `MAJOR:MINOR` of the whole disk; `null` where no single disk is known.
    pub number: Option<String>,
    /// Its name in the kernel.
    pub name: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Its firmware revision.
    pub firmware: Option<String>,
    /// Disks below a mapped device or an array.
    pub below: Vec<String>,
}

/// A processor that was busy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CpuLimit {
    /// The test with the highest share.
    pub load: String,
    /// CPU time of the jobs divided by the time of the test and the number of jobs, 0 to 1.
    pub share: f64,
    /// Threads that carried the load.
    pub jobs: u32,
    /// Cores that they were bound to; empty where the scheduler chose.
    pub cores: Vec<u32>,
}
