//! The runs: each point with each seed.

use ssdyno_block::Time;
use ssdyno_block::units::{Bytes, Span};
use ssdyno_figures::Keep;
use ssdyno_host::ThreadMode;
use ssdyno_session::{DriverSpec, Failure, FileContents, HostSpec, RunSpec};
use toml::{Table, Value};

use super::data::{Case, Plan, Printed};
use crate::assumptions::{Changes, entry};
use crate::error::{defect, parse};
use crate::mean::Mean;
use crate::measured::PointPlan;
use crate::{PapersOptions, presets};

/// All that was measured.
pub(super) type Measured = crate::measured::Measured<Case>;

impl Measured {
    /// Switches of a request as Linux counts them: to threads and to idleness.
    pub(super) fn switches(&self, case: &Case) -> Option<Mean> {
        self.host(case, |host| {
            // S4-38 counts with the kernel's counter, which includes switches to the idle task.
            // With one worker, nearly every wait is such a switch.
            host.context_switches_per_request + host.switches_to_idle_per_request.unwrap_or(0.0)
        })
    }
}

const PLAN: &str = "papers/s4/plan.toml";

/// What is simulated instead of the preset called `name`: a delay or a disk of the plan.
fn device(plan: &Plan, name: &str, changes: Changes<'_>) -> Result<Option<Table>, Failure> {
    if let Some(delay) = plan.devices.get(name) {
        let delay = Value::Table(delay.clone());
        return Ok(Some([("delay".to_owned(), delay)].into_iter().collect()));
    }
    let Some(disk) = plan.disks.get(name) else { return Ok(None) };
    let preset = presets::device(&disk.preset)?;
    let mut table = preset.table("device", changes)?;
    for (path, value) in &disk.set {
        let missing = || defect(PLAN, format!("{} has no key {path}", preset.file));
        // A key of the plan that the preset does not have is an error. A misspelt key would
        // otherwise be added and ignored, and the preset would run unchanged.
        *entry(&mut table, path).ok_or_else(missing)? = value.clone();
    }
    Ok(Some(table))
}

/// The host of a stack, with the keys that differ.
fn host(plan: &Plan, name: &str, changes: Changes<'_>) -> Result<Table, Failure> {
    let missing = || defect(PLAN, format!("there is no stack {name}"));
    let stack = plan.stacks.get(name).ok_or_else(missing)?;
    let text = presets::host(&stack.host)?.changed(&stack.without, &stack.set)?;
    parse(PLAN, &changes.applied(PLAN, "host", &text)?)
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
        // Work per request is D(n) = D(1) (1 + (n - 1) s). Two and three clients give two
        // equations, with D(1) = 2 D(2) - D(3) and s = (D(3) - D(2)) / D(1).
        let more = three - two;
        Fitted { client, target: two - more, surcharge: more / (two - more) }
    }
}

/// What `variant` of the network sets: where it is fitted, its CPUs work for nothing else.
fn fitted(variant: &str, case: &Case, changes: Changes<'_>) -> Result<Vec<String>, Failure> {
    if variant != "fitted" {
        return Ok(Vec::new());
    }
    let bytes = f64::from(case.size_kib) * 1024.0;
    let fitted = Fitted::new(Printed::load()?.table4.totals, bytes);
    let surcharge = fitted.surcharge * changes.factor("network.target.surcharge");
    let mut set = vec![
        "network.target.switches=0".to_owned(),
        format!("network.target.surcharge={surcharge:?}"),
    ];
    for (end, seconds) in [("initiator", fitted.client), ("target", fitted.target)] {
        let response = Span(Time::from_s_f64(seconds));
        // All other costs of the end are set to zero. The fitted demand is the whole work of a
        // request, so any remaining cost would be counted twice.
        let keys = ["command=0s", "segment=0s", "send=1000000GB/s", "receive=1000000GB/s"];
        set.extend(keys.map(|key| format!("network.{end}.{key}")));
        set.push(format!("network.{end}.response={response}"));
    }
    Ok(set)
}

fn load(plan: &Plan, case: &Case, options: &PapersOptions) -> Result<Table, Failure> {
    let missing = || defect(PLAN, format!("there is no load {}", case.load));
    let load = plan.loads.get(&case.load).ok_or_else(missing)?;
    let workers = u64::from(case.workers);
    // S4-26: the paper does not state its queue depth. Local workers have one request outstanding,
    // and the plan sets the number for the clients of table 4.
    let depth = if case.network.is_some() { plan.table4.outstanding } else { 1 };
    let mut text = format!(
        "read_percent = {}\nwrite_percent = {}\nblock_size = \"{}KiB\"\nthreads = {workers}\ndepth = {depth}\n",
        load.read_percent,
        100.0 - load.read_percent,
        case.size_kib,
    );
    let span = plan.seconds(case);
    text += &span.map(|span| format!("duration = \"{span}\"\n")).unwrap_or_default();
    // A load has either a duration or a number of requests. With both, a slow stack would end by
    // time and a fast one by number, over different parts of the disk.
    let requests = span.is_none().then(|| load.requests.unwrap_or(1) * workers);
    if let Some(requests) = requests.into_iter().chain(options.requests).min() {
        text += &format!("requests = {requests}\n");
    }
    text += &format!("[address]\npattern = \"{}\"\n", load.pattern);
    if let Some(Bytes(bytes)) = load.range {
        text += &format!("length = \"{bytes}B\"\n");
    }
    parse(PLAN, &text)
}

impl PointPlan for Plan {
    type Case = Case;

    fn with(changes: Changes<'_>) -> Result<Plan, Failure> {
        parse(PLAN, &changes.applied(PLAN, "plan", include_str!("../../papers/s4/plan.toml"))?)
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
        let behind = case.network.map(|variant| (variant, presets::network()));
        let set = behind.as_ref().map(|(variant, _)| fitted(variant, case, changes)).transpose()?;
        let network = behind.as_ref().map(|(_, preset)| preset.table("network", changes));
        Ok(RunSpec {
            target: Some(format!("sim:{}", case.device)),
            workload: Some(format!("{}, {} KiB", case.load, case.size_kib)),
            set: set.unwrap_or_default(),
            keep: Keep::Summary,
            interval: Some(Span(Time::from_s(1))),
            host: HostSpec {
                driver: Some(match case.network {
                    None => DriverSpec::Adapter,
                    Some(_) => DriverSpec::Network,
                }),
                name: Some(case.stack.clone()),
                cores: Some(case.workers),
                threads: Some(ThreadMode::Sync),
                network: case.network.map(str::to_owned),
                ..HostSpec::default()
            },
            contents: FileContents {
                device: device(self, &case.device, changes)?,
                workload: Some(load(self, case, options)?),
                host: Some(host(self, &case.stack, changes)?),
                network: network.transpose()?,
                ..FileContents::default()
            },
            ..RunSpec::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_session::{Unattended, resolve};

    use super::*;
    use crate::measured::Point;
    use crate::s4::figures::points;

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
        for figure in &plan.figures {
            for case in points([figure.id.as_str()].into_iter(), &plan) {
                let spec = plan.spec(&case, &PapersOptions::default(), Changes::none()).unwrap();
                let run = resolve(&spec, &mut Unattended).unwrap();
                assert_eq!(run.resolved().host.cores, Some(case.workers), "{}", case.name(1));
            }
        }
    }
}
