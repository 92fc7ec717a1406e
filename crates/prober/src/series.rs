//! Samples of any length of time in a bounded number of points.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figures::{Figures, Joining};
use crate::sample::SystemSample;

/// One sample, or several successive samples.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SystemPoint {
    /// Number of samples in the point; at least 1.
    pub samples: u64,
    /// Means of the figures, each weighted by the time over which it is known (`covered_ns`). `sequence` and the end
    /// times are of the last sample, `interval_ns` is the sum.
    pub mean: SystemSample,
    /// The greatest value of each figure in any of the samples; `null` for a single sample, which is in `mean`.
    pub max: Option<Box<SystemSample>>,
}

impl SystemPoint {
    fn of(sample: SystemSample) -> SystemPoint {
        SystemPoint { samples: 1, mean: sample, max: None }
    }

    /// The greatest value of each figure.
    pub fn max(&self) -> &SystemSample {
        self.max.as_deref().unwrap_or(&self.mean)
    }

    /// Both as one; `later` follows `self`.
    pub fn join(&self, later: &SystemPoint) -> SystemPoint {
        SystemPoint {
            samples: self.samples.saturating_add(later.samples),
            mean: Joining::Mean.samples(&self.mean, &later.mean),
            // The maximum of means would lose the peaks. Each joined point therefore keeps the
            // maximum over all of its samples beside the mean.
            max: Some(Box::new(Joining::Maximum.samples(self.max(), later.max()))),
        }
    }
}

/// The state of a machine over time.
///
/// The number of points is limited. When the limit is reached, neighbours are joined pairwise, and from then on a point
/// has twice as many samples. Joined points keep the integrals and the maxima of all figures, exact except for
/// rounding. A point keeps at most 512 names of each kind (interfaces, disks ...), the latest first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SystemSeries {
    /// Requested time between two samples, in ns.
    pub sampling_interval_ns: u64,
    /// Samples per point; a power of 2. The last point may have fewer.
    pub samples_per_point: u64,
    /// Start of the first sample on the monotonic clock, in ns.
    pub start_monotonic_ns: u64,
    /// Start of the first sample on the calendar clock, in ns since 1970 (UTC).
    pub start_unix_ns: u64,
    /// In order of time, without gaps.
    pub points: Vec<SystemPoint>,
    /// Number of samples.
    pub samples: u64,
    /// Samples that were left out because the machine was too busy to take them in time. The next sample covers their
    /// time.
    pub samples_missed: u64,
    /// CPU time of the prober per sample, mean, in ns; `null` if the system does not report it.
    pub own_cpu_ns_per_sample_mean: Option<f64>,
    /// Greatest CPU time of the prober for one sample, in ns.
    pub own_cpu_ns_per_sample_max: Option<u64>,
    /// Sources that could not be read: the last error of each file, with line and reason.
    pub errors: Vec<String>,
}

impl SystemSeries {
    /// Leaves out interfaces and block devices on which nothing happened in all points: a machine has dozens of them
    /// (loop devices, RAM disks), which take nine tenths of a series that is written down.
    pub fn drop_idle(&mut self) {
        fn drop_from<const N: usize, F: Figures<N>>(
            points: &mut [SystemPoint],
            of: fn(&mut SystemSample) -> &mut BTreeMap<String, F>,
        ) {
            let mut busy = BTreeSet::new();
            for point in &mut *points {
                // The means suffice for the test: figures are never negative, so a mean of
                // zero says that all samples were zero.
                let moved = of(&mut point.mean).iter();
                let moved = moved.filter(|(_, one)| one.values().iter().any(|value| *value != 0.0));
                busy.extend(moved.map(|(name, _)| name.clone()));
            }
            for point in points {
                for sample in std::iter::once(&mut point.mean).chain(point.max.as_deref_mut()) {
                    of(sample).retain(|name, _| busy.contains(name));
                }
            }
        }
        drop_from(&mut self.points, |sample| &mut sample.interfaces);
        drop_from(&mut self.points, |sample| &mut sample.disks);
        drop_from(&mut self.points, |sample| &mut sample.discards);
        drop_from(&mut self.points, |sample| &mut sample.flushes);
    }
}

/// Points that are kept, and the one that is not whole yet.
#[derive(Clone, Debug)]
pub(crate) struct PointStore {
    keep: usize,
    whole: Vec<SystemPoint>,
    pending: Option<SystemPoint>,
    per_point: u64,
}

impl PointStore {
    /// `keep` is the greatest number of points, at least 2.
    pub(crate) fn new(keep: usize) -> PointStore {
        PointStore { keep: keep.max(2), whole: Vec::new(), pending: None, per_point: 1 }
    }

    pub(crate) fn push(&mut self, sample: SystemSample) {
        let sample = SystemPoint::of(sample);
        let point = match self.pending.take() {
            Some(pending) => pending.join(&sample),
            None => sample,
        };
        if point.samples < self.per_point {
            self.pending = Some(point);
            return;
        }
        self.whole.push(point);
        // One place is kept for the point that is not yet whole. With it,
        // `points` never returns more than `keep`.
        if self.whole.len() >= self.keep {
            self.join_pairs();
        }
    }

