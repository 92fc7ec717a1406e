//! The greatest depth at which latencies stay below a target (fio: `latency_target` and its kin).
//!
//! fio's rules (HOWTO, "I/O latency"; io_u.c, `lat_target_init`, `_check`, `_success`, `_failed`): the depth
//! begins at 1 and doubles after each window in which enough requests were in time, until one fails; from
//! then on the range between the last that passed and the first that failed is halved. After a failure what
//! is outstanding drains first. Where the next depth would be the present one, that is the result: what is
//! outstanding drains, and a last run at this depth follows.
//!
//! Where fio does it another way:
//! - Requests that are still outstanding from a greater depth are not judged while they drain; fio means
//!   to, but judges them.
//! - The range is halved from the first failure on. fio goes by whether the upper end of the range is the
//!   `iodepth`, and so doubles forever where the result is one less than that.
//! - A second window in a row at the depth that was found confirms it; where that fails, the search goes on. The recorded
//!   window comes after it and no longer decides about the depth. fio records the confirmation itself, and the lower depths
//!   as well where it fails. A window that is recorded because it passed has too few latencies above the target.
//! - With a percentile below 100, three windows in a row that fail at depth 1 end the job. fio goes on without
//!   a word.

mod search;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::{Op, Time};

use crate::{Finished, TraceLine, Workload, WorkloadError, WorkloadStep};
use search::{Search, Verdict};

/// The latencies to meet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LatencyTarget {
    /// A request in time takes this long at most.
    pub latency: Time,
    /// How long a depth is tried before it is judged; no shorter than `latency`.
    pub window: Time,
    /// Share of the requests of a window that must be in time, in percent, 0 to 100.
    pub percentile: f64,
    /// The depth follows the latencies until the end of the job, and all is recorded; otherwise the job ends
    /// when the depth is found.
    pub keeps_adapting: bool,
}

impl LatencyTarget {
    /// The error: the key (without the prefix `latency_`), the problem, and the remedy.
    pub(crate) fn fault(&self) -> Option<(&'static str, String, &'static str)> {
        let (latency, window) = (self.latency, self.window);
        if latency == Time::ZERO {
            let what = "a latency of 0 is impossible".to_owned();
            return Some(("target", what, "give a time above 0, such as 500us"));
        }
        if window < latency {
            let what = format!(
                "a window of {window} is shorter than the latency of one request, {latency}"
            );
            return Some(("window", what, "give a time of many requests, such as 1s"));
        }
        if !(0.0..=100.0).contains(&self.percentile) {
            let what = format!("{} % of the requests", self.percentile);
            return Some(("percentile", what, "give 0 to 100"));
        }
        None
    }
}

/// Result of a search for the greatest depth at which latencies stay below a target (fio: `latency_target`). Unless
/// `latency_run` is set, the other figures cover only a final run at `depth`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DepthSearchResult {
    /// The job of a job file; `null` for another workload.
    pub job: Option<String>,
    /// The latency target: the longest latency of a request that counts as in time.
    pub latency_target_ns: u64,
    /// Duration of the test of each depth.
    pub latency_window_ns: u64,
    /// Share of the requests of a window that had to be in time, in percent.
    pub latency_percentile: f64,
    /// The depth followed the latencies until the end of the run.
    pub latency_run: bool,
    /// Greatest number of requests outstanding that the search may try.
    pub depth_max: u64,
    /// The depth that the search found; if it found none, the last depth that it tried.
    pub depth: u64,
    /// `depth` is the greatest depth that met the target. With `latency_run`: the last window met the target.
    pub met: bool,
    /// Windows that were judged, in order: the first thousand.
    pub tried: Vec<TriedDepthResult>,
}

/// A depth that was tried.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TriedDepthResult {
    /// Requests outstanding.
    pub depth: u64,
    /// Start of the window, from the start of the job.
    pub start_seconds: f64,
    /// Length of the window.
    pub seconds: f64,
    /// Requests that completed in the window without an error.
    pub requests: u64,
    /// Requests of the window that were in time.
    pub requests_in_time: u64,
}

// The list is part of the result file. A job that adapts for a day with windows of 100 ms would
// otherwise write 864,000 entries.
/// Most windows that are kept: a job that keeps adapting has any number.
const TRIED_MAX: usize = 1_000;

/// The phase before the search, at depth 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Before {
    /// Time.
    pub(crate) time: Time,
    /// Completions.
    pub(crate) completions: u64,
}

/// `inner`, which may have up to `depth_max` outstanding, at the greatest depth that meets `target`; `at` is the job
/// for messages, if it is one of a job file.
pub(crate) fn searching(
    inner: Box<dyn Workload + Send>,
    target: LatencyTarget,
    depth_max: u64,
    before: Before,
    at: Option<TraceLine>,
) -> Box<dyn Workload + Send> {
    Box::new(Searching {
        inner,
        target,
        before,
        at,
        search: Search::new(depth_max, target.keeps_adapting),
        depth_max,
        outstanding: 0,
        since: None,
        completed: 0,
        late: 0,
        drains: false,
        result_from: None,
        is_over: false,
        is_met: false,
        tried: Vec::new(),
        failed_at_lowest: 0,
        is_hopeless: false,
        error: None,
    })
}

