//! Adaptive profile: short slices where they narrow a ratio most (S2-37).

use std::collections::{BTreeMap, VecDeque};

use ssdyno_engine::Rng;

use crate::estimate::CurvePoint;
use crate::findings::{Breakpoint, Findings, LackOfFit};
use crate::measure::{Measurements, ProfileOp, ProfileTest};
use crate::model::{Break, Model, Prediction, f_tail, means};
use crate::result::StoppedBecause;
use crate::sizes::Sizes;
use crate::strategy::{NextTest, Strategy};
use crate::verdict::{Trend, verdict};

/// Requests of the first slice, and bounds of the others: fewer are mostly the way to the first record, more
/// hide drift.
const REQUESTS_FIRST: u64 = 64;
const REQUESTS_MIN: u64 = 16;
const REQUESTS_MAX: u64 = 256;

/// Device time that a slice aims at.
const SLICE_SECONDS: f64 = 0.1;

/// Slices of each size of the first pass.
const FIRST_SLICES: usize = 2;

/// Slices of one test and size at most. Then noise or lack of fit, not effort, limits the interval.
const SLICES_MAX: usize = 60;

/// Cells chosen between two looks at the model. Their order is random.
const BATCH: usize = 6;

/// Slices between two measurements of a reference point.
const REFERENCE_EVERY: usize = 12;

/// A test and a request size.
type Cell = (ProfileTest, u64);

/// Measures slices of tests, models each access time as a line in pieces, and measures next what narrows the widest
/// ratio. Two slices of the same cell are never neighbours on purpose: order is random, so that drift spreads over
/// all cells.
#[derive(Clone, Debug)]
pub struct Adaptive {
    sizes: Sizes,
    tests: Vec<ProfileTest>,
    ops: Vec<ProfileOp>,
    error: f64,
    rng: Rng,
    queue: VecDeque<Cell>,
    begun: bool,
    asked: BTreeMap<Cell, usize>,
    total: usize,
    breaks: BTreeMap<ProfileTest, Vec<Break>>,
    refused: BTreeMap<ProfileTest, Vec<Break>>,
    trials: Vec<Trial>,
}

/// A breakpoint that fresh slices must confirm.
#[derive(Clone, Debug)]
struct Trial {
    test: ProfileTest,
    candidate: Break,
    with: Model,
    without: Model,
    /// Measurements when it began: later ones are held out of both models.
    since: usize,
}

impl Adaptive {
    /// `error` is half the width of the 90 % interval of a ratio divided by the ratio, above 0 and below 1.
    pub fn new(
        sizes: Sizes,
        tests: Vec<ProfileTest>,
        ops: Vec<ProfileOp>,
        error: f64,
        seed: u64,
    ) -> Adaptive {
        Adaptive {
            sizes,
            tests,
            ops,
            error,
            rng: Rng::new(seed, "profile adaptive"),
            queue: VecDeque::new(),
            begun: false,
            asked: BTreeMap::new(),
            total: 0,
            breaks: BTreeMap::new(),
            refused: BTreeMap::new(),
            trials: Vec::new(),
        }
    }

    /// The sizes of the first pass: both ends of every interval, and sizes that double between.
    fn first_sizes(&self) -> Vec<u64> {
        let all = self.sizes.distinct();
        let mut first: Vec<u64> = Vec::new();
        for interval in self.sizes.intervals() {
            let sizes = interval.sizes();
            first.extend([sizes[0], sizes[sizes.len() - 1]]);
        }
        let mut wanted = all[0];
        for size in all {
            if *size >= wanted {
                first.push(*size);
                wanted = size.saturating_mul(2);
            }
        }
        // A short range still needs enough sizes to see how well a line fits.
        first.extend((0..6).map(|at| all[at * (all.len() - 1) / 5]));
        first.sort_unstable();
        first.dedup();
        first
    }

    fn shuffle(&mut self, cells: &mut [Cell]) {
        for at in (1..cells.len()).rev() {
            cells.swap(at, self.rng.below(at as u64 + 1) as usize);
        }
    }

    /// The point that is measured again and again to see drift.
    fn reference(&self, test: ProfileTest) -> Cell {
        let first = self.first_sizes();
        (test, first[first.len() / 2])
    }

    fn model(&self, test: ProfileTest, so_far: &Measurements) -> Option<Model> {
        let sizes = self.sizes.distinct().iter();
        let (points, freedom) = means(sizes.map(|size| (*size, so_far.times(test, *size))));
        let breaks = self.breaks.get(&test).map_or(&[][..], Vec::as_slice);
        Model::narrowed(&points, freedom, breaks)
    }

