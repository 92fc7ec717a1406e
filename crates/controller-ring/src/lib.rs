//! The descriptor-ring card of S0 (S0-8 … S0-26): what is behind the connector.
//!
//! The way of a block: the doorbell is seen by the microprocessor, which sets up the fetch of the
//! block's descriptors; it works on one command after another, starting the next while the transfer
//! of the last one runs (S0-21); what is done goes back as the response mode says, then an interrupt.
//!
//! Here is the card's life; each part has its own module: `function` and `registers` (what the host sees), `block` (the
//! descriptors of a block), `fetch` and `returns` (their way in and out), `processors` and `commands`
//! (what is done with them), `dma` and `transfers` (the engines and what they do), `tlp` (the link), `storage` and
//! `media` (what stores the data), `interrupt`, `faults`, `event`.
//!
//! Key types: [`RingConfig`] (the file of a card), [`RingCard`] (the card, a
//! [`PciDevice`](ssdyno_pci::PciDevice)), [`TlpLink`] (its link, packet by packet), [`presets`].
//!
//! Errors: a file that cannot be read is TOML's error; [`ConfigError`] names a key whose value cannot be. What a
//! driver does wrong is a [`RingFault`], which the card shows in its registers.
//!
//! Not modelled: flow control and errors of the link, and the work of the microprocessor beyond a time for each
//! command, doorbell and return.

mod block;
mod commands;
mod config;
mod dma;
mod event;
mod faults;
mod fetch;
mod function;
mod interrupt;
mod media;
pub mod presets;
mod processors;
mod registers;
mod returns;
mod storage;
mod tlp;
mod transfers;

use ssdyno_block::{ConfigError, Time};
use ssdyno_energy::{Facts, PowerModel};
use ssdyno_engine::EventQueue;
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::EventLog;
use ssdyno_pci::BusMaster;
use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::RingFault;

use block::{Block, Prefetch};
pub use config::{CardConfig, DescriptorEngine, DmaConfig, MediaConfig, RingConfig};
use dma::Dma;
use event::{Event, SLOT_BITS, Stretch};
use faults::Faults;
use interrupt::Interrupts;
use processors::Processors;
use registers::Registers;
use ssdyno_device::{DeviceConfig, DeviceFacts, DeviceReport};
use storage::Storage;
pub use tlp::{Direction as TlpDirection, TlpConfig, TlpLink, Traffic};

/// What crossed the link, by purpose (S0-24).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RingTraffic {
    /// Pages of users' reads.
    pub data_to_host: Traffic,
    /// Pages of users' writes.
    pub data_from_host: Traffic,
    /// Descriptors fetched.
    pub fetches: Traffic,
    /// Descriptors returned.
    pub returns: Traffic,
    /// Commands done.
    pub commands: u64,
    /// Blocks returned in full.
    pub blocks: u64,
    /// Descriptors that were held when their block was given.
    pub prefetched: u64,
    /// Interrupts sent.
    pub interrupts: u64,
}

impl RingTraffic {
    /// Transactions on the link for all purposes.
    pub fn transactions(&self) -> u64 {
        let all = [&self.data_to_host, &self.data_from_host, &self.fetches, &self.returns];
        all.iter().map(|traffic| traffic.transactions).sum()
    }
}

/// The simulated ring card.
#[derive(Debug)]
pub struct RingCard {
    config: RingConfig,
    queue: EventQueue<Event>,
    log: EventLog,
    registers: Registers,
    block: Block,
    prefetch: Prefetch,
    processors: Processors,
    dma: Dma,
    storage: Storage,
    interrupts: Interrupts,
    faults: Faults,
    traffic: RingTraffic,
}

