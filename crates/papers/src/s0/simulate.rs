//! The runs: each point with each seed, side by side on as many threads as there are cores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_device::ring::{DescriptorEngine, RingConfig};
use ssdyno_driver_ring::{BlockPolicy, Options as DriverOptions};
use ssdyno_host::ThreadMode;
use ssdyno_result::{Keep, RunResult};
use ssdyno_rig::{Attach, Flow, HostOptions, HostPlan, Limits, Run, Source};

use super::data::{Case, Plan};
use crate::error::defect;
use crate::mean::Mean;
use crate::{Options, PaperError, Progress, RunSummary};

/// All that was measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// By point: the result with each seed.
    runs: BTreeMap<Case, Vec<(u64, RunResult)>>,
    pub(super) partial: bool,
}

impl Measured {
    /// `figure` of a point, over its seeds.
    fn mean(&self, case: &Case, figure: impl Fn(&RunResult) -> f64) -> Option<Mean> {
        let all: Vec<f64> = self.runs.get(case)?.iter().map(|(_, run)| figure(run)).collect();
        Mean::of(&all)
    }

    /// Requests a second, in thousands.
    pub(super) fn kiops(&self, case: &Case) -> Option<Mean> {
        self.mean(case, |run| run.iops / 1e3)
    }

    /// Mean latency, in us.
    pub(super) fn latency_us(&self, case: &Case) -> Option<Mean> {
        self.mean(case, |run| run.latency_ns.as_ref().map_or(f64::NAN, |l| l.all.mean / 1e3))
    }

    /// Throughput, in MB/s.
    pub(super) fn megabytes(&self, case: &Case) -> Option<Mean> {
        self.mean(case, |run| run.throughput_bytes_per_second / 1e6)
    }

    /// A figure of the host, by request.
    pub(super) fn host(
        &self,
        case: &Case,
        figure: impl Fn(&ssdyno_result::HostResult) -> f64,
    ) -> Option<Mean> {
        self.mean(case, |run| run.host.as_ref().map_or(f64::NAN, &figure))
    }

    /// Every run: point, seed, result.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Case, &RunResult)> {
        self.runs.iter().flat_map(|(case, runs)| runs.iter().map(move |(_, run)| (case, run)))
    }

    /// What a reader is told about the runs.
    pub(super) fn summaries(&self) -> Vec<RunSummary> {
        let mut all = Vec::new();
        for (case, runs) in &self.runs {
            all.extend(runs.iter().map(|(seed, run)| RunSummary::of(case.name(*seed), run)));
        }
        all
    }
}

/// The card of the preset.
pub(super) fn card() -> Result<RingConfig, PaperError> {
    let text = include_str!("../../../../presets/devices/zc706-ring.toml");
    RingConfig::parse(text).map_err(|error| defect("presets/devices/zc706-ring.toml", error))
}

fn load(plan: &Plan, case: &Case, options: &Options) -> ssdyno_workload::Config {
    let all = options.requests.map_or(plan.requests, |most| most.min(plan.requests));
    ssdyno_workload::Config {
        depth: Some(case.threads),
        read_percent: Some(f64::from(case.read_percent)),
        write_percent: Some(f64::from(100 - case.read_percent)),
        block_size: Some(Bytes(u64::from(case.size_kib) * 1024)),
        // Large requests count for as many pages.
        requests: Some((all * 4 / u64::from(case.size_kib)).max(200)),
        ramp_up: (plan.ramp_up * 4 / u64::from(case.size_kib)).max(50),
        ..ssdyno_workload::Config::default()
    }
}

