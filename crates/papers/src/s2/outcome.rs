//! The tables of the paper, filled from the simulated devices.

use std::collections::BTreeMap;

use ssdyno_profile::{ProfileOp, ProfileTest, default_sizes};

use super::campaign::{FullProfile, Profiled, Times, mean_ratio};
use super::data::{CLASSES, Device, Plan};
use super::ours::Beside;

/// A device with everything that is asked about it.
pub(super) struct DeviceOutcome {
    pub(super) device: Device,
    pub(super) full: FullProfile,
    /// Seconds of SeRRa over all spans, by repetitions; mean over the seeds.
    pub(super) serra_seconds: BTreeMap<u32, f64>,
    /// Relative errors of curves with one repetition: by points, test; each of an interval, span and seed.
    pub(super) curve_errors: BTreeMap<(u32, ProfileTest), Vec<f64>>,
    /// Relative errors of mean ratios, signed: by repetitions, operation; each of a span and seed.
    pub(super) ratio_errors: BTreeMap<(u32, ProfileOp), Vec<f64>>,
    /// Mean ratios of the largest span: of the complete profile, and of SeRRa with most repetitions.
    pub(super) ratios: BTreeMap<ProfileOp, (f64, f64)>,
    /// Time of all sizes by that of the measured ones (S2-30).
    pub(super) fewer_sizes: f64,
    /// SeRRa with one repetition and our profile; `None` where the latter was not run.
    pub(super) beside: Option<Beside>,
}

/// All nine.
pub(super) struct Outcome {
    pub(super) devices: Vec<DeviceOutcome>,
    pub(super) points: Vec<u32>,
    pub(super) repetitions: Vec<u32>,
}

const OPS: [ProfileOp; 2] = [ProfileOp::Write, ProfileOp::Read];

impl Outcome {
    pub(super) fn new(plan: &Plan, profiled: &[Profiled]) -> Outcome {
        let devices = profiled.iter().map(|device| DeviceOutcome::new(plan, device)).collect();
        let (points, repetitions) = (plan.points.clone(), plan.repetitions.clone());
        Outcome { devices, points, repetitions }
    }

    fn of<'a>(&'a self, class: &'a str) -> impl Iterator<Item = &'a DeviceOutcome> {
        self.devices.iter().filter(move |device| device.device.is(class))
    }

    /// Table 3: the median error of a curve in percent, over all numbers of points.
    pub(super) fn curve_error(&self, class: &str, test: ProfileTest) -> Option<f64> {
        let errors = self.of(class).flat_map(|device| &device.curve_errors);
        let chosen = errors.filter(|((_, of), _)| *of == test).flat_map(|(_, errors)| errors);
        median(chosen.copied()).map(|error| error * 100.0)
    }

    /// The same with one number of points, over all tests.
    pub(super) fn error_with(&self, points: u32) -> Option<f64> {
        let errors = self.of("all").flat_map(|device| &device.curve_errors);
        let chosen = errors.filter(|((of, _), _)| *of == points).flat_map(|(_, errors)| errors);
        median(chosen.copied()).map(|error| error * 100.0)
    }

    /// Every absolute error of a ratio.
    pub(super) fn ratio_errors(&self, class: &str, repeat: u32, op: ProfileOp) -> Vec<f64> {
        let errors = self.of(class).filter_map(|device| device.ratio_errors.get(&(repeat, op)));
        errors.flatten().map(|error| error.abs()).collect()
    }

    /// Table 4: the median error of a ratio in percent.
    pub(super) fn ratio_error(&self, class: &str, repeat: u32, op: ProfileOp) -> Option<f64> {
        median(self.ratio_errors(class, repeat, op).into_iter()).map(|error| error * 100.0)
    }

    /// The share of errors of at most 20 %, of all repetitions.
    pub(super) fn within_20_percent(&self, op: ProfileOp) -> Option<f64> {
        let all = self.repetitions.iter().flat_map(|n| self.ratio_errors("all", *n, op));
        share(all, |error| error <= 0.2)
    }

    /// The share of curve errors of at most 20 % (S2-23).
    pub(super) fn curves_within_20_percent(&self, test: ProfileTest) -> Option<f64> {
        let errors = self.of("all").flat_map(|device| &device.curve_errors);
        let chosen = errors.filter(|((_, of), _)| *of == test).flat_map(|(_, errors)| errors);
        share(chosen.copied(), |error| error <= 0.2)
    }

    /// Mean repetitions of the complete profile.
    pub(super) fn repetitions(&self, class: &str) -> Option<f64> {
        let all: Vec<f64> = self.of(class).map(|device| device.full.repetitions).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// How many times longer the complete profiles of a class take than SeRRa with `repeat`.
    pub(super) fn factor(&self, class: &str, repeat: u32) -> Option<f64> {
        // Table 5 divides sums and not means of quotients (S2-28): 1/168 is the ratio of all hours.
        // A mean of quotients would weigh a fast SSD like a slow disk.
        let full: f64 = self.of(class).map(|device| device.full.total_seconds).sum();
        let serra: f64 = self.of(class).filter_map(|d| d.serra_seconds.get(&repeat)).sum();
        (serra > 0.0).then(|| full / serra)
    }

    /// SeRRa and our profile over all devices; `None` where ours was not run.
    pub(super) fn beside(&self) -> Option<Beside> {
        let mut all = Beside::default();
        for device in &self.devices {
            all.merge(device.beside.as_ref()?);
        }
        (!self.devices.is_empty()).then_some(all)
    }

    /// The classes that have devices here.
    pub(super) fn classes(&self) -> impl Iterator<Item = &'static str> {
        CLASSES.into_iter().filter(|class| self.of(class).next().is_some())
    }
}

