//! The shape of `result.json`: plain structures that a runner fills and other programs read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_workload::DepthSearchResult;

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

/// All figures of one run, as in `result.json` and `--json`.
///
/// Every key includes its unit. A figure that does not exist (the energy of a device without an energy model, the
/// latency of a run without requests) is `null` or left out, never zero, NaN or infinite.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Version of this format ([`SCHEMA_VERSION`]) in the program that wrote the result.
    pub schema_version: u32,
    /// Name of the target, as the user gave it: `sim:config-a`, `/dev/nvme0n1`.
    pub target: String,
    /// Name of the workload or of its file.
    pub workload: String,
    /// Whether requests went through this machine's page cache (buffered I/O), so that reads may not have reached the
    /// target; `null` for a target without a page cache.
    #[serde(default)]
    pub page_cache: Option<bool>,
    /// The seed that repeats the run; `null` without random numbers, as with a trace.
    pub seed: Option<u64>,
    /// Whether the run ended early (interrupt, error). The figures then cover only the completed
    /// part.
    pub partial: bool,
    /// Requests completed without error inside the recorded window.
    pub requests: u64,
    /// Requests that ended in an error inside the recorded window. No other figure includes them, except requests without a
    /// completion (`unanswered`).
    pub errors: u64,
    /// Requests that never completed: given up by the driver or the network (also counted in `errors`), or still
    /// outstanding at the end of the run. In `latency_ns` each counts with its waiting time as a lower bound; rates do
    /// not include them.
    #[serde(default)]
    pub unanswered: u64,
    /// `requests` per second of the recorded window.
    pub iops: f64,
    /// Requests in the figures whose rows are missing, because the disk of the results was too slow or full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows_lost: u64,
    /// Bytes read and written per second of the recorded window; trimmed bytes do not count.
    pub throughput_bytes_per_second: f64,
    /// Requests by operation.
    pub requests_by_op: ByOp<u64>,
    /// From the intended start to the completion, or to the end of the wait for requests that never completed. `null`
    /// without requests.
    pub latency_ns: Option<LatencyByOp>,
    /// From the moment the device accepted the request to its completion: without the wait
    /// outside the device (S3-37).
    pub device_latency_ns: Option<Latency>,
    /// Parts of the latency, if the spec asks for them (`why`) and the device supports it: a simulated SSD, alone or
    /// behind the NVMe driver, an adapter or a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_parts_ns: Option<LatencyPartsByOp>,
    /// Delay of the requests of an open loop or a trace when they were issued; `null` in a closed loop, and for a
    /// simulated target, which has no delay.
    #[serde(default)]
    pub issue_delay_ns: Option<IssueDelay>,
    /// Intervals around the figures; `null` with too few requests for an interval.
    pub confidence: Option<Confidence>,
    /// Largest relative error of the percentiles: 0 if they come from a row of each request, 0.0039 if they come from
    /// histograms (`keep`); `null` in results of older versions. Those of `device_latency_ns` always come from a histogram.
    #[serde(default)]
    pub percentile_error_max: Option<f64>,
    /// Reason why the run stopped: `done`, `requests`, `duration`, `precision`, `interrupted`, `memory`, `error`,
    /// `killed`; `null` in results of older versions.
    #[serde(default)]
    pub stopped_because: Option<StopReason>,
    /// The requested precision and the reached precision; `null` without a requested precision.
    #[serde(default)]
    pub until: Option<Precision>,
    /// Steady and unsteady parts of the run; `null` if the run is too short.
    #[serde(default)]
    pub steady_state: Option<SteadyState>,
    /// Energy of the device over the recorded window and the work after it; `null` without an energy model.
    pub energy_joules: Option<Energy>,
    /// Duration for `energy_joules`: the recorded window and the time until the device had settled (write-back of its
    /// buffer, cleaning). The series covers the window alone. `null` without an energy model.
    #[serde(default)]
    pub energy_seconds: Option<f64>,
    /// Energy-delay product of a request: `energy_joules.per_request` times the mean latency.
    #[serde(default)]
    pub energy_delay_joule_seconds: Option<f64>,
    /// Energy by part and activity; the rows sum to `energy_joules.total`.
    #[serde(default)]
    pub energy_by_part: Vec<EnergyRow>,
    /// Energy and work of each flash package, in order of its number (S3-6). The joules sum to `energy_joules.flash`;
    /// reads, programs and erases sum to `flash_operations`.
    #[serde(default)]
    pub energy_by_package: Vec<PackageEnergy>,
    /// Number of bytes that the flash programmed divided by the number of bytes that the host wrote. Bytes that still wait in the
    /// write buffer at the end do not count as written. Bytes that later writes replaced in the buffer count as written, so the
    /// value may be below 1. `null` if the flash programmed nothing for the host.
    pub write_amplification: Option<f64>,
    /// Blocks that garbage collection cleaned in the recorded window; left out for a device without page-level garbage
    /// collection, and if no block was cleaned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gc_victims: Option<GcVictims>,
    /// Operations of the flash array; `null` if the device is not known to have flash.
    pub flash_operations: Option<FlashOperations>,
    /// Share of `energy_seconds` that each part was busy, 0 to 1, with the work after the last completion. `null` for a
    /// real device.
    pub busy_share: Option<BusyShare>,
    /// Busy share by part, for a device that consists of other devices or has other kinds of parts: by path, such as
    /// `array.disk[1].spindle`. `busy_share` is `null` then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy_by_part: Vec<PartBusy>,
    /// Searches of each job for the greatest depth that meets a latency (`latency_target`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depth_searches: Vec<DepthSearchResult>,
    /// Length of the recorded window on the clock of the device: virtual for a simulated target, wall time for a real
    /// target.
    pub simulated_seconds: f64,
    /// Wall time of the run with recording, without writing files.
    pub wall_seconds: f64,
    /// Start of the load of a real target, and windows; left out for a simulated target on one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<LoadWindow>,
    /// Simulated requests per second of wall time (with ramp-up), of all hosts together; `null` for a real device.
    pub simulated_requests_per_wall_second: Option<f64>,
    /// Costs of the simulated host; `null` if the workload goes directly to the device.
    #[serde(default)]
    pub host: Option<HostResult>,
    /// Injected faults and the recovery; left out without faults in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsResult>,
    /// How requests were passed to a real target and reaped; `null` for a simulated target.
    #[serde(default)]
    pub method: Option<MethodResult>,
    /// Overhead of the tool.
    pub own_cost: Option<OwnCost>,
    /// Activity of the machine during the run; `null` for a simulated target, or without probes.
    #[serde(default)]
    pub machine: Option<MachineActivity>,
    /// Figures over time. Counts and bytes sum to the figures of the run.
    #[serde(default)]
    pub series: Vec<SeriesPoint>,
    /// Number of requests by latency, for each operation; bins without requests are left out.
    #[serde(default)]
    pub latency_distribution: ByOp<Vec<LatencyBin>>,
    /// Number of requests by latency, over time; left out without a series of at least two points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_map: Option<LatencyMap>,
    /// Figures of each job of a job file with several jobs; empty for a single workload.
    #[serde(default)]
    pub jobs: Vec<JobResult>,
    /// Figures of each host of a run on several hosts; empty for a single host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRun>,
    /// Machines that were sampled during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<ProbedSystem>,
    /// Metrics of other programs, read during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<ScrapedMetrics>,
    /// Theoretical value of a figure from a closed form, beside the measured figure.
    #[serde(default)]
    pub expected: Vec<Expected>,
    /// Invariants of every device, and whether they held.
    #[serde(default)]
    pub invariants: Vec<Invariant>,
    /// Whether `latency_ns.p99` is due to the target alone, with reasons; `null` for a simulated target, and without
    /// requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_believable: Option<TailVerdict>,
    /// Warnings about misleading figures; front ends show them above the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Notes on how the load was issued, and other remarks.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The complete configuration, for a repetition of the run.
    pub configuration: Option<Configuration>,
    /// The complete spec of the run for `ssdyno run --spec` (schema `spec`), with the contents of every named file and
    /// with the settings found before the run. Left out if the run was not made from a spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub spec: Option<serde_json::Value>,
    /// Program, command, date, machine and storage. Left out if not recorded, as in rows of a sweep: it differs between
    /// runs with equal figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

