//! The runs: each point with each seed.

use std::collections::BTreeSet;

use ssdyno_block::Time;
use ssdyno_block::units::{Bandwidth, Bytes, Span};
use ssdyno_device::DeviceSpec;
use ssdyno_device::delay::DelayConfig;
use ssdyno_host::ThreadMode;
use ssdyno_result::Keep;
use ssdyno_rig::{
    Attach, DevicePath, EndTable, HostOptions, HostPlan, KeepGoing, NETWORKS, NetworkConfig,
    RunLimits, SimRun, Source,
};

use super::data::{Case, Plan, Printed};
use crate::assumptions::Changes;
use crate::error::defect;
use crate::mean::Mean;
use crate::{PaperError, PapersOptions, PapersProgress, presets};

/// All that was measured.
pub(super) type Measured = crate::measured::Measured<Case>;

impl Measured {
    /// Switches of a request as Linux counts them: to threads and to idleness.
    pub(super) fn switches(&self, case: &Case) -> Option<Mean> {
        self.host(case, |host| {
            host.context_switches_per_request + host.switches_to_idle_per_request.unwrap_or(0.0)
        })
    }
}

const PLAN: &str = "papers/s4/plan.toml";

fn device(plan: &Plan, name: &str) -> Result<DelayConfig, PaperError> {
    if let Some(table) = plan.devices.get(name) {
        let mut config =
            DelayConfig::parse("[delay]\ncapacity = \"1MiB\"\nread = \"0s\"\nwrite = \"0s\"")
                .map_err(|error| defect(PLAN, error))?;
        config.delay = table.clone();
        return Ok(config);
    }
    presets::device(name)?.read(DelayConfig::parse)
}

/// The host of a stack, with the keys that differ.
fn host(
    plan: &Plan,
    name: &str,
    changes: Changes<'_>,
) -> Result<ssdyno_host::HostConfig, PaperError> {
    let missing = || defect(PLAN, format!("there is no stack {name}"));
    let stack = plan.stacks.get(name).ok_or_else(missing)?;
    let text = presets::host(&stack.host)?.changed(&stack.without, &stack.set)?;
    let text = changes.applied(PLAN, "host", &text)?;
    ssdyno_host::HostConfig::parse(&text).map_err(|error| defect(PLAN, error))
}

/// Demands that the rows of table 4 fix, by operational analysis (S4-46), once something is
/// saturated in each: with one client that client, since its target could do more; with two and
/// three the target (its CPU "larger than 90 %", "approaches 100 %"). Work is size / throughput
/// then; the two rows of the target divide into what one session costs and what each further one adds.
pub(super) struct Fitted {
    /// Work of the client for a request, in s.
    pub(super) client: f64,
    /// Work of the target for a request of a session alone, in s.
    pub(super) target: f64,
    /// Share that each further session adds.
    pub(super) surcharge: f64,
}

impl Fitted {
    /// From the printed totals in MB/s, and the size of a request in bytes.
    pub(super) fn new(totals: [f64; 3], bytes: f64) -> Fitted {
        let [client, two, three] = totals.map(|total| bytes / (total * 1e6));
        let more = three - two;
        Fitted { client, target: two - more, surcharge: more / (two - more) }
    }
}

/// The network of a variant.
fn network(variant: &str, case: &Case, changes: Changes<'_>) -> Result<NetworkConfig, PaperError> {
    let file = "presets/networks/s4-iscsi.toml";
    let text = changes.applied(file, "network", NETWORKS[0].text)?;
    let mut config = NetworkConfig::parse(&text).map_err(|error| defect(file, error))?;
    if variant != "fitted" {
        return Ok(config);
    }
    let bytes = f64::from(case.size_kib) * 1024.0;
    let fitted = Fitted::new(Printed::load()?.table4.totals, bytes);
    let span = |seconds: f64| Span(Time::from_s_f64(seconds));
    let free = EndTable {
        command: span(0.0),
        response: span(0.0),
        segment: span(0.0),
        send: Bandwidth(1e15),
        receive: Bandwidth(1e15),
    };
    config.initiator = EndTable { response: span(fitted.client), ..free };
    let target = &mut config.target;
    (target.command, target.segment) = (free.command, free.segment);
    (target.send, target.receive) = (free.send, free.receive);
    target.response = span(fitted.target);
    let surcharge = fitted.surcharge * changes.factor("network.target.surcharge");
    (target.switches, target.surcharge) = (0.0, surcharge);
    Ok(config)
}

