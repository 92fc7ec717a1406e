//! Sweeps whose designs run on other machines: the rows come back as if this machine had made them.

use std::time::{Duration, Instant};

use ssdyno_figures::KeepGoing;
use ssdyno_session::{Failure, StopFlag};

use crate::execute::{Sweep, SweepProgress, run};
use crate::journal;
use crate::row::{DesignState, SweepResult, SweepRow};

/// How often the sweep looks whether it must stop while no rows come.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Machines that run the designs of a sweep. They decide which design runs where, and run a design again that was
/// lost with its machine.
pub trait Workers {
    /// The rows that arrived within `wait`; `None` once there will be no more.
    ///
    /// # Errors
    /// The machines cannot go on. Rows that arrived before are kept.
    fn rows(&mut self, wait: Duration) -> Result<Option<Vec<SweepRow>>, Failure>;
}

impl Sweep {
    /// Refuses a sweep whose designs other machines cannot run.
    ///
    /// # Errors
    /// It has a limit of time, it is a search, or it loads real targets. Keys `time`, `sampling`, `target`.
    pub fn check_spread(&self) -> Result<(), Failure> {
        let refuse = |message: &str, key: &str| {
            Err(Failure::usage(message)
                .with_help("run the sweep on this machine, without workers")
                .with_key(key))
        };
        // Each worker has its own clock and its own speed. Which designs begin within `time`
        // would depend on the workers and not on the plan.
        if self.plan.time.is_some() {
            return refuse("a sweep on workers cannot have a limit of `time`", "time");
        }
        if self.is_search() {
            return refuse(
                "a search (`sampling`) cannot run on workers: its results decide which designs it runs",
                "sampling",
            );
        }
        // A path names another device on another machine. The rows of one
        // table would come from different disks.
        if self.is_real() {
            return refuse("a sweep on workers cannot run on a real target", "target");
        }
        Ok(())
    }

    /// The row of one design; `None` where there is no such design. Rows are the same wherever they are made.
    pub fn row(&self, number: u64) -> Option<SweepRow> {
        let is_design = number < self.designs() && !self.is_search();
        let values = is_design.then(|| self.designs.values(number))?;
        run(&self.plan, number, values, &StopFlag::default())
    }

    /// Adds a row that [`row`](Sweep::row) gave, maybe on another machine. A second row of a design changes nothing.
    ///
    /// # Errors
    /// The file of [`keep_rows_in`](Sweep::keep_rows_in) cannot be written.
    pub fn add(&mut self, row: SweepRow) -> Result<(), Failure> {
        // A row of a worker with another plan, or a number that does not exist, is ignored.
        // Rows come over a network and are not trusted.
        if row.design >= self.designs() || self.is_search() {
            return Ok(());
        }
        self.journal.as_mut().map_or(Ok(()), |journal| journal.add(&row))?;
        self.rows.push(row);
        Ok(())
    }

    /// What [`execute`](Sweep::execute) gives for the rows that are there. Designs without one were not run, and the failure
    /// says so.
    pub fn finish(self) -> (SweepResult, Option<Failure>) {
        self.conclude(true, false)
    }

    /// Lets `workers` run the designs that have no row yet, of which `start` is told the numbers. Otherwise as
    /// [`execute`](Sweep::execute).
    ///
    /// # Errors
    /// Nothing was run, or a row could not be written to the journal, which has all rows before it.
    pub fn gather<W: Workers>(
        mut self,
        start: impl FnOnce(&Sweep, &[u64]) -> Result<W, Failure>,
        watch: &mut dyn FnMut(SweepProgress) -> KeepGoing,
    ) -> Result<(SweepResult, Option<Failure>), Failure> {
        self.check_spread()?;
        let (before, of, missing) = (self.rows.len() as u64, self.designs(), self.missing());
        if missing.is_empty() {
            return Ok(self.finish());
        }
        let started = start(&self, &missing);
        // If the workers could not start, nothing was measured. The journal would
        // only make the next call ask for `resume`.
        let mut workers = started.inspect_err(|_| self.forget_journal())?;
        let began = Instant::now();
        let mut error = None;
        loop {
            match workers.rows(LOOK_EVERY) {
                Ok(Some(rows)) => rows.into_iter().try_for_each(|row| self.add(row))?,
                Ok(None) => break,
                Err(failure) => {
                    error = Some(failure);
                    break;
                }
            }
            let done = self.rows.len() as u64;
            let new = done - before;
            let rate = new as f64 / began.elapsed().as_secs_f64();
            let left_s = (new > 0).then(|| of.saturating_sub(done) as f64 / rate);
            let impossible = self.count(DesignState::Impossible);
            if watch(SweepProgress { done, of, impossible, left_s }) == KeepGoing::Stop {
                break;
            }
        }
        // The workers are dropped before the table is made: they stop the designs
        // under way, which nobody will collect.
        drop(workers);
        match error {
            Some(failure) if self.rows.is_empty() => {
                self.forget_journal();
                Err(failure)
            }
            error => {
                let (result, verdict) = self.finish();
                // The error of the workers explains why rows are missing. The verdict
                // of the table only says that they are.
                Ok((result, error.or(verdict)))
            }
        }
    }

