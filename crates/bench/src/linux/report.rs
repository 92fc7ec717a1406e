//! From what happened to a result.

use std::time::Duration;

use ssdyno_block::{Time, counted};
use ssdyno_figures::probe::{MachineActivity, Moved};
use ssdyno_figures::{
    Configuration, Ending, IssueDelay, JobResult, MethodResult, MethodSettings, OwnCost, Precision,
    RunResult, StopReason, Warning, WarningKind, nanoseconds,
};
use ssdyno_prober::{Sources, SystemCounters};
use ssdyno_record::Recording;
use ssdyno_workload::{FioFiles, Source};

use crate::believable::{self, Others};
use crate::cost::Usage;
use crate::delays::Delays;
use crate::engine::uring::Setup;
use crate::error::BenchError;
use crate::faults::Faults;
use crate::method::{ALL, Method};
use crate::plan::{LoadPlan, Means};
use crate::reread::Reread;
use crate::run::BenchRun;
use crate::start::Began;
use crate::target::RealTarget;
use crate::worker::JobReport;

/// Jobs that are on the CPU for this share of the time can hardly do more.
const BUSY: f64 = 0.9;

/// Reads that a device does not count are served by something before it, from this share of their bytes on.
const MISSED: f64 = 0.1;
/// Shares of fewer seconds are mostly the grain of the kernel's clock (10 ms).
const MEANS_SOMETHING: f64 = 0.5;

/// The method of `plan`, which belongs to `run`; the cores of the jobs are known only afterwards.
pub(crate) fn method(run: &BenchRun, plan: &LoadPlan) -> MethodResult {
    let strategies = || plan.jobs.iter().map(|job| job.strategy);
    let complete = strategies().map(|strategy| strategy.complete).max().unwrap_or(1);
    let submit = strategies().map(|strategy| strategy.submit).min().unwrap_or(ALL);
    let is_same = |method: &Method| {
        plan.jobs.iter().all(|job| {
            let named = method.strategy().of_job(job.slots, job.closed);
            let waiting = !plan.means.may_spin() || named.waiting == job.strategy.waiting;
            waiting
                && (named.complete, named.submit) == (job.strategy.complete, job.strategy.submit)
        })
    };
    // Where a part has no meaning, as with one request at a time, the name that was given stands.
    // Several named methods may come to the same for a depth. The one that the user named comes
    // first, and the result then repeats the user's word.
    let named = [run.options.method].into_iter().chain(Method::ALL).find(is_same);
    let (sqpoll, polled) = match plan.means {
        Means::Uring(setup) | Means::Passthrough(setup) => (setup.sqpoll, setup.iopoll),
        _ => (false, false),
    };
    let spins = strategies().any(|strategy| strategy.spins());
    let mut cores: Vec<u32> =
        plan.jobs.iter().flat_map(|job| &job.cores).map(|core| *core as u32).collect();
    cores.sort_unstable();
    cores.dedup();
    let parts = || strategies().next().unwrap_or(run.options.strategy()).settings();
    let by_name = |method: Method| MethodSettings {
        method: Some(method.name().to_owned()),
        ..MethodSettings::default()
    };
    MethodResult {
        name: named.map_or("custom", Method::name).to_owned(),
        engine: plan.means.name().to_owned(),
        wait: if polled {
            "poll"
        } else if spins {
            "spin"
        } else {
            "sleep"
        }
        .to_owned(),
        batch: complete,
        submit: (submit != ALL).then_some(submit),
        jobs: plan.jobs.len() as u32,
        pinned: !cores.is_empty(),
        cores,
        sqpoll,
        settings: named.map_or_else(parts, by_name),
        ..MethodResult::default()
    }
}

/// The problems of the figures that are known beforehand.
pub(crate) fn warnings(run: &BenchRun, target: &RealTarget) -> Vec<Warning> {
    let load = run.source.warnings().into_iter().map(|message| {
        let warning = Warning::new(WarningKind::OtherLoad, message);
        warning.with_help("set direct=0 or direct=1 in the job file")
    });
    load.chain(target.warnings.iter().cloned()).collect()
}

