//! The driver's three functions, and what the host calls.

use alloc::vec::Vec;

use ssdyno_block::{
    Completion, MonotonicTime, Op, Request, SECTOR_BYTES, Status, SubmitError, Time, Token,
    has_room,
};
use ssdyno_pci::{DmaPiece, DmaPool, FunctionError, InterruptMode, PciFunction};
use ssdyno_spec::pci;
use ssdyno_spec::ring as layout;

use crate::options::{BlockPolicy, CompletionPolicy, IdleDispatch};
use crate::parameters::Setup;
use crate::recover::Phase;
use crate::requests::Requests;
use crate::ring::{Ring, RingCompletion};
use crate::{RingCounters, RingDriverOptions, RingError, RingParameters};

/// Pages of the driver's own come in stretches of this.
const PAGES_CHUNK_BYTES: u32 = 64 * 1024;

/// A request for the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submission {
    /// What to do; offset and length in multiples of 512 bytes.
    pub request: Request,
    /// The caller's name for it.
    pub token: Token,
    /// Address of the data for the device: a page for each page that the request touches, in one
    /// piece, the first byte of data at its offset in its page. `None`: the driver's own pages
    /// ([`RingDriverOptions::own_pages`]).
    pub address: Option<u64>,
    /// Its last descriptor interrupts at once, whatever the card gathers.
    pub urgent: bool,
}

/// What a poll did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Polled {
    /// Bios completed.
    pub bios: u32,
    /// There may be more: poll again at once, before anything else waits for interrupts.
    pub again: bool,
}

/// The driver of one ring card.
///
/// The caller owes: `now` never goes back; [`on_interrupt`](RingDriver::on_interrupt) for each
/// interrupt, [`poll`](RingDriver::poll) where that asks for it and at
/// [`next_deadline`](RingDriver::next_deadline); between polls time passes.
#[derive(Debug)]
pub struct RingDriver<F> {
    pub(crate) function: F,
    pub(crate) options: RingDriverOptions,
    parameters: RingParameters,
    setup: Setup,
    pub(crate) ring: Ring,
    /// Pages for descriptors, if the driver has its own.
    pages: Option<DmaPool>,
    pub(crate) requests: Requests,
    pub(crate) phase: Phase,
    interrupt_mode: InterruptMode,
    /// Between the interrupt and the poll that found too little: interrupts are masked.
    pub(crate) polling: bool,
    /// Mean time of blocks, by the binary logarithm of their size, in ps; 0: not known.
    block_time_mean: [u64; 16],
    /// The last call in which it looked at the card; none before the first.
    last_poll: Option<MonotonicTime>,
    last_submission: MonotonicTime,
    /// The interrupt that said so was taken, since the last block was given.
    interrupted: bool,
    /// A list for completions had no room: what is back waits for the next poll.
    behind: bool,
    pub(crate) counters: RingCounters,
}

impl<F: PciFunction> RingDriver<F> {
    /// Reads the card's parameters, sets up the ring and switches the card on.
    ///
    /// # Errors
    /// Not a ring card, options that it cannot have, no memory, no interrupt, or a card that does
    /// not start.
    pub fn new(mut function: F, options: RingDriverOptions) -> Result<RingDriver<F>, RingError> {
        let command = function.config_read(pci::COMMAND) & 0xffff;
        let on = u32::from(pci::COMMAND_MEMORY | pci::COMMAND_BUS_MASTER);
        function.config_write(pci::COMMAND, command | on);
        let parameters = RingParameters::read(&mut function)?;
        let setup = options.check(&parameters)?;
        // Whoever drove the card before may have left it on.
        // The card must not hold the address of an older ring when the new one is set up.
        // Switched off, it forgets everything that it was given.
        function.bar_write32(0, layout::CONTROL, 0);
        let requests = Requests::new(options.queue_depth)?;
        let ring = function.dma_allocate(setup.ring_size * layout::DESCRIPTOR_BYTES)?;
        let ring = Ring::new(ring, setup.ring_size, options.prefetch > 0)?;
        let pages = match options.own_pages {
            true => {
                let mut pages =
                    DmaPool::new(layout::PAGE_BYTES, PAGES_CHUNK_BYTES, setup.ring_size)?;
                // With these it goes on, however slowly, where no more memory comes.
                pages.reserve(&mut function, 1)?;
                Some(pages)
            }
            false => None,
        };
        let interrupt_mode = enable_interrupts(&mut function)?;
        let mut driver = RingDriver {
            function,
            options,
            parameters,
            setup,
            ring,
            pages,
            requests,
            phase: Phase::Up,
            interrupt_mode,
            polling: false,
            block_time_mean: [0; 16],
            last_poll: None,
            last_submission: MonotonicTime::ZERO,
            interrupted: false,
            behind: false,
            counters: RingCounters::default(),
        };
        driver.switch_on();
        let status = driver.function.bar_read32(0, layout::STATUS);
        if status & (layout::STATUS_ENABLED | layout::STATUS_FAULT) != layout::STATUS_ENABLED
            || status == u32::MAX
        {
            return Err(RingError::NotReady { status });
        }
        Ok(driver)
    }

