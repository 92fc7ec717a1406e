//! The shape of `result.json`: plain structures that a runner fills and other programs read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::depth::DepthSearchResult;
use crate::faults::FaultsResult;
use crate::host::HostResult;
use crate::hosts::{HostRun, OutsideWindow, ProbedSystem, ScrapedMetrics};
use crate::jobs::JobResult;
use crate::latency::{Confidence, Latency, LatencyByOp};
use crate::latency_map::LatencyMap;
use crate::latency_parts::LatencyPartsByOp;
use crate::method::MethodResult;
use crate::probe::MachineActivity;
use crate::provenance::Provenance;
use crate::steady::SteadyState;
use crate::stop::StopReason;
use crate::tail::TailVerdict;
use crate::until::Precision;
use crate::victims::GcVictims;
use crate::warning::{Warning, WarningKind};

/// Version of the shape of [`RunResult`]. It rises when a key is renamed, removed or changes its
/// meaning; added keys do not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// All figures of one run, as `result.json` and `--json` give them.
///
/// Every key carries its unit. A figure that does not exist (the energy of a device without an
/// energy model, the latency of no requests) is `null` or left out, never zero, NaN or infinite.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// [`SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// What was loaded, as the user named it: `sim:config-a`, `/dev/nvme0n1`.
    pub target: String,
    /// With what it was loaded: the name of a workload or a file.
    pub workload: String,
    /// Whether requests went through this machine's page cache (buffered I/O), so that reads may never
    /// have reached the target; `null` for a target that has none between.
    #[serde(default)]
    pub page_cache: Option<bool>,
    /// The seed that repeats the run; `null` where nothing was drawn, as with a trace.
    pub seed: Option<u64>,
    /// Whether the run ended before its work was done (interrupt, error). The figures then
    /// describe what was done until then.
    pub partial: bool,
    /// Requests completed without error inside the recorded window.
    pub requests: u64,
    /// Requests that ended in an error inside the recorded window; they are in no other figure, but for
    /// those without a completion (`unanswered`).
    pub errors: u64,
    /// Requests that never completed: given up by the driver or the network (those are `errors`, too), or
    /// still outstanding when the run ended. They are in `latency_ns` as at least as long as they were
    /// waited for, and in no rate.
    #[serde(default)]
    pub unanswered: u64,
    /// `requests` per second of the recorded window.
    pub iops: f64,
    /// Requests in the figures whose rows are missing: the disk of the results was too slow for them, or full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows_lost: u64,
    /// Bytes read and written per second of the recorded window; trimmed bytes do not count.
    pub throughput_bytes_per_second: f64,
    /// Requests by operation.
    pub requests_by_op: ByOp<u64>,
    /// From the intended start to the completion, or of those without a completion until nobody waited for them
    /// any more. `null` without requests.
    pub latency_ns: Option<LatencyByOp>,
    /// From the moment the device accepted the request to its completion: without the wait
    /// outside the device (S3-37).
    pub device_latency_ns: Option<Latency>,
    /// What the latency consists of, where the run was asked for it (`why` of the spec) and the device can say: an SSD that is
    /// simulated, alone or behind the NVMe driver, an adapter or a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_parts_ns: Option<LatencyPartsByOp>,
    /// How late requests of an open loop or a trace were issued; `null` in a closed loop and for a
    /// simulated target, which is never late.
    #[serde(default)]
    pub issue_delay_ns: Option<IssueDelay>,
    /// Intervals around the figures; `null` where there were too few requests for one.
    pub confidence: Option<Confidence>,
    /// Largest relative error of the percentiles: 0 where they were worked out from a row of each request, and
    /// 0.0039 where they come from histograms (`keep`); `null` in results of older programs.
    #[serde(default)]
    pub percentile_error_max: Option<f64>,
    /// Why the run stopped where it did: `done`, `requests`, `duration`, `precision`, `interrupted`,
    /// `memory`, `error`, `killed`; `null` in results of older programs.
    #[serde(default)]
    pub stopped_because: Option<StopReason>,
    /// The precision that was asked for and reached; `null` where none was asked for.
    #[serde(default)]
    pub until: Option<Precision>,
    /// When the load was steady and when not; `null` where the run is too short to say.
    #[serde(default)]
    pub steady_state: Option<SteadyState>,
    /// Energy of the device over the recorded window and what it did for it afterwards; `null`
    /// without an energy model.
    pub energy_joules: Option<Energy>,
    /// The time that `energy_joules` is of: the recorded window, and until the device had settled
    /// (written back what its buffer gave out, cleaned). The series has the window alone. `null`
    /// without an energy model.
    #[serde(default)]
    pub energy_seconds: Option<f64>,
    /// Energy-delay product of a request: `energy_joules.per_request` times the mean latency.
    #[serde(default)]
    pub energy_delay_joule_seconds: Option<f64>,
    /// Energy by part and activity; the rows sum to `energy_joules.total`.
    #[serde(default)]
    pub energy_by_part: Vec<EnergyRow>,
    /// Energy and work of each flash package, in order of its number (S3-6). The joules sum to
    /// `energy_joules.flash`; reads, programs and erases to those of `flash_operations`.
    #[serde(default)]
    pub energy_by_package: Vec<PackageEnergy>,
    /// Pages programmed by page written by the host; `null` where nothing was written.
    pub write_amplification: Option<f64>,
    /// What garbage collection cleaned in the recorded window; left out for a device without page-level garbage collection, and
    /// where nothing was cleaned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gc_victims: Option<GcVictims>,
    /// Operations of the flash array; `null` for a device that is not known to be flash.
    pub flash_operations: Option<FlashOperations>,
    /// Share of `energy_seconds` each part was busy, 0 to 1: what the device still did after the last
    /// answer is in it. `null` for a real device.
    pub busy_share: Option<BusyShare>,
    /// The same of each part of a device that is made of others, or that has parts of other kinds: by path, such as
    /// `array.disk[1].spindle`. `busy_share` is `null` then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy_by_part: Vec<PartBusy>,
    /// Searches for the greatest depth that meets a latency (`latency_target`), of each job that makes one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depth_searches: Vec<DepthSearchResult>,
    /// Length of the recorded window on the clock of the device: virtual for a simulated target,
    /// the wall's for a real one.
    pub simulated_seconds: f64,
    /// What the run took on the wall's clock, with all recording, without writing files.
    pub wall_seconds: f64,
    /// When a real target was loaded; left out for a simulated one, whose time is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<LoadWindow>,
    /// Requests that were simulated by second of wall time (with ramp-up); `null` for a real
    /// device.
    pub simulated_requests_per_wall_second: Option<f64>,
    /// What the simulated host added; `null` where the workload was attached to the device alone.
    #[serde(default)]
    pub host: Option<HostResult>,
    /// What was injected, and what became of it; left out where nothing was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsResult>,
    /// How requests went to a real target and came back; `null` for a simulated one.
    #[serde(default)]
    pub method: Option<MethodResult>,
    /// What the tool itself cost.
    pub own_cost: Option<OwnCost>,
    /// What the machine did meanwhile; `null` for a simulated target, or where it was not probed.
    #[serde(default)]
    pub machine: Option<MachineActivity>,
    /// Figures over time. Counts and bytes sum to the figures of the run.
    #[serde(default)]
    pub series: Vec<SeriesPoint>,
    /// How many requests took how long, by operation; bins without requests are left out.
    #[serde(default)]
    pub latency_distribution: ByOp<Vec<LatencyBin>>,
    /// How many requests took how long, over time; left out without a series of at least two points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_map: Option<LatencyMap>,
    /// Each job of a file with several, apart; empty where there is one workload.
    #[serde(default)]
    pub jobs: Vec<JobResult>,
    /// Each host of a run on several, apart; empty where one loaded the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRun>,
    /// Machines that were sampled meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<ProbedSystem>,
    /// Metrics of other programs, read while the run went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<ScrapedMetrics>,
    /// What a closed form gives for this run, beside the measured figure.
    #[serde(default)]
    pub expected: Vec<Expected>,
    /// Invariants whatever the device, and whether they did.
    #[serde(default)]
    pub invariants: Vec<Invariant>,
    /// Whether `latency_ns.p99` is that of the target alone, and why; `null` for a simulated target, and without requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_believable: Option<TailVerdict>,
    /// Why figures do not mean what they seem to; front ends show it above them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Remarks: how the load was carried, and what else is worth knowing.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What repeats the run.
    pub configuration: Option<Configuration>,
    /// Everything that decided the run, as `ssdyno run --spec` takes it (schema `spec`): with every file that
    /// was named, and with what was found before the run. Left out where the run was not made from a spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub spec: Option<serde_json::Value>,
    /// Program, command, date, machine and storage. Left out where nobody recorded it, as in rows of a sweep: it differs
    /// between runs that are equal in every figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