fn load(
    plan: &Plan,
    case: &Case,
    options: &PapersOptions,
) -> Result<ssdyno_workload::WorkloadConfig, PaperError> {
    let missing = || defect(PLAN, format!("there is no load {}", case.load));
    let load = plan.loads.get(&case.load).ok_or_else(missing)?;
    let workers = u64::from(case.workers);
    let depth = if case.network.is_some() { plan.table4.outstanding } else { 1 };
    let mut text = format!(
        "read_percent = {}\nwrite_percent = {}\nblock_size = \"{}KiB\"\nthreads = {workers}\ndepth = {depth}\n",
        load.read_percent,
        100.0 - load.read_percent,
        case.size_kib,
    );
    match (plan.seconds(case), load.requests) {
        (Some(span), _) => text += &format!("duration = \"{span}\"\n"),
        (None, requests) => text += &format!("requests = {}\n", requests.unwrap_or(1) * workers),
    }
    text += &format!("[address]\npattern = \"{}\"\n", load.pattern);
    if let Some(Bytes(bytes)) = load.range {
        text += &format!("length = \"{bytes}B\"\n");
    }
    let mut config =
        ssdyno_workload::WorkloadConfig::from_toml(&text).map_err(|error| defect(PLAN, error))?;
    if let Some(most) = options.requests {
        config.requests = Some(config.requests.unwrap_or(u64::MAX).min(most));
    }
    Ok(config)
}

fn planned(
    plan: &Plan,
    case: &Case,
    seed: u64,
    options: &PapersOptions,
    changes: Changes<'_>,
) -> Result<SimRun, PaperError> {
    let load = load(plan, case, options)?;
    let config = host(plan, &case.stack, changes)?;
    let how = HostOptions {
        cores: Some(case.workers),
        mode: Some(ThreadMode::Sync),
        ..HostOptions::default()
    };
    let host = HostPlan::new(&case.stack, config, &how, Some(&load));
    let path = match case.network {
        None => DevicePath::Adapter,
        Some(variant) => DevicePath::Network(Box::new(network(variant, case, changes)?)),
    };
    let attach = Attach::behind(DeviceSpec::new(device(plan, &case.device)?), host, path);
    Ok(SimRun {
        target: format!("sim:{}", case.device),
        device: attach,
        workload: format!("{}, {} KiB", case.load, case.size_kib),
        source: Source::Generator(load),
        seed,
        limits: RunLimits::default(),
        keep: Keep::Summary,
        interval: Some(Time::from_s(1)),
    })
}

/// Runs all of `cases` with all seeds, with `changes` to presets and plan.
pub(super) fn simulate_all(
    cases: &BTreeSet<Case>,
    options: &PapersOptions,
    changes: Changes<'_>,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<Measured, PaperError> {
    let plan = &Plan::with(changes)?;
    let build = |case: &Case, seed| planned(plan, case, seed, options, changes);
    Measured::simulate(cases, changes.seeds(&plan.seeds), options, build, progress)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Point;

    /// What is fitted gives back the rows it was fitted to, by the invariant of the bottleneck.
    #[test]
    fn fitted_demands_are_those_of_operational_analysis() {
        let bytes = 32_768.0;
        let Fitted { client, target, surcharge } = Fitted::new([18.012, 29.007, 23.214], bytes);
        let rate = |seconds: f64| bytes / seconds / 1e6;
        let total = |n: f64| (n * rate(client)).min(rate(target * (1.0 + (n - 1.0) * surcharge)));
        for (n, printed) in [(1.0, 18.012), (2.0, 29.007), (3.0, 23.214)] {
            assert!((total(n) - printed).abs() < 1e-9, "{n}: {}", total(n));
        }
        assert!((target * 1e3 - 0.848).abs() < 0.001 && (surcharge - 0.3325).abs() < 0.001);
    }

    #[test]
    fn every_point_of_the_plan_can_be_built() {
        let plan = Plan::load().unwrap();
        for (figure, _) in super::super::data::FIGURES {
            for case in plan.cases(figure) {
                let run =
                    planned(&plan, &case, 1, &PapersOptions::default(), Changes::none()).unwrap();
                let host = run.device.host().unwrap();
                assert_eq!(host.plan.cores, case.workers, "{}", case.name(1));
            }
        }
    }
}
