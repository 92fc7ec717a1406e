//! Distributions of consecutive completions: what intervals of percentiles, and of single
//! operations, are found from without a row for each request.

use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_figures::{Histogram, picoseconds};

use crate::side_by_side::Share;
use crate::sparse::SparseHistogram;
use crate::sums::Sums;

/// Kinds of figures kept apart: the four operations, and the time inside the device of all.
pub(crate) const LANES: usize = 5;

/// The lane of the time inside the device.
pub(crate) const INSIDE: usize = 4;

const GOLDEN: f64 = 0.618_033_988_749_895;

/// Everything recorded so far of one lane, to be subtracted from what is recorded later.
pub(crate) struct View<'a> {
    /// Their counts add up.
    pub(crate) histograms: Vec<&'a Histogram>,
    /// Of what the histograms hold.
    pub(crate) sums: Sums,
}

/// The contents of one slice for one lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) count: u64,
    pub(crate) latency_ps: u128,
    latencies: SparseHistogram,
}

impl Part {
    /// Latencies in buckets up to `bucket`.
    pub(crate) fn up_to(&self, bucket: usize) -> u64 {
        self.latencies.up_to(bucket)
    }

    /// The share of it that completed in a part of its time, if completions were spread evenly. The shares of a whole add up
    /// to it: each bucket is rounded at the same places.
    fn share(&self, share: Share) -> Part {
        // Single counts would all fall into the same share. Buckets next to one another are
        // therefore rounded at different places (multiples of the golden ratio).
        let cut = |bucket: usize, count: u64, at: f64| {
            (count as f64 * at + (bucket as f64 * GOLDEN).fract()).floor() as u64
        };
        let mut part = Part::default();
        for (bucket, count) in self.latencies.iter() {
            let count = cut(bucket, count, share.to) - cut(bucket, count, share.from);
            if count > 0 {
                part.latencies.push(bucket as u16, count);
                part.count += count;
            }
        }
        part.latency_ps = share.of(self.latency_ps as f64) as u128;
        part
    }

    /// The sum of the squared distances of its latencies from `mean_ns`.
    fn squares(&self, mean_ns: f64) -> f64 {
        let square = |(bucket, count)| count as f64 * (Histogram::middle(bucket) - mean_ns).powi(2);
        self.latencies.iter().map(square).sum()
    }

    fn add(&mut self, other: &Part) {
        self.count += other.count;
        self.latency_ps += other.latency_ps;
        self.latencies.merge(&other.latencies);
    }

    /// Counts everything into `histogram`.
    pub(crate) fn count_into(&self, histogram: &mut Histogram) {
        self.latencies.count_into(histogram);
    }
}

/// Completions that follow one another.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Slice {
    /// The last of them.
    #[serde(with = "picoseconds")]
    pub(crate) end: Time,
    pub(crate) parts: [Part; LANES],
}

impl Slice {
    /// Adds the part of `other` that belongs to a part of its time.
    pub(crate) fn add_share(&mut self, other: &Slice, share: Share) {
        for (mine, theirs) in self.parts.iter_mut().zip(&other.parts) {
            mine.add(&theirs.share(share));
        }
    }

    fn add(&mut self, other: &Slice) {
        self.end = self.end.max(other.end);
        self.parts.iter_mut().zip(&other.parts).for_each(|(mine, theirs)| mine.add(theirs));
    }

    /// All operations together.
    pub(crate) fn all(&self) -> Part {
        let mut all = Part::default();
        self.parts[..INSIDE].iter().for_each(|part| all.add(part));
        all
    }
}

/// Slices of a run. As with batches their size doubles as the run grows, so memory stays flat.
///
/// A slice is the difference of two states of the histograms, so the hot path only checks whether
/// the next slice is due.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Slices {
    size: u64,
    next_at: u64,
    done: Vec<Slice>,
    /// The completions after the last slice. It counts where jobs are put side by side.
    rest: Option<Slice>,
    unseen: Unseen,
    /// They are stretches of time of several jobs.
    of_jobs: bool,
    /// The state at the end of the last slice.
    #[serde(skip)]
    before: [Before; LANES],
}

/// Squared latencies in ns² of jobs with too few slices to show their variation: the variance of the sum of latencies,
/// less the mean of all, if their completions were independent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unseen {
    pub(crate) lanes: [f64; LANES],
    pub(crate) all: f64,
}

impl Unseen {
    /// Adds the latencies of `slice`, whose lanes and sum are compared with those of `whole`.
    pub(crate) fn add(&mut self, slice: &Slice, whole: &Slice) {
        let squares = |part: &Part, whole: &Part| match whole.count {
            0 => 0.0,
            count => part.squares(whole.latency_ps as f64 / 1e3 / count as f64),
        };
        for ((unseen, part), whole) in self.lanes.iter_mut().zip(&slice.parts).zip(&whole.parts) {
            *unseen += squares(part, whole);
        }
        self.all += squares(&slice.all(), &whole.all());
    }