impl RunResult {
    /// Whether there is a warning of this kind.
    pub fn warns_of(&self, kind: WarningKind) -> bool {
        self.warnings.iter().any(|warning| warning.kind == kind)
    }

    /// Whether a warning says that the run has no steady state.
    pub fn warns_of_unsteadiness(&self) -> bool {
        self.warnings.iter().any(|warning| warning.kind.is_unsteady())
    }

    /// The first warning that the figures can look better than they are.
    pub fn flattered_by(&self) -> Option<&Warning> {
        self.warnings.iter().find(|warning| warning.kind.flatters())
    }
}

/// Start of the load of a real target, by the clock of the machine that issued it; and the window of several hosts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoadWindow {
    /// Start of the recorded window, which lasts `simulated_seconds`: nanoseconds since 1970-01-01 UTC. For several
    /// hosts, the start of the time in which all hosts were running, by the clock of the controller; 0 if the hosts
    /// simulate, because their time is virtual.
    pub start_unix_ns: u64,
    /// Delay of the last job that begins with the run: from the given start time, or from the start
    /// of the run if no time was given.
    pub late_ns: u64,
    /// End of the window of several hosts; left out for one host and for simulated runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_unix_ns: Option<u64>,
    /// Activity of each of several hosts before and after the window; no figure includes it.
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
    /// Parts of devices that contain other devices; left out without such parts.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub parts: f64,
    /// `total / requests`; `null` without requests.
    pub per_request: Option<f64>,
    /// Energy that the load added: `total` minus the energy of the same device in the same time without requests, with
    /// its slow mode and its low-power states, without background work. Negative only if the file gives a part less
    /// power at work than idle, or awake than asleep.
    pub above_idle: f64,
}

