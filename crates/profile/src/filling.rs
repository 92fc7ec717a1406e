//! How much a test of writes must write before a slice counts.
//!
//! A write cache absorbs the first writes of a slice. Their number depends on the size of a request: a cache has room
//! for a number of bytes or of extents, and the medium empties it meanwhile. So the first slice of some sizes of the
//! first pass becomes longer until it shows the end of the burst, from the largest size down. The large sizes show how
//! long the search with the other sizes must be.

use std::collections::{BTreeMap, VecDeque};

use crate::measure::Cell;
use crate::measure::{Burst, Measurement, Measurements, ProfileOp, ProfileTest};
use crate::strategy::Slice;

/// Requests of the first slice of a size.
const REQUESTS_FIRST: u64 = 24;

/// How much longer the next slice is when the burst did not end.
const LONGER: u64 = 3;

/// Bytes to write divided by those that fill the cache.
const LOOK_MARGIN: f64 = 1.5;

/// Device time of a slice that looks for the end of a burst at most: a disk needs a minute for a quarter of the usual span
/// with random requests of 24 KiB. Otherwise it may write the whole span: with a cache of half the span, slices of up to a
/// quarter of it met the cache alone, and ratios of writes came out too small by up to 60 %.
const LOOK_SECONDS_MAX: f64 = 12.0;

/// Sizes with which the end of a burst is looked for at most. Those between them have the longer burst of their neighbours.
const SIZES_MAX: usize = 9;

/// A lead that writes more of the span than this is not repeated without need.
const COSTLY_SHARE: f64 = 0.1;

/// A slice that writes more of the span than this, lead and all, becomes a whole test, which takes at most twice as long.
/// So does one with a costly lead whose whole test takes no longer than a search: a cache that holds much of the span joins
/// random writes of small records better and better, and half a test came out slower by up to 19 % than the whole one.
const WHOLE_SHARE: f64 = 0.5;

/// Lead divided by the requests of the burst.
const LEAD_MARGIN: f64 = 1.15;

/// Faster than the medium by less than this fills no cache within a span.
const FASTER_MIN: f64 = 1.02;

/// The known values of the burst of each cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filling {
    span: f64,
    open: VecDeque<Cell>,
    /// Requests of the slice of the first open cell that was asked for, and how many measurements there were before.
    asked: Option<(u64, usize)>,
    known: BTreeMap<Cell, Known>,
    /// The values that a later session checks again: a cache may have emptied before it.
    again: Vec<Cell>,
}

/// Bytes of a second after the burst, if there was one.
fn rate_after_burst(one: &Measurement) -> f64 {
    // The burst of a slice is in its lead and not in its counted requests. All requests of a
    // whole test count, so its burst is subtracted here.
    let (requests, seconds) = match one.burst.filter(|_| one.whole) {
        Some(burst) => (one.requests.saturating_sub(burst.requests), one.seconds - burst.seconds),
        None => (one.requests, one.seconds),
    };
    one.size_bytes as f64 * requests as f64 / seconds.max(f64::MIN_POSITIVE)
}

#[derive(Clone, Copy, Debug)]
struct Known {
    burst: Option<Burst>,
    /// Bytes of a second after the burst.
    rate: f64,
    /// Whether the last of them was a whole test. Then slices of the cell do not count.
    whole: bool,
}

impl Filling {
    /// `sizes` are those of the first pass, ascending.
    pub(crate) fn new(span: u64, tests: &[ProfileTest], sizes: &[u64]) -> Filling {
        let writes = || tests.iter().filter(|test| test.op() == ProfileOp::Write);
        let count = SIZES_MAX.min(sizes.len());
        let some = (0..count).map(|at| sizes[at * (sizes.len() - 1) / (count - 1).max(1)]);
        let some: Vec<u64> = some.collect();
        // The largest size comes first: it fills a cache with the fewest requests. Its result
        // bounds the search with all other sizes (`look`).
        let open = some.iter().rev().flat_map(|size| writes().map(|test| (*test, *size)));
        let open: VecDeque<Cell> = open.collect();
        let again = open.iter().copied().take(writes().count()).collect();
        Filling { span: span as f64, open, again, ..Filling::default() }
    }

