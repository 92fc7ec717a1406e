//! The runs of a sweep, over the cores of this machine.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest, Sha256};
use ssdyno_block::counted;
use ssdyno_figures::{KeepGoing, WarningKind};
use ssdyno_report::headline_figures;
use ssdyno_session::{
    BeginAt, Failure, FailureKind, Measured, RunPhase, RunSpec, StopFlag, Unattended, resolve,
    side_by_side,
};

use crate::ceiling::Ceiling;
use crate::constant;
use crate::cost::{COST, COST_PER_GIB};
use crate::curve::Curve;
use crate::designs::{Designs, Sampling};
use crate::effects::effects;
use crate::front::{judge, reject};
use crate::generations::{SearchEnd, SearchOutcome};
use crate::hopeless::{ruled_out, stopped_because, watched};
use crate::interactions::interactions;
use crate::journal::Journal;
use crate::overloads;
use crate::plan::SweepPlan;
use crate::row::{DesignState, SWEEP_VERSION, SweepFigure, SweepResult, SweepRow};
use crate::warned;

/// How often a run is asked whether it must stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How far a sweep is.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SweepProgress {
    /// Designs that are done, with those of an earlier call.
    pub done: u64,
    /// Designs of the plan.
    pub of: u64,
    /// Designs among those done whose values do not go together.
    pub impossible: u64,
    /// Seconds until the end at the speed so far, once one design is done.
    pub left_s: Option<f64>,
}

/// A sweep that can start.
#[derive(Debug)]
pub struct Sweep {
    pub(crate) plan: SweepPlan,
    pub(crate) designs: Designs,
    /// Wall time and the machine are shared with nothing else of ours: one design at a time.
    is_real: bool,
    pub(crate) rows: Vec<SweepRow>,
    pub(crate) journal: Option<Journal>,
    /// How the search went, once it is over.
    pub(crate) search: Option<SearchOutcome>,
    /// What a bisection found, once it is over.
    pub(crate) ceiling: Option<Ceiling>,
}

impl Sweep {
    pub(crate) fn new(plan: SweepPlan, designs: Designs, is_real: bool) -> Sweep {
        let (rows, journal, search, ceiling) = (Vec::new(), None, None, None);
        Sweep { plan, designs, is_real, rows, journal, search, ceiling }
    }

    /// With rows that are there already, and the journal that has them.
    pub(crate) fn after(self, rows: Vec<SweepRow>, journal: Journal) -> Sweep {
        // `journal` and `rows` belong together: the rows were read from
        // it, and new rows are appended to it.
        Sweep { rows, journal: Some(journal), ..self }
    }

    /// What is swept.
    pub fn plan(&self) -> &SweepPlan {
        &self.plan
    }

    /// How many designs there are; of a search, how many are run at the most.
    pub fn designs(&self) -> u64 {
        self.designs.count()
    }

    /// Whether results decide which designs are run next, so that they cannot be spread by their numbers.
    pub fn is_search(&self) -> bool {
        matches!(self.plan.sampling, Sampling::Search | Sampling::Bisection)
    }

    /// Whether real targets are loaded.
    pub fn is_real(&self) -> bool {
        self.is_real
    }

    /// Lets each row go to a file in `folder` as soon as it is there, for [`resume`](Sweep::resume).
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn keep_rows_in(&mut self, folder: &Path) -> Result<(), Failure> {
        if self.journal.is_none() {
            self.journal = Some(Journal::create(folder, &self.plan)?);
        }
        Ok(())
    }

