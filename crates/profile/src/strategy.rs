//! The decisions of a method: the next test, and the curves.

use crate::estimate::CurvePoint;
use crate::findings::Findings;
use crate::measure::{Measurement, Measurements, ProfileTest};
use crate::stopped::StoppedBecause;

/// Part of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Requests before those that count: they pay for the change from another pattern, and fill a write cache.
    pub lead: u64,
    /// Requests that count.
    pub requests: u64,
}

impl Slice {
    /// Long enough for `depth` requests outstanding: the lead fills the queue, and [`tail`] requests more empty it.
    pub(crate) fn at_depth(self, depth: u32) -> Slice {
        let lead = self.lead.max(u64::from(depth));
        let requests = self.requests.max(8 * u64::from(depth)).saturating_add(tail(depth));
        Slice { lead, requests }
    }
}

/// Completions at the end of a slice that do not count: no request is issued for them, so fewer than `depth` are
/// outstanding. At depth 8 they made random reads of a device with fixed times 8 % too slow (8.1 ms in place of 7.5).
pub(crate) fn tail(depth: u32) -> u64 {
    u64::from(depth.saturating_sub(1))
}

/// What a strategy wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextTest {
    /// Measure `test`, or a slice of it, with requests of `size_bytes`.
    Measure {
        /// The test.
        test: ProfileTest,
        /// One of the sizes of the plan.
        size_bytes: u64,
        /// A slice of the test; `None`: every record of the span.
        slice: Option<Slice>,
    },
    /// Nothing any more, and why.
    Done(StoppedBecause),
}

/// A way to profile: it is asked for the next test until it is done or is stopped, and then for the curves. It sees
/// what was measured and has no clock and no target, so the same measurements always give the same decisions.
pub trait Strategy {
    /// The next test, given everything measured so far. It is called once after each test, also after one that
    /// the time limit left without a measurement.
    fn next(&mut self, so_far: &Measurements) -> NextTest;

    /// Takes over what earlier sessions measured, each with its measurements in their order. Called once, before
    /// anything else; everything measured later follows these.
    fn resume(&mut self, sessions: &[&[Measurement]]);

    /// How many tests will probably follow, at least 1 while it is not done: for progress and for sharing the
    /// time that is left.
    fn tests_left(&self, so_far: &Measurements) -> u64;

    /// Whether each test may take only its share of the time that is left. Otherwise a test may take all of it.
    fn shares_time(&self) -> bool;

    /// The access times of `test`, ascending by size, each size at most once. A size about which nothing is
    /// known is left out.
    fn curve(&self, test: ProfileTest, so_far: &Measurements) -> Vec<CurvePoint>;

    /// Verdict, breakpoints and lack of fit; nothing by methods that do not look for them.
    fn findings(&self, _: &Measurements) -> Findings {
        Findings::default()
    }

    /// Median relative standard deviation of the repetitions that count; `None` where nothing was repeated.
    fn noise_floor(&self, so_far: &Measurements) -> Option<f64> {
        so_far.noise_floor()
    }

    /// Notes that a reader of the figures needs.
    fn notes(&self, so_far: &Measurements) -> Vec<String>;
}
