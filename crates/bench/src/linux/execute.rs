//! A run from its target's name to its figures: the target is opened, the method searched for if that is
//! wanted, the load measured.

use std::sync::Arc;

use ssdyno_figures::{RunProgress, Supervisor};
use ssdyno_safety::Access;

use crate::error::BenchError;
use crate::measure::measure;
use crate::options::BenchOptions;
use crate::plan::LoadPlan;
use crate::run::{BenchMeasured, BenchRun};
use crate::target::{RealTarget, Unlock};
use crate::tuning::{self, Tuned};

/// See [`BenchRun::execute`].
pub(crate) fn execute(
    run: &BenchRun,
    supervisor: &mut dyn Supervisor,
) -> Result<BenchMeasured, BenchError> {
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
fn open(run: &BenchRun) -> Result<RealTarget, BenchError> {
    let opening = LoadPlan::opening(run)?;
    let target = RealTarget::open_for(&run.target, &run.access, opening)?;
    let more = run.more.iter();
    let more = more.map(|(name, access)| RealTarget::open_for(name, access, opening));
    Ok(target.followed_by(more.collect::<Result<_, _>>()?))
}

impl BenchRun {
    /// The same load with other options; what is open already is not opened by it.
    pub(crate) fn read_only_with(&self, options: BenchOptions) -> BenchRun {
        let read_only = |(name, _): &(String, Access)| (name.clone(), Access::ReadOnly);
        BenchRun {
            target: self.target.clone(),
            access: Access::ReadOnly,
            more: self.more.iter().map(read_only).collect(),
            workload: self.workload.clone(),
            source: self.source.clone(),
            seed: self.seed,
            limits: self.limits.clone(),
            keep: self.keep,
            rows_in: self.rows_in.clone(),
            interval: self.interval,
            options,
        }
    }
}
