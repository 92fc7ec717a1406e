//! The card as a PCI function: configuration space, BAR 0, its clock, and the faults it is told to have.

use ssdyno_block::{FaultPlan, Time};
use ssdyno_pci::{BusMaster, FaultyDevice, Identity, PciDevice};
use ssdyno_spec::ring as layout;

use super::RingCard;
use super::registers::Registers;

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
            layout::CAPACITY_LOW => self.storage.media.pages as u32,
            layout::CAPACITY_HIGH => (self.storage.media.pages >> 32) as u32,
            layout::TECHNOLOGY => self.storage.media.technology as u32,
            layout::CHANNELS => self.storage.media.channels,
            layout::READ_TIME => ns(self.storage.media.read_time),
            layout::WRITE_TIME => ns(self.storage.media.write_time),
            layout::MAX_BLOCK => self.config.card.max_block,
            layout::FEATURES => {
                let most = self.config.card.prefetch;
                let prefetch = if most > 0 { layout::FEATURE_PREFETCH | most << 8 } else { 0 };
                layout::FEATURE_CALIBRATED | prefetch
            }
            layout::STATUS => self.registers.status(self.block.outstanding),
            _ => self.registers.read(offset),
        }
    }

    fn bar_write(&mut self, now: Time, bar: u8, offset: u32, value: u32) {
        if bar != 0 {
            return;
        }
        if let Some(event) = self.registers.write(offset, value) {
            self.queue.schedule(now, event);
        }
    }

    fn reset(&mut self, now: Time) {
        // To switch the card off keeps what the host wrote, so that it can be switched on again.
        // A reset of the function forgets that as well.
        self.control(now, false);
        self.registers = Registers::default();
    }

    fn advance(&mut self, now: Time, bus: &mut dyn BusMaster) {
        loop {
            let flash = self.storage.media.next_event().filter(|at| *at <= now);
            let own = self.queue.next_time().filter(|at| *at <= now);
            match (own, flash) {
                // Late events (the card stood still) happen now.
                // The earlier event comes first, and the card's own one if both are at the same
                // time. The order must not depend on how far the caller advances at once.
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
        let (own, flash) = (self.queue.next_time(), self.storage.media.next_event());
        own.into_iter().chain(flash).min()
    }
}

/// The plan hits commands, counted from 0 in the order of starting, and interrupts, in that of sending.
impl FaultyDevice for RingCard {
    fn arm(&mut self, plan: FaultPlan) {
        self.faults.plan = Some(Box::new(plan));
    }

    fn fault_plan(&self) -> Option<&FaultPlan> {
        self.faults.plan.as_deref()
    }

    fn fault_plan_mut(&mut self) -> &mut FaultPlan {
        self.faults.plan.get_or_insert_with(|| Box::new(FaultPlan::new(0)))
    }

    fn hang_until_reset(&mut self) {
        self.faults.hangs = true;
    }
}
