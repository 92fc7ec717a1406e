//! Ending a run that surely breaks a bound.

use ssdyno_figures::{BrokenBound, FigureBound};

use crate::until::{Evidence, Precise};

/// Watches a run until a figure surely breaks a bound.
///
/// It looks after the same numbers of requests as [`Precise`]. For the same reason, the whole interval must be beyond
/// the bound at [`Precise::LOOKS`] consecutive looks: with one look each, chance would stop one in twenty designs at
/// its bound, and with many looks more. No clock takes part, so that a run ends at the same request each time.
#[derive(Clone, Debug)]
pub struct Hopeless {
    /// Each bound, and at how many looks in a row it was broken.
    bounds: Vec<(FigureBound, u32)>,
    next_at: u64,
    broken: Option<BrokenBound>,
}

impl Hopeless {
    /// Watches for `bounds`; `None` without any.
    pub fn new(bounds: &[FigureBound]) -> Option<Hopeless> {
        let bounds: Vec<_> = bounds.iter().map(|bound| (*bound, 0)).collect();
        let watcher = Hopeless { bounds, next_at: Precise::LEAST, broken: None };
        (!watcher.bounds.is_empty()).then_some(watcher)
    }

    /// Whether it is time for another look: `completed` requests have.
    #[inline]
    pub fn due(&self, completed: u64) -> bool {
        completed >= self.next_at
    }

    /// Looks; true if a bound is broken for good.
    pub fn look(&mut self, completed: u64, evidence: &Evidence) -> bool {
        // Looks a quarter of the run apart stay few in a run of any length. They depend on
        // requests alone and on no clock.
        self.next_at = completed + completed / 4;
        for (bound, looks) in &mut self.bounds {
            // The interval and not the figure is compared with the bound. A figure beyond the bound
            // proves nothing while its interval still reaches to the other side.
            let interval = evidence.interval(bound.metric);
            let beyond = interval.filter(|interval| bound.is_broken_by(interval));
            *looks = if beyond.is_some() { *looks + 1 } else { 0 };
            if let Some(interval) = beyond.filter(|_| *looks >= Precise::LOOKS) {
                let bound = *bound;
                self.broken = Some(BrokenBound { bound, interval, requests: completed });
                return true;
            }
        }
        false
    }

    /// The bound that is broken, once [`look`](Hopeless::look) said so.
    pub fn broken(&self) -> Option<BrokenBound> {
        self.broken
    }
}
