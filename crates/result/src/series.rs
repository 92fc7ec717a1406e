//! Figures over time, by the moment of completion.

use ssdyno_block::{Op, Time};

use crate::buckets::{Grid, Merge, Track};
use crate::result::SeriesPoint;

/// What completed in one stretch of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch {
    pub(crate) counts: [u64; 4],
    pub(crate) bytes: [u64; 4],
    pub(crate) errors: u64,
    pub(crate) latency_ps: u128,
    pub(crate) latency_ps_max: u64,
}

impl Merge for Stretch {
    fn merge(&mut self, other: &Stretch) {
        for op in 0..4 {
            self.counts[op] += other.counts[op];
            self.bytes[op] += other.bytes[op];
        }
        self.errors += other.errors;
        self.latency_ps += other.latency_ps;
        self.latency_ps_max = self.latency_ps_max.max(other.latency_ps_max);
    }
}

/// The series of a run, on a [`Grid`].
#[derive(Clone, Debug)]
pub struct Series {
    track: Track<Stretch>,
}

impl Series {
    /// An empty series.
    pub fn new(grid: Grid) -> Series {
        Series { track: Track::new(grid) }
    }

    /// The grid as it is now.
    pub fn grid(&self) -> Grid {
        self.track.grid()
    }

    /// Counts a request that completed without error.
    #[inline]
    pub fn add(&mut self, op: Op, bytes: u64, latency: Time, completed: Time) {
        let stretch = self.track.at(completed);
        stretch.counts[op as usize] += 1;
        stretch.bytes[op as usize] += bytes;
        stretch.latency_ps += u128::from(latency.as_ps());
        stretch.latency_ps_max = stretch.latency_ps_max.max(latency.as_ps());
    }

    /// Counts requests that completed together: sums over `count` of them, and the largest
    /// latency.
    #[inline]
    pub(crate) fn add_many(
        &mut self,
        op: Op,
        count: u64,
        bytes: u64,
        latency_ps: u128,
        latency_ps_max: u64,
        completed: Time,
    ) {
        let stretch = self.track.at(completed);
        stretch.counts[op as usize] += count;
        stretch.bytes[op as usize] += bytes;
        stretch.latency_ps += latency_ps;
        stretch.latency_ps_max = stretch.latency_ps_max.max(latency_ps_max);
    }

    /// Adds the series of another job, which has the same origin and was made with the same
    /// interval.
    pub(crate) fn merge(&mut self, other: Series) {
        self.track.merge(other.track);
    }

    /// Counts a request that ended in an error.
    pub fn add_error(&mut self, completed: Time) {
        self.track.at(completed).errors += 1;
    }

    /// The points up to `end`, without gaps; what completed at `end` itself is in the last one.
    pub fn points(&mut self, end: Time) -> Vec<SeriesPoint> {
        let origin = self.track.grid().origin();
        if end > origin {
            self.track.seek(Time::from_ps(end.as_ps() - 1));
        }
        let grid = self.track.grid();
        let mut points: Vec<SeriesPoint> = Vec::new();
        let mut stretches = self.track.buckets().to_vec();
        // A completion exactly at the end of the last bucket opened one of length zero.
        if stretches.len() > 1
            && grid.start(stretches.len() - 1) >= end
            && let Some(empty) = stretches.pop()
            && let Some(last) = stretches.last_mut()
        {
            last.merge(&empty);
        }
        for (i, stretch) in stretches.iter().enumerate() {
            let (from, to) = (grid.start(i), grid.start(i + 1).min(end));
            points.push(point(stretch, from.saturating_sub(origin), to.saturating_sub(from)));
        }
        points
    }
}

fn point(stretch: &Stretch, start: Time, length: Time) -> SeriesPoint {
    let count: u64 = stretch.counts.iter().sum();
    let seconds = length.as_s_f64();
    let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let [reads, writes, trims, flushes] = stretch.counts;
    let [read_bytes, write_bytes, ..] = stretch.bytes;
    SeriesPoint {
        start_seconds: start.as_s_f64(),
        length_seconds: seconds,
        reads,
        writes,
        trims,
        flushes,
        errors: stretch.errors,
        read_bytes,
        write_bytes,
        iops: per_second(count),
        throughput_bytes_per_second: per_second(read_bytes + write_bytes),
        latency_ns_mean: (count > 0).then(|| stretch.latency_ps as f64 / 1e3 / count as f64),
        latency_ns_max: (count > 0).then(|| stretch.latency_ps_max as f64 / 1e3),
        power_watts: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_have_no_gaps_and_the_last_is_short() {
        let mut series = Series::new(Grid::new(Time::from_ms(5), Some(Time::from_ms(10))));
        series.add(Op::Read, 512, Time::from_us(3), Time::from_ms(6));
        series.add(Op::Write, 1024, Time::from_us(5), Time::from_ms(36));
        let points = series.points(Time::from_ms(40));
        assert_eq!(points.len(), 4);
        assert_eq!(points[1].latency_ns_mean, None);
        assert_eq!((points[3].start_seconds, points[3].length_seconds), (0.03, 0.005));
        assert_eq!(points[3].iops, 200.0);
        assert_eq!(points[0].latency_ns_max, Some(3_000.0));
    }

    #[test]
    fn a_completion_at_the_very_end_is_in_the_last_point() {
        let mut series = Series::new(Grid::new(Time::ZERO, Some(Time::from_ms(10))));
        for ms in [1, 10, 20] {
            series.add(Op::Read, 512, Time::from_us(3), Time::from_ms(ms));
        }
        let points = series.points(Time::from_ms(20));
        assert_eq!(points.iter().map(|p| p.reads).collect::<Vec<_>>(), [1, 2]);
    }
}
