//! One run in progress: its start, its progress, its stop, and its result. The same for virtual and for wall time.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_engine::events::EventReader;
use ssdyno_figures::{KeepGoing, LiveSnapshot, RunProgress, RunStart, Supervisor};

use crate::failure::{Failure, FailureKind};
use crate::prepare::{Measured, Prepared};

/// Longer than anybody waits for a run to begin: a hundred years.
const FAR_AWAY: Duration = Duration::from_secs(100 * 366 * 86_400);

/// When a run is to begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BeginAt {
    /// As soon as it is ready.
    Once,
    /// At this moment by the wall's clock as it is now: several runs, in several processes, begin together. A
    /// simulation, whose time is its own, begins as soon as it is ready.
    Moment(SystemTime),
    /// The same by the monotonic clock, which cannot be set.
    Instant(Instant),
}

/// The phase of a run.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// The run prepares the device and opens the target.
    #[default]
    Preparing,
    /// The run is ready for the first request, which waits for [`Runner::begin`] or for the given start time.
    Ready,
    /// The load is running.
    Loaded,
    /// The run has ended: [`Runner::result`] does not wait.
    Ended,
}

/// The phase of a run, with its figures so far. All viewers see the same snapshots.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunSnapshot {
    /// Number of the snapshot, ascending. Two snapshots with the same number are equal.
    pub sequence: u64,
    /// The phase of the run.
    pub phase: RunPhase,
    /// Requests so far, and the clock of the device. `glance` has the last distributions that [`Runner::look`] asked
    /// for, and the time of the sample.
    pub progress: RunProgress,
}

/// A run under way, on a thread of its own. It prepares itself at once, and begins when it is told to.
///
/// Dropped, it is stopped and waited for: no target is loaded behind anybody's back.
pub struct Runner {
    prepared: Arc<Prepared>,
    control: Arc<RunControl>,
    /// `None` once its result was taken.
    thread: Option<JoinHandle<Result<Measured, Failure>>>,
}

impl Runner {
    /// Starts to prepare the run; `reader` hears of every event of a simulated device and its host.
    pub(crate) fn start(
        prepared: Prepared,
        mut reader: Option<Box<dyn EventReader + Send>>,
    ) -> Result<Runner, Failure> {
        let (prepared, control) = (Arc::new(prepared), Arc::new(RunControl::default()));
        let (run, supervisor) = (Arc::clone(&prepared), Arc::clone(&control));
        let carry_out = move || {
            let reader = reader.as_mut().map(|reader| &mut **reader as &mut dyn EventReader);
            supervisor.carry_out(&run, reader)
        };
        let thread = std::thread::Builder::new().name("run".to_owned()).spawn(carry_out);
        let thread = thread.map_err(|error| {
            let message = format!("cannot start a thread for the run: {error}");
            Failure::new(FailureKind::Failed, message).with_help("raise `ulimit -u`")
        })?;
        Ok(Runner { prepared, control, thread: Some(thread) })
    }

    /// What is run.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// Lets it begin, now or at a moment. It may be called before the run is ready; the first call counts. A moment
    /// that is over when the run is ready is now, and the result says how late it was.
    pub fn begin(&self, at: BeginAt) {
        let start = match at {
            BeginAt::Once => RunStart::Now,
            BeginAt::Instant(moment) => RunStart::At(moment),
            // From here on a wall clock that is set changes nothing.
            BeginAt::Moment(moment) => {
                let now = Instant::now();
                RunStart::At(match moment.duration_since(SystemTime::now()) {
                    // Beyond what the clock can count is never, as far as anybody can wait.
                    Ok(to_come) => now.checked_add(to_come).unwrap_or(now + FAR_AWAY),
                    Err(over) => now.checked_sub(over.duration()).unwrap_or(now),
                })
            }
        };
        self.control.change(|state| {
            state.start.get_or_insert(start);
        });
    }

    /// How far it is. It never waits.
    pub fn poll(&self) -> RunSnapshot {
        self.control.snapshot()
    }

    /// How far it is, as soon as it is in another phase than `seen`, or after `timeout`.
    pub fn wait(&self, seen: RunPhase, timeout: Duration) -> RunSnapshot {
        let state = self.control.state();
        let waited = self.control.bell.wait_timeout_while(state, timeout, |s| s.phase == seen);
        waited.unwrap_or_else(PoisonError::into_inner).0.snapshot()
    }

