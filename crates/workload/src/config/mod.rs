//! The TOML form of a generator.
//!
//! Every key has a default, so that an empty file is a workload: 4 KiB random reads, one
//! outstanding, a million requests.

mod buffer;
mod check;

pub use buffer::WriteData;
pub(crate) use check::{SIZE_MAX, arrival_process, check_device};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_block::units::{Bytes, Span};

use crate::hot::HotPart;
use crate::written_places::{self, WrittenPlaces};

/// Requests where a configuration sets neither `requests` nor `duration`.
pub const DEFAULT_REQUESTS: u64 = 1_000_000;

/// A generated workload.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadConfig {
    /// How requests are generated: `mix` (all keys except `disksim`) or `disksim-synthetic` (the table `disksim` and
    /// the limits).
    pub kind: WorkloadKind,
    /// Requests outstanding per thread, 1 or more (S4-12). Without `arrivals` the loop is closed and always has this
    /// many requests outstanding (default 1). With `arrivals` it is an upper bound: a request that arrives at a full
    /// queue waits, and its latency counts from the arrival (default: unlimited).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Independent streams, 1 to 65536 (default 1). They multiply `depth` and take turns. Each stream keeps its own
    /// position when it runs sequentially; with the pattern `sequential` each stream has its own equal part of the
    /// range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Searches for the greatest depth, up to `depth` times `threads`, at which no request takes longer than this (fio:
    /// `latency_target`). A last run of one `latency_window` at that depth is recorded. Closed loops only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_target: Option<Span>,
    /// Duration of the test of each depth. It must be at least `latency_target` and long enough for many requests.
    /// Required with `latency_target`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_window: Option<Span>,
    /// Share of the requests of a window that must take at most `latency_target`, 0 to 100 (default 100).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_percentile: Option<f64>,
    /// Adapt the depth to the latencies until the end of the run, and record everything (default false: the run ends
    /// when the search finds the depth).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_run: Option<bool>,
    /// Makes the loop open: requests arrive independently of completions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Weight of reads (S4-13). Default: 100 minus the other two weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<f64>,
    /// Weight of writes. Default: 100 minus the other two weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_percent: Option<f64>,
    /// Weight of trims (default 0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim_percent: Option<f64>,
    /// Size of every request, a multiple of the target's sector (default 4KiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_size: Option<Bytes>,
    /// Up to 64 sizes with weights (S4-8) instead of `block_size`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub block_sizes: Vec<BlockSize>,
    /// Every offset is a multiple of this (S4-14); default: the smallest block size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<Bytes>,
    /// Share of requests that begin at the end of the thread's last request, 0 to 100 (S4-13). The others follow
    /// `address.pattern`. Default 0, and always 100 with the pattern `sequential`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential_percent: Option<f64>,
    /// Addresses of requests.
    pub address: AddressPattern,
    /// Size and addresses of writes, if they differ from the other requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<WritesApart>,
    /// The data of writes.
    #[serde(skip_serializing_if = "WriteData::is_default")]
    pub buffer: WriteData,
    /// Number of requests to issue after `ramp_up` (S4-9). Default: 1000000 without `duration` and without a search for
    /// a depth, which ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// End of the load: no request is issued (closed loop) or arrives (open loop) at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Number of requests before recording starts (S4-10). They are added to `requests` and are part of `duration`.
    /// Default 0.
    pub ramp_up: u64,
    /// The parameters of `kind = "disksim-synthetic"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disksim: Option<DiskSimSynthetic>,
}

/// How requests are generated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// A weighted mix of operations, sizes and addresses.
    #[default]
    Mix,
    /// The synthetic generator of DiskSim 4, which S3 used (S3-24, S3-25).
    #[serde(rename = "disksim-synthetic")]
    DiskSimSynthetic,
}

/// Size and addresses of writes, if they differ from the other requests. The weights of the operations decide the
/// number of writes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WritesApart {
    /// Size of every write, a multiple of the target's sector. Offsets of writes are multiples of this size.
    pub block_size: Bytes,
    /// Addresses of writes (default: random over the full target). `sequential`: each write begins at the end of the
    /// last write, regardless of requests in between.
    #[serde(default)]
    pub address: AddressPattern,
}

/// One of several block sizes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockSize {
    /// A multiple of the target's sector.
    pub size: Bytes,
    /// Share of the requests, in any unit: weights are divided by their sum.
    pub weight: f64,
}

