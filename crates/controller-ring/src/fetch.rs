//! Doorbells, and descriptors on their way into the card (S0-13, S0-26).

use ssdyno_block::Time;
use ssdyno_pci::BusMaster;
use ssdyno_spec::ring::{Descriptor, RingFault};
use zerocopy::{FromZeros, IntoBytes};

use super::RingCard;
use super::dma::Work;

impl RingCard {
    /// The host gives a block (S0-13).
    pub(super) fn doorbell(&mut self, now: Time, (offset, size): (u32, u32)) {
        let Some(setup) = self.registers.setup else { return };
        // One block at a time is the protocol (S0-14). A second one is a mistake of the driver,
        // which the card shows in its registers instead of guessing.
        if self.block.outstanding || self.prefetch.early_doorbell.is_some() {
            return self.registers.fail(RingFault::BlockOutstanding);
        }
        // The prefetch may still bring commands of this very block. The doorbell waits, so that
        // none of them is fetched twice.
        if self.prefetch.is_under_way() {
            self.prefetch.early_doorbell = Some((offset, size));
            return;
        }
        let size_max = self.config.card.max_block;
        match self.block.give(now, &setup, size_max, (offset, size)) {
            Err(fault) => self.registers.fail(fault),
            Ok(held) => {
                // The driver that submits a block has seen the end of the last one.
                self.interrupts.forget();
                self.traffic.prefetched += u64::from(held);
                self.processors.fetch_due = true;
            }
        }
    }

    /// Fetches what is not in the card of the block.
    pub(super) fn fetch(&mut self) {
        let Some(setup) = self.registers.setup else { return };
        let (first, count) = self.block.missing();
        self.dma.queue_descriptors(&setup, first, count, Work::Fetch);
        self.block.collect(&setup);
    }

    /// The last command of the block begins: looks whether the next ones are there (S0-26).
    pub(super) fn prefetch(&mut self) {
        let Some(setup) = self.registers.setup else { return };
        // A prefetch looks whether the host has written its next commands already, before it
        // gives them. What is not there has no owner bit, and `take` leaves it out.
        if setup.prefetch > 0 && self.block.holds_nothing() {
            let (first, _) = self.block.missing();
            self.prefetch.pieces =
                self.dma.queue_descriptors(&setup, first, setup.prefetch, Work::Prefetch);
        }
    }

    /// Descriptors of a fetch are in the card.
    pub(super) fn fetched(&mut self, work: Work, bus: &mut dyn BusMaster) {
        let (first, count, prefetch) = match work {
            Work::Fetch(first, count) => (first, count, false),
            Work::Prefetch(first, count) => (first, count, true),
            Work::Return(..) | Work::Read(_) | Work::Write(_) => return,
        };
        let Some(setup) = self.registers.setup else { return };
        // A prefetch takes what is there, from the first on, without a gap.
        let open = !prefetch || self.block.fetched == first;
        for at in 0..if open { count } else { 0 } {
            let mut descriptor = Descriptor::new_zeroed();
            let (address, _) = setup.place(first.wrapping_add(at));
            if bus.read(address, descriptor.as_mut_bytes()).is_err() {
                self.registers.fail(RingFault::RingUnreachable);
                break;
            }
            // A descriptor that still belongs to the host ends the prefetch. Those behind it are
            // newer, so they cannot be ready either.
            if !self.block.take(&setup, descriptor, prefetch) {
                break;
            }
        }
        if prefetch {
            self.prefetch.pieces -= 1;
        }
    }

    /// What comes after a fetch: commands, and the doorbell that waited for the prefetch.
    pub(super) fn after_fetch(&mut self, now: Time) {
        if let Some(doorbell) = self.prefetch.take_doorbell() {
            self.doorbell(now, doorbell);
        }
        if !self.block.outstanding && self.block.holds_nothing() {
            self.block.idle(now, &mut self.log);
        }
    }
}
