//! When the card interrupts: at the end of a block, for an urgent descriptor, when a batch is full
//! or has waited long enough.

use ssdyno_block::Time;
use ssdyno_pci::BusMaster;

use super::RingCard;
use super::event::{Event, REST};

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

impl Interrupts {
    /// What was returned so far needs no interrupt any more.
    pub(super) fn forget(&mut self) {
        self.unreported = 0;
        self.timed = false;
        self.pending = false;
        // A timeout cannot be taken out of the queue. It carries the number of its batch and is
        // ignored if another one has begun.
        self.batch = self.batch.wrapping_add(1) & REST;
    }

    /// `count` more descriptors are unreported; true if they make a batch of `batch_size` full, where
    /// batches have a size.
    fn add(&mut self, count: u32, batch_size: u32) -> bool {
        self.unreported += count;
        batch_size > 0 && self.unreported >= batch_size
    }

    /// The batch whose timeout begins now; `None` if it runs already.
    fn begin_timeout(&mut self) -> Option<u32> {
        (!std::mem::replace(&mut self.timed, true)).then_some(self.batch)
    }

    /// True if the timeout of `batch` does not come too late.
    fn waits_for(&self, batch: u32) -> bool {
        self.timed && batch == self.batch
    }
}

impl RingCard {
    /// `count` descriptors are back with the host.
    pub(super) fn returned_to_host(
        &mut self,
        now: Time,
        count: u32,
        at_once: bool,
        bus: &mut dyn BusMaster,
    ) {
        let values = &self.registers.values;
        let full = self.interrupts.add(count, values.interrupt_batch);
        if at_once || full {
            return self.raise(now, bus);
        }
        let ns = values.interrupt_timeout_ns;
        if ns > 0
            && let Some(batch) = self.interrupts.begin_timeout()
        {
            self.queue.schedule(now + Time::from_ns(u64::from(ns)), Event::Timeout(batch));
        }
    }

    fn raise(&mut self, now: Time, bus: &mut dyn BusMaster) {
        self.interrupts.forget();
        // A masked interrupt is kept and not dropped. It is sent when the mask goes, or the host
        // would wait for returns that are there already.
        if self.registers.values.interrupt_mask {
            self.interrupts.pending = true;
            return;
        }
        let number = self.traffic.interrupts;
        self.traffic.interrupts += 1;
        if !self.faults.lose_interrupt(number) {
            // It follows the descriptors on the wire.
            // PCI Express keeps posted writes in order. An interrupt in front of them would make
            // the host look at descriptors that are not there yet.
            let at = now + self.dma.link.write_time(0, MESSAGE_BYTES);
            bus.interrupt(at, 0);
        }
    }

    pub(super) fn timeout(&mut self, now: Time, batch: u32, bus: &mut dyn BusMaster) {
        if self.interrupts.waits_for(batch) {
            self.raise(now, bus);
        }
    }

    pub(super) fn mask(&mut self, now: Time, on: bool, bus: &mut dyn BusMaster) {
        if !on && self.interrupts.pending {
            self.raise(now, bus);
        }
    }
}
