//! Which requests of a slice count: those after its lead, and of writes those after a cache is full.

use ssdyno_figures::SeriesPoint;

use crate::measure::{Burst, Measurement, ProfileOp};
use crate::strategy::Slice;

/// A rate that drops by less is not a burst.
const SLOWDOWN_MIN: f64 = 1.02;

/// The number of standard deviations by which a knee must rise above the course around it.
const DEVIATIONS_MIN: f64 = 5.0;

/// Requests that a knee rises above the course at least: one request can be split between two points.
const RISE_MIN: f64 = 0.75;

/// Requests after a burst at least, in all and as a share of those of the slice.
const AFTER_MIN: f64 = 4.0;
const AFTER_SHARE_MIN: f64 = 0.25;

/// Drops of the rate that are looked for one after the other: a cache of several levels has several.
const KNEES_MAX: usize = 3;

/// Seconds since the start of a slice, and requests that were complete.
type Point = (f64, f64);

/// The completions of a slice over time, a point for each stretch in which requests completed. The last of them lies on
/// average half a gap before the end of its stretch.
fn course(series: &[SeriesPoint], all: &Measurement) -> Vec<Point> {
    let mut points = vec![(0.0, 0.0)];
    let mut done = 0;
    for stretch in series {
        let completed = stretch.reads + stretch.writes;
        done += completed;
        if completed > 0 {
            // The last request of a stretch seldom completes exactly at its end. With few
            // requests in a stretch, a point at the end would bend a straight course.
            let gap = stretch.length_seconds / completed as f64;
            let last = stretch.start_seconds + stretch.length_seconds - gap / 2.0;
            points.push((last, done as f64));
        }
    }
    // The time of the last completion is known exactly. It does not replace the estimate where
    // the series counts other requests than the measurement.
    if let Some(last) = points.last_mut().filter(|_| done == all.requests && done > 0) {
        *last = (all.seconds, done as f64);
    }
    points
}

/// The point at which the course is furthest above its chord, if two lines describe it and one does not.
fn knee(course: &[Point]) -> Option<usize> {
    let (first, last) = (*course.first()?, *course.last()?);
    let rate = |a: Point, b: Point| (b.1 - a.1) / (b.0 - a.0);
    let above = |a: Point, b: Point, p: Point| p.1 - a.1 - rate(a, b) * (p.0 - a.0);
    let inside = 1..course.len().saturating_sub(1);
    // A fall of the rate bends the course downwards. The point with the greatest distance above
    // the chord is then the place where the two lines meet.
    let at = inside
        .max_by(|a, b| above(first, last, course[*a]).total_cmp(&above(first, last, course[*b])))?;
    let (knee, rise) = (course[at], above(first, last, course[at]));
    let squares = |part: &[Point]| {
        let (a, b) = (part[0], part[part.len() - 1]);
        part.iter().map(|point| above(a, b, *point).powi(2)).sum::<f64>()
    };
    // The distances from the chords on both sides show the noise of the course. A drop that
    // this noise explains must not leave requests out.
    let around = (squares(&course[..=at]) + squares(&course[at..])) / course.len() as f64;
    // A course without noise passes the test of deviations at every bend. So the rate itself
    // must drop by a share as well.
    let slower = rate(first, knee) >= SLOWDOWN_MIN * rate(knee, last);
    (slower && rise >= RISE_MIN + DEVIATIONS_MIN * around.sqrt()).then_some(at)
}

/// The course without its last `tail` requests, or all of it where that leaves too few after `lead`.
fn without_tail(mut course: Vec<Point>, lead: u64, tail: u64) -> Vec<Point> {
    let done = course.last().map_or(0.0, |point| point.1);
    let kept = course.partition_point(|point| point.1 <= done - tail as f64);
    // Few stretches contain the whole of a short slice on a real target. A rate with its end is
    // better than none.
    let from = course.partition_point(|point| point.1 < lead as f64);
    let enough = from < kept && course[kept - 1].1 - course[from].1 >= AFTER_MIN;
    course.truncate(if enough { kept } else { course.len() });
    course
}

