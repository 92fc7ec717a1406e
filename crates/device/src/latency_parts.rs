//! The parts of the latency of a request.

use ssdyno_block::{Request, Time};

ssdyno_block::named! {
    /// A part of a request's latency. Waiting for something counts as that part, and so does using it: a request that waits
    /// for the link, and then crosses it, spends both on the link.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum LatencyPart: name {
        /// Outside the device: driver, interrupt, host, network.
        Host = "host",
        /// The device's queue or the depth of the load is full, or the controller has something else to finish first.
        Queue = "queue",
        /// The device wakes up, or keeps to a limit of power.
        Power = "power",
        /// A firmware core.
        Firmware = "firmware",
        /// The link to the host.
        Link = "link",
        /// The controller's DRAM.
        Dram = "dram",
        /// The channel between controller and die, for the request's pages and for those before them.
        Channel = "channel",
        /// The die reads or programs the request's own pages.
        Flash = "flash",
        /// The die reads for other requests.
        Reads = "reads",
        /// The die programs for other requests; or, for a write that waits for room in the buffer, what the buffer had before.
        Programs = "programs",
        /// The die erases.
        Erases = "erases",
        /// The die moves pages: garbage collection, merges, wear levelling.
        Cleaning = "cleaning",
        /// The die reads or programs the mapping table.
        Mapping = "mapping",
    }
}

/// Time by [`LatencyPart`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LatencyParts([Time; LatencyPart::ALL.len()]);

impl LatencyParts {
    /// The time of one part.
    pub fn get(&self, part: LatencyPart) -> Time {
        self.0[part as usize]
    }

    /// Adds to one part.
    pub fn add(&mut self, part: LatencyPart, time: Time) {
        self.0[part as usize] += time;
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &LatencyParts) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, time)| *sum += time);
    }

    /// The increase since `earlier`, an earlier copy of this value.
    #[must_use]
    pub fn since(&self, earlier: &LatencyParts) -> LatencyParts {
        let since = |at: usize| self.0[at].saturating_sub(earlier.0[at]);
        LatencyParts(std::array::from_fn(since))
    }

    /// Sum of all parts.
    pub fn total(&self) -> Time {
        self.0.iter().fold(Time::ZERO, |sum, time| sum + *time)
    }

    /// These parts in the same proportions, with `total` as their sum; nothing becomes of nothing.
    #[must_use]
    pub fn scaled_to(&self, total: Time) -> LatencyParts {
        let (have, want) = (self.total().as_ps(), total.as_ps());
        if have == want || have == 0 {
            return *self;
        }
        let scaled = |time: Time| {
            let scaled = u128::from(time.as_ps()) * u128::from(want) / u128::from(have);
            Time::from_ps(scaled as u64)
        };
        let mut parts = LatencyParts(self.0.map(scaled));
        // The rounding remainder goes to the largest part, where it is least visible.
        let rest = total.saturating_sub(parts.total());
        if let Some(largest) = parts.0.iter_mut().max() {
            *largest += rest;
        }
        parts
    }
}

/// A request that a device has completed, and its time by part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExplainedRequest {
    /// The request, as the device got it.
    pub request: Request,
    /// From its submission to the device to its completion: the sum of `parts`.
    pub latency: Time,
    /// Its parts; none of them is [`LatencyPart::Host`].
    pub parts: LatencyParts,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scaled_parts_sum_to_what_was_asked_for(times in prop::collection::vec(0u64..1 << 50, 13), total in 0u64..1 << 50) {
            let mut parts = LatencyParts::default();
            for (part, time) in LatencyPart::ALL.into_iter().zip(times) {
                parts.add(part, Time::from_ps(time));
            }
            prop_assume!(parts.total() > Time::ZERO);
            prop_assert_eq!(parts.scaled_to(Time::from_ps(total)).total(), Time::from_ps(total));
            prop_assert_eq!(parts.scaled_to(parts.total()), parts);
        }
    }
}
