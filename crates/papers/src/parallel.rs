//! Simulations side by side, on as many threads as there are cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ssdyno_result::RunResult;
use ssdyno_rig::{Flow, Run};

use crate::{PaperError, Progress};

/// Runs all `jobs` on `threads`, by default one for each core; gives the results by place in the list,
/// in its order, without those that it was told to stop before.
///
/// # Errors
/// The first run that cannot be built, is refused, or breaks a law.
pub(crate) fn execute<J: Sync>(
    jobs: &[J],
    name: &(dyn Fn(&J) -> String + Sync),
    build: &(dyn Fn(&J) -> Result<Run, PaperError> + Sync),
    threads: Option<usize>,
    progress: &mut dyn FnMut(&Progress) -> Flow,
) -> Result<Vec<(usize, RunResult)>, PaperError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(cores).clamp(1, jobs.len().max(1));
    let state = State {
        jobs,
        name,
        build,
        next: AtomicUsize::new(0),
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        results: Mutex::new(Vec::new()),
    };
    let outcome = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| state.work())).collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(5));
            let done = state.done.load(Ordering::Relaxed);
            let of = jobs.len() as u64;
            let running = vec![format!("{done} of {of} runs")];
            if progress(&Progress { done, of, running }) == Flow::Stop {
                state.stop.store(true, Ordering::Relaxed);
            }
        }
        let ended = workers.into_iter().map(|worker| worker.join());
        ended.map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let outcome: Result<Vec<()>, PaperError> = outcome;
    outcome?;
    let mut results = state.results.into_inner().unwrap_or_else(|poison| poison.into_inner());
    results.sort_by_key(|(at, _)| *at);
    Ok(results)
}

struct State<'a, J> {
    jobs: &'a [J],
    name: &'a (dyn Fn(&J) -> String + Sync),
    build: &'a (dyn Fn(&J) -> Result<Run, PaperError> + Sync),
    next: AtomicUsize,
    done: AtomicU64,
    stop: AtomicBool,
    results: Mutex<Vec<(usize, RunResult)>>,
}

impl<J: Sync> State<'_, J> {
    /// Takes jobs until none is left.
    fn work(&self) -> Result<(), PaperError> {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = self.jobs.get(at) else { return Ok(()) };
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let refused = |problem: String| {
                self.stop.store(true, Ordering::Relaxed);
                PaperError::Refused { run: (self.name)(job), problem }
            };
            let run =
                (self.build)(job).inspect_err(|_| self.stop.store(true, Ordering::Relaxed))?;
            let flow = &mut |_: &ssdyno_rig::Progress| {
                if self.stop.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue }
            };
            let measured = run.execute(flow).map_err(|error| refused(error.to_string()))?;
            let broken = measured.result.invariants.iter().find(|law| !law.holds);
            if let (Some(law), false) = (broken, measured.result.partial) {
                return Err(refused(format!("{}: {}", law.name, law.detail)));
            }
            self.done.fetch_add(1, Ordering::Relaxed);
            let mut results = self.results.lock().unwrap_or_else(|poison| poison.into_inner());
            results.push((at, measured.result));
        }
    }
}
