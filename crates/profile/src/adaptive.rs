//! Adaptive profile: short slices where they narrow a ratio most (S2-37).

mod resume;
mod strategy;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ssdyno_engine::Rng;

use crate::apart::Apart;
use crate::filling::Filling;
use crate::first::first_sizes;
use crate::history;
use crate::length;
use crate::measure::{Cell, Measurement, Measurements, ProfileOp, ProfileTest};
use crate::model::{BREAKS_MAX, Break, Model, Prediction, SLICE_DEVIATION_MIN, SizeMean, means};
use crate::sizes::Sizes;
use crate::stopped::StoppedBecause;
use crate::strategy::Slice;
use crate::verdict::{Level, Trend};

/// Pairs of long tests between two looks at the model.
const LONG_BATCH: usize = 2;

/// Slices of each size of the first pass.
const FIRST_SLICES: usize = 2;

/// Slices of one test and size at most. Then noise or lack of fit, not effort, limits the interval.
const SLICES_MAX: usize = 60;

/// Cells chosen between two looks at the model. Their order is random.
const BATCH: usize = 6;

/// Slices between two measurements of a reference point.
const REFERENCE_EVERY: usize = 12;

/// More slices by this factor must bring the intervals nearer to the error by this factor. Noise alone would give 0.71.
const MORE_SLICES: f64 = 2.0;
const NEARER: f64 = 0.9;

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
    first: Vec<u64>,
    queue: VecDeque<Cell>,
    begun: bool,
    asked: BTreeMap<Cell, usize>,
    /// Slices of earlier sessions that count, without those that looked for the end of a burst.
    held: BTreeMap<Cell, usize>,
    total: usize,
    breaks: BTreeMap<ProfileTest, Vec<Break>>,
    refused: BTreeMap<ProfileTest, Vec<Break>>,
    trials: Vec<Trial>,
    filling: Filling,
    /// Requests that count of a slice of each cell: the spread of slices is that of equals.
    requests: BTreeMap<Cell, u64>,
    nearest: Option<Nearest>,
    /// Writes depend on what was written before: they are measured in long tests.
    long_writes: bool,
}

/// When the intervals came nearer to the error for the last time.
#[derive(Clone, Copy, Debug)]
struct Nearest {
    slices: usize,
    breaks: usize,
    /// By how much the intervals are wider than the error, summed over ratios.
    excess: f64,
}

/// The slices of a test, and their drift.
struct Course {
    slices: Vec<Slow>,
    model: Apart,
    trend: Trend,
}

/// The conclusions from the measurements of a test.
struct Learned {
    model: Apart,
    predictions: BTreeMap<u64, Prediction>,
    trend: Trend,
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
    /// `error` is half the width of the 90 % interval of a ratio divided by the ratio, above 0 and below 1; `span` the
    /// bytes of a whole test.
    pub fn new(
        sizes: Sizes,
        tests: Vec<ProfileTest>,
        ops: Vec<ProfileOp>,
        error: f64,
        span: u64,
        seed: u64,
    ) -> Adaptive {
        let mut rng = Rng::new(seed, "profile adaptive");
        let first = first_sizes(&sizes, &mut rng);
        let filling = Filling::new(span, &tests, &first);
        Adaptive {
            sizes,
            tests,
            ops,
            error,
            rng,
            first,
            queue: VecDeque::new(),
            begun: false,
            asked: BTreeMap::new(),
            held: BTreeMap::new(),
            total: 0,
            breaks: BTreeMap::new(),
            refused: BTreeMap::new(),
            trials: Vec::new(),
            filling,
            requests: BTreeMap::new(),
            nearest: None,
            long_writes: false,
        }
    }

    fn shuffle(&mut self, cells: &mut [Cell]) {
        for at in (1..cells.len()).rev() {
            cells.swap(at, self.rng.below(at as u64 + 1) as usize);
        }
    }

    /// The point that is measured again and again to see drift.
    fn reference(&self, test: ProfileTest) -> Cell {
        (test, self.first[self.first.len() / 2])
    }

    /// Means of the sizes of `test`, the freedom of their noise, and the breaks that were kept.
    fn known(&self, test: ProfileTest, slices: &[Slow]) -> (Vec<SizeMean>, f64, &[Break]) {
        let mut times: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for one in slices {
            times.entry(one.size).or_default().push(one.time);
        }
        let (points, freedom) = means(times.iter().map(|(size, times)| (*size, &times[..])));
        (points, freedom, self.breaks.get(&test).map_or(&[][..], Vec::as_slice))
    }

