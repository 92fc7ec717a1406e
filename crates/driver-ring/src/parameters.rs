//! The card's description of itself (S0-10).

use ssdyno_pci::PciFunction;
use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::Technology;
use zerocopy::{IntoBytes, TryFromBytes};

use crate::{BlockPolicy, CompletionPolicy, RingDriverOptions, RingError};

/// Most descriptors in a ring that the layout allows.
const RING_MOST: u32 = 1 << 16;

/// The card's description of itself (S0-10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingParameters {
    /// Storage capacity, in pages of 4 KiB.
    pub capacity_pages: u64,
    /// The technology of the storage.
    pub technology: Technology,
    /// Channels that work in parallel.
    pub channels: u32,
    /// Time in which the medium reads a page, in ns.
    pub read_time_ns: u32,
    /// Time in which the medium writes a page, in ns.
    pub write_time_ns: u32,
    /// Most descriptors in a block.
    pub max_block: u32,
    /// Descriptors of the next block that it can hold; 0: it has no prefetch.
    pub prefetch_most: u32,
}

impl RingParameters {
    /// Reads them.
    pub(crate) fn read<F: PciFunction>(function: &mut F) -> Result<RingParameters, RingError> {
        let mut get = |register| function.bar_read32(0, register);
        let (identifier, version) = (get(layout::IDENTIFIER), get(layout::VERSION));
        if identifier != layout::IDENTIFIER_VALUE || version != 1 {
            return Err(RingError::NotARingCard { identifier, version });
        }
        let low = u64::from(get(layout::CAPACITY_LOW));
        let capacity_pages = low | u64::from(get(layout::CAPACITY_HIGH)) << 32;
        let bad = |what, value| Err(RingError::BadParameter { what, value });
        if capacity_pages == 0 || capacity_pages > 1 << 51 {
            return bad("capacity in pages", capacity_pages);
        }
        let code = get(layout::TECHNOLOGY);
        let Ok(technology) = Technology::try_read_from_bytes(code.as_bytes()) else {
            return bad("memory technology", code.into());
        };
        let max_block = get(layout::MAX_BLOCK);
        if !(1..=RING_MOST / 4).contains(&max_block) {
            return bad("largest block", max_block.into());
        }
        let features = get(layout::FEATURES);
        let prefetch = features & layout::FEATURE_PREFETCH != 0;
        Ok(RingParameters {
            capacity_pages,
            technology,
            channels: get(layout::CHANNELS),
            read_time_ns: get(layout::READ_TIME),
            write_time_ns: get(layout::WRITE_TIME),
            max_block,
            prefetch_most: if prefetch { features >> 8 & 0xff } else { 0 },
        })
    }

    /// Descriptors in the ring (S0-9): room for the block at the card, for the next one, and for
    /// one whose responses are being generated. A medium that writes ten times slower than it
    /// reads holds blocks for longer, and a fourth may gather meanwhile. Each channel has a place
    /// in two blocks at least. The next power of two.
    pub fn ring_size(&self) -> u32 {
        // The paper computes the size from the parameters but gives no formula (S0-9). Blocks of
        // slow writes stay with the card for longer, and one more may gather.
        let uneven = self.write_time_ns / 10 >= self.read_time_ns.max(1);
        let blocks = if uneven { 4 } else { 3 };
        let wanted = (self.max_block * blocks).max(self.channels.min(RING_MOST / 4) * 2).max(8);
        wanted.next_power_of_two().min(RING_MOST)
    }
}

/// What follows from options and parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Setup {
    pub(crate) max_block: u32,
    pub(crate) ring_size: u32,
}