    /// Runs the designs that have no row yet. `watch` is called every few milliseconds and may stop the sweep: designs
    /// under way are given up, and what is done is kept.
    ///
    /// The second value says why the sweep is no success: it was interrupted, or an objective has no figures.
    ///
    /// # Errors
    /// Nothing was run, or a row could not be written to the journal, which has all rows before it.
    pub fn execute(
        mut self,
        watch: &mut dyn FnMut(SweepProgress) -> KeepGoing,
    ) -> Result<(SweepResult, Option<Failure>), Failure> {
        if self.plan.sampling == Sampling::Bisection {
            let (stopped, why) = self.bisect(watch)?;
            let (result, failure) = self.conclude(stopped, false);
            return Ok((result, failure.or(why)));
        }
        if self.is_search() {
            self.explore(watch)?;
            let is_cut = |one: &SearchOutcome| one.stopped == SearchEnd::Interrupted;
            let stopped = self.search.as_ref().is_some_and(is_cut);
            return Ok(self.conclude(stopped, false));
        }
        // The rows of an earlier call are in `self.rows`. Only the other designs are run, so a
        // sweep that was killed goes on where it was.
        let missing = self.missing();
        let impossible = self.count(DesignState::Impossible);
        let (journal, designs) = (self.journal.take(), &self.designs);
        let crew = Crew::new(&self.plan, journal, impossible);
        let (began, of, before) = (Instant::now(), self.designs.count(), self.rows.len() as u64);
        let mut stopped = false;
        let ran = side_by_side(
            &missing,
            // A real target is loaded by one design at a time. Two of
            // them would disturb each other.
            self.is_real.then_some(1),
            |number, stop| crew.row(*number, designs.values(*number), stop),
            &mut |done| {
                let done = done as u64;
                let rate = done as f64 / began.elapsed().as_secs_f64();
                // The estimate uses only the designs of this call. Those of an
                // earlier call took no time today.
                let left_s = (done > 0).then(|| (of - before - done) as f64 / rate);
                let impossible = crew.impossible.load(Ordering::Relaxed);
                let flow = watch(SweepProgress { done: before + done, of, impossible, left_s });
                stopped |= flow == KeepGoing::Stop;
                flow
            },
        )?;
        let is_late = crew.is_late.load(Ordering::Relaxed);
        self.journal = crew.journal.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.rows.extend(ran.into_iter().flatten().flatten());
        Ok(self.conclude(stopped, is_late))
    }

    /// The designs without a row.
    pub(crate) fn missing(&self) -> Vec<u64> {
        let known: BTreeSet<u64> = self.rows.iter().map(|row| row.design).collect();
        (0..self.designs.count()).filter(|number| !known.contains(number)).collect()
    }

    pub(crate) fn count(&self, state: DesignState) -> u64 {
        self.rows.iter().filter(|row| row.state == state).count() as u64
    }

    /// What a reader must know before the table.
    fn notes_on_rows(&self) -> Vec<String> {
        let mut notes: Vec<String> = overloads::note(&self.plan, &self.rows).into_iter().collect();
        notes.extend(warned::notes(&self.plan, &self.rows));
        // The objectives of a sweep over one number are its curve, and a bisection has a bound instead.
        if self.plan.vary.len() > 1 || self.plan.objectives.len() > 1 {
            notes.extend(constant::notes(&self.rows, &self.plan.vary, &self.plan.objectives));
        }
        notes.extend(self.search.as_ref().and_then(SearchOutcome::note));
        notes
    }

    /// Sorts the rows by number, and says of each where it stands.
    fn rank(&mut self) {
        // A journal may contain a design twice, if it failed and was run again. The rows are sorted
        // by number, so that duplicates are neighbours.
        self.rows.sort_by_key(|row| row.design);
        self.rows.dedup_by_key(|row| row.design);
        judge(&mut self.rows, &self.plan.objectives, &self.plan.require);
        if let Some(ceiling) = &self.ceiling {
            reject(&mut self.rows, ceiling);
        }
    }

