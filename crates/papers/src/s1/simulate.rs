//! The runs: each point of a figure with each seed.

use ssdyno_figures::{Keep, RunResult};
use ssdyno_host::ThreadMode;
use ssdyno_session::{DriverSpec, Failure, FileContents, HostSpec, Queues, RunSpec, StackKind};
use toml::{Table, Value};

use super::data::{ALONE, Case, DIRECT, DISKS, KindPlan, LARGE_BUFFERS, Plan};
use crate::assumptions::Changes;
use crate::error::{defect, parse};
use crate::mean::Mean;
use crate::measured::PointPlan;
use crate::{PapersOptions, presets};

const PLAN: &str = "papers/s1/plan.toml";
/// The machine of the thesis.
const HOST: &str = "e5430";

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
            // S1-56: only writes complete early. For reads, both rates are the same, and the host
            // reports no second one.
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

fn device(plan: &Plan, kind: &KindPlan, changes: Changes<'_>) -> Result<Table, Failure> {
    let mut own = plan.device.changes.clone();
    for (table, keys) in &kind.device {
        // The changes of a kind of load come after those of the plan and replace them: random loads
        // need a drive in the steady state of random writes, sequential ones a drive that was
        // written in order.
        own.entry(table.clone()).or_default().extend(keys.clone());
    }
    let text = presets::device(&plan.device.preset)?.changed(&[], &own)?;
    parse(PLAN, &changes.applied(PLAN, "device", &text)?)
}

/// The device of a point, and its name.
fn device_of(
    plan: &Plan,
    case: &Case,
    kind: &KindPlan,
    changes: Changes<'_>,
) -> Result<(String, Table), Failure> {
    if case.policy == DISKS {
        let disks = presets::device(&plan.disks)?;
        return Ok((plan.disks.clone(), disks.table("disks", changes)?));
    }
    Ok((plan.device.preset.clone(), device(plan, kind, changes)?))
}

fn host(case: &Case, changes: Changes<'_>) -> Result<Table, Failure> {
    let mut host = presets::host(HOST)?.table("host", changes)?;
    if case.policy == "linux" {
        // The same machine with direct I/O: no copies, commands as large as the device takes.
        host.remove("stack");
    }
    if let Some(stack) = host.get_mut("stack").and_then(Value::as_table_mut)
        && case.policy == LARGE_BUFFERS
    {
        // As large as the drive takes, in the same memory.
        stack.insert("buffer".to_owned(), "128KiB".into());
        if let Some(buffers) = stack.get("buffers").and_then(Value::as_integer) {
            stack.insert("buffers".to_owned(), (buffers / 4).into());
        }
    }
    Ok(host)
}

fn load(case: &Case, kind: &KindPlan, options: &PapersOptions) -> Result<Table, Failure> {
    let cores = u64::from(case.cores);
    // The number of requests grows with the cores. A fixed number would let eight cores finish
    // before the buffers are full, and one core would take eight times as long.
    let requests = options.requests.unwrap_or(u64::MAX).min(kind.requests_per_core * cores);
    let text = format!(
        "write_percent = {}\nblock_size = \"{}\"\ndepth = {}\nthreads = {cores}\nrequests = {requests}\nramp_up = {}\n[address]\npattern = \"{}\"\n",
        if case.writes { 100 } else { 0 },
        kind.block_size,
        kind.depth,
        // Writes have a longer ramp-up: the first ones go into empty buffers at the speed of the
        // memory (S1-56). They would hide the rate of the drive.
        kind.ramp_up_per_core * cores + if case.writes { kind.ramp_up_writes } else { 0 },
        kind.pattern,
    );
    parse(PLAN, &text)
}

/// Queues and depths are those of the drive: 31 queues of 4096 entries, commands of 128 KiB (S1-26, S1-29).
fn driver(case: &Case, kind: &KindPlan) -> HostSpec {
    if case.policy == ALONE {
        return HostSpec { driver: Some(DriverSpec::Direct), ..HostSpec::default() };
    }
    if case.policy == DISKS {
        return HostSpec {
            driver: Some(DriverSpec::Adapter),
            name: Some(HOST.to_owned()),
            cores: Some(case.cores),
            threads: Some(ThreadMode::Sync),
            stack: Some(StackKind::Scsi),
            ..HostSpec::default()
        };
    }
    // The policies are those of the thesis: one queue (S1-38), all queues in turn (S1-34), one per
    // core (S1-35) and a pool per core (S1-36).
    let queues = match case.policy.as_str() {
        "single" => Queues::Single,
        "round-robin" => Queues::RoundRobin,
        "per-core-pool" => Queues::PerCorePool,
        _ => Queues::PerCore,
    };
    // Everything in the thesis goes through the SCSI resource (S1-47), and in Linux 3.13 not.
    let scsi = case.policy != "linux" && case.policy != DIRECT;
    HostSpec {
        driver: Some(DriverSpec::Nvme),
        name: Some(HOST.to_owned()),
        cores: Some(case.cores),
        threads: Some(if kind.threads == "batch" { ThreadMode::Batch } else { ThreadMode::Sync }),
        queues: Some(queues),
        stack: scsi.then_some(StackKind::Scsi),
        ..HostSpec::default()
    }
}

impl PointPlan for Plan {
    type Case = Case;

    /// Assumed values of the plan are in its device.
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
        let missing = || defect(PLAN, "unknown kind of load");
        let kind = self.kinds.get(&case.kind).ok_or_else(missing)?;
        let (name, device) = device_of(self, case, kind, changes)?;
        Ok(RunSpec {
            target: Some(format!("sim:{name}")),
            workload: Some(format!("{} {}", kind.pattern, kind.block_size)),
            keep: Keep::None,
            host: driver(case, kind),
            contents: FileContents {
                device: Some(device),
                workload: Some(load(case, kind, options)?),
                host: Some(host(case, changes)?),
                ..FileContents::default()
            },
            ..RunSpec::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_ssd::Config;

    use super::*;

    /// Random figures of a data sheet are of the steady state of random writes over the whole drive,
    /// sequential ones of a drive that was written in order.
    #[test]
    fn each_load_begins_in_the_state_that_the_data_sheet_is_about() {
        let plan = Plan::load().unwrap();
        let preset = presets::device(&plan.device.preset).unwrap().read(Config::parse).unwrap();
        let device = |load| {
            let table = device(&plan, load, Changes::none()).unwrap();
            Config::parse(&table.to_string()).unwrap()
        };
        for (kind, load) in &plan.kinds {
            let config = device(load);
            let random = load.pattern == "random";
            let fill = format!("{:?}", config.precondition.fill);
            assert_eq!(fill, if random { "Random" } else { "Sequential" }, "{kind}");
            let blocks = |config: &Config| config.flash.blocks_per_plane;
            assert!(!random || blocks(&config) == blocks(&preset), "{kind}");
            // The slot is the thesis' whatever the load.
            assert_eq!(config.host_link, device(&plan.kinds["alone"]).host_link);
        }
    }
}