impl RingDriverOptions {
    /// Checks the options against the card.
    pub(crate) fn check(&self, card: &RingParameters) -> Result<Setup, RingError> {
        let max_block = self.max_block.unwrap_or(card.max_block);
        within("the largest block", max_block, 1, card.max_block)?;
        if let BlockPolicy::Static(size) = self.block {
            within("the static block", size, 1, max_block)?;
        }
        let ring_size = self.ring_size.unwrap_or_else(|| card.ring_size());
        // The block at the card and the next one must both fit. With less the driver could not
        // prepare a block while the card works.
        let least = (max_block * 2).next_power_of_two();
        within("the ring", ring_size, least, RING_MOST)?;
        if !ring_size.is_power_of_two() {
            let most = ring_size.next_power_of_two();
            let (what, value) = ("the ring, a power of two,", ring_size);
            return Err(RingError::BadOption { what, value, least: most / 2, most });
        }
        within("the subset", self.subset, 1, 0xffff)?;
        let size = if let BlockPolicy::Static(size) = self.block { size } else { max_block };
        within("the prefetch", self.prefetch, 0, card.prefetch_most.min(size))?;
        within("the queue depth", self.queue_depth, 1, 1 << 20)?;
        let timeout_ns = u32::try_from(self.timeout.as_ns()).unwrap_or(u32::MAX);
        within("the timeout of a block in ns", timeout_ns, 1, u32::MAX)?;
        match self.completion {
            CompletionPolicy::PerBlock | CompletionPolicy::PerReturn => {}
            CompletionPolicy::Napi { budget } => within("the budget", budget, 1, u32::MAX)?,
            CompletionPolicy::Calibrated { threshold, timeout } => {
                within("the threshold", threshold, 1, u32::MAX)?;
                let ns = u32::try_from(timeout.as_ns()).unwrap_or(u32::MAX);
                within("the interrupt timeout in ns", ns, 1, u32::MAX - 1)?;
            }
            CompletionPolicy::HybridPolling { interval } => {
                let ns = u32::try_from(interval.as_ns()).unwrap_or(u32::MAX);
                within("the polling interval in ns", ns, 1, u32::MAX - 1)?;
            }
        }
        Ok(Setup { max_block, ring_size })
    }
}

fn within(what: &'static str, value: u32, least: u32, most: u32) -> Result<(), RingError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(RingError::BadOption { what, value, least, most })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdyno_block::Time;

    fn card() -> RingParameters {
        RingParameters {
            capacity_pages: 1000,
            technology: Technology::Dram,
            channels: 1,
            read_time_ns: 640,
            write_time_ns: 640,
            max_block: 32,
            prefetch_most: 0,
        }
    }

    #[test]
    fn ring_size_is_a_power_of_two_that_follows_the_parameters() {
        assert_eq!(card().ring_size(), 128);
        assert_eq!(
            RingParameters { write_time_ns: 6400, max_block: 40, ..card() }.ring_size(),
            256
        );
        assert_eq!(RingParameters { channels: 200, max_block: 1, ..card() }.ring_size(), 512);
        assert_eq!(RingParameters { max_block: 1, ..card() }.ring_size(), 8);
    }

    #[test]
    fn impossible_options_are_named() {
        let what = |options: RingDriverOptions| match options.check(&card()) {
            Err(RingError::BadOption { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            what(RingDriverOptions { max_block: Some(33), ..RingDriverOptions::default() }),
            "the largest block"
        );
        let block = BlockPolicy::Static(33);
        assert_eq!(
            what(RingDriverOptions { block, ..RingDriverOptions::default() }),
            "the static block"
        );
        assert_eq!(
            what(RingDriverOptions { ring_size: Some(32), ..RingDriverOptions::default() }),
            "the ring"
        );
        let ring_size = Some(100);
        assert_eq!(
            what(RingDriverOptions { ring_size, ..RingDriverOptions::default() }),
            "the ring, a power of two,"
        );
        let timeout = Time::ZERO;
        assert_eq!(
            what(RingDriverOptions { timeout, ..RingDriverOptions::default() }),
            "the timeout of a block in ns"
        );
        assert_eq!(
            what(RingDriverOptions { prefetch: 1, ..RingDriverOptions::default() }),
            "the prefetch"
        );
        let completion = CompletionPolicy::Napi { budget: 0 };
        assert_eq!(
            what(RingDriverOptions { completion, ..RingDriverOptions::default() }),
            "the budget"
        );
    }
}
