//! How many arrivals or completions there were until when: some points of a count over time.

use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_figures::picoseconds;

/// A count at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Point {
    #[serde(with = "picoseconds")]
    at: Time,
    count: u64,
}

/// A count over time. As with batches, the distance of its points doubles as the run grows, so memory stays flat.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CountOverTime {
    count: u64,
    /// The next point is due at this count.
    next: u64,
    every: u64,
    #[serde(with = "picoseconds")]
    last: Time,
    points: Vec<Point>,
    /// The first time, and how many came then: a burst comes as a whole.
    first: Option<Point>,
}

impl CountOverTime {
    /// A line between two of so many points is within a hundredth of the count.
    const MOST: usize = 256;

    /// Begins anew at `at`, with `count`.
    pub(crate) fn restart(&mut self, at: Time, count: u64) {
        *self = CountOverTime {
            count,
            last: at,
            next: count + 1,
            every: 1,
            ..CountOverTime::default()
        };
        self.points.push(Point { at, count });
    }

    /// `many` more at `at`. One that is reported late counts from the latest report: its point would lie before others.
    #[inline]
    pub(crate) fn add(&mut self, at: Time, many: u64) {
        self.count += many;
        self.last = self.last.max(at);
        let first = self.first.get_or_insert(Point { at, count: 0 });
        if first.at == at {
            first.count += many;
        }
        if self.count >= self.next {
            self.keep();
        }
    }

    #[cold]
    fn keep(&mut self) {
        if self.points.len() >= CountOverTime::MOST {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.every *= 2;
        }
        self.points.push(Point { at: self.last, count: self.count });
        self.every = self.every.max(1);
        self.next = self.count + self.every;
    }

    /// The time of the latest.
    pub(crate) fn last(&self) -> Time {
        self.last
    }

    /// The latest count.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Number of points.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// The count just before `at`, by a line between two points.
    pub(crate) fn before(&self, at: Time) -> f64 {
        let after = self.points.partition_point(|point| point.at < at);
        let Some(from) = after.checked_sub(1).map(|before| self.points[before]) else {
            return self.points.first().map_or(0.0, |first| first.count as f64);
        };
        let end = Point { at: self.last, count: self.count };
        let to = self.points.get(after).copied().unwrap_or(end);
        let length = to.at.saturating_sub(from.at).as_ps() as f64;
        let share = at.saturating_sub(from.at).as_ps() as f64 / length;
        let share = if length > 0.0 { share.min(1.0) } else { 1.0 };
        from.count as f64 + share * to.count.saturating_sub(from.count) as f64
    }

    /// The time of the first, and how many came then.
    pub(crate) fn at_first(&self) -> Option<(Time, u64)> {
        self.first.map(|first| (first.at, first.count))
    }

    /// The times and counts between which the second half of the counts lies.
    pub(crate) fn second_half(&self) -> Option<[(Time, u64); 2]> {
        let start = self.points.first()?.count;
        let half = start + self.count.saturating_sub(start) / 2;
        let from = self.points.iter().find(|point| point.count >= half)?;
        Some([(from.at, from.count), (self.last, self.count)])
    }

    /// Adds the counts of another job.
    pub(crate) fn merge(&mut self, other: &CountOverTime) {
        let mut times: Vec<Time> =
            self.points.iter().chain(&other.points).map(|point| point.at).collect();
        times.sort_unstable();
        times.dedup();
        // Just after `at`: the points themselves are part of the sum.
        let sum = |at: Time| {
            let next = at.saturating_add(Time::from_ps(1));
            (self.before(next) + other.before(next)).round() as u64
        };
        let every = times.len().div_ceil(CountOverTime::MOST).max(1);
        let points = times.iter().step_by(every).map(|at| Point { at: *at, count: sum(*at) });
        let points = points.collect();
        self.count += other.count;
        self.first = match (self.first, other.first) {
            (Some(mine), Some(theirs)) if mine.at == theirs.at => {
                Some(Point { at: mine.at, count: mine.count + theirs.count })
            }
            (Some(mine), Some(theirs)) if theirs.at < mine.at => Some(theirs),
            (mine, theirs) => mine.or(theirs),
        };
        self.last = self.last.max(other.last);
        self.points = points;
        // Merged counts do not grow any more.
        self.next = u64::MAX;
    }

    /// Moves all times.
    pub(crate) fn shift(&mut self, by: impl Fn(Time) -> Time) {
        self.last = by(self.last);
        self.points.iter_mut().chain(&mut self.first).for_each(|point| point.at = by(point.at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(many: u64, ns: u64) -> CountOverTime {
        let mut course = CountOverTime::default();
        course.restart(Time::ZERO, 0);
        (1..=many).for_each(|at| course.add(Time::from_ns(at * ns), 1));
        course
    }

    #[test]
    fn a_count_over_time_is_read_between_its_points() {
        for many in [3, 200, 1_000, 100_000] {
            let course = even(many, 10);
            assert!(course.len() <= CountOverTime::MOST);
            for share in [0.1, 0.5, 0.9, 1.0] {
                let at = Time::from_ns((many as f64 * share * 10.0) as u64);
                let read = course.before(at);
                assert!((read - many as f64 * share).abs() <= 1.0, "{many} {share}: {read}");
            }
            assert_eq!(course.before(Time::from_ms(10_000)), many as f64);
            assert_eq!(course.at_first(), Some((Time::from_ns(10), 1)));
        }
        assert_eq!(CountOverTime::default().before(Time::from_ns(1)), 0.0);
    }

    #[test]
    fn a_burst_comes_before_its_end() {
        let mut course = CountOverTime::default();
        course.restart(Time::ZERO, 0);
        for burst in 0..4 {
            (0..10_000).for_each(|_| course.add(Time::from_ms(1 + burst * 100), 1));
        }
        let (first, many) = course.at_first().unwrap();
        assert_eq!(first, Time::from_ms(1));
        assert_eq!(many, 10_000);
        // A point is at most a hundredth of the count away from the burst.
        let served = course.before(Time::from_ms(90));
        assert!((10_000.0..10_400.0).contains(&served), "{served}");
    }

    #[test]
    fn jobs_add_up() {
        let (mut all, other) = (even(1_000, 30), even(3_000, 10));
        all.merge(&other);
        assert_eq!((all.count(), all.last()), (4_000, Time::from_ns(30_000)));
        let half = all.before(Time::from_ns(15_000));
        assert!((half - 2_000.0).abs() < 20.0, "{half}");
        let mut moved = all.clone();
        moved.shift(|at| at + Time::from_ns(7));
        assert_eq!(moved.before(Time::from_ns(15_007)), half);
    }
}