    pub(crate) fn conclude(
        mut self,
        stopped: bool,
        is_late: bool,
    ) -> (SweepResult, Option<Failure>) {
        self.rank();
        let (designs, partial) = match self.is_search() {
            // A search has no fixed number of designs. It is partial only if the user stopped it;
            // `time` and a spent budget are regular ends.
            true => (self.rows.len() as u64, stopped),
            false => (self.designs.count(), (self.rows.len() as u64) < self.designs.count()),
        };
        let [done, impossible, failed, ruled_out, hopeless] = [
            DesignState::Done,
            DesignState::Impossible,
            DesignState::Failed,
            DesignState::RuledOut,
            DesignState::Stopped,
        ]
        .map(|state| self.count(state));
        let mut notes = self.notes_on_rows();
        if is_late && partial {
            notes.push(format!(
                "{} of {designs} were not started within `time`",
                counted(designs - self.rows.len() as u64, "design", "designs")
            ));
        }
        let given_up = ruled_out + hopeless;
        // Designs that were given up are not a random sample: they are the slow or expensive ones. The
        // reader must know that the effects are without them.
        let mut effects = effects(&self.rows, &self.plan.vary, &self.plan.objectives);
        if !effects.is_empty() && given_up > 0 && !self.is_search() {
            notes.push(format!(
                "the effects cover only the {} that ran to their end, so the means at two values can cover different designs; \
                 {} broke a bound. `run_hopeless` runs all designs",
                counted(done, "design", "designs"),
                counted(given_up, "design", "designs")
            ));
        }
        let failure = self.verdict([done, given_up], stopped && partial);
        let is_out_of_time =
            self.search.as_ref().is_some_and(|search| search.stopped == SearchEnd::Time);
        if is_out_of_time && self.journal.is_some() {
            notes.push("`time` ended the search early: continue with `resume`".to_owned());
        }
        // The journal stays while something is left to run. It is also kept when the sweep is no
        // success, because then the user may want to go on.
        let goes_on = partial || is_out_of_time;
        let journal = self.journal.take().filter(|_| !goes_on && failure.is_none());
        if self.search.is_some() {
            // A search runs mostly good designs. Those with four channels then differ from those with eight in
            // other keys, too, and the mean at a value would say more about these.
            effects.iter_mut().for_each(|effect| effect.levels.clear());
        }
        let interactions = interactions(&self.rows, &self.plan.vary, &self.plan.objectives);
        let curve = Curve::of(&self.plan.vary, &self.rows);
        let (plan, rows) = (self.plan, self.rows);
        let unrepresentative = warned::unrepresentative(&plan, &rows);
        let sweep_version = SWEEP_VERSION;
        let result = SweepResult {
            sweep_version,
            plan,
            designs,
            partial,
            done,
            impossible,
            failed,
            ruled_out,
            stopped: hopeless,
            overloaded: overloads::overloaded(&rows),
            unrepresentative,
            effects,
            interactions,
            curve,
            rows,
            notes,
            search: self.search,
            ceiling: self.ceiling,
            finished_journal: journal.map(Journal::into_path),
        };
        (result, failure)
    }

    /// Why the sweep is no success.
    fn verdict(&self, [done, given_up]: [u64; 2], is_cut: bool) -> Option<Failure> {
        if is_cut {
            let failure =
                Failure::new(FailureKind::Interrupted, "interrupted before all designs had run");
            // Without a journal, the designs are lost.
            return Some(match self.journal {
                Some(_) => failure.with_help("finished designs are kept; continue with `resume`"),
                None => failure,
            });
        }
        if done == 0 && given_up > 0 {
            return Some(
                Failure::failed("no design meets the bounds of `require`")
                    .with_help(
                        "widen the bounds, or run all designs to their end with `run_hopeless`",
                    )
                    .with_key("require"),
            );
        }
        if done == 0 {
            return Some(Failure::failed("no design has figures").with_help(
                "the table gives the reasons; change the common settings or the values of the axes",
            ));
        }
        // An objective without figures in any row is a mistake in the plan. The check needs the rows: whether a
        // device has an energy model shows only in its result.
        let has = |name: &str| self.rows.iter().any(|row| row.figures.contains_key(name));
        let bounds = self.plan.require.iter().map(|bound| ("require", bound.figure()));
        let objectives = self.plan.objectives.iter().map(|one| ("objectives", one.figure));
        let (key, figure) = objectives.chain(bounds).find(|(_, figure)| !has(figure))?;
        let help = match figure {
            COST => "a device other than an SSD needs the price `cost.other_device`",
            COST_PER_GIB => "only an SSD has a cost per GiB; use `cost`",
            "write_amplification" => "use a load that writes to flash, or remove the figure",
            _ => "use a device with an energy model (`ssdyno list`), or remove the figure",
        };
        Some(
            Failure::failed(format!("no design has the figure `{figure}`"))
                .with_help(help)
                .with_key(key),
        )
    }
}

