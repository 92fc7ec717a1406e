//! The figures of a part of a run: of a job, or of a namespace.

use ssdyno_block::{Op, Time};
use ssdyno_figures::{
    ByOp, Confidence, JobResult, NamespaceResult, RunResult, SeriesPoint, Warning,
};

use crate::buckets::Grid;
use crate::overload::Overload;
use crate::recording::Recording;
use crate::totals::is_data;

/// A job of a file, to be judged on its own rate.
#[derive(Clone, Copy, Debug)]
pub struct RatedJob<'a> {
    /// Its name.
    pub name: &'a str,
    /// Most outstanding requests; `None` if the job has no rate.
    pub depth: Option<u64>,
    /// It pauses between its requests (`thinktime`).
    pub pauses: bool,
    /// What it recorded; `None` if it never began.
    pub recording: Option<&'a Recording>,
}

/// The warnings about jobs whose requests arrive faster than they complete, for a result that is not filled yet. A warning
/// names its job if there are several; jobs with the same name have one warning.
pub fn overloads_of_jobs(jobs: &[RatedJob<'_>]) -> Vec<Warning> {
    let mut found: Vec<(&str, Warning)> = Vec::new();
    for RatedJob { name, depth, pauses, recording } in jobs {
        let (Some(depth), Some(recording)) = (depth, recording) else { continue };
        if found.iter().any(|(told, _)| told == name) {
            continue;
        }
        let overload = Overload::find(recording.little.courses());
        let warning = |one: Overload| one.warning(Some(*depth)).with_pauses(*pauses);
        found.extend(overload.map(|overload| (*name, warning(overload))));
    }
    let named = |(name, warning): (&str, Warning)| match jobs {
        [_] => warning,
        _ => warning.of(&format!("[{name}]")),
    };
    found.into_iter().map(named).collect()
}

impl Recording {
    /// The figures of one job, in a run whose recorded window began at `run_start`. Name, group
    /// and copies are for the caller to fill.
    pub fn job_result(&self, run_start: Time) -> JobResult {
        let seconds = self.window().as_s_f64();
        let per_second = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let moved = Op::ALL.iter().filter(|op| is_data(**op)).map(|op| self.bytes(*op)).sum();
        let requests = self.requests();
        JobResult {
            start_seconds: self.start().saturating_sub(run_start).as_s_f64(),
            seconds,
            requests,
            errors: self.errors(),
            unanswered: self.unanswered(),
            iops: per_second(requests),
            throughput_bytes_per_second: per_second(moved),
            requests_by_op: ByOp::from_fn(|op| self.count(op)),
            latency_ns: self.latency(),
            ..JobResult::default()
        }
    }

    /// Intervals around `figures`, which are of this recording, as those of a whole run without rows; `None` where there are
    /// too few requests for any.
    pub fn confidence_of(&self, figures: &JobResult) -> Option<Confidence> {
        let of_run = RunResult {
            iops: figures.iops,
            throughput_bytes_per_second: figures.throughput_bytes_per_second,
            latency_ns: figures.latency_ns.clone(),
            ..RunResult::default()
        };
        self.confidence(&of_run, &self.histogram_of_all(), None)
    }

    /// The series in `most` points at most, of which 0 is as many as 1. Neighbours are joined, in equal numbers but for the last:
    /// counts, sums and maxima stay exact, percentiles within 0.4 %.
    pub fn series_of(&mut self, most: usize) -> Vec<SeriesPoint> {
        let grid = self.series.grid();
        // The points are joined in whole numbers. Points of a fraction would divide stretches,
        // which have no times of their single requests.
        let joined = grid.index(self.end).div_ceil(most.max(1)).max(1);
        let coarse = Grid::unlimited(grid.interval() * joined as u64).from(grid.origin());
        self.series.on_grid(coarse, |at| at).points(self.end)
    }

    /// The figures of a namespace; what the namespace is, is for the caller to fill.
    pub fn namespace_result(&self) -> NamespaceResult {
        let figures = self.job_result(self.start());
        NamespaceResult {
            requests: figures.requests,
            errors: figures.errors,
            iops: figures.iops,
            throughput_bytes_per_second: figures.throughput_bytes_per_second,
            latency_ns: figures.latency_ns,
            ..NamespaceResult::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::{Completion, Request, Status, Token};
    use ssdyno_figures::{Keep, WarningKind};

    use super::*;
    use crate::recorder::Recorder;
    use crate::recording::RequestLoop;

    /// A job with `rate` arrivals per second during one second, whose requests take 1 ms each, one after the other.
    fn job(rate: u64) -> Recording {
        let mut recorder = Recorder::new(Keep::Summary, None).start_recording_at(Time::ZERO);
        let arrival = |at: u64| Time::from_ns(at * 1_000_000_000 / rate);
        let mut free = Time::ZERO;
        for at in 0..rate {
            recorder.arrived(arrival(at));
            free = free.max(arrival(at)) + Time::from_ms(1);
            let (token, status) = (Token(0), Status::Ok);
            let completion = Completion { token, status, accepted: arrival(at), completed: free };
            recorder.record(&Request::read(0, 512), arrival(at), &completion);
        }
        recorder.finish(Time::ZERO)
    }

    /// The jobs complete 1000 requests per second. Of 2000 and 500 that arrive, only the first are too many. All 2500
    /// requests together would name neither the job nor its factor.
    #[test]
    fn the_job_that_falls_behind_its_rate_is_named() {
        let (fast, slow) = (job(2_000), job(500));
        let rated = |name, recording| RatedJob { name, depth: Some(4), pauses: false, recording };
        let (a, b) = (rated("a", Some(&fast)), rated("b", Some(&slow)));
        let told = overloads_of_jobs(&[a, b, rated("never", None), a]);
        assert_eq!(told.len(), 1, "{told:?}");
        let start = "[a]: overloaded 2.0x: 2.000 k requests arrive per second, the target completes 1.000 k;";
        assert!(told[0].message.starts_with(start), "{told:?}");
        let help = "lower the arrival rate below 1.000 k requests per second; a greater depth (now 4) helps only \
                    if the target serves more requests at once";
        assert_eq!(told[0].help.as_deref(), Some(help));
        assert!(overloads_of_jobs(&[a])[0].message.starts_with("overloaded 2.0x"));
        assert!(overloads_of_jobs(&[RatedJob { depth: None, ..a }, b]).is_empty());
        // The pauses of another job do not matter.
        let pauses = |pauses| overloads_of_jobs(&[RatedJob { pauses, ..a }, b])[0].message.clone();
        assert!(pauses(true).contains("`thinktime`") && !pauses(false).contains("`thinktime`"));
    }

    /// A result with an overloaded job has no second warning with the advice to run longer, and the requests of all jobs
    /// are not judged as those of one load.
    #[test]
    fn an_overloaded_job_explains_the_drift_of_the_run() {
        let judged = |warnings: Vec<Warning>| {
            let mut recording = job(2_000);
            recording.set_request_loop(RequestLoop::Open { limit: None });
            let jobs = vec![JobResult { requests: 1, ..JobResult::default() }];
            let mut result = RunResult { jobs, warnings, ..RunResult::default() };
            recording.fill(&mut result);
            let few = |kind: WarningKind| kind == WarningKind::FewRequests;
            let kinds = result.warnings.iter().map(|one| one.kind).filter(|kind| !few(*kind));
            kinds.collect::<Vec<_>>()
        };
        let fast = job(2_000);
        let told = overloads_of_jobs(&[RatedJob {
            name: "a",
            depth: Some(1),
            pauses: false,
            recording: Some(&fast),
        }]);
        assert_eq!(judged(told), [WarningKind::Overloaded]);
        assert!(!judged(Vec::new()).contains(&WarningKind::Overloaded));
    }
}
