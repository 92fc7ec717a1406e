//! A run from its target's name to its figures: the target is opened, the method searched for if that is
//! wanted, the load measured.

#[cfg(target_os = "linux")]
use std::sync::Arc;

use ssdyno_figures::{KeepGoing, RunProgress, Supervisor};

use crate::error::BenchError;
#[cfg(target_os = "linux")]
use crate::measure::measure;
#[cfg(target_os = "linux")]
use crate::plan::LoadPlan;
use crate::run::{BenchMeasured, BenchRun};
#[cfg(target_os = "linux")]
use crate::target::{RealTarget, Unlock};
#[cfg(target_os = "linux")]
use crate::tuning::{self, Tuned};

impl BenchRun {
    /// Opens the target, loads it and works out the figures. An error before the first request is
    /// returned; a later one is in [`BenchMeasured::failure`], with what was measured.
    ///
    /// `progress` is called some 20 times a second and may stop the run.
    ///
    /// # Errors
    /// Everything that can be found out beforehand: see [`BenchError`].
    pub fn execute(
        &self,
        mut progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) -> Result<BenchMeasured, BenchError> {
        self.supervise(&mut progress)
    }

    /// As [`execute`](BenchRun::execute), where `supervisor` says when it begins, too: it is asked when the target is
    /// open and each job waits for its first request.
    ///
    /// # Errors
    /// Those of [`execute`](BenchRun::execute).
    pub fn supervise(&self, supervisor: &mut dyn Supervisor) -> Result<BenchMeasured, BenchError> {
        #[cfg(target_os = "linux")]
        return execute(self, supervisor);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = supervisor;
            Err(BenchError::System { target: self.name() })
        }
    }
}

/// See [`BenchRun::execute`].
#[cfg(target_os = "linux")]
fn execute(run: &BenchRun, supervisor: &mut dyn Supervisor) -> Result<BenchMeasured, BenchError> {
    let target = Arc::new(open(run)?);
    // The lock is given back on every way out of here. A run that follows at once would
    // otherwise find its target locked by this one.
    let _unlock = Unlock(Arc::clone(&target));
    if !run.options.tune {
        return measure(run, &target, supervisor);
    }
    let progress = &mut |progress: &RunProgress| supervisor.report(progress);
    let Tuned { options, tried, note } = tuning::search(run, &target, progress)?;
    // The target stays open from the search to the load. Between a close and another open
    // somebody else could lock it or write to it.
    let tuned = run.read_only_with(options);
    let mut measured = measure(&tuned, &target, supervisor)?;
    if let Some(method) = &mut measured.result.method {
        method.tuning = tried;
    }
    measured.result.notes.push(note);
    Ok(measured)
}

/// Opens all that makes up the target of `run`.
#[cfg(target_os = "linux")]
fn open(run: &BenchRun) -> Result<RealTarget, BenchError> {
    let opening = LoadPlan::opening(run)?;
    let target = RealTarget::open_for(&run.target, &run.access, opening)?;
    let more = run.more.iter();
    let more = more.map(|(name, access)| RealTarget::open_for(name, access, opening));
    Ok(target.followed_by(more.collect::<Result<_, _>>()?))
}
