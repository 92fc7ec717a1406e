//! The known values of each load so far.

use ssdyno_figures::Warning;

use crate::estimate::{Estimate, estimate_of};

use super::levels::{batch_means, fall};
use super::load::CapacityTest;
use super::result::{DepthRate, RateBurst};
use super::slice::Slice;

/// Depths whose rate is within this share of the highest count as saturated.
const SATURATED: f64 = 0.02;
/// A doubled depth that gains less has gained nothing.
const GAIN_MIN: f64 = 0.03;
/// Rounds that are faster than what a long stretch sustained, by this factor, are in the burst.
const REFILLED: f64 = 1.25;
/// Depth of the long writes at the start: that of the kernel's `iocost_coef_gen.py`.
pub(crate) const LONG_DEPTH: u32 = 64;
/// Requests outstanding at most.
pub(crate) const DEPTH_MAX: u32 = 256;

/// A round of a load.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Round {
    /// Requests per second.
    rate: f64,
    /// Seconds of the device when it ended.
    at: f64,
    /// Requests of this load until then.
    requests: u64,
}

/// One load of the profile.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TestState {
    pub(crate) test: CapacityTest,
    pub(crate) depth: u32,
    pub(crate) depths: Vec<DepthRate>,
    /// Seconds before a round counts.
    pub(crate) ramp: f64,
    /// Requests per second, as far as is known.
    pub(crate) rate: Option<f64>,
    /// How often the ramp was doubled.
    pub(crate) doubled: u32,
    pub(crate) longest: f64,
    /// What its last load says of burst credits.
    pub(crate) credits: Option<Warning>,
    /// 99th percentiles of reads and writes of the rounds.
    pub(crate) p99_us: Vec<(f64, Option<f64>)>,
    requests: u64,
    rounds: Vec<Round>,
    /// Seen in one long stretch, in requests per second.
    burst: Option<RateBurst>,
    /// Rates of the parts of the long stretches after the burst.
    after_burst: Vec<f64>,
}

/// The search for the depth of saturation of a load.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct NextDepth {
    /// The least depth that saturates, as far as is known.
    pub(crate) depth: u32,
    pub(crate) depths: Vec<DepthRate>,
}

impl NextDepth {
    /// The highest rate.
    pub(crate) fn best(&self) -> f64 {
        self.depths.iter().map(|one| one.iops).fold(0.0, f64::max)
    }