    /// Asks for the distributions so far, which some later snapshot has. They cost some microseconds.
    pub fn look(&self) {
        self.control.state().look = true;
    }

    /// Stops it in an orderly way: it issues no more requests, waits for those in flight, and keeps the measured
    /// figures. A run that has not begun ends without a result.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Waits for the end and gives what was measured. A run that was not told when to begin begins at once.
    ///
    /// # Errors
    /// The run could not start, or was stopped before it began. A later error is in
    /// [`Measured::failure`], with the measured figures.
    pub fn result(mut self) -> Result<Measured, Failure> {
        self.begin(BeginAt::Once);
        self.join()
    }

    fn join(&mut self) -> Result<Measured, Failure> {
        let lost = || Failure::new(FailureKind::Failed, "the result of the run was taken");
        let ended = self.thread.take().map(JoinHandle::join).ok_or_else(lost)?;
        // A panic of the run is one of whoever wants its result.
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
            // The result is not needed, and a panic has already been reported.
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("run", &self.prepared.name()).finish_non_exhaustive()
    }
}

/// The messages between a run and its watchers.
#[derive(Debug, Default)]
pub(crate) struct RunControl {
    state: Mutex<State>,
    /// Rings when the phase changes, and when something is asked of the run.
    bell: Condvar,
}

#[derive(Debug)]
struct State {
    sequence: u64,
    phase: RunPhase,
    progress: RunProgress,
    /// The last distributions. They stay for every viewer until newer ones come.
    glance: Option<Arc<LiveSnapshot>>,
    start: Option<RunStart>,
    stopped: bool,
    look: bool,
}

impl Default for State {
    fn default() -> State {
        let (progress, phase) = (RunProgress::preparing(0.0), RunPhase::Preparing);
        let (sequence, glance, start) = (0, None, None);
        State { sequence, phase, progress, glance, start, stopped: false, look: false }
    }
}

impl State {
    fn snapshot(&self) -> RunSnapshot {
        let (sequence, glance) = (self.sequence, self.glance.clone());
        let progress = RunProgress { glance, ..self.progress };
        RunSnapshot { sequence, phase: self.phase, progress }
    }
}

impl RunControl {
    /// For a run that begins as soon as it is ready.
    pub(crate) fn begun() -> RunControl {
        let state = State { start: Some(RunStart::Now), ..State::default() };
        RunControl { state: Mutex::new(state), bell: Condvar::new() }
    }

    /// Carries out `run` on this thread.
    pub(crate) fn carry_out(
        &self,
        run: &Prepared,
        reader: Option<&mut dyn EventReader>,
    ) -> Result<Measured, Failure> {
        // Whatever the result, a waiting thread must be woken.
        let _ended = EndedOnDrop(self);
        run.carry_out(reader, &mut &*self)
    }

    pub(crate) fn stop(&self) {
        self.change(|state| state.stopped = true);
    }

    pub(crate) fn phase(&self) -> RunPhase {
        self.state().phase
    }

    pub(crate) fn snapshot(&self) -> RunSnapshot {
        self.state().snapshot()
    }

    /// A panic elsewhere leaves the state whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.sequence += 1;
        drop(state);
        self.bell.notify_all();
    }
}

impl Supervisor for &RunControl {
    fn ready(&mut self) -> RunStart {
        self.change(|state| state.phase = RunPhase::Ready);
        let waiting = |state: &mut State| state.start.is_none() && !state.stopped;
        let state = self.bell.wait_while(self.state(), waiting);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if state.stopped { RunStart::Never } else { state.start.unwrap_or(RunStart::Now) }
    }

    fn report(&mut self, progress: &RunProgress) -> KeepGoing {
        let mut state = self.state();
        let begins = progress.preparing.is_none() && state.phase != RunPhase::Loaded;
        if progress.glance.is_some() {
            state.glance.clone_from(&progress.glance);
        }
        state.progress = RunProgress { glance: None, ..*progress };
        state.sequence += 1;
        if begins {
            state.phase = RunPhase::Loaded;
            self.bell.notify_all();
        }
        match (state.stopped, std::mem::take(&mut state.look)) {
            (true, _) => KeepGoing::Stop,
            (false, true) => KeepGoing::LiveSnapshot,
            (false, false) => KeepGoing::Continue,
        }
    }
}

/// Says that a run is over, however it ended.
struct EndedOnDrop<'a>(&'a RunControl);

impl Drop for EndedOnDrop<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.phase = RunPhase::Ended);
    }
}
