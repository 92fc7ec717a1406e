//! From what happened to a result.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use procfs::CurrentSI as _;
use ssdyno_block::Time;
use ssdyno_result::probe::Machine;
use ssdyno_result::{
    Configuration, Ending, IssueDelay, JobResult, Keep, OwnCost, Precision, Recording, RunResult,
    StopReason, Tape, nanoseconds,
};
use ssdyno_rig::Source;
use ssdyno_workload::{Config, DeviceFacts, FioFiles};

use crate::cost::{Usage, thread_cpu_ns};
use crate::delays::Delays;
use crate::engine::null::Null;
use crate::engine::uring::Setup;
use crate::error::BenchError;
use crate::faults::Faults;
use crate::job::{Job, drive};
use crate::options::{Batch, Waiting, Way};
use crate::plan::Means;
use crate::run::Run;
use crate::settle::Home;
use crate::share;
use crate::worker::JobReport;

/// Requests from which the floor is found: one or two milliseconds, which is part of what a run costs.
const FLOOR_REQUESTS: u64 = 32_768;

/// Jobs that are on the CPU for this share of the time can hardly do more.
const BUSY: f64 = 0.9;

/// Other programs that take more than this share of the processors are felt.
const CROWDED: f64 = 0.1;
/// Shares of fewer seconds are mostly the grain of the kernel's clock (10 ms).
const MEANS_SOMETHING: f64 = 0.5;

/// What one request costs where the target costs nothing: CPU time in ns of a short run of the
/// same load against `null:` (S4-45).
pub(crate) fn floor_ns(source: &Source, keep: Keep) -> Result<f64, BenchError> {
    let depth = match source {
        Source::Generator(config) if share::is_closed(config) => share::outstanding(config),
        _ => Some(32),
    };
    let depth = depth.unwrap_or(1).clamp(1, 1_024) as u32;
    // The mix costs next to nothing; depth decides, because the clock is read once a batch.
    let config = Config { depth: Some(depth), requests: Some(FLOOR_REQUESTS), ..Config::default() };
    let facts = DeviceFacts { capacity_bytes: 1 << 40, sector_bytes: 512 };
    let workload = config.build(&facts, 1)?;
    let tape = Arc::new(Mutex::new(Some(Tape::new(keep, None, false))));
    let alone = Job::alone(workload, depth, Way::of(Batch::AT_ONCE), tape);
    let mut job = Job { requests_max: FLOOR_REQUESTS, ..alone };
    let before = thread_cpu_ns();
    let ended = drive(&mut job, &mut Null::default());
    let used = thread_cpu_ns().saturating_sub(before);
    Ok(used as f64 / ended.issued.max(1) as f64)
}

/// Everything a result is made from.
pub(crate) struct Parts<'a> {
    pub(crate) run: &'a Run,
    pub(crate) means: Means,
    pub(crate) closed: bool,
    /// Requests went through this machine's page cache.
    pub(crate) page_cache: bool,
    pub(crate) notes: Vec<String>,
    /// What makes up the target.
    pub(crate) files: FioFiles,
    /// What is reported apart.
    pub(crate) jobs: Vec<JobResult>,
    pub(crate) reports: &'a [JobReport],
    /// Of the process, while the jobs ran.
    pub(crate) usage: Usage,
    pub(crate) wall: Duration,
    /// CPU time in ns of a request that costs nothing.
    pub(crate) floor: f64,
    /// Threads that the kernel made for our requests.
    pub(crate) workers: usize,
    pub(crate) failure: Option<&'a BenchError>,
    /// What the machine did meanwhile, if it was probed.
    pub(crate) machine: Option<Machine>,
    pub(crate) precision: Option<Precision>,
    /// Told to stop.
    pub(crate) interrupted: bool,
}

