//! The runs of a search: a generation at a time, each over the cores of this machine.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Instant;

use heuropt::core::{Candidate, Evaluation};
use serde_json::Value;
use ssdyno_figures::KeepGoing;
use ssdyno_session::{Failure, side_by_side};

use crate::execute::{Crew, Sweep, SweepProgress, hash};
use crate::generations::{Fronts, SearchEnd, SearchOutcome, evaluation};
use crate::plan::SweepPlan;
use crate::row::{DesignState, SweepRow};
use crate::search::{Point, Search, space};

/// A search ends after so many generations that added nothing to the front.
const PATIENCE: u32 = 10;

/// What is told between the generations of a search.
struct Explorer<'a> {
    plan: &'a SweepPlan,
    /// Designs that are run at the most.
    budget: u64,
    search: Search,
    fronts: Fronts,
    /// Rows of an earlier call, by the values of their axes: the search asks for the same designs again.
    known: HashMap<String, SweepRow>,
    rows: Vec<SweepRow>,
    runs: u64,
    idle: u32,
}

impl Sweep {
    /// Runs the designs that the search asks for, and remembers how it went.
    pub(crate) fn explore(
        &mut self,
        watch: &mut dyn FnMut(SweepProgress) -> KeepGoing,
    ) -> Result<(), Failure> {
        // Rows of an earlier call are matched by their values and not by their numbers: the search counts
        // its designs in the order in which it asks for them.
        let earlier = mem::take(&mut self.rows);
        let mut crew = Crew::new(&self.plan, self.journal.take(), 0);
        let objectives = self.plan.objectives.len();
        let runs = self.plan.designs.map(|_| self.designs());
        let mut explorer = Explorer {
            plan: &self.plan,
            budget: self.designs(),
            search: Search::new(&self.plan.vary, objectives, runs, self.plan.draw_seed),
            fronts: Fronts::default(),
            known: earlier.into_iter().map(|row| (text(&row.values), row)).collect(),
            rows: Vec::new(),
            runs: 0,
            idle: 0,
        };
        let stopped = explorer.generations(&mut crew, self.is_real(), watch);
        let journal = crew.journal.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Explorer { fronts, rows, runs, .. } = explorer;
        let (generations, reference) = fronts.conclude(&self.plan.objectives);
        let outcome = SearchOutcome {
            method: "nsga-ii".to_owned(),
            space: space(&self.plan.vary),
            runs,
            stopped: stopped?,
            reference,
            generations,
        };
        (self.rows, self.journal, self.search) = (rows, journal, Some(outcome));
        Ok(())
    }
}

impl Explorer<'_> {
    fn generations(
        &mut self,
        crew: &mut Crew<'_>,
        is_real: bool,
        watch: &mut dyn FnMut(SweepProgress) -> KeepGoing,
    ) -> Result<SearchEnd, Failure> {
        let (began, mut met, mut begun) = (Instant::now(), HashSet::new(), 0);
        loop {
            if self.search.is_exhausted() {
                return Ok(SearchEnd::Exhausted);
            }
            if self.runs >= self.budget {
                return Ok(SearchEnd::Budget);
            }
            let plan = self.plan;
            // Two lists of values may mean the same spec (`1000us` and `1ms`). The hash of the
            // spec finds that, and the second one is not run.
            let mut is_new = |point: &Point| met.insert(meaning(plan, &values(plan, point)));
            let asked = self.search.ask(self.budget - self.runs, &mut is_new);
            // The search found only designs that mean the same as earlier ones. Nothing new can be
            // asked for, so the space counts as exhausted.
            if asked.is_empty() {
                return Ok(SearchEnd::Exhausted);
            }
            let values: Vec<Vec<Value>> = asked.iter().map(|point| values(plan, point)).collect();
            let first = self.rows.len() as u64;
            let mut rows: Vec<Option<SweepRow>> =
                // `remove`: each known row is used once. The number of a row is its place
                // in this call, so the table has no gaps.
                values.iter().map(|values| self.known.remove(&text(values))).collect();
            let jobs: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].is_none()).collect();
            let before = first + (rows.len() - jobs.len()) as u64;
            let mut is_cut = false;
            let ran = side_by_side(
                &jobs,
                is_real.then_some(1),
                |at, stop| crew.row(first + *at as u64, values[*at].clone(), stop),
                &mut |done| {
                    let flow =
                        watch(self.progress(before + done as u64, begun + done, began, crew));
                    is_cut |= flow == KeepGoing::Stop;
                    flow
                },
            )?;
            begun += jobs.len();
            jobs.iter().zip(ran).for_each(|(at, row)| rows[*at] = row.flatten());
            let is_whole = rows.iter().all(Option::is_some);
            let is_moved = self.take(&asked, rows);
            self.idle = if is_moved { 0 } else { self.idle + 1 };
            // The rows that did arrive were taken before this test. A stop in the
            // middle of a generation loses none of them.
            if !is_whole {
                let is_late = crew.is_late.load(Ordering::Relaxed) && !is_cut;
                return Ok(if is_late { SearchEnd::Time } else { SearchEnd::Interrupted });
            }
            if self.idle >= PATIENCE && self.runs < self.budget {
                return Ok(SearchEnd::NoImprovement);
            }
        }
    }

    /// Takes the rows of a generation, those that there are; says whether they moved the front.
    fn take(&mut self, asked: &[Point], rows: Vec<Option<SweepRow>>) -> bool {
        let (first, mut judged) = (self.rows.len() as u64, Vec::new());
        for (at, row) in rows.into_iter().enumerate() {
            let Some(row) = row else { continue };
            // Impossible designs cost nothing, so they do not use up the budget. Otherwise a space
            // with many of them would end the search early.
            let is_run = !matches!(row.state, DesignState::Impossible | DesignState::RuledOut);
            self.runs += u64::from(is_run);
            let evaluation = evaluation(&row, &self.plan.objectives, &self.plan.require);
            judged.push(Candidate::new(asked[at].clone(), evaluation));
            self.rows.push(SweepRow { design: first + at as u64, ..row });
        }
        let evaluations: Vec<Evaluation> =
            judged.iter().map(|one| one.evaluation.clone()).collect();
        self.search.tell(judged);
        self.fronts.add(&evaluations, self.runs)
    }

    fn progress(&self, done: u64, begun: usize, began: Instant, crew: &Crew<'_>) -> SweepProgress {
        let spent = began.elapsed().as_secs_f64();
        let left = |rate: f64| self.budget.saturating_sub(done) as f64 / rate;
        let by_rate = (begun > 0).then(|| left(begun as f64 / spent));
        let by_time =
            crew.until.map(|at| at.saturating_duration_since(Instant::now()).as_secs_f64());
        // Whichever limit comes first ends the search, so the
        // smaller of the two times is shown.
        let left_s = by_rate.into_iter().chain(by_time).reduce(f64::min);
        let impossible = crew.impossible.load(Ordering::Relaxed);
        SweepProgress { done, of: self.budget, impossible, left_s }
    }
}

fn values(plan: &SweepPlan, point: &Point) -> Vec<Value> {
    plan.vary.iter().zip(point).map(|(axis, at)| axis.at_position(*at)).collect()
}

fn text(values: &[Value]) -> String {
    Value::from(values).to_string()
}

/// What a design means: equal specs are one design, however their values are written.
fn meaning(plan: &SweepPlan, values: &[Value]) -> String {
    plan.spec(values).map_or_else(|_| text(values), |spec| hash(&spec))
}
