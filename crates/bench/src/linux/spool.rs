//! Rows that go to the directory of results while the run goes on.

use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ssdyno_block::Time;
use ssdyno_figures::{
    Configuration, JobResult, Keep, MethodResult, RunResult, SCHEMA_VERSION, Warning,
};
use ssdyno_record::{RowNames, RowsHead, Spool, Tape};

use crate::job_set::named;
use crate::plan::{JobPlan, LoadPlan};
use crate::report;
use crate::run::BenchRun;
use crate::target::RealTarget;

/// No row is only in memory for longer.
const HAND_OVER: Duration = Duration::from_secs(1);

/// The file of a run, and when its jobs were last looked at.
pub(crate) struct Spooled {
    file: Spool,
    looked: Instant,
    /// Rows of each job in the file then.
    rows: Vec<usize>,
}

/// What is known of a run before it begins.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) method: &'a MethodResult,
    pub(crate) names: &'a RowNames,
    /// See [`Data::warnings`](crate::extents::Data::warnings).
    pub(crate) no_media: &'a [Warning],
}

/// Begins the file, if `run` wants one. Where it cannot be written the run has no rows, and says so.
pub(crate) fn begin(
    run: &BenchRun,
    plan: &LoadPlan,
    target: &RealTarget,
    known: Known<'_>,
    notes: &mut Vec<String>,
) -> Option<Spooled> {
    let place = run.rows_in.as_ref().filter(|_| run.keep == Keep::All)?;
    let directory = &place.directory;
    let workload_toml = run.source.to_toml(&target.files(), run.seed);
    let head = RowsHead {
        run: RunResult {
            schema_version: SCHEMA_VERSION,
            target: run.name(),
            workload: run.workload.clone(),
            seed: Some(run.seed),
            page_cache: Some(!target.direct),
            method: Some(known.method.clone()),
            configuration: Some(Configuration { workload_toml, ..Configuration::default() }),
            notes: target.notes.clone(),
            // A run that is killed has these warnings as well: reads of holes are as fast as before.
            warnings: report::warnings(run, target),
            spec: place.spec.clone(),
            provenance: place.provenance.clone(),
            jobs: plan.entries.iter().map(|entry| named(entry, JobResult::default())).collect(),
            ..RunResult::default()
        },
        entry_of: plan
            .jobs
            .iter()
            .filter(|_| !plan.entries.is_empty())
            .map(|job| job.entry)
            .collect(),
        of_reads: known.no_media.to_vec(),
        names: known.names.clone(),
        interval_ns: run.interval.map(Time::as_ns),
        began_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    };
    match Spool::create(directory, &head, plan.jobs.len() as u32) {
        Ok(file) => {
            let rows = vec![0; plan.jobs.len()];
            Some(Spooled { file, looked: Instant::now(), rows })
        }
        Err(error) => {
            notes.push(format!(
                "rows cannot be written to {} during the run ({error}): they stay in memory until the run ends",
                directory.display()
            ));
            None
        }
    }
}

/// The names of jobs and devices in rows: a job of a file has the name of its section, another job its number.
pub(crate) fn row_names(plan: &LoadPlan, target: &RealTarget) -> RowNames {
    let entry = |job: &JobPlan| plan.entries.get(job.entry).map(|entry| entry.name.clone());
    let jobs: Vec<String> = plan.jobs.iter().filter_map(entry).collect();
    RowNames { jobs: RowNames::of_jobs(&jobs), devices: target.devices() }
}

impl Spooled {
    pub(crate) fn file(&self) -> &Spool {
        &self.file
    }

    /// Waits until all is written; says what CPU time in ns that took for a row.
    pub(crate) fn close(mut self) -> f64 {
        self.file.close();
        self.file.writer_ns_by_row()
    }

    /// Now and then has the jobs of `tapes`, in order, hand over what they have, but for those that did so
    /// by themselves.
    pub(crate) fn look<'a>(&mut self, tapes: impl Iterator<Item = &'a Mutex<Option<Tape>>>) {
        if self.looked.elapsed() < HAND_OVER {
            return;
        }
        self.looked = Instant::now();
        for (job, (tape, before)) in tapes.zip(&mut self.rows).enumerate() {
            let rows = self.file.rows_of(job as u32);
            // This job has handed rows over by itself since the last look. Its rows are not
            // older than a second.
            if std::mem::replace(before, rows) != rows {
                continue;
            }
            // A job that has its tape is at work, or hangs in a call of the kernel, which must not hang those
            // who watch it.
            match tape.try_lock() {
                Ok(mut tape) => tape.iter_mut().for_each(Tape::hand_over),
                Err(TryLockError::Poisoned(tape)) => {
                    tape.into_inner().iter_mut().for_each(Tape::hand_over);
                }
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }
}
