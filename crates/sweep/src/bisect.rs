//! The runs of a bisection: one rate after the other, each as long as it takes to decide.

use std::collections::HashMap;
use std::mem;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_figures::KeepGoing;
use ssdyno_session::{Failure, RunSpec, StopFlag, side_by_side};

use crate::ceiling::{Ceiling, Side};
use crate::designs::Sampling;
use crate::execute::{Crew, Sweep, SweepProgress, hash, run};
use crate::objective::Requirement;
use crate::plan::SweepPlan;
use crate::row::{DesignState, SweepRow};
use crate::swept::{RATE, number};

/// Requests of the pilot, one at a time.
const PILOT: u64 = 1000;

/// How often the run at a rate is repeated with four times as many requests where the bound lies within the interval.
const LONGER: u32 = 2;

/// The same where a warning says that the run looks better than it is: a write buffer of 512 MiB that takes the
/// 20 000 writes of a short run is full after 16 times as many, and the rate that it seemed to carry is an overload.
const LONGER_FLATTERED: u32 = 5;

/// What ends a bisection early.
enum Cut {
    /// The user, or `time`.
    Stopped,
    Failed(Failure),
}

impl SweepPlan {
    /// The bound of a bisection.
    ///
    /// # Errors
    /// The plan does not vary the rate over one range alone, or has another bound than one of a latency from above.
    pub(crate) fn bisected(&self) -> Result<&Requirement, Failure> {
        let wrong = |message: &str, help: &str, key: &str| {
            Err(Failure::usage(message).with_help(help).with_key(key))
        };
        let is_range = |axis: &crate::axis::Axis| axis.key() == RATE && axis.count().is_none();
        if !matches!(self.vary.as_slice(), [axis] if is_range(axis)) {
            let help = format!("write vary = [\"{RATE}=1..1000000000\"]");
            return wrong(
                "a bisection must vary the rate of arrivals over one range",
                &help,
                "vary",
            );
        }
        match self.require.as_slice() {
            [bound] if bound.is_latency_from_above() => Ok(bound),
            _ => wrong(
                "a bisection needs exactly one bound, and it must be on a latency",
                "write require = [\"p99<1ms\"]",
                "require",
            ),
        }
    }
}

impl Sweep {
    /// Runs rates until the bracket around the bound is narrow. Gives whether it was stopped, and a failure that ended it.
    pub(crate) fn bisect(
        &mut self,
        watch: &mut dyn FnMut(SweepProgress) -> KeepGoing,
    ) -> Result<(bool, Option<Failure>), Failure> {
        let bound = self.plan.bisected()?.clone();
        // The rows of an earlier call are looked up by the hash of their spec. The bisection takes the same way
        // again, because it depends on its results alone, and skips what it knows.
        let earlier = mem::take(&mut self.rows);
        let crew = Crew::new(&self.plan, self.journal.take(), 0);
        let mut bisection = Bisection {
            plan: &self.plan,
            crew: &crew,
            known: earlier.into_iter().map(|row| (row.spec_hash.clone(), row)).collect(),
            rows: Vec::new(),
            watch,
        };
        let (ceiling, cut) = bisection.all(&bound);
        let rows = bisection.rows;
        let is_late = crew.is_late.load(Ordering::Relaxed);
        self.journal = crew.journal.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.rows = rows;
        let failure = ceiling.as_ref().and_then(|ceiling| ceiling.failure(&bound));
        self.ceiling = ceiling;
        match cut {
            // `time` ends a bisection as narrow as the bracket is at that moment. That is a
            // result, while an interrupt by the user is not.
            Some(Cut::Stopped) if is_late => Ok((false, failure)),
            Some(Cut::Stopped) => Ok((true, None)),
            // Without any row there is no table, so the failure is the only result. Otherwise the
            // table is kept, and the failure comes with it.
            Some(Cut::Failed(failure)) if self.rows.is_empty() => Err(failure),
            Some(Cut::Failed(failure)) => Ok((false, Some(failure))),
            None => Ok((false, failure)),
        }
    }
}

struct Bisection<'a> {
    plan: &'a SweepPlan,
    crew: &'a Crew<'a>,
    /// Rows of an earlier call, by the hash of their spec: the same rates are asked for again.
    known: HashMap<String, SweepRow>,
    rows: Vec<SweepRow>,
    watch: &'a mut dyn FnMut(SweepProgress) -> KeepGoing,
}

