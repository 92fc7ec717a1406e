//! The path between the host and the FTL: link, firmware, DRAM.

use std::collections::VecDeque;

use ssdyno_block::units::Bandwidth;
use ssdyno_block::{ConfigError, Time};
use ssdyno_device::LinkConfig;
use ssdyno_device::link::{Direction, HostLink};
use ssdyno_engine::events::{Activity, EventLog, PartKind};
use ssdyno_engine::{FifoResource, LastTransferTime};

use crate::Config;

/// The requests that wait for the bus.
#[derive(Debug, Default)]
pub(super) struct SectorBus {
    /// A transfer is under way, or the queues are being worked on.
    pub(super) busy: bool,
    /// Requests whose flash work is done.
    pub(super) finished: VecDeque<u32>,
    /// Requests that the device has accepted.
    pub(super) commands: VecDeque<u32>,
}

impl SectorBus {
    pub(super) fn new(config: &LinkConfig) -> Option<SectorBus> {
        matches!(config, LinkConfig::SectorBus { .. }).then(SectorBus::default)
    }

    /// The next request, and whether it is finished.
    pub(super) fn next(&mut self) -> Option<(u32, bool)> {
        match self.finished.pop_front() {
            Some(slot) => Some((slot, true)),
            None => self.commands.pop_front().map(|slot| (slot, false)),
        }
    }
}

/// The way of commands and data through the controller.
#[derive(Debug)]
pub(super) struct DataPath {
    pub(super) link: HostLink,
    pub(super) sector_bus: Option<SectorBus>,
    cores: Vec<FifoResource>,
    /// Firmware time of a command, and of each of its pages.
    command_time: Time,
    page_time: Time,
    dram: FifoResource,
    dram_bandwidth: Option<Bandwidth>,
    dram_usual: LastTransferTime,
}

impl DataPath {
    pub(super) fn new(config: &Config) -> Result<DataPath, ConfigError> {
        let controller = &config.controller;
        Ok(DataPath {
            link: HostLink::new(&config.host_link)?,
            sector_bus: SectorBus::new(&config.host_link),
            cores: vec![FifoResource::default(); controller.cores as usize],
            command_time: controller.command_time.0,
            page_time: controller.page_time.0,
            dram: FifoResource::default(),
            dram_bandwidth: controller.dram_bandwidth,
            dram_usual: LastTransferTime::default(),
        })
    }

    /// A command of `pages` pages that is ready at `ready` comes in; gives when the firmware knows it.
    #[inline]
    pub(super) fn command(&mut self, ready: Time, pages: u64, log: &mut EventLog) -> Time {
        let ready = self.link.command(ready);
        self.execute(ready, pages, log)
    }

    /// Data of a write go from the host to the DRAM; gives when they are there.
    #[inline]
    pub(super) fn bring_in(&mut self, ready: Time, bytes: u64, log: &mut EventLog) -> Time {
        let ready = self.link.send(Direction::ToDevice, ready, bytes, log);
        self.through_dram(ready, bytes, log)
    }

    /// Data of a read go through the DRAM to the host; gives when they are there.
    #[inline(always)]
    pub(super) fn send_out(&mut self, ready: Time, bytes: u64, log: &mut EventLog) -> Time {
        let ready = self.through_dram(ready, bytes, log);
        self.link.send(Direction::ToHost, ready, bytes, log)
    }

    /// Firmware time for a command of `pages` pages on the core that is free first.
    fn execute(&mut self, ready: Time, pages: u64, log: &mut EventLog) -> Time {
        let length = self.command_time + self.page_time * pages;
        if length == Time::ZERO {
            return ready;
        }
        // The first free core takes the command, whichever it was before. A fixed core per queue
        // would leave cores idle while commands wait for another one.
        let core = (0..self.cores.len()).min_by_key(|core| self.cores[*core].free_at());
        let index = core.unwrap_or(0);
        let (from, to) = self.cores[index].reserve(ready, length);
        log.busy((PartKind::Core, index as u16), Activity::Execute, (from, to));
        to
    }

    fn through_dram(&mut self, ready: Time, bytes: u64, log: &mut EventLog) -> Time {
        let Some(rate) = self.dram_bandwidth else { return ready };
        // Nearly all transfers have the size of a page. The remembered length avoids a
        // floating-point division and a rounding per transfer.
        let length = match self.dram_usual.known(bytes) {
            Some(length) => length,
            None => self.dram_usual.learn(bytes, rate.time_for(bytes)),
        };
        let (from, to) = self.dram.reserve(ready, length);
        log.busy((PartKind::Dram, 0), Activity::Transfer, (from, to));
        to
    }
}