struct Searching {
    inner: Box<dyn Workload + Send>,
    target: LatencyTarget,
    before: Before,
    at: Option<TraceLine>,
    search: Search,
    depth_max: u64,
    outstanding: u64,
    /// When the present window began.
    since: Option<Time>,
    /// The requests of the present window without an error, and those of them that took too long.
    completed: u64,
    late: u64,
    /// Nothing is issued before all has come back.
    drains: bool,
    /// When the recorded window began, at the depth that was found; `Time::MAX` while what was before it drains.
    result_from: Option<Time>,
    /// The recorded window is over.
    is_over: bool,
    /// The window that was judged last met the target.
    is_met: bool,
    tried: Vec<TriedDepthResult>,
    /// Windows in a row that failed at depth 1.
    failed_at_lowest: u32,
    /// No depth meets the target. It stays so when the error has been asked for, as notes are asked for later.
    is_hopeless: bool,
    error: Option<WorkloadError>,
}

impl Searching {
    /// Begins a window, if none is active and the outstanding requests belong to it.
    fn begin(&mut self, now: Time) {
        if self.drains {
            // The next window must not contain latencies of the old depth. Requests from the
            // greater depth wait longer, so a lower depth that meets the target would fail.
            if self.outstanding > 0 {
                return;
            }
            self.drains = false;
            self.since = None;
            if self.result_from == Some(Time::MAX) {
                self.result_from = Some(now);
            }
        }
        // The ramp-up runs at depth 1 and is not judged. An empty cache or an SSD in its fresh
        // state would otherwise decide about the first depth.
        let is_before = now < self.before.time || self.before.completions > 0;
        if self.since.is_none() && !is_before {
            (self.since, self.completed, self.late) = (Some(now), 0, 0);
        }
    }

    /// Judges the window if it is over, or failed already.
    fn judge(&mut self, now: Time) {
        let Some(since) = self.since.filter(|_| !self.drains) else { return };
        let length = now.saturating_sub(since);
        // With 100 % a single late request decides the window. Waiting for the end of the window
        // would add seconds to each failed depth and could not change the verdict.
        // The recorded window has nothing to decide, and a short one would be a poor figure.
        let is_recorded = self.is_found();
        let fails_at_once = self.target.percentile >= 100.0 && self.late > 0 && !is_recorded;
        // There were no completions, so there is nothing to judge.
        if self.completed == 0 || (length < self.target.window && !fails_at_once) {
            return;
        }
        let in_time = self.completed - self.late;
        let share = 100.0 * in_time as f64 / self.completed as f64;
        let depth = self.search.depth();
        // The first windows are kept and not the last ones, because they show the search itself.
        // Later ones of an adapting job repeat the same few depths.
        if self.tried.len() < TRIED_MAX {
            self.tried.push(TriedDepthResult {
                depth,
                start_seconds: since.as_s_f64(),
                seconds: length.as_s_f64(),
                requests: self.completed,
                requests_in_time: in_time,
            });
        }
        self.is_met = share >= self.target.percentile;
        self.since = None;
        if is_recorded {
            // The figures are those of one depth, also where it misses the target now.
            self.is_over = true;
            return;
        }
        // The count is of failures in a row. A device that passes in between has not shown that the
        // target is out of reach.
        self.failed_at_lowest = if self.is_met { 0 } else { self.failed_at_lowest };
        match if self.is_met { self.search.passed() } else { self.search.failed() } {
            Verdict::GoOn => {}
            Verdict::Lower | Verdict::Found => self.drains = true,
            Verdict::Settled => {
                self.drains = true;
                // `MAX` means that the depth is known but older requests still drain. The recording
                // begins only after them, so that the figures contain this depth alone.
                self.result_from = Some(Time::MAX);
            }
            Verdict::LowestFails => self.look_at_lowest(fails_at_once, share),
        }
    }

    /// Not even one request at a time completes in time.
    fn look_at_lowest(&mut self, at_once: bool, share: f64) {
        // One bad window can be chance, such as a pause for garbage collection. With a percentile
        // of 100 the target has failed for certain, so the job ends at once.
        const IN_A_ROW: u32 = 3;
        self.failed_at_lowest += 1;
        if !at_once && (self.target.keeps_adapting || self.failed_at_lowest < IN_A_ROW) {
            return;
        }
        let LatencyTarget { latency, percentile, .. } = self.target;
        let found = match at_once {
            true => format!("a request took longer than {latency} with no other one outstanding"),
            false => format!(
                "with one request outstanding, {share:.2} % of the requests took at most {latency}; the goal is {percentile} %"
            ),
        };
        self.is_hopeless = true;
        self.error = Some(WorkloadError {
            // A configuration has keys and a job file has lines. The error names the one that the
            // user wrote, so only one of both is set.
            key: self.at.is_none().then(|| "latency_target".to_owned()),
            what: match self.at {
                Some(_) => format!("latency_target - no depth meets it: {found}"),
                None => format!("no depth meets it: {found}"),
            },
            help: Some("allow a longer latency or a smaller percentile".to_owned()),
            at: self.at.clone().map(Box::new),
        });
    }