/// Energy of one activity of one kind of part.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct EnergyRow {
    /// Part: `die`, `channel`, `dram`; for a device that consists of other devices, a path: `array.ssd[1].die`.
    pub part: String,
    /// Activity: `program`, `idle`.
    pub activity: String,
    /// Energy.
    pub joules: f64,
    /// Time of the activity, summed over all parts of the kind.
    pub seconds: f64,
}

/// Energy and work of one flash package (a chip with its dies) over `energy_seconds` (S3-6).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PackageEnergy {
    /// Energy, idle and busy.
    pub joules: f64,
    /// Energy while idle or asleep; part of `joules`.
    pub idle_joules: f64,
    /// Pages read, for the host, for cleaning and for the mapping table.
    pub reads: u64,
    /// Pages programmed, for the host, for cleaning and for the mapping table.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Time spent reading. This time and the other times are sums over the dies of the package.
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
    /// Pages read, for the host, for cleaning and for the mapping table.
    pub reads: u64,
    /// Pages programmed, for the host, for cleaning and for the mapping table.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Valid pages moved by cleaning and wear levelling.
    pub relocations: u64,
    /// Pages programmed for the mapping table (`dftl`) and for summaries of blocks
    /// (`ftl.summary_pages`), including table pages that cleaning made out of date.
    #[serde(default)]
    pub mapping_programs: u64,
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
    /// Link to the host: its busier direction.
    pub host_link: Option<f64>,
    /// Device with at least one request inside.
    pub in_service: Option<f64>,
}

/// Busy share of one part.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PartBusy {
    /// Its path: `array.disk[1].spindle`.
    pub part: String,
    /// Share of the time, 0 to 1.
    pub share: f64,
}

