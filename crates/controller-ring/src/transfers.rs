//! What the DMA engines do: a transfer from its setup to its end.

use ssdyno_block::Time;
use ssdyno_engine::events::{Activity, PartKind};
use ssdyno_pci::BusMaster;

use super::RingCard;
use super::dma::{Transfer, Work};
use super::event::{Event, Stretch};

/// The link's directions in device events.
const TO_DEVICE: (PartKind, u16) = (PartKind::HostLink, 0);
const TO_HOST: (PartKind, u16) = (PartKind::HostLink, 1);

impl RingCard {
    /// Engine `at` is set up.
    pub(super) fn start_transfer(&mut self, now: Time, at: usize) {
        let Some(Transfer { work, address, bytes }) = self.dma.engines[at].transfer else { return };
        if !work.is_to_host() {
            let (sent, first) = self.dma.link.request(now, address, bytes);
            self.log.busy(TO_HOST, Activity::Transfer, sent);
            return self.queue.schedule(first, Event::Arrive(at as u32));
        }
        let (wire, traffic) = self.dma.link.write(now, address, bytes);
        self.log.busy(TO_HOST, Activity::Transfer, wire);
        let medium =
            if work.is_data() { self.storage.media.stream(now, bytes, &mut self.log) } else { now };
        match work {
            Work::Read(_) => self.traffic.data_to_host += traffic,
            _ => self.traffic.returns += traffic,
        }
        // Medium and link work at the same time: the data flows through. The slower of the two
        // ends the transfer.
        self.queue.schedule(wire.1.max(medium), Event::Sent(at as u32));
    }

    /// The first completion of engine `at`'s read is there.
    pub(super) fn receive(&mut self, now: Time, at: usize) {
        let Some(Transfer { work, address, bytes }) = self.dma.engines[at].transfer else { return };
        let (wire, slowest) = self.dma.link.receive(now, address, bytes);
        self.log.busy(TO_DEVICE, Activity::Transfer, wire);
        let medium =
            if work.is_data() { self.storage.media.stream(now, bytes, &mut self.log) } else { now };
        let traffic = self.dma.link.read_traffic(address, bytes);
        match work {
            Work::Write(_) => self.traffic.data_from_host += traffic,
            _ => self.traffic.fetches += traffic,
        }
        self.queue.schedule(wire.1.max(medium).max(slowest), Event::Sent(at as u32));
    }

    /// Engine `at` is done.
    pub(super) fn transfer_done(&mut self, now: Time, at: usize, bus: &mut dyn BusMaster) {
        let Some(Transfer { work, .. }) = self.dma.engines[at].transfer.take() else { return };
        match work {
            Work::Fetch(..) | Work::Prefetch(..) => {
                self.fetched(work, bus);
                self.after_fetch(now);
            }
            Work::Return(first, count) => {
                let first = self.block.slot(first) as u32;
                // A posted write is done for the engine when it is on the wire. The host sees it
                // one link latency later.
                self.queue.schedule(
                    now + self.dma.link.latency(),
                    Event::Landed(Stretch { first, count }),
                );
            }
            Work::Read(_) | Work::Write(_) => self.data_done(now, work, bus),
        }
    }
}