impl DeviceOutcome {
    fn new(plan: &Plan, profiled: &Profiled) -> DeviceOutcome {
        // Seed 0 is the complete profile and the others are SeRRa's. With a common seed, both would
        // meet the same slowness, and the errors could be too small.
        let full = profiled.full(plan, 0);
        let mut outcome = DeviceOutcome {
            device: profiled.device.clone(),
            serra_seconds: BTreeMap::new(),
            curve_errors: BTreeMap::new(),
            ratio_errors: BTreeMap::new(),
            ratios: BTreeMap::new(),
            fewer_sizes: {
                let (extremes, all) = profiled.seconds_of_extremes();
                all / extremes
            },
            full,
            beside: None,
        };
        for seed in 1..=plan.seeds {
            for index in 0..profiled.spans.len() {
                outcome.points(plan, profiled, index, seed);
                outcome.repeated(plan, profiled, index, seed);
            }
        }
        outcome.serra_seconds.values_mut().for_each(|seconds| *seconds /= plan.seeds as f64);
        outcome.beside(plan, profiled);
        outcome
    }

    /// Our profile and SeRRa with one repetition, with the same seeds.
    fn beside(&mut self, plan: &Plan, profiled: &Profiled) {
        if profiled.spans.iter().any(|span| span.ours.is_empty()) {
            return;
        }
        let mut beside = Beside::default();
        for (index, span) in profiled.spans.iter().enumerate() {
            let (truth, steady) = (&self.full.means[index], span.steady());
            for profile in &span.ours {
                for op in OPS {
                    beside.ours.add_profile(profile, truth, op);
                    beside.steady.add_profile(profile, &steady, op);
                }
                beside.our_seconds += profile.seconds / span.ours.len() as f64;
            }
            for seed in 1..=plan.seeds {
                let (curves, seconds) = profiled.serra(index, 2, 1, seed);
                for op in OPS {
                    beside.serra.add_times(&curves, truth, op);
                }
                beside.serra_seconds += seconds / plan.seeds as f64;
            }
        }
        self.beside = Some(beside);
    }

    /// Figure 2: one repetition, more and more points.
    fn points(&mut self, plan: &Plan, profiled: &Profiled, index: usize, seed: u64) {
        for points in &plan.points {
            let (curves, _) = profiled.serra(index, *points, 1, seed);
            for interval in default_sizes() {
                for test in ProfileTest::ALL {
                    let errors = interval.sizes().into_iter().filter_map(|size| {
                        let truth = self.full.means[index].get(&(test, size))?;
                        Some((curves.get(&(test, size))? / truth - 1.0).abs())
                    });
                    // S2-11: the error of a curve is the median over the sizes of an interval. A
                    // mean would be decided by a few outlying sizes.
                    if let Some(error) = median(errors) {
                        self.curve_errors.entry((*points, test)).or_default().push(error);
                    }
                }
            }
        }
    }

    /// Figure 3 and tables 4 to 6: two points, more and more repetitions.
    fn repeated(&mut self, plan: &Plan, profiled: &Profiled, index: usize, seed: u64) {
        let largest = index + 1 == profiled.spans.len();
        for repeat in &plan.repetitions {
            // S2-12: the ratio experiment uses 2 points and 1 to 4 repetitions. S2-24 says that
            // more points do not help.
            let (curves, seconds) = profiled.serra(index, 2, *repeat, seed);
            *self.serra_seconds.entry(*repeat).or_default() += seconds;
            for op in OPS {
                let truth = mean_ratio(&self.full.means[index], op);
                let (Some(truth), Some(ours)) = (truth, mean_ratio(&curves, op)) else { continue };
                self.ratio_errors.entry((*repeat, op)).or_default().push(ours / truth - 1.0);
                // Table 6 prints one ratio per device, of its largest file. A mean over seeds would
                // hide the error of a single profile, which the table is about.
                if largest && seed == 1 {
                    self.ratios.insert(op, (truth, ours));
                }
            }
        }
    }

    /// Access times of the complete profile with the largest span: figure 1.
    pub(super) fn largest(&self) -> Option<&Times> {
        self.full.means.last()
    }
}

/// The middle one, or the mean of the two in the middle.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    percentile(values, 0.5)
}

/// The value below which `share` of the values lie, between two of them in proportion.
pub(super) fn percentile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    // Linear interpolation between order statistics, the default of R and NumPy. For an even number
    // it gives the mean of the two middle values.
    let place = share * values.len().checked_sub(1)? as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    Some(values[low] + (values[high] - values[low]) * (place - low as f64))
}

fn share(values: impl IntoIterator<Item = f64>, holds: impl Fn(f64) -> bool) -> Option<f64> {
    let (mut all, mut held) = (0_u64, 0_u64);
    for value in values {
        all += 1;
        held += u64::from(holds(value));
    }
    (all > 0).then(|| held as f64 / all as f64)
}
