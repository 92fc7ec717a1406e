//! Which of several methods is fastest, told from rounds.
//!
//! Methods are tried in turn, in rounds, so that whatever else runs on the machine meets them all, and
//! are compared round by round: the middle one decides ([`PairedDifference`]), so that a round that a neighbour
//! spoils counts as one, however much it was spoilt.

use ssdyno_figures::TunedMethod;

use super::candidate::Candidate;
use crate::error::BenchError;

/// Every method is tried so often at most, and at least before a search may end early.
// Fifteen rounds of 200 ms are three seconds for each method. The sign test over nine rounds of
// 3 ms that was there before had too little power on a shared machine.
const ROUNDS: usize = 15;
pub(super) const ROUNDS_LEAST: usize = 5;
/// A method with a higher cost is worth it if it is faster by more than this share.
const EQUAL: f64 = 0.01;
/// The share of the rate that justifies a core.
pub(super) const CORE: f64 = 0.05;
/// What falls behind by so many standard errors, and by more than its [`tolerance`], is tried no more. More
/// than in a single look: it is looked at after every round.
const BEHIND: f64 = 2.5;

/// Methods tried in rounds, cheapest first. A clearly slower method leaves the later rounds to those that are hard to
/// distinguish.
pub(super) struct Race {
    candidates: Vec<Candidate>,
    /// The results of each candidate in each of its rounds: the first ones.
    rates: Vec<Vec<f64>>,
    running: Vec<bool>,
}

/// By how much of the rate `one` must be faster than `other` to be worth what it costs more.
fn tolerance(one: Candidate, other: Candidate) -> f64 {
    if one.strategy.waiting == other.strategy.waiting { EQUAL } else { CORE }
}

impl Race {
    pub(super) fn new(candidates: Vec<Candidate>) -> Race {
        let rates = vec![Vec::with_capacity(ROUNDS); candidates.len()];
        let running = vec![true; candidates.len()];
        Race { candidates, rates, running }
    }

    /// Whether there is nothing to choose.
    pub(super) fn is_one(&self) -> bool {
        self.candidates.len() == 1
    }