fn planned(plan: &Plan, case: &Case, seed: u64, options: &Options) -> Result<Run, PaperError> {
    let mut card = card()?;
    card.link.generation = case.generation;
    if case.separate_engine {
        card.dma.descriptors = DescriptorEngine::Separate;
    }
    let driver = DriverOptions {
        block: case.block.map_or(BlockPolicy::Dynamic, BlockPolicy::Static),
        response: case.mode,
        completion: case.completion.policy(),
        prefetch: case.prefetch,
        // So that a run ends: see papers/s0/notes.md.
        partial_after: Some(Time::from_us(100)),
        ..DriverOptions::default()
    };
    let file = format!("presets/hosts/{}.toml", plan.host);
    let preset = ssdyno_host::presets::find(&plan.host)
        .ok_or_else(|| defect(&file, "there is no such preset"))?;
    let config = ssdyno_host::Config::parse(preset.text).map_err(|error| defect(&file, error))?;
    let load = load(plan, case, options);
    let how = HostOptions { mode: Some(ThreadMode::Sync), ..HostOptions::default() };
    let host = HostPlan::new(&plan.host, config, &how, Some(&load));
    Ok(Run {
        target: format!("sim:{}", plan.card),
        device: Attach::Ring {
            card: Box::new(card),
            driver: Box::new(driver),
            host: Box::new(host),
        },
        workload: format!("{} threads, {} % reads", case.threads, case.read_percent),
        source: Source::Generator(load),
        seed,
        limits: Limits::default(),
        keep: Keep::Summary,
        interval: None,
    })
}

/// Runs all of `cases` with all seeds.
pub(super) fn simulate_all(
    plan: &Plan,
    cases: &BTreeSet<Case>,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> Flow,
) -> Result<Measured, PaperError> {
    let jobs: Vec<(&Case, u64)> =
        cases.iter().flat_map(|case| plan.seeds.iter().map(move |seed| (case, *seed))).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.unwrap_or(cores).clamp(1, jobs.len().max(1));
    let state = State {
        jobs: &jobs,
        next: AtomicUsize::new(0),
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        results: Mutex::new(Vec::new()),
    };
    let outcome = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| state.work(plan, options))).collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(5));
            let done = state.done.load(Ordering::Relaxed);
            let of = jobs.len() as u64;
            let running = vec![format!("{done} of {of} runs")];
            if progress(&Progress { done, of, running }) == Flow::Stop {
                state.stop.store(true, Ordering::Relaxed);
            }
        }
        let ended = workers.into_iter().map(|worker| worker.join());
        ended.map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let outcome: Result<Vec<()>, PaperError> = outcome;
    outcome?;
    let mut results = state.results.into_inner().unwrap_or_else(|poison| poison.into_inner());
    results.sort_by_key(|(job, _)| *job);
    let mut measured = Measured { partial: results.len() < jobs.len(), ..Measured::default() };
    for (job, result) in results {
        let (case, seed) = jobs[job];
        measured.partial |= result.partial;
        measured.runs.entry(case.clone()).or_default().push((seed, result));
    }
    Ok(measured)
}

struct State<'a> {
    jobs: &'a [(&'a Case, u64)],
    next: AtomicUsize,
    done: AtomicU64,
    stop: AtomicBool,
    results: Mutex<Vec<(usize, RunResult)>>,
}

impl State<'_> {
    /// Takes jobs until none is left.
    fn work(&self, plan: &Plan, options: &Options) -> Result<(), PaperError> {
        loop {
            let job = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((case, seed)) = self.jobs.get(job) else { return Ok(()) };
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            // Seeds of the plan move with that of the command line.
            let run = planned(plan, case, seed.wrapping_add(options.seed), options)?;
            let refused = |problem: String| {
                self.stop.store(true, Ordering::Relaxed);
                PaperError::Refused { run: case.name(*seed), problem }
            };
            let flow = &mut |_: &ssdyno_rig::Progress| {
                if self.stop.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue }
            };
            let measured = run.execute(flow).map_err(|error| refused(error.to_string()))?;
            let broken = measured.result.invariants.iter().find(|law| !law.holds);
            if let (Some(law), false) = (broken, measured.result.partial) {
                return Err(refused(format!("{}: {}", law.name, law.detail)));
            }
            self.done.fetch_add(1, Ordering::Relaxed);
            let mut results = self.results.lock().unwrap_or_else(|poison| poison.into_inner());
            results.push((job, measured.result));
        }
    }
}
