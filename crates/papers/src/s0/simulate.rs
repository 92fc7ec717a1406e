//! The runs: each point with each seed.

use ssdyno_block::units::Bytes;
use ssdyno_controller_ring::RingConfig;
use ssdyno_driver_ring::ResponseMode;
use ssdyno_figures::Keep;
use ssdyno_host::ThreadMode;
use ssdyno_session::{Failure, FileContents, HostSpec, RingSpec, RunSpec};
use ssdyno_workload::WorkloadConfig;

use super::data::{Case, Plan};
use crate::assumptions::Changes;
use crate::error::defect;
use crate::mean::Mean;
use crate::measured::PointPlan;
use crate::{PapersOptions, presets};

/// All that was measured.
pub(super) type Measured = crate::measured::Measured<Case>;

impl Measured {
    /// Requests a second, in thousands.
    pub(super) fn kiops(&self, case: &Case) -> Option<Mean> {
        self.mean(case, |run| run.iops / 1e3)
    }
}

const PLAN: &str = "papers/s0/plan.toml";

/// The card of the preset.
pub(super) fn card() -> Result<RingConfig, Failure> {
    presets::device("zc706-ring")?.read(RingConfig::parse)
}

fn load(plan: &Plan, case: &Case, options: &PapersOptions) -> Result<toml::Table, Failure> {
    let all = options.requests.map_or(plan.requests, |most| most.min(plan.requests));
    let load = WorkloadConfig {
        // S0-5: a synchronous thread has one request outstanding, so the number of threads is the
        // depth of the closed loop.
        depth: Some(case.threads),
        read_percent: Some(f64::from(case.read_percent)),
        write_percent: Some(f64::from(100 - case.read_percent)),
        block_size: Some(Bytes(u64::from(case.size_kib) * 1024)),
        // Large requests count for as many pages.
        requests: Some((all * 4 / u64::from(case.size_kib)).max(200)),
        ramp_up: (plan.ramp_up * 4 / u64::from(case.size_kib)).max(50),
        ..WorkloadConfig::default()
    };
    toml::Table::try_from(load).map_err(|error| defect(PLAN, error))
}

/// How the driver of `case` works. Partial blocks go after a while so that a run ends: see papers/s0/notes.md.
fn ring(case: &Case) -> Result<RingSpec, Failure> {
    let block = case.block.map_or("dynamic".to_owned(), |block| block.to_string());
    // The three modes are A, B and C of S0-16 to S0-18. Subsets of one descriptor are the smallest
    // ones and lie next to mode B.
    let response = match case.mode {
        ResponseMode::Block => "block",
        ResponseMode::Each => "each",
        ResponseMode::Subsets => "subset:1",
    };
    let (completion, prefetch) = (case.completion.key(), case.prefetch);
    let text = format!(
        "block={block},response={response},completion={completion},prefetch={prefetch},partial-after=100us"
    );
    text.parse().map_err(|error: String| defect(PLAN, error))
}

impl PointPlan for Plan {
    type Case = Case;

    /// No assumed value is in the plan.
    fn with(_: Changes<'_>) -> Result<Plan, Failure> {
        Plan::load()
    }

    fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    fn spec(
        &self,
        case: &Case,
        options: &PapersOptions,
        changes: Changes<'_>,
    ) -> Result<RunSpec, Failure> {
        // S0-19: descriptors share the DMA engine with the data or have their own. The comparison
        // of both shows the loss by blocking (S0-20).
        let descriptors = if case.separate_engine { "separate" } else { "shared" };
        Ok(RunSpec {
            target: Some(format!("sim:{}", self.card)),
            workload: Some(format!("{} threads, {} % reads", case.threads, case.read_percent)),
            set: vec![
                format!("link.generation={}", case.generation),
                format!("dma.descriptors={descriptors}"),
            ],
            keep: Keep::Summary,
            host: HostSpec {
                name: Some(self.host.clone()),
                threads: Some(ThreadMode::Sync),
                ring: Some(ring(case)?),
                ..HostSpec::default()
            },
            contents: FileContents {
                device: Some(presets::device(&self.card)?.table("device", changes)?),
                workload: Some(load(self, case, options)?),
                host: Some(presets::host(&self.host)?.table("host", changes)?),
                ..FileContents::default()
            },
            ..RunSpec::default()
        })
    }
}