impl RingCard {
    /// Builds the card and preconditions its flash, if it has any; `seed` decides about everything
    /// random in that.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn new(config: &RingConfig, seed: u64) -> Result<RingCard, ConfigError> {
        let mut card = RingCard::fresh(config, seed)?;
        card.precondition(&mut |_| true).map_err(|error| match error {
            PrepareError::Config(error) => error,
            PrepareError::Interrupted => unreachable!("nobody interrupts"),
        })?;
        Ok(card)
    }

    /// See [`Device::precondition`](ssdyno_device::Device::precondition).
    ///
    /// # Errors
    /// The device file asks for a state that cannot be; [`PrepareError::Interrupted`].
    pub fn precondition(
        &mut self,
        watcher: &mut dyn FnMut(f64) -> bool,
    ) -> Result<(), PrepareError> {
        self.storage.media.precondition(watcher)
    }

    /// As [`new`](RingCard::new), but as it leaves the factory.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn fresh(config: &RingConfig, seed: u64) -> Result<RingCard, ConfigError> {
        config.check()?;
        // The card holds the block that is being returned, the next one, and what it has
        // prefetched. A power of two makes the number of a descriptor, masked, its place.
        let local = (config.card.max_block * 2 + config.card.prefetch).next_power_of_two();
        debug_assert!(local < 1 << SLOT_BITS);
        Ok(RingCard {
            storage: Storage::fresh(config, seed)?,
            queue: EventQueue::new(),
            log: EventLog::default(),
            registers: Registers::default(),
            block: Block::new(local),
            prefetch: Prefetch::default(),
            processors: Processors::new(&config.card),
            dma: Dma::new(config, local)?,
            interrupts: Interrupts::default(),
            faults: Faults::default(),
            traffic: RingTraffic::default(),
            config: config.clone(),
        })
    }

    /// From now on real data is kept, and found again when it is read; what was not written reads as
    /// zeros. Without, transfers take their time and move nothing. Costs the host's memory and time,
    /// and changes no figure.
    pub fn keep_contents(&mut self) {
        self.storage.keep_contents();
    }

    /// How the host broke the protocol since the card was last reset, if it did.
    pub fn fault(&self) -> Option<RingFault> {
        self.registers.fault
    }

    /// What crossed the link so far.
    pub fn traffic(&self) -> &RingTraffic {
        &self.traffic
    }

    /// The link, for closed forms.
    pub fn link(&self) -> &TlpLink {
        &self.dma.link
    }

    /// Device events since they were last taken.
    pub fn events(&mut self) -> &mut EventLog {
        &mut self.log
    }

    /// Says of itself what reports want to know.
    pub fn report(&self, report: &mut DeviceReport) {
        let flash = self.storage.media.report();
        let facts = DeviceFacts {
            capacity_bytes: self.storage.media.pages * u64::from(layout::PAGE_BYTES),
            sector_bytes: layout::PAGE_BYTES,
            queue_depth: self.config.card.max_block,
            write_buffer_bytes: self.storage.media.write_buffer_bytes(),
            link_ways: 2,
        };
        let cores = self.config.card.processors;
        let power = PowerModel::Controller {
            config: Box::new(self.config.energy.clone()),
            facts: Facts { cores, ..self.storage.media.energy_facts() },
        };
        report.unit(RingConfig::NAME, facts, power).flash = flash;
    }

    /// Switched on or off; off drops everything.
    fn control(&mut self, now: Time, on: bool) {
        if on {
            return self.registers.switch_on(self.config.card.prefetch);
        }
        // Events name slots and engines, which belong to other commands after the reset. So no
        // event of what was dropped may come.
        self.queue = EventQueue::new();
        self.registers.switch_off();
        self.block.clear(now, &mut self.log);
        self.prefetch = Prefetch::default();
        self.processors.clear();
        self.dma.clear();
        self.storage.drop_answers();
        self.interrupts = Interrupts::default();
        self.faults.hangs = false;
    }

    fn handle(&mut self, now: Time, event: Event, bus: &mut dyn BusMaster) {
        match event {
            Event::Control(on) => self.control(now, on),
            Event::Doorbell => {
                if let Some(doorbell) = self.registers.next_doorbell() {
                    self.doorbell(now, doorbell);
                }
            }
            Event::Mask(on) => self.mask(now, on, bus),
            Event::Acknowledge => bus.deassert(now),
            Event::Processor(at) => self.job_done(now, at as usize, bus),
            Event::Start(at) => self.start_transfer(now, at as usize),
            Event::Arrive(at) => self.receive(now, at as usize),
            Event::Sent(at) => self.transfer_done(now, at as usize, bus),
            Event::Landed(Stretch { first, count }) => self.landed(now, first, count, bus),
            Event::Medium(slot) => self.accessed(slot as usize, bus),
            Event::Timeout(number) => self.timeout(now, number, bus),
            Event::Begin(slot) => self.begin(now, slot as usize, bus),
        }
        self.work(now);
    }
}
