//! What was counted in the course of a run: intervals of the figures that no request has of its own.

use ssdyno_block::Time;
use ssdyno_figures::{Interval, SeriesPoint};
use ssdyno_record::ratio_interval;

/// Points that are kept; with more, every other one goes, and points are taken half as often.
const POINTS_MOST: usize = 256;
/// Turns of the loop between two points at first.
const EVERY_AT_FIRST: u32 = 1 << 9;
/// Batches of which intervals are made; a run with fewer points has as many batches as stretches between points.
const BATCHES: usize = 32;
/// Fewest batches. Of 8 the correlation of neighbours is off by 0.35 already, and Student's t makes up for it.
const BATCHES_LEAST: usize = 8;

/// The counts at one moment, all since the start of the run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Point {
    /// Requests completed without error.
    pub(crate) completed: u64,
    /// Bytes of the writes that were issued.
    pub(crate) written_bytes: u64,
    /// Pages that the flash programmed.
    pub(crate) programmed: u64,
    /// CPU time of the simulated host.
    pub(crate) host_cpu: Time,
}

/// The counts from time to time, from the end of the ramp-up on.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Course {
    points: Vec<Point>,
    turns: u32,
    every: u32,
    /// The write buffer has filled once so many bytes were written.
    filling_bytes: u64,
}

impl Course {
    /// Of a device whose write buffer has filled once `filling_bytes` were written.
    pub(crate) fn new(filling_bytes: u64) -> Course {
        Course { points: Vec::new(), turns: 0, every: EVERY_AT_FIRST, filling_bytes }
    }

    /// One more turn of the loop, after which the counts are `now`.
    #[inline]
    pub(crate) fn turn(&mut self, now: impl FnOnce() -> Point) {
        self.turns += 1;
        if self.turns >= self.every {
            self.note(now());
        }
    }

    #[cold]
    pub(crate) fn note(&mut self, now: Point) {
        self.turns = 0;
        if self.points.len() == POINTS_MOST {
            // Every other point is removed and the distance doubles, so memory stays constant for
            // any length of the run, and points remain equally spaced.
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.every = self.every.saturating_mul(2);
        }
        self.points.push(now);
    }

    /// The points from which on the write buffer was full: writes into an empty buffer are all alike, and
    /// say nothing of those that follow.
    pub(crate) fn since_full(&self) -> &[Point] {
        // Counts only grow, so a binary search finds the point. The buffer completes writes that no
        // flash page has received; a ratio over this time would be below 1.
        let first = self.points.partition_point(|point| point.written_bytes < self.filling_bytes);
        &self.points[first..]
    }

    /// The interval of a write amplification of `estimate`; pages have `page_bytes`.
    pub(crate) fn write_amplification(&self, estimate: f64, page_bytes: f64) -> Option<Interval> {
        let bytes = |point: &Point| point.programmed as f64 * page_bytes;
        let points = self.since_full();
        // Batches without writes are all alike. Two writes and an erase of a long trace of reads had
        // an interval of no width.
        let written =
            points.windows(2).filter(|pair| pair[0].written_bytes < pair[1].written_bytes);
        if written.take(BATCHES_LEAST).count() < BATCHES_LEAST {
            return None;
        }
        interval(estimate, points, bytes, |point| point.written_bytes as f64)
    }

    /// The interval of `estimate`, the CPU time of the host for each request in ns.
    ///
    /// Open loops mix the threads that issue requests for tens of thousands of requests: the CPU time decays slowly, and
    /// neighbouring batches hide in their own noise that far ones are alike. So the interval is the widest of those from batches
    /// that are one, two and four times as long, and it reaches to the figure of the second half of the run.
    pub(crate) fn host_cpu(&self, estimate: f64) -> Option<Interval> {
        let cpu_ns = |point: &Point| point.host_cpu.as_ns_f64();
        let completed = |point: &Point| point.completed as f64;
        let stretches = self.points.len().saturating_sub(1);
        let lengths = [BATCHES, BATCHES / 2, BATCHES_LEAST].map(|most| (stretches / most).max(1));
        let of_length = |each| interval_of(estimate, &self.points, each, cpu_ns, completed);
        let widest = lengths.into_iter().filter_map(of_length).reduce(|one, other| Interval {
            low: one.low.min(other.low),
            high: one.high.max(other.high),
            ..one
        })?;
        let (middle, last) = (self.points.get(stretches / 2)?, self.points.last()?);
        let late = (cpu_ns(last) - cpu_ns(middle)) / (completed(last) - completed(middle));
        Some(if late.is_finite() { reaching(widest, late) } else { widest })
    }
}

/// The interval of a ratio of two counts from batches of about equally many turns.
fn interval(
    estimate: f64,
    points: &[Point],
    amount: impl Fn(&Point) -> f64,
    weight: impl Fn(&Point) -> f64,
) -> Option<Interval> {
    // Batch means: neighbouring points are correlated, because garbage collection has a memory. A
    // batch that is longer than this memory is nearly independent of the next one.
    let each = points.len().saturating_sub(1).div_ceil(BATCHES).max(1);
    interval_of(estimate, points, each, amount, weight)
}

