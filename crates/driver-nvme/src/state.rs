//! The state of a driver, and its counters.

use ssdyno_block::MonotonicTime;
use ssdyno_spec::nvme::{AsynchronousEvent, NvmeStatus};

use crate::NvmeError;

/// The state of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriverState {
    /// It was not started, or was stopped.
    Stopped,
    /// It brings the controller up.
    Starting,
    /// It takes commands.
    Ready,
    /// It resets the controller and brings it up again.
    Recovering,
    /// It waits for the last commands, and shuts the controller down or suspends it.
    Stopping,
    /// The controller is suspended; [`resume`](crate::Controller::resume) goes on.
    Suspended,
    /// It gave up.
    Failed(NvmeError),
}

/// Why the driver reset the controller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ResetCause {
    /// A command did not complete, and its abort did not help.
    CommandTimeout,
    /// An admin command did not complete.
    AdminTimeout,
    /// CSTS.CFS was set.
    Fatal,
    /// It did not come up after the reset before.
    NotReady,
    /// It did not come back from the power state that it was suspended in.
    NotAwake,
    /// The driver's user asked for it.
    Requested,
}

/// Something that a driver's user may want to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriverEvent {
    /// The controller reported an event. It reports no further one of the kind until the log page that
    /// it names was read.
    Asynchronous(AsynchronousEvent),
    /// A feature of the configuration was refused; the driver goes on without.
    FeatureRefused {
        /// Its identifier.
        identifier: u8,
        /// Why.
        status: NvmeStatus,
    },
    /// The controller is being reset.
    Reset(ResetCause),
    /// A feature of the configuration was not set, for this controller [cannot bear it](crate::Quirks).
    FeatureWithheld {
        /// Its identifier.
        identifier: u8,
    },
    /// The controller completed a command that was not outstanding: one that it had completed before, whose identifier
    /// may be in use again, or one that was never sent. The completion was dropped. If a queue has several, the last
    /// one is reported; [all are counted](NvmeCounters::strays).
    StrayCompletion {
        /// The queue; 0 is the admin queue.
        queue: u16,
        /// The identifier that it named.
        command: u16,
    },
    /// The namespaces could not be looked for, because the heap or the admin queue had no room; those that
    /// were known before still hold. [`rescan`](crate::Controller::rescan) tries again.
    ScanFailed,
}

/// What the driver did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NvmeCounters {
    /// I/O commands given to the controller; a long request counts as several.
    pub commands: u64,
    /// I/O completions taken.
    pub completions: u64,
    /// I/O commands that had no completion when they were given up, after a reset or a removal. Of a long
    /// request those alone that the controller did not answer.
    pub abandoned: u64,
    /// Writes of submission tail doorbells of I/O queues.
    pub submission_doorbells: u64,
    /// Writes of completion head doorbells of I/O queues.
    pub completion_doorbells: u64,
    /// Completions that the watchdog found, because no interrupt had come.
    pub lost_interrupts: u64,
    /// Aborts sent.
    pub aborts: u64,
    /// Resets.
    pub resets: u64,
    /// Completions of no outstanding command, which are dropped, or with an impossible head: faults of the controller.
    pub strays: u64,
    /// Events that were never taken and did not fit.
    pub events_lost: u64,
    /// Commands that were looked at to find deadlines: a few for each call of the watchdog, and one for
    /// each command that has ended since.
    pub watchdog_steps: u64,
}

impl core::ops::AddAssign for NvmeCounters {
    fn add_assign(&mut self, more: NvmeCounters) {
        self.commands += more.commands;
        self.completions += more.completions;
        self.abandoned += more.abandoned;
        self.submission_doorbells += more.submission_doorbells;
        self.completion_doorbells += more.completion_doorbells;
        self.lost_interrupts += more.lost_interrupts;
        self.aborts += more.aborts;
        self.resets += more.resets;
        self.strays += more.strays;
        self.events_lost += more.events_lost;
        self.watchdog_steps += more.watchdog_steps;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Stopped,
    /// A reset comes: the queue pairs take their hands off the rings, until this time at the latest.
    Holding {
        until: MonotonicTime,
        cause: ResetCause,
    },
    /// Somebody else has just enabled the controller: CSTS.RDY is to follow, as CC.EN must not be cleared
    /// before (base 2.0c, figure 46).
    Settling {
        until: MonotonicTime,
    },
    /// CC.EN was cleared; CSTS.RDY is to follow.
    Disabling {
        until: MonotonicTime,
    },
    /// The controller is idle; the queue pairs give up what is outstanding.
    Collecting,
    /// CC.EN was set; CSTS.RDY is to follow.
    Enabling {
        until: MonotonicTime,
    },
    /// Admin commands bring the controller up.
    Configuring,
    Ready,
    /// The last commands are waited for.
    Draining,
    /// Admin commands delete the queues.
    Deleting,
    /// Admin commands bring the controller to a power state.
    Sleeping,
    /// It is suspended: `off`, or in a power state.
    Suspended {
        off: bool,
    },
    /// Admin commands bring it back from there.
    Waking,
    /// CC.SHN was set; CSTS.SHST is to follow.
    ShuttingDown {
        until: MonotonicTime,
    },
    /// CC.EN was cleared for the last time.
    Stopping {
        until: MonotonicTime,
    },
    Failed(NvmeError),
}

impl Phase {
    /// The admin queue counts for nothing: CC.EN is clear, may be, or is to be cleared.
    pub(crate) fn is_disabled(self) -> bool {
        !matches!(
            self,
            Phase::Configuring
                | Phase::Ready
                | Phase::Draining
                | Phase::Deleting
                | Phase::Sleeping
                | Phase::Waking
                | Phase::ShuttingDown { .. }
        )
    }

    /// I/O commands complete.
    pub(crate) fn takes_completions(self) -> bool {
        matches!(self, Phase::Ready | Phase::Draining)
    }

    /// Nothing goes on any more.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Phase::Stopped | Phase::Failed(_))
    }
}
