//! A task under way, on a thread of its own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_cluster::{ClusterProgress, Job, JobPlan, PlanResult};
use ssdyno_engine::events::EventReader;
use ssdyno_figures::{KeepGoing, RunProgress};
use ssdyno_profile::ProfileResult;
use ssdyno_pts::PtsResult;
use ssdyno_session::{Failure, Measured, Observer, ProgramIdentity, RunPhase, Stage};
use ssdyno_sweep::SweepResult;

use crate::compare::CompareResult;
use crate::run::RunUnderWay;

/// What a task measured.
#[derive(Debug)]
pub enum TaskResult {
    /// Of a run.
    Run(Box<Measured>),
    /// Of a test of the SNIA specification.
    Pts(Box<PtsResult>),
    /// Of a profile.
    Profile(Box<ProfileResult>),
    /// Of runs side by side.
    Compare(Box<CompareResult>),
    /// Of a sweep over designs.
    Sweep(Box<SweepResult>),
    /// Of a plan of many steps on hosts.
    Plan(Box<PlanResult>),
    /// Of a verification.
    #[cfg(target_os = "linux")]
    Verify(Box<ssdyno_verify::VerifyReport>),
    /// The samples of the machine, in order.
    #[cfg(target_os = "linux")]
    Probe(Vec<ssdyno_bench::probe::Sample>),
}

/// How a task ended.
#[derive(Debug)]
pub struct TaskOutcome {
    /// The measurements until the end, early or not.
    pub result: TaskResult,
    /// Why the task is not a success, if it is none.
    pub failure: Option<Failure>,
}

/// Progress of a task. All viewers see the same snapshots.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TaskSnapshot {
    /// Number of the snapshot, ascending: a snapshot with a higher number is newer. The figures of two snapshots with the
    /// same number are equal.
    pub sequence: u64,
    /// Whether the task has begun, and whether it is over.
    pub phase: RunPhase,
    /// The current step, such as `round 3, 4 KiB R/W 65/35`.
    pub step: String,
    /// Parts of the task that are done: requests of a run, loads, blocks or samples.
    pub done: u64,
    /// Maximum number of parts; a task may end earlier. 0 if not yet known.
    pub of: u64,
    /// Share of the work that is done, from 0 to 1, if known.
    pub share_done: Option<f64>,
    /// The current load; without requests if the task has no loads of its own.
    pub progress: RunProgress,
    /// Each host of a run, and its machine.
    #[serde(default)]
    pub hosts: ClusterProgress,
    /// Blocks with wrong data, in a verification.
    pub faults: Option<u64>,
}

/// Carries a task out.
type CarryOut = dyn FnOnce(&TaskControl) -> Result<TaskOutcome, Failure> + Send;

/// A task that can start: everything that can be found wrong beforehand was found right.
pub struct PreparedTask {
    name: String,
    writes_to: Vec<String>,
    /// Whoever records the provenance of runs.
    program: Option<ProgramIdentity>,
    work: Work,
}

enum Work {
    /// A run has a runner of its own already: a thread that only looks at it would take time from the load.
    Run(Box<JobPlan>, Option<Box<dyn EventReader + Send>>),
    /// Where it keeps what going on later needs, and what it does.
    Other(Option<PathBuf>, Box<CarryOut>),
}

impl fmt::Debug for PreparedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PreparedTask");
        shown.field("name", &self.name).field("writes_to", &self.writes_to).finish_non_exhaustive()
    }
}

impl PreparedTask {
    pub(crate) fn new(
        name: String,
        writes_to: Vec<String>,
        carry_out: impl FnOnce(&TaskControl) -> Result<TaskOutcome, Failure> + Send + 'static,
    ) -> PreparedTask {
        // The folder comes later, if at all: a front end that stores
        // nothing never calls `keep_in`.
        let work = Work::Other(None, Box::new(carry_out));
        PreparedTask { name, writes_to, program: None, work }
    }

    pub(crate) fn of_run(plan: JobPlan, writes_to: Vec<String>) -> PreparedTask {
        let name = plan.name();
        let work = Work::Run(Box::new(plan), None);
        PreparedTask { name, writes_to, program: None, work }
    }

    /// The task in one line.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The real targets of this machine that the task would write to.
    pub fn writes_to(&self) -> &[String] {
        &self.writes_to
    }

    /// The run, if the task is one: its target, its hosts, what it works towards.
    pub fn run(&self) -> Option<&JobPlan> {
        match &self.work {
            Work::Run(plan, _) => Some(plan),
            Work::Other(..) => None,
        }
    }

    /// Lets a task keep in `folder`, that of its results, what cannot wait for its end: a run its rows, a task that
    /// takes long what going on later needs.
    pub fn keep_in(&mut self, folder: PathBuf) {
        match &mut self.work {
            Work::Run(plan, _) => plan.keep_rows_in(folder),
            Work::Other(place, _) => *place = Some(folder),
        }
    }