/// When requests of an open loop arrive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// The process; Poisson by default.
    #[serde(default)]
    pub kind: ArrivalKind,
    /// Mean arrivals per second; or `mean_gap`. Not for bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Mean time between arrivals; or `rate`. Not for bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_gap: Option<Span>,
    /// Bursts only: requests per burst, all at once (S4-11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Bursts only: from the start of a burst to the start of the next; `0s` is continuous: a
    /// closed loop at `depth` (S4-11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
}

/// Arrival process of an open loop. Equal gaps and bursts begin at 0, so that a rate times a duration
/// is the number of requests; drawn gaps begin with a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalKind {
    /// Exponential gaps: independent users.
    #[default]
    Poisson,
    /// Gaps uniform between 0 and twice the mean (S3-24).
    Uniform,
    /// Equal gaps.
    Fixed,
    /// `length` requests at once, every `interval`.
    Bursts,
}

/// Addresses of requests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AddressPattern {
    /// How offsets are chosen within the range.
    pub pattern: Pattern,
    /// Zipf only: exponent of popularity, greater than 0 and at most 10; rank k is drawn with
    /// weight k^-theta (default 0.99, as YCSB).
    pub theta: f64,
    /// Hot/cold only: share of the range that is hot, above 0, below 100 (default 20).
    pub hot_space_percent: f64,
    /// Hot/cold only: share of the requests that go to the hot part, 0 to 100 (default 80).
    pub hot_access_percent: f64,
    /// Zipf and hot/cold: spread hot blocks over the range by a seeded permutation, so that they
    /// are not neighbours (default true).
    pub scatter: bool,
    /// First byte of the range, a multiple of the alignment (default 0).
    pub start: Bytes,
    /// Length of the range (default: up to the end of the target).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Bytes>,
    /// Length of the range as a percentage of the target's size, greater than 0 and at most 100;
    /// instead of `length`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_percent: Option<f64>,
}

impl AddressPattern {
    /// Length of the range on a target of `capacity_bytes`, in bytes.
    pub fn range_bytes(&self, capacity_bytes: u64) -> u64 {
        let rest = capacity_bytes.saturating_sub(self.start.0);
        let share = |percent: f64| (capacity_bytes as f64 * (percent / 100.0)) as u64;
        let given = self.length.map(|length| length.0).or(self.length_percent.map(share));
        given.map_or(rest, |bytes| bytes.min(rest))
    }
}

impl Default for AddressPattern {
    fn default() -> Self {
        AddressPattern {
            pattern: Pattern::Random,
            // These defaults are conventions that readers recognise: 0.99 is the constant of YCSB,
            // and 80 % of the requests to 20 % of the blocks is the usual rule for hot and cold
            // data.
            theta: 0.99,
            hot_space_percent: 20.0,
            hot_access_percent: 80.0,
            scatter: true,
            start: Bytes(0),
            length: None,
            length_percent: None,
        }
    }
}

/// How offsets are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// In ascending order, and again from the start of the range.
    Sequential,
    /// Uniform over all aligned offsets.
    #[default]
    Random,
    /// Every aligned offset once, in random order, then every offset again in another order (fio without `norandommap`;
    /// IOzone's random tests, S2-7). For a single block size.
    RandomOnce,
    /// The block of popularity rank k has the weight k^-theta.
    Zipf,
    /// Uniform within a hot and a cold part.
    HotCold,
}

/// DiskSim's synthetic generator with one device: its parameters and, with `drand48`, exactly its random numbers
/// (`disksim_synthio.c` of DiskSim 4.0; S3-23 … S3-25).
///
/// Sizes are exponential, cut to whole sectors and rounded up to `block`; empty sizes are drawn again. A sequential
/// request follows its predecessor and keeps its size and direction. If twice the size does not fit before the end,
/// address, size and direction are drawn again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DiskSimSynthetic {
    /// Maximum gap: gaps between arrivals are uniform between 0 and this value (default 1ms).
    pub gap_max: Span,
    /// Mean of the exponential sizes, before rounding (default 4KiB: 8 sectors).
    pub mean_size: Bytes,
    /// Sizes and offsets are multiples of this value (default 4KiB).
    pub block: Bytes,
    /// Addresses stay below this value (default 3593678848B: 7018904 sectors).
    pub space: Bytes,
    /// Probability of a sequential request, 0 to 1 (default 0).
    pub sequential_probability: f64,
    /// Probability of a read, 0 to 1 (default 1).
    pub read_probability: f64,
    /// Source of random numbers.
    pub numbers: Numbers,
    /// `drand48` only: seed for the first request (default 42, the shipped parameter files).
    pub first_seed: u32,
    /// `drand48` only: seed for all others (default 1000003, which DiskSim sets at its start).
    pub main_seed: u32,
}

