//! How many completions a closed loop waits for at a time.
//!
//! With a given number outstanding, a closed loop is as fast as its mean latency is low (Little's
//! law), waits for the rest of a batch included. So the batch with the highest rate is the honest
//! one, and among those that are as fast the largest costs least: fewer system calls and switches.
//! Which one that is depends on the device; a short trial before the run tells. It only reads.

use crate::engine::Engine;
use crate::error::BenchError;
use crate::trial::{FASTER_ROUNDS, ROUNDS, Trial, median, rounds_faster, spread};

/// A smaller batch is worth its cost where it is faster by more than this share.
const EQUAL: f64 = 0.02;

/// What the trial found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) batch: u32,
    /// Each batch that was tried with its rate in each round; empty where there was none to choose.
    tried: Vec<(u32, Vec<f64>)>,
}

impl Choice {
    /// Without a choice.
    pub(crate) fn only(batch: u32) -> Choice {
        Choice { batch, tried: Vec::new() }
    }

    /// What was found, as a remark; `None` where nothing was tried.
    pub(crate) fn text(&self) -> Option<String> {
        let rates = |(batch, rates): &(u32, Vec<f64>)| {
            format!("{batch} at {:.0} ± {:.0}", median(rates) / 1e3, spread(rates) / 1e3)
        };
        let each: Vec<String> = self.tried.iter().map(rates).collect();
        let why = match self.tried.first() {
            Some((largest, _)) if *largest == self.batch => "none was surely faster",
            _ => "the largest of the fastest",
        };
        let rounds = self.tried.first()?.1.len();
        Some(format!("{why} in {rounds} rounds before the run: {} k IOPS", each.join(", ")))
    }
}

/// The best batch. A device that is too slow for a trial is reaped at once.
pub(crate) fn best<E: Engine>(engine: &mut E, trial: &Trial) -> Result<Choice, BenchError> {
    let ladder = ladder(trial.depth);
    if ladder.len() < 2 {
        return Ok(Choice::only(1));
    }
    let Some(round) = trial.round(engine, 1)? else { return Ok(Choice::only(1)) };
    let mut rates = vec![Vec::with_capacity(ROUNDS); ladder.len()];
    for index in 0..ROUNDS {
        // In an order that turns round: whoever comes after the quickest is not always the same.
        for step in 0..ladder.len() {
            let at = if index % 2 == 0 { step } else { ladder.len() - 1 - step };
            rates[at].push(trial.rate(engine, ladder[at], round)?);
        }
        if settled(&rates) {
            break;
        }
    }
    let batch = choose(&ladder, &rates);
    Ok(Choice { batch, tried: ladder.into_iter().zip(rates).collect() })
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
    let misses = |smaller: &Vec<f64>| smaller.len() - rounds_faster(smaller, &rates[0], EQUAL);
    rates[1..].iter().all(|smaller| misses(smaller) > ROUNDS - FASTER_ROUNDS)
}

/// The fastest batch, round by round; the largest of those of which nobody can tell.
fn choose(ladder: &[u32], rates: &[Vec<f64>]) -> u32 {
    let beats = |one: usize, other: usize| {
        rounds_faster(&rates[one], &rates[other], EQUAL) >= FASTER_ROUNDS
    };
    let best = (1..ladder.len()).fold(0, |best, at| if beats(at, best) { at } else { best });
    ladder[best]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_the_fastest_is_chosen() {
        // The machine is slower in two rounds, for all batches alike.
        let rounds = [1.0, 0.5, 1.0, 0.98, 1.02, 0.3, 1.0, 0.9, 1.0];
        let rates = |speeds: [f64; 4]| speeds.map(|speed| rounds.map(|r| r * speed).to_vec());
        let ladder = ladder(32);
        assert_eq!(ladder, [29, 16, 8, 1]);
        assert_eq!(choose(&ladder, &rates([99.5, 100.0, 90.0, 50.0])), 29);
        assert_eq!(choose(&ladder, &rates([50.0, 97.0, 99.0, 99.5])), 8);
        assert_eq!(choose(&ladder, &rates([10.0, 20.0, 30.0, 100.0])), 1);
        // One that is faster in some rounds only is not.
        let mut noisy = rates([100.0; 4]);
        noisy[3][..7].iter_mut().for_each(|rate| *rate *= 3.0);
        assert_eq!(choose(&ladder, &noisy), 29);
        noisy[3][7] *= 3.0;
        assert_eq!(choose(&ladder, &noisy), 1);
    }

    #[test]
    fn small_depths_have_few_batches() {
        assert_eq!(super::ladder(1), [1]);
        assert_eq!(super::ladder(2), [2, 1]);
        assert_eq!(super::ladder(4), [4, 2, 1]);
    }
}
