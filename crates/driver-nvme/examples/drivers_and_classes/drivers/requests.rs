//! Block requests on one namespace: each is cut into commands of the driver, and answered once.

use std::collections::VecDeque;

use ssdyno_block::{Completion, MonotonicTime, Op, Request, Status, SubmitError, Token, try_list};
use ssdyno_driver_nvme::{
    DataBuffer, IoCommand, IoCompletion, IoError, Namespace, NvmeDriver, NvmeError, PriorityClass,
};
use ssdyno_pci::{DmaRegion, PciFunction};
use ssdyno_spec::nvme::{self, oncs};

/// The requests of one namespace, from submission to completion.
///
/// All share one buffer, for nobody looks at their contents; a request longer than the buffer is done
/// piece by piece. What the driver cannot take at once (full queue, reset) waits here.
#[derive(Debug)]
pub(crate) struct Requests {
    namespace: Namespace,
    buffer: DmaRegion,
    /// What one piece of a request moves at most: the buffer, or what a queue's commands move.
    piece_bytes_max: u32,
    places: Vec<Option<Pending>>,
    free: Vec<u32>,
    /// Requests whose next piece the driver has not taken yet.
    waiting: VecDeque<u32>,
    done: Vec<Completion<MonotonicTime>>,
    core: u16,
}

/// A request between submission and completion.
#[derive(Clone, Copy, Debug)]
struct Pending {
    token: Token,
    /// What is left to give to the driver.
    rest: Request,
    accepted: Option<MonotonicTime>,
}

impl Requests {
    /// For `namespace` of a driver that is ready. `buffer_bytes` is the size of the buffer that
    /// requests share, at least a page.
    ///
    /// # Errors
    /// There is no memory for the buffer, or for the table of requests.
    pub(crate) fn new<F: PciFunction>(
        driver: &NvmeDriver,
        f: &mut F,
        namespace: Namespace,
        buffer_bytes: u32,
    ) -> Result<Requests, NvmeError> {
        let places = driver.outstanding_limit().min(1 << 20) as u32;
        let commands = driver.outstanding_limit() / u64::from(driver.queues());
        let (mut free, mut waiting, mut done) = (Vec::new(), VecDeque::new(), Vec::new());
        free.try_reserve_exact(places as usize)?;
        waiting.try_reserve_exact(places as usize)?;
        done.try_reserve_exact(256.min(places as usize))?;
        free.extend((0..places).rev());
        let empty = try_list(None, places as usize)?;
        let buffer = f.dma_allocate(buffer_bytes.max(nvme::PAGE_BYTES))?;
        let queue_bytes = commands * u64::from(driver.transfer_bytes_max());
        let piece_bytes_max = queue_bytes.min(u64::from(buffer.bytes)) as u32;
        Ok(Requests {
            piece_bytes_max: piece_bytes_max / namespace.block_bytes * namespace.block_bytes,
            namespace,
            buffer,
            places: empty,
            free,
            waiting,
            done,
            core: 0,
        })
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The buffer, for who gives it back.
    pub(crate) fn buffer(&self) -> DmaRegion {
        self.buffer
    }

    /// True if no request is outstanding or waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// True if something completed and was not taken.
    pub(crate) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Takes what completed.
    pub(crate) fn take_done(&mut self) -> impl Iterator<Item = Completion<MonotonicTime>> + '_ {
        self.done.drain(..)
    }

    /// Appends what completed.
    pub(crate) fn append_done(&mut self, out: &mut Vec<Completion<MonotonicTime>>) {
        out.append(&mut self.done);
    }

    /// Takes a request that was checked against size and alignment.
    ///
    /// # Errors
    /// [`SubmitError::Full`] where as many wait or are outstanding as the queues hold, or the heap has no
    /// room for the answer.
    pub(crate) fn submit<F: PciFunction>(
        &mut self,
        driver: &mut NvmeDriver,
        f: &mut F,
        now: MonotonicTime,
        request: Request,
        token: Token,
    ) -> Result<(), SubmitError> {
        // Each one has room for its answer from the beginning.
        let outstanding = self.places.len() - self.free.len();
        self.done.try_reserve(outstanding + 1).map_err(|_| SubmitError::Full)?;
        let Some(id) = self.free.pop() else { return Err(SubmitError::Full) };
        self.places[id as usize] = Some(Pending { token, rest: request, accepted: None });
        self.waiting.push_back(id);
        self.issue(driver, f, now);
        Ok(())
    }

    /// Takes what the driver completed.
    pub(crate) fn answered(&mut self, now: MonotonicTime, answers: &mut Vec<IoCompletion>) {
        for answer in answers.drain(..) {
            let id = answer.token.0;
            let status = answer.result.block_status();
            let more = |p: &Pending| p.rest.length_bytes > 0 && status == Status::Ok;
            match &self.places[id as usize] {
                Some(pending) if more(pending) => self.waiting.push_back(id),
                _ => self.finish(id, status, now),
            }
        }
    }

    fn finish(&mut self, id: u32, status: Status, now: MonotonicTime) {
        if let Some(Pending { token, accepted, .. }) = self.places[id as usize].take() {
            let accepted = accepted.unwrap_or(now);
            self.done.push(Completion { token, status, accepted, completed: now });
            self.free.push(id);
        }
    }

    /// Gives to the driver what waits, as long as it takes it.
    pub(crate) fn issue<F: PciFunction>(
        &mut self,
        driver: &mut NvmeDriver,
        f: &mut F,
        now: MonotonicTime,
    ) {
        while let Some(&id) = self.waiting.front() {
            match self.give(driver, f, now, id) {
                Ok(()) => {}
                Err(IoError::Full | IoError::NotReady) => break,
                Err(_) => self.finish(id, Status::Error, now),
            }
            self.waiting.pop_front();
        }
    }

    /// Gives the next piece of request `id` to the driver.
    fn give<F: PciFunction>(
        &mut self,
        driver: &mut NvmeDriver,
        f: &mut F,
        now: MonotonicTime,
        id: u32,
    ) -> Result<(), IoError> {
        let Some(pending) = &mut self.places[id as usize] else { return Ok(()) };
        let rest = pending.rest;
        let piece_bytes = match rest.op {
            Op::Read | Op::Write => rest.length_bytes.min(self.piece_bytes_max),
            Op::Trim | Op::Flush => rest.length_bytes,
        };
        let piece = match rest.op {
            // A controller that cannot deallocate keeps the data: that is allowed.
            Op::Trim if !driver.has(oncs::DATASET_MANAGEMENT) => Request::flush(),
            _ => Request { length_bytes: piece_bytes, ..rest },
        };
        let data = DataBuffer::Contiguous(self.buffer.address);
        let mut range = Default::default();
        let command = IoCommand::of_request(&self.namespace, &piece, data, &mut range);
        let queue = driver.choose(self.core, PriorityClass::default()).queue;
        driver.submit(f, now, queue, &command, Token(id))?;
        self.core = (self.core + 1) % driver.config().cores.max(1);
        pending.rest.offset_bytes += u64::from(piece_bytes);
        pending.rest.length_bytes -= piece_bytes;
        pending.accepted = pending.accepted.or(Some(now));
        Ok(())
    }
}