    pub(crate) fn merge(&mut self, other: &Unseen) {
        self.lanes.iter_mut().zip(other.lanes).for_each(|(mine, theirs)| *mine += theirs);
        self.all += other.all;
    }
}

#[derive(Clone, Debug, Default)]
struct Before {
    latency_ps: u128,
    counts: Vec<u64>,
}

impl Default for Slices {
    fn default() -> Self {
        Slices {
            size: Slices::FIRST,
            next_at: Slices::FIRST,
            done: Vec::new(),
            rest: None,
            unseen: Unseen::default(),
            of_jobs: false,
            before: Default::default(),
        }
    }
}

impl Slices {
    /// Departures in a slice to begin with.
    const FIRST: u64 = 16;
    /// At this many, neighbours are joined.
    const MOST: usize = 64;
    /// Fewer say too little of how much they vary.
    pub(crate) const LEAST: usize = 16;
    /// Slices of several jobs if each of them has this number; fewer slices, down to a quarter, if one job has fewer.
    pub(crate) const OF_JOBS: usize = Slices::MOST / 2;
    /// Fewest completions of which there are intervals of latencies.
    pub(crate) const COMPLETIONS_LEAST: u64 = Slices::FIRST * Slices::LEAST as u64;

    /// Continues with the slice length that a run of `completions` has at its end, as if the run were already that
    /// long: to end a slice takes as long as hundreds of requests, and a young run ends many slices.
    pub(crate) fn grow_to(&mut self, completions: u64) {
        self.size = (completions / (Slices::MOST as u64 / 2)).max(self.size);
        self.next_at = self.size;
    }

    /// Slices that ended and were not joined to others.
    pub(crate) fn count(&self) -> usize {
        self.done.len()
    }

    /// Whether a slice ends with request number `departed`, counted over all that departed, recorded or not.
    // The count of departures exists anyway; one of recorded requests would cost the hot path. Ramp-up and errors make
    // slices hold less, which does no harm: each slice is weighted by what it holds.
    #[inline]
    pub(crate) fn due(&self, departed: u64) -> bool {
        departed >= self.next_at
    }

