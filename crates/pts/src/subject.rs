//! What is tested: a simulated device that keeps its state, or a real target.

use ssdyno_bench::BenchRun;
use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_ftl::Fill;
use ssdyno_result::RunResult;
use ssdyno_rig::{Attach, KeepGoing, RunLimits, RunProgress, Session, Source};
use ssdyno_workload::{AddressPattern, Pattern, TargetFacts, WorkloadConfig};

use crate::error::PtsError;

/// What one load gave.
#[derive(Debug)]
pub struct Outcome {
    /// Its figures.
    pub result: RunResult,
    /// Told to stop.
    pub stopped: bool,
}

/// A target that can be loaded again and again and keeps what was written.
pub trait Subject {
    /// Size and sector.
    ///
    /// # Errors
    /// It cannot be opened.
    fn facts(&mut self) -> Result<TargetFacts, PtsError>;

    /// Brings it as near as possible to a state as if nothing had ever been written, and says how.
    ///
    /// # Errors
    /// It failed, other than for the want of means to do so.
    fn purge(
        &mut self,
        progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) -> Result<String, PtsError>;

    /// Loads it until the workload is done or `length` is over.
    ///
    /// # Errors
    /// The load cannot be carried.
    fn load(
        &mut self,
        config: &WorkloadConfig,
        seed: u64,
        length: Option<Time>,
        progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) -> Result<Outcome, PtsError>;
}

/// A simulated device.
pub struct Simulated {
    attach: Attach,
    seed: u64,
    session: Session,
}

impl Simulated {
    /// The device that `attach` describes, in the state that its file says.
    ///
    /// # Errors
    /// It is impossible.
    pub fn new(attach: Attach, seed: u64) -> Result<Simulated, PtsError> {
        let session = Session::new(&attach, seed)?;
        Ok(Simulated { attach, seed, session })
    }
}

impl Subject for Simulated {
    fn facts(&mut self) -> Result<TargetFacts, PtsError> {
        Ok(self.session.facts())
    }

    fn purge(&mut self, _: &mut dyn FnMut(&RunProgress) -> KeepGoing) -> Result<String, PtsError> {
        let Some(config) = self.attach.ssd_mut() else {
            return Ok("none: a device without flash has no state to purge".to_owned());
        };
        config.precondition.fill = Fill::Empty;
        self.session = Session::new(&self.attach, self.seed)?;
        Ok("formatted: a fresh device, with no page programmed".to_owned())
    }

    fn load(
        &mut self,
        config: &WorkloadConfig,
        seed: u64,
        length: Option<Time>,
        progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) -> Result<Outcome, PtsError> {
        let limits = RunLimits { duration: length, ..RunLimits::default() };
        let loaded = self.session.load(config, seed, limits, progress)?;
        Ok(Outcome { result: loaded.result, stopped: loaded.stopped })
    }
}

/// Bytes of one discard: large enough to be quick, small enough for every device.
const DISCARD_BYTES: u64 = 16 << 20;

/// A block device or a file.
#[derive(Debug)]
pub struct Real {
    run: BenchRun,
    facts: TargetFacts,
}

impl Real {
    /// Loads with `run`, whose workload, seed and limits do not matter: its access must permit
    /// writing.
    pub fn new(run: BenchRun, facts: TargetFacts) -> Real {
        Real { run, facts }
    }
}

impl Subject for Real {
    fn facts(&mut self) -> Result<TargetFacts, PtsError> {
        Ok(self.facts)
    }

    fn purge(
        &mut self,
        progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) -> Result<String, PtsError> {
        let sector = u64::from(self.facts.sector_bytes);
        let block = DISCARD_BYTES.min(self.facts.capacity_bytes) / sector * sector;
        let config = WorkloadConfig {
            trim_percent: Some(100.0),
            read_percent: Some(0.0),
            write_percent: Some(0.0),
            block_size: Some(Bytes(block)),
            address: AddressPattern { pattern: Pattern::Sequential, ..AddressPattern::default() },
            requests: Some(self.facts.capacity_bytes / block.max(1)),
            ..WorkloadConfig::default()
        };
        let outcome = self.load(&config, 0, None, progress)?;
        Ok(match (outcome.stopped, outcome.result.errors) {
            (true, _) => "interrupted".to_owned(),
            (_, 0) => "discarded from start to end; what the drive makes of that is its affair \
                       (a secure erase or a format is stronger)"
                .to_owned(),
            (_, _) => {
                "none: the target does not take discards; the overwrite stands in for it".to_owned()
            }
        })
    }

    fn load(
        &mut self,
        config: &WorkloadConfig,
        seed: u64,
        length: Option<Time>,
        progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) -> Result<Outcome, PtsError> {
        self.run.source = Source::Generator(config.clone());
        self.run.seed = seed;
        self.run.limits = RunLimits { duration: length, ..RunLimits::default() };
        let measured = self.run.execute(progress)?;
        let stopped = matches!(measured.failure, Some(ssdyno_bench::BenchError::Interrupted));
        match measured.failure {
            Some(error) if !stopped => Err(error.into()),
            _ => Ok(Outcome { result: measured.result, stopped }),
        }
    }
}
