//! Access times with their intervals, measured and on a line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::fit::Line;
use crate::measure::{Measurements, ProfileTest};
use crate::sizes::Sizes;

/// Probability with which an interval covers the true mean: the paper's 90 % (S2-10).
pub const LEVEL: f64 = 0.9;

/// A mean and the half width of its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the two-sided interval of Student's t at [`LEVEL`]; `None` with one repetition.
    pub half_width: Option<f64>,
}

/// Two-sided quantile of Student's t at [`LEVEL`], of the normal distribution with infinite degrees of freedom; `None`
/// below one.
pub(crate) fn student(freedom: f64) -> Option<f64> {
    const NORMAL: f64 = 1.644_853_627;
    // The inverse does not return for billions of degrees of freedom, which a damaged file may
    // claim. The first term of Cornish and Fisher is right to 1e-8 here (Abramowitz and
    // Stegun, 26.7.5).
    if freedom > 1e4 {
        return Some(NORMAL + (NORMAL.powi(3) + NORMAL) / 4.0 / freedom);
    }
    let t = StudentsT::new(0.0, 1.0, freedom).ok().filter(|_| freedom >= 1.0)?;
    Some(t.inverse_cdf(0.5 + LEVEL / 2.0))
}

/// Independent variances, each with its degrees of freedom.
pub(crate) trait Variances: Iterator<Item = (f64, f64)> + Clone {
    /// Degrees of freedom of their sum by F. E. Satterthwaite (Biometrics Bulletin 2, 1946): between the fewest of one and
    /// those of all. With few variances that may differ it is careful.
    fn satterthwaite(self) -> f64 {
        self.freedom_of_sum(0.0)
    }

    /// The same by B. L. Welch (Biometrika 34, 1947). Where one degree of freedom has many variances, Satterthwaite finds
    /// half of all degrees.
    fn welch(self) -> f64 {
        self.freedom_of_sum(2.0)
    }

    /// The square of a variance is on average greater than that of the true one, by 2 of `freedom`: `bias` takes it out.
    fn freedom_of_sum(self, bias: f64) -> f64 {
        let sum: f64 = self.clone().map(|(variance, _)| variance).sum();
        let square = |(variance, freedom): (f64, f64)| variance * variance / (freedom + bias);
        let squares: f64 = self.clone().map(square).sum();
        let least = self.clone().map(|(_, freedom)| freedom).fold(f64::INFINITY, f64::min);
        let most: f64 = self.map(|(_, freedom)| freedom).sum();
        if squares > 0.0 { (sum * sum / squares - bias).clamp(least, most) } else { most }
    }
}

impl<T: Iterator<Item = (f64, f64)> + Clone> Variances for T {}

/// Mean, variance of the mean and degrees of freedom.
fn moments(values: &[f64]) -> (f64, f64, usize) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let freedom = values.len().saturating_sub(1);
    (mean, if freedom > 0 { squares / freedom as f64 / count } else { 0.0 }, freedom)
}

/// The mean of independent repetitions; `None` without one.
pub fn estimate_of(values: &[f64]) -> Option<Estimate> {
    let (mean, variance, freedom) = moments(values);
    let half_width = student(freedom as f64).map(|t| t * variance.sqrt());
    (!values.is_empty()).then_some(Estimate { mean, half_width })
}

/// The access time of a test with one request size.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Size of every request.
    pub size_bytes: u64,
    /// Time per request; the mean of the repetitions, or the value on the line.
    pub access_time_ns: f64,
    /// Lower end of the 90 % interval; `null` without repetitions. On a line it follows from the spread of the measured
    /// points alone, not from the fit of the line.
    pub low: Option<f64>,
    /// Upper end of the 90 % interval; `null` without repetitions.
    pub high: Option<f64>,
    /// Whether the time was measured and not estimated.
    pub measured: bool,
    /// Number of measurements; 0 for an estimate.
    pub repetitions: u32,
}

impl CurvePoint {
    fn new(size_bytes: u64, estimate: Estimate, repetitions: usize) -> CurvePoint {
        let Estimate { mean, half_width } = estimate;
        CurvePoint {
            size_bytes,
            access_time_ns: mean,
            low: half_width.map(|half| (mean - half).max(0.0)),
            high: half_width.map(|half| mean + half),
            measured: repetitions > 0,
            repetitions: repetitions as u32,
        }
    }

    /// Half the width of the interval divided by the estimate; `None` without an interval.
    pub fn relative_half_width(&self) -> Option<f64> {
        Some((self.high? - self.access_time_ns) / self.access_time_ns)
    }
}

/// The point of a size that was measured; `None` where it was not.
pub(crate) fn measured(
    test: ProfileTest,
    size_bytes: u64,
    so_far: &Measurements,
) -> Option<CurvePoint> {
    let times = so_far.times(test, size_bytes);
    Some(CurvePoint::new(size_bytes, estimate_of(times)?, times.len()))
}

