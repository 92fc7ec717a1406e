//! The straight line through measured access times (S2-5).

/// A line through points by least squares, kept as the weight that each point has in a prediction.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    sizes: Vec<f64>,
    times: Vec<f64>,
    mean_size: f64,
    /// Sum of squared distances of sizes from their mean.
    squares: f64,
}

impl Line {
    /// The line through `points` of size in bytes and access time in any unit; `None` with fewer than two
    /// different sizes.
    pub fn through(points: &[(u64, f64)]) -> Option<Line> {
        let sizes: Vec<f64> = points.iter().map(|point| point.0 as f64).collect();
        let mean_size = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let squares: f64 = sizes.iter().map(|size| (size - mean_size).powi(2)).sum();
        let times = points.iter().map(|point| point.1).collect();
        // Repetitions of a single size have no slope.
        // `weights` would divide zero by zero.
        (squares > 0.0).then_some(Line { sizes, times, mean_size, squares })
    }

    /// The contribution of each point to the prediction at `size`, in the order of the points. They sum to 1.
    pub fn weights(&self, size: u64) -> Vec<f64> {
        let share = 1.0 / self.sizes.len() as f64;
        let lever = (size as f64 - self.mean_size) / self.squares;
        self.sizes.iter().map(|at| share + lever * (at - self.mean_size)).collect()
    }

    /// The time on the line at `size`.
    pub fn at(&self, size: u64) -> f64 {
        self.weights(size).iter().zip(&self.times).map(|(weight, time)| weight * time).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slope and intercept by the normal equations, for points whose sums are done by hand.
    #[test]
    fn it_is_the_closed_form() {
        // Sums: x 10, y 26, xy 83, xx 30: slope (4*83 - 10*26) / (4*30 - 100) = 3.6, intercept -2.5.
        let line = Line::through(&[(1, 2.0), (2, 4.0), (3, 7.0), (4, 13.0)]).unwrap();
        for (size, time) in [(0, -2.5), (1, 1.1), (10, 33.5)] {
            assert!((line.at(size) - time).abs() < 1e-12, "{size}: {}", line.at(size));
        }
        assert!((line.weights(9).iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn two_points_are_joined_and_one_is_no_line() {
        let line = Line::through(&[(8192, 100.0), (65_536, 800.0)]).unwrap();
        assert!((line.at(8192) - 100.0).abs() < 1e-9 && (line.at(36_864) - 450.0).abs() < 1e-9);
        assert_eq!(Line::through(&[(8192, 100.0)]), None);
        assert_eq!(Line::through(&[(8192, 100.0), (8192, 120.0)]), None);
        assert_eq!(Line::through(&[]), None);
    }
}
