//! The run that a worker has for a controller, from the claim of its place to its release.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ssdyno_figures::Provenance;
use ssdyno_session::{Failure, Runner, record_provenance};

use crate::protocol::{HostRecord, PREPARE_WITHIN};
use crate::rows::KeptRows;

/// A run whose controller was silent for this time is stopped and forgotten. The time is longer than a cut of the
/// network that a run should survive (30 s), and short enough that a disk is not loaded in vain.
pub(crate) const LEASE: Duration = Duration::from_secs(45);

/// The run of a controller.
#[derive(Debug)]
pub(crate) struct CurrentRun {
    pub(crate) number: u64,
    pub(crate) controller: String,
    pub(crate) stage: Stage,
    /// The clock from 1970 less the monotonic clock at its start: the result gives times by the former, which may be
    /// set during the run.
    pub(crate) unix_less_monotonic_ns: i128,
    /// Where its rows are, if they are kept.
    pub(crate) rows: Option<KeptRows>,
    pub(crate) heard: Instant,
}

/// How far the run of a controller is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Its target is opened.
    Preparing,
    /// It prepares itself, waits for its begin, is under way, or has ended.
    Started(Box<Started>),
    /// Its record was asked for.
    Collected(Arc<Collecting>),
}

/// A run that was started, and the facts about it that were found before.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) runner: Runner,
    pub(crate) provenance: Provenance,
}

impl CurrentRun {
    pub(crate) fn runner(&self) -> Option<&Runner> {
        match &self.stage {
            Stage::Started(started) => Some(&started.runner),
            Stage::Preparing | Stage::Collected(_) => None,
        }
    }

    /// Whether its controller was silent for too long at `now`.
    pub(crate) fn is_abandoned(&self, now: Instant) -> bool {
        let lease = match &self.stage {
            // The controller waits for one answer, and sends nothing until it has it.
            Stage::Preparing => PREPARE_WITHIN + LEASE,
            Stage::Collected(collecting) if collecting.outcome.get().is_none() => {
                PREPARE_WITHIN + LEASE
            }
            Stage::Started(_) | Stage::Collected(_) => LEASE,
        };
        let in_use = self.rows.as_ref().is_some_and(KeptRows::is_busy);
        !in_use && now.saturating_duration_since(self.heard) > lease
    }

    /// Takes the runner out, for whoever makes the record; `None` while its target is opened.
    pub(crate) fn collect(&mut self) -> Option<Arc<Collecting>> {
        match std::mem::replace(&mut self.stage, Stage::Preparing) {
            Stage::Preparing => None,
            Stage::Started(started) => {
                let collecting = Arc::new(Collecting {
                    started: Mutex::new(Some(*started)),
                    unix_less_monotonic_ns: self.unix_less_monotonic_ns,
                    outcome: OnceLock::new(),
                });
                self.stage = Stage::Collected(Arc::clone(&collecting));
                Some(collecting)
            }
            Stage::Collected(collecting) => {
                self.stage = Stage::Collected(Arc::clone(&collecting));
                Some(collecting)
            }
        }
    }

    /// Its record, once it was made.
    pub(crate) fn record(&self) -> Option<Arc<HostRecord>> {
        let Stage::Collected(collecting) = &self.stage else { return None };
        collecting.outcome.get()?.as_ref().ok().map(Arc::clone)
    }
}

/// The record of a run. It is made once, and kept until the run is released: the controller asks again if its connection
/// broke, because the first answer may have been lost.
#[derive(Debug)]
pub(crate) struct Collecting {
    /// `None` from the moment on at which somebody waits for the end of the run.
    started: Mutex<Option<Started>>,
    unix_less_monotonic_ns: i128,
    outcome: OnceLock<Result<Arc<HostRecord>, Failure>>,
}

impl Collecting {
    /// Makes the record, or waits for the call that makes it.
    ///
    /// # Errors
    /// The run has no result. The same error comes at each call.
    pub(crate) fn outcome(&self) -> Result<Arc<HostRecord>, Failure> {
        self.outcome.get_or_init(|| self.make()).clone()
    }

    fn make(&self) -> Result<Arc<HostRecord>, Failure> {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner).take();
        // An earlier call panicked, and the panic hook printed why.
        let lost = || Failure::failed("the run failed, and its result is lost");
        let Started { runner, provenance } = started.ok_or_else(lost)?;
        let mut measured = runner.result()?;
        record_provenance(&mut measured.result, provenance);
        // The result has the start on the wall clock. The offset from the moment of `begin` leads back to the
        // monotonic clock, also if the wall clock was set during the run.
        let start = measured.result.window.as_ref().map(|window| {
            let ns = i128::from(window.start_unix_ns) - self.unix_less_monotonic_ns;
            u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
        });
        Ok(Arc::new(HostRecord {
            result: measured.result,
            recording: measured.recording,
            failure: measured.failure,
            start_monotonic_ns: start,
        }))
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_session::{FailureKind, RunSpec, Unattended, resolve};

    use super::*;

    fn claimed(stage: Stage) -> CurrentRun {
        CurrentRun {
            number: 1,
            controller: "a controller".to_owned(),
            stage,
            unix_less_monotonic_ns: 0,
            rows: None,
            heard: Instant::now(),
        }
    }

    fn started(spec: RunSpec) -> Stage {
        let spec = RunSpec { target: Some("null:".to_owned()), ..spec };
        let prepared = resolve(&spec, &mut Unattended).unwrap();
        let provenance = Provenance::default();
        Stage::Started(Box::new(Started { runner: prepared.start().unwrap(), provenance }))
    }

    /// A controller waits up to 120 s for a target that is opened, and sends nothing meanwhile.
    #[test]
    fn the_place_of_a_run_is_kept_while_its_target_is_opened() {
        let run = claimed(Stage::Preparing);
        let after = |seconds| run.heard + Duration::from_secs(seconds);
        assert!(!run.is_abandoned(after(60)) && !run.is_abandoned(after(120)));
        assert!(run.is_abandoned(after(200)));
        let run = claimed(started(RunSpec::default()));
        assert!(!run.is_abandoned(run.heard + Duration::from_secs(44)));
        assert!(run.is_abandoned(run.heard + Duration::from_secs(46)));
    }

    /// A second call while the first still waits for the end of the run gets the same record.
    #[test]
    fn a_record_can_be_asked_for_twice_at_once() {
        let spec = RunSpec { duration: "300ms".parse().ok(), ..RunSpec::default() };
        let mut run = claimed(started(spec));
        let [first, second] = [run.collect().unwrap(), run.collect().unwrap()];
        assert!(run.record().is_none());
        let later = run.heard + Duration::from_secs(60);
        assert!(!run.is_abandoned(later), "its record is being made");
        let first = std::thread::spawn(move || first.outcome());
        std::thread::sleep(Duration::from_millis(50));
        let second = second.outcome().unwrap();
        assert!(Arc::ptr_eq(&second, &first.join().unwrap().unwrap()));
        assert!(second.result.requests > 0 && run.record().is_some());
        assert!(run.is_abandoned(later));
    }

    /// The answer with the failure may be lost as well as the answer with a record.
    #[test]
    fn a_failure_is_reported_as_often_as_it_is_asked_for() {
        let stage = started(RunSpec::default());
        if let Stage::Started(started) = &stage {
            started.runner.stop();
        }
        let mut run = claimed(stage);
        let failures = [(); 2].map(|()| run.collect().unwrap().outcome().unwrap_err());
        assert_eq!(failures[0], failures[1]);
        assert_eq!(failures[0].kind, FailureKind::Interrupted, "{}", failures[0]);
    }
}
