//! Simulations side by side, on as many threads as there are cores.

use ssdyno_result::RunResult;
use ssdyno_rig::{KeepGoing, SimRun};
use ssdyno_session::{StopFlag, side_by_side};

use crate::{PaperError, PapersProgress};

/// Runs all `jobs` on `threads`, by default one for each core; gives the results by place in the list,
/// in its order, without those that it was told to stop before.
///
/// # Errors
/// The first run that cannot be built, is refused, or violates an invariant.
pub(crate) fn execute<J: Sync>(
    jobs: &[J],
    name: &(dyn Fn(&J) -> String + Sync),
    build: &(dyn Fn(&J) -> Result<SimRun, PaperError> + Sync),
    threads: Option<usize>,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<Vec<(usize, RunResult)>, PaperError> {
    let run = |job: &J, stop: &StopFlag| {
        let refused = |problem| PaperError::Refused { run: name(job), problem };
        let measured = build(job)?.execute(&mut |_| stop.flow());
        let result = measured.map_err(|error| refused(error.to_string()))?.result;
        let broken = result.invariants.iter().find(|invariant| !invariant.holds);
        match broken.filter(|_| !result.partial) {
            Some(broken) => Err(refused(format!("{}: {}", broken.name, broken.detail))),
            None => Ok(result),
        }
    };
    let of = jobs.len() as u64;
    let results = side_by_side(jobs, threads, run, &mut |done| {
        let done = done as u64;
        progress(&PapersProgress { done, of, running: vec![format!("{done} of {of} runs")] })
    })?;
    let results = results.into_iter().enumerate();
    Ok(results.filter_map(|(at, result)| Some((at, result?))).collect())
}
