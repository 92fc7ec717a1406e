//! Many runs side by side, over the cores of this machine.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ssdyno_figures::KeepGoing;

use crate::failure::{Failure, FailureKind};
use crate::prepare::{Measured, Prepared, resolve};
use crate::prompt::Prompt;
use crate::runner::{RunControl, RunPhase, RunSnapshot};
use crate::spec::RunSpec;

/// The interval of the calls of the watcher.
const WATCH_EVERY: Duration = Duration::from_millis(5);

/// Whether runs that go on side by side are to end.
#[derive(Debug, Default)]
pub struct StopFlag(AtomicBool);

impl StopFlag {
    /// The next step of a run.
    pub fn flow(&self) -> KeepGoing {
        if self.0.load(Ordering::Relaxed) { KeepGoing::Stop } else { KeepGoing::Continue }
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Calls `run` for each of `jobs`, on `threads` at a time, by default one for each core. Gives what they
/// gave in the order of the jobs, whatever the order in which they ended; `None` for those that were not begun
/// when it was told to stop.
///
/// `watch` is called with the number of jobs that are done, every few milliseconds, and may stop the rest: `run`
/// sees that in [`StopFlag::flow`], which it hands to its progress.
///
/// # Errors
/// The first that a job ended with; the others are stopped then.
pub fn side_by_side<J: Sync, T: Send, E: Send>(
    jobs: &[J],
    threads: Option<usize>,
    run: impl Fn(&J, &StopFlag) -> Result<T, E> + Sync,
    watch: &mut dyn FnMut(usize) -> KeepGoing,
) -> Result<Vec<Option<T>>, E> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.unwrap_or(cores).clamp(1, jobs.len().max(1));
    let places: Vec<Mutex<Option<T>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (stop, first) = (StopFlag::default(), Mutex::new(None));
    let work = || {
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
            && let (Some(job), Some(place)) = (jobs.get(at), places.get(at))
            && stop.flow() != KeepGoing::Stop
        {
            match run(job, &stop) {
                Ok(given) => *unpoisoned(place) = Some(given),
                Err(error) => {
                    // Those that are stopped for it may fail, too, and are not why.
                    unpoisoned(&first).get_or_insert(error);
                    stop.set();
                }
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            thread::sleep(WATCH_EVERY);
            if watch(done.load(Ordering::Relaxed)) == KeepGoing::Stop {
                stop.set();
            }
        }
    });
    if let Some(error) = unpoisoned(&first).take() {
        return Err(error);
    }
    Ok(places.iter().map(|place| unpoisoned(place).take()).collect())
}

/// Runs in a fixed order, which go on side by side.
///
/// Simulations use all cores. Real targets come after them, one at a time: nothing else of ours moves their
/// figures.
#[derive(Debug)]
pub struct RunList {
    runs: Vec<Prepared>,
    threads: Option<usize>,
}

/// How far the runs of a [`RunList`] are.
#[derive(Debug)]
pub struct RunListProgress<'a> {
    controls: &'a [RunControl],
}

impl RunListProgress<'_> {
    /// Runs that are over.
    pub fn ended(&self) -> usize {
        self.controls.iter().filter(|control| control.phase() == RunPhase::Ended).count()
    }

    /// Each run, in the order of the list; one that was not begun is being prepared.
    pub fn runs(&self) -> impl Iterator<Item = RunSnapshot> {
        self.controls.iter().map(RunControl::snapshot)
    }
}

impl RunList {
    /// These runs, over all cores.
    pub fn new(runs: Vec<Prepared>) -> RunList {
        RunList { runs, threads: None }
    }

    /// The runs of these specs.
    ///
    /// # Errors
    /// The first that [`resolve`] refuses.
    pub fn resolve(specs: &[RunSpec], prompt: &mut dyn Prompt) -> Result<RunList, Failure> {
        let runs = specs.iter().map(|spec| resolve(spec, prompt)).collect::<Result<_, _>>()?;
        Ok(RunList::new(runs))
    }

    /// With this number of simulations at a time; `None`: one for each core.
    #[must_use]
    pub fn over(self, threads: Option<usize>) -> RunList {
        RunList { threads, ..self }
    }

    /// What is run.
    pub fn runs(&self) -> &[Prepared] {
        &self.runs
    }

