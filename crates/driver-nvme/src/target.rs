//! A driver and a simulated device as one block target: the driver's path without a host model.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use ssdyno_block::{BlockTarget, Completion, Op, Request, Status, SubmitError, Time, Token};
use ssdyno_pci::{DmaRegion, PciDevice, PciFunction, SimulatedPci};
use ssdyno_spec::nvme::{self, DatasetRange, oncs};
use zerocopy::little_endian::{U32, U64};

use crate::{
    DataBuffer, DriverState, IoCommand, IoCompletion, IoError, IoResult, Namespace, NvmeConfig,
    NvmeDriver, NvmeError, PriorityClass,
};

/// One namespace behind an [`NvmeDriver`] over a [`SimulatedPci`], on one virtual clock.
///
/// Time zero is the moment at which the driver became ready. All requests share one buffer, for
/// nobody looks at their contents; a request longer than the buffer is done piece by piece. Requests
/// that the driver cannot take at once (full queue, reset) wait here; [`SubmitError::Full`] comes when
/// as many wait or are outstanding as the queues hold.
#[derive(Debug)]
pub struct NvmeTarget<D> {
    pci: SimulatedPci<D>,
    driver: NvmeDriver,
    namespace: Namespace,
    buffer: DmaRegion,
    /// What one piece of a request moves at most: the buffer, or what a queue's commands move.
    piece_bytes_max: u32,
    /// The device's time when the target's began, and now.
    epoch: Time,
    at: Time,
    requests: Vec<Option<Pending>>,
    free: Vec<u32>,
    /// Requests whose next piece the driver has not taken yet.
    waiting: VecDeque<u32>,
    done: Vec<Completion>,
    vectors: Vec<u16>,
    answers: Vec<IoCompletion>,
    core: u16,
}

/// A request between submission and completion.
#[derive(Clone, Copy, Debug)]
struct Pending {
    token: Token,
    /// What is left to give to the driver.
    rest: Request,
    accepted: Option<Time>,
}

impl<D: PciDevice> NvmeTarget<D> {
    /// Starts a driver for `pci` and takes `namespace`. `buffer_bytes` is the size of the buffer that
    /// requests share, at least a page.
    ///
    /// # Errors
    /// The driver could not start, or there is no such namespace that it can use.
    pub fn start(
        mut pci: SimulatedPci<D>,
        config: NvmeConfig,
        namespace: u32,
        buffer_bytes: u32,
    ) -> Result<NvmeTarget<D>, NvmeError> {
        let mut driver = NvmeDriver::new(config);
        let buffer = pci.dma_allocate(buffer_bytes.max(nvme::PAGE_BYTES))?;
        let mut at = Time::ZERO;
        pci.set_now(at);
        driver.start(&mut pci, at)?;
        let (mut vectors, mut answers) = (Vec::with_capacity(64), Vec::with_capacity(256));
        loop {
            match driver.state() {
                DriverState::Ready => break,
                DriverState::Failed(error) => return Err(error),
                _ => {}
            }
            at = at.max(next(&pci, &driver).unwrap_or(at));
            bring(&mut pci, &mut driver, at, &mut vectors, &mut answers);
        }
        let found = driver.namespaces().iter().find(|n| n.id == namespace && n.unusable.is_none());
        let namespace = *found.ok_or(NvmeError::NoUsableNamespace { namespace })?;
        let places = driver.outstanding_limit().min(1 << 20) as u32;
        let commands = driver.outstanding_limit() / u64::from(driver.queues());
        let queue_bytes = commands * u64::from(driver.transfer_bytes_max());
        let piece_bytes_max = queue_bytes.min(u64::from(buffer.bytes)) as u32;
        Ok(NvmeTarget {
            pci,
            driver,
            namespace,
            buffer,
            piece_bytes_max: piece_bytes_max / namespace.block_bytes * namespace.block_bytes,
            epoch: at,
            at,
            requests: alloc::vec![None; places as usize],
            free: (0..places).rev().collect(),
            waiting: VecDeque::with_capacity(places as usize),
            done: Vec::with_capacity(256),
            vectors,
            answers,
            core: 0,
        })
    }

    /// The driver.
    pub fn driver(&self) -> &NvmeDriver {
        &self.driver
    }

    /// The device in its slot, with its counters, faults and hooks.
    pub fn pci(&self) -> &SimulatedPci<D> {
        &self.pci
    }

    /// The device's time at this target's time zero.
    pub fn epoch(&self) -> Time {
        self.epoch
    }

    /// Brings everything to the device's time `at`.
    fn run_to(&mut self, at: Time) {
        self.at = self.at.max(at);
        let at = self.at;
        bring(&mut self.pci, &mut self.driver, at, &mut self.vectors, &mut self.answers);
        let mut answers = core::mem::take(&mut self.answers);
        for answer in answers.drain(..) {
            self.answered(answer);
        }
        self.answers = answers;
        self.issue();
    }