impl Parts<'_> {
    /// All figures.
    pub(crate) fn result(self, recording: &mut Recording) -> RunResult {
        let mut result = RunResult {
            target: self.run.name(),
            workload: self.run.workload.clone(),
            page_cache: (self.means != Means::Null).then_some(self.page_cache),
            seed: (!matches!(self.run.source, Source::Trace { .. })).then_some(self.run.seed),
            partial: self.failure.is_some(),
            wall_seconds: self.wall.as_secs_f64(),
            configuration: Some(self.configuration()),
            notes: self.notes.clone(),
            jobs: self.jobs.clone(),
            ..RunResult::default()
        };
        recording.fill(&mut result);
        result.until = self.precision;
        result.stopped_because = Some(self.stop_reason());
        self.fill_cost(&mut result);
        self.fill_delays(&mut result);
        self.describe(&mut result);
        self.fill_machine(&mut result);
        self.warn(&mut result);
        if let Some(failure) = self.failure {
            result.notes.push(format!("The run ended early: {failure}"));
        }
        result
    }

    fn stop_reason(&self) -> StopReason {
        let (issued_max, end_max) = self.run.source.bounds(&self.run.limits);
        let ends = self.reports.iter().map(|report| report.ended.end_ns);
        let ending = Ending {
            interrupted: self.interrupted,
            out_of_memory: matches!(self.failure, Some(BenchError::Memory)),
            failed: self.failure.is_some(),
            precise: self.precision.is_some_and(|precision| precision.reached),
            issued: self.reports.iter().map(|report| report.ended.issued).sum(),
            issued_max,
            end: Time::from_ns(ends.max().unwrap_or(0)),
            end_max,
        };
        ending.reason()
    }

    fn configuration(&self) -> Configuration {
        let workload_toml = self.run.source.to_toml(&self.files, self.run.seed);
        Configuration { workload_toml, ..Configuration::default() }
    }

    fn fill_cost(&self, result: &mut RunResult) {
        let issued: u64 = self.reports.iter().map(|report| report.ended.issued).sum();
        if issued == 0 {
            return;
        }
        let per_request = |amount: u64| amount as f64 / issued as f64;
        let calls: u64 = self.reports.iter().map(|report| report.system_calls).sum();
        let (user, system) = self.usage.parts().unzip();
        result.own_cost = Some(OwnCost {
            cpu_ns_per_request: per_request(self.usage.cpu_ns()),
            syscalls_per_request: Some(per_request(calls)),
            context_switches_per_request: Some(per_request(self.usage.switches)),
            user_cpu_ns_per_request: user.map(per_request),
            system_cpu_ns_per_request: system.map(per_request),
            floor_cpu_ns_per_request: Some(self.floor),
        });
    }

    fn fill_delays(&self, result: &mut RunResult) {
        let mut delays = Delays::default();
        self.reports.iter().for_each(|report| delays.merge(&report.ended.delays));
        result.notes.extend(delays.note());
        result.issue_delay_ns = (!self.closed).then(|| IssueDelay {
            p50: delays.ours_ns_at(0.5),
            p99: delays.ours_ns_at(0.99),
            p99_9: delays.ours_ns_at(0.999),
            max: delays.ours_ns_max(),
            queued: delays.queued(),
        });
    }

    fn fill_machine(&self, result: &mut RunResult) {
        let check = self.machine.as_ref().and_then(|machine| machine.device_check.as_ref());
        if let Some(check) = check.filter(|check| !check.agrees) {
            result.notes.push(format!("the device's own counters differ: {}", check.detail));
        }
        result.machine.clone_from(&self.machine);
        result.notes.extend(self.others());
    }

    /// What other programs took of the processors, where that is enough to move the figures.
    fn others(&self) -> Option<String> {
        let samples = &self.machine.as_ref()?.samples;
        let busy: f64 = samples
            .iter()
            .filter_map(|sample| Some(sample.cpu.as_ref()?.user * sample.length_seconds))
            .sum();
        let seconds: f64 = samples.iter().map(|sample| sample.length_seconds).sum();
        // All of them: shares are of the machine, wherever this process may run.
        let processors = procfs::KernelStats::current().ok()?.cpu_time.len() as f64;
        let own = self.usage.user_ns as f64 / 1e9;
        // The kernel works for the target, in whatever name; programs in user mode do not.
        let others = (busy * processors - own) / (seconds * processors);
        (seconds > MEANS_SOMETHING && others > CROWDED).then(|| {
            format!(
                "other programs took {:.0} % of this machine's processors meanwhile: the figures are of \
                 both, and move with them",
                100.0 * others
            )
        })
    }

    /// Says how the load was carried.
    fn describe(&self, result: &mut RunResult) {
        let mut noted: Vec<&String> = Vec::new();
        for note in self.reports.iter().flat_map(|report| &report.notes) {
            if !noted.contains(&note) {
                noted.push(note);
            }
        }
        result.notes.extend(noted.into_iter().cloned());
        let jobs = match self.reports.len() {
            1 => "1 job".to_owned(),
            n => format!("{n} jobs"),
        };
        let jobs = match self.reports.iter().find_map(|report| report.home.as_ref()) {
            Some(home) => format!("{jobs} that {}", home.text()),
            None => jobs,
        };
        let ways =
            || self.reports.iter().filter(|report| report.batched).map(|report| report.choice.way);
        let batches = ways().map(|way| way.batch.complete);
        let engine = match self.means {
            Means::Null => return,
            Means::Threads => {
                let spin = self.run.options.waiting == Waiting::Spin;
                let idle =
                    if spin { ", each waiting in its own call, so that none spins" } else { "" };
                format!("engine threads: pread and pwrite, {jobs}{idle}")
            }
            Means::Passthrough(Setup { iopoll, sqpoll, .. }) => format!(
                "engine io_uring: NVMe passthrough{}{}, {jobs}",
                if iopoll { ", polled completions" } else { "" },
                if sqpoll { ", polled submissions" } else { "" },
            ),
            Means::Uring(setup) => {
                let Setup { iopoll, sqpoll, nowait } = setup;
                let unregistered = self.reports.iter().any(|r| r.registered == Some(false));
                format!(
                    "engine io_uring: {}registered files{}{}{}, {jobs}",
                    if unregistered { "" } else { "registered buffers and " },
                    if iopoll { ", polled completions" } else { "" },
                    if sqpoll { ", polled submissions" } else { "" },
                    if nowait { ", failing rather than waiting in the kernel" } else { "" },
                )
            }
        };
        let batch = match (batches.clone().min(), batches.max()) {
            (Some(least), Some(most)) if least != most => {
                format!(", batches of {least} to {most} completions")
            }
            (Some(batch), _) => format!(", batches of {batch} completions"),
            _ => String::new(),
        };
        let pieces = ways().map(|way| way.batch.submit).min();
        let pieces = pieces.filter(|submit| *submit < u32::MAX);
        let pieces = pieces.map(|submit| format!(", {submit} requests handed over at a time"));
        let pieces = pieces.unwrap_or_default();
        let awake = if self.spins() { ", spinning rather than sleeping" } else { "" };
        let why = self.reports.iter().find_map(|report| report.choice.text());
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        result.notes.push(format!("{engine}{batch}{pieces}{awake}{why}"));
    }

    fn warn(&self, result: &mut RunResult) {
        let mut faults = Faults::default();
        self.reports.iter().for_each(|report| faults.merge(report.ended.faults.clone()));
        result.notes.extend(faults.notes());
        let homes = self.reports.iter().filter_map(|report| report.home.as_ref());
        result.notes.extend(homes.filter_map(Home::afterwards));
        if self.reports.iter().any(|report| report.registered == Some(false)) {
            result.notes.push(
                "buffers could not be registered: too little memory may be locked (`ulimit -l`); \
                 each request costs more"
                    .to_owned(),
            );
        }
        if self.workers > 0 {
            result.notes.push(format!(
                "io_uring handed requests to {} workers of the kernel, which costs time and \
                 switches: the file system or the operation blocks; compare with the engine \
                 `threads`",
                self.workers
            ));
        }
        self.warn_of_limit(result);
    }

    /// Whether jobs look for completions all the time.
    fn spins(&self) -> bool {
        let uring = matches!(self.means, Means::Uring(_));
        uring && self.reports.iter().any(|report| report.choice.way.awake)
    }

    /// Whether the tool and not the target was the limit.
    fn warn_of_limit(&self, result: &mut RunResult) {
        let polled = matches!(self.means, Means::Uring(Setup { iopoll: true, .. }));
        let cpu: u64 = self.reports.iter().map(|report| report.usage.cpu_ns()).sum();
        let wall: u128 = self.reports.iter().map(|report| report.wall.as_nanos()).sum();
        let busy = cpu as f64 / (wall as f64).max(1.0);
        // An open loop spins for exact starts; a poller polls.
        if !self.closed || polled || self.spins() || self.means == Means::Null || busy < BUSY {
            return;
        }
        let each = result.own_cost.map_or(0.0, |cost| cost.cpu_ns_per_request);
        result.notes.push(format!(
            "the jobs were on the CPU for {:.0} % of the time ({} a request, of which {} are the \
             tool's own): this side is the limit, not the target; more jobs may reach more",
            100.0 * busy,
            nanoseconds(each),
            nanoseconds(self.floor),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_found() {
        let source = Source::Generator(Config::default());
        let floor = floor_ns(&source, Keep::All).unwrap();
        assert!(floor > 1.0 && floor < 100_000.0, "{floor} ns");
    }
}