    /// Runs with what `rate` finds in a round, until the choice is clear.
    pub(super) fn run<F>(&mut self, mut rate: F) -> Result<(), BenchError>
    where
        F: FnMut(Candidate, usize) -> Result<f64, BenchError>,
    {
        for round in 0..ROUNDS {
            // In an order that turns round: whoever comes after the quickest is not always the same.
            let mut order = self.running();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                self.rates[at].push(rate(self.candidates[at], round)?);
            }
            // The standard error of a median of fewer than five rounds says little. Dropping out
            // before that would be chance.
            if round + 1 >= ROUNDS_LEAST {
                self.drop_out();
                if self.is_settled() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn running(&self) -> Vec<usize> {
        (0..self.candidates.len()).filter(|at| self.running[*at]).collect()
    }

    fn difference(&self, one: usize, other: usize) -> PairedDifference {
        PairedDifference::of(&self.rates[one], &self.rates[other])
    }

    fn fastest(&self) -> usize {
        let faster = |one: usize, other: usize| self.difference(one, other).share > 0.0;
        let running = self.running().into_iter();
        running.reduce(|best, at| if faster(at, best) { at } else { best }).unwrap_or(0)
    }

    fn tolerance(&self, one: usize, other: usize) -> f64 {
        tolerance(self.candidates[one], self.candidates[other])
    }

    /// The fastest method, or the cheapest that is hardly slower: by no more than its [`tolerance`], or than
    /// half of the standard error of the difference (the fastest of several is so in part by chance).
    pub(super) fn choice(&self) -> Candidate {
        self.candidates[self.chosen()]
    }

    fn chosen(&self) -> usize {
        let fastest = self.fastest();
        let alike = |at: &usize| {
            let behind = self.difference(fastest, *at);
            behind.share <= self.tolerance(fastest, *at).max(0.5 * behind.error)
        };
        self.running().into_iter().find(alike).unwrap_or(fastest)
    }

    /// A method that is clearly behind the fastest leaves the race.
    fn drop_out(&mut self) {
        let fastest = self.fastest();
        for at in self.running() {
            let behind = self.difference(fastest, at);
            self.running[at] = behind.share <= self.tolerance(fastest, at) + BEHIND * behind.error;
        }
    }

    /// Whether more rounds would hardly change the choice: nothing else that still runs is near it.
    fn is_settled(&self) -> bool {
        let chosen = self.chosen();
        self.running().into_iter().filter(|at| *at != chosen).all(|at| {
            let (ahead, tolerance) = (self.difference(chosen, at), self.tolerance(chosen, at));
            // A method with a higher cost must not be faster; a method with a lower cost is known
            // to be slower.
            let costs_more = at > chosen;
            ahead.share > 2.0 * ahead.error + if costs_more { -tolerance } else { tolerance }
        })
    }

    /// Each candidate with what it reached.
    pub(super) fn tried(self) -> Vec<TunedMethod> {
        let all = self.candidates.into_iter().zip(self.rates);
        all.map(|(candidate, rates)| TunedMethod {
            settings: candidate.settings(),
            iops: median(&rates),
            iops_spread: spread(&rates),
            rounds: rates.len() as u64,
        })
        .collect()
    }
}

/// By how much one method was faster than another.
struct PairedDifference {
    /// In the middle round, as a share: neighbours that spoil a round do not count.
    share: f64,
    /// Its standard error.
    error: f64,
}

impl PairedDifference {
    /// Round by round: whatever slows the machine down for a while meets both.
    fn of(one: &[f64], other: &[f64]) -> PairedDifference {
        let differences: Vec<f64> =
            // The logarithm makes "10 % faster" and "10 % slower" equally far from zero. A plain
            // quotient would favour whatever is in the numerator.
            one.iter().zip(other).map(|(one, other)| (one / other).ln()).collect();
        // Of a normal distribution half of the distance between the quartiles is 0.6745 standard
        // deviations, and the standard error of the median is 1.2533 of these by the root of the number.
        let error = spread(&differences) / 0.6745 * 1.2533 / (differences.len() as f64).sqrt();
        PairedDifference { share: median(&differences), error }
    }
}

/// The rate of the middle round.
fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Half of the distance between the quartiles: what a neighbour spoils now and then does not count.
fn spread(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |quarter: usize| sorted.get(sorted.len() * quarter / 4);
    at(3).zip(at(1)).map_or(f64::NAN, |(high, low)| (high - low) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::ladder;

    /// A race between methods with these mean speeds on a machine that gets slower and faster, for all alike;
    /// each rate is off by up to `noise`, from a fixed seed. Which was chosen, and how often each was tried.
    fn race(speeds: &[f64], noise: f64, seed: u64) -> (usize, Vec<usize>) {
        let mut rng = ssdyno_engine::Rng::new(seed, "rates");
        let candidates = ladder(32, speeds.len() > ASLEEP);
        assert_eq!(candidates.len(), speeds.len());
        let (mut race, mut machine) = (Race::new(candidates.clone()), 0.75);
        let rate = |candidate, _| {
            machine = 0.95 * machine + 0.05 * (1.0 - 0.5 * rng.unit());
            let at = candidates.iter().position(|one| *one == candidate).unwrap();
            Ok(machine * speeds[at] * (1.0 + noise * (2.0 * rng.unit() - 1.0)))
        };
        race.run(rate).unwrap();
        (race.chosen(), race.rates.iter().map(Vec::len).collect())
    }

    /// At depth 32 asleep: 32, 29, 16, 8, 4, 16 in pairs, 1, 1 in pairs (the default), 2 one by one, 1 one by one;
    /// then spinning: 16 in pairs, 1, 1 one by one.
    const ASLEEP: usize = 10;

    #[test]
    fn the_middle_round_decides() {
        let (one, other) = ([1.1, 9.0, 1.1, 1.0, 1.1], [1.0, 1.0, 1.0, 8.0, 1.0]);
        let difference = PairedDifference::of(&one, &other);
        assert!((difference.share - 1.1_f64.ln()).abs() < 1e-9);
        assert_eq!(median(&[3.0, 1.0, 100.0]), 3.0);
        assert_eq!(spread(&[10.0, 90.0, 20.0, 30.0, 40.0, 0.0, 12.0, 35.0, 25.0]), 11.5);
    }

    #[test]
    fn the_cheapest_of_the_fastest_is_chosen() {
        // Between rounds the machine gets slower and faster: which is chosen most often of 25 times.
        let chosen = |speeds: [f64; 10]| {
            let mut times = [0; 10];
            (1..26).for_each(|seed| times[race(&speeds, 0.0, seed).0] += 1);
            times.into_iter().enumerate().max_by_key(|(_, times)| *times).map(|(at, _)| at).unwrap()
        };
        assert_eq!(chosen([80.0, 99.8, 100.0, 90.0, 90.0, 90.0, 50.0, 50.0, 80.0, 50.0]), 1);
        assert_eq!(chosen([40.0, 50.0, 97.0, 99.7, 99.8, 100.0, 99.0, 99.0, 90.0, 90.0]), 3);
        assert_eq!(chosen([40.0, 50.0, 96.0, 96.0, 98.5, 103.0, 98.0, 98.0, 98.0, 98.0]), 5);
        assert_eq!(chosen([9.0, 10.0, 20.0, 30.0, 40.0, 41.0, 100.0, 100.0, 90.0, 90.0]), 6);
        assert_eq!(chosen([40.0, 50.0, 90.0, 92.0, 94.0, 95.0, 87.0, 87.0, 99.0, 87.0]), 8);
        assert_eq!(chosen([40.0, 50.0, 90.0, 92.0, 94.0, 95.0, 87.0, 87.0, 97.0, 99.0]), 9);
    }

    /// The figures of a loop device on a shared machine, in rounds that deviate by up to a tenth.
    #[test]
    fn noise_does_not_hide_the_faster_ones() {
        let speeds = [170.0, 178.0, 225.0, 250.0, 240.0, 220.0, 216.0, 216.0, 240.0, 216.0];
        let (mut chosen, mut speed) = ([0; 10], 0.0);
        for seed in 0..200 {
            let choice = race(&speeds, 0.1, seed).0;
            chosen[choice] += 1;
            speed += speeds[choice] / 200.0;
        }
        assert_eq!(chosen[0] + chosen[1], 0, "{chosen:?}");
        assert!(speed > 0.985 * 250.0, "{speed} with {chosen:?}");
        // Where all are alike the larger ones, which cost less, are taken more often.
        let mut alike = [0; 10];
        (0..200).for_each(|seed| alike[race(&[100.0; 10], 0.1, seed).0] += 1);
        assert!(alike[0] > 50, "{alike:?}");
    }

    #[test]
    fn rounds_go_to_those_that_are_hard_to_tell() {
        let rounds = |speeds: [f64; 10], noise| race(&speeds, noise, 1).1;
        let clear = rounds([50.0, 60.0, 70.0, 100.0, 80.0, 70.0, 60.0, 60.0, 80.0, 60.0], 0.01);
        assert_eq!(clear, [ROUNDS_LEAST; 10]);
        let close = rounds([50.0, 60.0, 99.0, 100.0, 80.0, 70.0, 60.0, 60.0, 98.5, 60.0], 0.05);
        assert_eq!(close[3], ROUNDS, "{close:?}");
        assert!([0, 1, 4, 5, 6].iter().all(|at| close[*at] == ROUNDS_LEAST), "{close:?}");
    }

    #[test]
    fn one_that_is_faster_in_some_rounds_only_is_not() {
        let mut race = Race::new(ladder(32, false));
        race.rates = vec![vec![100.0; 15]; 10];
        race.rates[4][..7].iter_mut().for_each(|rate| *rate *= 3.0);
        assert_eq!(race.chosen(), 0);
        race.rates[4][7..9].iter_mut().for_each(|rate| *rate *= 3.0);
        assert_eq!(race.chosen(), 4);
    }

    /// A core is worth a twentieth of the rate, of which the search must be sure.
    #[test]
    fn to_spin_must_be_worth_a_core() {
        let chosen = |speeds: [f64; 13], noise, seed| race(&speeds, noise, seed).0;
        let with = |spinning: [f64; 3]| {
            let mut speeds = [90.0; ASLEEP + 3];
            (speeds[2], speeds[3], speeds[4], speeds[5]) = (100.0, 95.0, 95.0, 95.0);
            speeds[ASLEEP..].copy_from_slice(&spinning);
            speeds
        };
        assert_eq!(chosen(with([104.0, 90.0, 90.0]), 0.0, 1), 2, "asleep");
        assert_eq!(chosen(with([106.0, 115.0, 110.0]), 0.0, 1), ASLEEP + 1);
        assert_eq!(chosen(with([112.0, 112.5, 112.0]), 0.0, 1), ASLEEP);
        // The figures at depth 4 of a loop device, and at 32 of a virtual disk.
        let (mut far, mut near) = (0, 0);
        for seed in 0..100 {
            far += u32::from(chosen(with([180.0, 250.0, 200.0]), 0.1, seed) == ASLEEP + 1);
            near += u32::from(chosen(with([103.0, 95.0, 95.0]), 0.05, seed) >= ASLEEP);
        }
        assert_eq!(far, 100);
        assert!(near < 15, "{near}");
    }
}
