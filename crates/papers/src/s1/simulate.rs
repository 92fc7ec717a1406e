//! The runs: each point of a figure with each seed.

use std::collections::{BTreeMap, BTreeSet};

use ssdyno_device::{Config, presets};
use ssdyno_driver_nvme::{NvmeConfig, QueuePolicy};
use ssdyno_host::ThreadMode;
use ssdyno_result::{Keep, RunResult};
use ssdyno_rig::{Attach, Flow, HostOptions, HostPlan, Limits, Run, Source};

use super::data::{Case, Plan};
use crate::error::defect;
use crate::{Options, PaperError, Progress, RunSummary};

/// A mean over seeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mean {
    pub(super) mean: f64,
    /// Half of the 95 % interval.
    pub(super) half: f64,
}

impl Mean {
    /// Student's t at 95 %, two-sided, by degrees of freedom 1 to 10; normal above.
    fn student(freedom: usize) -> f64 {
        let table = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
        table.get(freedom.wrapping_sub(1)).copied().unwrap_or(1.96)
    }

    pub(super) fn of(values: &[f64]) -> Option<Mean> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Some(Mean { mean, half: f64::INFINITY });
        }
        let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        Some(Mean { mean, half: Self::student(n - 1) * (square / n as f64).sqrt() })
    }
}

/// All that was measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// By point and seed.
    runs: BTreeMap<Case, Vec<(u64, RunResult)>>,
    pub(super) partial: bool,
}

impl Measured {
    /// `figure` of a point with each seed.
    pub(super) fn each(&self, case: &Case, figure: impl Fn(&RunResult) -> f64) -> Vec<f64> {
        self.runs.get(case).into_iter().flatten().map(|(_, result)| figure(result)).collect()
    }

    /// Reported throughput of a point, in MB/s.
    pub(super) fn throughput(&self, case: &Case) -> Option<Mean> {
        Mean::of(&self.each(case, |result| result.throughput_bytes_per_second / 1e6))
    }

    /// Reported IOPS of a point.
    pub(super) fn iops(&self, case: &Case) -> Option<Mean> {
        Mean::of(&self.each(case, |result| result.iops))
    }

    /// Throughput of what the device itself completed, in MB/s: writes are done for the process once
    /// they are copied (S1-56).
    pub(super) fn device_throughput(&self, case: &Case) -> Option<Mean> {
        self.device_iops(case, 1e6)
    }

    /// IOPS that the device itself completed.
    pub(super) fn device_iops(&self, case: &Case, block_bytes: f64) -> Option<Mean> {
        Mean::of(&self.each(case, |result| {
            let host = result.host.as_ref();
            let early = host.and_then(|host| host.device_completed_bytes_per_second);
            early.unwrap_or(result.throughput_bytes_per_second) / block_bytes
        }))
    }

    /// Share of each core of the throughput, with each seed.
    pub(super) fn shares(&self, case: &Case) -> Vec<Vec<f64>> {
        let shares = |result: &RunResult| {
            let cores = result.host.iter().flat_map(|host| &host.cores);
            let all: Vec<f64> = cores.map(|core| core.throughput_bytes_per_second).collect();
            let sum: f64 = all.iter().sum();
            all.into_iter().map(|own| own / sum).collect()
        };
        self.runs.get(case).into_iter().flatten().map(|(_, result)| shares(result)).collect()
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

fn device(plan: &Plan) -> Result<Config, PaperError> {
    let name = &plan.device.preset;
    let file = format!("presets/devices/{name}.toml");
    let preset = presets::find(name).ok_or_else(|| defect(&file, "there is no such preset"))?;
    let mut table: toml::Table =
        toml::from_str(preset.text).map_err(|error| defect(&file, error))?;
    for (key, changes) in &plan.device.changes {
        let old = table.entry(key.clone()).or_insert_with(|| toml::Table::new().into());
        if let Some(old) = old.as_table_mut() {
            old.extend(changes.clone());
        }
    }
    Config::parse(&table.to_string()).map_err(|error| defect("papers/s1/plan.toml", error))
}

fn host(case: &Case, load: &ssdyno_workload::Config, mode: &str) -> Result<HostPlan, PaperError> {
    let file = "presets/hosts/e5430.toml";
    let preset = ssdyno_host::presets::find("e5430")
        .ok_or_else(|| defect(file, "there is no such preset"))?;
    let mut config =
        ssdyno_host::Config::parse(preset.text).map_err(|error| defect(file, error))?;
    let linux = case.policy == "linux";
    if linux {
        // The same machine with direct I/O: no copies, commands as large as the device takes.
        config.stack = ssdyno_host::StackConfig::default();
    }
    let options = HostOptions {
        cores: Some(case.cores),
        mode: Some(if mode == "batch" { ThreadMode::Batch } else { ThreadMode::Sync }),
        // Everything in the thesis goes through the SCSI resource (S1-47), and in Linux 3.13 not.
        scsi: !linux,
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
        seed: seed.wrapping_add(options.seed),
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
    let mut measured = Measured::default();
    let mut runs = Vec::new();
    for case in wanted {
        for seed in &plan.seeds {
            runs.push((case, *seed, planned(plan, case, *seed, options)?));
        }
    }
    let of = runs.len() as u64;
    for (done, (case, seed, run)) in runs.into_iter().enumerate() {
        let name = case.name(seed);
        let mut tell = |_: &ssdyno_rig::Progress| {
            progress(&Progress { done: done as u64, of, running: vec![name.clone()] })
        };
        let result = run.execute(&mut tell).map_err(|error| PaperError::Refused {
            run: case.name(seed),
            problem: error.to_string(),
        })?;
        let broken = result.result.invariants.iter().find(|law| !law.holds);
        if let Some(law) = broken {
            let problem = format!("{}: {}", law.name, law.detail);
            return Err(PaperError::Refused { run: case.name(seed), problem });
        }
        measured.partial |= result.result.partial;
        measured.runs.entry(case.clone()).or_default().push((seed, result.result));
        if measured.partial {
            break;
        }
    }
    Ok(measured)
}