    /// Lets `reader` hear of every event of a simulated device of this machine, if the task is a run.
    pub fn read_by(&mut self, reader: Box<dyn EventReader + Send>) {
        if let Work::Run(_, place) = &mut self.work {
            *place = Some(reader);
        }
    }

    /// Lets a run have its provenance in its result, with `program`. Otherwise it has none: equal runs are equal to the last
    /// byte then.
    pub fn record_provenance(&mut self, program: ProgramIdentity) {
        self.program = Some(program);
    }

    /// Starts the task.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(self) -> Result<TaskRunner, Failure> {
        let name = self.name;
        let (folder, carry_out) = match self.work {
            Work::Run(mut plan, reader) => {
                let goal = plan.goal();
                // The provenance is read before the start. Its reading looks at the target and the machine,
                // and that must not fall into the measured time.
                let provenance = self.program.map(|program| Box::new(plan.provenance(&program)));
                if let Some(provenance) = &provenance {
                    plan.keep_provenance(provenance);
                }
                let run = RunUnderWay { goal, job: Some(plan.start(reader)?), provenance };
                return Ok(TaskRunner { name, work: Running::Run(run) });
            }
            Work::Other(folder, carry_out) => (folder, carry_out),
        };
        let control =
            Arc::new(TaskControl { folder, program: self.program, ..TaskControl::default() });
        let mine = Arc::clone(&control);
        let run = move || {
            // The guard also runs after a panic. A waiter for the end would otherwise wait forever.
            let _ended = EndedOnDrop(&mine);
            carry_out(&mine)
        };
        let thread = std::thread::Builder::new().name("task".to_owned()).spawn(run);
        let thread = thread.map_err(|error| {
            let message = format!("cannot start a thread for the task: {error}");
            Failure::failed(message).with_help("raise `ulimit -u`")
        })?;
        Ok(TaskRunner { name, work: Running::Other(control, Some(thread)) })
    }
}

/// A task under way.
///
/// Dropped, it is stopped and waited for, except where its target hangs.
#[derive(Debug)]
pub struct TaskRunner {
    name: String,
    work: Running,
}

#[derive(Debug)]
enum Running {
    Run(RunUnderWay),
    /// The thread is `None` once its result was taken.
    Other(Arc<TaskControl>, Option<JoinHandle<Result<TaskOutcome, Failure>>>),
}

impl TaskRunner {
    /// The task in one line.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How far it is. It never waits.
    pub fn poll(&self) -> TaskSnapshot {
        match &self.work {
            Running::Run(run) => run.snapshot(Job::progress),
            Running::Other(control, _) => control.state().snapshot.clone(),
        }
    }

    /// How far it is, as soon as it is in another phase than `seen`, or after `timeout`. Of a run on other hosts only
    /// the end is waited for.
    pub fn wait(&self, seen: RunPhase, timeout: Duration) -> TaskSnapshot {
        match &self.work {
            Running::Run(run) => run.snapshot(|job| job.wait(seen, timeout)),
            Running::Other(control, _) => {
                // Only a change of the phase ends the wait. The counters change many times a second, and
                // waking for each would take time from the load.
                let same = |state: &mut State| state.snapshot.phase == seen;
                let waited = control.bell.wait_timeout_while(control.state(), timeout, same);
                waited.unwrap_or_else(PoisonError::into_inner).0.snapshot.clone()
            }
        }
    }

    /// Asks for the distributions so far of a run, which some later snapshot has. They cost some microseconds.
    pub fn look(&self) {
        if let Running::Run(RunUnderWay { job: Some(job), .. }) = &self.work {
            job.look();
        }
    }

    /// Takes what was measured since the last call, for a front end that stores or prints it before the end: of a
    /// SNIA test everything so far, marked partial, after each round; of a profile the same, every few seconds; of a plan the
    /// same, after each step; of a probe its samples, which the result then does not have.
    pub fn take_partial(&self) -> Option<TaskResult> {
        match &self.work {
            Running::Run(_) => None,
            Running::Other(control, _) => control.state().partial.take(),
        }
    }

    /// Stops the task in an orderly way: it issues no more requests, waits for those in flight, and keeps the measured
    /// figures.
    pub fn stop(&self) {
        match &self.work {
            Running::Run(run) => run.job.iter().for_each(Job::stop),
            Running::Other(control, _) => control.change(|state| state.stopped = true),
        }
    }

    /// Why the task will never end: its target does not complete requests. Threads that wait for such a target
    /// cannot be taken back; they end with the process, and [`result`](TaskRunner::result) would wait for them.
    pub fn hung(&self) -> Option<Failure> {
        match &self.work {
            // A run gives up requests that do not complete after a
            // timeout of its own, so it always ends.
            Running::Run(_) => None,
            Running::Other(control, _) => control.state().hung.clone(),
        }
    }

