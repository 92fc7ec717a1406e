//! Whose time the served devices live in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ssdyno_block::Time;

/// The clock of a target's devices.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The time on the wall since this moment: what takes a second takes the initiator a second.
    Wall(Instant),
    /// The device's own: it goes on only while commands are pending, as fast as the simulation goes.
    /// A command has ended before the next one is looked at.
    Device,
    /// What its holder sets, in picoseconds; [`Target::run`](crate::Target::run) lets it happen.
    Set(Arc<AtomicU64>),
}

impl Clock {
    /// That of the wall, from now on.
    pub fn wall() -> Clock {
        Clock::Wall(Instant::now())
    }

    /// What it shows, where devices are at `reached`.
    pub(crate) fn now(&self, reached: Time) -> Time {
        let shown = match self {
            Clock::Wall(start) => {
                let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                Time::from_ns(ns.min(Time::MAX.as_ns()))
            }
            Clock::Device => reached,
            Clock::Set(ps) => Time::from_ps(ps.load(Ordering::Acquire)),
        };
        shown.max(reached)
    }
}