    /// Sets the card up and switches it on.
    pub(crate) fn switch_on(&mut self) {
        let RingDriverOptions { response, subset, completion, prefetch, .. } = self.options;
        let (batch, timeout_ns, mask) = match completion {
            CompletionPolicy::PerBlock => (0, 0, 0),
            CompletionPolicy::PerReturn | CompletionPolicy::Napi { .. } => (1, 0, 0),
            CompletionPolicy::Calibrated { threshold, timeout } => {
                (threshold, u32::try_from(timeout.as_ns()).unwrap_or(u32::MAX), 0)
            }
            CompletionPolicy::HybridPolling { .. } => (0, 0, 1),
        };
        let address = self.ring.region.address;
        for (register, value) in [
            (layout::RING_LOW, address as u32),
            (layout::RING_HIGH, (address >> 32) as u32),
            (layout::RING_SIZE, self.setup.ring_size),
            (layout::RESPONSE, response as u32 | subset << 16),
            (layout::PREFETCH, prefetch),
            (layout::INTERRUPT_BATCH, batch),
            (layout::INTERRUPT_TIMEOUT, timeout_ns),
            (layout::INTERRUPT_MASK, mask),
            // The control register comes last: the card takes over all other values when it is
            // switched on. Changes after that would have no effect until the next start.
            (layout::CONTROL, layout::CONTROL_ENABLE),
        ] {
            self.function.bar_write32(0, register, value);
        }
        self.polling = false;
    }