/// Everything a result is made from.
pub(crate) struct Parts<'a> {
    pub(crate) run: &'a BenchRun,
    pub(crate) means: Means,
    pub(crate) method: MethodResult,
    pub(crate) closed: bool,
    /// Requests went through this machine's page cache.
    pub(crate) page_cache: bool,
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<Warning>,
    /// Further ones, which matter to reads alone.
    pub(crate) no_media: &'a [Warning],
    /// The small ranges that were read several times.
    pub(crate) rereads: &'a [Reread],
    /// The parts of the target.
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
    /// The samples of the machine during the run, if it was probed.
    pub(crate) machine: Option<MachineActivity>,
    pub(crate) precision: Option<Precision>,
    /// Told to stop.
    pub(crate) interrupted: bool,
    /// When the run began.
    pub(crate) began: Began,
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
            warnings: self.warnings.clone(),
            jobs: self.jobs.clone(),
            method: Some(self.method()),
            ..RunResult::default()
        };
        recording.fill(&mut result);
        result.notes.extend(self.run.source.note_on_flushes(result.requests_by_op.flush));
        if result.requests_by_op.read > 0 {
            result.warnings.extend(self.no_media.iter().cloned());
        }
        result.notes.extend(self.rereads.iter().map(Reread::note));
        let (window, late) = self.began.window(recording.start(), self.reports);
        result.window = Some(window);
        result.notes.extend(late);
        let searches = self.reports.iter().flat_map(|report| report.depth_searches.iter().cloned());
        result.depth_searches = searches.collect();
        result.until = self.precision;
        result.stopped_because = Some(self.stop_reason());
        self.fill_cost(&mut result);
        self.fill_delays(&mut result);
        self.describe(&mut result);
        self.fill_machine(&mut result);
        self.warn(&mut result);
        let ramp_up = self.run.source.ramp_up_key();
        result.warnings.iter_mut().for_each(|warning| warning.fit_to(ramp_up));
        if let Some(failure) = self.failure {
            result.notes.push(format!("The run ended early: {failure}"));
        }
        // A `null:` target has no limit, so it gets no verdict.
        result.p99_believable = (self.means != Means::Null)
            .then(|| believable::verdict(&result, self.others(), self.rereads))
            .flatten();
        result
    }

    fn stop_reason(&self) -> StopReason {
        let (issued_max, end_max) = self.run.limits.with(self.run.source.bounds());
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
        // Costs are per request. A run without a request has none, and a division by zero would
        // put NaN into the result.
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
        // A closed job of a job file has no lateness. Its requests would hide that of the open jobs.
        let open = self.reports.iter().filter(|report| !report.closed);
        open.for_each(|report| delays.merge(&report.ended.delays));
        if !result.warns_of(WarningKind::Overloaded) {
            let run_ns = result.simulated_seconds * 1e9;
            let overload = delays.overload(run_ns);
            let pauses = self.run.source.pauses();
            result.warnings.extend(overload.map(|one| one.with_pauses(pauses)));
        }
        result.notes.extend(delays.note());
        // In a closed loop a request is meant to start when it does. A lateness of 0 for each of
        // them would look like a measurement.
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
            let (read, counted) = (check.run.read_bytes, check.device.read_bytes);
            // Without any count, or with a page cache before it, the device gives no information on the reads.
            let missing = read.saturating_sub(counted) as f64 / read.max(1) as f64;
            // The warnings about holes and about memory explain the difference already. A second
            // one about the same bytes would look like another fault.
            let told = result
                .warnings
                .iter()
                .any(|one| matches!(one.kind, WarningKind::NoMedia | WarningKind::Memory));
            if missing > MISSED && check.device != Moved::default() && !told {
                let message = format!(
                    "{:.0} % of the bytes read never came from the device: {}",
                    100.0 * missing,
                    check.detail
                );
                result.warnings.push(Warning::new(WarningKind::NoMedia, message));
            } else {
                result.notes.push(format!("the device's own counters differ: {}", check.detail));
            }
        }
        result.machine.clone_from(&self.machine);
        result.warnings.extend(
            self.others()
                .and_then(|others| believable::crowded(self.method.wait == "spin", others)),
        );
    }

    /// The use of the processors by other programs; `None` where that is not known well enough.
    fn others(&self) -> Option<Others> {
        let machine = self.machine.as_ref()?;
        let user = machine.mean(|sample| Some(sample.cpu.as_ref()?.user))?;
        let seconds: f64 = machine.samples.iter().map(|sample| sample.length_seconds).sum();
        // All of them: shares are of the machine, wherever this process may run.
        let processors = SystemCounters::read(&Sources::default()).cores()? as f64;
        // The kernel works for the target, in whatever name; programs in user mode do not. Shares
        // are of the whole machine, so the own share is the user time divided by all processors.
        // The rest in user mode belongs to other programs.
        let own = self.usage.user_ns as f64 / 1e9 / (seconds * processors);
        let stolen = machine.mean(|sample| Some(sample.cpu.as_ref()?.steal));
        (seconds > MEANS_SOMETHING).then_some(Others { share: user - own, processors, stolen })
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
        let (method, jobs) = (self.method(), self.method.jobs);
        if self.means == Means::Null {
            return;
        }
        let jobs = counted(u64::from(jobs), "job", "jobs");
        let stays = self.reports.iter().find_map(|report| report.stayed);
        let stays = stays.map(|core| {
            format!(", which stays on core {core}, so that the kernel threads of the device stay there too")
        });
        let engine = match self.means {
            Means::Null | Means::Threads => "threads (pread and pwrite)".to_owned(),
            Means::Network { protocol, .. } => format!("{protocol} (a connection for each job)"),
            Means::Passthrough(Setup { iopoll, sqpoll, .. }) => format!(
                "io_uring with NVMe passthrough{}{}",
                if iopoll { ", polled completions" } else { "" },
                if sqpoll { ", polled submissions" } else { "" },
            ),
            Means::Uring(Setup { iopoll, sqpoll, nowait }) => format!(
                "io_uring with {}registered files{}{}{}",
                if method.registered_buffers == Some(true) {
                    "registered buffers and "
                } else {
                    ""
                },
                if iopoll { ", polled completions" } else { "" },
                if sqpoll { ", polled submissions" } else { "" },
                if nowait {
                    ", with nowait: requests fail instead of blocking in the kernel"
                } else {
                    ""
                },
            ),
        };
        let complete = match (self.means, method.batch) {
            // A call has one request, and returns with its completion.
            (Means::Threads, _) => String::new(),
            (_, 1) => " until completions arrive; it reaps completions as they arrive".to_owned(),
            (_, n) => format!(" until completions arrive; it reaps {n} completions at a time"),
        };
        let submit = method.submit.map(|n| counted(u64::from(n), "request", "requests"));
        let submit = submit.map(|requests| format!(" and submits {requests} at a time"));
        let wait = match (self.means, method.wait.as_str()) {
            (Means::Threads, _) => "waits in a call for each request",
            (_, "poll") => "polls in the kernel",
            (_, "spin") => "spins",
            _ => "sleeps",
        };
        result.notes.push(format!(
            "method {}: engine {engine}; {jobs}{}; each {wait}{complete}{}",
            method.name,
            stays.unwrap_or_default(),
            submit.unwrap_or_default(),
        ));
    }

    /// How the load was carried, with what is known only now.
    fn method(&self) -> MethodResult {
        let mut method = self.method.clone();
        method.cores.extend(self.reports.iter().filter_map(|r| r.stayed).map(|core| core as u32));
        let registered = || self.reports.iter().filter_map(|report| report.registered);
        method.registered_buffers = registered().next().map(|_| registered().all(|yes| yes));
        method
    }

    fn warn(&self, result: &mut RunResult) {
        let mut faults = Faults::default();
        self.reports.iter().for_each(|report| faults.merge(report.ended.faults.clone()));
        result.notes.extend(faults.notes());
        if self.reports.iter().any(|report| report.registered == Some(false)) {
            result.notes.push(
                "buffers could not be registered: the limit on locked memory (`ulimit -l`) is too low; each request costs more"
                    .to_owned(),
            );
        }
        if self.workers > 0 {
            result.notes.push(format!(
                "io_uring passed requests to {} kernel workers, which costs time and \
                 switches: the file system or the operation blocks; compare with the engine \
                 `threads`",
                self.workers
            ));
        }
        self.warn_of_limit(result);
    }

    /// Whether the tool and not the target was the limit.
    fn warn_of_limit(&self, result: &mut RunResult) {
        let polled = matches!(self.means, Means::Uring(Setup { iopoll: true, .. }));
        let cpu: u64 = self.reports.iter().map(|report| report.usage.cpu_ns()).sum();
        let wall: u128 = self.reports.iter().map(|report| report.wall.as_nanos()).sum();
        // Both sums are over jobs, so the quotient is the mean share of the time that a job was
        // on a CPU. Near one the job has no time left to issue more.
        let busy = cpu as f64 / (wall as f64).max(1.0);
        // An open loop spins for exact starts; a poller polls.
        if !self.closed
            || polled
            || self.method.wait == "spin"
            || self.means == Means::Null
            || busy < BUSY
        {
            return;
        }
        let each = result.own_cost.map_or(0.0, |cost| cost.cpu_ns_per_request);
        let message = format!(
            "the jobs were on the CPU for {:.0} % of the time ({} per request, of which {} are the tool's own): this machine is the limit, not the target",
            100.0 * busy,
            nanoseconds(each),
            nanoseconds(self.floor),
        );
        let warning = Warning::new(WarningKind::Machine, message);
        result.warnings.push(warning.with_help("more jobs may reach more IOPS: raise `--jobs`"));
    }
}
