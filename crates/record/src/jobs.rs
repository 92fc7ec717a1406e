//! The figures of a part of a run: of a job, or of a namespace.

use ssdyno_block::{Op, Time};
use ssdyno_figures::{ByOp, Confidence, JobResult, NamespaceResult, RunResult, SeriesPoint};

use crate::buckets::Grid;
use crate::recording::Recording;
use crate::totals::is_data;

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
