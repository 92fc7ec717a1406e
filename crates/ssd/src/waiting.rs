//! Requests that wait outside the device because its queue is full.

use std::collections::{BTreeMap, VecDeque};

use crate::WaitingOrder;

/// The host's queue before the device.
#[derive(Clone, Debug)]
pub(crate) enum Waiting {
    /// In order of arrival.
    Fcfs(VecDeque<u32>),
    /// Circular scan: the next start address upwards of the last one, then from the lowest again;
    /// equal addresses in order of arrival.
    CLook { by_address: BTreeMap<(u64, u64), u32>, arrivals: u64, last: u64 },
}

impl Waiting {
    pub(crate) fn new(order: WaitingOrder) -> Waiting {
        match order {
            WaitingOrder::Fcfs => Waiting::Fcfs(VecDeque::new()),
            WaitingOrder::CLook => {
                Waiting::CLook { by_address: BTreeMap::new(), arrivals: 0, last: 0 }
            }
        }
    }

    pub(crate) fn push(&mut self, slot: u32, offset_bytes: u64) {
        match self {
            Waiting::Fcfs(queue) => queue.push_back(slot),
            Waiting::CLook { by_address, arrivals, .. } => {
                *arrivals += 1;
                // The number of arrival makes keys unique. Two requests to one address would
                // otherwise replace each other, and the older one would never complete.
                by_address.insert((offset_bytes, *arrivals), slot);
            }
        }
    }

    /// States that a request went into the device without waiting.
    pub(crate) fn passed(&mut self, offset_bytes: u64) {
        if let Waiting::CLook { last, .. } = self {
            *last = offset_bytes;
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Waiting::Fcfs(queue) => queue.is_empty(),
            Waiting::CLook { by_address, .. } => by_address.is_empty(),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<u32> {
        match self {
            Waiting::Fcfs(queue) => queue.pop_front(),
            Waiting::CLook { by_address, last, .. } => {
                // The scan continues upwards from the last start address, as in DiskSim's C-LOOK. A
                // search for the nearest address (SSTF) can starve requests at the ends of the
                // address range.
                let upwards = by_address.range((*last, 0)..).next();
                let (&key, &slot) = upwards.or_else(|| by_address.iter().next())?;
                by_address.remove(&key);
                *last = key.0;
                Some(slot)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circular_scan_goes_up_and_starts_again() {
        let mut waiting = Waiting::new(WaitingOrder::CLook);
        for (slot, at) in [(1, 50), (2, 10), (3, 70), (4, 50)] {
            waiting.push(slot, at);
        }
        waiting.passed(40);
        let order: Vec<u32> = std::iter::from_fn(|| waiting.pop()).collect();
        assert_eq!(order, [1, 4, 3, 2]);
    }
}
