//! How many completions a closed loop waits for at a time.
//!
//! With a given number outstanding, a closed loop is as fast as its mean latency is low (Little's
//! law), waits for the rest of a batch included. So the batch with the highest rate is the honest
//! one, and among those that are as fast the largest costs least: fewer system calls and switches.
//! Which one that is depends on the device; a short trial before the run tells. It only reads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_result::{Keep, Tape};
use ssdyno_workload::{Config, DeviceFacts};

use crate::clock::Clock;
use crate::engine::Engine;
use crate::error::BenchError;
use crate::job::{Job, Pulse, Reaping, Shared, drive};
use crate::ramp::Ramp;

/// One batch is tried for so long at a time, or for as long as [`ENOUGH`] takes.
const TRIAL: Duration = Duration::from_millis(3);
/// Completions, by requests outstanding, from which a rate can be told.
const ENOUGH: u64 = 8;
/// A device that takes longer for [`ENOUGH`] is too slow for batches to matter.
const SLOW: Duration = Duration::from_millis(20);
/// Every batch is tried so often, in turn, so that whatever else runs on the machine meets them all.
const ROUNDS: usize = 7;
/// A smaller batch is faster where it was so in this many rounds: by chance it is in one of sixteen
/// cases. Otherwise nobody can tell, and the larger one costs less.
const FASTER_ROUNDS: usize = 6;
/// Rates that are less apart than this share are equal.
const EQUAL: f64 = 0.01;

/// The load of a trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    pub(crate) facts: DeviceFacts,
    pub(crate) depth: u32,
    pub(crate) block_bytes: u32,
    pub(crate) seed: u64,
}

/// The best batch. A device that is too slow for a trial is reaped at once.
pub(crate) fn best<E: Engine>(engine: &mut E, trial: &Trial) -> Result<u32, BenchError> {
    let ladder = ladder(trial.depth);
    if ladder.len() < 2 {
        return Ok(1);
    }
    let enough = ENOUGH * u64::from(trial.depth);
    let (completed, seconds) = try_one(engine, trial, 1, enough, SLOW)?;
    if completed < enough {
        return Ok(1);
    }
    let length = TRIAL.max(Duration::from_secs_f64(seconds));
    let mut rates = vec![Vec::with_capacity(ROUNDS); ladder.len()];
    for _ in 0..ROUNDS {
        for (batch, rates) in ladder.iter().zip(&mut rates) {
            let (completed, seconds) = try_one(engine, trial, *batch, u64::MAX, length)?;
            rates.push(completed as f64 / seconds);
        }
        if settled(&rates) {
            break;
        }
    }
    Ok(choose(&ladder, &rates))
}

/// Batches worth trying, largest first. The largest leaves the device something to do while the
/// next batch is prepared.
fn ladder(depth: u32) -> Vec<u32> {
    let mut ladder = vec![depth - depth / 10, depth / 2, depth / 4, 1];
    ladder.retain(|batch| *batch > 0);
    ladder.dedup();
    ladder
}

/// Whether the largest batch stays the choice, however the rounds to come turn out.
fn settled(rates: &[Vec<f64>]) -> bool {
    let misses = |smaller: &Vec<f64>| {
        let faster = smaller.iter().zip(&rates[0]).filter(|(one, other)| is_faster(**one, **other));
        smaller.len() - faster.count()
    };
    rates[1..].iter().all(|smaller| misses(smaller) > ROUNDS - FASTER_ROUNDS)
}

fn is_faster(one: f64, other: f64) -> bool {
    one > (1.0 + EQUAL) * other
}

/// The fastest batch, round by round; the largest of those of which nobody can tell.
fn choose(ladder: &[u32], rates: &[Vec<f64>]) -> u32 {
    let beats = |one: &[f64], other: &[f64]| {
        let faster = one.iter().zip(other).filter(|(one, other)| is_faster(**one, **other));
        faster.count() >= FASTER_ROUNDS
    };
    let best = (1..ladder.len()).fold(0, |best, at| match beats(&rates[at], &rates[best]) {
        true => at,
        false => best,
    });
    ladder[best]
}

/// Completions of at most `requests` in at most `length`, and the seconds they took.
fn try_one<E: Engine>(
    engine: &mut E,
    trial: &Trial,
    batch: u32,
    requests: u64,
    length: Duration,
) -> Result<(u64, f64), BenchError> {
    let config = Config {
        depth: Some(trial.depth),
        block_size: Some(Bytes(u64::from(trial.block_bytes))),
        read_percent: Some(100.0),
        requests: Some(u64::MAX / 2),
        ..Config::default()
    };
    let workload = config.build(&trial.facts, trial.seed)?;
    let tape = Arc::new(Mutex::new(Some(Tape::new(Keep::Summary, Some(Time::from_s(1)), false))));
    let mut job = Job {
        workload,
        slots: trial.depth,
        reaping: Reaping::Batches(batch),
        requests_max: requests,
        end_ns: length.as_nanos() as u64,
        writable: false,
        origin_ns: None,
        clock: Clock::start(),
        shared: Shared {
            stop: Arc::new(AtomicBool::new(false)),
            ramp: Arc::new(Ramp::new(0)),
            pulse: Arc::new(Pulse::default()),
            tape: Arc::clone(&tape),
        },
    };
    let ended = drive(&mut job, engine);
    let completed = tape.lock().unwrap_or_else(PoisonError::into_inner);
    let completed = completed.as_ref().map_or(0, Tape::completed);
    Ok((completed, ended.end_ns as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_the_fastest_is_chosen() {
        // The machine is slower in two rounds, for all batches alike.
        let rounds = [1.0, 0.5, 1.0, 0.98, 1.02, 0.3, 1.0];
        let rates = |speeds: [f64; 4]| speeds.map(|speed| rounds.map(|r| r * speed).to_vec());
        let ladder = ladder(32);
        assert_eq!(ladder, [29, 16, 8, 1]);
        assert_eq!(choose(&ladder, &rates([99.5, 100.0, 90.0, 50.0])), 29);
        assert_eq!(choose(&ladder, &rates([50.0, 97.0, 99.0, 99.5])), 8);
        assert_eq!(choose(&ladder, &rates([10.0, 20.0, 30.0, 100.0])), 1);
        // One that is faster in some rounds only is not.
        let mut noisy = rates([100.0; 4]);
        noisy[3][..5].iter_mut().for_each(|rate| *rate *= 3.0);
        assert_eq!(choose(&ladder, &noisy), 29);
        noisy[3][5] *= 3.0;
        assert_eq!(choose(&ladder, &noisy), 1);
    }

    #[test]
    fn small_depths_have_few_batches() {
        assert_eq!(super::ladder(1), [1]);
        assert_eq!(super::ladder(2), [2, 1]);
        assert_eq!(super::ladder(4), [4, 2, 1]);
    }
}
