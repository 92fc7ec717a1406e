//! From a spec to a run that can start, and to its figures.

use std::path::PathBuf;

use ssdyno_bench::{BenchError, RowsPlace};
use ssdyno_block::counted;
use ssdyno_engine::events::EventReader;
use ssdyno_figures::{BrokenBound, FigureBound, Provenance, RunResult, Supervisor};
use ssdyno_record::Recording;
use ssdyno_rig::RunError;

use crate::failure::{Failure, FailureKind};
use crate::file_mark::FileMark;
use crate::fio;
use crate::goal::Goal;
use crate::prompt::Prompt;
use crate::real::RealRun;
use crate::runner::Runner;
use crate::simulated::SimulatedRun;
use crate::spec::RunSpec;

/// A run that can start: everything that can be found wrong beforehand was found right.
#[derive(Debug)]
pub struct Prepared {
    /// The requested spec, with the names that were chosen for the user.
    asked: RunSpec,
    /// Everything in it.
    resolved: RunSpec,
    pub(crate) run: Target,
}

/// A run in virtual or in wall time.
#[derive(Debug)]
pub(crate) enum Target {
    Simulated(Box<SimulatedRun>),
    Real(Box<RealRun>),
}

/// What a run gave.
#[derive(Debug)]
pub struct Measured {
    /// All figures, with the spec that repeats them.
    pub result: RunResult,
    /// Rows and distributions.
    pub recording: Recording,
    /// The spec that repeats it as long as its files do not change: the request, with the findings from before the run.
    pub by_name: RunSpec,
    /// The reason why it is not a success: it ended early, requests failed, or an invariant is violated.
    pub failure: Option<Failure>,
    /// The bound of [`Prepared::end_beyond`] that ended it.
    pub broken: Option<BrokenBound>,
}

/// Whether `spec` loads a real target.
///
/// # Errors
/// The job file that names it cannot be read.
pub fn is_real(spec: &RunSpec) -> Result<bool, Failure> {
    let (target, _) = fio::targets(spec)?;
    Ok(spec.is_real(&target))
}

/// Reads everything that `spec` names, and refuses what cannot be. `prompt` is asked before a real target is
/// opened for writing.
///
/// # Errors
/// The first thing that is wrong, with its key where there is one, its place, and what to do.
pub fn resolve(spec: &RunSpec, prompt: &mut dyn Prompt) -> Result<Prepared, Failure> {
    spec.check()?;
    spec.contents.files.iter().try_for_each(FileMark::check)?;
    let (target, more) = fio::targets(spec)?;
    let mut spec = spec.with_names(&target);
    if !more.is_empty() {
        // Several are named by the job file alone.
        spec.target = None;
    }
    if spec.is_real(&target) {
        let (run, resolved) = RealRun::new(&spec, &target, &more, prompt)?;
        return Ok(Prepared { asked: spec, resolved, run: Target::Real(Box::new(run)) });
    }
    let (run, resolved) = SimulatedRun::new(&spec, &target)?;
    let asked = RunSpec { target: Some(run.run.target.clone()), ..spec };
    Ok(Prepared { asked, resolved, run: Target::Simulated(Box::new(run)) })
}

impl Prepared {
    /// The load, in one line.
    pub fn name(&self) -> String {
        match &self.run {
            Target::Simulated(simulated) => simulated.run.target.clone(),
            Target::Real(real) => real.run.name(),
        }
    }

    /// The name of the load.
    pub fn load(&self) -> &str {
        match &self.run {
            Target::Simulated(simulated) => &simulated.run.workload,
            Target::Real(real) => &real.run.workload,
        }
    }

    /// Whether the target is a real one, and the clock the wall's.
    pub fn is_real(&self) -> bool {
        matches!(self.run, Target::Real(_))
    }

    /// The goal of the run.
    pub fn goal(&self) -> Goal {
        Goal::of(self.source())
    }

    /// The requests.
    pub fn source(&self) -> &ssdyno_workload::Source {
        match &self.run {
            Target::Simulated(simulated) => &simulated.run.source,
            Target::Real(real) => &real.run.source,
        }
    }

    /// The requested spec, with the default names of target and workload filled in.
    pub fn asked(&self) -> &RunSpec {
        &self.asked
    }

    /// Everything that decides the run, with the contents of all files that it names. After a run with a search
    /// for the fastest method, the spec in the result has what was found.
    pub fn resolved(&self) -> &RunSpec {
        &self.resolved
    }

    /// Lets the rows of a real run go to a file in this directory while it goes on; without it they are in
    /// memory, as those of a simulated one.
    pub fn keep_rows_in(&mut self, directory: PathBuf) {
        if let Target::Real(real) = &mut self.run {
            let mut spec = self.resolved.clone();
            // The method that is searched for before the run is not known yet.
            if !spec.real.tune {
                spec.real.method.get_or_insert_default();
            }
            let spec = serde_json::to_value(spec).ok();
            real.run.rows_in = Some(RowsPlace { directory, spec, provenance: None });
        }
    }

    /// Stores `provenance` beside the rows of a real run, for a result that is made from them after the
    /// program was killed.
    pub fn keep_provenance(&mut self, provenance: &Provenance) {
        if let Target::Real(real) = &mut self.run
            && let Some(place) = &mut real.run.rows_in
        {
            place.provenance = Some(provenance.clone());
        }
    }