/// The whole curve of `test`: sizes that were measured, and between them those on the line through the measured
/// sizes of their interval (S2-5). A size of several intervals is on the line of the first one that has a line.
/// Left out: sizes without a line, and those where it is not above zero.
pub(crate) fn curve_on_lines(
    test: ProfileTest,
    sizes: &Sizes,
    so_far: &Measurements,
) -> Vec<CurvePoint> {
    let lines: Vec<(Vec<u64>, Option<IntervalLine>)> = sizes
        .intervals()
        .iter()
        .map(|interval| {
            let sizes = interval.sizes();
            let line = IntervalLine::new(test, &sizes, so_far);
            (sizes, line)
        })
        .collect();
    // A size may belong to two intervals, as 64 KiB does by default (S2-8). The first interval
    // with a line decides, so that a size has one value.
    let estimated = |size: u64| {
        let mut having = lines.iter().filter(|(sizes, _)| sizes.binary_search(&size).is_ok());
        let estimate = having.find_map(|(_, line)| line.as_ref())?.at(size);
        // A line through few sizes may fall below zero. A negative access time would make a
        // negative ratio.
        (estimate.mean > 0.0).then(|| CurvePoint::new(size, estimate, 0))
    };
    let all = sizes.distinct().iter();
    all.filter_map(|size| measured(test, *size, so_far).or_else(|| estimated(*size))).collect()
}

/// The line of one interval, and how the repetitions of its points spread.
struct IntervalLine {
    line: Line,
    spreads: Vec<Spread>,
}

/// How the repetitions of a point spread.
struct Spread {
    mean: f64,
    /// Variance of the mean; 0 with one repetition.
    variance: f64,
    /// Repetitions but one.
    freedom: f64,
}

impl IntervalLine {
    fn new(test: ProfileTest, sizes: &[u64], so_far: &Measurements) -> Option<IntervalLine> {
        let (mut points, mut spreads) = (Vec::new(), Vec::new());
        for size in sizes {
            let times = so_far.times(test, *size);
            if !times.is_empty() {
                let (mean, variance, freedom) = moments(times);
                points.push((*size, mean));
                spreads.push(Spread { mean, variance, freedom: freedom as f64 });
            }
        }
        Some(IntervalLine { line: Line::through(&points)?, spreads })
    }

    fn at(&self, size: u64) -> Estimate {
        let weights = self.line.weights(size);
        let half_width = self.half_width(&weights);
        Estimate { mean: self.line.at(size), half_width }
    }