impl Bisection<'_> {
    fn all(&mut self, bound: &Requirement) -> (Option<Ceiling>, Option<Cut>) {
        let mut ceiling = match self.pilot() {
            Ok(rate) => Ceiling::new(bound, rate),
            Err(cut) => return (None, Some(cut)),
        };
        let ends = [0.0, 1.0].map(|share| self.plan.vary.first().map(|axis| axis.at(share)));
        let [least, most] = ends.map(|end| end.as_ref().and_then(number).unwrap_or(1.0));
        while let Some(rate) = ceiling.next(least, most) {
            // The rate is rounded before it is run, and the rounded rate goes into the bracket. The
            // table then shows exactly the rates that were tried.
            let value = if rate.fract() == 0.0 { json!(rate as u64) } else { json!(rate) };
            match self.step(&value, bound) {
                Ok(side) => {
                    let limit = self.rows.last().and_then(|row| row.outstanding_limit);
                    ceiling.take(rate, side, limit);
                }
                Err(cut) => return (Some(ceiling), Some(cut)),
            }
        }
        (Some(ceiling), None)
    }

    /// The rate of a closed loop with one request outstanding.
    fn pilot(&mut self) -> Result<f64, Cut> {
        let mut spec = self.plan.base();
        // A load without arrivals is a closed loop. The pilot needs one, because its rate with one
        // request outstanding needs no knowledge of the target.
        spec.set.retain(|one| !one.trim().starts_with("workload.arrivals."));
        spec.set.push("workload.depth=1".to_owned());
        // A spec has one of the three limits. The pilot replaces all of them: 1000 requests suffice for a
        // mean, and a limit of hours would delay the search.
        let requests = spec.requests.map_or(PILOT, |n| n.min(PILOT));
        (spec.requests, spec.duration, spec.until) = (Some(requests), None, None);
        let plan = SweepPlan {
            run: spec,
            vary: Vec::new(),
            sampling: Sampling::Grid,
            ..self.plan.clone()
        };
        let row = self.one(|stop| Ok(run(&plan, 0, Vec::new(), stop)))?;
        let mean = row.figure("latency_ns.mean").filter(|ns| *ns > 0.0);
        mean.map(|ns| 1e9 / ns).ok_or_else(|| {
            let message = "the pilot run (one request at a time) has no latency";
            Cut::Failed(Failure::failed(message))
        })
    }

    /// The side on which the rate lies; its longest run becomes a row.
    fn step(&mut self, value: &Value, bound: &Requirement) -> Result<Side, Cut> {
        let (number, mut plan) = (self.rows.len() as u64, self.plan.clone());
        for at in 0.. {
            let values = vec![value.clone()];
            let spec = plan.spec(&values).map_err(Cut::Failed)?;
            // The hash includes the length of the run. A longer run at the same rate is therefore
            // another entry and is not taken for the short one.
            let row = match self.known.remove(&hash(&spec)) {
                Some(row) => SweepRow { design: number, ..row },
                None => self.fresh(&plan, number, values)?,
            };
            let side = side(&row, bound);
            let longer = longer(&plan.run, &row);
            // Each repetition is four times as long, so its interval is about half as wide. After 16
            // times the length the rate counts as undecided.
            let most = if row.is_unrepresentative() { LONGER_FLATTERED } else { LONGER };
            let is_over = side != Side::Undecided || at >= most;
            let Some(longer) = longer.filter(|_| !is_over) else {
                self.rows.push(row);
                return Ok(side);
            };
            plan.run = longer;
        }
        Ok(Side::Undecided)
    }

    fn fresh(
        &mut self,
        plan: &SweepPlan,
        number: u64,
        values: Vec<Value>,
    ) -> Result<SweepRow, Cut> {
        let crew = self.crew;
        self.one(|stop| crew.row_of(plan, number, values.clone(), stop))
    }

    /// A row that `make` gives on a thread of its own, while it is watched whether to stop.
    fn one(
        &mut self,
        make: impl Fn(&StopFlag) -> Result<Option<SweepRow>, Failure> + Sync,
    ) -> Result<SweepRow, Cut> {
        let done = self.rows.len() as u64;
        let progress = SweepProgress { done, of: done + 1, ..SweepProgress::default() };
        let ran =
            side_by_side(&[()], Some(1), |(), stop| make(stop), &mut |_| (self.watch)(progress));
        let row = ran.map_err(Cut::Failed)?.into_iter().flatten().flatten().next();
        let row = row.ok_or(Cut::Stopped)?;
        // A failed run ends the search. Its rate would decide the direction of all
        // later steps, and nothing is known about it.
        match row.state {
            DesignState::Done => Ok(row),
            _ => {
                let why = row.why.unwrap_or_default();
                Err(Cut::Failed(Failure::failed(why)))
            }
        }
    }
}