impl Default for DiskSimSynthetic {
    fn default() -> Self {
        DiskSimSynthetic {
            gap_max: Span(Time::from_ms(1)),
            mean_size: Bytes(4096),
            block: Bytes(4096),
            // S3-25: the space and the sizes are those of the validation runs shipped with the SSD
            // add-on of DiskSim. Other values would not reproduce the tables of S3.
            space: Bytes(7_018_904 * 512),
            sequential_probability: 0.0,
            read_probability: 1.0,
            numbers: Numbers::Drand48,
            first_seed: 42,
            main_seed: 1_000_003,
        }
    }
}

/// Source of random numbers of [`DiskSimSynthetic`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Numbers {
    /// DiskSim's own generator and seeds: exactly the requests of S3. The seed of the run is unused.
    #[default]
    Drand48,
    /// The seed of the run.
    Seeded,
}

impl WorkloadConfig {
    /// Reads the TOML form. Errors carry the span of the text for a diagnostic.
    pub fn from_toml(text: &str) -> Result<WorkloadConfig, toml::de::Error> {
        toml::from_str(text)
    }

    /// The same workload with every default written out.
    pub fn resolved(&self) -> WorkloadConfig {
        let mut full = self.clone();
        // A resolved configuration contains all values in use. A later change of a default then
        // does not change the repetition of an old result.
        full.requests = self.requests.or(self.ends_by_requests().then_some(DEFAULT_REQUESTS));
        // This kind rejects the keys of a mix (`foreign_key`). If they were filled in here, the
        // resolved form could not be built again.
        if self.kind == WorkloadKind::DiskSimSynthetic {
            full.disksim = Some(self.disksim.clone().unwrap_or_default());
            return full;
        }
        let [read, write, trim] = self.op_weights();
        full.read_percent = Some(read);
        full.write_percent = Some(write);
        full.trim_percent = Some(trim);
        full.threads = Some(self.threads.unwrap_or(1));
        // The depth of an open loop stays absent: its default is no bound, which no number
        // expresses. A number here would make arrivals wait when the run is repeated.
        if self.arrivals.is_none() {
            full.depth = Some(self.depth.unwrap_or(1));
        }
        if self.latency_target.is_some() {
            full.latency_percentile = Some(self.latency_percentile.unwrap_or(100.0));
            full.latency_run = Some(self.latency_run.unwrap_or(false));
        }
        if self.block_sizes.is_empty() {
            full.block_size = Some(self.block_size.unwrap_or(Bytes(4096)));
        }
        let sizes = self.sizes();
        full.alignment = self.alignment.or(sizes.iter().map(|s| s.size).min());
        // The share is written although the pattern implies it. A reader of the resolved form sees
        // it, and `sequential_share` accepts exactly these values.
        let all = if self.address.pattern == Pattern::Sequential { 100.0 } else { 0.0 };
        full.sequential_percent = Some(self.sequential_percent.unwrap_or(all));
        full
    }

    /// True for a closed loop: each request is issued because another one has completed.
    pub fn is_closed_loop(&self) -> bool {
        // DiskSim's generator is an open loop even without a table `arrivals`: its arrivals have
        // uniform gaps that do not depend on the device (S3-24).
        self.kind == WorkloadKind::Mix && self.arrivals.is_none()
    }

    /// Largest number of outstanding requests; `None` for an open loop without a bound.
    pub fn outstanding_limit(&self) -> Option<u64> {
        let threads = u64::from(self.threads.unwrap_or(1));
        // `depth` is per thread, as fio's `iodepth` is per job. The sum over the threads is the N
        // in the law of Little, by which S0-49 checks R * X = N.
        match (self.depth, &self.arrivals) {
            (Some(depth), _) => Some(u64::from(depth) * threads),
            (None, None) => Some(threads),
            (None, Some(_)) => None,
        }
    }

