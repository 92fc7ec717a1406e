//! The tasks that a front end can request.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_cluster::{ClusterPlan, Hosts};
use ssdyno_report::RunDirectory;
use ssdyno_session::{Failure, Prompt, RunSpec};
use ssdyno_sweep::SweepPlan;

use crate::compare::CompareTask;
#[cfg(target_os = "linux")]
use crate::probe::ProbeTask;
use crate::profile::ProfileTask;
use crate::pts::PtsTask;
use crate::runner::PreparedTask;
#[cfg(target_os = "linux")]
use crate::verify::VerifyTask;
use crate::{plan, run, sweep};

/// A task that a front end can start. The key `task` selects the kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum Task {
    /// One run. A text without the key `task` is a run, too.
    Run(Box<RunSpec>),
    /// A test of the SNIA specification.
    Pts(Box<PtsTask>),
    /// The sequential to random ratio of a target, its capacity, or its map of latencies.
    Profile(Box<ProfileTask>),
    /// Results and targets side by side.
    Compare(Box<CompareTask>),
    /// Many designs: varied keys of a run, as one table.
    Sweep(Box<SweepPlan>),
    /// A run on several hosts in steps. A text with `clients` is a plan, too.
    Plan(Box<ClusterPlan>),
    /// Writes blocks and checks that reads return them, or checks a target after a crash.
    #[cfg(target_os = "linux")]
    Verify(Box<VerifyTask>),
    /// Samples the state of this machine.
    #[cfg(target_os = "linux")]
    Probe(ProbeTask),
}

impl Task {
    /// Its kind, as in the key `task`.
    pub fn kind(&self) -> &'static str {
        match self {
            Task::Run(_) => "run",
            Task::Pts(_) => "pts",
            Task::Profile(_) => "profile",
            Task::Compare(_) => "compare",
            Task::Sweep(_) => "sweep",
            Task::Plan(_) => "plan",
            #[cfg(target_os = "linux")]
            Task::Verify(_) => "verify",
            #[cfg(target_os = "linux")]
            Task::Probe(_) => "probe",
        }
    }

    /// Its target, if it loads one named target; a probe loads nothing.
    pub fn target(&self) -> Option<&str> {
        match self {
            Task::Run(run) => run.target.as_deref(),
            Task::Pts(pts) => Some(&pts.target),
            Task::Profile(profile) => Some(&profile.target),
            Task::Compare(_) => None,
            Task::Sweep(sweep) => sweep.run.target.as_deref(),
            Task::Plan(plan) => plan.load.target.as_deref(),
            #[cfg(target_os = "linux")]
            Task::Verify(verify) => Some(&verify.target),
            #[cfg(target_os = "linux")]
            Task::Probe(_) => None,
        }
    }

    /// Target and load of the task in few words; the target is empty where there are several or none.
    pub fn outline(&self, prepared: &PreparedTask) -> (String, String) {
        match prepared.run() {
            Some(plan) => (plan.target(), plan.load().to_owned()),
            None => (self.target().unwrap_or_default().to_owned(), self.kind().to_owned()),
        }
    }

    /// The name of the directory of its results, unless the user gives another one.
    pub fn folder_name(&self, prepared: &PreparedTask) -> String {
        let (target, load) = self.outline(prepared);
        let of = match (self, target.as_str()) {
            // A directory needs a name for sorting and searching. Several targets have no
            // common name, and a probe is about the machine.
            (Task::Compare(_) | Task::Sweep(_), "") => "runs",
            (_, "") => "machine",
            (_, target) => target,
        };
        RunDirectory::default_name(of, &load, self.seed(), SystemTime::now())
    }

    /// Random seed, where one is drawn from and given.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Task::Run(run) => Some(run.seed),
            Task::Pts(pts) => Some(pts.seed),
            Task::Profile(profile) => profile.seed,
            Task::Compare(compare) => Some(compare.run.seed),
            Task::Sweep(sweep) => Some(sweep.run.seed),
            Task::Plan(plan) => Some(plan.load.seed),
            #[cfg(target_os = "linux")]
            Task::Verify(verify) => verify.resume.is_none().then_some(verify.seed),
            #[cfg(target_os = "linux")]
            Task::Probe(_) => None,
        }
    }

    /// Checks everything that can be checked beforehand. `prompt` is asked before a real target may be written to;
    /// no later step asks.
    ///
    /// # Errors
    /// A key has an impossible value, there is no such target, or it may not be written to.
    pub fn prepare(&self, prompt: &mut dyn Prompt) -> Result<PreparedTask, Failure> {
        match self {
            Task::Run(spec) => run::prepare(spec, None, prompt),
            Task::Pts(pts) => pts.prepare(prompt),
            Task::Profile(profile) => profile.prepare(prompt),
            Task::Compare(compare) => compare.prepare(prompt),
            Task::Sweep(plan) => sweep::prepare(plan, prompt),
            // A plan needs addresses and identities, which only the caller has. The message
            // names the two front ends that have them.
            Task::Plan(_) => Err(Failure::usage("a plan needs hosts, and how they are reached")
                .with_help("start it with `ssdyno controller run` or on the page")
                .with_key("task")),
            #[cfg(target_os = "linux")]
            Task::Verify(verify) => verify.prepare(prompt),
            #[cfg(target_os = "linux")]
            Task::Probe(probe) => probe.prepare(),
        }
    }

    /// The same on other hosts, which look at their targets when the task starts. A plan names its own: `hosts` has no
    /// addresses then.
    ///
    /// # Errors
    /// Only runs and plans are started on other hosts; a host is named twice.
    pub fn prepare_on(
        &self,
        hosts: Hosts,
        prompt: &mut dyn Prompt,
    ) -> Result<PreparedTask, Failure> {
        match self {
            Task::Run(spec) => run::prepare(spec, Some(hosts), prompt),
            Task::Plan(plan) => plan::prepare(plan, hosts),
            // Other tasks depend on the results of their own loads. They would have to run on the other
            // host as a whole, and a worker does not do that.
            _ => Err(Failure::usage("only runs can start on other hosts")
                .with_help("leave `hosts` empty, or start a page on that host")
                .with_key("hosts")),
        }
    }
}
