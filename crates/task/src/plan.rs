//! A plan of many steps on hosts as a task.

use ssdyno_block::counted;
use ssdyno_cluster::{ClusterPlan, ClusterProgress, Hosts, PlanFile, PlanOutcome, PlanRun};
use ssdyno_session::{Failure, ProgramIdentity, ResultFolder};

use crate::runner::{PreparedTask, TaskControl, TaskOutcome, TaskResult};

/// The name of its report.
pub(crate) const TITLE: &str = "Plan";

/// The plan, whose hosts are reached and sampled as `hosts` says.
pub(crate) fn prepare(plan: &ClusterPlan, hosts: Hosts) -> Result<PreparedTask, Failure> {
    let file = PlanFile::new(plan.clone())?;
    // A plan names its clients itself. Further hosts would have no share and no
    // load, so they are most likely a mistake.
    if let Some(host) = hosts.addresses.first() {
        return Err(Failure::usage(format!(
            "{host} is given in addition to the hosts of the plan"
        ))
        .with_help("leave `hosts` empty: a plan names its clients")
        .with_key("hosts"));
    }
    let steps = counted(file.steps.len() as u64, "step", "steps");
    let clients = counted(file.hosts.len() as u64, "client", "clients");
    let name = format!("plan with {steps} and {clients}");
    // Each host decides about its own targets by the consent of its owner. The
    // controller can give none, so nothing is listed here.
    Ok(PreparedTask::new(name, Vec::new(), move |control| carry_out(file, &hosts, control)))
}

fn carry_out(file: PlanFile, hosts: &Hosts, control: &TaskControl) -> Result<TaskOutcome, Failure> {
    let show = |step: &str, done: usize, of: usize, hosts: &ClusterProgress| {
        control.report(|snapshot| {
            step.clone_into(&mut snapshot.step);
            (snapshot.done, snapshot.of) = (done as u64, of as u64);
            (snapshot.progress, snapshot.hosts) = (hosts.merged(), hosts.clone());
        })
    };
    let of = file.steps.len();
    // All hosts are reached before the folder is used. If a host cannot be reached, nothing is
    // written, and the front end removes the empty folder.
    let mut run = PlanRun::open(file, hosts, &mut |hosts| show("connecting", 0, of, hosts))?;
    if let Some(folder) = control.folder() {
        run.keep_in(ResultFolder::open(folder)?, TITLE.to_owned());
    }
    while let Some(step) = run.next() {
        let (name, done) = (format!("{} of {of}: {}", step.number, step.name), step.number - 1);
        let began = control.program().map(ProgramIdentity::provenance).unwrap_or_default();
        run.step(began, || control.is_stopped(), &mut |hosts| show(&name, done, of, hosts));
        let result = run.result();
        // The next step shows that this one is over, together with its own hosts.
        // Only the last step has no successor.
        if result.steps.len() == of {
            control.report(|snapshot| snapshot.done = of as u64);
        }
        control.keep(|partial| *partial = Some(TaskResult::Plan(Box::new(result))));
    }
    let PlanOutcome { result, failure, .. } = run.end();
    match failure {
        // Without a single step there is no table. The failure alone is the result then,
        // and the front end removes the empty folder.
        Some(failure) if result.steps.is_empty() => Err(failure),
        failure => {
            let complaint = || Failure::failed(result.complaints().join("; "));
            // A step may be partial without stopping the plan. The complaints of all steps then become the
            // failure, so that a script sees that something is wrong.
            let failure = failure.or_else(|| result.partial.then(complaint));
            Ok(TaskOutcome { result: TaskResult::Plan(Box::new(result)), failure })
        }
    }
}