    /// Carries all of them out. Gives what `take` makes of each, which is called with its number as it ends, or
    /// could not start, in the order of the list, whatever the order in which they ended; `None` for those that
    /// were not begun when it was told to stop. Rows take much memory: `take` is to keep of them what is needed.
    ///
    /// `watch` is called every few milliseconds, and may stop all of them in an orderly way, so that the measured
    /// figures are kept.
    ///
    /// # Errors
    /// The first that `take` gives; the other runs are stopped then.
    pub fn execute<T: Send, E: Send>(
        &self,
        take: impl Fn(usize, Result<Measured, Failure>) -> Result<T, E> + Sync,
        watch: &mut dyn FnMut(&RunListProgress<'_>) -> KeepGoing,
    ) -> Result<Vec<Option<T>>, E> {
        let controls: Vec<RunControl> = self.runs.iter().map(|_| RunControl::begun()).collect();
        let progress = RunListProgress { controls: &controls };
        let stop_all = || controls.iter().for_each(RunControl::stop);
        let mut stopped = false;
        let mut given: Vec<Option<T>> = self.runs.iter().map(|_| None).collect();
        for (is_real, threads) in [(false, self.threads), (true, Some(1))] {
            let (prepared, places): (Vec<_>, Vec<_>) = (self.runs.iter().zip(&controls))
                .zip(0..)
                .filter(|((run, _), _)| run.is_real() == is_real)
                .map(|((run, control), place)| ((run, control, place), place))
                .unzip();
            if stopped || prepared.is_empty() {
                continue;
            }
            let run = |(run, control, place): &(&Prepared, &RunControl, usize), _: &StopFlag| {
                match control.carry_out(run, None) {
                    // Stopped before it began, it has nothing that could be kept.
                    Err(failure) if failure.kind == FailureKind::Interrupted => Ok(None),
                    // The others are not waited for to the end.
                    ended => take(*place, ended).map(Some).inspect_err(|_| stop_all()),
                }
            };
            let taken = side_by_side(&prepared, threads, run, &mut |_| {
                let flow = watch(&progress);
                if flow == KeepGoing::Stop {
                    stopped = true;
                    stop_all();
                }
                flow
            })?;
            for (place, one) in places.into_iter().zip(taken) {
                given[place] = one.flatten();
            }
        }
        Ok(given)
    }
}

/// A panic of a run is not of what it holds here, which is whole.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last job ends first, and yet results are in the order of the jobs.
    #[test]
    fn results_are_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..8).collect();
        let run = |job: &u64, _: &StopFlag| {
            thread::sleep(Duration::from_millis(8 - job));
            Ok::<u64, ()>(job * job)
        };
        for threads in [None, Some(1), Some(3), Some(100)] {
            let mut most = 0;
            let given = side_by_side(&jobs, threads, run, &mut |done| {
                most = done;
                KeepGoing::Continue
            });
            let wanted: Vec<Option<u64>> = jobs.iter().map(|job| Some(job * job)).collect();
            assert_eq!(given, Ok(wanted));
            assert!(most <= jobs.len());
        }
        assert_eq!(side_by_side(&[], None, run, &mut |_| KeepGoing::Continue), Ok(Vec::new()));
    }

    #[test]
    fn the_first_error_ends_the_others() {
        let jobs: Vec<usize> = (0..100).collect();
        let begun = AtomicUsize::new(0);
        let run = |job: &usize, stop: &StopFlag| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *job == 1 {
                return Err::<(), &str>("the second");
            }
            while stop.flow() != KeepGoing::Stop {
                thread::yield_now();
            }
            // Given up for the other one's sake.
            Err("another")
        };
        assert_eq!(
            side_by_side(&jobs, Some(2), run, &mut |_| KeepGoing::Continue),
            Err("the second")
        );
        assert!(begun.load(Ordering::Relaxed) <= 2);
    }

    #[test]
    fn who_watches_may_stop_the_rest() {
        let jobs = [0, 1, 2];
        let begun = AtomicBool::new(false);
        let run = |_: &i32, stop: &StopFlag| {
            begun.store(true, Ordering::Relaxed);
            while stop.flow() != KeepGoing::Stop {
                thread::yield_now();
            }
            Ok::<(), ()>(())
        };
        let given =
            side_by_side(&jobs, Some(1), run, &mut |_| match begun.load(Ordering::Relaxed) {
                true => KeepGoing::Stop,
                false => KeepGoing::Continue,
            });
        assert_eq!(given, Ok(vec![Some(()), None, None]));
    }
}
