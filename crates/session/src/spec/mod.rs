//! Everything that decides a run, as one value.

mod check;
mod file;
mod given;
mod with;
pub(crate) mod words;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_bench::{EngineKind, Method};
use ssdyno_block::Time;
use ssdyno_block::units::{Bytes, Span};
use ssdyno_figures::{Keep, Until};
use ssdyno_host::{CompletionWait, ThreadMode};
use ssdyno_workload::{BeyondEnd, Format, ObjectIds, TraceOrigin, TraceTiming};
use toml::Table;

pub use check::is_time_limit;
pub use given::given;
pub use with::keys_in_tables;
pub use words::{Batch, Pin, timing};

use crate::file_mark::FileMark;
use crate::named;
use crate::ring::RingSpec;

/// Version of the shape of [`RunSpec`]. It rises when a key is renamed, removed or changes its meaning; added
/// keys do not raise it.
pub const SPEC_VERSION: u32 = 1;

/// The target where nothing is said.
pub const DEFAULT_TARGET: &str = "sim:nvme-tlc";

/// The host where nothing is said: the first of the presets.
pub const DEFAULT_HOST: &str = "server";

/// A complete description of a run of a simulated or a real target.
///
/// A key that is left out has its default. Paths are relative to the working directory of the program. The spec does
/// not include where results go and how progress is shown.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunSpec {
    /// Version of the format of this object: 1.
    pub version: u32,
    /// The target: `sim:NAME`, `sim:FILE.toml` or `FILE.toml` for a simulated device; a block device, a file,
    /// `nbd://HOST[:PORT][/EXPORT]`, `iscsi://HOST[:PORT]/IQN/LUN` or `null:` for a real target. Default: the file that
    /// a job file names, or `sim:nvme-tlc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// A preset, `FILE.toml`, or a trace. Default: `mixed`; for a device or a file `randread`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// A job file of fio instead of a workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fio: Option<String>,
    /// Random seed. A simulated run with the same seed has the same figures.
    pub seed: u64,
    /// Stop issuing requests at this time of the device. With `fio`, an upper limit for each job.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Issue this many requests, 1 or more, after the ramp-up of a workload that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Stop when the 95 % intervals of mean latency and IOPS are within ± this share of the value, such as `1%`. With a
    /// figure, such as `p99=2%`, only the interval of that figure counts.
    #[serde(with = "words::as_text", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub until: Option<Until>,
    /// Keys of the device, the workload (`workload.KEY`) or the network (`network.KEY`), as `KEY=VALUE`. A later entry
    /// overrides an earlier entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The data that the run keeps for each request. It decides how exact percentiles are.
    #[serde(skip_serializing_if = "is_default")]
    pub keep: Keep,
    /// Length of one interval of the series; 0 for a single interval. Default: depends on the length of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// Split the latency of requests to a simulated SSD into its parts (`latency_parts_ns`): waiting, firmware, link,
    /// channel, die, and the work that kept the die busy. The figures stay the same; the run takes longer.
    #[serde(skip_serializing_if = "is_default")]
    pub why: bool,
    /// How a trace is read and replayed.
    #[serde(skip_serializing_if = "is_default")]
    pub trace: TraceSpec,
    /// The host between the workload and a simulated device.
    #[serde(skip_serializing_if = "is_default")]
    pub host: HostSpec,
    /// How the run loads a real target.
    #[serde(skip_serializing_if = "is_default")]
    pub real: RealSpec,
    /// Permissions to write to a real target.
    #[serde(skip_serializing_if = "is_default")]
    pub write: WriteSpec,
    /// The contents of the files and presets that the spec names. If contents are here, the run does not read the file
    /// or the preset, so that a later change to the file has no effect.
    #[serde(skip_serializing_if = "is_default")]
    pub contents: FileContents,
}

/// How a trace is read and replayed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TraceSpec {
    /// The format. Default: detected from the content.
    #[serde(with = "words::as_text", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub format: Option<Format>,
    /// When requests start: `original`, `scaled=FACTOR` (0.5 is twice as fast), or `fast` (as soon as fewer than
    /// `depth` are outstanding). Default: `original`.
    #[serde(with = "words::timing_text", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub timing: Option<TraceTiming>,
    /// The time in the trace that becomes time 0 of the run. Default: `first`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<TraceOrigin>,
    /// Maximum number of requests outstanding, 1 or more. Default: no limit; 32 with `fast`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Replay only the requests of these devices (disks, volumes) of the trace. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<String>,
    /// Size of the range that each device of the trace gets; the ranges follow one another. Default: all devices at
    /// the same addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<Bytes>,
    /// The meaning of the objects in libCacheSim traces. Default: `sector`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<ObjectIds>,
    /// The columns of a CSV trace without a header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<String>,
    /// How to handle requests beyond the end of the target. Default: `fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond_end: Option<BeyondEnd>,
}

