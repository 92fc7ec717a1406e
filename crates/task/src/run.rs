//! One run as a task: on this machine, or on others at once.

use ssdyno_cluster::{ClusterProgress, Hosts, Job, JobPlan};
use ssdyno_figures::Provenance;
use ssdyno_session::{Failure, Goal, Prompt, RunPhase, RunSpec, lost_rows, record_provenance};

use crate::runner::{PreparedTask, TaskOutcome, TaskResult, TaskSnapshot};

/// The run of `spec`, on `hosts` if some are named.
pub(crate) fn prepare(
    spec: &RunSpec,
    hosts: Option<Hosts>,
    prompt: &mut dyn Prompt,
) -> Result<PreparedTask, Failure> {
    let plan = JobPlan::new(spec, hosts, prompt)?;
    let writes_to = match &plan {
        // Each of the other hosts decides about its own targets, by the consent of its
        // owner. Only a target of this machine is listed.
        JobPlan::Here(run) if run.is_real() && run.asked().write.allowed => vec![run.name()],
        _ => Vec::new(),
    };
    Ok(PreparedTask::of_run(plan, writes_to))
}

/// A run under way.
#[derive(Debug)]
pub(crate) struct RunUnderWay {
    pub(crate) goal: Goal,
    /// `None` once its result was taken.
    pub(crate) job: Option<Job>,
    /// Found before it started, where it is recorded.
    pub(crate) provenance: Option<Box<Provenance>>,
}

impl RunUnderWay {
    /// How far it is, as `told` of the job.
    pub(crate) fn snapshot(&self, told: impl FnOnce(&Job) -> ClusterProgress) -> TaskSnapshot {
        let Some(job) = &self.job else { return TaskSnapshot::default() };
        // Whether the run is over is asked first. The progress that is read afterwards is then the final one;
        // in the other order the last report could be missed.
        let is_over = job.is_over();
        let hosts = told(job);
        let progress = hosts.merged();
        let phases = || hosts.hosts.iter().map(|(_, snapshot, _)| snapshot.phase);
        let phase = match is_over {
            true => RunPhase::Ended,
            // A host that is done may still have to send its record. The run
            // counts as loaded until that is here.
            false => phases().min().unwrap_or_default().min(RunPhase::Loaded),
        };
        TaskSnapshot {
            sequence: hosts.hosts.iter().map(|(_, snapshot, _)| snapshot.sequence).sum(),
            phase,
            done: progress.completed,
            of: self.goal.requests.unwrap_or(0),
            share_done: self.goal.share(&progress),
            progress,
            hosts,
            ..TaskSnapshot::default()
        }
    }

    pub(crate) fn result(&mut self) -> Result<TaskOutcome, Failure> {
        let lost = || Failure::failed("the result of the run was taken");
        let mut measured = self.job.take().ok_or_else(lost)?.result()?;
        if let Some(provenance) = self.provenance.take() {
            record_provenance(&mut measured.result, *provenance);
        }
        // Rows that could not be written are worse than the reason why the run ended: the user
        // asked for them and would look for them later.
        let failure = lost_rows(&measured.recording).or_else(|| measured.failure.clone());
        Ok(TaskOutcome { result: TaskResult::Run(Box::new(measured)), failure })
    }
}