/// Overhead of the tool, per recorded request.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OwnCost {
    /// CPU time of the process, user and system.
    pub cpu_ns_per_request: f64,
    /// System calls; `null` if they are not counted.
    pub syscalls_per_request: Option<f64>,
    /// Context switches, voluntary and involuntary; `null` if they are not counted.
    pub context_switches_per_request: Option<f64>,
    /// CPU time in user mode; `null` if unknown, also for less than 0.1 s in total.
    #[serde(default)]
    pub user_cpu_ns_per_request: Option<f64>,
    /// CPU time in the kernel; `null` if unknown.
    #[serde(default)]
    pub system_cpu_ns_per_request: Option<f64>,
    /// CPU time of a request to a target without cost, measured on this machine before the run. If rows go to a file
    /// during the run, it includes the cost of writing a row, measured in the run. `null` for a simulated target. The
    /// Parquet file is written after the run and does not count.
    #[serde(default)]
    pub floor_cpu_ns_per_request: Option<f64>,
}

/// Delay of requests that the tool had to issue at a given time, in nanoseconds. Requests that waited because the
/// maximum number was outstanding are counted separately: the target is the cause.
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
    /// Requests that waited for a free slot.
    pub queued: u64,
}

/// Figures of one interval, by the moment of completion.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeriesPoint {
    /// Start, from the start of the recorded window.
    pub start_seconds: f64,
    /// Length; the last interval ends with the run and may be shorter.
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
    /// Requests completed without error, per second.
    pub iops: f64,
    /// Bytes read and written, per second.
    pub throughput_bytes_per_second: f64,
    /// Mean latency; `null` without completions.
    pub latency_ns_mean: Option<f64>,
    /// Median latency; `null` without completions. Percentiles are within 0.4 %, with rows and without.
    #[serde(default)]
    pub latency_ns_p50: Option<f64>,
    /// 95th percentile.
    #[serde(default)]
    pub latency_ns_p95: Option<f64>,
    /// 99th percentile.
    #[serde(default)]
    pub latency_ns_p99: Option<f64>,
    /// Largest latency; `null` without completions.
    pub latency_ns_max: Option<f64>,
    /// Mean power; `null` without an energy model.
    pub power_watts: Option<Power>,
}

impl SeriesPoint {
    /// Requests completed, of any operation.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.trims + self.flushes
    }
}

/// Mean power over an interval, in watts. The parts sum to the total.
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
    /// Parts of devices that contain other devices; left out without such parts.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub parts: f64,
}

/// Number of requests with a latency from `from_ns` to below `to_ns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBin {
    /// Shortest latency of the bin.
    pub from_ns: u64,
    /// Shortest latency above the bin.
    pub to_ns: u64,
    /// Number of requests.
    pub count: u64,
}

/// Theoretical value of a figure from a closed form.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Expected {
    /// Key of the figure in the result: `write_amplification`.
    pub figure: String,
    /// The theoretical value.
    pub value: f64,
    /// The measured value; `null` if the run could not measure it.
    pub measured: Option<f64>,
    /// Spread by chance in a run of this length: at least 95 of 100 seeds are within this share of their mean. `null`
    /// if unknown.
    pub chance: Option<f64>,
    /// Accuracy of the form itself, as a share of its value: the mean over many seeds is within it. `null` if unknown.
    #[serde(default)]
    pub accuracy: Option<f64>,
    /// The closed form, with its source.
    pub form: String,
    /// Inputs of the form, by name with unit.
    pub inputs: BTreeMap<String, f64>,
}

/// An invariant that must hold, and whether it did.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Invariant {
    /// Name: `littles_law`.
    pub name: String,
    /// Whether the invariant held.
    pub holds: bool,
    /// The numbers behind the check.
    pub detail: String,
}

/// The configuration that repeats the run: device and workload as resolved TOML, with every key.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// The device; empty for a real device.
    pub device_toml: String,
    /// The workload.
    pub workload_toml: String,
}

/// The JSON schema of [`RunResult`] (JSON Schema 2020-12), as published with the program.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(RunResult).to_value()
}
