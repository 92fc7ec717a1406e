//! The way of a closed loop: how many completions it waits for at a time, how many requests it hands over,
//! and whether it sleeps meanwhile.
//!
//! With a given number outstanding, a closed loop is as fast as its mean latency is low (Little's
//! law), waits for the rest of a batch included. So the way with the highest rate is the honest
//! one, and among those that are as fast the one that takes most at a time costs least: fewer system calls
//! and switches.
//! A device that answers many requests at once gets as many back at once, and has nothing to do until the
//! last of them is prepared; handed over in pairs, the first ones are under way by then (a virtual disk at
//! depth 32: 74 k requests a second instead of 70 k, for half a system call more by request). One that
//! answers with threads of the kernel, such as a loop device, is kept at work best by requests that come
//! one by one.
//! Who sleeps has to be woken, which takes as long as a fast device takes to answer (in virtual machines
//! longer), is in every latency, and keeps the device waiting for the next request. With few outstanding it
//! pays to spin, though that takes a core; with many somebody is awake anyway.
//! Which is best depends on the device; a short trial before the run tells. It only reads.

use crate::engine::Engine;
use crate::error::BenchError;
use crate::options::{Batch, Waiting, Way};
use crate::trial::{EQUAL, Lead, ROUNDS, ROUNDS_LEAST, Trial, median, spread};

/// Requests that are handed over together where it is not all of them: more than two the kernel holds
/// back until it has the last one (it plugs the device's queue, `IO_PLUG_THRESHOLD`).
const PAIR: u32 = 2;
/// Each for itself, but for two completions: waking up for one costs as much as for two.
const ONE_BY_ONE: Batch = Batch { complete: 2, submit: 1 };
/// What falls behind by so many standard errors, and by more than its [`tolerance`], is tried no more. More
/// than in a single look: it is looked at after every round.
const BEHIND: f64 = 2.5;
/// A core is worth so much of the rate.
const CORE: f64 = 0.05;

/// What the trial found.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) way: Way,
    /// Each way that was tried with its rate in each round; empty where there was none to choose.
    tried: Vec<(Way, Vec<f64>)>,
}

impl Choice {
    /// Without a choice.
    pub(crate) fn only(way: Way) -> Choice {
        Choice { way, tried: Vec::new() }
    }

    /// What was found, as a remark; `None` where nothing was tried.
    pub(crate) fn text(&self) -> Option<String> {
        let rates = |(way, rates): &(Way, Vec<f64>)| {
            let how = match way.batch.submit {
                1 => " handed over one by one",
                PAIR => " handed over in pairs",
                _ => "",
            };
            let awake = if way.awake { " spinning" } else { "" };
            let (rate, spread) = (median(rates) / 1e3, spread(rates) / 1e3);
            let digits = if rate < 100.0 { 1 } else { 0 };
            format!("{}{how}{awake} at {rate:.digits$} ± {spread:.digits$}", way.batch.complete)
        };
        let each: Vec<String> = self.tried.iter().map(rates).collect();
        let rounds = self.tried.iter().map(|(_, rates)| rates.len()).max()?;
        let each = each.join(", ");
        Some(format!(
            "the cheapest of the fastest in up to {rounds} rounds before the run: {each} k IOPS"
        ))
    }
}

/// The best way. A device that is too slow for a trial is reaped at once.
pub(crate) fn best<E: Engine>(
    engine: &mut E,
    trial: &Trial,
    waiting: Waiting,
) -> Result<Choice, BenchError> {
    let usual = Way { batch: Batch::AT_ONCE, awake: waiting == Waiting::Spin };
    let ladder = ladder(trial.depth, waiting);
    if ladder.len() < 2 {
        return Ok(Choice::only(usual));
    }
    let Some(round) = trial.round(engine, usual)? else {
        return Ok(Choice::only(usual));
    };
    let mut race = Race::new(ladder);
    race.run(|way| trial.rate(engine, way, round))?;
    Ok(Choice { way: race.ladder[race.choice()], tried: race.tried() })
}