/// What the threads that run designs share.
pub(crate) struct Crew<'a> {
    plan: &'a SweepPlan,
    pub(crate) journal: Mutex<Option<Journal>>,
    pub(crate) until: Option<Instant>,
    pub(crate) impossible: AtomicU64,
    pub(crate) is_late: AtomicBool,
}

impl Crew<'_> {
    /// Whose `time` begins now. `impossible` designs are known already.
    pub(crate) fn new(plan: &SweepPlan, journal: Option<Journal>, impossible: u64) -> Crew<'_> {
        Crew {
            plan,
            journal: Mutex::new(journal),
            until: plan.time.map(|time| Instant::now() + Duration::from_nanos(time.0.as_ns())),
            impossible: AtomicU64::new(impossible),
            is_late: AtomicBool::new(false),
        }
    }

    /// Runs a design; `None` where it was not run to its end.
    pub(crate) fn row(
        &self,
        number: u64,
        values: Vec<Value>,
        stop: &StopFlag,
    ) -> Result<Option<SweepRow>, Failure> {
        self.row_of(self.plan, number, values, stop)
    }

    /// The same for a design of `plan`, which may differ in the length of its runs.
    pub(crate) fn row_of(
        &self,
        plan: &SweepPlan,
        number: u64,
        values: Vec<Value>,
        stop: &StopFlag,
    ) -> Result<Option<SweepRow>, Failure> {
        // `time` is checked before a design begins and not during it. A design that was cut would
        // have other figures than one that ran to its end.
        if self.until.is_some_and(|until| Instant::now() >= until) {
            self.is_late.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        let Some(row) = run(plan, number, values, stop) else { return Ok(None) };
        if row.state == DesignState::Impossible {
            self.impossible.fetch_add(1, Ordering::Relaxed);
        }
        // The row is on the disk before it counts as done. A crash after this line loses nothing,
        // and a crash before it only repeats the design.
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.as_mut().map_or(Ok(()), |journal| journal.add(&row))?;
        Ok(Some(row))
    }
}

/// Runs the design `number`; `None` where it was stopped. The row depends on the plan, the number and the values alone.
pub(crate) fn run(
    plan: &SweepPlan,
    number: u64,
    values: Vec<Value>,
    stop: &StopFlag,
) -> Option<SweepRow> {
    // The row begins as impossible. Every early return below then has its reason,
    // and no design disappears from the table.
    let empty = SweepRow::new(number, values, plan.run.seed);
    let spec = match plan.spec(&empty.values) {
        Ok(spec) => spec,
        Err(failure) => return Some(SweepRow { why: Some(failure.message), ..empty }),
    };
    let row = SweepRow { seed: spec.seed, spec_hash: hash(&spec), ..empty };
    let mut prepared = match resolve(&spec, &mut Unattended) {
        Ok(prepared) => prepared,
        // A device that is gone or locked is no fault of the values: `resume` tries again.
        Err(failure) => {
            let is_usage = failure.kind == FailureKind::Usage;
            let state = if is_usage { DesignState::Impossible } else { DesignState::Failed };
            return Some(SweepRow { state, why: Some(failure.message), ..row });
        }
    };
    // The cost follows from the device file alone. A design that breaks a
    // bound of cost therefore needs no run.
    let file = prepared.resolved().contents.device.as_ref();
    let costs = plan.cost.figures(file);
    if let Some(bound) = ruled_out(plan, &costs) {
        let (state, figures) = (DesignState::RuledOut, costs.iter().map(priced).collect());
        let (stopped, why) =
            (Some(bound.to_string()), format!("not run: the cost breaks `{bound}`"));
        return Some(SweepRow { state, stopped, why: Some(why), figures, ..row });
    }
    if plan.stops_hopeless() {
        prepared.end_beyond(plan.require.iter().filter_map(watched).collect());
    }
    let failed = |state, failure: Failure| {
        Some(SweepRow { state, why: Some(failure.message), ..row.clone() })
    };
    let limit = prepared.source().outstanding_limit();
    let runner = match prepared.start() {
        Ok(runner) => runner,
        Err(failure) => return failed(DesignState::Failed, failure),
    };
    runner.begin(BeginAt::Once);
    let mut snapshot = runner.poll();
    while snapshot.phase != RunPhase::Ended {
        if stop.flow() == KeepGoing::Stop {
            // Half of a run is no row: it would be compared with whole ones. The result is still waited for, because
            // the target must be free before the next design begins.
            runner.stop();
            let _ = runner.result();
            return None;
        }
        snapshot = runner.wait(snapshot.phase, LOOK_EVERY);
    }
    match runner.result() {
        Ok(measured) => {
            let row = SweepRow { outstanding_limit: limit, ..row };
            Some(filled(plan, row, &measured, &costs))
        }
        Err(failure) if failure.kind == FailureKind::Interrupted => None,
        // Some combinations turn out to be impossible only when the device is built. They
        // are errors of the values and not of the run.
        Err(failure) if failure.kind == FailureKind::Usage => {
            failed(DesignState::Impossible, failure)
        }
        Err(failure) => failed(DesignState::Failed, failure),
    }
}