    /// Waits for the end and gives what was measured.
    ///
    /// # Errors
    /// Nothing was measured. A later error is in [`TaskOutcome::failure`].
    pub fn result(mut self) -> Result<TaskOutcome, Failure> {
        let lost = || Failure::failed("the result of the task was taken");
        let ended = match &mut self.work {
            Running::Run(run) => return run.result(),
            Running::Other(_, thread) => thread.take().map(JoinHandle::join).ok_or_else(lost)?,
        };
        // A panic of the task is a bug in this program. It continues in the thread that wants
        // the result, where the front end reports it.
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for TaskRunner {
    fn drop(&mut self) {
        let thread = match &mut self.work {
            // The job stops and waits in its own `drop`, so
            // nothing is left to do here.
            Running::Run(_) => None,
            Running::Other(_, thread) => thread.take(),
        };
        if let Some(thread) = thread {
            self.stop();
            // A thread that waits for a hung target cannot be joined. It is
            // left behind and ends with the process.
            if self.hung().is_none() {
                // The result of a dropped task is not needed, and the panic hook has already
                // printed a panic.
                let _ = thread.join();
            }
        }
    }
}

/// The messages between a task and its watchers.
#[derive(Debug, Default)]
pub(crate) struct TaskControl {
    state: Mutex<State>,
    /// Rings when the phase changes, and when the task is stopped.
    bell: Condvar,
    folder: Option<PathBuf>,
    program: Option<ProgramIdentity>,
}

#[derive(Debug, Default)]
struct State {
    snapshot: TaskSnapshot,
    partial: Option<TaskResult>,
    hung: Option<Failure>,
    stopped: bool,
}

impl TaskControl {
    /// A panic elsewhere leaves the state whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        // The number rises with every change, under the same lock. Two viewers with the
        // same number therefore have the same snapshot.
        state.snapshot.sequence += 1;
        drop(state);
        self.bell.notify_all();
    }

    /// Shows how far the task is; says whether to go on.
    pub(crate) fn report(&self, change: impl FnOnce(&mut TaskSnapshot)) -> KeepGoing {
        let mut stopped = false;
        self.change(|state| {
            // The first report begins the task for those who watch. There is no
            // separate call that a task could forget.
            state.snapshot.phase = RunPhase::Loaded;
            change(&mut state.snapshot);
            let TaskSnapshot { done, of, .. } = state.snapshot;
            // `of` is a limit that may change while the task goes on. The share stays
            // between 0 and 1 for every pair of numbers.
            state.snapshot.share_done = (of > 0).then(|| (done as f64 / of as f64).clamp(0.0, 1.0));
            stopped = state.stopped;
        });
        if stopped { KeepGoing::Stop } else { KeepGoing::Continue }
    }

    /// Changes what [`TaskRunner::take_partial`] gives.
    pub(crate) fn keep(&self, change: impl FnOnce(&mut Option<TaskResult>)) {
        change(&mut self.state().partial);
    }

    /// Where to keep what going on later needs.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Whoever records the provenance of runs.
    pub(crate) fn program(&self) -> Option<&ProgramIdentity> {
        self.program.as_ref()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Says that the target hangs, or with `None` that it does not.
    #[cfg(target_os = "linux")]
    pub(crate) fn hang(&self, hung: Option<Failure>) {
        self.state().hung = hung;
    }

    /// Waits until `moment`, or until the task is stopped: then it is false.
    #[cfg(target_os = "linux")]
    pub(crate) fn wait_until(&self, moment: std::time::Instant) -> bool {
        let left = moment.saturating_duration_since(std::time::Instant::now());
        // The wait ends at once when the task is stopped. A plain sleep would let
        // Ctrl-C wait for a whole interval of samples.
        let going = |state: &mut State| !state.stopped;
        let waited = self.bell.wait_timeout_while(self.state(), left, going);
        !waited.unwrap_or_else(PoisonError::into_inner).0.stopped
    }
}

/// Shows viewers how far the measurement of a task is, and keeps its checkpoints as `kept` makes results of them.
pub(crate) struct Watch<'a, R> {
    pub(crate) control: &'a TaskControl,
    pub(crate) kept: fn(Box<R>) -> TaskResult,
}

impl<R: Clone> Observer<R> for Watch<'_, R> {
    fn under_way(&mut self, stage: &Stage, progress: &RunProgress) -> KeepGoing {
        self.control.report(|snapshot| {
            snapshot.step.clone_from(&stage.what);
            (snapshot.done, snapshot.of) = (stage.done, stage.of);
            snapshot.progress.clone_from(progress);
        })
    }

    fn checkpoint(&mut self, result: &R) {
        self.control.keep(|partial| *partial = Some((self.kept)(Box::new(result.clone()))));
    }
}

/// Says that a task is over, however it ended.
struct EndedOnDrop<'a>(&'a TaskControl);

impl Drop for EndedOnDrop<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.snapshot.phase = RunPhase::Ended);
    }
}
