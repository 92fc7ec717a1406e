//! The verdicts on rate and latency over a run: warm-up, drift, steady state, overload.

use std::ops::Range;

use ssdyno_figures::{JobResult, RunResult, SeriesPoint, WarningKind};

use crate::overload::Overload;
use crate::recording::{Recording, RequestLoop};
use crate::{drift, few, near_limit, steady};

/// The whole run.
const ALWAYS: Range<f64> = f64::NEG_INFINITY..f64::INFINITY;

/// A shorter part of the run in which some jobs did not run is judged with the rest. It is half a window of the rule of the
/// steady state.
const APART_LEAST: f64 = 0.01;

/// The remedy for jobs that did not run all the time: a ramp-up would leave out what they did together.
const REMEDY: &str = "run all jobs equally long (`runtime` with `time_based`), run them longer, or \
                      precondition the target";

impl Recording {
    /// Adds the steady periods, the warnings and the notes about rate and latency to `result`, whose series and intervals
    /// are known, and which has the warnings about its overloaded jobs.
    pub(crate) fn judge_latencies(&self, result: &mut RunResult) {
        // The load changes when a job begins or ends, and rate and latency with it. Only the time in which all jobs ran shows
        // whether the target kept its level.
        let together = together(&result.jobs, self.window().as_s_f64());
        let within = together.clone().unwrap_or(ALWAYS);
        let at_once = match self.request_loop {
            RequestLoop::Closed => 1,
            RequestLoop::Open { .. } => {
                self.little.courses().0.at_first().map_or(1, |(_, many)| many)
            }
        };
        let window = together.is_none().then(|| (self.requests(), self.window().as_s_f64()));
        let load = drift::Load { at_once, window };
        let mut found = drift::findings(&self.batches, self.start, &within, load);
        // A stretch that a warning calls a warm-up is not called steady: there is one verdict.
        let load_seconds = self.little.last_arrival().saturating_sub(self.start).as_s_f64();
        let load_seconds = load_seconds.min(within.end);
        let points = points_of(&result.series, &within);
        let moments =
            self.series.moments() * points.len() as u64 / result.series.len().max(1) as u64;
        result.steady_state = steady::find(points, found.warm_up_seconds, load_seconds, moments);
        let overload = match self.request_loop {
            RequestLoop::Closed => few::filling(self.requests(), self.little.outstanding_max()),
            // Each job with a rate was judged alone, see `overloads_of_jobs`.
            RequestLoop::Open { .. } if !result.jobs.is_empty() => None,
            RequestLoop::Open { limit } => {
                let overload = Overload::find(self.little.courses());
                overload.map(|overload| overload.warning(limit)).or_else(|| {
                    let warning = near_limit::warning(self.little.courses())?;
                    result.confidence.iter_mut().for_each(near_limit::open);
                    Some(warning)
                })
            }
        };
        match overload {
            // The drift of the latencies has the same cause.
            Some(warning) => result.warnings.push(warning),
            None if result.warns_of(WarningKind::Overloaded) => {}
            None => {
                let drifts = found.warnings.iter().any(|one| one.kind.is_unsteady());
                // The interval of the rate covers the whole run, with the jobs that end.
                let interval = result.confidence.as_ref().and_then(|c| c.iops);
                let interval = interval.filter(|_| together.is_none());
                let unsettled = || drift::unsettled(result.steady_state.as_ref());
                let unsteady = drift::loose(interval).or_else(unsettled).filter(|_| !drifts);
                found.warnings.extend(unsteady);
                let warnings = found.warnings.into_iter().map(|warning| match &together {
                    Some(_) => warning.of("while all jobs ran").with_help(REMEDY),
                    None => warning,
                });
                result.warnings.extend(warnings);
            }
        }
        result.warnings.extend(few::warnings(result));
        result.notes.extend(found.notes);
    }
}

/// The time in which all of `jobs` ran, in seconds from the start of a window of `window_seconds`; empty if they never did.
/// `None` if they ran in the whole window, or if there are no several jobs.
fn together(jobs: &[JobResult], window_seconds: f64) -> Option<Range<f64>> {
    let ran: Vec<&JobResult> = jobs.iter().filter(|job| job.requests > 0).collect();
    let from = ran.iter().map(|job| job.start_seconds).fold(0.0, f64::max);
    let ends = ran.iter().map(|job| job.start_seconds + job.seconds);
    let to = ends.fold(window_seconds, f64::min);
    (ran.len() > 1 && to - from < (1.0 - APART_LEAST) * window_seconds).then_some(from..to)
}

