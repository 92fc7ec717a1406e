//! Whose time a served device lives in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ssdyno_block::Time;

/// The clock of a served device.
#[derive(Clone, Debug)]
pub enum ServedClock {
    /// The time on the wall since this moment: what takes a second takes the client a second.
    Wall(Instant),
    /// The device's own: it goes on only in [`Paced::settle`](crate::Paced::settle), as fast as the
    /// simulation goes.
    Device,
    /// What its holder sets, in picoseconds: for tests, and for a simulation around the server.
    Set(Arc<AtomicU64>),
}

impl ServedClock {
    /// That of the wall, from now on.
    pub fn wall() -> ServedClock {
        ServedClock::Wall(Instant::now())
    }

    /// What it shows, where the device is at `reached`: never less.
    pub(crate) fn now(&self, reached: Time) -> Time {
        let shown = match self {
            ServedClock::Wall(start) => {
                // A process that runs for 584 years is not expected. The limit keeps the cast
                // defined and the time below `Time::MAX`.
                let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                Time::from_ns(ns.min(Time::MAX.as_ns()))
            }
            ServedClock::Device => reached,
            ServedClock::Set(ps) => Time::from_ps(ps.load(Ordering::Acquire)),
        };
        // A device may be ahead of its clock, for example after `set_clock`. Its time then does not advance until the
        // clock has caught up, because time must never go back for a device.
        shown.max(reached)
    }

    /// Whether it goes on while a thread sleeps.
    pub(crate) fn goes_by_itself(&self) -> bool {
        matches!(self, ServedClock::Wall(_))
    }
}
