//! The runs: each a device under a load, side by side on as many threads as there are cores.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ssdyno_block::{BlockTarget, Time};
use ssdyno_device::DeviceReport;
use ssdyno_energy::{Breakdown, DeviceMeter, Meter, PowerModel};
use ssdyno_engine::events::{Activity, Busy, EventReader, FlashCause};
use ssdyno_figures::Keep;
use ssdyno_record::Recorder;
use ssdyno_rig::{Drive, KeepGoing, RunLimits, drive};
use ssdyno_session::named::workload_failure;
use ssdyno_session::{Failure, FailureKind, StopFlag, side_by_side};
use ssdyno_ssd::Ssd;
use ssdyno_workload::{TraceOptions, TraceOrigin, Workload, open_trace};

use super::data::RunPlan;
use super::load::Load;
use crate::assumptions::Changes;
use crate::error::{defect, refused};
use crate::{PapersOptions, PapersProgress, RunSummary, presets};

/// What a run gave.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) load: Load,
    /// The run's length: the arrival of its last request (S3-24).
    pub(super) seconds: f64,
    pub(super) summary: RunSummary,
    pub(super) energy: Breakdown,
    /// Raw bytes of the flash.
    pub(super) raw_bytes: u64,
}

impl Measured {
    pub(super) fn programs(&self, cause: FlashCause) -> u64 {
        self.energy.flash_operations.get(Activity::Program, cause)
    }

    pub(super) fn busy_seconds(&self) -> f64 {
        self.energy.busy.in_service
    }
}

/// Shows its reader only what lies before the end of the run; operations that began before it
/// count.
struct Clip<'a> {
    end: Time,
    inner: &'a mut dyn EventReader,
    kept: Vec<Busy>,
}

impl EventReader for Clip<'_> {
    fn read(&mut self, events: &[Busy]) {
        self.kept.clear();
        // S3-24: the printed time ends with the last arrival, and energy is counted until then.
        // Operations that began before are cut at the end; leaving them out would lose up to 20
        // outstanding requests.
        let begun = events.iter().filter(|event| event.from < self.end);
        self.kept.extend(begun.map(|event| Busy { to: event.to.min(self.end), ..*event }));
        self.inner.read(&self.kept);
    }
}

/// The load of `plan` for a device of `capacity_bytes`.
fn workload(
    plan: &RunPlan,
    options: &PapersOptions,
    facts: &ssdyno_workload::TargetFacts,
) -> Result<Box<dyn Workload + Send>, Failure> {
    let wrong = |error| workload_failure(FailureKind::Usage, &error, None);
    if let Some(path) = plan.trace.as_deref().and_then(|trace| options.trace(trace)) {
        // The paper's running times count from the trace's own 0 (S3-24).
        let origin = TraceOrigin::Absolute;
        let how = TraceOptions { requests: options.requests, origin, ..TraceOptions::default() };
        return open_trace(&path, &how, facts).map_err(wrong);
    }
    let preset = plan.workload.as_deref().unwrap_or_default();
    let text = ssdyno_workload::presets::text(preset)
        .ok_or_else(|| defect("papers/s3/plan.toml", format!("no workload `{preset}`")))?;
    let mut config = ssdyno_workload::WorkloadConfig::from_toml(text)
        .map_err(|error| defect(&format!("presets/workloads/{preset}.toml"), error))?;
    if let Some(most) = options.requests {
        config.requests = Some(config.requests.map_or(most, |requests| requests.min(most)));
    }
    config.build(facts, options.seed).map_err(wrong)
}

fn target_facts(device: &Ssd) -> ssdyno_workload::TargetFacts {
    ssdyno_workload::TargetFacts {
        capacity_bytes: device.capacity_bytes(),
        sector_bytes: device.sector_bytes(),
    }
}