    /// Drift of the test's reference point.
    fn trend(&self, test: ProfileTest, so_far: &Measurements) -> Trend {
        let (_, size) = self.reference(test);
        let mut clock = 0.0;
        let mut series = Vec::new();
        for one in so_far.all() {
            clock += one.seconds;
            if (one.test, one.size_bytes) == (test, size) {
                series.push((clock, one.access_time_ns()));
            }
        }
        Trend::of(&series)
    }

    /// What is known about every size of `test`.
    fn predictions(&self, test: ProfileTest, so_far: &Measurements) -> BTreeMap<u64, Prediction> {
        let Some(model) = self.model(test, so_far) else { return BTreeMap::new() };
        let drift = self.trend(test, so_far).variance();
        let of = |size: &u64| {
            let known = model.predict(*size)?;
            Some((*size, Prediction { variance: known.variance + drift, ..known }))
        };
        self.sizes.distinct().iter().filter_map(of).collect()
    }

    /// Judges trials whose slices are there, and begins new ones.
    fn look_for_breaks(&mut self, so_far: &Measurements) -> Vec<Cell> {
        for trial in std::mem::take(&mut self.trials) {
            let fresh = so_far.all()[trial.since..].iter().filter(|one| one.test == trial.test);
            let fresh: Vec<(u64, f64)> =
                fresh.map(|one| (one.size_bytes, one.access_time_ns())).collect();
            let agrees =
                !fresh.is_empty() && trial.with.distance(&fresh) < trial.without.distance(&fresh);
            let list = if agrees { &mut self.breaks } else { &mut self.refused };
            list.entry(trial.test).or_default().push(trial.candidate);
        }
        let mut cells = Vec::new();
        for test in self.tests.clone() {
            let Some(without) = self.model(test, so_far) else { continue };
            let refused = self.refused.get(&test).map_or(&[][..], Vec::as_slice);
            let Some((candidate, with)) = without.better(refused) else { continue };
            let differ = |size: &u64| {
                let [a, b] = [&with, &without].map(|model| model.line(*size));
                (a / b - 1.0).abs()
            };
            let sides: [&dyn Fn(&u64) -> bool; 2] =
                [&|size| *size <= candidate.after, &|size| *size >= candidate.before];
            for side in sides {
                let mut sizes: Vec<u64> =
                    self.sizes.distinct().iter().copied().filter(|size| side(size)).collect();
                sizes.sort_by(|a, b| differ(b).total_cmp(&differ(a)));
                cells.extend(sizes.iter().take(3).map(|size| (test, *size)));
            }
            let since = so_far.all().len();
            self.trials.push(Trial { test, candidate, with, without, since });
        }
        cells
    }

    /// The cells that narrow the widest ratios most; empty where every ratio is within the error. The second value
    /// is whether some ratio is not, and more slices would not help.
    fn narrow(&self, so_far: &Measurements) -> (Vec<Cell>, bool) {
        let mut wide: Vec<(f64, Cell)> = Vec::new();
        let mut floor = false;
        for op in &self.ops {
            let (first, second) = ProfileTest::pair(*op);
            let both = [first, second].map(|test| (test, self.predictions(test, so_far)));
            for size in self.sizes.distinct() {
                let known = both.each_ref().map(|(test, all)| (*test, all.get(size)));
                let halves = known.map(|(_, p)| p.map_or(f64::INFINITY, Prediction::half_width));
                let half = halves[0].hypot(halves[1]);
                if half <= self.error {
                    continue;
                }
                let gain = |(test, p): &(ProfileTest, Option<&Prediction>)| {
                    let slices = self.asked.get(&(*test, *size)).copied().unwrap_or(0);
                    let Some(p) = p else { return f64::INFINITY };
                    let seconds = p.time * 1e-9 * slice(Some(p.time), *size) as f64;
                    p.variance / (slices as f64 + 1.0) / seconds
                };
                let open = known.iter().filter(|(test, _)| {
                    self.asked.get(&(*test, *size)).is_none_or(|asked| *asked < SLICES_MAX)
                });
                match open.max_by(|a, b| gain(a).total_cmp(&gain(b))) {
                    Some((test, _)) => wide.push((half, (*test, *size))),
                    None => floor = true,
                }
            }
        }
        wide.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut cells: Vec<Cell> = Vec::new();
        for (_, (test, size)) in wide {
            // Neighbours on the curve are served by the same slices.
            let gap = |size: u64| {
                let measured = self.asked.keys().filter(|cell| cell.0 == test && cell.1 <= size);
                measured.count()
            };
            let taken = cells.iter().any(|cell| cell.0 == test && gap(cell.1) == gap(size));
            if !taken {
                cells.push((test, size));
            }
            if cells.len() == BATCH {
                break;
            }
        }
        (cells, floor)
    }

