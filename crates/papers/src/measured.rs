//! What the points of a paper's figures gave: each is run once with every seed of the plan.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use ssdyno_result::{HostResult, RunResult};
use ssdyno_rig::{KeepGoing, SimRun};

use crate::mean::Mean;
use crate::parallel::execute;
use crate::{PaperError, PapersOptions, PapersProgress, RunSummary};

/// A point of a figure: one run for each seed.
pub(crate) trait Point: Clone + Ord + Sync {
    /// Name of its run with `seed` in lists of runs.
    fn name(&self, seed: u64) -> String;
}

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Measured<P> {
    /// By point: the result with each seed.
    runs: BTreeMap<P, Vec<(u64, RunResult)>>,
    /// Points that somebody asked for.
    asked: RefCell<BTreeSet<P>>,
    /// True if something was stopped before its end.
    pub(crate) partial: bool,
}

impl<P: Point> Measured<P> {
    /// Runs all `points` with all `seeds` of the plan, side by side. `build` gives the run of a point
    /// and of a seed, which moves with that of the command line.
    ///
    /// # Errors
    /// The first run that cannot be built, is refused, or breaks an invariant.
    pub(crate) fn simulate(
        points: &BTreeSet<P>,
        seeds: &[u64],
        options: &PapersOptions,
        build: impl Fn(&P, u64) -> Result<SimRun, PaperError> + Sync,
        progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
    ) -> Result<Measured<P>, PaperError> {
        let jobs: Vec<(&P, u64)> =
            points.iter().flat_map(|point| seeds.iter().map(move |seed| (point, *seed))).collect();
        let build = |&(point, seed): &(&P, u64)| build(point, seed.wrapping_add(options.seed));
        let name = |&(point, seed): &(&P, u64)| point.name(seed);
        let results = execute(&jobs, &name, &build, options.threads, progress)?;
        let mut measured = Measured {
            runs: BTreeMap::new(),
            asked: RefCell::default(),
            partial: results.len() < jobs.len(),
        };
        for (at, result) in results {
            let (point, seed) = jobs[at];
            measured.partial |= result.partial;
            measured.runs.entry(point.clone()).or_default().push((seed, result));
        }
        Ok(measured)
    }

    /// The points that were asked for since the last time, which are those that an answer depends on.
    pub(crate) fn take_asked(&self) -> BTreeSet<P> {
        self.asked.take()
    }

    /// The results of a point, in the order of the seeds.
    pub(crate) fn runs(&self, point: &P) -> impl Iterator<Item = &RunResult> {
        self.asked.borrow_mut().insert(point.clone());
        self.runs.get(point).into_iter().flatten().map(|(_, run)| run)
    }

    /// Every run, with its point.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&P, &RunResult)> {
        self.asked.borrow_mut().extend(self.runs.keys().cloned());
        self.runs.iter().flat_map(|(point, runs)| runs.iter().map(move |(_, run)| (point, run)))
    }

    /// `figure` of a point, over its seeds.
    pub(crate) fn mean(&self, point: &P, figure: impl Fn(&RunResult) -> f64) -> Option<Mean> {
        Mean::of(&self.runs(point).map(figure).collect::<Vec<f64>>())
    }

    /// Requests a second.
    pub(crate) fn iops(&self, point: &P) -> Option<Mean> {
        self.mean(point, |run| run.iops)
    }

    /// Throughput, in MB/s.
    pub(crate) fn megabytes(&self, point: &P) -> Option<Mean> {
        self.mean(point, |run| run.throughput_bytes_per_second / 1e6)
    }

    /// Mean latency, in us.
    pub(crate) fn latency_us(&self, point: &P) -> Option<Mean> {
        self.mean(point, |run| run.latency_ns.as_ref().map_or(f64::NAN, |l| l.all.mean / 1e3))
    }

    /// A figure of the host.
    pub(crate) fn host(&self, point: &P, figure: impl Fn(&HostResult) -> f64) -> Option<Mean> {
        self.mean(point, |run| run.host.as_ref().map_or(f64::NAN, &figure))
    }

    /// What a reader is told about the runs.
    pub(crate) fn summaries(&self) -> Vec<RunSummary> {
        let runs = self.runs.iter().flat_map(|(point, runs)| {
            runs.iter().map(|(seed, run)| RunSummary::of(point.name(*seed), run))
        });
        runs.collect()
    }
}
