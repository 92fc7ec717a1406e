//! When the card interrupts: at the end of a block, for an urgent descriptor, when a batch is full
//! or has waited long enough.

use ssdyno_block::{FaultSite, Time};
use ssdyno_pci::BusMaster;

use super::{Event, RingCard};

/// Bytes of the posted write that is a message signalled interrupt, with its overhead.
const MESSAGE_BYTES: u64 = 4;

/// What is returned and not yet reported.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interrupts {
    unreported: u32,
    /// One fell due while they were masked.
    pending: bool,
    /// Counts batches, so that a timeout knows whether it is too late.
    batch: u32,
    /// A timeout of this batch is scheduled.
    timed: bool,
}

impl RingCard {
    /// What was returned so far needs no interrupt any more.
    pub(super) fn forget_interrupts(&mut self) {
        let due = &mut self.interrupts;
        due.unreported = 0;
        due.timed = false;
        due.pending = false;
        due.batch = due.batch.wrapping_add(1) & super::REST;
    }

    /// `count` descriptors are back with the host.
    pub(super) fn returned_to_host(
        &mut self,
        now: Time,
        count: u32,
        at_once: bool,
        bus: &mut dyn BusMaster,
    ) {
        self.interrupts.unreported += count;
        let batch = self.registers.interrupt_batch;
        if at_once || batch > 0 && self.interrupts.unreported >= batch {
            return self.raise(now, bus);
        }
        let ns = self.registers.interrupt_timeout_ns;
        if ns > 0 && !self.interrupts.timed {
            self.interrupts.timed = true;
            let at = now + Time::from_ns(u64::from(ns));
            self.queue.schedule(at, Event::Timeout(self.interrupts.batch));
        }
    }

    fn raise(&mut self, now: Time, bus: &mut dyn BusMaster) {
        self.forget_interrupts();
        if self.registers.interrupt_mask {
            self.interrupts.pending = true;
            return;
        }
        let number = self.traffic.interrupts;
        self.traffic.interrupts += 1;
        let fault = self.faults.as_mut().and_then(|plan| plan.meets(FaultSite::Interrupt, number));
        if fault.is_none() {
            // It follows the descriptors on the wire.
            let at = now + self.link.write_time(0, MESSAGE_BYTES);
            bus.interrupt(at, 0);
        }
    }

    pub(super) fn timeout(&mut self, now: Time, batch: u32, bus: &mut dyn BusMaster) {
        if self.interrupts.timed && batch == self.interrupts.batch {
            self.raise(now, bus);
        }
    }

    pub(super) fn mask(&mut self, now: Time, on: bool, bus: &mut dyn BusMaster) {
        if !on && self.interrupts.pending {
            self.raise(now, bus);
        }
    }
}
