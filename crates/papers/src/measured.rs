//! What the points of a paper's figures gave: each is run once with every seed of the plan.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use ssdyno_figures::{HostResult, RunResult};
use ssdyno_session::{Failure, FailureKind, RunList, RunSpec, Unattended, resolve};

use crate::assumptions::Changes;
use crate::cache::RunId;
use crate::error::{defect, refused};
use crate::mean::Mean;
use crate::{KeepGoing, PapersOptions, PapersProgress, RunSummary};

/// A point of a figure: one run for each seed.
pub(crate) trait Point: Clone + Ord + Sync {
    /// Name of its run with `seed` in lists of runs.
    fn name(&self, seed: u64) -> String;
}

/// The plan of a paper whose figures are made of points.
pub(crate) trait PointPlan: Sized {
    /// What a run is of, but for its seed.
    type Case: Point;

    /// The paper's file, with what differs in `plan.…`.
    fn with(changes: Changes<'_>) -> Result<Self, Failure>;

    /// Those that each point is run with.
    fn seeds(&self) -> &[u64];

    /// The run of `case`, whatever its seed, with `changes` to the presets.
    fn spec(
        &self,
        case: &Self::Case,
        options: &PapersOptions,
        changes: Changes<'_>,
    ) -> Result<RunSpec, Failure>;

    /// Runs every one of `cases` with every seed, side by side, with `changes` to presets and plan. The seed of
    /// the command line moves those of the plan.
    ///
    /// # Errors
    /// The first run that is refused, that ends early by itself, or whose figures are not to be trusted.
    fn simulate(
        cases: &BTreeSet<Self::Case>,
        options: &PapersOptions,
        changes: Changes<'_>,
        progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
    ) -> Result<Measured<Self::Case>, Failure> {
        let plan = Self::with(changes)?;
        let refused = |(case, seed): (&Self::Case, u64), failure: &Failure| {
            refused(&case.name(seed), failure)
        };
        let cache = &options.cache;
        let (mut jobs, mut results) = (Vec::new(), Vec::new());
        let (mut open, mut runs) = (Vec::new(), Vec::new());
        for case in cases {
            let spec = plan.spec(case, options, changes)?;
            for seed in changes.seeds(plan.seeds()) {
                let job = (case, *seed);
                // The seed of the command line moves all seeds of the plan. The number of seeds
                // stays the same, and so does the width of the intervals.
                let spec = RunSpec { seed: seed.wrapping_add(options.seed), ..spec.clone() };
                let id = RunId::new("point", &spec);
                let id = id.map_err(|error| defect("papers", error))?;
                let kept: Option<RunResult> = cache.find(&id);
                if kept.is_none() {
                    // Every run is resolved before the first one starts. An impossible point is
                    // reported at once and not after an hour of simulation.
                    runs.push(resolve(&spec, &mut Unattended).map_err(|why| refused(job, &why))?);
                    open.push((jobs.len(), id));
                }
                results.push(kept);
                jobs.push(job);
            }
        }
        let take = |at: usize, ended: Result<ssdyno_session::Measured, Failure>| {
            let (place, id) = &open[at];
            let (case, seed) = jobs[*place];
            let ended = ended.map_err(|why| refused((case, seed), &why))?;
            // There are hundreds, and nobody repeats one of them alone.
            let result = RunResult { spec: None, ..ended.result };
            match ended.failure {
                // An interruption is no failure: finished runs keep their results, and the report
                // is marked partial. Any other early end would give wrong figures.
                Some(why) if why.kind != FailureKind::Interrupted => {
                    return Err(refused((case, seed), &why));
                }
                // Only complete runs are stored. The identifier does not contain the moment of an
                // interruption, so a partial run would be found as a complete one.
                None if !result.partial => cache.keep(id, &case.name(seed), &result),
                _ => {}
            }
            Ok(result)
        };
        let of = open.len() as u64;
        cache.start();
        let made = RunList::new(runs).over(options.threads).execute(take, &mut |list| {
            progress(&PapersProgress::part(list.ended() as u64, of, Vec::new()))
        })?;
        for ((place, _), result) in open.iter().zip(made) {
            results[*place] = result;
        }
        let mut measured =
            Measured { runs: BTreeMap::new(), asked: RefCell::default(), partial: false };
        for ((case, seed), result) in jobs.into_iter().zip(results) {
            // A run that was never begun has no result. It makes the whole partial as much as one
            // that was cut.
            measured.partial |= result.as_ref().is_none_or(|result| result.partial);
            let of_case: &mut Vec<_> = measured.runs.entry(case.clone()).or_default();
            of_case.extend(result.map(|result| (seed, result)));
        }
        Ok(measured)
    }
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
    /// The points that `draw` asks for, whose runs a drawing needs.
    pub(crate) fn asked_by<T>(draw: impl FnOnce(&Measured<P>) -> T) -> BTreeSet<P> {
        let nothing = Measured { runs: BTreeMap::new(), asked: RefCell::default(), partial: false };
        draw(&nothing);
        nothing.take_asked()
    }

    /// The points that were asked for since the last time, which are those that an answer depends on.
    pub(crate) fn take_asked(&self) -> BTreeSet<P> {
        self.asked.take()
    }

    /// The results of a point, in the order of the seeds.
    pub(crate) fn runs(&self, point: &P) -> impl Iterator<Item = &RunResult> {
        // Reading a point records it. The points behind a claim are thus known without a list that
        // could differ from what its check reads.
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
