//! How many completions a closed loop waits for at a time.
//!
//! With a given number outstanding, a closed loop is as fast as its mean latency is low (Little's
//! law), waits for the rest of a batch included. So the batch with the highest rate is the honest
//! one, and among those that are as fast the largest costs least: fewer system calls and switches.
//! Which one that is depends on the device; a short trial before the run tells. It only reads.

use crate::engine::Engine;
use crate::error::BenchError;
use crate::trial::{Trial, median, spread};

/// A smaller batch is worth its cost where it is faster by more than this share.
const EQUAL: f64 = 0.02;
/// Every batch is tried so often at most, and at least before the trial may end early.
const ROUNDS: usize = 15;
const ROUNDS_LEAST: usize = 7;

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
        let rounds = self.tried.first()?.1.len();
        let each = each.join(", ");
        Some(format!("the largest of the fastest in {rounds} rounds before the run: {each} k IOPS"))
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
        if index + 1 >= ROUNDS_LEAST && is_settled(&rates) {
            break;
        }
    }
    let batch = ladder[choose(&rates)];
    Ok(Choice { batch, tried: ladder.into_iter().zip(rates).collect() })
}

/// Batches worth trying, largest first. The largest leaves the device something to do while the
/// next batch is prepared.
fn ladder(depth: u32) -> Vec<u32> {
    let mut ladder = vec![depth - depth / 10, depth / 2, depth / 4, depth / 8, 1];
    ladder.retain(|batch| *batch > 0);
    ladder.dedup();
    ladder
}

/// The fastest batch, or the largest of which the rounds cannot tell that it is slower: by no more than
/// [`EQUAL`], or than the standard error of the difference.
fn choose(rates: &[Vec<f64>]) -> usize {
    let faster = |one: usize, other: usize| Lead::of(&rates[one], &rates[other]).share > 0.0;
    let fastest = (1..rates.len()).fold(0, |best, at| if faster(at, best) { at } else { best });
    let behind = |at: &usize| Lead::of(&rates[fastest], &rates[*at]);
    let alike = |at: &usize| behind(at).share <= EQUAL.max(behind(at).error);
    (0..fastest).find(alike).unwrap_or(fastest)
}

/// Whether more rounds would hardly change the choice: no other batch is near it.
fn is_settled(rates: &[Vec<f64>]) -> bool {
    let chosen = choose(rates);
    let mut others = (0..rates.len()).filter(|at| *at != chosen);
    others.all(|at| {
        let lead = Lead::of(&rates[chosen], &rates[at]);
        // What is smaller must be no faster; of what is larger it is known that it is slower.
        lead.share > if at > chosen { 2.0 * lead.error - EQUAL } else { EQUAL + 2.0 * lead.error }
    })
}

/// By how much one batch was faster than another.
struct Lead {
    /// In the middle round, as a share: neighbours that spoil a round do not count.
    share: f64,
    /// Its standard error.
    error: f64,
}

impl Lead {
    /// Round by round: whatever slows the machine down for a while meets both.
    fn of(one: &[f64], other: &[f64]) -> Lead {
        let leads: Vec<f64> =
            one.iter().zip(other).map(|(one, other)| (one / other).ln()).collect();
        // Of a normal distribution half of the distance between the quartiles is 0.6745 standard
        // deviations, and the standard error of the median is 1.2533 of these by the root of the number.
        let error = spread(&leads) / 0.6745 * 1.2533 / (leads.len() as f64).sqrt();
        Lead { share: median(&leads), error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of batches with these mean speeds: the machine is slower in some rounds for all alike, and
    /// each rate is off by up to `noise`, from a fixed seed.
    fn rates(speeds: [f64; 5], rounds: usize, noise: f64, seed: u64) -> Vec<Vec<f64>> {
        let mut rng = ssdyno_engine::Rng::new(seed, "rates");
        let mut machine = || 1.0 - 0.5 * rng.unit();
        let machine: Vec<f64> = (0..rounds).map(|_| machine()).collect();
        let mut off = || 1.0 + noise * (2.0 * rng.unit() - 1.0);
        speeds.map(|speed| machine.iter().map(|m| m * speed * off()).collect()).to_vec()
    }

    #[test]
    fn the_largest_of_the_fastest_is_chosen() {
        let chosen = |speeds| ladder(32)[choose(&rates(speeds, ROUNDS, 0.0, 1))];
        assert_eq!(ladder(32), [29, 16, 8, 4, 1]);
        assert_eq!(chosen([99.5, 100.0, 90.0, 90.0, 50.0]), 29);
        assert_eq!(chosen([50.0, 97.0, 99.0, 99.5, 99.0]), 8);
        assert_eq!(chosen([10.0, 20.0, 30.0, 40.0, 100.0]), 1);
        // One that is faster in some rounds only is not.
        let mut noisy = rates([100.0; 5], ROUNDS, 0.0, 1);
        noisy[4][..7].iter_mut().for_each(|rate| *rate *= 3.0);
        assert_eq!(choose(&noisy), 0);
        noisy[4][7..9].iter_mut().for_each(|rate| *rate *= 3.0);
        assert_eq!(choose(&noisy), 4);
    }

    /// What is seen of a loop device on a shared machine: rounds are off by a fifth, and batches of a quarter
    /// of the depth are faster by 40 % than the largest and by 10 % than half of the depth.
    #[test]
    fn noise_does_not_hide_the_faster_ones() {
        let mut chosen = [0; 5];
        for seed in 0..200 {
            chosen[choose(&rates([178.0, 225.0, 250.0, 240.0, 216.0], ROUNDS, 0.2, seed))] += 1;
        }
        assert_eq!(chosen[0], 0, "{chosen:?}");
        assert!(chosen[2] + chosen[3] > 130, "{chosen:?}");
        // Where all are alike the larger ones, which cost less, are taken more often.
        let mut alike = [0; 5];
        (0..200).for_each(|seed| alike[choose(&rates([100.0; 5], ROUNDS, 0.2, seed))] += 1);
        assert!(alike[0] > 100, "{alike:?}");
    }

    #[test]
    fn a_trial_ends_when_the_choice_is_clear() {
        let settled = |speeds, noise| is_settled(&rates(speeds, ROUNDS_LEAST, noise, 1));
        assert!(settled([100.0, 90.0, 80.0, 70.0, 60.0], 0.01));
        assert!(settled([60.0, 70.0, 100.0, 80.0, 70.0], 0.01));
        assert!(!settled([60.0, 99.0, 100.0, 80.0, 70.0], 0.05));
        assert!(!settled([100.0, 99.0, 98.0, 97.0, 96.0], 0.2));
    }

    #[test]
    fn small_depths_have_few_batches() {
        assert_eq!(super::ladder(1), [1]);
        assert_eq!(super::ladder(2), [2, 1]);
        assert_eq!(super::ladder(4), [4, 2, 1]);
        assert_eq!(super::ladder(8), [8, 4, 2, 1]);
    }
}