    fn answered(&mut self, answer: IoCompletion) {
        let id = answer.token.0;
        let status = match answer.result {
            IoResult::Abandoned => Status::Abandoned,
            IoResult::Answered(status) if status.is_success() => Status::Ok,
            IoResult::Answered(status) => match status.kind() {
                nvme::Status::WRITE_PROTECTED | nvme::Status::READ_ONLY_RANGE => Status::ReadOnly,
                _ => Status::Error,
            },
        };
        let more = |p: &Pending| p.rest.length_bytes > 0 && status == Status::Ok;
        match &self.requests[id as usize] {
            Some(pending) if more(pending) => self.waiting.push_back(id),
            _ => self.finish(id, status),
        }
    }

    fn finish(&mut self, id: u32, status: Status) {
        if let Some(Pending { token, accepted, .. }) = self.requests[id as usize].take() {
            let completed = self.at - self.epoch;
            let accepted = accepted.unwrap_or(completed);
            self.done.push(Completion { token, status, accepted, completed });
            self.free.push(id);
        }
    }

    /// Gives to the driver what waits, as long as it takes it.
    fn issue(&mut self) {
        while let Some(&id) = self.waiting.front() {
            match self.give(id) {
                Ok(()) => {}
                Err(IoError::Full | IoError::NotReady) => break,
                Err(_) => self.finish(id, Status::Error),
            }
            self.waiting.pop_front();
        }
    }

    /// Gives the next piece of request `id` to the driver.
    fn give(&mut self, id: u32) -> Result<(), IoError> {
        let Some(pending) = self.requests[id as usize] else { return Ok(()) };
        let rest = pending.rest;
        let block_bytes = self.namespace.block_bytes;
        let block = rest.offset_bytes / u64::from(block_bytes);
        let piece_bytes = match rest.op {
            Op::Read | Op::Write => rest.length_bytes.min(self.piece_bytes_max),
            Op::Trim | Op::Flush => rest.length_bytes,
        };
        let blocks = piece_bytes / block_bytes;
        let (namespace, data) = (self.namespace.id, DataBuffer::Contiguous(self.buffer.address));
        let range = [DatasetRange {
            attributes: U32::ZERO,
            blocks: U32::new(blocks),
            first: U64::new(block),
        }];
        let command = match rest.op {
            Op::Read => IoCommand::read(namespace, block, blocks, data),
            Op::Write => IoCommand::write(namespace, block, blocks, data),
            Op::Flush => IoCommand::flush(namespace),
            Op::Trim if self.driver.has(oncs::DATASET_MANAGEMENT) => {
                IoCommand::deallocate(namespace, &range)
            }
            // A controller that cannot deallocate keeps the data: that is allowed.
            Op::Trim => IoCommand::flush(namespace),
        };
        let queue = self.driver.choose(self.core, PriorityClass::default()).queue;
        self.pci.set_now(self.at);
        self.driver.submit(&mut self.pci, self.at, queue, &command, Token(id))?;
        self.core = (self.core + 1) % self.driver.config().cores.max(1);
        let accepted = self.at - self.epoch;
        if let Some(pending) = &mut self.requests[id as usize] {
            pending.rest.offset_bytes += u64::from(piece_bytes);
            pending.rest.length_bytes -= piece_bytes;
            pending.accepted = pending.accepted.or(Some(accepted));
        }
        Ok(())
    }
}

/// The next thing that happens, in the device's time.
fn next<D: PciDevice>(pci: &SimulatedPci<D>, driver: &NvmeDriver) -> Option<Time> {
    match (pci.next_event(), driver.next_deadline()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Brings device and driver to `at`.
fn bring<D: PciDevice>(
    pci: &mut SimulatedPci<D>,
    driver: &mut NvmeDriver,
    at: Time,
    vectors: &mut Vec<u16>,
    answers: &mut Vec<IoCompletion>,
) {
    pci.advance(at);
    pci.set_now(at);
    pci.take_interrupts(at, vectors);
    for vector in vectors.drain(..) {
        driver.on_interrupt(pci, at, vector, answers);
    }
    if driver.interrupt_mode().is_none() {
        for queue in 1..=driver.queues() {
            driver.poll_queue(pci, queue, answers);
        }
    }
    if driver.next_deadline().is_some_and(|deadline| deadline <= at) {
        driver.poll(pci, at, answers);
    }
    // Nobody models the core that waits for a register here.
    pci.take_stall();
}

impl<D: PciDevice> BlockTarget for NvmeTarget<D> {
    fn capacity_bytes(&self) -> u64 {
        self.namespace.capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        self.namespace.block_bytes
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        self.at = self.at.max(now + self.epoch);
        let Some(id) = self.free.pop() else { return Err(SubmitError::Full) };
        self.requests[id as usize] = Some(Pending { token, rest: request, accepted: None });
        self.waiting.push_back(id);
        self.issue();
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        let until = now + self.epoch;
        while let Some(at) = next(&self.pci, &self.driver).filter(|&at| at <= until) {
            self.run_to(at);
        }
        self.at = self.at.max(until);
        out.append(&mut self.done);
    }

    fn next_event(&self) -> Option<Time> {
        if !self.done.is_empty() {
            return Some(self.at - self.epoch);
        }
        next(&self.pci, &self.driver).map(|at| at.saturating_sub(self.epoch))
    }
}
