//! DMA engines (S0-19): each does one transfer at a time.
//!
//! Descriptors go before data that waits, and in order: one transfer of them at a time. With one engine for both, each return of a descriptor
//! holds up the data of the next command (S0-20).

use ssdyno_block::Time;
use ssdyno_engine::events::{Activity, PartKind};
use ssdyno_pci::BusMaster;

use super::{Event, RingCard};

/// What a transfer is for. Descriptors by number and count, pages by slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// Descriptors of the block, into the card.
    Fetch(u32, u32),
    /// Descriptors behind the block, into the card.
    Prefetch(u32, u32),
    /// Descriptors, to the host.
    Return(u32, u32),
    /// The page of a user's read, to the host.
    Read(u32),
    /// The page of a user's write, into the card.
    Write(u32),
}

impl Work {
    fn is_to_host(self) -> bool {
        matches!(self, Work::Return(..) | Work::Read(_))
    }
    fn is_data(self) -> bool {
        matches!(self, Work::Read(_) | Work::Write(_))
    }
}

/// A transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) work: Work,
    pub(super) address: u64,
    pub(super) bytes: u64,
}

/// An engine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Engine {
    pub(super) moves_data: bool,
    pub(super) moves_descriptors: bool,
    pub(super) transfer: Option<Transfer>,
}

/// Index of the link's directions in device events.
const TO_DEVICE: u16 = 0;
const TO_HOST: u16 = 1;

impl RingCard {
    pub(super) fn start_engines(&mut self, now: Time) {
        let setup = self.config.dma.setup_time.0;
        for at in 0..self.engines.len() {
            let Engine { moves_data, moves_descriptors, transfer } = self.engines[at];
            if transfer.is_some() {
                continue;
            }
            let moving = |engine: &Engine| engine.transfer.is_some_and(|t| !t.work.is_data());
            let may = moves_descriptors && !self.engines.iter().any(moving);
            let descriptors = if may { self.descriptors.pop_front() } else { None };
            let next =
                descriptors.or_else(|| if moves_data { self.data.pop_front() } else { None });
            if next.is_some() {
                self.engines[at].transfer = next;
                self.queue.schedule(now + setup, Event::Start(at as u32));
            }
        }
    }

    /// Engine `at` is set up.
    pub(super) fn start_transfer(&mut self, now: Time, at: usize) {
        let Some(Transfer { work, address, bytes }) = self.engines[at].transfer else { return };
        if !work.is_to_host() {
            let (sent, first) = self.link.request(now, address, bytes);
            self.log_part(PartKind::HostLink, TO_HOST, Activity::Transfer, sent);
            return self.queue.schedule(first, Event::Arrive(at as u32));
        }
        let (wire, traffic) = self.link.write(now, address, bytes);
        self.log_part(PartKind::HostLink, TO_HOST, Activity::Transfer, wire);
        let medium =
            if work.is_data() { self.media.stream(now, bytes, &mut self.log) } else { now };
        match work {
            Work::Read(_) => self.traffic.data_to_host += traffic,
            _ => self.traffic.returns += traffic,
        }
        self.queue.schedule(wire.1.max(medium), Event::Sent(at as u32));
    }

    /// The first completion of engine `at`'s read is there.
    pub(super) fn receive(&mut self, now: Time, at: usize) {
        let Some(Transfer { work, address, bytes }) = self.engines[at].transfer else { return };
        let (wire, slowest) = self.link.receive(now, address, bytes);
        self.log_part(PartKind::HostLink, TO_DEVICE, Activity::Transfer, wire);
        let medium =
            if work.is_data() { self.media.stream(now, bytes, &mut self.log) } else { now };
        let traffic = self.link.read_traffic(address, bytes);
        match work {
            Work::Write(_) => self.traffic.data_from_host += traffic,
            _ => self.traffic.fetches += traffic,
        }
        self.queue.schedule(wire.1.max(medium).max(slowest), Event::Sent(at as u32));
    }

    /// Engine `at` is done.
    pub(super) fn transfer_done(&mut self, now: Time, at: usize, bus: &mut dyn BusMaster) {
        let Some(Transfer { work, .. }) = self.engines[at].transfer.take() else { return };
        match work {
            Work::Fetch(..) | Work::Prefetch(..) => {
                self.fetched(work, bus);
                self.after_fetch(now);
            }
            Work::Return(first, count) => {
                let slot = self.slot(first) as u32;
                self.queue.schedule(now + self.link.latency(), Event::Landed(slot, count));
            }
            Work::Read(_) | Work::Write(_) => self.data_done(now, work, bus),
        }
    }
}
