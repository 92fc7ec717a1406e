//! DMA engines (S0-19): each does one transfer at a time.
//!
//! Descriptors go before data that waits, and in order: one transfer of them at a time. With one engine for both, each return of a descriptor
//! holds up the data of the next command (S0-20).

use std::collections::VecDeque;

use ssdyno_block::{ConfigError, Time};
use ssdyno_engine::EventQueue;
use ssdyno_spec::ring as layout;

use super::config::{DescriptorEngine, RingConfig};
use super::event::Event;
use super::registers::Setup;
use super::tlp::TlpLink;

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
    pub(super) fn is_to_host(self) -> bool {
        matches!(self, Work::Return(..) | Work::Read(_))
    }
    pub(super) fn is_data(self) -> bool {
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
    moves_data: bool,
    moves_descriptors: bool,
    pub(super) transfer: Option<Transfer>,
}

/// The engines, what waits for them, and the link they use.
#[derive(Debug)]
pub(super) struct Dma {
    pub(super) link: TlpLink,
    pub(super) engines: Vec<Engine>,
    /// Engines that move data.
    data_engines: usize,
    /// Time from the start of a transfer to its first packet plus the time to end the transfer.
    setup_time: Time,
    /// Pages that wait for an engine.
    data: VecDeque<Transfer>,
    /// Descriptors that wait for an engine.
    descriptors: VecDeque<Transfer>,
}

impl Dma {
    /// For a card with so many descriptors of its own.
    pub(super) fn new(config: &RingConfig, descriptors: u32) -> Result<Dma, ConfigError> {
        let data_engines = config.dma.engines as usize;
        let own = config.dma.descriptors == DescriptorEngine::Separate;
        // With a shared engine each return of a descriptor holds up the data of the next command
        // (S0-20). The second engine makes the loss disappear, and a test compares the two.
        let both = Engine { moves_data: true, moves_descriptors: !own, transfer: None };
        let mut engines = vec![both; data_engines];
        if own {
            engines.push(Engine { moves_descriptors: true, ..Engine::default() });
        }
        Ok(Dma {
            link: TlpLink::new(&config.link)?,
            data: VecDeque::with_capacity(descriptors as usize + engines.len()),
            descriptors: VecDeque::with_capacity(descriptors as usize),
            engines,
            data_engines,
            setup_time: config.dma.setup_time.0,
        })
    }

    /// The card is switched off: all transfers are dropped.
    pub(super) fn clear(&mut self) {
        self.data.clear();
        self.descriptors.clear();
        self.engines.iter_mut().for_each(|engine| engine.transfer = None);
    }

    /// True if every engine has its next page.
    #[inline]
    pub(super) fn is_full_of_data(&self) -> bool {
        // One page for each engine is prepared ahead. More would let the processors run far
        // ahead of the engines, and the paper's time between commands would not hold (S0-21).
        self.data.len() >= self.data_engines
    }

    pub(super) fn queue_data(&mut self, work: Work, address: u64, bytes: u64) {
        self.data.push_back(Transfer { work, address, bytes });
    }

    /// Cuts `count` descriptors from `first` on where the ring wraps around, and queues a transfer
    /// for each piece; gives the number of pieces.
    pub(super) fn queue_descriptors(
        &mut self,
        setup: &Setup,
        first: u32,
        count: u32,
        make: fn(u32, u32) -> Work,
    ) -> u32 {
        let (mut at, mut left, mut pieces) = (first, count, 0);
        while left > 0 {
            // The ring wraps, so a block may lie in two pieces. A transfer has one address and
            // moves one of them.
            let (address, contiguous) = setup.place(at);
            let size = left.min(contiguous);
            let bytes = u64::from(size * layout::DESCRIPTOR_BYTES);
            self.descriptors.push_back(Transfer { work: make(at, size), address, bytes });
            at = at.wrapping_add(size);
            left -= size;
            pieces += 1;
        }
        pieces
    }

    /// Gives the free engines something to do.
    pub(super) fn start(&mut self, now: Time, queue: &mut EventQueue<Event>) {
        for at in 0..self.engines.len() {
            let Engine { moves_data, moves_descriptors, transfer } = self.engines[at];
            if transfer.is_some() {
                continue;
            }
            let moving = |engine: &Engine| engine.transfer.is_some_and(|t| !t.work.is_data());
            // Descriptors go in order, one transfer at a time. Two engines could otherwise
            // return a later descriptor before an earlier one.
            let may = moves_descriptors && !self.engines.iter().any(moving);
            let descriptors = if may { self.descriptors.pop_front() } else { None };
            let next =
                // Descriptors come before data: a return frees the host, and a fetch brings the
                // commands that all data waits for.
                descriptors.or_else(|| if moves_data { self.data.pop_front() } else { None });
            if next.is_some() {
                self.engines[at].transfer = next;
                queue.schedule(now + self.setup_time, Event::Start(at as u32));
            }
        }
    }
}
