//! One target under many loads, one after the other, that keeps its written data.

use ssdyno_bench::BenchError;
#[cfg(target_os = "linux")]
use ssdyno_bench::Neighbours;
use ssdyno_block::Time;
use ssdyno_figures::{KeepGoing, RunLimits, RunProgress, RunResult, Warning};
use ssdyno_ftl::Fill;
use ssdyno_rig::{Session, Source};
use ssdyno_workload::{TargetFacts, WorkloadConfig};

use crate::failure::{Failure, FailureKind};
use crate::prepare::{Prepared, Target};
use crate::real::RealRun;
use crate::simulated::SimulatedRun;

/// A simulated or real target that can be loaded again and again. Written data stays written.
///
/// The figures of a load are those that follow from its requests: nothing is said of energy or of operations of
/// the flash.
pub struct KeptTarget {
    target: Kept,
    facts: TargetFacts,
    notes: Vec<String>,
    /// The machine since a real target was opened.
    #[cfg(target_os = "linux")]
    neighbours: Option<Neighbours>,
}

enum Kept {
    Simulated(Box<SimulatedRun>, Box<Session>),
    Real(Box<RealRun>),
}

/// Says where a load is, many times a second, and whether it goes on.
pub type LoadProgress<'a> = dyn FnMut(&RunProgress) -> KeepGoing + 'a;

impl Prepared {
    /// Keeps the target for loads of its own: that of the spec says only how many threads the host has for them.
    ///
    /// # Errors
    /// The device is impossible, or the target cannot be opened.
    pub fn keep(self) -> Result<KeptTarget, Failure> {
        match self.run {
            Target::Simulated(mut simulated) => {
                let session = simulated.begin_session()?;
                simulated.workload = None;
                let (facts, notes) = (session.facts(), simulated.notes.clone());
                let target = Kept::Simulated(simulated, Box::new(session));
                Ok(KeptTarget {
                    target,
                    facts,
                    notes,
                    #[cfg(target_os = "linux")]
                    neighbours: None,
                })
            }
            Target::Real(mut real) => {
                // Asked now, and closed: each load opens the target anew.
                let facts = real.facts()?;
                real.workload = None;
                Ok(KeptTarget {
                    target: Kept::Real(real),
                    facts,
                    notes: Vec::new(),
                    #[cfg(target_os = "linux")]
                    neighbours: Some(Neighbours::watch()),
                })
            }
        }
    }
}

impl KeptTarget {
    /// Size and sector.
    pub fn facts(&self) -> TargetFacts {
        self.facts
    }

    /// Whether it is a real one.
    pub fn is_real(&self) -> bool {
        matches!(self.target, Kept::Real(_))
    }

    /// Whether the target may be slower once it was written over: flash is cleaned then, and the page cache of a host is full. True
    /// for a real target, which does not say. Caches of other simulated devices are in the warnings of each load.
    pub fn slows_with_writes(&self) -> bool {
        let Kept::Simulated(simulated, session) = &self.target else { return true };
        let cached = simulated.run.device.host().is_some_and(|host| host.config.cache.is_some());
        cached || session.has_flash()
    }

    /// Bytes that the write buffers of a simulated device hold together; 0 without one, and for a real target, whose
    /// buffers are not known.
    pub fn write_buffer_bytes(&self) -> u64 {
        match &self.target {
            Kept::Simulated(_, session) => session.write_buffer_bytes(),
            Kept::Real(_) => 0,
        }
    }

    /// The defaults chosen for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The warning that other programs used the CPUs since a real target was opened. Loads of a profile or of a round
    /// are too short for a verdict of each.
    pub fn machine_warning(&self) -> Option<Warning> {
        #[cfg(target_os = "linux")]
        return self.neighbours.as_ref().and_then(Neighbours::warning);
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Puts a simulated SSD into the state of one to which nothing was ever written. False if there is no such state;
    /// nothing was done.
    ///
    /// # Errors
    /// The device is impossible.
    pub fn format(&mut self) -> Result<bool, Failure> {
        let Kept::Simulated(simulated, session) = &mut self.target else { return Ok(false) };
        let Some(config) = simulated.run.device.ssd_mut() else { return Ok(false) };
        config.precondition.fill = Fill::Empty;
        **session = simulated.begin_session()?;
        Ok(true)
    }

    /// Loads it until `load` is done or `length` is over, on this thread. A result that is partial was ended by
    /// `progress`.
    ///
    /// # Errors
    /// The load cannot be carried, or was stopped before it began; what it did until then is lost.
    pub fn load(
        &mut self,
        load: &WorkloadConfig,
        seed: u64,
        length: Option<Time>,
        progress: &mut LoadProgress<'_>,
    ) -> Result<RunResult, Failure> {
        let limits = RunLimits { duration: length, ..RunLimits::default() };
        match &mut self.target {
            Kept::Simulated(simulated, session) => {
                let loaded = session.load(load, seed, limits, progress);
                let explain = |error| simulated.explain(&error, FailureKind::Failed);
                Ok(loaded.map_err(explain)?.result)
            }
            Kept::Real(real) => {
                (real.run.source, real.run.seed) = (Source::Generator(load.clone()), seed);
                real.run.limits = limits;
                let explain = |error| real.explain(&error, FailureKind::Failed);
                let measured = real.run.execute(progress).map_err(explain)?;
                match measured.failure {
                    None | Some(BenchError::Interrupted) => Ok(measured.result),
                    Some(error) => Err(explain(error)),
                }
            }
        }
    }
}
