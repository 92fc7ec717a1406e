//! Carries a plan out.

use ssdyno_session::{Failure, KeptTarget, Observer};

use crate::capacity;
use crate::lane::{Lane, Shared};
use crate::loads::{Checkpoint, Loads, ended};
use crate::map;
use crate::method::Method;
use crate::plan::ProfilePlan;
use crate::recency::Recency;
use crate::result::ProfileResult;
use crate::resume::{SessionStart, same_device};
use crate::stopped::StoppedBecause;

impl ProfilePlan {
    /// Carries the profile out in one session, on a target with the usual setup.
    ///
    /// # Errors
    /// Those of [`execute_session`](ProfilePlan::execute_session).
    pub fn execute(
        &self,
        target: &mut KeptTarget,
        observer: &mut dyn Observer<ProfileResult>,
    ) -> Result<(ProfileResult, Option<Failure>), Failure> {
        self.execute_session(&SessionStart::default(), target, observer)
    }

    /// Carries the profile out, or goes on with the one in `start`. An error before the first test is returned; a
    /// later one comes with the result of everything measured before it.
    ///
    /// # Errors
    /// The plan does not suit the target or the profile before, or the target cannot be used.
    pub fn execute_session(
        &self,
        start: &SessionStart<'_>,
        target: &mut KeptTarget,
        observer: &mut dyn Observer<ProfileResult>,
    ) -> Result<(ProfileResult, Option<Failure>), Failure> {
        let (mut result, failure) = self.measure_session(start, target, observer)?;
        result.warnings.extend(target.machine_warning());
        Ok((result, failure))
    }

    fn measure_session(
        &self,
        start: &SessionStart<'_>,
        target: &mut KeptTarget,
        observer: &mut dyn Observer<ProfileResult>,
    ) -> Result<(ProfileResult, Option<Failure>), Failure> {
        let mut notes = Vec::new();
        let span = self.span_on(&target.facts(), &mut notes)?;
        if let Some(before) = start.before {
            // `resume` refuses a capacity or a map and says why. Without the call the file to
            // resume would be ignored without an error.
            self.resume(before, &start.setup)?;
        }
        match self.method {
            Method::Capacity { error } => {
                return capacity::execute(Loads::new(self, target, observer, (span, notes)), error);
            }
            Method::Map { error } => {
                return map::execute(Loads::new(self, target, observer, (span, notes)), error);
            }
            _ => {}
        }
        let record = self.record(target, &start.setup);
        if let Some(before) = start.before {
            same_device(before, &record, span)?;
        }
        let befores = start.before.map(ProfileResult::of_depths).unwrap_or_default();
        let mut lanes = Vec::new();
        for (at, plan) in self.of_depths().into_iter().enumerate() {
            let strategy = plan.strategy(span);
            lanes.push(Lane::new(plan, span, strategy, befores.get(at).copied(), target.is_real()));
        }
        // The first depth alone has the plan and the notes of the plan. `resume` compares the
        // plan once for all depths.
        lanes[0].leads(record, notes);
        let several = lanes.len() > 1;
        let recency = Recency::new(span);
        let shared = Shared { target, observer, recency, tests: 0, others_left: 0, several };
        let mut run = Run { plan: self, lanes, shared, checkpoint: Checkpoint::new() };
        let how = run.tests().map(|()| StoppedBecause::TimeLimit);
        let (open, failure) = ended(how, run.lanes.iter().all(Lane::is_empty), self.method.name())?;
        Ok((run.result(open), failure))
    }
}

struct Run<'a> {
    plan: &'a ProfilePlan,
    /// One for each depth.
    lanes: Vec<Lane>,
    shared: Shared<'a>,
    checkpoint: Checkpoint,
}

impl Run<'_> {
    /// All tests of all depths.
    fn tests(&mut self) -> Result<(), Failure> {
        if matches!(self.plan.method, Method::Adaptive { .. }) {
            // The depth with the least time so far is next. Each depth then gets the same time,
            // and a drift of the device affects all depths alike.
            let spent = |lane: &(usize, &Lane)| lane.1.session.seconds_spent;
            loop {
                let open = self.lanes.iter().enumerate().filter(|(_, lane)| lane.ended.is_none());
                let Some((at, _)) = open.min_by(|a, b| spent(a).total_cmp(&spent(b))) else {
                    return Ok(());
                };
                self.step(at, 1)?;
            }
        }
        for at in 0..self.lanes.len() {
            // Earlier depths are complete, and a depth of a resumed profile may have nothing
            // left. Only the depths that still need time share it.
            let sharing = self.lanes[at..].iter().filter(|lane| lane.tests_left() > 0).count();
            let limit = self.limit(at, sharing);
            while self.lanes[at].ended.is_none() {
                self.lanes[at].limit = limit;
                self.test(at)?;
            }
        }
        Ok(())
    }

    /// A test of a lane that may take all the time that is left divided by `sharing`.
    fn step(&mut self, at: usize, sharing: usize) -> Result<(), Failure> {
        self.lanes[at].limit = self.limit(at, sharing);
        self.test(at)
    }

    /// Seconds that the tests of a lane may take together.
    fn limit(&self, at: usize, sharing: usize) -> Option<f64> {
        let spent: f64 = self.lanes.iter().map(|lane| lane.session.seconds_spent).sum();
        let left = self.plan.time?.as_s_f64() - spent;
        // The limit of a lane is about the seconds of that lane. So the seconds that it has
        // spent are added to its part of the rest.
        Some(self.lanes[at].session.seconds_spent + left / sharing.max(1) as f64)
    }

    fn test(&mut self, at: usize) -> Result<(), Failure> {
        let others = self.lanes.iter().enumerate().filter(|(other, _)| *other != at);
        self.shared.others_left = others.map(|(_, lane)| lane.tests_left()).sum();
        self.lanes[at].step(&mut self.shared)?;
        if self.checkpoint.is_due() {
            // A checkpoint stands for a profile that ended at this moment, for example because
            // the machine lost power. `resume` can then continue it.
            let result = self.result(StoppedBecause::Interrupted);
            self.shared.observer.checkpoint(&result);
        }
        Ok(())
    }

    fn result(&self, open: StoppedBecause) -> ProfileResult {
        let mut results: Vec<ProfileResult> =
            self.lanes.iter().map(|lane| lane.result(open)).collect();
        let more_depths = results.split_off(1);
        ProfileResult { more_depths, ..results.remove(0) }
    }
}
