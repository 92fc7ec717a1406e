//! A plan under way: its steps, one after the other, and the files that each leaves.

use std::path::Path;

use ssdyno_figures::{KeepGoing, Provenance};
use ssdyno_report::ResultError;
use ssdyno_session::{Failure, FailureKind, Measured, ResultFolder, record_provenance, unwritable};

use crate::controller::ReachedHosts;
use crate::load::Hosts;
use crate::plan::{PlanFile, PlannedStep};
use crate::plan_result::{PlanResult, StepResult};
use crate::progress::ClusterProgress;

/// A plan whose hosts are connected. The front end calls [`step`](PlanRun::step) until [`next`](PlanRun::next) has none.
#[derive(Debug)]
pub struct PlanRun {
    file: PlanFile,
    reached: ReachedHosts,
    /// Where its files go, and what its report is called.
    place: Option<(ResultFolder, String)>,
    steps: Vec<StepResult>,
    failure: Option<Failure>,
    is_over: bool,
}

/// How a plan ended.
#[derive(Debug)]
pub struct PlanOutcome {
    /// The steps that were carried out.
    pub result: PlanResult,
    /// The reason why it is not a success, if it failed.
    pub failure: Option<Failure>,
    /// Where its files are; `None` without steps or without a place.
    pub folder: Option<ResultFolder>,
}

impl PlanRun {
    /// Connects to all hosts of `file`, which are reached and sampled as `hosts` says: all are there, or nothing is
    /// loaded. `watch` may stop that.
    ///
    /// # Errors
    /// A host cannot be reached, or has another version.
    pub fn open(
        file: PlanFile,
        hosts: &Hosts,
        watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
    ) -> Result<PlanRun, Failure> {
        let hosts = Hosts { addresses: file.hosts.clone(), ..hosts.clone() };
        let reached = ReachedHosts::open(&hosts, watch)?;
        Ok(PlanRun { file, reached, place: None, steps: Vec::new(), failure: None, is_over: false })
    }

    /// Lets files be written into `folder`, with a report called `title`.
    pub fn keep_in(&mut self, folder: ResultFolder, title: String) {
        self.place = Some((folder, title));
    }

    /// The step that is carried out next; `None` at the end.
    pub fn next(&self) -> Option<&PlannedStep> {
        self.file.steps.get(self.steps.len()).filter(|_| !self.is_over)
    }

    /// How many steps the plan has.
    pub fn step_count(&self) -> usize {
        self.file.steps.len()
    }

    /// Carries out the next step, and writes it with the table so far: whatever ends this program takes no step that was
    /// measured. A step that cannot be carried out is in the result with its error. `watch` may stop the step, and the
    /// plan with it; `is_stopped` is asked once more at the end of the step. `began` is the provenance of the step.
    pub fn step(
        &mut self,
        began: Provenance,
        is_stopped: impl FnOnce() -> bool,
        watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
    ) {
        let Some(step) = self.next().cloned() else { return };
        let mut measured = self.reached.run(&step.load, watch);
        if let Ok(measured) = &mut measured {
            record_provenance(&mut measured.result, began);
        }
        // An interrupt before the load began leaves no figures. The step is not added to the result, so `next`
        // and the table agree on how many steps were carried out.
        match measured {
            Err(failure) if failure.kind == FailureKind::Interrupted => {
                (self.failure, self.is_over) = (Some(failure), true);
                return;
            }
            measured => self.take(&step, measured),
        }
        // The step may end on its own just when the user interrupts. This second question keeps the
        // plan from starting the next step in that case.
        if is_stopped() {
            let message = format!("interrupted in step {} of {}", step.number, self.step_count());
            self.failure = Some(Failure::new(FailureKind::Interrupted, message));
            self.is_over = true;
        }
    }

    fn take(&mut self, step: &PlannedStep, measured: Result<Measured, Failure>) {
        let mut directory = None;
        if let (Some((folder, _)), Ok(measured)) = (&self.place, &measured) {
            // A step that cannot be written does not end the plan: the figures stay in memory,
            // and the next attempt may find free space.
            match write_step(folder.path(), step, measured) {
                Ok(name) => directory = Some(name),
                Err(failure) => self.failure = Some(failure),
            }
        }
        self.steps.push(StepResult::of(step, measured.as_ref(), directory));
        // The table is written again after each step. A plan may run for days, and a loss of
        // power must not take the steps that are done.
        if let Some((folder, title)) = &self.place
            && let Err(error) = self.result().write(folder, title)
        {
            self.failure = Some(unwritable(&error));
        }
        let wrong = measured.map_or_else(Some, |measured| measured.failure);
        self.failure = self.failure.take().or(wrong);
    }

    /// The measurements until now.
    pub fn result(&self) -> PlanResult {
        PlanResult::new(self.file.plan.clone(), self.step_count(), self.steps.clone())
    }

    /// The measured result, and why it is not a success. A folder without a step is removed.
    pub fn end(self) -> PlanOutcome {
        let result = self.result();
        let folder = self.place.map(|(folder, _)| folder).filter(|folder| {
            // A folder without a step has no readers. The failure on the screen already gives the
            // reason.
            let is_empty = result.steps.is_empty();
            if is_empty {
                folder.remove();
            }
            !is_empty
        });
        PlanOutcome { result, failure: self.failure, folder }
    }
}

impl PlanResult {
    /// Writes the table as `steps.csv`, the report as `title`, and the figures into `folder`; gives the place.
    ///
    /// # Errors
    /// The first file that cannot be written; the others are there.
    pub fn write(&self, folder: &ResultFolder, title: &str) -> Result<String, ResultError> {
        let csv = self.csv();
        let written = folder.write_texts([("steps.csv".to_owned(), csv.as_str())]);
        let place = folder.write_page(&self.html(title), self)?;
        written.map(|_| place)
    }
}

/// Writes the result of a step into a directory of its own; gives its name.
fn write_step(
    directory: &Path,
    step: &PlannedStep,
    measured: &Measured,
) -> Result<String, Failure> {
    // The name comes from the user. Only letters and digits stay, so no name can lead out of the
    // directory, hide a file, or break a link in the report.
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = step.name.chars().take(40).map(plain).collect();
    // The number comes first, so that a listing of the directory has the order of the plan, and
    // two steps with the same name have two directories.
    let name = format!("{:03}-{name}", step.number);
    let folder = ResultFolder::create(directory, &name)?;
    let written = folder.write_run(&measured.result, &measured.recording, false);
    written.map_err(|error| unwritable(&error))?;
    Ok(name)
}