impl RunResult {
    /// Whether there is a warning of this kind.
    pub fn warns_of(&self, kind: WarningKind) -> bool {
        self.warnings.iter().any(|warning| warning.kind == kind)
    }
}

/// When a real target was loaded, by the clock of the machine that loaded it; and the window of several hosts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoadWindow {
    /// Start of the recorded window, which lasts `simulated_seconds`: nanoseconds since 1970-01-01 UTC. Of several hosts
    /// the time in which all of them were running, by the clock of the controller; 0 where they simulate, and time is
    /// their own.
    pub start_unix_ns: u64,
    /// How late the last of the jobs that begin with the run began: after the moment that was given for the run,
    /// or after its start where none was given.
    pub late_ns: u64,
    /// End of the window of several hosts; left out for one, and where they simulate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_unix_ns: Option<u64>,
    /// What each of several hosts did before and after it: in no figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideWindow>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_nothing(number: &f64) -> bool {
    *number == 0.0
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A value for each operation.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ByOp<T> {
    /// Reads.
    pub read: T,
    /// Writes.
    pub write: T,
    /// Trims.
    pub trim: T,
    /// Flushes.
    pub flush: T,
}

impl<T> ByOp<T> {
    /// Makes the value of each operation.
    pub fn from_fn(mut make: impl FnMut(ssdyno_block::Op) -> T) -> ByOp<T> {
        use ssdyno_block::Op;
        ByOp {
            read: make(Op::Read),
            write: make(Op::Write),
            trim: make(Op::Trim),
            flush: make(Op::Flush),
        }
    }

