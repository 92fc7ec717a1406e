//! Loads one after the other: what capacity profiles, maps and lanes have in common.

use std::time::{Duration, Instant};

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_figures::{KeepGoing, RunProgress, RunResult, Warning};
use ssdyno_session::{KeptTarget, Observer, Stage};
use ssdyno_workload::WorkloadConfig;

use crate::credits::credits_of;
use crate::error::ProfileError;
use crate::plan::ProfilePlan;
use crate::result::ProfileResult;
use crate::stopped::StoppedBecause;

/// Time on the wall between two checkpoints.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);

/// A load, or no time for it.
pub(crate) type Timed<T> = Result<Option<T>, ProfileError>;

/// When a profile is kept next.
#[derive(Debug)]
pub(crate) struct Checkpoint(Instant);

impl Checkpoint {
    pub(crate) fn new() -> Checkpoint {
        Checkpoint(Instant::now())
    }

    /// Whether it is time, once each time.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.0.elapsed() >= CHECKPOINT_EVERY;
        if due {
            self.0 = Instant::now();
        }
        due
    }
}

/// Loads `target` while `observer` watches; true with the result where the load did not come to its end.
pub(crate) fn watched(
    target: &mut KeptTarget,
    observer: &mut dyn Observer<ProfileResult>,
    stage: &Stage,
    load: &WorkloadConfig,
    seed: u64,
    length: Option<Time>,
) -> Result<(RunResult, bool), ProfileError> {
    let mut interrupted = false;
    let mut watch = |progress: &RunProgress| {
        let flow = observer.under_way(stage, progress);
        interrupted |= flow == KeepGoing::Stop;
        flow
    };
    // A load may end before the first report of progress. Without this look an interrupt would
    // wait for the first load that is long enough to report.
    if watch(&RunProgress::default()) == KeepGoing::Stop {
        return Err(ProfileError::Interrupted);
    }
    let result = target.load(load, seed, length, &mut watch)?;
    let interrupted = interrupted || result.partial;
    Ok((result, interrupted))
}

/// Why a profile ended, and the error that ended it; the error alone where nothing was measured before it.
pub(crate) fn ended(
    how: Result<StoppedBecause, ProfileError>,
    nothing_measured: bool,
) -> Result<(StoppedBecause, Option<ProfileError>), ProfileError> {
    match how {
        Ok(stopped) => Ok((stopped, None)),
        Err(ProfileError::Interrupted) => {
            Ok((StoppedBecause::Interrupted, Some(ProfileError::Interrupted)))
        }
        // Without a measurement there is no result to keep. The caller gets the error alone, as
        // if the profile had not begun.
        Err(error) if nothing_measured => Err(error),
        Err(error) => Ok((StoppedBecause::Failed, Some(error))),
    }
}

/// The target of a profile whose loads differ from the tests of the paper, and the times of these
/// loads.
pub(crate) struct Loads<'a> {
    pub(crate) plan: &'a ProfilePlan,
    pub(crate) target: &'a mut KeptTarget,
    pub(crate) observer: &'a mut dyn Observer<ProfileResult>,
    pub(crate) is_real: bool,
    pub(crate) span: u64,
    /// Bytes of the span that were written in a row.
    pub(crate) filled: u64,
    /// Seconds on the clock of the device.
    pub(crate) spent: f64,
    pub(crate) done: u64,
    began: Instant,
    pub(crate) notes: Vec<String>,
    /// What the last load that used burst credits says of them.
    pub(crate) credits: Option<Warning>,
    pub(crate) checkpoint: Checkpoint,
}

impl Loads<'_> {
    pub(crate) fn new<'a>(
        plan: &'a ProfilePlan,
        target: &'a mut KeptTarget,
        observer: &'a mut dyn Observer<ProfileResult>,
        (span, notes): (u64, Vec<String>),
    ) -> Loads<'a> {
        Loads {
            plan,
            is_real: target.is_real(),
            target,
            observer,
            span,
            filled: 0,
            spent: 0.0,
            done: 0,
            began: Instant::now(),
            notes,
            credits: None,
            checkpoint: Checkpoint::new(),
        }
    }

    /// The size of requests of `bytes`: a sector or more.
    pub(crate) fn request_bytes(&self, bytes: u64) -> u64 {
        bytes.max(u64::from(self.target.facts().sector_bytes))
    }

    /// Refuses a span without room for four requests of `large` bytes.
    pub(crate) fn check_span(&self, large: u64) -> Result<(), ProfileError> {
        if self.span >= 4 * large {
            return Ok(());
        }
        let what = format!("a span of {} is too small for its loads", Bytes(self.span));
        Err(ProfileError::plan(what, format!("use {} or more", Bytes(4 * large))))
    }

    /// Every load has an order of its own, the same in every profile with this seed.
    pub(crate) fn seed(&self) -> u64 {
        self.plan.seed.wrapping_mul(1_000_003).wrapping_add(self.done)
    }

    /// Loads the target for `length` seconds, which count as `least` or more; does nothing if the time limit comes
    /// first. About `of` loads there will be.
    pub(crate) fn carry(
        &mut self,
        what: String,
        of: u64,
        load: &WorkloadConfig,
        length: f64,
        least: f64,
    ) -> Timed<RunResult> {
        let limit = self.plan.time.map_or(f64::INFINITY, |limit| limit.as_s_f64());
        // A load that does not fit into the time is not begun. A shorter load would have
        // another share of start and end than the figure is computed for.
        if self.spent + length > limit {
            return Ok(None);
        }
        let stage = Stage { what, done: self.done, of: of.max(self.done + 1) };
        let time = Time::from_ns((length * 1e9) as u64);
        let seed = self.seed();
        let (result, interrupted) =
            watched(self.target, self.observer, &stage, load, seed, Some(time))?;
        self.done += 1;
        self.credits = credits_of(&result).or(self.credits.take());
        // The lead of a point of a map is not recorded and not in `simulated_seconds`, but it
        // takes time on the device. `least` makes it count.
        self.spent += result.simulated_seconds.max(least);
        if interrupted {
            return Err(ProfileError::Interrupted);
        }
        if result.errors > 0 {
            let (test, target) = (stage.what, self.plan.target.clone());
            return Err(ProfileError::Requests { errors: result.errors, test, target });
        }
        Ok(Some(result))
    }

    /// A result without figures.
    pub(crate) fn result(&self, stopped_because: StoppedBecause) -> ProfileResult {
        ProfileResult {
            span_bytes: self.span,
            seconds_spent: self.spent,
            wall_seconds: self.began.elapsed().as_secs_f64(),
            notes: self.notes.clone(),
            ..ProfileResult::empty(self.plan, stopped_because)
        }
    }
}
