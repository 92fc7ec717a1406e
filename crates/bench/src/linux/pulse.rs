//! The messages between a job and the supervisor of all jobs during the run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ssdyno_figures::LiveSnapshot;
use ssdyno_record::Tape;

use crate::ramp::Ramp;

/// The progress of a job: the job writes it, and the supervisor reads it.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    pub(crate) issued: AtomicU64,
    pub(crate) completed: AtomicU64,
    /// Sum over completed requests.
    pub(crate) latency_ns: AtomicU64,
    /// The supervisor wants a new `glance`.
    pub(crate) asked: AtomicBool,
    /// The recording at the last request for it.
    pub(crate) glance: Mutex<LiveSnapshot>,
}

impl Pulse {
    /// Passes the recording so far to the supervisor.
    #[cold]
    pub(crate) fn tell(&self, tape: &Tape) {
        self.asked.store(false, Ordering::Relaxed);
        *self.glance.lock().unwrap_or_else(PoisonError::into_inner) = tape.glance();
    }
}

/// The state that a job shares with the other jobs and the supervisor.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// Nothing more is issued.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) ramp: Arc<Ramp>,
    pub(crate) pulse: Arc<Pulse>,
    /// What was recorded. The supervisor takes it away from a job that hangs; the job then waits
    /// for its requests without recording.
    pub(crate) tape: Arc<Mutex<Option<Tape>>>,
}
