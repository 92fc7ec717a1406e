//! How many completions a closed loop waits for at a time, and how many requests it hands over.
//!
//! With a given number outstanding, a closed loop is as fast as its mean latency is low (Little's
//! law), waits for the rest of a batch included. So the batch with the highest rate is the honest
//! one, and among those that are as fast the largest costs least: fewer system calls and switches.
//! A device that answers many requests at once gets as many back at once, and has nothing to do until the
//! last of them is prepared; handed over in pairs, the first ones are under way by then (a virtual disk at
//! depth 32: 74 k requests a second instead of 70 k, for half a system call more by request).
//! Which is best depends on the device; a short trial before the run tells. It only reads.

use crate::engine::Engine;
use crate::error::BenchError;
use crate::options::Batch;
use crate::trial::{EQUAL, Lead, ROUNDS, ROUNDS_LEAST, Trial, median, spread};

/// Requests that are handed over together where it is not all of them: more than two the kernel holds
/// back until it has the last one (it plugs the device's queue, `IO_PLUG_THRESHOLD`).
const PAIR: u32 = 2;

/// What the trial found.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) batch: Batch,
    /// Each batch that was tried with its rate in each round; empty where there was none to choose.
    tried: Vec<(Batch, Vec<f64>)>,
}

impl Choice {
    /// Without a choice.
    pub(crate) fn only(batch: Batch) -> Choice {
        Choice { batch, tried: Vec::new() }
    }

    /// What was found, as a remark; `None` where nothing was tried.
    pub(crate) fn text(&self) -> Option<String> {
        let rates = |(batch, rates): &(Batch, Vec<f64>)| {
            let pairs = if batch.submit == PAIR { " handed over in pairs" } else { "" };
            let (rate, spread) = (median(rates) / 1e3, spread(rates) / 1e3);
            format!("{}{pairs} at {rate:.0} ± {spread:.0}", batch.complete)
        };
        let each: Vec<String> = self.tried.iter().map(rates).collect();
        let rounds = self.tried.first()?.1.len();
        let each = each.join(", ");
        Some(format!(
            "the cheapest of the fastest in {rounds} rounds before the run: {each} k IOPS"
        ))
    }
}

