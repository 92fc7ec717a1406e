//! A task under way, on a thread of its own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::compare::CompareResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_figures::{KeepGoing, RunProgress};
use ssdyno_profile::ProfileResult;
use ssdyno_pts::PtsResult;
use ssdyno_session::{Failure, FailureKind, RunPhase};
use ssdyno_sweep::{Sweep, SweepResult};

/// What a task measured.
#[derive(Clone, PartialEq, Debug)]
pub enum TaskResult {
    /// Of a test of the SNIA specification.
    Pts(Box<PtsResult>),
    /// Of a profile.
    Profile(Box<ProfileResult>),
    /// Of runs side by side.
    Compare(Box<CompareResult>),
    /// Of a sweep over designs.
    Sweep(Box<SweepResult>),
    /// Of a verification.
    #[cfg(target_os = "linux")]
    Verify(Box<ssdyno_verify::VerifyReport>),
    /// The samples of the machine, in order.
    #[cfg(target_os = "linux")]
    Probe(Vec<ssdyno_bench::probe::Sample>),
}

/// How a task ended.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskOutcome {
    /// What was measured until the end, early or not.
    pub result: TaskResult,
    /// Why the task is no success, if it is none.
    pub failure: Option<Failure>,
}

/// How far a task is. Any number of viewers see the same snapshots.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TaskSnapshot {
    /// Number of the snapshot, ascending; two with the same number are the same.
    pub sequence: u64,
    /// Whether the task has begun, and whether it is over.
    pub phase: RunPhase,
    /// The step under way, such as `round 3, 4 KiB R/W 65/35`.
    pub step: String,
    /// Parts of the task that are done: loads, blocks or samples.
    pub done: u64,
    /// Parts at most; a task may end earlier. 0 before it is known.
    pub of: u64,
    /// The load under way. Without requests where the task has no loads of its own.
    pub progress: RunProgress,
    /// Blocks that are not what was written, in a verification.
    pub faults: Option<u64>,
}

/// Carries a task out.
type CarryOut = dyn FnOnce(&TaskControl) -> Result<TaskOutcome, Failure> + Send;

/// A task that can start: everything that can be found wrong beforehand was found right.
pub struct PreparedTask {
    name: String,
    writes_to: Vec<String>,
    folder: Option<PathBuf>,
    carry_out: Box<CarryOut>,
}

impl From<Sweep> for PreparedTask {
    /// A sweep that goes on after it was cut off.
    fn from(sweep: Sweep) -> PreparedTask {
        crate::sweep::prepared(sweep)
    }
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
        PreparedTask { name, writes_to, folder: None, carry_out: Box::new(carry_out) }
    }

    /// The task in one line.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The real targets that the task would write to.
    pub fn writes_to(&self) -> &[String] {
        &self.writes_to
    }

    /// Lets a task that takes long and can go on later keep in `folder`, that of its results, what it needs for that.
    pub fn keep_in(&mut self, folder: PathBuf) {
        self.folder = Some(folder);
    }

    /// Starts the task.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(self) -> Result<TaskRunner, Failure> {
        let control = Arc::new(TaskControl { folder: self.folder, ..TaskControl::default() });
        let (mine, carry_out) = (Arc::clone(&control), self.carry_out);
        let run = move || {
            // Whatever becomes of it: who waits must be woken.
            let _ended = EndedOnDrop(&mine);
            carry_out(&mine)
        };
        let thread = std::thread::Builder::new().name("task".to_owned()).spawn(run);
        let thread = thread.map_err(|error| {
            let message = format!("cannot start a thread for the task: {error}");
            Failure::new(FailureKind::Failed, message).with_help("raise `ulimit -u`")
        })?;
        Ok(TaskRunner { name: self.name, control, thread: Some(thread) })
    }
}

/// A task under way.
///
/// Dropped, it is stopped and waited for, except where its target hangs.
pub struct TaskRunner {
    name: String,
    control: Arc<TaskControl>,
    /// `None` once its result was taken.
    thread: Option<JoinHandle<Result<TaskOutcome, Failure>>>,
}

impl fmt::Debug for TaskRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRunner").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TaskRunner {
    /// The task in one line.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How far it is. It never waits.
    pub fn poll(&self) -> TaskSnapshot {
        self.control.state().snapshot.clone()
    }

    /// How far it is, as soon as it is in another phase than `seen`, or after `timeout`.
    pub fn wait(&self, seen: RunPhase, timeout: Duration) -> TaskSnapshot {
        let same = |state: &mut State| state.snapshot.phase == seen;
        let waited = self.control.bell.wait_timeout_while(self.control.state(), timeout, same);
        waited.unwrap_or_else(PoisonError::into_inner).0.snapshot.clone()
    }

    /// Takes what was measured since the last call, for a front end that stores or prints it before the end: of a
    /// SNIA test everything so far, marked partial, after each round; of a profile the same, every few seconds; of a
    /// probe its samples, which the result then does not have.
    pub fn take_partial(&self) -> Option<TaskResult> {
        self.control.state().partial.take()
    }

    /// Stops the task in order: nothing more is issued, what is in flight is waited for, and what was measured is
    /// kept.
    pub fn stop(&self) {
        self.control.change(|state| state.stopped = true);
    }

    /// Why the task will never end: its target does not complete requests. Threads that wait for such a target
    /// cannot be taken back; they end with the process, and [`result`](TaskRunner::result) would wait for them.
    pub fn hung(&self) -> Option<Failure> {
        self.control.state().hung.clone()
    }

    /// Waits for the end and gives what was measured.
    ///
    /// # Errors
    /// Nothing was measured. What went wrong later is in [`TaskOutcome::failure`].
    pub fn result(mut self) -> Result<TaskOutcome, Failure> {
        let lost = || Failure::new(FailureKind::Failed, "the result of the task was taken");
        let ended = self.thread.take().map(JoinHandle::join).ok_or_else(lost)?;
        // A panic of the task is one of whoever wants its result.
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for TaskRunner {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stop();
            if self.hung().is_none() {
                // Nobody wants the result, and a panic has been told of.
                let _ = thread.join();
            }
        }
    }
}

/// What a task and those who watch it tell each other.
#[derive(Debug, Default)]
pub(crate) struct TaskControl {
    state: Mutex<State>,
    /// Rings when the phase changes, and when the task is stopped.
    bell: Condvar,
    folder: Option<PathBuf>,
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
        state.snapshot.sequence += 1;
        drop(state);
        self.bell.notify_all();
    }

    /// Shows how far the task is; says whether to go on.
    pub(crate) fn report(&self, change: impl FnOnce(&mut TaskSnapshot)) -> KeepGoing {
        let mut stopped = false;
        self.change(|state| {
            state.snapshot.phase = RunPhase::Loaded;
            change(&mut state.snapshot);
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
        let going = |state: &mut State| !state.stopped;
        let waited = self.bell.wait_timeout_while(self.state(), left, going);
        !waited.unwrap_or_else(PoisonError::into_inner).0.stopped
    }
}

/// Says that a task is over, however it ended.
struct EndedOnDrop<'a>(&'a TaskControl);

impl Drop for EndedOnDrop<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.snapshot.phase = RunPhase::Ended);
    }
}