    /// Begins a later session: the largest size of each test shows the end of the burst again, so that what follows meets
    /// a full cache. Without effect while sizes are open, which do the same.
    pub(crate) fn look_again(&mut self) {
        if self.open.is_empty() {
            self.open.extend(&self.again);
        }
    }

    /// Takes `one` of an earlier session over, `before` those before it. Whether it looked for the end of a burst.
    pub(crate) fn take_over(&mut self, one: &Measurement, before: &Measurements) -> bool {
        let cell = (one.test, one.size_bytes);
        while let Some((next, _)) = self.next(before) {
            if next == cell {
                return true;
            }
            if !self.open.contains(&cell) {
                // The earlier session measured this cell outside of a search. The search keeps
                // its place and asks for a slice of its own later.
                self.asked = None;
                return false;
            }
        }
        false
    }

    /// The next slice that looks for the end of a burst; `None` when all are known.
    pub(crate) fn next(&mut self, so_far: &Measurements) -> Option<(Cell, Slice)> {
        let mut total = REQUESTS_FIRST;
        if let (Some((asked, before)), Some(cell)) = (self.asked.take(), self.open.front().copied())
        {
            let last = so_far.all().get(before..).and_then(<[Measurement]>::first);
            match last.and_then(|one| self.longer(cell, one, asked)) {
                Some(longer) => total = longer,
                None => {
                    if let Some(one) = last {
                        let rate = rate_after_burst(one);
                        // The cache may still be full from an earlier session, and this
                        // slice then has no burst. The burst that the earlier session
                        // saw stays known.
                        let burst = one.burst.or(self.known.get(&cell).and_then(|one| one.burst));
                        self.known.insert(cell, Known { burst, rate, whole: one.whole });
                    }
                    self.open.pop_front();
                }
            }
        }
        let cell = *self.open.front()?;
        self.asked = Some((total, so_far.all().len()));
        Some((cell, Slice { lead: total / 4, requests: total - total / 4 }))
    }

    /// Requests of a longer slice, if `one` does not show the sustained rate.
    fn longer(&self, cell: Cell, one: &Measurement, asked: u64) -> Option<u64> {
        let size = cell.1 as f64;
        let in_time = LOOK_SECONDS_MAX * one.requests as f64 / one.seconds;
        let most = (self.span / size).min(in_time) as u64;
        let longer = asked * LONGER;
        // The search ends at the whole span, or at 12 s of device time. A disk needs about a
        // minute for a quarter of the usual span with small random requests.
        if one.whole || asked >= most {
            return None;
        }
        match one.burst {
            Some(burst) if burst.settled => {
                // Where the lead is costly, whole tests replace the slices of the cell, and the
                // search measures the first one at once. Half of a random test of small records
                // was up to 19 % slower than the whole test.
                let costly = burst.requests as f64 * size > self.span * COSTLY_SHARE;
                let whole = (self.span / size) as u64;
                (costly && most == whole).then_some(whole)
            }
            Some(_) => Some(longer.min(most)),
            None => {
                let enough = (self.look(cell, one) / size).ceil() as u64;
                // A burst of another size says how many bytes fill the cache, so one slice of
                // that length decides. Without it the length grows step by step, because the
                // device may have no burst at all.
                let next = if self.has_burst() { enough } else { longer.min(enough) };
                (asked < enough).then(|| next.min(most))
            }
        }
    }

    /// Whether the end of a burst was looked for in this cell.
    pub(crate) fn has_looked(&self, cell: Cell) -> bool {
        self.known.contains_key(&cell)
    }

