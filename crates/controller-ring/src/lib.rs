//! The descriptor-ring card of S0 (S0-8 … S0-26): what is behind the connector.
//!
//! The way of a block: the doorbell is seen by the microprocessor, which sets up the fetch of the
//! block's descriptors; it works on one command after another, starting the next while the transfer
//! of the last one runs (S0-21); what is done goes back as the response mode says, then an interrupt.
//!
//! Here is the card's life; `registers` is what the host sees, `block` has commands and responses,
//! `data` what is in the pages, `dma` the engines, `tlp` the link, `media` what stores the data.
//!
//! Key types: [`RingConfig`] (the file of a card), [`RingCard`] (the card, a
//! [`PciDevice`](ssdyno_pci::PciDevice)), [`TlpLink`] (its link, packet by packet), [`presets`].
//!
//! Errors: a file that cannot be read is TOML's error; [`ConfigError`] names a key whose value cannot be. What a
//! driver does wrong is a [`RingFault`], which the card shows in its registers.
//!
//! Not modelled: flow control and errors of the link, and what the microprocessor does beyond a time for each
//! command, doorbell and return.

mod block;
mod config;
mod data;
mod dma;
mod interrupt;
mod media;
pub mod presets;
mod registers;
mod returns;
mod tlp;

use std::collections::VecDeque;

use ssdyno_block::{Completion, ConfigError, FaultPlan, Time};
use ssdyno_energy::{Facts, PowerModel};
use ssdyno_engine::EventQueue;
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::{Activity, Busy, EventLog, FlashCause, PartEvent, PartKind};
use ssdyno_pci::BusMaster;
use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::{ResponseMode, RingFault};

use block::Local;
pub use config::{CardConfig, DescriptorEngine, DmaConfig, MediaConfig, RingConfig};
use dma::{Engine, Transfer};
use interrupt::Interrupts;
use media::Media;
use registers::Registers;
use ssdyno_device::{Contents, DeviceConfig, DeviceFacts, DeviceReport};
pub use tlp::{Direction as TlpDirection, TlpConfig, TlpLink, Traffic};

/// What can happen inside the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// [`layout::CONTROL`] was written.
    Control(bool),
    /// [`layout::NEXT_SIZE`] was written; the values wait in a queue.
    Doorbell,
    /// [`layout::INTERRUPT_MASK`] was written.
    Mask(bool),
    /// [`layout::INTERRUPT_ACKNOWLEDGE`] was written.
    Acknowledge,
    /// A microprocessor has done its job.
    Processor(u32),
    /// An engine is set up: its first packet may go.
    Start(u32),
    /// The first completion of an engine's read is there.
    Arrive(u32),
    /// An engine has done its transfer.
    Sent(u32),
    /// Descriptors are in host memory: first slot, how many.
    Landed(u32, u32),
    /// The medium has done its part of the command in a slot.
    Medium(u32),
    /// Returned descriptors have waited long enough for their interrupt.
    Timeout(u32),
    /// The command in a slot, which a fault held up, begins.
    Begin(u32),
}

/// Bits of a slot, and of a number of descriptors.
const SLOT_BITS: u32 = 13;

/// Four bits for the kind, 28 for the rest.
impl ssdyno_engine::Event for Event {
    fn pack(self) -> u32 {
        let (kind, rest) = match self {
            Event::Control(on) => (0, u32::from(on)),
            Event::Doorbell => (1, 0),
            Event::Mask(on) => (2, u32::from(on)),
            Event::Acknowledge => (3, 0),
            Event::Processor(at) => (4, at),
            Event::Start(at) => (5, at),
            Event::Arrive(at) => (6, at),
            Event::Sent(at) => (7, at),
            Event::Landed(slot, count) => (8, slot | count << SLOT_BITS),
            Event::Medium(slot) => (9, slot),
            Event::Timeout(number) => (10, number & REST),
            Event::Begin(slot) => (11, slot),
        };
        kind << 28 | rest
    }
    fn unpack(code: u32) -> Event {
        let rest = code & REST;
        match code >> 28 {
            0 => Event::Control(rest != 0),
            1 => Event::Doorbell,
            2 => Event::Mask(rest != 0),
            3 => Event::Acknowledge,
            4 => Event::Processor(rest),
            5 => Event::Start(rest),
            6 => Event::Arrive(rest),
            7 => Event::Sent(rest),
            8 => Event::Landed(rest & ((1 << SLOT_BITS) - 1), rest >> SLOT_BITS),
            9 => Event::Medium(rest),
            10 => Event::Timeout(rest),
            _ => Event::Begin(rest),
        }
    }
}