    /// Name and value of each operation, in the order of [`ssdyno_block::Op`].
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &T)> {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim), ("flush", &self.flush)]
            .into_iter()
    }
}

impl ByOp<u64> {
    /// Adds `one` to the value of `op`; 2^64 - 1 is the most.
    pub fn add(&mut self, op: ssdyno_block::Op, one: u64) {
        use ssdyno_block::Op;
        let value = match op {
            Op::Read => &mut self.read,
            Op::Write => &mut self.write,
            Op::Trim => &mut self.trim,
            Op::Flush => &mut self.flush,
        };
        *value = value.saturating_add(one);
    }
}

/// Energy in joules. `flash + cpu + dram + bus + parts = total`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Energy {
    /// The whole device.
    pub total: f64,
    /// Flash packages, idle and busy.
    pub flash: f64,
    /// Controller and its cores.
    pub cpu: f64,
    /// DRAM of the controller.
    pub dram: f64,
    /// Channels and host link.
    pub bus: f64,
    /// Parts of devices that have others; left out where there are none.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub parts: f64,
    /// `total / requests`; `null` without requests.
    pub per_request: Option<f64>,
    /// What the work added: `total` minus what the same device would have drawn in the same time if nothing had
    /// been asked of it, with its slow mode and its low-power states, without work in the background. Below zero
    /// only where the file has a part draw less at work than idle, or awake than asleep.
    pub above_idle: f64,
}

/// Energy of one activity of one kind of part.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct EnergyRow {
    /// Part: `die`, `channel`, `dram`; of a device that is made of others its path, `array.ssd[1].die`.
    pub part: String,
    /// What it did: `program`, `idle`.
    pub activity: String,
    /// Energy.
    pub joules: f64,
    /// Time spent at it, summed over all parts of the kind.
    pub seconds: f64,
}

/// Energy and work of one flash package (a chip with its dies) over the time that the energy is of
/// (S3-6).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PackageEnergy {
    /// Energy, idle and busy.
    pub joules: f64,
    /// The part of it that was drawn while idle or asleep.
    pub idle_joules: f64,
    /// Pages read, for the host and for cleaning.
    pub reads: u64,
    /// Pages programmed, for the host and for cleaning.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Time spent reading, summed over the dies of the package, as are the other times.
    pub read_seconds: f64,
    /// Time spent programming.
    pub program_seconds: f64,
    /// Time spent erasing.
    pub erase_seconds: f64,
    /// Time in which data crossed the channel.
    pub transfer_seconds: f64,
}

/// Operations of the flash array over the recorded window, in pages (reads, programs,
/// relocations) and blocks (erases).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct FlashOperations {
    /// Pages read, for the host and for cleaning.
    pub reads: u64,
    /// Pages programmed, for the host and for cleaning.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Valid pages moved by cleaning and wear levelling.
    pub relocations: u64,
}

/// Busy share of parts, 0 to 1 each.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BusyShare {
    /// Each channel, in order of its number.
    pub channels: Vec<f64>,
    /// Each die, in order of its number.
    pub dies: Vec<f64>,
    /// Each firmware core.
    #[serde(default)]
    pub cores: Vec<f64>,
    /// DRAM.
    pub dram: Option<f64>,
    /// Link to the host.
    pub host_link: Option<f64>,
    /// Device with at least one request inside.
    pub in_service: Option<f64>,
}