    /// Takes a rate at a depth; says which depth is next, or `None` when the rate no longer rises.
    pub(crate) fn take(&mut self, depth: u32, iops: f64) -> Option<u32> {
        self.depths.push(DepthRate { depth, iops });
        let best = self.best();
        // Beyond saturation a greater depth adds latency and hardly any rate. So the least
        // depth within 2 % of the best rate counts as the depth of saturation.
        let enough = best * (1.0 - SATURATED);
        let least = self.depths.iter().find(|one| one.iops >= enough);
        self.depth = least.map_or(depth, |one| one.depth);
        let count = self.depths.len();
        let before = self.depths[..count.saturating_sub(2)].iter().map(|one| one.iops);
        let before = before.fold(0.0, f64::max);
        // One doubling may bring no gain and the next some gain, as with split transfers. So the
        // search ends only after two doublings without a gain.
        let rises = count < 3 || best > before * (1.0 + GAIN_MIN);
        (depth < DEPTH_MAX && rises).then_some(depth * 2)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl TestState {
    pub(crate) fn new(test: CapacityTest) -> TestState {
        TestState {
            test,
            depth: 1,
            depths: Vec::new(),
            ramp: 0.0,
            rate: None,
            doubled: 0,
            longest: 0.0,
            credits: None,
            p99_us: Vec::new(),
            requests: 0,
            rounds: Vec::new(),
            burst: None,
            after_burst: Vec::new(),
        }
    }

    /// Every load of it is seen here.
    pub(crate) fn saw(&mut self, slice: &Slice) {
        self.requests += slice.requests;
        self.credits.clone_from(&slice.credits);
        self.longest = self.longest.max(slice.length);
    }

    /// A round that counts, which ended at `at`.
    pub(crate) fn rounds_done(&self) -> usize {
        self.rounds.len()
    }

    pub(crate) fn add_round(&mut self, rate: f64, at: f64) {
        self.rounds.push(Round { rate, at, requests: self.requests });
        self.rate = Some(rate);
    }

    /// A long stretch of which every part was looked at.
    pub(crate) fn look_for_burst(&mut self, rates: &[f64], seconds: f64, size: u64) {
        let found = fall(rates);
        self.after_burst = rates[found.map_or(0, |found| found.at)..].to_vec();
        if let Some(found) = found {
            let share = found.at as f64 / rates.len() as f64;
            self.burst = Some(RateBurst {
                rate: found.first,
                sustained: found.last,
                seconds: seconds * share,
                bytes: found.first * seconds * share * size as f64,
            });
        }
    }

    /// Takes a rate at a depth; says which depth is next, or `None` when the rate no longer rises.
    pub(crate) fn next_depth(&mut self, depth: u32, iops: f64) -> Option<u32> {
        self.rate = Some(iops);
        let depths = std::mem::take(&mut self.depths);
        let mut search = NextDepth { depth: self.depth, depths };
        let next = search.take(depth, iops);
        (self.depth, self.depths) = (search.depth, search.depths);
        next
    }

    /// The greatest depth up to which no rate exceeds `most`; depth 1 if there is none.
    pub(crate) fn depth_below(&self, most: f64) -> Option<u32> {
        let first = self.depths.first()?;
        // The search ends the burst of a cache. A depth that was searched after the burst has a low
        // rate and is saturated all the same, so a depth beyond a higher rate does not count.
        let below = self.depths.iter().take_while(|one| one.iops <= most).last();
        Some(below.unwrap_or(first).depth)
    }

    fn rates(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| round.rate).collect()
    }

    /// Whether a long stretch began with a burst.
    pub(crate) fn has_burst(&self) -> bool {
        self.burst.is_some()
    }

    /// Whether rounds are in a burst that comes back while other loads run, and is longer than a round. The long
    /// stretch may contain no burst: a load before it filled the cache. A load that needs more outstanding requests
    /// than the long stretch had is faster for that reason.
    pub(crate) fn refills(&self) -> bool {
        let rates = self.rates();
        if rates.is_empty() || self.after_burst.is_empty() || self.depth > LONG_DEPTH {
            return false;
        }
        mean(&rates) > REFILLED * mean(&self.after_burst)
    }

    /// Another long stretch of a load that [refills](TestState::refills): its parts after the burst count.
    pub(crate) fn add_stretch(&mut self, rates: &[f64]) {
        let after = &rates[fall(rates).map_or(0, |found| found.at)..];
        // The stretch may end before the burst does. Its rates are then those of the cache and
        // would raise the mean.
        if !after.is_empty() && mean(after) <= REFILLED * mean(&self.after_burst) {
            self.after_burst.extend(after);
        }
    }

    /// Rates of the rounds after a burst, or of independent parts of the long stretches where rounds are in it.
    pub(crate) fn sustained(&self) -> Vec<f64> {
        if self.refills() {
            return batch_means(&self.after_burst);
        }
        let rates = self.rates();
        match fall(&rates) {
            Some(found) => rates[found.at..].to_vec(),
            None => rates,
        }
    }

    /// Mean of the rounds after a burst, in requests per second.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        estimate_of(&self.sustained())
    }

    /// Whether the mean is known within `error` by `rounds` or more.
    pub(crate) fn is_known(&self, error: f64, rounds: usize) -> bool {
        let sustained = self.sustained();
        let within = || {
            let estimate = estimate_of(&sustained)?;
            Some(estimate.half_width? <= error * estimate.mean)
        };
        sustained.len() >= rounds && within() == Some(true)
    }

    /// Change from the first to the second half of the rounds after a burst.
    pub(crate) fn drift(&self) -> f64 {
        let rates = self.sustained();
        if rates.len() < 4 {
            return 0.0;
        }
        let half = rates.len() / 2;
        (mean(&rates[rates.len() - half..]) - mean(&rates[..half])) / mean(&rates)
    }