    /// Lets a simulated run end once it surely breaks one of `bounds`, at a request that the spec and the bounds decide. A
    /// real run goes on.
    pub fn end_beyond(&mut self, bounds: Vec<FigureBound>) {
        if let Target::Simulated(simulated) = &mut self.run {
            simulated.run.limits.bounds = bounds;
        }
    }

    /// Lets other runs that are called so read a real target meanwhile: they are one run of several workers.
    pub fn share_target(&mut self) {
        if let Target::Real(real) = &mut self.run {
            real.run.options.shared = true;
        }
    }

    /// Starts to prepare the run, on a thread of its own. It begins when it is told to.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(self) -> Result<Runner, Failure> {
        Runner::start(self, None)
    }

    /// As [`start`](Prepared::start), where `reader` hears of every event of a simulated device and its host: a
    /// [`Timeline`](ssdyno_rig::Timeline), say.
    ///
    /// # Errors
    /// Those of [`start`](Prepared::start).
    pub fn start_read_by(self, reader: Box<dyn EventReader + Send>) -> Result<Runner, Failure> {
        Runner::start(self, Some(reader))
    }

    /// Runs it on this thread, under `supervisor`.
    pub(crate) fn carry_out(
        &self,
        reader: Option<&mut dyn EventReader>,
        supervisor: &mut dyn Supervisor,
    ) -> Result<Measured, Failure> {
        let (mut result, recording, failure, broken) = match &self.run {
            Target::Simulated(simulated) => {
                let measured = simulated.run.supervise(reader, supervisor);
                let measured =
                    measured.map_err(|error| simulated.explain(&error, FailureKind::Usage))?;
                let mut result = measured.result;
                result.notes.splice(0..0, simulated.notes.iter().cloned());
                let explain = |error: RunError| simulated.explain(&error, FailureKind::Failed);
                let failure = measured.failure.map(explain);
                (result, measured.recording, failure, measured.broken)
            }
            Target::Real(real) => {
                let measured = real.run.supervise(supervisor);
                let measured =
                    measured.map_err(|error| real.explain(&error, FailureKind::Usage))?;
                let explain = |error: BenchError| real.explain(&error, FailureKind::Failed);
                let failure = measured.failure.map(explain);
                (measured.result, measured.recording, failure, None)
            }
        };
        let by_name = found(self.asked.clone(), &result);
        // A structure of named keys always has a JSON form.
        result.spec = serde_json::to_value(found(self.resolved.clone(), &result)).ok();
        let failure = failure.or_else(|| judge(&result));
        Ok(Measured { result, recording, by_name, failure, broken })
    }
}

/// `spec` with what was found before the run.
fn found(mut spec: RunSpec, result: &RunResult) -> RunSpec {
    if let Some(method) = &result.method {
        spec.real.found(method);
    }
    spec
}

/// The figures that keep a finished run from being a success.
fn judge(result: &RunResult) -> Option<Failure> {
    let broken = || result.invariants.iter().filter(|invariant| !invariant.holds);
    // No fault of the simulation: as the paper's driver does, and what else is broken follows.
    if let Some(stall) = broken().find(|invariant| invariant.name == "ring_goes_on") {
        let message = format!("the driver is stalled: {}", stall.detail);
        let help = "use a number of requests that fills the blocks, with a depth of at least one block; or set `host.ring=partial-after=100us`, or `host.ring=block=dynamic`";
        return Some(Failure::new(FailureKind::Failed, message).with_help(help));
    }
    let broken: Vec<String> =
        broken().map(|invariant| format!("{} ({})", invariant.name, invariant.detail)).collect();
    if !broken.is_empty() {
        let message = format!("the run violates its invariants: {}", broken.join("; "));
        let help = "do not trust these figures; please report this with the replay command";
        return Some(Failure::new(FailureKind::Failed, message).with_help(help));
    }
    // Without a request there is no figure, although nothing failed. A partial run has its reason already.
    if result.requests == 0 && result.errors == 0 && !result.partial {
        let message = "no request completed in the recorded part of the run";
        let help =
            "run longer, or leave the ramp-up out; the notes of the result describe what happened";
        return Some(Failure::new(FailureKind::Failed, message).with_help(help));
    }
    (result.errors > 0).then(|| {
        let who = counted(result.errors, "request", "requests");
        let message = format!("{who} ended in an error");
        let help = match &result.faults {
            Some(faults) if faults.device.is_none() && faults.network.is_none() => {
                "the notes of the result say why; the result counts the driver's retries and resets"
            }
            Some(_) => {
                "the run injected faults: the result counts the faults and the driver's reactions"
            }
            None => "the notes of the result describe what happened to the device",
        };
        Failure::new(FailureKind::Failed, message).with_help(help)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_request_is_no_success() {
        let run = |requests, errors, partial| {
            judge(&RunResult { requests, errors, partial, ..RunResult::default() })
        };
        assert!(run(0, 0, false).unwrap().message.contains("no request completed"));
        assert!(run(0, 2, false).unwrap().message.contains("2 requests ended in an error"));
        assert_eq!((run(1, 0, false), run(0, 0, true)), (None, None));
    }
}