    /// A journal without rows is nothing to go on with.
    fn forget_journal(&mut self) {
        self.journal.take().into_iter().for_each(|one| journal::remove(&one.into_path()));
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_session::FailureKind;

    use super::*;
    use crate::plan::SweepPlan;

    const PLAN: &str = r#"
        vary = ["workload.depth=1,2,3,4"]
        [run]
        target = "sim:delay-10us"
        requests = 200
    "#;

    fn sweep(plan: &str) -> Sweep {
        let plan = SweepPlan::from_toml("plan.toml", plan).unwrap();
        plan.prepare(&mut ssdyno_session::Unattended).unwrap()
    }

    /// Gives the rows of `designs` one by one, the last one first and each twice, and then ends so.
    struct Machines {
        sweep: Sweep,
        designs: Vec<u64>,
        end: Option<Failure>,
    }

    impl Workers for Machines {
        fn rows(&mut self, _: Duration) -> Result<Option<Vec<SweepRow>>, Failure> {
            match (self.designs.pop(), self.end.take()) {
                (Some(number), end) => {
                    self.end = end;
                    let row = self.sweep.row(number).unwrap();
                    Ok(Some(vec![row.clone(), row]))
                }
                (None, Some(failure)) => Err(failure),
                (None, None) => Ok(None),
            }
        }
    }

    fn gathered(
        designs: &[u64],
        end: Option<Failure>,
    ) -> Result<(SweepResult, Option<Failure>), Failure> {
        let machines = Machines { sweep: sweep(PLAN), designs: designs.to_vec(), end };
        sweep(PLAN).gather(|_, _| Ok(machines), &mut |_| KeepGoing::Continue)
    }

    #[test]
    fn rows_from_elsewhere_are_those_of_this_machine() {
        let (here, _) = sweep(PLAN).execute(&mut |_| KeepGoing::Continue).unwrap();
        let (there, failure) = gathered(&[0, 1, 2, 3], None).unwrap();
        assert!(failure.is_none());
        assert_eq!(there, here);
    }

    #[test]
    fn what_arrived_before_an_error_is_kept() {
        let lost = || Some(Failure::failed("the scheduler is gone"));
        let (result, failure) = gathered(&[2, 3], lost()).unwrap();
        assert_eq!((result.done, result.partial), (2, true));
        assert_eq!(failure.unwrap().message, "the scheduler is gone");
        assert!(gathered(&[], lost()).is_err());
        // Workers that end without all rows leave a partial result, too.
        let (result, failure) = gathered(&[1], None).unwrap();
        assert_eq!((result.done, failure.unwrap().kind), (1, FailureKind::Interrupted));
    }

    #[test]
    fn only_designs_without_a_row_are_asked_for() {
        let mut begun = sweep(PLAN);
        begun.add(begun.row(1).unwrap()).unwrap();
        let start = |_: &Sweep, missing: &[u64]| {
            assert_eq!(missing, [0, 2, 3]);
            Ok(Machines { sweep: sweep(PLAN), designs: missing.to_vec(), end: None })
        };
        let (result, failure) = begun.gather(start, &mut |_| KeepGoing::Continue).unwrap();
        assert!(failure.is_none());
        assert_eq!(result.done, 4);
    }
}
