//! From a plan, or from what is left of a sweep that was cut off, to a sweep that can start.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use ssdyno_session::{Failure, Prompt, RunSpec, Unattended, resolve};

use crate::axis::Axis;
use crate::designs::{Designs, Sampling};
use crate::execute::Sweep;
use crate::journal::Journal;
use crate::plan::SweepPlan;
use crate::row::{DesignState, SweepRow};

/// How many values of an axis are tried before the axis is called impossible.
const TRIED: usize = 32;

impl SweepPlan {
    /// Checks everything that can be checked beforehand. `prompt` is asked before a real target may be written to.
    ///
    /// # Errors
    /// A key is wrong, no value of an axis is possible, or there are too many designs. A design that is impossible for
    /// itself is no error: the table says why.
    pub fn prepare(&self, prompt: &mut dyn Prompt) -> Result<Sweep, Failure> {
        let designs = Designs::new(&self.vary, self.sampling, self.designs, self.draw_seed)?;
        if self.sampling == Sampling::Bisection {
            self.bisected()?;
        }
        // A search without a budget would end only when ten generations bring nothing new. On a space
        // without a limit nobody could say when that is.
        if self.sampling == Sampling::Search && self.designs.is_none() && self.time.is_none() {
            return Err(Failure::usage("the budget of the search is missing")
                .with_help("give `designs=500`, `time=10m` or both")
                .with_key("designs"));
        }
        if let Some(key) = self.cost.wrong_key() {
            return Err(Failure::usage(format!("`{key}` is not a price"))
                .with_help("a price must be a number of at least 0")
                .with_key(key));
        }
        if self.objectives.is_empty() {
            return Err(Failure::usage("the plan has no objective")
                .with_help("name at least one figure, such as p99")
                .with_key("objectives"));
        }
        let base = self.base();
        let run = resolve(&base, prompt)?;
        // Each axis is tried before the first design. A key with a typing error would otherwise
        // make a table of a million impossible designs.
        self.vary.iter().try_for_each(|axis| check_axis(&base, axis))?;
        let is_real = self.is_real(&base, run.is_real());
        self.check_write(is_real)?;
        Ok(Sweep::new(self.clone(), designs, is_real))
    }

    /// Whether any design loads a real target.
    fn is_real(&self, base: &RunSpec, base_is_real: bool) -> bool {
        let values = |axis: &Axis| -> Vec<RunSpec> {
            let values = (0..axis.count().unwrap_or(0)).filter_map(|at| axis.value(at));
            values.filter_map(|value| base.with(axis.key(), value).ok()).collect()
        };
        let mut varied = self.vary.iter().filter(|axis| names_target(axis)).flat_map(values);
        // An error counts as real. This decides whether designs run one at a time and whether
        // consent is needed, so the careful answer is right.
        base_is_real || varied.any(|spec| ssdyno_session::is_real(&spec).unwrap_or(true))
    }

    /// The user consents to writing to one target: no design may add another.
    fn check_write(&self, is_real: bool) -> Result<(), Failure> {
        let refuse = |message: String, help: &str| {
            Err(Failure::usage(message).with_help(help).with_key("vary"))
        };
        // Consent is a decision about one target by its owner. An axis over a key of
        // `write` would give it without being asked.
        if let Some(axis) = self.vary.iter().find(|axis| axis.key().starts_with("write.")) {
            return refuse(
                format!("`{}` cannot be varied: it is consent to write", axis.key()),
                "give `write.allowed` for all designs, or remove it",
            );
        }
        match self.vary.iter().find(|axis| names_target(axis)) {
            // The user consented to one target by name. A varied target
            // could overwrite another disk.
            Some(axis) if is_real && self.run.write.allowed => refuse(
                format!("`{}` cannot be varied in a sweep that writes to real targets", axis.key()),
                "run one sweep per target",
            ),
            _ => Ok(()),
        }
    }
}

impl Sweep {
    /// Goes on with the sweep whose results are in `folder`: designs that have a row are not run again.
    ///
    /// # Errors
    /// There is no sweep in the folder, or [`SweepPlan::prepare`] refuses its plan.
    pub fn resume(folder: &Path, prompt: &mut dyn Prompt) -> Result<Sweep, Failure> {
        let (plan, mut rows, journal) = Journal::open(folder)?;
        let sweep = plan.prepare(prompt)?;
        // A failed design is run again: memory may have been full, or a device was removed. Failed rows are dropped
        // before duplicates, because the journal has the row of the second run after the row of the first.
        rows.retain(|row: &SweepRow| row.state != DesignState::Failed);
        let mut seen = BTreeSet::new();
        // A search numbers its rows anew, and its numbers may exceed the number of
        // designs. It finds its rows by their values.
        let is_there = |number: u64| number < sweep.designs();
        let mut is_first = |number: u64| is_there(number) && seen.insert(number);
        rows.retain(|row| sweep.is_search() || is_first(row.design));
        Ok(sweep.after(rows, journal))
    }
}

/// Whether the values of `axis` say what is loaded.
fn names_target(axis: &Axis) -> bool {
    matches!(axis.key(), "target" | "fio")
}

/// Whether `failure` is about `key`. Failures of a workload name its keys without the table in which `set` has them.
fn blames(failure: &Failure, key: &str) -> bool {
    let blamed = failure.key.as_deref().unwrap_or_default();
    let rest = key.strip_suffix(blamed).filter(|_| !blamed.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Refuses an axis of which no value is possible: its key is wrong, or all of them are.
fn check_axis(base: &RunSpec, axis: &Axis) -> Result<(), Failure> {
    // Values over the whole axis are tried, and not the first 32 of a range: a
    // range may be impossible at its low end only.
    let shares = (0..TRIED).map(|at| at as f64 / (TRIED - 1) as f64);
    let values: Vec<Value> = match axis.count() {
        Some(len) => (0..len.min(TRIED)).filter_map(|at| axis.value(at).cloned()).collect(),
        None => shares.map(|share| axis.at(share)).collect(),
    };
    let mut first = None;
    for value in values {
        let tried = base.with(axis.key(), &value).and_then(|spec| resolve(&spec, &mut Unattended));
        match tried {
            Ok(_) => return Ok(()),
            // Another key is to blame, for example a device that is too small for a fixed block. Another axis
            // may change that key, so this axis is not refused.
            Err(failure) if !blames(&failure, axis.key()) => return Ok(()),
            Err(failure) => first.get_or_insert(failure),
        };
    }
    first.map_or(Ok(()), Err)
}
