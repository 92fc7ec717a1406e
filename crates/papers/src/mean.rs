//! Means over seeds.

/// A mean over seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Mean {
    pub(crate) mean: f64,
    /// Half of the 95 % interval; infinite with one seed.
    pub(crate) half: f64,
}

// With three seeds the normal factor of 1.96 would give intervals that are less than half as wide
// as Student's 4.303.
/// Student's t at 95 %, two-sided, by degrees of freedom from 1 on; normal above.
const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

impl Mean {
    /// The mean of `values`; `None` without any.
    pub(crate) fn of(values: &[f64]) -> Option<Mean> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        // An infinite interval makes every comparison undecided. A half width of zero would claim
        // certainty from a single seed.
        if n == 1 {
            return Some(Mean { mean, half: f64::INFINITY });
        }
        let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let student = STUDENT.get(n - 2).copied().unwrap_or(1.96);
        Some(Mean { mean, half: student * (square / n as f64).sqrt() })
    }

    /// A number without chance.
    pub(crate) fn exact(mean: f64) -> Mean {
        Mean { mean, half: 0.0 }
    }

    /// `share` of it.
    pub(crate) fn times(self, share: f64) -> Mean {
        Mean { mean: self.mean * share, half: self.half * share }
    }

    /// The ratio; its interval is as wide as the two together.
    pub(crate) fn over(self, other: Mean) -> Mean {
        let mean = self.mean / other.mean;
        let share = |of: Mean| if of.half == 0.0 { 0.0 } else { of.half / of.mean.abs() };
        // Relative widths are added, as for errors that are not independent: both figures come from
        // the same seeds. The sum is the safe bound.
        let shares = share(self) + share(other);
        Mean { mean, half: if shares == 0.0 { 0.0 } else { mean.abs() * shares } }
    }

    /// `123.4 ± 0.5`.
    pub(crate) fn text(self, digits: usize) -> String {
        let Mean { mean, half } = self;
        match half {
            half if half.is_infinite() => format!("{mean:.digits$}"),
            half => format!("{mean:.digits$} ± {half:.digits$}"),
        }
    }
}

/// `mean` in a table.
pub(crate) fn shown(mean: Option<Mean>, digits: usize) -> String {
    mean.map_or_else(|| "not run".to_owned(), |mean| mean.text(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_is_students() {
        assert_eq!(Mean::of(&[]), None);
        assert_eq!(Mean::of(&[3.0]).unwrap().half, f64::INFINITY);
        // Five values with variance 2.5: 2.776 * sqrt(2.5 / 5).
        let mean = Mean::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((mean.mean - 3.0).abs() < 1e-12 && (mean.half - 1.9629).abs() < 1e-3);
        assert_eq!(mean.text(1), "3.0 ± 2.0");
        let ratio = Mean { mean: 30.0, half: 3.0 }.over(Mean { mean: 10.0, half: 0.5 });
        assert!((ratio.mean - 3.0).abs() < 1e-12 && (ratio.half - 0.45).abs() < 1e-12);
        assert_eq!(Mean::exact(0.0).over(Mean::exact(2.0)), Mean::exact(0.0));
    }
}