/// The points of `series` that lie in `within` as a whole.
fn points_of<'a>(series: &'a [SeriesPoint], within: &Range<f64>) -> &'a [SeriesPoint] {
    let from = series.partition_point(|point| point.start_seconds < within.start);
    let end = |point: &SeriesPoint| point.start_seconds + point.length_seconds;
    let to = series.partition_point(|point| end(point) <= within.end);
    &series[from.min(to)..to]
}

#[cfg(test)]
mod tests {
    use ssdyno_block::{Completion, Request, Status, Time, Token};
    use ssdyno_figures::{Keep, Warning};

    use super::*;
    use crate::recorder::Recorder;

    fn job(start_seconds: f64, seconds: f64) -> JobResult {
        JobResult { start_seconds, seconds, requests: 1, ..JobResult::default() }
    }

    /// Two jobs with one request outstanding: the first runs for 4 s with latencies of 100 µs, the second for 2.4 s with
    /// latencies of 400 µs. Latencies rise by the share `growth` a second.
    fn run(growth: f64, jobs: Vec<JobResult>) -> RunResult {
        let mut recorder = Recorder::new(Keep::Summary, Some(Time::from_ms(10)));
        let ends = [Time::from_ms(4_000), Time::from_ms(2_400)];
        let mut issued = [Time::ZERO; 2];
        issued.iter().for_each(|at| recorder.arrived(*at));
        let due = |job: usize, at: Time| {
            let ns = [100_000.0, 400_000.0][job] * (1.0 + growth * at.as_s_f64());
            at + Time::from_ns(ns as u64)
        };
        loop {
            let running = (0..2).filter(|job| issued[*job] < ends[*job]);
            let Some(job) = running.min_by_key(|job| due(*job, issued[*job])) else { break };
            let (accepted, completed) = (issued[job], due(job, issued[job]));
            let completion =
                Completion { token: Token(0), status: Status::Ok, accepted, completed };
            recorder.record(&Request::read(0, 512), accepted, &completion);
            if completed < ends[job] {
                recorder.arrived(completed);
            }
            issued[job] = completed;
        }
        let mut recording = recorder.finish(Time::ZERO);
        recording.set_request_loop(RequestLoop::Closed);
        let mut result = RunResult { jobs, ..RunResult::default() };
        recording.fill(&mut result);
        result
    }

    fn of_level(result: &RunResult) -> Vec<&Warning> {
        let is = |kind: WarningKind| kind.is_unsteady() || kind == WarningKind::WarmUp;
        result.warnings.iter().filter(|warning| is(warning.kind)).collect()
    }

    /// The mean latency falls when the slow job ends: for a load that is not known to be two jobs it is a change.
    #[test]
    fn the_end_of_a_job_is_no_change_of_the_target() {
        assert!(!of_level(&run(0.0, Vec::new())).is_empty());
        let result = run(0.0, vec![job(0.0, 4.0), job(0.0, 2.4)]);
        assert_eq!(of_level(&result), Vec::<&Warning>::new());
        let steady = result.steady_state.unwrap();
        assert!(steady.steady_share > 0.95 && steady.periods[0].to_seconds < 2.5, "{steady:?}");
    }

    #[test]
    fn a_change_while_all_jobs_run_is_told_without_a_ramp_up() {
        let result = run(0.2, vec![job(0.0, 4.0), job(0.0, 2.4)]);
        let told = of_level(&result);
        assert!(told.iter().any(|warning| warning.kind == WarningKind::Slowing), "{told:?}");
        for warning in told {
            assert!(warning.message.starts_with("while all jobs ran: "), "{warning:?}");
            assert_eq!(warning.help.as_deref(), Some(REMEDY));
        }
    }

    #[test]
    fn jobs_are_judged_while_they_run_together() {
        assert_eq!(together(&[], 4.0), None);
        assert_eq!(together(&[job(0.0, 2.0)], 4.0), None);
        assert_eq!(together(&[job(0.0, 4.0), job(0.01, 3.97)], 4.0), None);
        assert_eq!(together(&[job(0.0, 4.0), job(1.0, 2.0)], 4.0), Some(1.0..3.0));
        let idle = JobResult::default();
        assert_eq!(together(&[job(0.0, 4.0), idle], 4.0), None);
        // Groups run one after the other.
        let groups = together(&[job(0.0, 2.0), job(2.0, 2.0)], 4.0).unwrap();
        assert!(groups.is_empty());
        let point = |at: usize| SeriesPoint {
            start_seconds: at as f64,
            length_seconds: 1.0,
            ..SeriesPoint::default()
        };
        let series: Vec<SeriesPoint> = (0..4).map(point).collect();
        assert_eq!(points_of(&series, &ALWAYS).len(), 4);
        assert_eq!(points_of(&series, &(0.5..3.5)), &series[1..3]);
        let (from, to) = (3.0, 2.0);
        assert!(points_of(&series, &(from..to)).is_empty());
    }
}