/// `row` with what its run gave.
fn filled(
    plan: &SweepPlan,
    mut row: SweepRow,
    measured: &Measured,
    costs: &[(&'static str, f64)],
) -> SweepRow {
    let result = &measured.result;
    // Requests that fail because the plan injects faults are a figure of the design. Of a run that breaks an invariant, or of a
    // target that fails by itself, no figure counts.
    let injected = result
        .faults
        .as_ref()
        .is_some_and(|faults| faults.device.is_some() || faults.network.is_some());
    let is_meant = injected
        && result.errors > 0
        && !result.partial
        && result.invariants.iter().all(|invariant| invariant.holds);
    let failure = measured.failure.as_ref().filter(|_| !is_meant);
    row.state = if failure.is_some() { DesignState::Failed } else { DesignState::Done };
    row.why = failure.map(|failure| failure.message.clone());
    // The bound that ended the run is found by its figure. The
    // row names it as the user typed it.
    if let (Some(broken), None) = (&measured.broken, failure) {
        let bound = plan.require.iter().find(|bound| watched(bound) == Some(broken.bound));
        row.state = DesignState::Stopped;
        row.stopped = bound.map(ToString::to_string);
        row.why = bound.map(|bound| stopped_because(bound, broken));
    }
    (row.requests, row.errors) = (result.requests, result.errors);
    row.unanswered = result.unanswered;
    row.overloaded = result.warns_of(WarningKind::Overloaded);
    row.outstanding_limit = row.outstanding_limit.filter(|_| row.overloaded);
    row.warnings = warned::kinds(plan, result);
    row.flattered_by = warned::flattered_by(&result.warnings).cloned();
    row.notes.clone_from(&result.notes);
    let figures = headline_figures(result).into_iter().map(|figure| {
        let low = figure.interval.map(|interval| interval.low);
        let high = figure.interval.and_then(|interval| interval.upper());
        let (value, is_lower_bound) = (figure.value, figure.is_lower_bound);
        (figure.name.to_owned(), SweepFigure { value, is_lower_bound, low, high })
    });
    row.figures = figures.collect();
    row.figures.extend(costs.iter().map(priced));
    row
}

/// A cost as a figure, which is exact.
fn priced(&(name, value): &(&'static str, f64)) -> (String, SweepFigure) {
    (name.to_owned(), SweepFigure { value, ..SweepFigure::default() })
}

pub(crate) fn hash(spec: &RunSpec) -> String {
    // A structure of named keys always has a JSON form. The order of the keys is that of the structure,
    // so equal specs have equal hashes in every process.
    let text = serde_json::to_vec(spec).unwrap_or_default();
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