    /// Of a weighted sum of the means of the points; `None` if no point was repeated.
    fn half_width(&self, weights: &[f64]) -> Option<f64> {
        let all = || weights.iter().zip(&self.spreads);
        // A point with one repetition does not show its spread. It counts as spread like the
        // others in proportion to its time: a variance of zero would make the line exact there.
        let single = all().filter(|(_, one)| one.freedom == 0.0);
        let single: f64 = single.map(|(weight, one)| (weight * one.mean).powi(2)).sum();
        let freedom: f64 = self.spreads.iter().map(|one| one.freedom).sum();
        // The points are independent, so their variances add with the squares of the weights.
        // Each keeps its own degrees of freedom: near a point its few repetitions alone count.
        let variances = all().filter(|(_, one)| one.freedom > 0.0).map(|(weight, one)| {
            let repetition = one.variance * (one.freedom + 1.0) / (one.mean * one.mean);
            let lent = single * repetition * one.freedom / freedom;
            (weight * weight * one.variance + lent, one.freedom)
        });
        let sum: f64 = variances.clone().map(|(variance, _)| variance).sum();
        (freedom > 0.0).then(|| student(variances.satterthwaite()))?.map(|t| t * sum.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measurement;
    use crate::sizes::SizeInterval;

    const TEST: ProfileTest = ProfileTest::RandomRead;

    fn with(points: &[(u64, f64)]) -> Measurements {
        let mut all = Measurements::default();
        for (size_bytes, microseconds) in points {
            let seconds = microseconds * 1e-3;
            all.add(Measurement::whole(TEST, *size_bytes, 1000, seconds));
        }
        all
    }

    /// Student's t with five degrees of freedom at 90 %, two-sided, is 2.015 (tables).
    #[test]
    fn the_interval_is_that_of_students_t() {
        let estimate = estimate_of(&[9.0, 10.0, 11.0, 9.0, 10.0, 11.0]).unwrap();
        let deviation = (4.0_f64 / 5.0).sqrt();
        let expected = 2.015_048 * deviation / 6.0_f64.sqrt();
        assert!((estimate.half_width.unwrap() - expected).abs() < 1e-5, "{estimate:?}");
        assert_eq!(estimate_of(&[3.0]), Some(Estimate { mean: 3.0, half_width: None }));
        assert_eq!(estimate_of(&[]), None);
    }

    #[test]
    fn a_shared_size_is_measured_and_lines_end_where_points_do() {
        let interval = |text: &str| text.parse::<SizeInterval>().unwrap();
        let sizes = Sizes::new(&[interval("1KiB..3KiB/1KiB"), interval("3KiB..7KiB/2KiB")]);
        let all = with(&[(1024, 10.0), (3072, 30.0), (7168, 110.0)]);
        let curve = curve_on_lines(TEST, &sizes, &all);
        let found: Vec<(u64, f64, bool)> = curve
            .iter()
            .map(|point| (point.size_bytes >> 10, point.access_time_ns / 1e3, point.measured))
            .collect();
        let expected = [(1, 10.0, true), (2, 20.0, false), (3, 30.0, true), (5, 70.0, false)];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found.0, found.2) == (expected.0, expected.2), "{found:?}");
            assert!((found.1 - expected.1).abs() < 1e-9, "{found:?}");
        }
        assert_eq!(found.len(), 5);
        assert!(curve.iter().all(|point| point.low.is_none()), "nothing was repeated");
        // A profile that was stopped: one point is no line, and its interval has only that.
        let curve = curve_on_lines(TEST, &sizes, &with(&[(1024, 10.0), (3072, 30.0)]));
        assert_eq!(curve.len(), 3);
        assert!(curve_on_lines(TEST, &sizes, &with(&[])).is_empty());
    }

    /// In the middle of two points each counts half: the variance of the estimate is a quarter of their sum.
    #[test]
    fn spread_of_points_is_carried_along_the_line() {
        let sizes = Sizes::new(&["1KiB..3KiB/1KiB".parse().unwrap()]);
        let all = with(&[(1024, 9.0), (1024, 11.0), (3072, 28.0), (3072, 32.0)]);
        let curve = curve_on_lines(TEST, &sizes, &all);
        // Variances of the means: 1 and 4, of which a quarter counts. Satterthwaite's degrees of
        // freedom are 5^2 / (1^2 + 4^2), and Student's t with them is 3.779831 (integrated).
        let half = 3.779_831 * (5.0_f64 / 4.0).sqrt();
        let middle = curve[1];
        assert!((middle.high.unwrap() / 1e3 - (20.0 + half)).abs() < 1e-4, "{middle:?}");
        assert!((middle.relative_half_width().unwrap() - half / 20.0).abs() < 1e-6);
        assert_eq!(curve[0].repetitions, 2);
    }
    /// Shares of 2000 lines of points with this many repetitions whose 90 % interval covers the true line at `share` of
    /// the way from the first point to the last. The noise of a point is normal with its relative deviation.
    fn coverage(seed: u64, points: &[(f64, usize)], share: f64) -> f64 {
        let sizes: Vec<u64> = (0..=points.len() as u64 * 8).map(|at| (at + 1) << 13).collect();
        let truth = |size: u64| 20.0 + size as f64 / 4096.0;
        let mut rng = ssdyno_engine::Rng::new(seed, "coverage of a line");
        let mut normal = || {
            let (radius, turn) = ((2.0 * rng.exponential()).sqrt(), rng.unit());
            radius * (std::f64::consts::TAU * turn).cos()
        };
        let last = sizes.len() - 1;
        let at = sizes[(share * last as f64).round() as usize];
        let mut covered = 0;
        for _ in 0..2000 {
            let mut times = Vec::new();
            for (point, (deviation, repetitions)) in points.iter().enumerate() {
                let size = sizes[point * last / (points.len() - 1)];
                let noisy = |_| (size, truth(size) * (1.0 + deviation * normal()));
                times.extend((0..*repetitions).map(noisy));
            }
            let known = IntervalLine::new(TEST, &sizes, &with(&times)).unwrap().at(at);
            let half = known.half_width.unwrap();
            covered += u32::from((known.mean / 1e3 - truth(at)).abs() <= half / 1e3);
        }
        f64::from(covered) / 2000.0
    }

    /// Near both ends and in the middle of lines of two and three points (seed 5; three standard errors of a share are
    /// 0.02). The last two were interrupted in the second pass. Sums of degrees of freedom covered 79 % with two
    /// points, and a variance of zero for a point with one repetition covered 29 %. With two repetitions Satterthwaite's
    /// approximation may be 2 % short of 90 %, and where one point decides it is up to 5 % careful.
    #[test]
    fn intervals_on_a_line_cover_what_they_say() {
        let equal = [(0.02, 2), (0.02, 2)];
        let unequal = [(0.01, 2), (0.04, 2)];
        let many = [(0.02, 5), (0.02, 5), (0.02, 5)];
        let stopped = [(0.02, 2), (0.02, 2), (0.02, 1)];
        let two = [(0.02, 2), (0.02, 1)];
        let all: [(&[(f64, usize)], f64); 5] =
            [(&equal, 0.02), (&unequal, 0.02), (&many, 0.0), (&stopped, 0.0), (&two, 0.0)];
        let error = 3.0 * (0.09_f64 / 2000.0).sqrt();
        for (points, short) in all {
            for share in [0.05, 0.5, 0.95] {
                let covered = coverage(5, points, share);
                let range = 0.9 - short - error..=0.95 + error;
                assert!(range.contains(&covered), "{points:?} at {share}: {covered}");
            }
        }
    }
}
