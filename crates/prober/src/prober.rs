//! A thread that samples the machine.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ssdyno_block::ConfigError;

use crate::clock;
use crate::counters::{PowerSensors, SystemCounters};
use crate::sample::SystemSample;
use crate::series::{PointStore, SystemSeries};
use crate::sources::{SourceError, Sources};

/// Shortest interval: below it, sampling would take more than some percent of a CPU.
const INTERVAL_LEAST: Duration = Duration::from_millis(10);

/// Longest interval: longer ones would hide wraps of RAPL counters.
const INTERVAL_MOST: Duration = Duration::from_secs(3600);

/// Most points that may be asked for.
const KEEP_MOST: usize = 100_000;

/// Samples that [`Prober::since`] can give.
const RECENT_MOST: usize = 256;

/// Files whose last error is kept.
const ERRORS_MOST: usize = 64;

/// How a [`Prober`] samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProberOptions {
    /// Time between two samples: 10 ms to 1 h.
    pub interval: Duration,
    /// Where the machine describes itself.
    pub sources: Sources,
    /// Greatest number of points in the series, 2 to 100 000. A point takes about 250 bytes for each core, interface,
    /// disk and zone, twice that once points are joined.
    pub keep: usize,
}

impl Default for ProberOptions {
    /// One sample a second, 600 points, of this machine.
    fn default() -> ProberOptions {
        ProberOptions { interval: Duration::from_secs(1), sources: Sources::default(), keep: 600 }
    }
}

