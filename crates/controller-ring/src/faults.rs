//! Faults that the card is told to have.

use ssdyno_block::{Fault, FaultPlan, FaultSite};

/// The plan, and where the card stands in it.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) plan: Option<Box<FaultPlan>>,
    /// The card begins nothing more, until it is reset.
    pub(super) hangs: bool,
    /// Commands started so far.
    started: u64,
}

impl Faults {
    /// A command starts; gives its ordinal.
    #[inline]
    pub(super) fn start(&mut self) -> u64 {
        // The count goes on over a reset. A plan names the commands of a whole run, and a reset
        // in between must not make it hit the first ones again.
        let ordinal = self.started;
        self.started += 1;
        ordinal
    }

    #[inline]
    pub(super) fn is_armed(&self) -> bool {
        self.plan.is_some()
    }

    /// The fault that hits the command of this ordinal.
    #[inline]
    pub(super) fn of_command(&mut self, ordinal: u64) -> Option<Fault> {
        self.plan.as_mut().and_then(|plan| plan.meets(FaultSite::Command, ordinal))
    }

    /// True if the interrupt of this ordinal gets lost.
    #[inline]
    pub(super) fn lose_interrupt(&mut self, ordinal: u64) -> bool {
        self.plan.as_mut().is_some_and(|plan| plan.meets(FaultSite::Interrupt, ordinal).is_some())
    }
}
