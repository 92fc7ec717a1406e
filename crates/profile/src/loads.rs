//! Loads one after the other: what capacity profiles, maps and lanes have in common.

use std::time::{Duration, Instant};

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_figures::{KeepGoing, RunProgress, RunResult, Warning};
use ssdyno_session::{Failure, FailureKind, KeptTarget, Observer, Stage};
use ssdyno_workload::WorkloadConfig;

use crate::credits::credits_of;
use crate::error::{interrupted, refused, requests_failed};
use crate::method::MethodName;
use crate::plan::ProfilePlan;
use crate::result::ProfileResult;
use crate::stopped::StoppedBecause;

/// Time on the wall between two checkpoints.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);

/// A load, or no time for it.
pub(crate) type Timed<T> = Result<Option<T>, Failure>;

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
) -> Result<(RunResult, bool), Failure> {
    let mut is_stopped = false;
    let mut watch = |progress: &RunProgress| {
        let flow = observer.under_way(stage, progress);
        is_stopped |= flow == KeepGoing::Stop;
        flow
    };
    // A load may end before the first report of progress. Without this look an interrupt would
    // wait for the first load that is long enough to report.
    if watch(&RunProgress::default()) == KeepGoing::Stop {
        return Err(interrupted());
    }
    let result =
        target.load(load, seed, length, &mut watch).map_err(|failure| match failure.kind {
            FailureKind::Interrupted => failure,
            // A target that cannot be loaded is a wrong request, unless loads before it were possible:
            // `ended` knows that.
            _ => Failure { kind: FailureKind::Usage, ..failure },
        })?;
    let is_stopped = is_stopped || result.partial;
    Ok((result, is_stopped))
}

/// Why a profile ended, and the error that ended it; the error alone where nothing was measured before it.
pub(crate) fn ended(
    how: Result<StoppedBecause, Failure>,
    nothing_measured: bool,
    method: MethodName,
) -> Result<(StoppedBecause, Option<Failure>), Failure> {
    match how {
        Ok(stopped) => Ok((stopped, None)),
        Err(failure) if failure.kind == FailureKind::Interrupted => {
            let resume = if method.resumes() { "; `resume` continues after them" } else { "" };
            let help = format!("the completed tests are in the result{resume}");
            Ok((StoppedBecause::Interrupted, Some(interrupted().with_help(help))))
        }
        // Without a measurement there is no result to keep. The caller gets the error alone, as
        // if the profile had not begun.
        Err(failure) if nothing_measured => Err(failure),
        Err(failure) => {
            Ok((StoppedBecause::Failed, Some(Failure { kind: FailureKind::Failed, ..failure })))
        }
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
    pub(crate) fn check_span(&self, large: u64) -> Result<(), Failure> {
        if self.span >= 4 * large {
            return Ok(());
        }
        let what = format!("a span of {} is too small for its loads", Bytes(self.span));
        Err(refused(what, format!("use {} or more", Bytes(4 * large))))
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
        let (result, is_stopped) =
            watched(self.target, self.observer, &stage, load, seed, Some(time))?;
        self.done += 1;
        self.credits = credits_of(&result).or(self.credits.take());
        // The lead of a point of a map is not recorded and not in `simulated_seconds`, but it
        // takes time on the device. `least` makes it count.
        self.spent += result.simulated_seconds.max(least);
        if is_stopped {
            return Err(interrupted());
        }
        if result.errors > 0 {
            return Err(requests_failed(result.errors, &stage.what, &self.plan.target));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `resume` refuses capacities and maps. The help of an interrupted profile does not name it there.
    #[test]
    fn an_interrupt_names_resume_where_it_continues() {
        for method in MethodName::ALL {
            let (_, failure) = ended(Err(interrupted()), false, method).unwrap();
            let help = failure.unwrap().help.unwrap();
            assert!(help.starts_with("the completed tests are in the result"), "{help}");
            let resumes = !matches!(method, MethodName::Capacity | MethodName::Map);
            assert_eq!(help.contains("`resume`"), resumes, "{method}: {help}");
        }
    }

    /// The kind decides the exit code: a target that cannot be loaded at all is a wrong request.
    #[test]
    fn a_failure_before_the_first_test_keeps_its_kind() {
        let refused = || Err(refused("no", "another"));
        let before = ended(refused(), true, MethodName::Full).unwrap_err();
        assert_eq!(before.kind, FailureKind::Usage);
        let (stopped, later) = ended(refused(), false, MethodName::Full).unwrap();
        assert_eq!((stopped, later.unwrap().kind), (StoppedBecause::Failed, FailureKind::Failed));
    }
}
