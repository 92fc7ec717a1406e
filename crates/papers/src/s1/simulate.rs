//! The runs: each point of a figure with each seed.

use std::collections::BTreeSet;

use ssdyno_block::units::Bytes;
use ssdyno_device::Config;
use ssdyno_driver_nvme::{NvmeConfig, QueuePolicy};
use ssdyno_host::ThreadMode;
use ssdyno_result::{Keep, RunResult};
use ssdyno_rig::{Attach, Flow, HostOptions, HostPlan, Limits, Run, Source};

use super::data::{Case, DIRECT, LARGE_BUFFERS, Plan};
use crate::error::defect;
use crate::mean::Mean;
use crate::{Options, PaperError, Progress, presets};

/// All that was measured.
pub(super) type Measured = crate::measured::Measured<Case>;

impl Measured {
    /// Throughput of what the device itself completed, in MB/s: writes are done for the process once
    /// they are copied (S1-56).
    pub(super) fn device_throughput(&self, case: &Case) -> Option<Mean> {
        self.device_iops(case, 1e6)
    }

    /// IOPS that the device itself completed.
    pub(super) fn device_iops(&self, case: &Case, block_bytes: f64) -> Option<Mean> {
        self.mean(case, |result| {
            let host = result.host.as_ref();
            let early = host.and_then(|host| host.device_completed_bytes_per_second);
            early.unwrap_or(result.throughput_bytes_per_second) / block_bytes
        })
    }

    /// Share of each core of the throughput, with each seed.
    pub(super) fn shares(&self, case: &Case) -> Vec<Vec<f64>> {
        let shares = |result: &RunResult| {
            let cores = result.host.iter().flat_map(|host| &host.cores);
            let all: Vec<f64> = cores.map(|core| core.throughput_bytes_per_second).collect();
            let sum: f64 = all.iter().sum();
            all.into_iter().map(|own| own / sum).collect()
        };
        self.runs(case).map(shares).collect()
    }
}

fn device(plan: &Plan) -> Result<Config, PaperError> {
    let text = presets::device(&plan.device.preset)?.changed(&[], &plan.device.changes)?;
    Config::parse(&text).map_err(|error| defect("papers/s1/plan.toml", error))
}

fn host(case: &Case, load: &ssdyno_workload::Config, mode: &str) -> Result<HostPlan, PaperError> {
    let mut config = presets::host("e5430")?.read(ssdyno_host::Config::parse)?;
    let linux = case.policy == "linux";
    if linux {
        // The same machine with direct I/O: no copies, commands as large as the device takes.
        config.stack = ssdyno_host::StackConfig::default();
    }
    if case.policy == LARGE_BUFFERS {
        // As large as the drive takes, in the same memory.
        config.stack.buffer = Some(Bytes(128 << 10));
        config.stack.buffers = config.stack.buffers.map(|n| n / 4);
    }
    let options = HostOptions {
        cores: Some(case.cores),
        mode: Some(if mode == "batch" { ThreadMode::Batch } else { ThreadMode::Sync }),
        ..HostOptions::default()
    };
    Ok(HostPlan::new("e5430", config, &options, Some(load)))
}

fn planned(plan: &Plan, case: &Case, seed: u64, options: &Options) -> Result<Run, PaperError> {
    let file = "papers/s1/plan.toml";
    let kind = plan.kinds.get(&case.kind).ok_or_else(|| defect(file, "no such kind of load"))?;
    let cores = u64::from(case.cores);
    let requests = options.requests.unwrap_or(u64::MAX).min(kind.requests_per_core * cores);
    let text = format!(
        "write_percent = {}\nblock_size = \"{}\"\ndepth = {}\nthreads = {cores}\nrequests = {requests}\nramp_up = {}\n[address]\npattern = \"{}\"\n",
        if case.writes { 100 } else { 0 },
        kind.block_size,
        kind.depth,
        kind.ramp_up_per_core * cores,
        kind.pattern,
    );
    let load = ssdyno_workload::Config::from_toml(&text).map_err(|error| defect(file, error))?;
    let policy = match case.policy.as_str() {
        "single" => QueuePolicy::Single,
        "round-robin" => QueuePolicy::RoundRobin { as_printed: false },
        "per-core-pool" => QueuePolicy::PerCorePool,
        _ => QueuePolicy::PerCore,
    };
    let driver = NvmeConfig {
        policy,
        // Everything in the thesis goes through the SCSI resource (S1-47), and in Linux 3.13 not.
        scsi: case.policy != "linux" && case.policy != DIRECT,
        queues_max: 31,
        entries: 4096,
        transfer_bytes_max: 128 << 10,
        ..NvmeConfig::default()
    };
    Ok(Run {
        target: format!("sim:{}", plan.device.preset),
        device: Attach::Nvme {
            device: Box::new(device(plan)?),
            driver: Box::new(driver),
            host: Box::new(host(case, &load, &kind.threads)?),
        },
        workload: format!("{} {}", kind.pattern, kind.block_size),
        source: Source::Generator(load),
        seed,
        limits: Limits::default(),
        keep: Keep::None,
        interval: None,
    })
}

/// Runs every point of `wanted` with every seed.
pub(super) fn simulate_all(
    plan: &Plan,
    wanted: &BTreeSet<Case>,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> Flow,
) -> Result<Measured, PaperError> {
    let build = |case: &Case, seed| planned(plan, case, seed, options);
    Measured::simulate(wanted, &plan.seeds, options, build, progress)
}