/// The best batch. A device that is too slow for a trial is reaped at once.
pub(crate) fn best<E: Engine>(engine: &mut E, trial: &Trial) -> Result<Choice, BenchError> {
    let ladder = ladder(trial.depth);
    if ladder.len() < 2 {
        return Ok(Choice::only(Batch::AT_ONCE));
    }
    let Some(round) = trial.round(engine, Batch::AT_ONCE)? else {
        return Ok(Choice::only(Batch::AT_ONCE));
    };
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

/// Batches worth trying, cheapest first. The largest leaves the device something to do while the
/// next batch is prepared.
fn ladder(depth: u32) -> Vec<Batch> {
    let mut whole = vec![depth - depth / 10, depth / 2, depth / 4, depth / 8, 1];
    whole.retain(|batch| *batch > 0);
    whole.dedup();
    let mut ladder: Vec<Batch> = whole.into_iter().map(Batch::of).collect();
    // With half of the depth there is more than a pair to hand over.
    if depth / 2 > PAIR {
        let pairs = Batch { complete: depth / 2, submit: PAIR };
        ladder.insert(ladder.len() - 1, pairs);
    }
    ladder
}

/// The fastest batch, or the cheapest of which the rounds cannot tell that it is slower: by no more than
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
        // What costs more must be no faster; of what costs less it is known that it is slower.
        lead.share > if at > chosen { 2.0 * lead.error - EQUAL } else { EQUAL + 2.0 * lead.error }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of batches with these mean speeds: the machine is slower in some rounds for all alike, and
    /// each rate is off by up to `noise`, from a fixed seed.
    fn rates(speeds: [f64; 6], rounds: usize, noise: f64, seed: u64) -> Vec<Vec<f64>> {
        let mut rng = ssdyno_engine::Rng::new(seed, "rates");
        let mut machine = || 1.0 - 0.5 * rng.unit();
        let machine: Vec<f64> = (0..rounds).map(|_| machine()).collect();
        let mut off = || 1.0 + noise * (2.0 * rng.unit() - 1.0);
        speeds.map(|speed| machine.iter().map(|m| m * speed * off()).collect()).to_vec()
    }

    #[test]
    fn the_cheapest_of_the_fastest_is_chosen() {
        let chosen = |speeds| ladder(32)[choose(&rates(speeds, ROUNDS, 0.0, 1))];
        let pairs = Batch { complete: 16, submit: 2 };
        let [most, half, quarter, eighth, one] = [29, 16, 8, 4, 1].map(Batch::of);
        assert_eq!(ladder(32), [most, half, quarter, eighth, pairs, one]);
        assert_eq!(chosen([99.5, 100.0, 90.0, 90.0, 90.0, 50.0]), most);
        assert_eq!(chosen([50.0, 97.0, 99.0, 99.5, 100.0, 99.0]), quarter);
        assert_eq!(chosen([50.0, 97.0, 97.0, 99.5, 103.0, 99.0]), pairs);
        assert_eq!(chosen([10.0, 20.0, 30.0, 40.0, 41.0, 100.0]), one);
        // One that is faster in some rounds only is not.
        let mut noisy = rates([100.0; 6], ROUNDS, 0.0, 1);
        noisy[4][..7].iter_mut().for_each(|rate| *rate *= 3.0);
        assert_eq!(choose(&noisy), 0);
        noisy[4][7..9].iter_mut().for_each(|rate| *rate *= 3.0);
        assert_eq!(choose(&noisy), 4);
    }

    /// What is seen of a loop device on a shared machine: rounds are off by a fifth, and batches of a quarter
    /// of the depth are faster by 40 % than the largest and by 10 % than half of the depth.
    #[test]
    fn noise_does_not_hide_the_faster_ones() {
        let mut chosen = [0; 6];
        for seed in 0..200 {
            chosen
                [choose(&rates([178.0, 225.0, 250.0, 240.0, 220.0, 216.0], ROUNDS, 0.2, seed))] +=
                1;
        }
        assert_eq!(chosen[0], 0, "{chosen:?}");
        assert!(chosen[2] + chosen[3] > 130, "{chosen:?}");
        // Where all are alike the larger ones, which cost less, are taken more often.
        let mut alike = [0; 6];
        (0..200).for_each(|seed| alike[choose(&rates([100.0; 6], ROUNDS, 0.2, seed))] += 1);
        assert!(alike[0] > 100, "{alike:?}");
    }

    #[test]
    fn a_trial_ends_when_the_choice_is_clear() {
        let settled = |speeds, noise| is_settled(&rates(speeds, ROUNDS_LEAST, noise, 1));
        assert!(settled([100.0, 90.0, 80.0, 70.0, 60.0, 50.0], 0.01));
        assert!(settled([60.0, 70.0, 100.0, 80.0, 70.0, 60.0], 0.01));
        assert!(!settled([60.0, 99.0, 100.0, 80.0, 70.0, 60.0], 0.05));
        assert!(!settled([100.0, 99.0, 98.0, 97.0, 96.0, 95.0], 0.2));
    }

    #[test]
    fn small_depths_have_few_batches() {
        let ladder = |depth| -> Vec<(u32, u32)> {
            let ladder = super::ladder(depth);
            ladder.iter().map(|batch| (batch.complete, batch.submit.min(depth))).collect()
        };
        assert_eq!(ladder(1), [(1, 1)]);
        assert_eq!(ladder(2), [(2, 2), (1, 2)]);
        assert_eq!(ladder(4), [(4, 4), (2, 4), (1, 4)]);
        assert_eq!(ladder(8), [(8, 8), (4, 8), (2, 8), (4, 2), (1, 8)]);
    }
}