    /// The next cells; why there are none.
    fn refill(&mut self, so_far: &Measurements) -> Option<StoppedBecause> {
        let mut cells = Vec::new();
        if !self.begun {
            self.begun = true;
            let first = self.first_sizes();
            for _ in 0..FIRST_SLICES {
                let pass = self.tests.iter().flat_map(|test| first.iter().map(|s| (*test, *s)));
                let mut pass: Vec<Cell> = pass.collect();
                self.shuffle(&mut pass);
                cells.extend(pass);
            }
        } else {
            let mut trial = self.look_for_breaks(so_far);
            if trial.is_empty() {
                let (narrow, floor) = self.narrow(so_far);
                if narrow.is_empty() {
                    let done = StoppedBecause::WithinError;
                    return Some(if floor { StoppedBecause::NoiseFloor } else { done });
                }
                trial = narrow;
            }
            self.shuffle(&mut trial);
            cells = trial;
        }
        let mut queue = VecDeque::new();
        for (at, cell) in cells.into_iter().enumerate() {
            if (self.total + at).is_multiple_of(REFERENCE_EVERY) {
                queue.extend(self.tests.iter().map(|test| self.reference(*test)));
            }
            queue.push_back(cell);
        }
        self.queue = queue;
        None
    }
}

/// Requests of a slice of a test whose access time is `time` nanoseconds.
fn slice(time: Option<f64>, size: u64) -> u64 {
    let requests = match time {
        Some(time) => (SLICE_SECONDS * 1e9 / time) as u64,
        None => REQUESTS_FIRST.min((64 << 20) / size),
    };
    requests.clamp(REQUESTS_MIN, REQUESTS_MAX)
}

impl Strategy for Adaptive {
    fn next(&mut self, so_far: &Measurements) -> NextTest {
        if self.queue.is_empty()
            && let Some(because) = self.refill(so_far)
        {
            return NextTest::Done(because);
        }
        let Some((test, size_bytes)) = self.queue.pop_front() else {
            return NextTest::Done(StoppedBecause::NoiseFloor);
        };
        self.total += 1;
        *self.asked.entry((test, size_bytes)).or_default() += 1;
        // All slices of a cell have as many requests as its first one: their spread is that of equals.
        let known = so_far.times(test, size_bytes).first().copied();
        NextTest::Measure { test, size_bytes, requests: Some(slice(known, size_bytes)) }
    }

    fn tests_left(&self, _: &Measurements) -> u64 {
        self.queue.len().max(1) as u64
    }

    fn shares_time(&self) -> bool {
        false
    }

    fn curve(&self, test: ProfileTest, so_far: &Measurements) -> Vec<CurvePoint> {
        let predictions = self.predictions(test, so_far);
        let point = |(size, p): (&u64, &Prediction)| {
            let half = p.time * p.half_width();
            CurvePoint {
                size_bytes: *size,
                access_time_ns: p.time,
                low: Some((p.time - half).max(0.0)),
                high: Some(p.time + half),
                measured: !so_far.times(test, *size).is_empty(),
                repetitions: so_far.times(test, *size).len() as u32,
            }
        };
        predictions.iter().map(point).collect()
    }

    fn notes(&self, so_far: &Measurements) -> Vec<String> {
        let findings = self.findings(so_far);
        let poor = findings.lack_of_fit.iter().filter(|(_, fit)| fit.p_value < 0.01);
        poor.map(|(test, fit)| {
            format!(
                "the curve of {test} does not describe all sizes: beyond noise they lie {} % from it; the \
                 intervals include that",
                ssdyno_result::significant(fit.relative * 100.0, 2)
            )
        })
        .collect()
    }

    fn findings(&self, so_far: &Measurements) -> Findings {
        let mut findings = Findings::default();
        let trends = self.tests.iter().map(|test| (*test, self.trend(*test, so_far)));
        findings.verdict = verdict(&trends.collect::<Vec<_>>());
        for test in &self.tests {
            let Some(model) = self.model(*test, so_far) else { continue };
            let refused = self.refused.get(test).into_iter().flatten();
            let point = |one: &Break, held_out_agrees| Breakpoint {
                size_bytes: one.before,
                held_out_agrees,
            };
            let kept = model.breaks.iter().map(|one| point(one, true));
            let mut all: Vec<Breakpoint> =
                kept.chain(refused.map(|one| point(one, false))).collect();
            all.sort_by_key(|one| one.size_bytes);
            findings.breakpoints.insert(*test, all);
            findings.lack_of_fit.insert(
                *test,
                LackOfFit {
                    relative: model.unexplained.sqrt(),
                    p_value: f_tail(model.excess, model.spare as f64, model.freedom),
                },
            );
        }
        findings
    }
}