const REST: u32 = (1 << 28) - 1;

/// What was set up when the card was switched on.
#[derive(Clone, Copy, Debug)]
struct Setup {
    ring: u64,
    size: u32,
    mode: ResponseMode,
    subset: u32,
    prefetch: u32,
}

/// What a microprocessor does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Job {
    /// Sees a doorbell and sets up the fetch.
    Fetch,
    /// Sets up the return of descriptors: number of the first, how many.
    Return(u32, u32),
    /// A command, by number.
    Command(u32),
}

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
    media: Media,
    link: TlpLink,
    queue: EventQueue<Event>,
    log: EventLog,
    registers: Registers,
    setup: Option<Setup>,
    fault: Option<RingFault>,
    doorbells: VecDeque<(u32, u32)>,

    /// Descriptors in the card, by number modulo their count.
    local: Vec<Local>,
    /// Number of the first descriptor of the block, and one past its last.
    first: u32,
    end: u32,
    /// A block is with the card.
    outstanding: bool,
    /// Nothing was given since the card was switched on: the first descriptor says its number.
    fresh: bool,
    /// One past the last number that is in the card; behind `end` they are held.
    fetched: u32,
    /// The next command to start.
    next_command: u32,
    /// Everything before it was handed to a return, in the modes that return in order.
    answered: u32,
    /// Descriptors of the block that are back with the host.
    returned: u32,
    /// Pieces of the block's fetch, and of the prefetch, that are still to come.
    fetch_pieces: u32,
    prefetch_pieces: u32,
    /// A doorbell that came before the prefetch was through.
    early_doorbell: Option<(u32, u32)>,
    fetch_due: bool,
    returns: VecDeque<(u32, u32)>,

    processors: Vec<Option<(Job, Time)>>,
    engines: Vec<Engine>,
    data: VecDeque<Transfer>,
    descriptors: VecDeque<Transfer>,

    interrupts: Interrupts,
    /// How often the card was reset: part of the media's tokens. 19 bits of it count.
    epoch: u32,
    faults: Option<Box<FaultPlan>>,
    /// The card begins nothing more, until it is reset.
    hangs: bool,
    /// Commands started so far.
    started: u64,
    traffic: RingTraffic,
    busy_since: Option<Time>,
    answers: Vec<Completion>,
    contents: Option<Contents>,
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
        self.media.precondition(watcher)
    }

    /// As [`new`](RingCard::new), but as it leaves the factory.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn fresh(config: &RingConfig, seed: u64) -> Result<RingCard, ConfigError> {
        config.check()?;
        let local = (config.card.max_block * 2 + config.card.prefetch).next_power_of_two();
        debug_assert!(local < 1 << SLOT_BITS);
        let own = config.dma.descriptors == DescriptorEngine::Separate;
        let mut engines = vec![Engine::default(); config.dma.engines as usize];
        engines.iter_mut().for_each(|engine| engine.moves_descriptors = !own);
        if own {
            engines.push(Engine { moves_descriptors: true, ..Engine::default() });
        }
        let engine_count = engines.len();
        engines.iter_mut().take(config.dma.engines as usize).for_each(|e| e.moves_data = true);
        Ok(RingCard {
            media: Media::fresh(config, seed)?,
            link: TlpLink::new(&config.link)?,
            queue: EventQueue::new(),
            log: EventLog::default(),
            registers: Registers::default(),
            setup: None,
            fault: None,
            doorbells: VecDeque::with_capacity(4),
            local: vec![Local::default(); local as usize],
            first: 0,
            end: 0,
            outstanding: false,
            fresh: true,
            fetched: 0,
            next_command: 0,
            answered: 0,
            returned: 0,
            fetch_pieces: 0,
            prefetch_pieces: 0,
            early_doorbell: None,
            fetch_due: false,
            returns: VecDeque::with_capacity(local as usize),
            processors: vec![None; config.card.processors as usize],
            engines,
            data: VecDeque::with_capacity(local as usize + engine_count),
            descriptors: VecDeque::with_capacity(local as usize),
            interrupts: Interrupts::default(),
            epoch: 0,
            faults: None,
            hangs: false,
            started: 0,
            traffic: RingTraffic::default(),
            busy_since: None,
            answers: Vec::with_capacity(64),
            contents: None,
            config: config.clone(),
        })
    }

    /// From now on real data is kept, and found again when it is read; what was not written reads as
    /// zeros. Without, transfers take their time and move nothing. Costs the host's memory and time,
    /// and changes no figure.
    pub fn keep_contents(&mut self) {
        self.contents.get_or_insert_default();
    }

    /// How the host broke the protocol since the card was last reset, if it did.
    pub fn fault(&self) -> Option<RingFault> {
        self.fault
    }

    /// What crossed the link so far.
    pub fn traffic(&self) -> &RingTraffic {
        &self.traffic
    }

    /// The link, for closed forms.
    pub fn link(&self) -> &TlpLink {
        &self.link
    }

    /// Device events since they were last taken.
    pub fn events(&mut self) -> &mut EventLog {
        &mut self.log
    }

    /// Says of itself what reports want to know.
    pub fn report(&self, report: &mut DeviceReport) {
        let flash = self.media.report();
        let facts = DeviceFacts {
            capacity_bytes: self.media.pages * u64::from(layout::PAGE_BYTES),
            sector_bytes: layout::PAGE_BYTES,
            queue_depth: self.config.card.max_block,
            write_buffer_bytes: self.media.write_buffer_bytes(),
            link_ways: 2,
        };
        let cores = self.config.card.processors;
        let power = PowerModel::Controller {
            config: Box::new(self.config.energy.clone()),
            facts: Facts { cores, ..self.media.energy_facts() },
        };
        report.unit(RingConfig::NAME, facts, power).flash = flash;
    }

    /// Switched on or off; off drops everything.
    fn control(&mut self, now: Time, on: bool) {
        if on && self.setup.is_none() {
            self.setup = self.latch();
            if self.setup.is_none() {
                self.fail(RingFault::BadSetup);
            }
            return;
        }
        if !on {
            // Events of what was dropped must not come. The media go on: they forget nothing.
            self.queue = EventQueue::new();
            self.setup = None;
            self.fault = None;
            self.outstanding = false;
            self.fresh = true;
            (self.first, self.end, self.fetched, self.next_command) = (0, 0, 0, 0);
            (self.answered, self.returned, self.fetch_pieces, self.prefetch_pieces) = (0, 0, 0, 0);
            self.early_doorbell = None;
            self.fetch_due = false;
            self.doorbells.clear();
            self.returns.clear();
            self.data.clear();
            self.descriptors.clear();
            self.engines.iter_mut().for_each(|engine| engine.transfer = None);
            self.processors.fill(None);
            self.interrupts = Interrupts::default();
            self.epoch = (self.epoch + 1) & (u32::MAX >> SLOT_BITS);
            self.hangs = false;
            self.idle(now);
        }
    }

    fn fail(&mut self, fault: RingFault) {
        self.fault = self.fault.or(Some(fault));
    }

    /// Something is in the card from `now` on.
    fn busy(&mut self, now: Time) {
        self.busy_since.get_or_insert(now);
    }

    /// Nothing is in the card any more.
    fn idle(&mut self, now: Time) {
        if let Some(since) = self.busy_since.take() {
            self.log_part(PartKind::Controller, 0, Activity::InService, (since, now));
        }
    }

    fn log_part(
        &mut self,
        kind: PartKind,
        index: u16,
        activity: Activity,
        (from, to): (Time, Time),
    ) {
        let part = PartEvent::new(kind, index);
        self.log.push(Busy { part, activity, cause: FlashCause::None, operations: 1, from, to });
    }

    fn handle(&mut self, now: Time, event: Event, bus: &mut dyn BusMaster) {
        match event {
            Event::Control(on) => self.control(now, on),
            Event::Doorbell => {
                if let Some((offset, size)) = self.doorbells.pop_front() {
                    self.doorbell(now, offset, size);
                }
            }
            Event::Mask(on) => self.mask(now, on, bus),
            Event::Acknowledge => bus.deassert(now),
            Event::Processor(at) => self.job_done(now, at as usize, bus),
            Event::Start(at) => self.start_transfer(now, at as usize),
            Event::Arrive(at) => self.receive(now, at as usize),
            Event::Sent(at) => self.transfer_done(now, at as usize, bus),
            Event::Landed(slot, count) => self.landed(now, slot, count, bus),
            Event::Medium(slot) => self.medium_done(slot, bus),
            Event::Timeout(number) => self.timeout(now, number, bus),
            Event::Begin(slot) => self.begin(now, slot as usize, bus),
        }
        self.work(now);
    }
}
