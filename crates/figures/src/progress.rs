//! How far a run is, whether it is to go on, and where it ends.

use std::sync::Arc;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::Time;

use crate::bound::FigureBound;
use crate::live_snapshot::LiveSnapshot;
use crate::picoseconds;
use crate::until::Until;

/// Where a run stops issuing, whatever the workload would do.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunLimits {
    /// Requests issued.
    pub requests: Option<u64>,
    /// Time since the start.
    pub duration: Option<Time>,
    /// How well figures are to be known; the run ends when they are.
    pub until: Option<Until>,
    /// Bounds of figures; a simulated run ends once it surely breaks one.
    pub bounds: Vec<FigureBound>,
}

impl RunLimits {
    /// The most requests and time of a workload that has `bounds` of its own.
    pub fn with(&self, bounds: (Option<u64>, Option<Time>)) -> (Option<u64>, Option<Time>) {
        let (requests, duration) = bounds;
        (
            requests.into_iter().chain(self.requests).min(),
            duration.into_iter().chain(self.duration).min(),
        )
    }
}

/// Progress of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunProgress {
    /// The share of the device's preparation that is done, 0 to 1, before the load begins; `None`
    /// from then on.
    pub preparing: Option<f64>,
    /// Time since the start, on the clock of the run: virtual for a simulated target.
    #[serde(rename = "now_ps", with = "picoseconds")]
    #[schemars(with = "u64")]
    pub now: Time,
    /// Requests issued.
    pub issued: u64,
    /// Requests completed.
    pub completed: u64,
    /// Mean latency so far, in ns; 0 before the first completion.
    pub latency_ns_mean: f64,
    /// The recording up to the snapshot's own `now`, if [`KeepGoing::LiveSnapshot`] asked for it.
    #[serde(default, with = "shared")]
    #[schemars(with = "Option<LiveSnapshot>")]
    pub glance: Option<Arc<LiveSnapshot>>,
}

/// A progress report that several viewers share.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer, T: Serialize>(
        value: &Option<Arc<T>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_deref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        from: D,
    ) -> Result<Option<Arc<T>>, D::Error> {
        Ok(Option::<T>::deserialize(from)?.map(Arc::new))
    }
}

impl RunProgress {
    /// Before the load begins: `share` of the device's preparation is done.
    pub fn preparing(share: f64) -> RunProgress {
        RunProgress { preparing: Some(share), ..RunProgress::default() }
    }
}

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeepGoing {
    /// Go on.
    Continue,
    /// Continue, and report the figures so far when possible: with the next report or the one
    /// after. It costs some microseconds.
    LiveSnapshot,
    /// Issue no more requests, wait for those in flight, and end as a partial run.
    Stop,
}

/// When a run that is ready begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunStart {
    /// At once.
    Now,
    /// At this moment; at once where it is over, or where time is virtual.
    At(Instant),
    /// Not at all: the run ends as one that was stopped before it began.
    Never,
}

/// Starts a run, receives its progress, and may stop it. A closure that takes a [`RunProgress`] is one that lets the
/// run begin at once.
pub trait Supervisor {
    /// Everything is ready for the first request. Called once; it may wait until it is known when to begin.
    fn ready(&mut self) -> RunStart {
        RunStart::Now
    }

    /// How far the run is, and whether to go on. Called every few milliseconds of a simulation and some 20 times
    /// a second on a real target, also while the run is prepared.
    fn report(&mut self, progress: &RunProgress) -> KeepGoing;
}

impl<F: FnMut(&RunProgress) -> KeepGoing> Supervisor for F {
    fn report(&mut self, progress: &RunProgress) -> KeepGoing {
        self(progress)
    }
}