/// The host between the workload and a simulated device.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HostSpec {
    /// The driver. Default: `nvme` for a device with a table `nvme`, `ring` for a ring card, `network` with a network,
    /// `direct` for other devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverSpec>,
    /// The machine: a preset or `FILE.toml`. Default: `server`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of host cores that take part, 1 or more. Default: all cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u16>,
    /// A network before the device: a preset or `FILE.toml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// How NVMe commands are distributed over queues. Default: `per-core`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<Queues>,
    /// The layer between a process and the driver. Default: `block`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackKind>,
    /// How threads issue requests. Default: the setting in the host file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<ThreadMode>,
    /// How threads wait for completions. Default: `interrupt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionWait>,
    /// Ring a doorbell for each command and completion, or once for a batch. Default: for each command, and once for a
    /// batch of completions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doorbell: Option<Doorbell>,
    /// Priority classes of the threads in turn, 0 (served first) to 3.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<u8>,
    /// NVMe power state that the driver sets as it starts, 0 to 31. Default: none set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_state: Option<u8>,
    /// Namespaces of an NVMe device, from 1: one, for all threads, or one for each thread in turn. Default: 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<u32>,
    /// Timeout of the NVMe driver for a completion, 1 ms to 1 h. Default: 30 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Span>,
    /// How often the driver retries a failed NVMe command, at most 1000. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Settings of the ring driver, such as `block=16,completion=napi:64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring: Option<RingSpec>,
}

/// How the run loads a real target.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RealSpec {
    /// The engine that issues requests. Default: `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineKind>,
    /// Poll the device for completions instead of waiting for interrupts.
    #[serde(skip_serializing_if = "is_default")]
    pub iopoll: bool,
    /// Use a kernel thread for submissions.
    #[serde(skip_serializing_if = "is_default")]
    pub sqpoll: bool,
    /// Use the page cache of this machine; the run first drops the target's pages from it (fio: direct=0).
    #[serde(skip_serializing_if = "is_default")]
    pub buffered: bool,
    /// Threads that share the load, 1 or more. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// Cores to which jobs are bound, in turn, or `none` to let the system choose. Default: `none`. Exception: on a
    /// loop device a single job that sleeps stays on the core where it starts, if its depth is above 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// How requests are passed to the kernel and reaped. Default: `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// Number of completions for which a closed loop waits at a time, or `all`. Default: depends on the method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
    /// Maximum number of requests per submit call, or `all` (fio: iodepth_batch). Default: depends on the method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submit: Option<Batch>,
    /// How jobs wait for completions. Default: depends on the method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<ssdyno_bench::ReapWait>,
    /// Time without a completion after which the target is treated as hung. Default: 30 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Do not sample the machine during the run.
    #[serde(skip_serializing_if = "is_default")]
    pub no_probes: bool,
    /// Sampling interval of the machine. Default: 100 ms, or longer if that interval costs too much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_interval: Option<Span>,
    /// Search for the fastest method first, and use it. The spec in the result contains the method that the search
    /// found.
    #[serde(skip_serializing_if = "is_default")]
    pub tune: bool,
}

/// Permissions to write to a real target.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WriteSpec {
    /// Allow writing. Without it a real target is opened read-only.
    #[serde(skip_serializing_if = "is_default")]
    pub allowed: bool,
    /// Serial numbers of the devices whose contents the run may destroy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destroy: Vec<String>,
    /// Allow overwriting an existing file that ssdyno did not create.
    #[serde(skip_serializing_if = "is_default")]
    pub overwrite: bool,
    /// Create the target, a file, with this size if it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
}

/// The contents of the files and presets that a spec names.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileContents {
    /// The device file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::kinds::AnyDevice>")]
    pub device: Option<Table>,
    /// The workload file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ssdyno_workload::WorkloadConfig>")]
    pub workload: Option<Table>,
    /// The host file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ssdyno_host::HostConfig>")]
    pub host: Option<Table>,
    /// The network file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ssdyno_rig::NetworkConfig>")]
    pub network: Option<Table>,
    /// Checksums of the traces and job files, whose contents are not included. A repetition refuses files with other
    /// checksums.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileMark>,
}

ssdyno_block::named! {
    /// The driver of a simulated device.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum DriverSpec: name {
        /// No driver: the workload goes directly to the device.
        Direct = "direct",
        /// A plain adapter: a register write for each command, an interrupt for each completion.
        Adapter = "adapter",
        /// A network, and a storage server with the device.
        Network = "network",
        /// The NVMe driver.
        Nvme = "nvme",
        /// The driver of the ring card.
        Ring = "ring",
    }
}

/// How NVMe commands are distributed over queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Queues {
    /// Every core uses all queues in turn; each queue has a lock.
    RoundRobin,
    /// As `round-robin`, with the mistakes of the printed code.
    RoundRobinAsPrinted,
    /// One queue for each core.
    PerCore,
    /// Several queues for each core, in turn.
    PerCorePool,
    /// One queue with a lock, and at most 128 commands (MFI).
    Single,
    /// Two queues for each priority class, served 32:16:8 after the urgent class.
    Weighted,
    /// 8, 4, 2 and 1 queues for the priority classes.
    MoreQueues,
}

