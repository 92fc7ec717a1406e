//! The time that the runs of a paper still take.

use std::collections::HashMap;
use std::thread::ThreadId;
use std::time::Instant;

use super::Times;

/// Durations of the runs of this start, compared with the durations in an earlier start.
#[derive(Debug, Default)]
pub(super) struct Pace {
    threads: usize,
    /// Number of runs that this start made, and their seconds.
    made: u64,
    made_seconds: f64,
    /// Seconds of the runs that both starts made: in this start, in the earlier start.
    now_and_then: [f64; 2],
    /// Seconds, by the earlier start, of the runs that have not ended.
    open_seconds: f64,
    /// Number of runs that have not ended and that the earlier start did not have.
    open_unknown: u64,
    /// The moment at which each thread ended its last run.
    laps: HashMap<ThreadId, Instant>,
    begun: Option<Instant>,
}

impl Pace {
    /// For runs on `threads` threads, of which `last` has the durations in the earlier start.
    pub(super) fn new(threads: usize, last: &Times) -> Pace {
        Pace { threads, open_seconds: last.seconds.values().sum(), ..Pace::default() }
    }

    /// A run that the earlier start did not have is planned.
    pub(super) fn plan_unknown(&mut self) {
        self.open_unknown += 1;
    }

    /// All planned runs begin now.
    pub(super) fn begin(&mut self) {
        self.laps.clear();
        self.begun = Some(Instant::now());
    }

    /// Seconds since this thread ended its last run, or since the first run began. The result of a run does not contain the
    /// time to build its device, which is most of the time if the device is filled first.
    pub(super) fn lap(&mut self) -> f64 {
        let now = Instant::now();
        // A lap is measured per thread: the runs are executed side by side, and the time between
        // two ends on different threads means nothing.
        let last = self.laps.insert(std::thread::current().id(), now).or(self.begun);
        last.map_or(0.0, |last| now.duration_since(last).as_secs_f64())
    }

    /// This start made a run in `seconds`; the earlier start needed `last`.
    pub(super) fn made(&mut self, seconds: f64, last: Option<f64>) {
        self.made += 1;
        self.made_seconds += seconds;
        if let Some(last) = last {
            // Only runs that both starts made are compared. Their ratio is the speed of this
            // machine now, for example with a different number of busy cores.
            self.now_and_then[0] += seconds;
            self.now_and_then[1] += last;
        }
    }

    /// A planned run is no longer open.
    pub(super) fn ended(&mut self, last: Option<f64>) {
        match last {
            Some(last) => self.open_seconds -= last,
            None => self.open_unknown -= 1,
        }
    }

    /// Seconds that all open runs still take. `None` if neither start has ended a run.
    pub(super) fn seconds_left(&self, last: &Times) -> Option<f64> {
        let [now, then] = self.now_and_then;
        // Known runs are scaled with the ratio of both starts. The mean of the finished runs would
        // be wrong, because the lengths of runs differ by orders of magnitude.
        let pace = if then > 0.0 { now / then } else { 1.0 };
        let each = match (self.made, last.seconds.len()) {
            (0, 0) => None,
            (0, n) => Some(last.seconds.values().sum::<f64>() / n as f64),
            (n, _) => Some(self.made_seconds / n as f64),
        };
        let unknown = match self.open_unknown {
            0 => Some(0.0),
            n => each.map(|each| each * n as f64),
        };
        let known = self.open_seconds.max(0.0) * pace;
        unknown.map(|unknown| (known + unknown) / self.threads.max(1) as f64)
    }
}
