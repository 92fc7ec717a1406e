//! SeRRa, the paper's tool: measure some sizes, estimate the others (S2-1 … S2-8).

use std::collections::BTreeMap;

use crate::estimate::{CurvePoint, curve_on_lines};
use crate::measure::{Measurement, Measurements, ProfileTest};
use crate::sizes::Sizes;
use crate::stopped::StoppedBecause;
use crate::strategy::{NextTest, Strategy};

/// Sizes are drawn from each interval, every test is done with each, and a line through them gives the others. With
/// several repetitions, each round covers all sizes, so that a stopped profile contains all of them.
#[derive(Clone, Debug)]
pub struct Serra {
    sizes: Sizes,
    tests: Vec<ProfileTest>,
    drawn: Vec<u64>,
    /// Tests in all.
    total: usize,
    /// Tests asked for so far, or skipped.
    asked: usize,
    /// Tests of earlier sessions that were not skipped yet.
    held: BTreeMap<(ProfileTest, u64), usize>,
}

impl Serra {
    /// `points` drawn sizes (2 or more) of each interval, each test `repeat` times (1 or more).
    pub fn new(
        sizes: Sizes,
        tests: Vec<ProfileTest>,
        points: u32,
        repeat: u32,
        seed: u64,
    ) -> Serra {
        let drawn = sizes.draw(points, seed);
        let total = drawn.len() * tests.len() * repeat as usize;
        Serra { sizes, tests, drawn, total, asked: 0, held: BTreeMap::new() }
    }

    /// The sizes that are measured, in bytes, ascending.
    pub fn drawn(&self) -> &[u64] {
        &self.drawn
    }

    fn at(&self, at: usize) -> (ProfileTest, u64) {
        // All sizes come before the second repetition. A profile that is stopped early then has
        // at least one value of most sizes.
        (self.tests[at % self.tests.len()], self.drawn[at / self.tests.len() % self.drawn.len()])
    }

    /// Leaves out what earlier sessions measured.
    fn skip(&mut self) {
        while self.asked < self.total {
            // A held measurement stands for the earliest test of its cell that is left. The
            // number of repetitions is then right, whichever of them gave no measurement.
            let cell = self.at(self.asked);
            match self.held.get_mut(&cell) {
                Some(held) if *held > 0 => *held -= 1,
                _ => return,
            }
            self.asked += 1;
        }
    }
}

impl Strategy for Serra {
    fn next(&mut self, _: &Measurements) -> NextTest {
        if self.asked >= self.total {
            return NextTest::Done(StoppedBecause::Done);
        }
        let (test, size_bytes) = self.at(self.asked);
        self.asked += 1;
        self.skip();
        NextTest::Measure { test, size_bytes, slice: None }
    }

    fn resume(&mut self, sessions: &[&[Measurement]]) {
        let repeat = self.total.checked_div(self.drawn.len() * self.tests.len()).unwrap_or(0);
        for one in sessions.iter().copied().flatten() {
            if self.drawn.contains(&one.size_bytes) && self.tests.contains(&one.test) {
                let held = self.held.entry((one.test, one.size_bytes)).or_default();
                // `repeat` may be smaller now than in the earlier session. Surplus measurements
                // stay in the means, but they skip no more tests than there are.
                *held = repeat.min(*held + 1);
            }
        }
        self.skip();
    }

    fn tests_left(&self, _: &Measurements) -> u64 {
        // Held measurements may lie anywhere among the remaining tests. The loop follows `next`
        // until no measurement is held; the rest is a difference.
        let (mut ahead, mut left) = (self.clone(), 0);
        while ahead.asked < ahead.total && ahead.held.values().any(|held| *held > 0) {
            ahead.asked += 1;
            ahead.skip();
            left += 1;
        }
        left + (ahead.total - ahead.asked) as u64
    }

    fn shares_time(&self) -> bool {
        true
    }

    fn curve(&self, test: ProfileTest, so_far: &Measurements) -> Vec<CurvePoint> {
        curve_on_lines(test, &self.sizes, so_far)
    }

    fn notes(&self, _: &Measurements) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::default_sizes;

    #[test]
    fn every_test_is_done_with_every_drawn_size_as_often_as_asked() {
        let sizes = Sizes::new(&default_sizes());
        let mut serra = Serra::new(sizes, ProfileTest::ALL.to_vec(), 3, 2, 1);
        let none = Measurements::default();
        assert_eq!(serra.drawn().len(), 5);
        assert_eq!(serra.tests_left(&none), 40);
        let mut asked = Vec::new();
        while let NextTest::Measure { test, size_bytes, .. } = serra.next(&none) {
            asked.push((size_bytes, test));
        }
        assert_eq!(serra.next(&none), NextTest::Done(StoppedBecause::Done));
        assert_eq!(asked.len(), 40);
        assert_eq!(asked[..20], asked[20..]);
        let mut distinct = asked[..20].to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 20);
    }
}
