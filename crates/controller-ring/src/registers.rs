//! What the host sees: configuration space and BAR 0.

use ssdyno_block::{FaultPlan, Time};
use ssdyno_pci::{BusMaster, FaultyDevice, Identity, PciDevice};
use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::ResponseMode;

use super::{Event, RingCard, Setup};

/// Registers that the host sets before it switches the card on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Registers {
    pub(super) enabled: bool,
    pub(super) ring_low: u32,
    pub(super) ring_high: u32,
    pub(super) ring_size: u32,
    pub(super) response: u32,
    pub(super) prefetch: u32,
    pub(super) interrupt_batch: u32,
    pub(super) interrupt_timeout_ns: u32,
    pub(super) interrupt_mask: bool,
    pub(super) next_offset: u32,
}

impl RingCard {
    /// What the registers say when the card is switched on; `None`: it cannot be.
    pub(super) fn latch(&self) -> Option<Setup> {
        let Registers { ring_size, response, prefetch, .. } = self.registers;
        let mode = ResponseMode::from_bits(response)?;
        let subset = response >> 16;
        let fits = ring_size.is_power_of_two() && (2..=65536).contains(&ring_size);
        let subset_fits = mode != ResponseMode::Subsets || subset > 0;
        let prefetch_fits = prefetch <= self.config.card.prefetch;
        let ring = u64::from(self.registers.ring_low) | u64::from(self.registers.ring_high) << 32;
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

    fn status(&self) -> u32 {
        let flag = |is: bool, bit| if is { bit } else { 0 };
        flag(self.registers.enabled && self.setup.is_some(), layout::STATUS_ENABLED)
            | flag(self.outstanding, layout::STATUS_BUSY)
            | self.fault.map_or(0, |fault| layout::STATUS_FAULT | (fault as u32) << 8)
    }
}

/// The plan hits commands, counted from 0 in the order of starting, and interrupts, in that of sending.
impl FaultyDevice for RingCard {
    fn arm(&mut self, plan: FaultPlan) {
        self.faults = Some(Box::new(plan));
    }

    fn fault_plan(&self) -> Option<&FaultPlan> {
        self.faults.as_deref()
    }

    fn fault_plan_mut(&mut self) -> &mut FaultPlan {
        self.faults.get_or_insert_with(|| Box::new(FaultPlan::new(0)))
    }

    fn hang_until_reset(&mut self) {
        self.hangs = true;
    }
}

impl PciDevice for RingCard {
    fn identity(&self) -> Identity {
        Identity {
            vendor: layout::VENDOR,
            device: layout::DEVICE,
            class: layout::CLASS,
            revision: 1,
            bar_bytes: [u64::from(layout::BAR_BYTES), 0, 0],
            msix_vectors: 1,
            msi_vectors: 1,
            interrupt_pin: 1,
        }
    }

    fn bar_read(&mut self, _now: Time, bar: u8, offset: u32) -> u32 {
        if bar != 0 {
            return 0;
        }
        let ns = |time: Time| u32::try_from(time.as_ns()).unwrap_or(u32::MAX);
        match offset {
            layout::IDENTIFIER => layout::IDENTIFIER_VALUE,
            layout::VERSION => 1,
            layout::CAPACITY_LOW => self.media.pages as u32,
            layout::CAPACITY_HIGH => (self.media.pages >> 32) as u32,
            layout::TECHNOLOGY => self.media.technology as u32,
            layout::CHANNELS => self.media.channels,
            layout::READ_TIME => ns(self.media.read_time),
            layout::WRITE_TIME => ns(self.media.write_time),
            layout::MAX_BLOCK => self.config.card.max_block,
            layout::FEATURES => {
                let most = self.config.card.prefetch;
                let prefetch = if most > 0 { layout::FEATURE_PREFETCH | most << 8 } else { 0 };
                layout::FEATURE_CALIBRATED | prefetch
            }
            layout::CONTROL => u32::from(self.registers.enabled),
            layout::STATUS => self.status(),
            layout::RING_LOW => self.registers.ring_low,
            layout::RING_HIGH => self.registers.ring_high,
            layout::RING_SIZE => self.registers.ring_size,
            layout::RESPONSE => self.registers.response,
            layout::PREFETCH => self.registers.prefetch,
            layout::INTERRUPT_BATCH => self.registers.interrupt_batch,
            layout::INTERRUPT_TIMEOUT => self.registers.interrupt_timeout_ns,
            layout::INTERRUPT_MASK => u32::from(self.registers.interrupt_mask),
            layout::NEXT_OFFSET => self.registers.next_offset,
            _ => 0,
        }
    }

    fn bar_write(&mut self, now: Time, bar: u8, offset: u32, value: u32) {
        if bar != 0 {
            return;
        }
        let registers = &mut self.registers;
        let event = match offset {
            layout::CONTROL => {
                registers.enabled = value & layout::CONTROL_ENABLE != 0;
                Event::Control(registers.enabled)
            }
            layout::RING_LOW => return registers.ring_low = value,
            layout::RING_HIGH => return registers.ring_high = value,
            layout::RING_SIZE => return registers.ring_size = value,
            layout::RESPONSE => return registers.response = value,
            layout::PREFETCH => return registers.prefetch = value,
            layout::INTERRUPT_BATCH => return registers.interrupt_batch = value,
            layout::INTERRUPT_TIMEOUT => return registers.interrupt_timeout_ns = value,
            layout::INTERRUPT_MASK => {
                registers.interrupt_mask = value & 1 != 0;
                Event::Mask(registers.interrupt_mask)
            }
            layout::INTERRUPT_ACKNOWLEDGE => Event::Acknowledge,
            layout::NEXT_OFFSET => return registers.next_offset = value,
            layout::NEXT_SIZE => {
                self.doorbells.push_back((registers.next_offset, value));
                Event::Doorbell
            }
            _ => return,
        };
        self.queue.schedule(now, event);
    }

    fn reset(&mut self, now: Time) {
        self.control(now, false);
        self.registers = Registers::default();
    }

    fn advance(&mut self, now: Time, bus: &mut dyn BusMaster) {
        loop {
            let flash = self.media.next_event().filter(|at| *at <= now);
            let own = self.queue.next_time().filter(|at| *at <= now);
            match (own, flash) {
                // Late events (the card stood still) happen now.
                (Some(at), flash) if flash.is_none_or(|flash| at <= flash) => {
                    if let Some((_, event)) = self.queue.pop_due(at) {
                        self.handle(now, event, bus);
                    }
                }
                (_, Some(_)) => self.flash(now, bus),
                (_, None) => return,
            }
        }
    }

    fn next_event(&self) -> Option<Time> {
        let (own, flash) = (self.queue.next_time(), self.media.next_event());
        own.into_iter().chain(flash).min()
    }
}