/// The same from batches of `each` stretches between points, 1 or more.
fn interval_of(
    estimate: f64,
    points: &[Point],
    each: usize,
    amount: impl Fn(&Point) -> f64,
    weight: impl Fn(&Point) -> f64,
) -> Option<Interval> {
    let ends: Vec<&Point> = points.iter().step_by(each).collect();
    let grown = |count: &dyn Fn(&Point) -> f64| -> Vec<f64> {
        ends.windows(2).map(|pair| count(pair[1]) - count(pair[0])).collect()
    };
    of_batches(estimate, &grown(&amount), &grown(&weight))
}

/// The interval with an equal spread around `other`, which is the same figure of another part of the run.
fn reaching(interval: Interval, other: f64) -> Interval {
    let Interval { estimate, low, high, .. } = interval;
    let (low, high) = (low + (other - estimate).min(0.0), high + (other - estimate).max(0.0));
    Interval { low: low.max(0.0), high, ..interval }
}

fn of_batches(estimate: f64, amounts: &[f64], weights: &[f64]) -> Option<Interval> {
    (amounts.len() >= BATCHES_LEAST).then(|| ratio_interval(estimate, amounts, weights))?
}

/// The interval of `estimate`, the energy of a request in joules, from the power over time of `series`.
pub(crate) fn energy_per_request(estimate: f64, series: &[SeriesPoint]) -> Option<Interval> {
    // A device without an energy model takes 0 J. That is not a figure that was measured to 0 %.
    if estimate <= 0.0 {
        return None;
    }
    let each = series.len().div_ceil(BATCHES).max(1);
    let batches = || series.chunks(each);
    let joules = |point: &SeriesPoint| {
        point.power_watts.map_or(0.0, |power| power.total * point.length_seconds)
    };
    let requests = |point: &SeriesPoint| point.requests() as f64;
    let amounts: Vec<f64> = batches().map(|batch| batch.iter().map(joules).sum()).collect();
    let weights: Vec<f64> = batches().map(|batch| batch.iter().map(requests).sum()).collect();
    let interval = of_batches(estimate, &amounts, &weights)?;
    // The figure has the energy from the last completion until the device has settled, the series has
    // not. A longer run has the same for more requests: the interval reaches to the figure without it.
    let within = amounts.iter().sum::<f64>() / weights.iter().sum::<f64>();
    Some(reaching(interval, within))
}

#[cfg(test)]
mod tests {
    use ssdyno_engine::Rng;

    use super::*;

    /// The counts from the start on, and after each turn that completes a request of `cpu_ns(turn)`.
    fn course(turns: u64, mut cpu_ns: impl FnMut(u64) -> f64) -> (Course, f64) {
        let (mut course, mut sum) = (Course::new(0), 0.0);
        course.note(Point::default());
        for completed in 1..=turns {
            sum += cpu_ns(completed);
            let host_cpu = Time::from_ps((sum * 1e3) as u64);
            course.turn(|| Point { completed, host_cpu, ..Point::default() });
        }
        (course, sum / turns as f64)
    }

    /// The first request wakes the thread, which takes 900 ns more. The intervals of 20 000 and of 200 000 requests both contain
    /// the figure of a run without an end.
    #[test]
    fn the_first_request_is_in_the_interval() {
        for turns in [20_000, 200_000] {
            let (course, mean) = course(turns, |at| if at == 1 { 3_500.0 } else { 2_600.0 });
            let found = course.host_cpu(mean).unwrap();
            assert!(found.low <= 2_600.0 + 1e-6 && mean <= found.high, "{turns}: {found:?}");
            assert!(found.high - found.low < 1.0, "{turns}: {found:?}");
        }
    }

    /// Noise of 500 ns for each request, and a level that wanders: its correlation falls by 1/e in 3000 requests, of 30 000. At
    /// least 87 of 100 intervals contain the true value; batches of one length alone cover it 80 times.
    #[test]
    fn a_level_that_wanders_is_in_the_interval() {
        let rho = f64::exp(-1.0 / 3_000.0);
        let covering = (0..100).filter(|seed| {
            let mut rng = Rng::new(*seed, "course");
            // The sum of twelve uniform values is nearly normal with variance one.
            let mut normal = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
            let mut level = 20.0 * normal();
            let (course, mean) = course(30_000, |_| {
                level = rho * level + 20.0 * (1.0 - rho * rho).sqrt() * normal();
                3_450.0 + level + 500.0 * normal()
            });
            let found = course.host_cpu(mean).unwrap();
            found.low <= 3_450.0 && 3_450.0 <= found.high
        });
        let covering = covering.count();
        assert!(covering >= 87, "{covering} of 100");
    }
}