/// A prober that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ProberError {
    /// An option that cannot be.
    #[error(transparent)]
    Option(#[from] ConfigError),
    /// The system gives no thread.
    #[error("no thread for the prober: {0}")]
    Thread(#[from] std::io::Error),
}

/// Samples a machine at an interval until it is stopped or dropped.
///
/// Samples are due at whole multiples of the interval after the start, so that they do not drift. A sample that is late has
/// the time at which it was taken. Where the machine is busy for longer than an interval, samples are missed, and
/// the next one covers their time: samples follow each other without gaps.
#[derive(Debug)]
pub struct Prober {
    shared: Arc<Mutex<Samples>>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Prober {
    /// Begins now; the first sample is there after one interval. Sensors of power that appear later are not seen.
    ///
    /// # Errors
    /// An option is out of range, or the system gives no thread.
    pub fn start(options: ProberOptions) -> Result<Prober, ProberError> {
        check(&options)?;
        // The search for sensors takes longer than one sample. It happens once, before the first
        // sample, so that the first sample is not late.
        let sensors = PowerSensors::find(&options.sources);
        // The first reading is taken in the thread of the caller. A sample covers the time since the reading before
        // it, so the series begins at this call and not at the start of a thread.
        let first = SystemCounters::read_with(&options.sources, &sensors);
        let shared = Arc::new(Mutex::new(Samples::new(&options, &first)));
        let (stop, stopped) = channel();
        let samples = Arc::clone(&shared);
        let read = move || SystemCounters::read_with(&options.sources, &sensors);
        let interval = options.interval;
        let sampling = move || sample_until_stopped(interval, read, first, &samples, &stopped);
        let thread = std::thread::Builder::new().name("prober".to_owned()).spawn(sampling)?;
        Ok(Prober { shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The last sample; `None` before the first one.
    pub fn latest(&self) -> Option<SystemSample> {
        lock(&self.shared).recent.back().cloned()
    }

    /// Samples after number `sequence`, oldest first; all of them after 0. Only the last 256 are kept one by one: to
    /// a caller that is slower, numbers are missing, and [`series`](Prober::series) has their figures.
    pub fn since(&self, sequence: u64) -> Vec<SystemSample> {
        let samples = lock(&self.shared);
        samples.recent.iter().filter(|sample| sample.sequence > sequence).cloned().collect()
    }

    /// Everything so far.
    pub fn series(&self) -> SystemSeries {
        lock(&self.shared).series()
    }

    /// Takes a last sample, which may be shorter than the interval, and gives everything.
    pub fn stop(mut self) -> SystemSeries {
        self.end();
        self.series()
    }

    fn end(&mut self) {
        // Dropping the sender wakes the thread at once. A flag would be seen only
        // after the interval, which may be an hour.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread may have panicked. The samples that it took before are still in the shared
            // state, and they are worth more than an error.
            let _ = thread.join();
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.end();
    }
}

fn check(options: &ProberOptions) -> Result<(), ConfigError> {
    if !(INTERVAL_LEAST..=INTERVAL_MOST).contains(&options.interval) {
        let problem = format!("{:?} is not between 10 ms and 1 h", options.interval);
        return Err(ConfigError::new("interval", problem, "use an interval such as 1s"));
    }
    if !(2..=KEEP_MOST).contains(&options.keep) {
        let problem = format!("{} is not between 2 and {KEEP_MOST}", options.keep);
        return Err(ConfigError::new("keep", problem, "use a few hundred points"));
    }
    Ok(())
}

fn sample_until_stopped(
    interval: Duration,
    read: impl Fn() -> SystemCounters,
    first: SystemCounters,
    shared: &Mutex<Samples>,
    stopped: &Receiver<()>,
) {
    let mut earlier = first;
    let mut due = Instant::now() + interval;
    loop {
        let wait = due.saturating_duration_since(Instant::now());
        // The channel never carries a message. Its end is the signal, and the timeout
        // is the clock: one call waits for both.
        let ended = stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
        // The CPU time of this thread is measured around each sample. The result
        // shows what the observation itself cost.
        let cpu_before = clock::thread_cpu_ns();
        let now = read();
        let sample = now.since(&earlier);
        // The last sample is taken at once and may be shorter than the interval. Nothing
        // is missed by it, so the grid does not move.
        let missed = if ended { 0 } else { advance(&mut due, interval, Instant::now()) };
        {
            let mut samples = lock(shared);
            samples.told.samples_missed += missed;
            samples.add(sample, now.errors());
            // The cost is added after the sample, under the same lock: joining points is part
            // of it, and a reader sees both or neither.
            let cpu = clock::thread_cpu_ns().zip(cpu_before);
            samples.cost.add(cpu.map(|(after, before)| after.saturating_sub(before)));
        }
        if ended {
            return;
        }
        earlier = now;
    }
}

/// Moves `due` to its next multiple of `interval` after `now`; gives how many it skipped.
fn advance(due: &mut Instant, interval: Duration, now: Instant) -> u64 {
    let late = now.saturating_duration_since(*due);
    // The grid stays at whole multiples of the interval after the start. A new start at each late
    // sample would let the samples drift on a busy machine.
    let missed = (late.as_nanos() / interval.as_nanos().max(1)).min(u128::from(u32::MAX)) as u32;
    // `missed` intervals fit into `u32`, because the interval is at least 10
    // ms: 2^32 of them are more than a year.
    *due += interval * missed + interval;
    u64::from(missed)
}

/// What the thread writes and others read.
#[derive(Debug)]
struct Samples {
    /// Without its points, costs and errors.
    told: SystemSeries,
    store: PointStore,
    recent: VecDeque<SystemSample>,
    cost: OwnCost,
    errors: BTreeMap<PathBuf, SourceError>,
}

impl Samples {
    fn new(options: &ProberOptions, first: &SystemCounters) -> Samples {
        let mut samples = Samples {
            told: SystemSeries {
                sampling_interval_ns: u64::try_from(options.interval.as_nanos())
                    .unwrap_or(u64::MAX),
                start_monotonic_ns: first.monotonic_ns,
                start_unix_ns: first.unix_ns,
                ..SystemSeries::default()
            },
            store: PointStore::new(options.keep),
            recent: VecDeque::new(),
            cost: OwnCost::default(),
            errors: BTreeMap::new(),
        };
        samples.note(first.errors());
        samples
    }

    fn note(&mut self, errors: &[SourceError]) {
        for error in errors {
            // The errors are kept by file, and only the last one of each. A sensor that fails in every
            // sample would otherwise fill the memory in a long run.
            if self.errors.len() < ERRORS_MOST || self.errors.contains_key(&error.file) {
                self.errors.insert(error.file.clone(), error.clone());
            }
        }
    }

    fn add(&mut self, mut sample: SystemSample, errors: &[SourceError]) {
        self.note(errors);
        self.told.samples += 1;
        sample.sequence = self.told.samples;
        if self.recent.len() >= RECENT_MOST {
            // A reader that is slower than 256 samples misses some of them. The figures are still
            // in the series, which never loses an integral.
            self.recent.pop_front();
        }
        self.recent.push_back(sample.clone());
        self.store.push(sample);
    }

    fn series(&self) -> SystemSeries {
        SystemSeries {
            samples_per_point: self.store.per_point(),
            points: self.store.points(),
            own_cpu_ns_per_sample_mean: self.cost.mean_ns(),
            own_cpu_ns_per_sample_max: self.cost.max_ns,
            errors: self.errors.values().map(SourceError::to_string).collect(),
            ..self.told.clone()
        }
    }
}

/// CPU time that the prober itself takes.
#[derive(Clone, Copy, Debug, Default)]
struct OwnCost {
    samples: u64,
    sum_ns: u64,
    max_ns: Option<u64>,
}

impl OwnCost {
    fn add(&mut self, cpu_ns: Option<u64>) {
        let Some(cpu_ns) = cpu_ns else { return };
        self.samples += 1;
        self.sum_ns += cpu_ns;
        self.max_ns = self.max_ns.max(Some(cpu_ns));
    }

    fn mean_ns(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum_ns as f64 / self.samples as f64)
    }
}

/// A thread that panicked while it held the lock leaves figures that are whole: each is replaced at once.
fn lock(shared: &Mutex<Samples>) -> MutexGuard<'_, Samples> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_are_multiples_of_the_interval_however_late_a_sample_is() {
        let start = Instant::now();
        let interval = Duration::from_millis(100);
        for (late_ms, missed) in [(0, 0), (1, 0), (99, 0), (100, 1), (350, 3)] {
            let mut due = start + interval;
            let now = due + Duration::from_millis(late_ms);
            assert_eq!(advance(&mut due, interval, now), missed, "{late_ms} ms late");
            assert_eq!(due, start + interval * (2 + missed as u32));
            assert!(due > now);
        }
    }

    #[test]
    fn options_out_of_range_are_refused_with_their_key() {
        for (interval, keep, key) in [
            (Duration::ZERO, 600, "interval"),
            (Duration::from_secs(3601), 600, "interval"),
            (Duration::from_secs(1), 1, "keep"),
            (Duration::from_secs(1), KEEP_MOST + 1, "keep"),
        ] {
            let options = ProberOptions { interval, keep, ..ProberOptions::default() };
            let error = Prober::start(options).unwrap_err();
            assert!(matches!(&error, ProberError::Option(e) if e.key == key), "{error}");
        }
    }
}