    /// Ends a slice at `end`, from the state of all lanes.
    #[cold]
    pub(crate) fn close(&mut self, departed: u64, end: Time, lanes: [View<'_>; LANES]) {
        let slice = self.open(end, &lanes);
        // A slice in which all requests failed holds no latency. It would count as a batch that
        // agrees with all others, and the spread would look smaller than it is.
        if slice.parts.iter().any(|part| part.count > 0) {
            self.done.push(slice);
            self.shrink();
        }
        self.next_at = departed + self.size;
    }

    /// Ends the last slice at `end`, however short it is.
    #[cold]
    pub(crate) fn end(&mut self, end: Time, lanes: [View<'_>; LANES]) {
        let rest = self.open(end, &lanes);
        self.rest = rest.parts.iter().any(|part| part.count > 0).then_some(rest);
        self.before = Default::default();
    }

    /// The completions since the last slice.
    fn open(&mut self, end: Time, lanes: &[View<'_>; LANES]) -> Slice {
        let mut slice = Slice { end, ..Slice::default() };
        for ((part, before), view) in slice.parts.iter_mut().zip(&mut self.before).zip(lanes) {
            *part = difference(before, view);
        }
        slice
    }

    fn shrink(&mut self) {
        while self.done.len() >= Slices::MOST {
            // After the join of many jobs the size only counts the joins. Nothing is recorded
            // with it any more, so it may saturate.
            self.size = self.size.saturating_mul(2);
            let join = |pair: &[Slice]| {
                let mut joined = pair[0].clone();
                pair[1..].iter().for_each(|slice| joined.add(slice));
                joined
            };
            // An odd slice stays by itself here, other than with batches: counts of slices must
            // add up to the whole, and their ratios are weighted by these counts.
            self.done = self.done.chunks(2).map(join).collect();
        }
    }

    /// Equal stretches of time of several jobs.
    pub(crate) fn of_stretches(done: Vec<Slice>, unseen: Unseen) -> Slices {
        Slices { done, unseen, of_jobs: true, ..Slices::default() }
    }

    /// All slices in order, with the one that [`end`](Slices::end) has ended.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Slice> {
        self.done.iter().chain(&self.rest)
    }

    /// See [`Unseen`].
    pub(crate) fn unseen(&self) -> &Unseen {
        &self.unseen
    }

    /// Moves all ends in time.
    pub(crate) fn shift(&mut self, by: impl Fn(Time) -> Time) {
        let all = self.done.iter_mut().chain(&mut self.rest);
        all.for_each(|slice| slice.end = by(slice.end));
    }

    /// The slices in order; `None` where there are too few to say how much they vary.
    pub(crate) fn enough(&self) -> Option<&[Slice]> {
        let least = if self.of_jobs { Slices::OF_JOBS / 4 } else { Slices::LEAST };
        (self.done.len() >= least).then_some(&self.done)
    }
}

/// The increase since `before`, which becomes the present state.
fn difference(before: &mut Before, view: &View<'_>) -> Part {
    let mut part = Part { latency_ps: view.sums.ps - before.latency_ps, ..Part::default() };
    before.latency_ps = view.sums.ps;
    // Most runs have one operation or two. For the lanes of the others no table of counts is
    // ever allocated.
    if view.histograms.iter().all(|histogram| histogram.total() == 0) {
        return part;
    }
    let bucket = |ps: u64| Histogram::bucket(ps / 1_000);
    // Times inside the device are rounded to nanoseconds on their own. Their bucket may be one
    // below or above that of the exact extremes.
    let first = bucket(view.sums.ps_min).saturating_sub(1);
    let last = (bucket(view.sums.ps_max) + 1).min(Histogram::LAST);
    before.counts.resize(Histogram::LAST + 1, 0);
    let mut add = |at: usize, now: u64, then: &mut u64| {
        let new = now - *then;
        if new > 0 {
            *then = now;
            part.count += new;
            part.latencies.push(at as u16, new);
        }
    };
    let counts = &mut before.counts[first..=last];
    if let [histogram] = view.histograms[..] {
        // This is nearly always so, and most of the state is unchanged: runs begin and end many slices, each over all
        // latencies so far.
        const TOGETHER: usize = 16;
        let now = &histogram.counts()[first..=last];
        for (group, (now, then)) in
            now.chunks(TOGETHER).zip(counts.chunks_mut(TOGETHER)).enumerate()
        {
            if now != then {
                let start = first + group * TOGETHER;
                now.iter()
                    .zip(then)
                    .enumerate()
                    .for_each(|(at, (now, then))| add(start + at, *now, then));
            }
        }
    } else {
        for (at, then) in counts.iter_mut().enumerate() {
            let now = view.histograms.iter().map(|histogram| histogram.count_in(first + at)).sum();
            add(first + at, now, then);
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn view<'a>(histogram: &'a Histogram, values: &[u64]) -> View<'a> {
        View {
            histograms: vec![histogram],
            sums: Sums {
                ps: values.iter().map(|ns| u128::from(*ns) * 1_000).sum(),
                ps_min: values.iter().min().map_or(u64::MAX, |ns| ns * 1_000),
                ps_max: values.iter().max().map_or(0, |ns| ns * 1_000),
            },
        }
    }

    proptest! {
        #[test]
        fn slices_sum_to_the_whole_and_stay_few(
            values in prop::collection::vec((0u64..1 << 34, 0u32..34), 0..4_000),
        ) {
            let mut slices = Slices::default();
            let (mut histogram, empty) = (Histogram::default(), Histogram::default());
            let mut seen: Vec<u64> = Vec::new();
            let mut closed = 0;
            for (at, (value, shift)) in values.iter().enumerate() {
                seen.push(value >> shift);
                histogram.add(value >> shift);
                let recorded = at as u64 + 1;
                if slices.due(recorded) {
                    closed = recorded;
                    let none = || view(&empty, &[]);
                    let lanes = [view(&histogram, &seen), none(), none(), none(), none()];
                    slices.close(recorded, Time::from_ns(recorded), lanes);
                }
            }
            prop_assert!(slices.done.len() < Slices::MOST);
            let mut sum = Part::default();
            slices.done.iter().for_each(|slice| sum.add(&slice.all()));
            prop_assert_eq!(sum.count, closed);
            let inside = &seen[..closed as usize];
            let total: u128 = inside.iter().map(|ns| u128::from(*ns) * 1_000).sum();
            prop_assert_eq!(sum.latency_ps, total);
            let mut again = Histogram::default();
            sum.count_into(&mut again);
            let mut direct = Histogram::default();
            inside.iter().for_each(|ns| direct.add(*ns));
            prop_assert_eq!(again.bins(128), direct.bins(128));
            let middle = Histogram::bucket(1 << 20);
            let below = inside.iter().filter(|ns| Histogram::bucket(**ns) <= middle).count();
            prop_assert_eq!(sum.up_to(middle), below as u64);
        }
    }
}