    /// The curve of all sizes, in which a break is looked for.
    fn model(&self, test: ProfileTest, slices: &[Slow]) -> Option<Model> {
        let (points, freedom, breaks) = self.known(test, slices);
        Model::narrowed(&points, freedom, breaks)
    }

    fn curve_and_apart(&self, test: ProfileTest, slices: &[Slow]) -> Option<Apart> {
        let (points, freedom, breaks) = self.known(test, slices);
        Apart::fit(&points, freedom, breaks)
    }

    /// Whether a slice says how fast the test is.
    fn is_used(&self, one: &Measurement) -> bool {
        let asked = self.requests.get(&(one.test, one.size_bytes)).copied().unwrap_or(0);
        let is_short = !one.whole && (one.requests as f64) < length::FIRST_SHARE_MIN * asked as f64;
        let counts = one.counts() && self.filling.is_long_enough(one) && !is_short;
        counts && (length::is_long(one) || !self.is_long(one.test))
    }

    fn is_long(&self, test: ProfileTest) -> bool {
        self.long_writes && test.op() == ProfileOp::Write
    }

    /// Begins with long tests of writes if slices turn out to depend on what was written before.
    fn look_at_history(&mut self, so_far: &Measurements) {
        let wanted = !self.long_writes && self.ops.contains(&ProfileOp::Write);
        let used = || so_far.all().iter().filter(|one| self.is_used(one));
        if !wanted || !history::decides(used()) {
            return;
        }
        self.long_writes = true;
        let is_read = |test: ProfileTest| test.op() == ProfileOp::Read;
        // Findings from short slices of writes do not hold for long tests. Their cells, lengths and
        // breakpoints are forgotten; those of reads stay.
        self.queue.retain(|(test, _)| is_read(*test));
        self.requests.retain(|(test, _), _| is_read(*test));
        self.asked.retain(|(test, _), _| is_read(*test));
        self.breaks.retain(|test, _| is_read(*test));
        self.trials.retain(|trial| is_read(trial.test));
        self.nearest = None;
        self.queue.extend(history::first_long(&self.first));
    }

    /// The slices of a test that count.
    fn slices(&self, test: ProfileTest, so_far: &Measurements) -> Vec<Slow> {
        let mut clock = 0.0;
        let mut slices = Vec::new();
        for one in so_far.all() {
            // The lead takes time on the device as well. Without it the clock would be late,
            // and a drift would look steeper than it is.
            clock += one.seconds * (1.0 + one.lead as f64 / one.requests as f64);
            if one.test == test && self.is_used(one) {
                slices.push(Slow { clock, size: one.size_bytes, time: one.access_time_ns() });
            }
        }
        slices
    }

    /// The slices of `test` and their drift.
    fn course(&self, test: ProfileTest, so_far: &Measurements) -> Option<Course> {
        let slices = self.slices(test, so_far);
        let model = self.curve_and_apart(test, &slices)?;
        let measured: Vec<u64> =
            slices.iter().map(|one| one.size).collect::<BTreeSet<_>>().into_iter().collect();
        let before = model.predict(&measured);
        // Each time is divided by that of the curve, so slices of all sizes form one series. A
        // drift of the device moves all of them by the same factor.
        let series: Vec<(f64, f64)> = slices
            .iter()
            .filter_map(|one| {
                let known = before[measured.binary_search(&one.size).ok()?]?;
                Some((one.clock, one.time / known.time))
            })
            .collect();
        Some(Course { trend: Trend::of(&series), slices, model })
    }

    /// The known values of every size of the sequential and the random test of `op`. A drift that is certain is taken
    /// out of the slices first.
    fn learn(&self, op: ProfileOp, so_far: &Measurements) -> [(ProfileTest, Option<Learned>); 2] {
        let (first, second) = ProfileTest::pair(op);
        let courses = [first, second].map(|test| (test, self.course(test, so_far)));
        let level = Level::of(courses.iter().map(|(_, course)| course.as_ref().map(|c| &c.trend)));
        courses.map(|(test, course)| (test, course.and_then(|c| self.learned(test, c, level))))
    }

