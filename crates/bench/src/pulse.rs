//! What a job and the supervisor of all jobs tell one another while the run goes on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ssdyno_figures::LiveSnapshot;
use ssdyno_record::Tape;

use crate::ramp::Ramp;

/// How far a job is: written by it, read by the one who watches.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    pub(crate) issued: AtomicU64,
    pub(crate) completed: AtomicU64,
    /// Sum over completed requests.
    pub(crate) latency_ns: AtomicU64,
    /// Whoever watches would like a new `glance`.
    pub(crate) asked: AtomicBool,
    /// What was recorded when it was last asked for.
    pub(crate) glance: Mutex<LiveSnapshot>,
}

impl Pulse {
    /// Lets who watches know what is recorded so far.
    #[cold]
    pub(crate) fn tell(&self, tape: &Tape) {
        self.asked.store(false, Ordering::Relaxed);
        *self.glance.lock().unwrap_or_else(PoisonError::into_inner) = tape.glance();
    }
}

/// What a job shares with the others and with the one who watches.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// Nothing more is issued.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) ramp: Arc<Ramp>,
    pub(crate) pulse: Arc<Pulse>,
    /// What was recorded. Whoever watches takes it away from a job that hangs; the job then
    /// waits for its requests without recording.
    pub(crate) tape: Arc<Mutex<Option<Tape>>>,
}
