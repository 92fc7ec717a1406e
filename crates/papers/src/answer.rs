//! What runs say of a statement, by one rule for all of them.
//!
//! Two figures are *told apart* where they differ by more than [`SLACK`], a share, and the uncertainty of
//! both over the seeds. Of the statement that one is larger that gives: it holds where the one is larger
//! and they can be told apart, does not hold where it is smaller and they can, and is undecided where they
//! cannot. Of the statement that both are the same: it holds where they surely lie within the slack, does
//! not hold where they surely do not, and is undecided between.
//!
//! Counts, bounds and invariants have no slack: see [`Answer::from`].

use crate::mean::Mean;

/// Share by which two figures must differ to be told apart: what costs and times that are known to their
/// order leave of a difference.
pub(crate) const SLACK: f64 = 0.03;

/// What the runs at one setting of the assumed values say of a statement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Answer {
    /// It does not hold.
    No,
    /// It is too near to its boundary to say.
    Near,
    /// It holds.
    Yes,
}

/// Of what is exact: counts, bounds, invariants.
impl From<bool> for Answer {
    fn from(holds: bool) -> Answer {
        if holds { Answer::Yes } else { Answer::No }
    }
}

/// Both statements: as good as the weaker one.
impl std::ops::BitAnd for Answer {
    type Output = Answer;
    fn bitand(self, other: Answer) -> Answer {
        self.min(other)
    }
}

/// One of them: as good as the stronger one.
impl std::ops::BitOr for Answer {
    type Output = Answer;
    fn bitor(self, other: Answer) -> Answer {
        self.max(other)
    }
}

/// The opposite statement.
impl std::ops::Not for Answer {
    type Output = Answer;
    fn not(self) -> Answer {
        match self {
            Answer::Yes => Answer::No,
            Answer::Near => Answer::Near,
            Answer::No => Answer::Yes,
        }
    }
}

impl Answer {
    /// `by` is how far a statement is on its right side of a boundary, known to `unsure`. What is no
    /// number is undecided.
    fn at(by: f64, unsure: f64) -> Answer {
        // A comparison with NaN is false, so a figure that is no number falls through both tests
        // and becomes undecided. A missing run can therefore never confirm a claim.
        if by > unsure {
            Answer::Yes
        } else if by < -unsure {
            Answer::No
        } else {
            Answer::Near
        }
    }

    /// All of them: as good as the weakest; `None` if there is none, or one is not known.
    pub(crate) fn all(answers: impl IntoIterator<Item = Option<Answer>>) -> Option<Answer> {
        // One unknown answer makes the whole unknown. A minimum over the known ones could state
        // that a claim holds although half of it was not run.
        let known: Option<Vec<Answer>> = answers.into_iter().collect();
        known?.into_iter().min()
    }
}

/// `a` is larger than `b`.
pub(crate) fn more(a: Mean, b: Mean) -> Answer {
    // The slack is relative to `b`, because assumed costs scale with the figure. Both half widths
    // are added and not combined as squares: the intervals of one seed list are not independent.
    Answer::at(a.mean - b.mean, SLACK * b.mean.abs() + a.half + b.half)
}

/// `a` is as much as `b`, or more.
pub(crate) fn no_less(a: Mean, b: Mean) -> Answer {
    Answer::at(a.mean - b.mean + SLACK * b.mean.abs(), a.half + b.half)
}

/// `a` and `b` are the same.
pub(crate) fn same(a: Mean, b: Mean) -> Answer {
    no_less(a, b) & no_less(b, a)
}

/// `values` rise from the first to the last, and none falls behind the one before.
pub(crate) fn rising(values: &[Mean]) -> Option<Answer> {
    // Each step may stay equal within the slack, but the series as a whole must rise. Otherwise a
    // flat series would count as rising.
    let whole = more(*values.last()?, *values.first()?);
    Answer::all(values.windows(2).map(|two| Some(no_less(two[1], two[0])))).map(|all| all & whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: f64) -> Mean {
        Mean::exact(value)
    }

    /// The case: 0.1 % and 2.4 % below are as little *below* as 2.4 % above is *above*.
    #[test]
    fn what_cannot_be_told_apart_is_undecided() {
        for near in [97.6, 99.9, 100.0, 102.4] {
            assert_eq!(more(exact(near), exact(100.0)), Answer::Near, "{near}");
            assert_eq!(same(exact(near), exact(100.0)), Answer::Yes, "{near}");
        }
        assert_eq!(more(exact(104.0), exact(100.0)), Answer::Yes);
        assert_eq!(more(exact(96.0), exact(100.0)), Answer::No);
        assert_eq!(same(exact(96.0), exact(100.0)), Answer::No);
        assert_eq!(no_less(exact(98.0), exact(100.0)), Answer::Yes);
        assert_eq!(no_less(exact(96.0), exact(100.0)), Answer::No);
        assert_eq!(more(exact(f64::NAN), exact(1.0)), Answer::Near);
    }

    #[test]
    fn uncertainty_of_the_seeds_widens_what_is_undecided() {
        let about = |mean, half| Mean { mean, half };
        assert_eq!(more(about(104.0, 2.0), about(100.0, 0.0)), Answer::Near);
        assert_eq!(more(about(106.0, 2.0), about(100.0, 0.0)), Answer::Yes);
        // Within the slack by the mean, not surely.
        assert_eq!(same(about(102.0, 2.0), about(100.0, 0.0)), Answer::Near);
        assert_eq!(same(about(101.0, 1.0), about(100.0, 0.0)), Answer::Yes);
        // However wide in itself, an interval far below a bound is below it.
        assert_eq!(no_less(about(1.4, 0.0), about(0.07, 0.09)), Answer::Yes);
        // One seed tells nothing about uncertainty.
        assert_eq!(more(about(200.0, f64::INFINITY), about(100.0, 0.0)), Answer::Near);
    }

    #[test]
    fn answers_join_as_statements_do() {
        use Answer::{Near, No, Yes};
        assert_eq!((Yes & Near, Near & No, Yes & No), (Near, No, No));
        assert_eq!((Yes | Near, Near | No, !Yes, !Near), (Yes, Near, No, Near));
        assert_eq!(Answer::all([Some(Yes), Some(Near)]), Some(Near));
        assert_eq!(Answer::all([Some(Yes), None]), None);
        assert_eq!(Answer::all([]), None);
    }

    #[test]
    fn a_series_rises_as_a_whole() {
        let series = |values: &[f64]| values.iter().copied().map(Mean::exact).collect::<Vec<_>>();
        assert_eq!(rising(&series(&[1.0, 1.01, 2.0])), Some(Answer::Yes));
        assert_eq!(rising(&series(&[1.0, 2.0, 1.8])), Some(Answer::No));
        assert_eq!(rising(&series(&[1.0, 1.01, 1.02])), Some(Answer::Near));
        assert_eq!(rising(&[]), None);
    }
}