/// What `row` says about `bound`.
fn side(row: &SweepRow, bound: &Requirement) -> Side {
    // Failures come first: the latency of the other requests says nothing of those that failed.
    if let Some(failed) = row.failed_requests() {
        return Side::Failing(failed);
    }
    // Then overload. In an overloaded run the completed requests may still be fast,
    // while the queue in front of them grows without end.
    if row.overloaded {
        return Side::Overloaded;
    }
    let figure = row.figures.get(bound.figure());
    let [low, high] = [figure.and_then(|one| one.low), figure.and_then(|one| one.high)];
    // Both tests use the interval and not the value. A decision by the value alone would be a coin toss
    // near the bound, and the bracket would exclude the truth.
    if high.is_some_and(|high| high <= bound.bound()) {
        // A rate that is within the bound only while a buffer fills is not within it.
        if row.is_unrepresentative() { Side::Undecided } else { Side::Within }
    } else if low.is_some_and(|low| low > bound.bound()) {
        Side::Beyond
    } else {
        Side::Undecided
    }
}

/// `spec` with four times the length of the run that gave `row`; `None` where the run itself decides how long it is.
fn longer(spec: &RunSpec, row: &SweepRow) -> Option<RunSpec> {
    if spec.until.is_some() {
        return None;
    }
    let mut longer = spec.clone();
    match spec.duration {
        Some(one) => longer.duration = Some(Span(Time::from_ns(one.0.as_ns() * 4))),
        None => longer.requests = Some(spec.requests.unwrap_or(row.requests + row.errors) * 4),
    }
    Some(longer)
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::KeepGoing;

    use super::*;
    use crate::ceiling::FailedRequests;
    use crate::row::SweepFigure;

    #[test]
    fn a_row_with_failed_requests_is_beyond_every_bound() {
        let bound = Requirement::latency_target("p99=1ms").unwrap();
        let figure =
            SweepFigure { value: 1e5, low: Some(9e4), high: Some(1.1e5), ..SweepFigure::default() };
        let row = |errors, unanswered| SweepRow {
            figures: [("latency_ns.p99".to_owned(), figure)].into(),
            requests: 90,
            errors,
            unanswered,
            ..SweepRow::new(0, Vec::new(), 1)
        };
        assert_eq!(side(&row(0, 0), &bound), Side::Within);
        for (errors, unanswered) in [(10, 0), (10, 10), (0, 10)] {
            let failing = Side::Failing(FailedRequests { failed: 10, requests: 100 });
            assert_eq!(side(&row(errors, unanswered), &bound), failing);
        }
    }

    /// The 2000 writes of a run fit into the buffer of 16 MiB (4096 pages), where each takes microseconds. The drive
    /// itself completes a few ten thousand a second. Without longer runs the search ended at
    /// ten times that rate.
    #[test]
    fn a_rate_that_a_buffer_carries_for_a_short_time_is_not_the_result() {
        let plan = "vary = [\"workload.arrivals.rate=1..1000000000\"]\nsampling = \"bisection\"\nrequire = [\"p99<1ms\"]\n\
                    [run]\ntarget = \"sim:nvme-tlc\"\nworkload = \"randwrite\"\nrequests = 2000\n\
                    set = [\"workload.arrivals.kind=poisson\", \"workload.depth=1000000\"]\n";
        let plan = SweepPlan::from_toml("plan.toml", plan).unwrap();
        let sweep = plan.prepare(&mut ssdyno_session::Unattended).unwrap();
        let (result, failure) = sweep.execute(&mut |_| KeepGoing::Continue).unwrap();
        assert!(failure.is_none(), "{failure:?}");
        let within = result.ceiling.unwrap().within.unwrap();
        let row = result.rows.iter().find(|row| row.values == [json!(within as u64)]).unwrap();
        assert!(!row.is_unrepresentative(), "{row:?}");
        // A closed loop with 64 outstanding completes 30 000 writes a second in the long run.
        assert!(within < 60_000.0, "{within}");
    }
}