/// Ways worth trying, cheapest first. The largest batch leaves the device something to do while the
/// next one is prepared.
fn ladder(depth: u32, waiting: Waiting) -> Vec<Way> {
    let mut whole = vec![depth - depth / 10, depth / 2, depth / 4, depth / 8, 1];
    whole.retain(|batch| *batch > 0);
    whole.dedup();
    let mut batches: Vec<Batch> = whole.into_iter().map(Batch::of).collect();
    // With half of the depth there is more than a pair to hand over.
    let in_pairs = Batch { complete: depth / 2, submit: PAIR };
    let pairs = depth / 2 > PAIR;
    if pairs {
        batches.insert(batches.len() - 1, in_pairs);
        batches.push(ONE_BY_ONE);
    }
    let asleep = batches.iter().map(|batch| Way::of(*batch));
    match waiting {
        Waiting::Sleep => asleep.collect(),
        Waiting::Spin => batches.into_iter().map(Way::awake).collect(),
        // To spin is for those who have little to do at a time.
        Waiting::Auto => {
            let spinning = pairs.then_some(in_pairs).into_iter().chain([Batch::AT_ONCE]);
            asleep.chain(spinning.map(Way::awake)).collect()
        }
    }
}

/// By how much of the rate `one` must be faster than `other` to be worth what it costs more.
fn tolerance(one: Way, other: Way) -> f64 {
    if one.awake == other.awake { EQUAL } else { CORE }
}

/// Ways tried in rounds. What is clearly slower leaves the later ones to those among which it is hard
/// to tell.
struct Race {
    ladder: Vec<Way>,
    /// Of each way in each round that it took part in: the first ones.
    rates: Vec<Vec<f64>>,
    running: Vec<bool>,
}

impl Race {
    fn new(ladder: Vec<Way>) -> Race {
        let entrants = ladder.len();
        let rates = vec![Vec::with_capacity(ROUNDS); entrants];
        Race { ladder, rates, running: vec![true; entrants] }
    }