    /// Size in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.parameters.capacity_pages * u64::from(layout::PAGE_BYTES)
    }

    /// The card's description of itself (S0-10).
    pub fn parameters(&self) -> &RingParameters {
        &self.parameters
    }

    /// Descriptors in the ring (S0-9).
    pub fn ring_size(&self) -> u32 {
        self.ring.size()
    }

    /// What it did so far.
    pub fn counters(&self) -> &RingCounters {
        &self.counters
    }

    /// The function.
    pub fn function(&self) -> &F {
        &self.function
    }

    /// The function, for who runs it; the driver's registers and memory are the driver's.
    pub fn function_mut(&mut self) -> &mut F {
        &mut self.function
    }

    /// Requests in the driver.
    pub fn in_flight(&self) -> u32 {
        self.requests.len()
    }

    /// True if the card was given up: every request ends with an error.
    pub fn is_gone(&self) -> bool {
        self.phase.is_gone()
    }

    /// True if a block is with the card.
    pub fn is_outstanding(&self) -> bool {
        self.ring.block.is_some()
    }

    /// True if there are requests, and nothing will happen to them without further ones: a static
    /// driver with fewer pending than a block (S0-36).
    pub fn stalled(&self) -> bool {
        self.phase == Phase::Up
            && self.requests.len() > 0
            && self.ring.block.is_none()
            && self.ring.to_answer() == 0
            && self.next_size() == 0
    }

    /// I/O Requests Handler (S0-27): takes a request, makes descriptors of its bios as far as the
    /// ring has room, and sends a block if the card is idle.
    ///
    /// # Errors
    /// As [`SubmitError`] says; a refused request left no trace. [`SubmitError::Misaligned`] too
    /// where no address is given and the driver has no pages of its own.
    pub fn submit(
        &mut self,
        now: impl Into<MonotonicTime>,
        submission: Submission,
    ) -> Result<(), SubmitError> {
        let now = now.into();
        let Submission { request, token, address, urgent } = submission;
        request.check(self.capacity_bytes(), SECTOR_BYTES)?;
        let needs_page = matches!(request.op, Op::Read | Op::Write);
        if needs_page && address.is_none() && self.pages.is_none() {
            return Err(SubmitError::Misaligned { sector_bytes: SECTOR_BYTES });
        }
        if !self.requests.insert(now, request, token, address, urgent) {
            return Err(SubmitError::Full);
        }
        self.last_submission = now;
        if self.phase.is_gone() {
            self.last_poll = Some(now);
        } else {
            self.handle_requests(now);
        }
        Ok(())
    }

    /// Makes descriptors of waiting bios, and sends a block if the card is idle.
    pub(crate) fn handle_requests(&mut self, now: MonotonicTime) {
        while !self.ring.is_full() {
            let needs_page = self.requests.next_needs_page();
            let (page, own) = match &mut self.pages {
                Some(pages) if needs_page => match pages.take(&mut self.function) {
                    Ok(Some(page)) => {
                        let (region, at) = pages.place(page);
                        (page, region.address + u64::from(at))
                    }
                    // The bio waits until pages of others come back.
                    Ok(None) | Err(_) => break,
                },
                _ => (DmaPiece::NONE, 0),
            };
            let Some((slot, bio, last)) = self.requests.next_bio() else { break };
            let address = if bio.sectors == 0 { 0 } else { bio.address.unwrap_or(own) };
            self.ring.push(&mut self.function, slot, &bio, address, page);
            // The paper sends a single descriptor to an idle card (S0-27). Waiting for the whole
            // request makes fewer blocks of more descriptors.
            let whole = self.options.idle_dispatch == IdleDispatch::WholeRequest;
            if last || !whole || self.ring.pending() >= self.setup.max_block {
                self.send_if_idle(now);
            }
        }
        // A request that is larger than the ring's free part goes in pieces.
        self.send_if_idle(now);
    }

    fn send_if_idle(&mut self, now: MonotonicTime) {
        if self.ring.block.is_none() && self.phase == Phase::Up {
            let size = self.next_size();
            if size > 0 {
                self.counters.idle_dispatches += 1;
                self.send(now, size);
            }
        }
    }

    /// The size of the next block, by the policy; 0: none yet.
    fn next_size(&self) -> u32 {
        let pending = self.ring.pending();
        match self.options.block {
            BlockPolicy::Dynamic => pending.min(self.setup.max_block),
            BlockPolicy::Static(size) if pending >= size => size,
            BlockPolicy::Static(_) => 0,
        }
    }

    fn send(&mut self, now: MonotonicTime, size: u32) {
        let (offset, requests) = self.ring.give(now, size);
        requests.for_each(|slot| self.requests.sent(slot, now));
        // The size is the doorbell, so the offset is written first (S0-13). Posted writes reach
        // the card in this order.
        self.function.bar_write32(0, layout::NEXT_OFFSET, offset);
        self.function.bar_write32(0, layout::NEXT_SIZE, size);
        self.interrupted = false;
        self.counters.blocks += 1;
        self.counters.descriptors += u64::from(size);
        self.counters.blocks_by_size[log2(size)] += 1;
    }

    /// Sends what is pending in blocks that are not full: for a static driver whose load has ended.
    /// Does nothing while a block is with the card.
    pub fn send_pending(&mut self, now: impl Into<MonotonicTime>) {
        let size = self.ring.pending().min(self.setup.max_block);
        if self.ring.block.is_none() && self.phase == Phase::Up && size > 0 {
            self.send(now.into(), size);
        }
    }

    /// New Descriptors Block Processor (S0-28): if the block is back, sends the next one, whose size
    /// depends on what is pending; gives that size.
    pub fn process_new_block(&mut self, now: impl Into<MonotonicTime>) -> Option<u32> {
        let now = now.into();
        self.ring.look(&mut self.function);
        if let Some(block) = self.ring.take_returned() {
            let time = now.since(block.since).as_ps();
            let mean = &mut self.block_time_mean[log2(block.size)];
            *mean = if *mean == 0 { time } else { *mean - *mean / 8 + time / 8 };
        }
        if self.ring.block.is_some() || self.phase != Phase::Up {
            return None;
        }
        let size = self.next_size();
        if size == 0 {
            return None;
        }
        self.send(now, size);
        Some(size)
    }

    /// I/O Responses Generator (S0-29): answers up to `budget` bios in their order (S0-6), resets their descriptors,
    /// appends the requests that are complete with them; gives how many bios. Each carries its error (S0-7).
    /// Completions that fit neither into `out` nor into the heap wait for the next call; if `out` has room for all
    /// requests in the driver, nothing is allocated.
    pub fn generate_responses(
        &mut self,
        now: impl Into<MonotonicTime>,
        budget: u32,
        out: &mut Vec<Completion<MonotonicTime>>,
    ) -> u32 {
        let (now, mut bios) = (now.into(), 0);
        self.behind = false;
        while bios < budget && self.ring.to_answer() > 0 {
            if !has_room(out) {
                self.behind = true;
                break;
            }
            let Some(RingCompletion { request, page, status }) = self.ring.pop(&mut self.function)
            else {
                break;
            };
            if let Some(pages) = self.pages.as_mut().filter(|_| page != DmaPiece::NONE) {
                pages.put_back(page);
            }
            bios += 1;
            self.counters.errors += u64::from(status != Status::Ok);
            out.extend(self.requests.answered(request, status, now));
        }
        self.counters.bios += u64::from(bios);
        bios
    }

    /// The interrupt handler: sends the next block; true if [`poll`](RingDriver::poll) has to be
    /// called for the responses.
    pub fn on_interrupt(&mut self, now: impl Into<MonotonicTime>) -> bool {
        self.counters.interrupts += 1;
        self.interrupted = true;
        if self.interrupt_mode == InterruptMode::Pin {
            self.function.bar_write32(0, layout::INTERRUPT_ACKNOWLEDGE, 1);
            // The read pushes the write to the card. Otherwise a response that comes while the write is
            // on its way could be missed by the look below, and its interrupt be released unseen.
            self.finds_it_gone();
        }
        if self.phase != Phase::Up {
            return true;
        }
        // The next block goes out before the responses are made: the card works while the host
        // completes requests (S0-28, S0-29).
        self.process_new_block(now);
        let found = self.ring.to_answer() > 0;
        self.counters.interrupts_empty += u64::from(!found);
        // Interrupts stay off while the host polls. A card under load then interrupts once and
        // not for every return.
        if matches!(self.options.completion, CompletionPolicy::Napi { .. }) && !self.polling {
            self.polling = true;
            self.function.bar_write32(0, layout::INTERRUPT_MASK, 1);
            return true;
        }
        found
    }

    /// Answers what is back, and does what the completion policy has to do. Also called at
    /// [`next_deadline`](RingDriver::next_deadline).
    pub fn poll(
        &mut self,
        now: impl Into<MonotonicTime>,
        out: &mut Vec<Completion<MonotonicTime>>,
    ) -> Polled {
        let now = now.into();
        self.counters.polls += 1;
        self.last_poll = Some(now);
        let lost = self.watch(now, out);
        self.process_new_block(now);
        if self.partial_deadline().is_some_and(|at| at <= now) {
            self.send_pending(now);
        }
        let budget = match self.options.completion {
            CompletionPolicy::Napi { budget } if !lost => budget,
            _ => u32::MAX,
        };
        let bios = self.generate_responses(now, budget, out);
        if self.requests.has_waiting() && !self.phase.is_gone() {
            self.handle_requests(now);
        }
        let again = self.polling && bios == budget;
        if self.polling && !again {
            self.polling = false;
            self.function.bar_write32(0, layout::INTERRUPT_MASK, 0);
        }
        Polled { bios, again }
    }

    /// When the host has to poll, whatever interrupts come: by the policy, or because something
    /// takes too long. `None`: never.
    pub fn next_deadline(&self) -> Option<MonotonicTime> {
        if let Some(at) = self.phase_deadline() {
            return Some(at);
        }
        if self.behind {
            return Some(self.last_poll());
        }
        let Some(block) = self.ring.block else { return self.partial_deadline() };
        let late = block.since.after(self.options.timeout);
        let CompletionPolicy::HybridPolling { interval } = self.options.completion else {
            return Some(late);
        };
        let half = Time::from_ps(self.block_time_mean[log2(block.size)] / 2);
        let wake = block.since.after(half);
        let next = self.last_poll.map_or(wake, |last| wake.max(last.after(interval)));
        Some(next.min(late))
    }

    /// When a block that does not become full is sent all the same.
    fn partial_deadline(&self) -> Option<MonotonicTime> {
        let after = self.options.partial_after?;
        self.stalled().then(|| self.last_submission.after(after))
    }

    /// Memory for DMA that the driver has pinned, in bytes: its ring, and with
    /// [`RingDriverOptions::own_pages`] as many pages as were ever in use, in stretches of 64 KiB.
    pub fn pinned_bytes(&self) -> u64 {
        u64::from(self.ring.region.bytes) + self.pages.as_ref().map_or(0, DmaPool::pinned_bytes)
    }

    /// The last call in which the driver looked at the card.
    pub(crate) fn last_poll(&self) -> MonotonicTime {
        self.last_poll.unwrap_or_default()
    }

    /// The driver looked at the card at `now`.
    pub(crate) fn polled_at(&mut self, now: MonotonicTime) {
        self.last_poll = Some(now);
    }

    /// An interrupt came since the last block was given.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted
    }
}

/// The binary logarithm, as an index.
fn log2(size: u32) -> usize {
    (size.max(1).ilog2() as usize).min(15)
}

/// MSI-X, else MSI, else the pin.
fn enable_interrupts<F: PciFunction>(function: &mut F) -> Result<InterruptMode, FunctionError> {
    let mut last = FunctionError::NoInterrupt { mode: InterruptMode::MsiX };
    for mode in [InterruptMode::MsiX, InterruptMode::Msi, InterruptMode::Pin] {
        match function.enable_interrupts(mode, 1) {
            Ok(_) => return Ok(mode),
            Err(error) => last = error,
        }
    }
    Err(last)
}