/// One run. `report` hears how many requests have completed of how many, and may stop it.
fn simulate(
    name: &str,
    plan: &RunPlan,
    options: &PapersOptions,
    changes: Changes<'_>,
    report: &mut dyn FnMut(u64, u64) -> KeepGoing,
) -> Result<Measured, Failure> {
    let preset = presets::device(&plan.device)?;
    let file = &preset.file;
    let text = changes.applied(file, "device", preset.text)?;
    let config = ssdyno_ssd::Config::parse(&text).map_err(|error| defect(file, error))?;
    let mut device = Ssd::new(&config, options.seed).map_err(|error| defect(file, error))?;
    let said = DeviceReport::of(&device);
    let (Some(unit), Some(facts)) = (said.whole(), said.flash()) else {
        return Err(defect(file, "it has no flash"));
    };
    let target = target_facts(&device);
    let mut walk = workload(plan, options, &target)?;
    // The load is walked through once without a device: the time of the last arrival must be known
    // before the meter can cut at it.
    let load = Load::survey(walk.as_mut(), facts.page_bytes, facts.dies);
    if let Some(error) = walk.error() {
        return Err(workload_failure(FailureKind::Usage, &error, None));
    }
    // A workload cannot be rewound. It is pure and seeded, so a second one gives the same requests.
    // Storing five million requests of 16 bytes would need 80 MB per run.
    let mut load_again = workload(plan, options, &target)?;
    let PowerModel::Controller { config: powers, facts: parts } = &unit.power else {
        return Err(defect(file, "it has no controller"));
    };
    let mut meter = Meter::new(powers, parts).map_err(|error| defect(file, error))?;
    // The loop's own meter runs on until the last request is answered; its account is not used.
    let mut whole = DeviceMeter::from(meter.clone());
    let mut clip = Clip { end: load.last_arrival, inner: &mut meter, kept: Vec::new() };
    let mut recorder = Recorder::new(Keep::Summary, None);
    let ended = drive(
        Drive {
            device: &mut device,
            workload: load_again.as_mut(),
            recorder: &mut recorder,
            meter: &mut whole,
            readers: &mut [&mut clip],
            streams: None,
            explain: None,
            limits: RunLimits::default(),
            start: Time::ZERO,
        },
        &mut |progress| report(progress.completed, load.requests),
    );
    if let Some((request, error)) = ended.refused {
        return Err(refused(name, format!("{request:?} was refused: {error}")));
    }
    let end = if ended.stopped { ended.last_completion } else { load.last_arrival };
    // A run that is stopped ends with its last completion. The rest of the printed time has no
    // energy, so power and rates stay comparable.
    let end = end.min(load.last_arrival);
    let energy = meter.finish(end);
    let latency_ms = recorder.latency_ps_sum() as f64 / recorder.recorded().max(1) as f64 / 1e9;
    let recording = recorder.finish(ended.settled);
    let wait_ms = recording.outside_wait_ns_mean().unwrap_or(0.0) / 1e6;
    let flash = config.flash.geometry().map_err(|error| defect(file, error))?;
    let base = RunSummary {
        name: name.to_owned(),
        device: plan.device.clone(),
        workload: plan.load_name().to_owned(),
        requests: recording.requests(),
        simulated_seconds: end.as_s_f64(),
        wall_seconds: ended.wall.as_secs_f64(),
        // S3-37: the printed latency begins when the device accepts the request, with 20
        // outstanding. The wait in the driver before is a figure of its own: 62.6 and 123.9 ms for
        // IOzone on NAND 1.
        device_latency_ms: latency_ms - wait_ms,
        latency_ms,
        partial: ended.stopped,
        ..RunSummary::default()
    };
    let summary = summarise(base, &energy);
    Ok(Measured {
        load,
        seconds: end.as_s_f64(),
        summary,
        energy,
        raw_bytes: flash.capacity_bytes(),
    })
}

/// Adds to `base` what the meter found.
fn summarise(base: RunSummary, energy: &Breakdown) -> RunSummary {
    let operations = &energy.flash_operations;
    // Copy-back moves a page with a read and a program. The reads are counted, because each moved
    // page is read exactly once.
    let relocations = operations.get(Activity::Read, FlashCause::Cleaning);
    let host = operations.get(Activity::Program, FlashCause::Host);
    RunSummary {
        busy_share: energy.busy.in_service / base.simulated_seconds.max(f64::MIN_POSITIVE),
        erases: operations.total(Activity::Erase),
        relocations,
        write_amplification: (host > 0).then(|| (host + relocations) as f64 / host as f64),
        above_idle_joules: energy.above_idle_joules,
        joules_per_request: energy.total_joules / base.requests.max(1) as f64,
        ..base
    }
}

/// How far a run is.
#[derive(Default)]
struct RunProgress {
    done: AtomicU64,
    of: AtomicU64,
    is_running: AtomicBool,
}

/// Runs all of `plans`, with `changes` to the presets.
pub(super) fn simulate_all(
    plans: &[(&str, &RunPlan)],
    options: &PapersOptions,
    changes: Changes<'_>,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<BTreeMap<String, Measured>, Failure> {
    let jobs: Vec<(&str, &RunPlan, RunProgress)> =
        plans.iter().map(|(name, plan)| (*name, *plan, RunProgress::default())).collect();
    let run = |(name, plan, under): &(&str, &RunPlan, RunProgress), stop: &StopFlag| {
        under.is_running.store(true, Ordering::Relaxed);
        let measured = simulate(name, plan, options, changes, &mut |done, of| {
            under.done.store(done, Ordering::Relaxed);
            under.of.store(of, Ordering::Relaxed);
            stop.flow()
        });
        under.is_running.store(false, Ordering::Relaxed);
        // A finished run counts as complete even if its last report came earlier. Otherwise the
        // total would stay a few thousand requests below its end.
        under.done.store(under.of.load(Ordering::Relaxed), Ordering::Relaxed);
        measured
    };
    let measured = side_by_side(&jobs, options.threads, run, &mut |_| {
        let sum = |part: fn(&RunProgress) -> &AtomicU64| {
            jobs.iter().map(|(_, _, under)| part(under).load(Ordering::Relaxed)).sum()
        };
        let running = jobs.iter().filter(|(.., under)| under.is_running.load(Ordering::Relaxed));
        let running = running.map(|(name, ..)| (*name).to_owned()).collect();
        let (done, of) = (sum(|under| &under.done), sum(|under| &under.of));
        progress(&PapersProgress::part(done, of, running))
    })?;
    let named = plans.iter().zip(measured);
    Ok(named.filter_map(|((name, _), measured)| Some(((*name).to_owned(), measured?))).collect())
}
