//! The registers of BAR 0.

use std::collections::VecDeque;

use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::{ResponseMode, RingFault};

use super::event::Event;

/// What was set up when the card was switched on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) ring: u64,
    pub(super) size: u32,
    pub(super) mode: ResponseMode,
    pub(super) subset: u32,
    pub(super) prefetch: u32,
}

impl Setup {
    /// Address of descriptor `number`, and how many from it on are contiguous.
    pub(super) fn place(&self, number: u32) -> (u64, u32) {
        let index = number & (self.size - 1);
        let address = self.ring + u64::from(index) * u64::from(layout::DESCRIPTOR_BYTES);
        (address, self.size - index)
    }
}

/// The registers as the host last wrote them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Values {
    enabled: bool,
    ring_low: u32,
    ring_high: u32,
    ring_size: u32,
    response: u32,
    prefetch: u32,
    pub(super) interrupt_batch: u32,
    pub(super) interrupt_timeout_ns: u32,
    pub(super) interrupt_mask: bool,
    next_offset: u32,
}

impl Values {
    /// What they set up when the card is switched on; `None`: it cannot be. The card holds at most
    /// `prefetch_max` descriptors of the next block.
    fn latch(&self, prefetch_max: u32) -> Option<Setup> {
        let Values { ring_size, response, prefetch, .. } = *self;
        let mode = ResponseMode::from_bits(response)?;
        let subset = response >> 16;
        // Everything is checked when the card is switched on. A set-up that cannot work shows as
        // a fault then, and not as wrong memory accesses later.
        let fits = ring_size.is_power_of_two() && (2..=65536).contains(&ring_size);
        let subset_fits = mode != ResponseMode::Subsets || subset > 0;
        let prefetch_fits = prefetch <= prefetch_max;
        let ring = u64::from(self.ring_low) | u64::from(self.ring_high) << 32;
        let bytes = u64::from(layout::DESCRIPTOR_BYTES);
        let place_fits =
            ring.is_multiple_of(bytes) && ring.checked_add(u64::from(ring_size) * bytes).is_some();
        (fits && place_fits && subset_fits && prefetch_fits).then_some(Setup {
            ring,
            size: ring_size,
            mode,
            subset,
            prefetch,
        })
    }
}

/// The registers, and the card's state that follows from them.
#[derive(Debug, Default)]
pub(super) struct Registers {
    pub(super) values: Values,
    /// Doorbells that the card has not seen yet: offset and size.
    doorbells: VecDeque<(u32, u32)>,
    /// `None` while the card is off.
    pub(super) setup: Option<Setup>,
    pub(super) fault: Option<RingFault>,
}

impl Registers {
    /// Switches the card on, unless it is on.
    pub(super) fn switch_on(&mut self, prefetch_max: u32) {
        // The values are taken only once. Commands that are under way use the place of the ring,
        // so a second write of the same bit must not move it.
        if self.setup.is_none() {
            self.setup = self.values.latch(prefetch_max);
            if self.setup.is_none() {
                self.fail(RingFault::BadSetup);
            }
        }
    }

    /// Switches the card off; what the host wrote stays.
    pub(super) fn switch_off(&mut self) {
        self.setup = None;
        self.fault = None;
        self.doorbells.clear();
    }

    /// The host broke the protocol. The first fault stays.
    pub(super) fn fail(&mut self, fault: RingFault) {
        self.fault = self.fault.or(Some(fault));
    }

    /// Offset and size of the next doorbell that the card sees.
    pub(super) fn next_doorbell(&mut self) -> Option<(u32, u32)> {
        self.doorbells.pop_front()
    }

    pub(super) fn status(&self, outstanding: bool) -> u32 {
        let flag = |is: bool, bit| if is { bit } else { 0 };
        flag(self.values.enabled && self.setup.is_some(), layout::STATUS_ENABLED)
            | flag(outstanding, layout::STATUS_BUSY)
            | self.fault.map_or(0, |fault| layout::STATUS_FAULT | (fault as u32) << 8)
    }

    /// The register at `offset` that the host can write; others read as zero.
    pub(super) fn read(&self, offset: u32) -> u32 {
        let values = &self.values;
        match offset {
            layout::CONTROL => u32::from(values.enabled),
            layout::RING_LOW => values.ring_low,
            layout::RING_HIGH => values.ring_high,
            layout::RING_SIZE => values.ring_size,
            layout::RESPONSE => values.response,
            layout::PREFETCH => values.prefetch,
            layout::INTERRUPT_BATCH => values.interrupt_batch,
            layout::INTERRUPT_TIMEOUT => values.interrupt_timeout_ns,
            layout::INTERRUPT_MASK => u32::from(values.interrupt_mask),
            layout::NEXT_OFFSET => values.next_offset,
            _ => 0,
        }
    }

    /// The host writes `value` at `offset`; gives what the card has to do then.
    pub(super) fn write(&mut self, offset: u32, value: u32) -> Option<Event> {
        let values = &mut self.values;
        match offset {
            layout::CONTROL => {
                values.enabled = value & layout::CONTROL_ENABLE != 0;
                return Some(Event::Control(values.enabled));
            }
            layout::INTERRUPT_MASK => {
                values.interrupt_mask = value & 1 != 0;
                return Some(Event::Mask(values.interrupt_mask));
            }
            layout::INTERRUPT_ACKNOWLEDGE => return Some(Event::Acknowledge),
            layout::NEXT_SIZE => {
                // The offset is taken with the size. The host may write the next offset before
                // the card has seen this doorbell.
                self.doorbells.push_back((values.next_offset, value));
                return Some(Event::Doorbell);
            }
            layout::RING_LOW => values.ring_low = value,
            layout::RING_HIGH => values.ring_high = value,
            layout::RING_SIZE => values.ring_size = value,
            layout::RESPONSE => values.response = value,
            layout::PREFETCH => values.prefetch = value,
            layout::INTERRUPT_BATCH => values.interrupt_batch = value,
            layout::INTERRUPT_TIMEOUT => values.interrupt_timeout_ns = value,
            layout::NEXT_OFFSET => values.next_offset = value,
            _ => {}
        }
        None
    }
}
