//! Short loads before the run that tell what suits the target. They only read.
//!
//! Choices are tried in turn, in rounds, so that whatever else runs on the machine meets them all, and
//! are compared round by round: the middle one decides ([`Lead`]), so that a round that a neighbour spoils
//! counts as one, however much it was spoilt.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_result::{Keep, Tape};
use ssdyno_workload::{Config, DeviceFacts};

use crate::engine::Engine;
use crate::error::BenchError;
use crate::job::{Job, drive};
use crate::options::Way;

/// One choice is tried for so long at a time, or for as long as [`ENOUGH`] takes.
const ROUND: Duration = Duration::from_millis(5);
/// Completions from which a rate can be told: by requests outstanding, and at least.
const ENOUGH: u64 = 8;
const ENOUGH_LEAST: u64 = 32;
/// A device that takes longer for [`ENOUGH`] is too slow for our ways to matter.
const SLOW: Duration = Duration::from_millis(20);
/// Every choice is tried so often at most, and at least before a trial may end early.
pub(crate) const ROUNDS: usize = 31;
pub(crate) const ROUNDS_LEAST: usize = 7;
/// What costs more is worth it where it is faster by more than this share.
pub(crate) const EQUAL: f64 = 0.01;

/// The load of a trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    pub(crate) facts: DeviceFacts,
    pub(crate) depth: u32,
    pub(crate) block_bytes: u32,
    pub(crate) seed: u64,
}

impl Trial {
    /// How long a round is to be; `None` where the target is so slow that nothing of ours matters.
    pub(crate) fn round<E: Engine>(
        &self,
        engine: &mut E,
        way: Way,
    ) -> Result<Option<Duration>, BenchError> {
        let enough = (ENOUGH * u64::from(self.depth)).max(ENOUGH_LEAST);
        let (completed, seconds) = self.load(engine, way, enough, SLOW)?;
        Ok((completed >= enough).then(|| ROUND.max(Duration::from_secs_f64(seconds))))
    }

    /// Requests a second in a load of `length`.
    pub(crate) fn rate<E: Engine>(
        &self,
        engine: &mut E,
        way: Way,
        length: Duration,
    ) -> Result<f64, BenchError> {
        let (completed, seconds) = self.load(engine, way, u64::MAX, length)?;
        Ok(completed as f64 / seconds)
    }

    /// Completions of at most `requests` in at most `length`, and the seconds they took.
    fn load<E: Engine>(
        &self,
        engine: &mut E,
        way: Way,
        requests: u64,
        length: Duration,
    ) -> Result<(u64, f64), BenchError> {
        let config = Config {
            depth: Some(self.depth),
            block_size: Some(Bytes(u64::from(self.block_bytes))),
            read_percent: Some(100.0),
            requests: Some(u64::MAX / 2),
            ..Config::default()
        };
        let workload = config.build(&self.facts, self.seed)?;
        let tape = Tape::new(Keep::Summary, Some(Time::from_s(1)), false);
        let tape = Arc::new(Mutex::new(Some(tape)));
        let alone = Job::alone(workload, self.depth, way, Arc::clone(&tape));
        let mut job = Job { requests_max: requests, end_ns: length.as_nanos() as u64, ..alone };
        let ended = drive(&mut job, engine);
        let completed = tape.lock().unwrap_or_else(PoisonError::into_inner);
        let completed = completed.as_ref().map_or(0, Tape::completed);
        Ok((completed, ended.end_ns as f64 / 1e9))
    }
}

/// By how much one choice was faster than another.
pub(crate) struct Lead {
    /// In the middle round, as a share: neighbours that spoil a round do not count.
    pub(crate) share: f64,
    /// Its standard error.
    pub(crate) error: f64,
}

impl Lead {
    /// Round by round: whatever slows the machine down for a while meets both.
    pub(crate) fn of(one: &[f64], other: &[f64]) -> Lead {
        let leads: Vec<f64> =
            one.iter().zip(other).map(|(one, other)| (one / other).ln()).collect();
        // Of a normal distribution half of the distance between the quartiles is 0.6745 standard
        // deviations, and the standard error of the median is 1.2533 of these by the root of the number.
        let error = spread(&leads) / 0.6745 * 1.2533 / (leads.len() as f64).sqrt();
        Lead { share: median(&leads), error }
    }
}

/// The rate of the middle round.
pub(crate) fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Half of the distance between the quartiles: what a neighbour spoils now and then does not count.
pub(crate) fn spread(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |quarter: usize| sorted.get(sorted.len() * quarter / 4);
    at(3).zip(at(1)).map_or(f64::NAN, |(high, low)| (high - low) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_round_decides() {
        let (one, other) = ([1.1, 9.0, 1.1, 1.0, 1.1], [1.0, 1.0, 1.0, 8.0, 1.0]);
        let lead = Lead::of(&one, &other);
        assert!((lead.share - 1.1_f64.ln()).abs() < 1e-9);
        assert_eq!(median(&[3.0, 1.0, 100.0]), 3.0);
        assert_eq!(spread(&[10.0, 90.0, 20.0, 30.0, 40.0, 0.0, 12.0, 35.0, 25.0]), 11.5);
    }
}
