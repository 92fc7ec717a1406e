//! The half-duplex bus of S3, where answers go before commands.

use ssdyno_block::{Op, Time};
use ssdyno_device::link::Direction;

use super::Ssd;
use super::event::Event;
use super::path::SectorBus;

impl Ssd {
    /// Lets requests pass until one has data to transfer.
    pub(super) fn use_bus(&mut self, now: Time) {
        if self.path.sector_bus.as_ref().is_none_or(|bus| bus.busy) {
            return;
        }
        self.set_bus_busy(true);
        while let Some((slot, finished)) = self.path.sector_bus.as_mut().and_then(SectorBus::next) {
            let request = self.requests.get(slot).request;
            let direction = match (finished, request.op) {
                (true, Op::Read) => Direction::ToHost,
                (false, Op::Write) => Direction::ToDevice,
                (true, _) => {
                    self.complete(now, slot);
                    continue;
                }
                (false, _) => {
                    self.dispatch(now, slot);
                    continue;
                }
            };
            let bytes = u64::from(request.length_bytes);
            // The bus carries one transfer at a time in either direction, and answers go before
            // commands, as in the DiskSim model behind S3 (S3-23). The order changes the waits but
            // not the IOPS (S3-24).
            let free = self.path.link.send(direction, now, bytes, &mut self.log);
            return self.queue.schedule(free, Event::BusFree(slot));
        }
        self.set_bus_busy(false);
    }

    /// The data of `slot` has crossed.
    pub(super) fn bus_free(&mut self, now: Time, slot: u32) {
        if self.requests.get(slot).request.op == Op::Read {
            self.complete(now, slot);
        } else {
            self.dispatch(now, slot);
        }
        self.set_bus_busy(false);
        self.use_bus(now);
    }

    fn set_bus_busy(&mut self, busy: bool) {
        if let Some(bus) = &mut self.path.sector_bus {
            bus.busy = busy;
        }
    }
}
