//! Many runs side by side, over the cores of this machine.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ssdyno_rig::Flow;

/// How often the watcher of [`side_by_side`] is called.
const WATCH_EVERY: Duration = Duration::from_millis(5);

/// Whether runs that go on side by side are to end.
#[derive(Debug, Default)]
pub struct StopFlag(AtomicBool);

impl StopFlag {
    /// What a run is to do next.
    pub fn flow(&self) -> Flow {
        if self.0.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue }
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
    watch: &mut dyn FnMut(usize) -> Flow,
) -> Result<Vec<Option<T>>, E> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.unwrap_or(cores).clamp(1, jobs.len().max(1));
    let places: Vec<Mutex<Option<T>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (stop, first) = (StopFlag::default(), Mutex::new(None));
    let work = || {
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
            && let (Some(job), Some(place)) = (jobs.get(at), places.get(at))
            && stop.flow() != Flow::Stop
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
            if watch(done.load(Ordering::Relaxed)) == Flow::Stop {
                stop.set();
            }
        }
    });
    if let Some(error) = unpoisoned(&first).take() {
        return Err(error);
    }
    Ok(places.iter().map(|place| unpoisoned(place).take()).collect())
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
                Flow::Continue
            });
            let wanted: Vec<Option<u64>> = jobs.iter().map(|job| Some(job * job)).collect();
            assert_eq!(given, Ok(wanted));
            assert!(most <= jobs.len());
        }
        assert_eq!(side_by_side(&[], None, run, &mut |_| Flow::Continue), Ok(Vec::new()));
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
            while stop.flow() != Flow::Stop {
                thread::yield_now();
            }
            // Given up for the other one's sake.
            Err("another")
        };
        assert_eq!(side_by_side(&jobs, Some(2), run, &mut |_| Flow::Continue), Err("the second"));
        assert!(begun.load(Ordering::Relaxed) <= 2);
    }

    #[test]
    fn who_watches_may_stop_the_rest() {
        let jobs = [0, 1, 2];
        let begun = AtomicBool::new(false);
        let run = |_: &i32, stop: &StopFlag| {
            begun.store(true, Ordering::Relaxed);
            while stop.flow() != Flow::Stop {
                thread::yield_now();
            }
            Ok::<(), ()>(())
        };
        let given =
            side_by_side(&jobs, Some(1), run, &mut |_| match begun.load(Ordering::Relaxed) {
                true => Flow::Stop,
                false => Flow::Continue,
            });
        assert_eq!(given, Ok(vec![Some(()), None, None]));
    }
}