    /// Requests in all, with the ramp-up; `None` where only `duration` limits them.
    pub fn total_requests(&self) -> Option<u64> {
        let limit = self.requests.or(self.ends_by_requests().then_some(DEFAULT_REQUESTS));
        // S4-10: recording starts after the ramp-up. The sum saturates, because both numbers come
        // from a file and may have any value.
        limit.map(|requests| requests.saturating_add(self.ramp_up))
    }

    /// Whether the run begins with a search for a depth, which is not recorded.
    pub fn searches(&self) -> bool {
        self.latency_target.is_some() && self.latency_run != Some(true)
    }

    /// Nothing but a number of requests ends it.
    fn ends_by_requests(&self) -> bool {
        // A search ends by its own result, after an unknown number of requests. The default number
        // would end it in the middle, without a result.
        self.duration.is_none() && !self.searches()
    }

    /// Weights of reads, writes and trims, absent ones filled in.
    pub fn op_weights(&self) -> [f64; 3] {
        let trim = self.trim_percent.unwrap_or(0.0);
        // The missing share is what the others leave of 100. With 0 for it, `read_percent = 70`
        // would be a load of reads only, because weights are divided by their sum.
        let rest = |other: f64| (100.0 - other - trim).max(0.0);
        match (self.read_percent, self.write_percent) {
            (Some(read), Some(write)) => [read, write, trim],
            (Some(read), None) => [read, rest(read), trim],
            (None, Some(write)) => [rest(write), write, trim],
            (None, None) => [rest(0.0), 0.0, trim],
        }
    }

    /// Whether all requests are in the order of their addresses. Threads have parts of the range, and take turns.
    pub fn is_one_stream(&self) -> bool {
        let is_whole = self.sequential_percent.is_none_or(|percent| percent >= 100.0);
        self.address.pattern == Pattern::Sequential && is_whole && self.threads.unwrap_or(1) == 1
    }

    /// The places that it writes on a target of `capacity_bytes` with pages of `page_bytes`; `None` where it writes in order,
    /// and of another kind than a mix.
    pub(crate) fn written_places(
        &self,
        capacity_bytes: u64,
        page_bytes: f64,
    ) -> Option<WrittenPlaces> {
        if self.kind != WorkloadKind::Mix {
            return None;
        }
        let sizes = self.sizes();
        let weights: f64 = sizes.iter().map(|one| one.weight).sum();
        let mean = sizes.iter().map(|one| one.size.0 as f64 * one.weight).sum::<f64>() / weights;
        let (address, write_bytes) = match &self.writes {
            Some(writes) => (&writes.address, writes.block_size.0 as f64),
            None => (&self.address, mean),
        };
        let range_bytes = address.range_bytes(capacity_bytes) as f64;
        let classes = |places| match address.pattern {
            Pattern::Sequential => None,
            Pattern::Random | Pattern::RandomOnce => Some(written_places::uniform()),
            Pattern::Zipf => Some(written_places::zipf(places, address.theta)),
            Pattern::HotCold => {
                let hot = address.hot();
                Some(vec![hot, HotPart { space: 1.0 - hot.space, access: 1.0 - hot.access }])
            }
        };
        WrittenPlaces::new(range_bytes, [write_bytes, page_bytes], classes)
    }

    /// The writes of [`writes`](WorkloadConfig::writes) alone, as a workload.
    pub(crate) fn writes_alone(&self, writes: &WritesApart) -> WorkloadConfig {
        WorkloadConfig {
            block_size: Some(writes.block_size),
            // Writes apart have one size, and its multiples are their offsets. The alignment and
            // the sequential share of the other requests must not reach them.
            block_sizes: Vec::new(),
            alignment: None,
            sequential_percent: None,
            address: writes.address.clone(),
            writes: None,
            ..self.clone()
        }
    }

    /// The longest request in bytes.
    pub fn block_bytes_max(&self) -> u64 {
        // Buffers of a real run are allocated by this number before the first request. A size that
        // is missing here would overflow a buffer.
        let writes = self.writes.iter().map(|writes| writes.block_size.0);
        self.sizes().iter().map(|one| one.size.0).chain(writes).max().unwrap_or(0)
    }

    /// The block sizes, a single one with weight 1; without those of [`writes`](WorkloadConfig::writes).
    pub fn sizes(&self) -> Vec<BlockSize> {
        if self.block_sizes.is_empty() {
            vec![BlockSize { size: self.block_size.unwrap_or(Bytes(4096)), weight: 1.0 }]
        } else {
            self.block_sizes.clone()
        }
    }
}