    fn join_pairs(&mut self) {
        // Joining all pairs at once keeps every point equally long. Joining only the oldest
        // points would give an axis with two scales.
        self.per_point *= 2;
        let mut joined = Vec::with_capacity(self.keep);
        for pair in std::mem::take(&mut self.whole).chunks(2) {
            match pair {
                [earlier, later] => joined.push(earlier.join(later)),
                // The last one of an odd number has no partner. It becomes the beginning of the next
                // point, because its samples are half of one.
                rest => self.pending = rest.first().cloned(),
            }
        }
        self.whole = joined;
    }

    pub(crate) fn per_point(&self) -> u64 {
        self.per_point
    }

    /// All of them; at most `keep`.
    pub(crate) fn points(&self) -> Vec<SystemPoint> {
        self.whole.iter().chain(&self.pending).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::sample::{MemoryLevels, NetworkRates, SensorLevel};

    /// Samples that follow each other, with figures that are there or not.
    fn samples() -> impl Strategy<Value = Vec<SystemSample>> {
        let figures = (1u64..1 << 40, 0.0..1e12f64);
        let one = (
            1u64..1 << 40,
            prop::option::of(figures.clone()),
            prop::collection::btree_map(0u8..3, figures, 0..3),
        );
        prop::collection::vec(one, 1..200).prop_map(|all| {
            let mut monotonic_ns = 0;
            let sample =
                |(index, (interval_ns, memory, interfaces)): (usize, (u64, _, BTreeMap<u8, _>))| {
                    monotonic_ns += interval_ns;
                    let memory = Option::map(memory, |(covered_ns, free_bytes)| MemoryLevels {
                        covered_ns,
                        free_bytes,
                        ..MemoryLevels::default()
                    });
                    let rates = |(name, (covered_ns, rate)): (u8, (u64, f64))| {
                        let rates = NetworkRates {
                            covered_ns,
                            transmit_bytes_per_second: rate,
                            ..NetworkRates::default()
                        };
                        (name.to_string(), rates)
                    };
                    SystemSample {
                        sequence: index as u64 + 1,
                        monotonic_ns,
                        interval_ns,
                        memory,
                        interfaces: interfaces.into_iter().map(rates).collect(),
                        ..SystemSample::default()
                    }
                };
            all.into_iter().enumerate().map(sample).collect()
        })
    }

    /// Time that a figure covers, and its value.
    type Pick = dyn Fn(&SystemSample) -> Option<(u64, f64)>;

    /// Integral over time, time covered and maximum of a figure.
    fn totals<'a>(
        all: impl Iterator<Item = (&'a SystemSample, &'a SystemSample)>,
        pick: &Pick,
    ) -> (f64, u64, f64) {
        all.fold((0.0, 0, 0.0), |(sum, covered, max), (mean, maximum)| {
            let Some((ns, value)) = pick(mean) else { return (sum, covered, max) };
            let most = pick(maximum).map_or(max, |(_, value)| value.max(max));
            (sum + value * ns as f64, covered + ns, most)
        })
    }

    proptest! {
        #[test]
        fn joined_points_keep_integrals_and_maxima(samples in samples(), keep in 2usize..20) {
            let mut store = PointStore::new(keep);
            for sample in &samples {
                store.push(sample.clone());
                prop_assert!(store.points().len() <= keep);
            }
            let points = store.points();
            prop_assert!(points.len() >= keep / 2 || samples.len() <= keep);
            prop_assert_eq!(points.iter().map(|p| p.samples).sum::<u64>(), samples.len() as u64);
            for point in &points[..points.len() - 1] {
                prop_assert_eq!(point.samples, store.per_point());
            }
            let mut end = 0;
            for point in &points {
                prop_assert_eq!(point.mean.monotonic_ns - point.mean.interval_ns, end);
                end = point.mean.monotonic_ns;
            }
            let interface = |name: &'static str| move |sample: &SystemSample| {
                let rates = sample.interfaces.get(name)?;
                Some((rates.covered_ns, rates.transmit_bytes_per_second))
            };
            let memory = |sample: &SystemSample| sample.memory.map(|m| (m.covered_ns, m.free_bytes));
            let picks: [&Pick; 4] =
                [&memory, &interface("0"), &interface("1"), &interface("2")];
            for pick in picks {
                let (sum, covered, max) = totals(samples.iter().map(|s| (s, s)), pick);
                let (sum_of_points, covered_by_points, max_of_points) =
                    totals(points.iter().map(|p| (&p.mean, p.max())), pick);
                // Rounding of 8 joins at most, one after the other: far below 1e-12.
                prop_assert!((sum - sum_of_points).abs() <= 1e-12 * sum, "{sum} {sum_of_points}");
                prop_assert_eq!((covered, max), (covered_by_points, max_of_points));
            }
        }
    }

    #[test]
    fn names_that_come_and_go_do_not_pile_up() {
        let mut store = PointStore::new(2);
        for number in 0..5_000 {
            let zone = SensorLevel { covered_ns: 1, watts: 1.0 };
            let power = BTreeMap::from([(format!("zone {number}"), zone)]);
            store.push(SystemSample { sequence: number, power, ..SystemSample::default() });
        }
        let points = store.points();
        assert!(points.iter().all(|point| point.mean.power.len() <= crate::join::NAMES_MOST));
        assert!(points.last().unwrap().mean.power.contains_key("zone 4999"));
    }
}