/// The layer between a process and the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StackKind {
    /// The block layer alone.
    Block,
    /// SCSI below the block layer: each request becomes a SCSI command and is translated.
    Scsi,
}

/// When the driver rings doorbells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Doorbell {
    /// For each command and each completion.
    Each,
    /// Once for a batch.
    Batch,
}

impl Default for RunSpec {
    fn default() -> RunSpec {
        RunSpec {
            version: SPEC_VERSION,
            target: None,
            workload: None,
            fio: None,
            seed: 1,
            duration: None,
            requests: None,
            until: None,
            set: Vec::new(),
            keep: Keep::All,
            interval: None,
            why: false,
            trace: TraceSpec::default(),
            host: HostSpec::default(),
            real: RealSpec::default(),
            write: WriteSpec::default(),
            contents: FileContents::default(),
        }
    }
}

impl RunSpec {
    /// What to load, as far as no job file says it.
    pub fn target(&self) -> &str {
        self.target.as_deref().unwrap_or(DEFAULT_TARGET)
    }

    /// The name of the load of `target`: that of the job file, of the workload that was asked for, or of a
    /// default that the target permits.
    pub fn load(&self, target: &str) -> &str {
        let named = self.fio.as_deref().or(self.workload.as_deref());
        named.unwrap_or(if is_written_to(target) { "mixed" } else { "randread" })
    }

    /// With the names of `target` and of the load that it gets, and the origin of time of a trace: who reads
    /// them should not need to know the rule.
    #[must_use]
    pub fn with_names(&self, target: &str) -> RunSpec {
        let mut spec = RunSpec { target: Some(target.to_owned()), ..self.clone() };
        if spec.fio.is_none() {
            let load = spec.load(target).to_owned();
            if spec.contents.workload.is_none() && named::is_trace(&load) {
                spec.trace.origin.get_or_insert_default();
            }
            spec.workload = Some(load);
        }
        spec
    }

    /// The same way to `target` and the same permissions, for a `measurement` of many loads with up to `depth` requests
    /// outstanding.
    #[must_use]
    pub fn of_many_loads(&self, target: &str, measurement: &str, depth: u32, seed: u64) -> RunSpec {
        // The number of outstanding requests decides how many threads the host has. The target is
        // opened once for all loads, so the number is told here.
        let load = [("depth".to_owned(), i64::from(depth).into())];
        let workload = Some(load.into_iter().collect());
        RunSpec {
            target: Some(target.to_owned()),
            workload: Some(measurement.to_owned()),
            seed,
            set: self.set.clone(),
            keep: Keep::Summary,
            host: self.host.clone(),
            real: self.real.clone(),
            write: self.write.clone(),
            contents: FileContents { workload, ..self.contents.clone() },
            ..RunSpec::default()
        }
    }

    /// With the same default workload for all `targets`: they are to be compared.
    #[must_use]
    pub fn for_all<'a>(mut self, targets: impl IntoIterator<Item = &'a String>) -> RunSpec {
        if self.fio.is_none() && !targets.into_iter().all(|target| is_written_to(target)) {
            self.workload.get_or_insert_with(|| "randread".to_owned());
        }
        self
    }

    /// Whether `target`, which it loads, is a real one.
    pub(crate) fn is_real(&self, target: &str) -> bool {
        self.contents.device.is_none() && named::is_real(target)
    }
}

/// Length of the points of the series: at nothing one that no run fills (S4-15).
pub(crate) fn series_interval(spec: &RunSpec) -> Option<Time> {
    const WHOLE_RUN: Time = Time::from_s(10_000_000);
    let interval = spec.interval?.0;
    Some(if interval == Time::ZERO { WHOLE_RUN } else { interval })
}

/// Whether writing to `target` is harmless.
fn is_written_to(target: &str) -> bool {
    !named::is_real(target) || target == ssdyno_bench::NULL
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_loaded_by_default_are_the_first_presets() {
        assert_eq!(DEFAULT_TARGET, format!("sim:{}", ssdyno_ssd::presets::SSDS[0].name));
        assert_eq!(DEFAULT_HOST, ssdyno_host::presets::ALL[0].name);
    }

    #[test]
    fn names_are_written_out() {
        let spec = RunSpec::default().with_names("./disk");
        assert_eq!((spec.target.as_deref(), spec.load("./disk")), (Some("./disk"), "randread"));
        assert_eq!(RunSpec::default().with_names("sim:x").workload.as_deref(), Some("mixed"));
        let trace = RunSpec { workload: Some("a.csv".to_owned()), ..RunSpec::default() };
        assert_eq!(trace.with_names("sim:x").trace.origin, Some(TraceOrigin::First));
        let all = ["sim:x".to_owned(), "./disk".to_owned()];
        assert_eq!(RunSpec::default().for_all(&all).load("sim:x"), "randread");
        assert_eq!(RunSpec::default().for_all(&all[..1]).load("sim:x"), "mixed");
    }
}