/// How busy one part was.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PartBusy {
    /// Its path: `array.disk[1].spindle`.
    pub part: String,
    /// Share of the time, 0 to 1.
    pub share: f64,
}

/// What the tool itself cost, by recorded request.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OwnCost {
    /// CPU time of the process, user and system.
    pub cpu_ns_per_request: f64,
    /// System calls; `null` where they are not counted.
    pub syscalls_per_request: Option<f64>,
    /// Context switches, voluntary and not; `null` where they are not counted.
    pub context_switches_per_request: Option<f64>,
    /// The part of the CPU time in user mode; `null` where it is not known: of less than 0.1 s in all, too.
    #[serde(default)]
    pub user_cpu_ns_per_request: Option<f64>,
    /// The part of the CPU time in the kernel; `null` where it is not known.
    #[serde(default)]
    pub system_cpu_ns_per_request: Option<f64>,
    /// CPU time of a request against a target that costs nothing, measured on this machine before
    /// the run, and where rows go to a file while the run goes on, that of writing one, measured in the
    /// run; `null` for a simulated target. The Parquet file, which is made after the run, is not in it.
    #[serde(default)]
    pub floor_cpu_ns_per_request: Option<f64>,
}

/// How late the tool issued requests that were meant to start at a given time, in nanoseconds.
/// Requests that waited because as many as allowed were outstanding are counted apart: that is
/// the target's doing.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct IssueDelay {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Largest.
    pub max: f64,
    /// Requests that waited for a place.
    pub queued: u64,
}

/// Figures of one stretch of time, by the moment of completion.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeriesPoint {
    /// Start, from the start of the recorded window.
    pub start_seconds: f64,
    /// Length; the last one ends with the run and may be shorter than the rest.
    pub length_seconds: f64,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Trims completed.
    pub trims: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Requests completed without error, by second.
    pub iops: f64,
    /// Bytes read and written, by second.
    pub throughput_bytes_per_second: f64,
    /// Mean latency; `null` where nothing completed.
    pub latency_ns_mean: Option<f64>,
    /// Median latency; `null` where nothing completed. Percentiles are within 0.4 %, with rows and without.
    #[serde(default)]
    pub latency_ns_p50: Option<f64>,
    /// 95th percentile.
    #[serde(default)]
    pub latency_ns_p95: Option<f64>,
    /// 99th percentile.
    #[serde(default)]
    pub latency_ns_p99: Option<f64>,
    /// Largest latency; `null` where nothing completed.
    pub latency_ns_max: Option<f64>,
    /// Mean power; `null` without an energy model.
    pub power_watts: Option<Power>,
}

/// Mean power over a stretch of time, in watts. The parts sum to the total.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Power {
    /// The whole device.
    pub total: f64,
    /// Flash packages.
    pub flash: f64,
    /// Controller and its cores.
    pub cpu: f64,
    /// DRAM of the controller.
    pub dram: f64,
    /// Channels and host link.
    pub bus: f64,
    /// Parts of devices that have others; left out where there are none.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub parts: f64,
}

/// How many requests took from `from_ns` to below `to_ns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBin {
    /// Shortest latency of the bin.
    pub from_ns: u64,
    /// Shortest latency above the bin.
    pub to_ns: u64,
    /// Requests.
    pub count: u64,
}

/// What a closed form gives for a figure of the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Expected {
    /// Key of the figure in the result: `write_amplification`.
    pub figure: String,
    /// What the form gives.
    pub value: f64,
    /// What the run gave; `null` where it could not be measured.
    pub measured: Option<f64>,
    /// How far chance takes a run as long as this one: 95 of 100 seeds are within this share of their
    /// mean, at least. `null` where it is not known.
    pub chance: Option<f64>,
    /// The form, with its source.
    pub form: String,
    /// What went into it, by name with unit.
    pub inputs: BTreeMap<String, f64>,
}

/// An invariant that must hold, and whether it did.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Invariant {
    /// Name: `littles_law`.
    pub name: String,
    /// Whether it held.
    pub holds: bool,
    /// The numbers behind it.
    pub detail: String,
}

/// What repeats the run: both as resolved TOML, with every key.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// The device; empty for a real one.
    pub device_toml: String,
    /// The workload.
    pub workload_toml: String,
}

/// The JSON schema of [`RunResult`] (JSON Schema 2020-12), as published with the program.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(RunResult).to_value()
}