    fn learned(&self, test: ProfileTest, course: Course, level: Level) -> Option<Learned> {
        let Course { mut slices, mut model, trend } = course;
        if trend.is_certain() {
            for one in &mut slices {
                one.time /= trend.level(one.clock, level);
            }
            model = self.curve_and_apart(test, &slices)?;
        }
        let sizes = self.sizes.distinct();
        let known = sizes.iter().zip(model.predict(sizes));
        let more = trend.variance();
        let of = |p: Prediction| {
            let variance = (p.variance + more).max(SLICE_DEVIATION_MIN * SLICE_DEVIATION_MIN);
            Prediction { variance, ..p }
        };
        let predictions = known.filter_map(|(size, p)| Some((*size, of(p?)))).collect();
        Some(Learned { model, predictions, trend })
    }

    /// Judges trials whose slices are there, and begins new ones.
    fn look_for_breaks(&mut self, so_far: &Measurements) -> Vec<Cell> {
        for trial in std::mem::take(&mut self.trials) {
            let fresh = so_far.all()[trial.since..].iter();
            let fresh = fresh.filter(|one| one.test == trial.test && self.is_used(one));
            let fresh: Vec<(u64, f64)> =
                fresh.map(|one| (one.size_bytes, one.access_time_ns())).collect();
            // The models of the trial do not contain the fresh slices. A break that only fits
            // the noise of old slices does not predict the new ones.
            let agrees =
                !fresh.is_empty() && trial.with.distance(&fresh) < trial.without.distance(&fresh);
            let list = if agrees { &mut self.breaks } else { &mut self.refused };
            list.entry(trial.test).or_default().push(trial.candidate);
        }
        let mut cells = Vec::new();
        for test in self.tests.clone() {
            // The number of kept breaks is compared and not that of the curve. The curve may
            // have fewer, because the sizes that count now leave no place for a break.
            if self.breaks.get(&test).is_some_and(|kept| kept.len() >= BREAKS_MAX) {
                continue;
            }
            let slices = self.slices(test, so_far);
            let Some(without) = self.model(test, &slices) else { continue };
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

    /// The cells that narrow the widest ratios most, and by how much all ratios are wider than the error; 0 where every
    /// ratio is within the error.
    fn narrow(&self, so_far: &Measurements) -> (Vec<Cell>, f64) {
        let mut wide: Vec<(f64, Cell)> = Vec::new();
        let mut excess = 0.0;
        for op in &self.ops {
            let both = self.learn(*op, so_far).map(|(test, learned)| {
                (test, learned.map_or_else(BTreeMap::new, |learned| learned.predictions))
            });
            for size in self.sizes.distinct() {
                let known = both.each_ref().map(|(test, all)| (*test, all.get(size)));
                let halves = known.map(|(_, p)| p.map_or(f64::INFINITY, Prediction::half_width));
                let half = halves[0].hypot(halves[1]);
                if half <= self.error {
                    continue;
                }
                // The interval of an unknown ratio is infinitely wide. The cap keeps it from
                // hiding the progress of all other ratios.
                excess += (half - self.error).min(1.0);
                let gain = |(test, p): &(ProfileTest, Option<&Prediction>)| {
                    let slices = self.asked.get(&(*test, *size)).copied().unwrap_or(0);
                    let Some(p) = p else { return f64::INFINITY };
                    let slice = self.slice((*test, *size), Some(p.time));
                    let seconds = p.time * 1e-9 * (slice.lead + slice.requests) as f64;
                    // One more slice lowers the variance by about this much. Per second of
                    // device time, cheap slices and expensive ones can be compared.
                    p.variance / (slices as f64 + 1.0) / seconds
                };
                let open = known.iter().filter(|(test, _)| {
                    self.asked.get(&(*test, *size)).is_none_or(|asked| *asked < SLICES_MAX)
                });
                if let Some((test, _)) = open.max_by(|a, b| gain(a).total_cmp(&gain(b))) {
                    wide.push((half, (*test, *size)));
                }
            }
        }
        wide.sort_by(|a, b| b.0.total_cmp(&a.0));
        let gap = |cell: Cell| self.asked.range((cell.0, 0)..=cell).count();
        let (mut cells, mut gaps) = (Vec::new(), Vec::new());
        for (_, (test, size)) in wide {
            // A slice narrows the curve between its neighbours, too. So each gap between
            // measured sizes gets one slice, and a batch spreads over the curve.
            let gap = gap((test, size));
            if !gaps.contains(&(test, gap)) {
                gaps.push((test, gap));
                cells.push((test, size));
            }
            if cells.len() == BATCH {
                break;
            }
        }
        (cells, excess)
    }

    /// Whether more slices no longer bring the intervals nearer to the error.
    fn is_at_floor(&mut self, excess: f64) -> bool {
        let breaks = self.breaks.values().map(Vec::len).sum();
        let now = Nearest { slices: self.total, breaks, excess };
        match self.nearest {
            // A new breakpoint makes another model with wider or narrower intervals. The
            // comparison begins anew then.
            Some(last) if last.breaks == breaks && excess > NEARER * last.excess => {
                self.total as f64 > MORE_SLICES * last.slices as f64
            }
            _ => {
                self.nearest = Some(now);
                false
            }
        }
    }

    /// Two slices of each size; for writes, the slices that searched for the end of a burst come first. The second ones
    /// of the larger sizes come last: with a slow device the time may end before them, and the noise of the smaller
    /// ones, which is larger, must be known then.
    fn first_pass(&mut self) -> Vec<Cell> {
        let larger = self.first[self.first.len() / 2];
        let mut passes = [Vec::new(), Vec::new()];
        for cell in self.tests.iter().flat_map(|test| self.first.iter().map(|size| (*test, *size)))
        {
            if self.filling.is_costly(cell) {
                continue;
            }
            let done = usize::from(self.filling.has_looked(cell));
            let done = done + self.held.get(&cell).copied().unwrap_or(0);
            for number in done..FIRST_SLICES {
                passes[usize::from(number > 0 && cell.1 >= larger)].push(cell);
            }
        }
        passes.iter_mut().for_each(|pass| self.shuffle(pass));
        passes.concat()
    }

    /// Long tests come in pairs, and few at a time.
    fn pair_long(&self, cells: &mut Vec<Cell>) {
        let long = cells.iter().filter(|cell| self.is_long(cell.0));
        let sizes: BTreeSet<u64> = long.map(|cell| cell.1).collect();
        cells.retain(|cell| !self.is_long(cell.0));
        cells.extend(sizes.into_iter().take(LONG_BATCH).flat_map(history::both));
    }

    /// Once more, at a random place of the queue, the cell whose first slice turns out to be too short to count: all at
    /// the end would be measured later than the tests that they are compared with, and a drift would look like a ratio.
    fn repeat_short(&mut self, so_far: &Measurements) {
        let Some(last) = so_far.all().last().filter(|one| one.test.op() == ProfileOp::Read) else {
            return;
        };
        let cell = (last.test, last.size_bytes);
        if self.requests.contains_key(&cell) {
            return;
        }
        let planned = self.slice(cell, Some(last.access_time_ns()));
        self.requests.insert(cell, planned.requests);
        if !self.is_used(last) {
            let place = self.rng.below(self.queue.len() as u64 + 1) as usize;
            self.queue.insert(place, cell);
        }
    }

    /// The next cells, or the reason why there are none.
    fn refill(&mut self, so_far: &Measurements) -> Option<StoppedBecause> {
        let begun = std::mem::replace(&mut self.begun, true);
        let mut cells = if begun { Vec::new() } else { self.first_pass() };
        if cells.is_empty() {
            cells = self.look_for_breaks(so_far);
            if cells.is_empty() {
                let (narrow, excess) = self.narrow(so_far);
                if excess == 0.0 {
                    return Some(StoppedBecause::WithinError);
                }
                if narrow.is_empty() || self.is_at_floor(excess) {
                    return Some(StoppedBecause::NoiseFloor);
                }
                cells = narrow;
            }
            self.shuffle(&mut cells);
            self.pair_long(&mut cells);
        }
        let mut queue = VecDeque::new();
        for (at, cell) in cells.into_iter().enumerate() {
            // The reference is measured at regular distances, also while other sizes are
            // refined. A drift shows only in slices over the whole profile.
            if (self.total + at).is_multiple_of(REFERENCE_EVERY) {
                let tests = self.tests.iter().filter(|test| !self.is_long(**test));
                queue.extend(tests.map(|test| self.reference(*test)));
            }
            queue.push_back(cell);
        }
        self.queue = queue;
        None
    }
}

/// A slice: when it was done, its size, its access time.
#[derive(Clone, Copy, Debug)]
struct Slow {
    clock: f64,
    size: u64,
    time: f64,
}

impl Adaptive {
    /// A slice of a test whose access time is `time` nanoseconds.
    fn slice(&self, cell: Cell, time: Option<f64>) -> Slice {
        match cell.0.op() {
            ProfileOp::Read => length::of_reads(cell, time),
            ProfileOp::Write if self.is_long(cell.0) => length::long(cell, time),
            ProfileOp::Write => {
                let slice = length::of_writes(cell, time, self.filling.lead(cell));
                self.filling.or_whole(cell, slice, time)
            }
        }
    }
}
