//! The interface between the loop of a profile and [`Adaptive`].

use std::collections::BTreeMap;

use crate::apart::Apart;
use crate::estimate::CurvePoint;
use crate::findings::{Breakpoint, Findings, LackOfFit};
use crate::length;
use crate::measure::{Measurement, Measurements, ProfileTest};
use crate::model::{Break, Prediction, f_tail};
use crate::stopped::StoppedBecause;
use crate::strategy::{NextTest, Strategy};
use crate::verdict::verdict;

use super::{Adaptive, Learned};

impl Strategy for Adaptive {
    fn next(&mut self, so_far: &Measurements) -> NextTest {
        if let Some(((test, size_bytes), slice)) = self.filling.next(so_far) {
            self.total += 1;
            *self.asked.entry((test, size_bytes)).or_default() += 1;
            return NextTest::Measure { test, size_bytes, slice: Some(slice) };
        }
        self.repeat_short(so_far);
        self.look_at_history(so_far);
        if self.queue.is_empty()
            && let Some(because) = self.refill(so_far)
        {
            return NextTest::Done(because);
        }
        let Some((test, size_bytes)) = self.queue.pop_front() else {
            return NextTest::Done(StoppedBecause::NoiseFloor);
        };
        self.total += 1;
        let cell = (test, size_bytes);
        *self.asked.entry(cell).or_default() += 1;
        let known = so_far.times(test, size_bytes).last().copied();
        let mut slice = self.slice(cell, known.or_else(|| length::guess(cell, so_far)));
        // The length is fixed with the second slice of a cell. Slices of different lengths have
        // different spreads, and one variance could not describe them.
        if known.is_some() {
            slice.requests = *self.requests.entry(cell).or_insert(slice.requests);
        }
        NextTest::Measure { test, size_bytes, slice: Some(slice) }
    }

    fn resume(&mut self, sessions: &[&[Measurement]]) {
        self.take_over(sessions);
    }

    fn tests_left(&self, _: &Measurements) -> u64 {
        self.queue.len().max(1) as u64
    }

    fn shares_time(&self) -> bool {
        false
    }

    fn curve(&self, test: ProfileTest, so_far: &Measurements) -> Vec<CurvePoint> {
        let mut learned = self.learn(test.op(), so_far).into_iter();
        let own = learned.find(|(of, _)| *of == test).and_then(|(_, learned)| learned);
        let Some(Learned { predictions, .. }) = own else { return Vec::new() };
        // Only slices that are in the curve make a size a measured one. Slices of a drive whose
        // writes are measured in long tests do not count, and neither do slices in a burst.
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        for one in self.slices(test, so_far) {
            *counts.entry(one.size).or_default() += 1;
        }
        let point = |(size, p): (&u64, &Prediction)| {
            let half = p.time * p.half_width();
            CurvePoint {
                size_bytes: *size,
                access_time_ns: p.time,
                low: Some((p.time - half).max(0.0)),
                high: Some(p.time + half),
                measured: counts.contains_key(size),
                repetitions: counts.get(size).copied().unwrap_or(0),
            }
        };
        predictions.iter().map(point).collect()
    }

    fn noise_floor(&self, so_far: &Measurements) -> Option<f64> {
        let mut used = Measurements::default();
        so_far.all().iter().filter(|one| self.is_used(one)).for_each(|one| used.add(*one));
        used.noise_floor()
    }

    fn notes(&self, so_far: &Measurements) -> Vec<String> {
        let findings = self.findings(so_far);
        let long = self.long_writes.then(|| {
            "two slices of the same writes differ: writes depend on what was written before. They were measured in long tests, alternately sequential and random; slices of these tests do not count"
                .to_owned()
        });
        let poor = findings.lack_of_fit.iter().filter(|(_, fit)| fit.p_value < 0.01);
        let poor = poor.map(|(test, fit)| {
            format!(
                "the curve of {test} does not fit all sizes: beyond noise, sizes deviate from it \
                 by {} %; the intervals include this deviation",
                ssdyno_figures::significant(fit.relative * 100.0, 2)
            )
        });
        long.into_iter().chain(poor).collect()
    }

    fn findings(&self, so_far: &Measurements) -> Findings {
        let mut findings = Findings::default();
        let mut trends = Vec::new();
        for (test, learned) in self.ops.iter().flat_map(|op| self.learn(*op, so_far)) {
            let Some(Learned { model: Apart { model, .. }, trend, .. }) = learned else { continue };
            trends.push((test, trend));
            let refused = self.refused.get(&test).into_iter().flatten();
            let point = |one: &Break, held_out_agrees| Breakpoint {
                size_bytes: one.before,
                held_out_agrees,
            };
            let kept = model.breaks.iter().map(|one| point(one, true));
            let mut all: Vec<Breakpoint> =
                kept.chain(refused.map(|one| point(one, false))).collect();
            all.sort_by_key(|one| one.size_bytes);
            findings.breakpoints.insert(test, all);
            findings.lack_of_fit.insert(
                test,
                LackOfFit {
                    relative: model.unexplained.sqrt(),
                    p_value: f_tail(model.excess, model.spare as f64, model.freedom),
                },
            );
        }
        findings.verdict = verdict(&trends, self.filling.largest());
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::ProfileOp;
    use crate::sizes::Sizes;

    fn one(test: ProfileTest, size_bytes: u64, seconds: f64) -> Measurement {
        let requests = 100;
        Measurement { test, size_bytes, requests, seconds, whole: false, lead: 0, burst: None }
    }

    /// Two slices of each size, of which the second takes five times as long, and then long tests of five sizes. A slice
    /// takes 0.1 s to 0.5 s and a long test 12 s: the long tests alone count.
    #[test]
    fn slices_that_do_not_count_measure_nothing() {
        let sizes = Sizes::new(&["64KiB..1MiB/64KiB".parse().unwrap()]);
        let (ops, tests) = (vec![ProfileOp::Write], ProfileTest::of(&[ProfileOp::Write]));
        let mut adaptive = Adaptive::new(sizes.clone(), tests.clone(), ops, 0.05, 1 << 30, 1);
        let mut all = Measurements::default();
        for (test, size) in
            tests.iter().flat_map(|test| sizes.distinct().iter().map(|size| (*test, *size)))
        {
            all.add(one(test, size, 0.1));
            all.add(one(test, size, 0.5));
        }
        assert!(adaptive.noise_floor(&all).unwrap() > 0.9);
        adaptive.long_writes = true;
        assert_eq!(adaptive.noise_floor(&all), None);
        let long = [1, 4, 8, 12, 16].map(|at| at * (64 << 10));
        for (at, size) in long.into_iter().enumerate() {
            for test in &tests {
                let seconds = 12.0 + 0.1 * at as f64;
                all.add(one(*test, size, seconds));
                all.add(one(*test, size, seconds * 1.01));
            }
        }
        for test in tests {
            let curve = adaptive.curve(test, &all);
            assert_eq!(curve.len(), 16);
            for point in curve {
                let expected = if long.contains(&point.size_bytes) { 2 } else { 0 };
                assert_eq!(
                    (point.repetitions, point.measured),
                    (expected, expected > 0),
                    "{point:?}"
                );
            }
        }
        // The standard deviation of 1 and 1.01 divided by their mean.
        let noise = adaptive.noise_floor(&all).unwrap();
        assert!((noise - 0.005 * 2.0_f64.sqrt() / 1.005).abs() < 1e-9, "{noise}");
    }
}