    /// Bytes to write before there is no burst. A size that is no faster than the sustained rate of larger sizes has no
    /// burst.
    fn look(&self, (test, _): Cell, one: &Measurement) -> f64 {
        let held = self.known.values().filter_map(|known| Some(known.burst?.held_bytes));
        let held = held.fold(0.0, f64::max);
        let mine = self.known.iter().filter(|(cell, _)| cell.0 == test);
        let sustained = mine.map(|(_, known)| known.rate).fold(0.0, f64::max);
        let rate = one.size_bytes as f64 * one.requests as f64 / one.seconds;
        // A size that is no faster than the sustained rate never gets ahead of the medium, so
        // it fills no cache. A longer search would only write the span.
        if rate <= FASTER_MIN * sustained {
            return 2.0 * held;
        }
        match held > 0.0 && sustained > 0.0 {
            // The medium empties the cache while writes fill it: the cache gains `rate
            // - sustained` bytes per second. So more than its contents must be written
            // to fill it.
            true => LOOK_MARGIN * held * rate / (rate - sustained),
            false => self.span,
        }
    }

    /// Requests of the burst of a cell, from the sizes of the test around it.
    fn burst_requests(&self, (test, size): Cell) -> f64 {
        let bytes = |(cell, known): (&Cell, &Known)| {
            known.burst.map_or(0.0, |burst| burst.requests as f64 * cell.1 as f64)
        };
        // A size between two known sizes gets the longer burst of both. A lead that is too long
        // costs time, and a lead that is too short makes the access time wrong.
        let below = self.known.range((test, 0)..=(test, size)).next_back();
        let above = self.known.range((test, size)..=(test, u64::MAX)).next();
        below.into_iter().chain(above).map(bytes).fold(0.0, f64::max) / size as f64
    }

    /// Requests before those that count.
    pub(crate) fn lead(&self, cell: Cell) -> u64 {
        (self.burst_requests(cell) * LEAD_MARGIN).ceil() as u64
    }

    /// `slice`, or a whole test in its place if it would fill the cache and write much of the span. `time` is the access
    /// time in nanoseconds; `None` where it is not known.
    pub(crate) fn or_whole(&self, cell: Cell, slice: Slice, time: Option<f64>) -> Slice {
        let records = (self.span / cell.1 as f64) as u64;
        let much = (slice.lead + slice.requests) as f64 > WHOLE_SHARE * records as f64;
        let short = time.is_some_and(|time| time * 1e-9 * records as f64 <= LOOK_SECONDS_MAX);
        match (much && self.burst_requests(cell) > 0.0) || (short && self.is_costly(cell)) {
            true => Slice { lead: 0, requests: records },
            false => slice,
        }
    }

    /// Whether `one` is long enough to show the sustained rate: slices that looked for the end of the burst may not be.
    pub(crate) fn is_long_enough(&self, one: &Measurement) -> bool {
        let known = self.known.get(&(one.test, one.size_bytes));
        // Slices and whole tests of such a cell measure different things: they differed by up
        // to 19 %. So their times are not averaged.
        if one.whole || known.is_some_and(|known| known.whole) {
            return one.whole;
        }
        let burst = known.and_then(|known| known.burst);
        let all = one.lead + one.requests;
        // A slice without a burst of its own must be much longer than the burst of its cell. A
        // shorter slice may lie in the cache as a whole and show no end of it.
        one.burst.is_some() || burst.is_none_or(|burst| all >= 2 * burst.requests)
    }

    fn has_burst(&self) -> bool {
        self.known.values().any(|known| known.burst.is_some())
    }

    /// Whether the lead of a cell writes such a large part of the span that its slice is worth as much as several
    /// others.
    pub(crate) fn is_costly(&self, cell: Cell) -> bool {
        self.burst_requests(cell) * cell.1 as f64 > self.span * COSTLY_SHARE
    }

    /// The burst that held most, and its cell.
    pub(crate) fn largest(&self) -> Option<(Cell, Burst)> {
        let bursts = self.known.iter().filter_map(|(cell, known)| Some((*cell, known.burst?)));
        bursts
            .filter(|(_, burst)| burst.settled)
            .max_by(|a, b| a.1.held_bytes.total_cmp(&b.1.held_bytes))
    }
}