    /// The burst, in requests per second: of the long stretch, or over rounds if the rate fell further there.
    pub(crate) fn burst(&self, size: u64) -> Option<RateBurst> {
        let over_rounds = fall(&self.rates()).map(|found| {
            let last = self.rounds[found.at - 1];
            let (seconds, bytes) = (last.at, (last.requests * size) as f64);
            RateBurst { rate: found.first, sustained: found.last, seconds, bytes }
        });
        match (self.burst, over_rounds) {
            // The rounds fell no further than the long stretch did. Both met the same burst,
            // and the long stretch shows its length without pauses.
            (Some(seen), Some(rounds)) if rounds.sustained > 0.95 * seen.sustained => Some(seen),
            (seen, rounds) => rounds.or(seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> TestState {
        TestState::new(CapacityTest::CheckReads)
    }

    /// A station with 16 servers: the rate is proportional to the depth up to 16.
    #[test]
    fn the_depth_rises_until_the_rate_does_not() {
        let mut state = state();
        let mut depth = Some(1);
        while let Some(now) = depth {
            depth = state.next_depth(now, 1000.0 * f64::from(now.min(16)));
        }
        assert_eq!((state.depth, state.depths.len()), (16, 7));
        assert_eq!(state.depth_below(0.8 * 16e3), Some(8));
        let mut flat = self::state();
        assert_eq!(flat.next_depth(1, 10.0), Some(2));
        assert_eq!(flat.next_depth(2, 10.0), Some(4));
        assert_eq!(flat.next_depth(4, 10.0), None);
        assert_eq!((flat.depth, flat.depth_below(8.0)), (1, Some(1)));
    }

    /// The burst ends between depth 32 and depth 64, and 78 requests per second are sustained: depths 64 and 128 have less
    /// than 80 % of the burst, but they are saturated. Depth 4 is the greatest with at most 62.4.
    #[test]
    fn a_depth_after_the_burst_is_no_moderate_load() {
        let mut state = state();
        for (depth, iops) in [15.0, 30.0, 60.0, 115.0, 140.0, 144.0, 78.0, 78.0].iter().enumerate()
        {
            state.next_depth(1 << depth, *iops);
        }
        assert_eq!(state.depth_below(0.8 * 78.0), Some(4));
        assert_eq!(state.depth_below(10.0), Some(1));
    }

    /// A cache that empties between rounds: the long stretch of 10 bins at 20 000 and 30 at 1500 decides.
    #[test]
    fn a_burst_that_comes_back_is_not_sustained() {
        let mut state = state();
        let rates: Vec<f64> = (0..40).map(|at| if at < 10 { 20e3 } else { 1500.0 }).collect();
        state.look_for_burst(&rates, 40.0, 4096);
        for round in 0..5 {
            state.add_round(20e3, f64::from(round));
        }
        assert!((state.estimate().unwrap().mean - 1500.0).abs() < 1e-6 && state.is_known(0.05, 5));
        assert_eq!(state.burst(4096).unwrap().seconds, 10.0);
    }

    /// Parts that swing slowly, four at a time: neighbours are correlated, and batches of four count.
    #[test]
    fn parts_of_a_stretch_count_as_batches() {
        let mut state = state();
        let swings = |at: usize| 1500.0 + if (at / 4).is_multiple_of(2) { 200.0 } else { -200.0 };
        let rates: Vec<f64> = (0..40).map(|at| if at < 8 { 20e3 } else { swings(at) }).collect();
        state.look_for_burst(&rates, 40.0, 4096);
        assert!(!state.refills());
        state.add_round(20e3, 1.0);
        assert!(state.refills());
        assert_eq!(state.sustained(), [1700.0, 1300.0].repeat(4));
        // The next stretch begins in the burst, too; a stretch that never leaves the burst gives no
        // information.
        state.add_stretch(&rates);
        assert_eq!(state.sustained().len(), 16);
        state.add_stretch(&[20e3; 40]);
        assert_eq!(state.sustained().len(), 16);
    }

    /// The load before filled the cache: the long stretch has no burst, and the rounds are faster all the same. A load
    /// with more requests outstanding than in the long stretch may be faster.
    #[test]
    fn a_stretch_without_its_burst_decides_too() {
        let mut state = state();
        state.look_for_burst(&[1500.0; 40], 40.0, 4096);
        for round in 0..5 {
            state.add_round(20e3, f64::from(round));
        }
        assert!((state.estimate().unwrap().mean - 1500.0).abs() < 1e-6);
        assert_eq!(state.burst(4096), None);
        state.depth = 2 * LONG_DEPTH;
        assert!((state.estimate().unwrap().mean - 20e3).abs() < 1e-6);
    }

    #[test]
    fn rounds_of_a_burst_do_not_count() {
        let mut state = state();
        for round in 0..12 {
            state.requests += 100;
            let noise = 1.0 + 0.01 * f64::from(round % 2);
            state.add_round(if round < 4 { 1000.0 } else { 500.0 } * noise, f64::from(round));
        }
        let estimate = state.estimate().unwrap();
        assert!((estimate.mean - 502.5).abs() < 1e-9 && state.is_known(0.05, 5));
        let burst = state.burst(4096).unwrap();
        assert_eq!((burst.rate, burst.seconds, burst.bytes), (1005.0, 3.0, 400.0 * 4096.0));
        assert!(state.drift().abs() < 1e-9);
    }
    /// Checks the note of a capacity: normal noise of 12 % of the mean, `error` 5 %, five rounds or more, 1000 loads
    /// (seed 22). The share has a standard error of 0.011; it was simulated as 0.86.
    #[test]
    fn the_first_narrow_interval_covers_less() {
        let mut rng = ssdyno_engine::Rng::new(22, "capacity coverage");
        let mut normal = || {
            let (radius, turn) = ((2.0 * rng.exponential()).sqrt(), rng.unit());
            radius * (std::f64::consts::TAU * turn).cos()
        };
        let mut covered = 0;
        for _ in 0..1000 {
            let mut state = state();
            while !state.is_known(0.05, 5) {
                let round = state.rounds.len() as f64;
                state.add_round(1e4 * (1.0 + 0.12 * normal()), round);
            }
            let estimate = state.estimate().unwrap();
            covered += u32::from((estimate.mean - 1e4).abs() <= estimate.half_width.unwrap());
        }
        let share = f64::from(covered) / 1000.0;
        assert!((share - 0.86).abs() <= 3.0 * (0.86_f64 * 0.14 / 1000.0).sqrt(), "{share}");
    }
}
