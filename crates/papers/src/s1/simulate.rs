//! The runs: each point of a figure with each seed.

use std::collections::BTreeSet;

use ssdyno_block::units::Bytes;
use ssdyno_device::Config;
use ssdyno_driver_nvme::{NvmeConfig, QueuePolicy};
use ssdyno_host::ThreadMode;
use ssdyno_result::{Keep, RunResult};
use ssdyno_rig::{Attach, DevicePath, HostOptions, HostPlan, KeepGoing, RunLimits, SimRun, Source};

use super::data::{ALONE, Case, DIRECT, KindPlan, LARGE_BUFFERS, Plan};
use crate::assumptions::Changes;
use crate::error::defect;
use crate::mean::Mean;
use crate::{PaperError, PapersOptions, PapersProgress, presets};

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

fn device(plan: &Plan, kind: &KindPlan, changes: Changes<'_>) -> Result<Config, PaperError> {
    let mut own = plan.device.changes.clone();
    for (table, keys) in &kind.device {
        own.entry(table.clone()).or_default().extend(keys.clone());
    }
    let text = presets::device(&plan.device.preset)?.changed(&[], &own)?;
    let text = changes.applied("papers/s1/plan.toml", "device", &text)?;
    Config::parse(&text).map_err(|error| defect("papers/s1/plan.toml", error))
}

fn host(
    case: &Case,
    load: &ssdyno_workload::WorkloadConfig,
    mode: &str,
    changes: Changes<'_>,
) -> Result<HostPlan, PaperError> {
    let mut config = presets::host("e5430")?.host_with(changes)?;
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

fn planned(
    plan: &Plan,
    case: &Case,
    seed: u64,
    options: &PapersOptions,
    changes: Changes<'_>,
) -> Result<SimRun, PaperError> {
    let file = "papers/s1/plan.toml";
    let kind = plan.kinds.get(&case.kind).ok_or_else(|| defect(file, "no such kind of load"))?;
    let cores = u64::from(case.cores);
    let requests = options.requests.unwrap_or(u64::MAX).min(kind.requests_per_core * cores);
    let text = format!(
        "write_percent = {}\nblock_size = \"{}\"\ndepth = {}\nthreads = {cores}\nrequests = {requests}\nramp_up = {}\n[address]\npattern = \"{}\"\n",
        if case.writes { 100 } else { 0 },
        kind.block_size,
        kind.depth,
        kind.ramp_up_per_core * cores + if case.writes { kind.ramp_up_writes } else { 0 },
        kind.pattern,
    );
    let load =
        ssdyno_workload::WorkloadConfig::from_toml(&text).map_err(|error| defect(file, error))?;
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
    let device = device(plan, kind, changes)?;
    let attach = match case.policy.as_str() {
        ALONE => Attach::from(device),
        _ => {
            let host = host(case, &load, &kind.threads, changes)?;
            Attach::behind(device, host, DevicePath::Nvme(Box::new(driver)))
        }
    };
    Ok(SimRun {
        target: format!("sim:{}", plan.device.preset),
        device: attach,
        workload: format!("{} {}", kind.pattern, kind.block_size),
        source: Source::Generator(load),
        seed,
        limits: RunLimits::default(),
        keep: Keep::None,
        interval: None,
    })
}

/// Runs every point of `wanted` with every seed, with `changes` to the presets.
pub(super) fn simulate_all(
    plan: &Plan,
    wanted: &BTreeSet<Case>,
    options: &PapersOptions,
    changes: Changes<'_>,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<Measured, PaperError> {
    let build = |case: &Case, seed| planned(plan, case, seed, options, changes);
    Measured::simulate(wanted, changes.seeds(&plan.seeds), options, build, progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random figures of a data sheet are of the steady state of random writes over the whole drive,
    /// sequential ones of a drive that was written in order.
    #[test]
    fn each_load_begins_in_the_state_that_the_data_sheet_is_about() {
        let plan = Plan::load().unwrap();
        let preset = presets::device(&plan.device.preset).unwrap().read(Config::parse).unwrap();
        for (kind, load) in &plan.kinds {
            let config = device(&plan, load, Changes::none()).unwrap();
            let random = load.pattern == "random";
            let fill = format!("{:?}", config.precondition.fill);
            assert_eq!(fill, if random { "Random" } else { "Sequential" }, "{kind}");
            let blocks = |config: &Config| config.flash.blocks_per_plane;
            assert!(!random || blocks(&config) == blocks(&preset), "{kind}");
            // The slot is the thesis' whatever the load.
            assert_eq!(
                config.host_link,
                device(&plan, &plan.kinds["alone"], Changes::none()).unwrap().host_link
            );
        }
    }
}