/// The part of the slice that counts. `all` are all its requests, `records` those of a whole test, and during the last
/// `tail` completions fewer requests are outstanding.
pub(crate) fn settled(
    all: &Measurement,
    slice: Slice,
    series: &[SeriesPoint],
    (records, tail): (u64, u64),
) -> Option<Measurement> {
    let course = without_tail(course(series, all), slice.lead, tail);
    let end = *course.last()?;
    let lead = course.partition_point(|point| point.1 < slice.lead as f64);
    let mut from = lead.min(course.len() - 1);
    let mut burst = None;
    // Only writes fill a cache. A drop of the rate of reads, such as at a slower zone of a
    // disk, belongs to the test and stays in it.
    if all.test.op() == ProfileOp::Write {
        let mut full = 0;
        // A cache of several levels has several knees. Each search looks at the course after
        // the knee before it, where the faster level is full.
        for _ in 0..KNEES_MAX {
            let Some(at) = knee(&course[full..]) else { break };
            full += at;
        }
        if full > 0 {
            from = from.max(full);
            burst = Some(full);
        }
    }
    let after = end.1 - course[from].1;
    // A rate from fewer than four requests is noise. After a burst a quarter of the slice must
    // show the sustained rate as well, or the slice may have ended within the burst.
    let enough = after >= AFTER_MIN && (burst.is_none() || after >= AFTER_SHARE_MIN * end.1);
    if !enough && burst.is_none() {
        // Too few requests follow the lead. A complete slice then counts with its lead, which
        // is better than no access time. A slice that the time limit cut short does not count.
        let complete = all.requests >= slice.lead + slice.requests;
        return complete.then_some(*all);
    }
    let (requests, seconds) = (after.max(1.0), end.0 - course[from].0);
    let burst = burst.map(|full| {
        // The cache took the writes beyond the sustained rate. At the end of the slice the cache is
        // full, so this difference is what it holds.
        let ahead = (end.1 - end.0 * requests / seconds).max(0.0);
        Burst {
            requests: course[full].1 as u64,
            seconds: course[full].0,
            held_bytes: ahead * all.size_bytes as f64,
            share: (ahead / records.max(1) as f64).min(1.0),
            settled: enough && seconds > 0.0,
        }
    });
    Some(Measurement {
        requests: requests as u64,
        seconds,
        lead: course[from].1 as u64,
        burst,
        ..*all
    })
}

