//! The runs: each point with each seed.

use std::collections::BTreeSet;

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_device::ring::{DescriptorEngine, RingConfig};
use ssdyno_driver_ring::{BlockPolicy, RingDriverOptions as DriverOptions};
use ssdyno_host::ThreadMode;
use ssdyno_result::Keep;
use ssdyno_rig::{Attach, DevicePath, HostOptions, HostPlan, KeepGoing, RunLimits, SimRun, Source};

use super::data::{Case, Plan};
use crate::assumptions::Changes;
use crate::error::defect;
use crate::mean::Mean;
use crate::{PaperError, PapersOptions, PapersProgress, presets};

/// All that was measured.
pub(super) type Measured = crate::measured::Measured<Case>;

impl Measured {
    /// Requests a second, in thousands.
    pub(super) fn kiops(&self, case: &Case) -> Option<Mean> {
        self.mean(case, |run| run.iops / 1e3)
    }
}

/// The file of the card.
pub(super) const CARD: &str = "presets/devices/zc706-ring.toml";

/// The card of the preset.
pub(super) fn card() -> Result<RingConfig, PaperError> {
    card_with(Changes::none())
}

fn card_with(changes: Changes<'_>) -> Result<RingConfig, PaperError> {
    let text = include_str!("../../../../presets/devices/zc706-ring.toml");
    let text = changes.applied(CARD, "device", text)?;
    RingConfig::parse(&text).map_err(|error| defect(CARD, error))
}

fn load(plan: &Plan, case: &Case, options: &PapersOptions) -> ssdyno_workload::WorkloadConfig {
    let all = options.requests.map_or(plan.requests, |most| most.min(plan.requests));
    ssdyno_workload::WorkloadConfig {
        depth: Some(case.threads),
        read_percent: Some(f64::from(case.read_percent)),
        write_percent: Some(f64::from(100 - case.read_percent)),
        block_size: Some(Bytes(u64::from(case.size_kib) * 1024)),
        // Large requests count for as many pages.
        requests: Some((all * 4 / u64::from(case.size_kib)).max(200)),
        ramp_up: (plan.ramp_up * 4 / u64::from(case.size_kib)).max(50),
        ..ssdyno_workload::WorkloadConfig::default()
    }
}

fn planned(
    plan: &Plan,
    case: &Case,
    seed: u64,
    options: &PapersOptions,
    changes: Changes<'_>,
) -> Result<SimRun, PaperError> {
    let mut card = card_with(changes)?;
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
    let config = presets::host(&plan.host)?.host_with(changes)?;
    let load = load(plan, case, options);
    let how = HostOptions { mode: Some(ThreadMode::Sync), ..HostOptions::default() };
    let host = HostPlan::new(&plan.host, config, &how, Some(&load));
    Ok(SimRun {
        target: format!("sim:{}", plan.card),
        device: Attach::behind(card, host, DevicePath::Ring(Box::new(driver))),
        workload: format!("{} threads, {} % reads", case.threads, case.read_percent),
        source: Source::Generator(load),
        seed,
        limits: RunLimits::default(),
        keep: Keep::Summary,
        interval: None,
    })
}

/// Runs all of `cases` with all seeds, with `changes` to the presets.
pub(super) fn simulate_all(
    plan: &Plan,
    cases: &BTreeSet<Case>,
    options: &PapersOptions,
    changes: Changes<'_>,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<Measured, PaperError> {
    let build = |case: &Case, seed| planned(plan, case, seed, options, changes);
    Measured::simulate(cases, changes.seeds(&plan.seeds), options, build, progress)
}