    /// The result, in words.
    fn told(&self) -> String {
        let LatencyTarget { latency, window, percentile, keeps_adapting } = self.target;
        let mut depths: Vec<String> = Vec::new();
        for tried in &self.tried {
            let depth = tried.depth.to_string();
            // An adapting job stays at one depth for many windows. Equal neighbours are joined, so
            // that the note shows the steps of the search.
            if depths.last() != Some(&depth) {
                depths.push(depth);
            }
        }
        const SHOWN: usize = 24;
        if depths.len() > SHOWN {
            depths.truncate(SHOWN);
            depths.push("…".to_owned());
        }
        let tried = match depths.is_empty() {
            true => "no window ended".to_owned(),
            false => format!("tried {}", depths.join(", ")),
        };
        let rule = format!("{percentile} % of the requests in {window} within {latency}");
        let depth = self.search.depth();
        let job = self.at.as_ref().map_or(String::new(), |at| format!("{}: ", at.text));
        match (keeps_adapting, self.is_found()) {
            (true, _) => format!(
                "{job}latency_target: the depth followed {rule}, and was {depth} at the end ({tried}); the \
                 figures are of all depths"
            ),
            (false, true) => format!(
                "{job}latency_target: depth {depth} was the greatest with {rule} ({tried}); the figures cover \
                 this depth only{}",
                self.missed()
            ),
            (false, false) if self.is_hopeless => {
                format!("{job}latency_target: no depth has {rule} ({tried})")
            }
            (false, false) => format!(
                "{job}latency_target: the search for {rule} was not over when the job ended ({tried}): more \
                 requests or time are needed"
            ),
        }
    }

    /// The remark about a recorded window that missed the target; empty if it met the target.
    fn missed(&self) -> String {
        let last = self.tried.last().filter(|_| self.is_over && !self.is_met);
        last.map_or_else(String::new, |last| {
            let share = 100.0 * last.requests_in_time as f64 / last.requests as f64;
            format!(", and {share:.2} % of their requests were in time")
        })
    }

    /// The depth is found and confirmed, and the recorded window has begun.
    fn is_found(&self) -> bool {
        self.result_from.is_some_and(|from| from < Time::MAX) && !self.is_hopeless
    }
}

impl Workload for Searching {
    fn next(&mut self, now: Time) -> WorkloadStep {
        self.judge(now);
        // The verdict comes before the next request. A request that is issued after the end would
        // be recorded at a depth that failed.
        if self.is_hopeless || self.is_over {
            return WorkloadStep::Done;
        }
        self.begin(now);
        // The limit of the inner generator stays at the greatest depth. Only this counter changes
        // during the search, so the generator needs no way to change its depth.
        if self.drains || self.outstanding >= self.search.depth() {
            return WorkloadStep::Wait;
        }
        let step = self.inner.next(now);
        self.outstanding += u64::from(matches!(step, WorkloadStep::Issue { .. }));
        step
    }

    crate::wraps_inner!();

    fn completed(&mut self, finished: Finished, now: Time) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.before.completions = self.before.completions.saturating_sub(1);
        // As fio: data alone, and what failed is not judged.
        if finished.op != Op::Flush && finished.is_ok {
            self.completed += 1;
            // A request that takes exactly the target latency is in time, as in fio. The closed
            // form of the tests (T / service time, rounded down) depends on this.
            self.late += u64::from(finished.latency > self.target.latency);
        }
        self.inner.completed(finished, now);
    }

    fn heeds_latency(&self) -> bool {
        true
    }

    fn recorded_from(&self, _stream: u32) -> Time {
        match self.result_from {
            // An adapting job has no final depth, so all of its requests are its result. Otherwise
            // nothing would be recorded at all.
            _ if self.target.keeps_adapting => Time::ZERO,
            from => from.unwrap_or(Time::MAX),
        }
    }

    fn depth_searches(&self) -> Vec<DepthSearchResult> {
        let LatencyTarget { latency, window, percentile, keeps_adapting } = self.target;
        vec![DepthSearchResult {
            job: self.at.as_ref().map(|at| at.text.trim_matches(['[', ']']).to_owned()),
            latency_target_ns: latency.as_ns(),
            latency_window_ns: window.as_ns(),
            latency_percentile: percentile,
            latency_run: keeps_adapting,
            depth_max: self.depth_max,
            depth: self.search.depth(),
            met: if keeps_adapting { self.is_met } else { self.is_found() },
            tried: self.tried.clone(),
        }]
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes().into_iter().chain([self.told()]).collect()
    }

    fn error(&mut self) -> Option<WorkloadError> {
        self.error.take().or_else(|| self.inner.error())
    }
}