    /// Runs with what `rate` finds, until the choice is clear.
    fn run<F>(&mut self, mut rate: F) -> Result<(), BenchError>
    where
        F: FnMut(Way) -> Result<f64, BenchError>,
    {
        for index in 0..ROUNDS {
            // In an order that turns round: whoever comes after the quickest is not always the same.
            let mut order = self.running();
            if index % 2 == 1 {
                order.reverse();
            }
            for at in order {
                self.rates[at].push(rate(self.ladder[at])?);
            }
            if index + 1 >= ROUNDS_LEAST {
                self.drop_out();
                if self.is_settled() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn running(&self) -> Vec<usize> {
        (0..self.ladder.len()).filter(|at| self.running[*at]).collect()
    }

    fn lead(&self, one: usize, other: usize) -> Lead {
        Lead::of(&self.rates[one], &self.rates[other])
    }

    fn fastest(&self) -> usize {
        let faster = |one: usize, other: usize| self.lead(one, other).share > 0.0;
        let running = self.running().into_iter();
        running.reduce(|best, at| if faster(at, best) { at } else { best }).unwrap_or(0)
    }

    fn tolerance(&self, one: usize, other: usize) -> f64 {
        tolerance(self.ladder[one], self.ladder[other])
    }

    /// The fastest way, or the cheapest that is hardly slower: by no more than its [`tolerance`], or than half
    /// of the standard error of the difference (the fastest of several is so in part by chance).
    fn choice(&self) -> usize {
        let fastest = self.fastest();
        let alike = |at: &usize| {
            let lead = self.lead(fastest, *at);
            lead.share <= self.tolerance(fastest, *at).max(0.5 * lead.error)
        };
        self.running().into_iter().find(alike).unwrap_or(fastest)
    }

    /// Whoever is clearly behind the fastest leaves the race.
    fn drop_out(&mut self) {
        let fastest = self.fastest();
        for at in self.running() {
            let lead = self.lead(fastest, at);
            self.running[at] = lead.share <= self.tolerance(fastest, at) + BEHIND * lead.error;
        }
    }

    /// Whether more rounds would hardly change the choice: nothing else that still runs is near it.
    fn is_settled(&self) -> bool {
        let chosen = self.choice();
        self.running().into_iter().filter(|at| *at != chosen).all(|at| {
            let (lead, tolerance) = (self.lead(chosen, at), self.tolerance(chosen, at));
            // What costs more must be no faster; of what costs less it is known that it is slower.
            let costs_more = at > chosen;
            lead.share > 2.0 * lead.error + if costs_more { -tolerance } else { tolerance }
        })
    }

    fn tried(self) -> Vec<(Way, Vec<f64>)> {
        self.ladder.into_iter().zip(self.rates).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A race between ways with these mean speeds on a machine that gets slower and faster, for all alike;
    /// each rate is off by up to `noise`, from a fixed seed. The choice, and how often each was tried.
    fn race(speeds: &[f64], noise: f64, seed: u64) -> (usize, Vec<usize>) {
        let mut rng = ssdyno_engine::Rng::new(seed, "rates");
        let waiting = if speeds.len() > 7 { Waiting::Auto } else { Waiting::Sleep };
        let (ladder, mut machine) = (ladder(32, waiting), 0.75);
        assert_eq!(ladder.len(), speeds.len());
        let mut race = Race::new(ladder.clone());
        let rate = |way| {
            machine = 0.95 * machine + 0.05 * (1.0 - 0.5 * rng.unit());
            let at = ladder.iter().position(|one| *one == way).unwrap();
            Ok(machine * speeds[at] * (1.0 + noise * (2.0 * rng.unit() - 1.0)))
        };
        race.run(rate).unwrap();
        (race.choice(), race.rates.iter().map(Vec::len).collect())
    }

    #[test]
    fn the_cheapest_of_the_fastest_is_chosen() {
        let chosen = |speeds: [f64; 7]| ladder(32, Waiting::Sleep)[race(&speeds, 0.0, 1).0].batch;
        let pairs = Batch { complete: 16, submit: 2 };
        let [most, half, quarter, eighth, one] = [29, 16, 8, 4, 1].map(Batch::of);
        let all = [most, half, quarter, eighth, pairs, one, ONE_BY_ONE];
        assert_eq!(ladder(32, Waiting::Sleep), all.map(Way::of));
        assert_eq!(ladder(32, Waiting::Spin), all.map(Way::awake));
        assert_eq!(chosen([99.8, 100.0, 90.0, 90.0, 90.0, 50.0, 80.0]), most);
        assert_eq!(chosen([50.0, 97.0, 99.7, 99.8, 100.0, 99.0, 90.0]), quarter);
        assert_eq!(chosen([50.0, 96.0, 96.0, 98.5, 103.0, 98.0, 98.0]), pairs);
        assert_eq!(chosen([10.0, 20.0, 30.0, 40.0, 41.0, 100.0, 90.0]), one);
        assert_eq!(chosen([50.0, 90.0, 92.0, 94.0, 95.0, 87.0, 99.0]), ONE_BY_ONE);
    }

    /// What is seen of a loop device on a shared machine: rounds are off by a fifth, and batches of a
    /// quarter of the depth are faster by 40 % than the largest and by 10 % than half of the depth.
    #[test]
    fn noise_does_not_hide_the_faster_ones() {
        let speeds = [178.0, 225.0, 250.0, 240.0, 220.0, 216.0, 240.0];
        let (mut chosen, mut speed) = ([0; 7], 0.0);
        for seed in 0..200 {
            let choice = race(&speeds, 0.2, seed).0;
            chosen[choice] += 1;
            speed += speeds[choice] / 200.0;
        }
        assert_eq!(chosen[0], 0, "{chosen:?}");
        assert!(speed > 0.985 * 250.0, "{speed} with {chosen:?}");
        // Where all are alike the larger ones, which cost less, are taken more often.
        let mut alike = [0; 7];
        (0..200).for_each(|seed| alike[race(&[100.0; 7], 0.2, seed).0] += 1);
        assert!(alike[0] > 50, "{alike:?}");
    }

    #[test]
    fn rounds_go_to_those_that_are_hard_to_tell() {
        let rounds = |speeds: [f64; 7], noise| race(&speeds, noise, 1).1;
        let clear = rounds([60.0, 70.0, 100.0, 80.0, 70.0, 60.0, 80.0], 0.01);
        assert_eq!(clear, [ROUNDS_LEAST; 7]);
        let close = rounds([60.0, 99.0, 100.0, 80.0, 70.0, 60.0, 98.5], 0.05);
        assert_eq!(close[2], ROUNDS, "{close:?}");
        assert!([0, 3, 4, 5].iter().all(|at| close[*at] == ROUNDS_LEAST), "{close:?}");
    }

    #[test]
    fn one_that_is_faster_in_some_rounds_only_is_not() {
        let mut race = Race::new(ladder(32, Waiting::Sleep));
        race.rates = vec![vec![100.0; 15]; 7];
        race.rates[4][..7].iter_mut().for_each(|rate| *rate *= 3.0);
        assert_eq!(race.choice(), 0);
        race.rates[4][7..9].iter_mut().for_each(|rate| *rate *= 3.0);
        assert_eq!(race.choice(), 4);
    }

    /// A core is worth a twentieth of the rate, of which the trial must be sure.
    #[test]
    fn to_spin_must_be_worth_a_core() {
        let [pairs, one] = [Batch { complete: 16, submit: 2 }, Batch::of(1)].map(Way::awake);
        let all = ladder(32, Waiting::Auto);
        assert_eq!(all[7..], [pairs, one]);
        let chosen = |speeds: [f64; 9], noise, seed| all[race(&speeds, noise, seed).0];
        let asleep = [90.0, 100.0, 95.0, 95.0, 95.0, 90.0, 90.0];
        let with = |spinning: [f64; 2]| {
            let mut speeds = [0.0; 9];
            speeds[..7].copy_from_slice(&asleep);
            speeds[7..].copy_from_slice(&spinning);
            speeds
        };
        assert_eq!(chosen(with([104.0, 90.0]), 0.0, 1), Way::of(Batch::of(16)));
        assert_eq!(chosen(with([106.0, 115.0]), 0.0, 1), one);
        assert_eq!(chosen(with([112.0, 112.5]), 0.0, 1), pairs);
        // What is seen at depth 4 of a loop device, and at 32 of a virtual disk.
        let (mut far, mut near) = (0, 0);
        for seed in 0..100 {
            far += u32::from(chosen(with([180.0, 250.0]), 0.2, seed) == one);
            near += u32::from(chosen(with([103.0, 95.0]), 0.05, seed).awake);
        }
        assert_eq!(far, 100);
        assert!(near < 15, "{near}");
        let at_once = [Way::of(Batch::AT_ONCE), Way::awake(Batch::AT_ONCE)];
        assert_eq!(ladder(1, Waiting::Auto), at_once);
    }

    #[test]
    fn small_depths_have_few_batches() {
        let ladder = |depth| -> Vec<(u32, u32)> {
            let ladder = super::ladder(depth, Waiting::Sleep);
            ladder
                .iter()
                .map(|way| way.batch)
                .map(|batch| (batch.complete, batch.submit.min(depth)))
                .collect()
        };
        assert_eq!(ladder(1), [(1, 1)]);
        assert_eq!(ladder(2), [(2, 2), (1, 2)]);
        assert_eq!(ladder(4), [(4, 4), (2, 4), (1, 4)]);
        assert_eq!(ladder(8), [(8, 8), (4, 8), (2, 8), (4, 2), (1, 8), (2, 1)]);
    }
}