/// A whole test with its burst, which says how other sizes fill the cache. All its requests count.
pub(crate) fn of_whole(all: &Measurement, series: &[SeriesPoint]) -> Measurement {
    let slice = Slice { lead: 0, requests: all.requests };
    let burst = settled(all, slice, series, (all.requests, 0)).and_then(|one| one.burst);
    Measurement { burst, ..*all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::ProfileTest;

    /// The series of writes that take `times` seconds each, in stretches of 1 ms.
    fn played(times: &[f64]) -> (Measurement, Vec<SeriesPoint>) {
        let seconds: f64 = times.iter().sum();
        let mut series: Vec<SeriesPoint> = (0..(seconds * 1e3).ceil() as usize)
            .map(|at| SeriesPoint {
                start_seconds: at as f64 * 1e-3,
                length_seconds: (seconds - at as f64 * 1e-3).min(1e-3),
                ..SeriesPoint::default()
            })
            .collect();
        let mut now = 0.0;
        for time in times {
            now += time;
            let at = ((now * 1e3) as usize).min(series.len() - 1);
            series[at].writes += 1;
        }
        let requests = times.len() as u64;
        let all = Measurement::whole(ProfileTest::RandomWrite, 1 << 20, requests, seconds);
        let all = Measurement { whole: false, ..all };
        (all, series)
    }

    fn found(times: &[f64], lead: u64) -> Measurement {
        let (all, series) = played(times);
        let slice = Slice { lead, requests: times.len() as u64 - lead };
        settled(&all, slice, &series, (1000, 0)).unwrap()
    }

    /// 40 writes of 2 ms, then 100 of 10 ms: 40 - 8 = 32 requests are ahead of the sustained rate, so that a test of
    /// 1000 takes 968 times 10 ms. Tolerance: a stretch of 1 ms in a second.
    #[test]
    fn a_cache_that_fills_is_left_out_and_counted_once() {
        let times = [vec![0.002; 40], vec![0.01; 100]].concat();
        for lead in [0, 8, 60] {
            let one = found(&times, lead);
            let burst = one.burst.unwrap();
            assert!((39..=41).contains(&burst.requests), "{one:?}");
            assert!((burst.held_bytes / f64::from(32 << 20) - 1.0).abs() < 0.02, "{one:?}");
            assert!((one.access_time_ns() / 9.68e6 - 1.0).abs() < 2e-3, "{one:?}");
            assert!(one.lead >= lead.max(39) && burst.settled);
        }
    }

    /// 40 writes of 2 ms and 100 of 10 ms are all the records: they take 1080 ms by definition, whatever the cache held.
    #[test]
    fn a_whole_test_counts_with_its_burst() {
        let (all, series) = played(&[vec![0.002; 40], vec![0.01; 100]].concat());
        let one = of_whole(&Measurement { whole: true, ..all }, &series);
        assert!((one.access_time_ns() / (1.08e9 / 140.0) - 1.0).abs() < 1e-9, "{one:?}");
        assert!((39..=41).contains(&one.burst.unwrap().requests), "{one:?}");
        let (all, series) = played(&[vec![0.002; 60], vec![0.01; 12]].concat());
        let one = of_whole(&Measurement { whole: true, ..all }, &series);
        assert!(one.counts() && !one.burst.unwrap().settled, "{one:?}");
    }

    #[test]
    fn a_slice_that_ends_in_the_burst_does_not_count() {
        let times = [vec![0.002; 60], vec![0.01; 12]].concat();
        let one = found(&times, 4);
        assert!(one.burst.is_some() && !one.counts(), "{one:?}");
    }

    /// At most 5 % of 200 slices of noisy times have a knee (4.5 % measured): a false one leaves some requests out.
    #[test]
    fn noise_is_no_burst() {
        let mut bursts = 0;
        for seed in 0..200 {
            let mut rng = ssdyno_engine::Rng::new(seed, "settle");
            let times: Vec<f64> = (0..80).map(|_| 0.004 + 0.004 * rng.exponential()).collect();
            bursts += u64::from(found(&times, 4).burst.is_some());
        }
        assert!(bursts <= 10, "{bursts}");
    }

    #[test]
    fn reads_leave_their_lead_out() {
        let (all, mut series) = played(&[vec![0.02; 5], vec![0.01; 50]].concat());
        for point in &mut series {
            (point.reads, point.writes) = (point.writes, 0);
        }
        let all = Measurement { test: ProfileTest::SequentialRead, ..all };
        let one = settled(&all, Slice { lead: 5, requests: 50 }, &series, (1000, 0)).unwrap();
        assert_eq!((one.requests, one.lead, one.burst), (50, 5, None));
        assert!((one.access_time_ns() / 1e7 - 1.0).abs() < 5e-3, "{one:?}");
    }

    /// The queue empties at the end: 50 completions every 10 ms, then 7 every 80 ms, as one disk of eight after the
    /// other has nothing to do. A slice that is no longer than that keeps its end.
    #[test]
    fn completions_of_an_emptying_queue_are_left_out() {
        let (all, series) = played(&[vec![0.01; 58], vec![0.08; 7]].concat());
        let slice = Slice { lead: 8, requests: 57 };
        let one = settled(&all, slice, &series, (1000, 7)).unwrap();
        assert_eq!((one.requests, one.lead), (50, 8), "{one:?}");
        assert!((one.access_time_ns() / 1e7 - 1.0).abs() < 5e-3, "{one:?}");
        let (all, series) = played(&[0.08; 10]);
        let short = settled(&all, Slice { lead: 2, requests: 8 }, &series, (1000, 7)).unwrap();
        assert_eq!(short.requests, 8, "{short:?}");
    }
}
