//! A resource that serves one customer after another.

use ssdyno_block::Time;

/// A first-come, first-served resource, without an event per step: each customer is told at once
/// when its turn begins and ends. Exact as long as reservations are made in order of arrival, which
/// is so when each is made at the event that makes the customer ready.
#[derive(Clone, Copy, Debug, Default)]
pub struct FifoResource {
    free_at: Time,
}

impl FifoResource {
    /// Serves a customer that is ready at `ready` for `length`; returns when service begins and ends.
    #[inline]
    pub fn reserve(&mut self, ready: Time, length: Time) -> (Time, Time) {
        let from = ready.max(self.free_at);
        let to = from + length;
        self.free_at = to;
        (from, to)
    }

    /// When the last reservation so far ends.
    pub fn free_at(&self) -> Time {
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_in_order() {
        let mut server = FifoResource::default();
        let ns = Time::from_ns;
        assert_eq!(server.reserve(ns(10), ns(5)), (ns(10), ns(15)));
        assert_eq!(server.reserve(ns(12), ns(5)), (ns(15), ns(20)));
        assert_eq!(server.reserve(ns(30), ns(5)), (ns(30), ns(35)));
    }
}
