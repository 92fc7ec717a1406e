//! The two kinds of rings in shared memory (base 2.0c, clauses 3.3.1 to 3.3.3).

use ssdyno_pci::{DmaRegion, FunctionError, PciFunction};
use ssdyno_spec::nvme::registers::{completion_doorbell, submission_doorbell};
use ssdyno_spec::nvme::{CompletionEntry, NvmeStatus, SubmissionEntry};
use zerocopy::IntoBytes;

const SUBMISSION_BYTES: u32 = size_of::<SubmissionEntry>() as u32;
const COMPLETION_BYTES: u32 = size_of::<CompletionEntry>() as u32;

/// Entries that the driver puts in and the controller takes out.
#[derive(Debug)]
pub(crate) struct SubmissionRing {
    region: DmaRegion,
    entries: u32,
    /// Where the next entry goes.
    tail: u32,
    /// How far the controller is known to have taken entries.
    head: u32,
    /// The tail reported to the controller.
    rung: u32,
    doorbell: u32,
}

impl SubmissionRing {
    pub(crate) fn new<F: PciFunction>(
        f: &mut F,
        queue: u16,
        entries: u32,
        stride: u8,
    ) -> Result<SubmissionRing, FunctionError> {
        let region = f.dma_allocate(entries * SUBMISSION_BYTES)?;
        let doorbell = submission_doorbell(queue, stride);
        Ok(SubmissionRing { region, entries, tail: 0, head: 0, rung: 0, doorbell })
    }

    pub(crate) fn address(&self) -> u64 {
        self.region.address
    }

    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.region.bytes)
    }

    /// One entry stays empty: a ring whose tail is one behind its head is full (S1-27).
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        let used = self.tail + if self.tail < self.head { self.entries } else { 0 } - self.head;
        self.entries - 1 - used
    }

    /// Puts `entry` in; the controller is not told yet. There must be room.
    #[inline]
    pub(crate) fn push<F: PciFunction>(&mut self, f: &mut F, entry: &SubmissionEntry) {
        debug_assert!(self.room() > 0, "push to a full ring");
        // The entry is in memory before the doorbell announces it. `PciFunction` promises that
        // order between a write to memory and a later register write.
        f.dma_write(&self.region, self.tail * SUBMISSION_BYTES, entry.as_bytes());
        self.tail = if self.tail + 1 == self.entries { 0 } else { self.tail + 1 };
    }

    /// Reports new entries to the controller; false if there are none.
    #[inline]
    pub(crate) fn ring<F: PciFunction>(&mut self, f: &mut F) -> bool {
        // A register write crosses the link and is the dearest part of a submission. The same
        // value again is also an error of the host (base 2.0c, figure 147).
        if self.rung == self.tail {
            return false;
        }
        self.rung = self.tail;
        f.bar_write32(0, self.doorbell, self.tail);
        true
    }

    /// Takes over the head that a completion reports; false where it cannot be right.
    #[inline]
    pub(crate) fn set_head(&mut self, head: u16) -> bool {
        let head = u32::from(head);
        let wrap = |index: u32| {
            if index < self.head { index + self.entries - self.head } else { index - self.head }
        };
        // A head beyond the reported tail is impossible. Believing it would free entries that the
        // controller has not read.
        let right = head < self.entries && wrap(head) <= wrap(self.rung);
        if right {
            self.head = head;
        }
        right
    }

    /// Empty again, as after a reset of the controller.
    pub(crate) fn clear(&mut self) {
        (self.tail, self.head, self.rung) = (0, 0, 0);
    }

    pub(crate) fn free<F: PciFunction>(&self, f: &mut F) {
        f.dma_free(self.region);
    }
}

/// Both rings of queue `queue`, or without memory for both of them none.
pub(crate) fn both_rings<F: PciFunction>(
    f: &mut F,
    queue: u16,
    entries: u32,
    stride: u8,
) -> Result<(SubmissionRing, CompletionRing), FunctionError> {
    let submission = SubmissionRing::new(f, queue, entries, stride)?;
    match CompletionRing::new(f, queue, entries, stride) {
        Ok(completion) => Ok((submission, completion)),
        Err(error) => {
            // Memory for DMA is not freed by dropping: the function that gave it has to be
            // called. Every way out gives back what it has.
            submission.free(f);
            Err(error)
        }
    }
}

/// The content of a completion without its first two dwords.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) command_id: u16,
    pub(crate) status: NvmeStatus,
    pub(crate) submission_head: u16,
    /// Its place in the ring.
    pub(crate) place: u16,
}

/// Entries that the controller puts in and the driver takes out.
#[derive(Debug)]
pub(crate) struct CompletionRing {
    region: DmaRegion,
    entries: u32,
    head: u32,
    /// The head reported to the controller.
    rung: u32,
    /// The phase tag of a new entry: 1 in the first round, inverted with every wrap (S1-31).
    phase: bool,
    doorbell: u32,
}

impl CompletionRing {
    pub(crate) fn new<F: PciFunction>(
        f: &mut F,
        queue: u16,
        entries: u32,
        stride: u8,
    ) -> Result<CompletionRing, FunctionError> {
        let region = f.dma_allocate(entries * COMPLETION_BYTES)?;
        let doorbell = completion_doorbell(queue, stride);
        Ok(CompletionRing { region, entries, head: 0, rung: 0, phase: true, doorbell })
    }

    pub(crate) fn address(&self) -> u64 {
        self.region.address
    }

    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.region.bytes)
    }

    /// The entry at the head, if it is new.
    #[inline(always)]
    pub(crate) fn peek<F: PciFunction>(&self, f: &mut F) -> Option<Found> {
        let at = self.head * COMPLETION_BYTES;
        // The dword with the phase tag first: what is read after it was written before it.
        let last = f.dma_load32(&self.region, at + CompletionEntry::PHASE_DWORD as u32);
        // An old tag means that the entry is of the last round. Its other dwords are not read: the
        // phase tag alone distinguishes new entries from old ones (base 2.0c, clause 3.3.3.2).
        if (last >> 16 & 1 == 1) != self.phase {
            return None;
        }
        let queue_and_head = f.dma_load32(&self.region, at + 8);
        Some(Found {
            command_id: last as u16,
            status: NvmeStatus::from_bits((last >> 17) as u16),
            submission_head: queue_and_head as u16,
            place: self.head as u16,
        })
    }

    /// Dword 0 of the entry at the head.
    pub(crate) fn dword0<F: PciFunction>(&self, f: &mut F) -> u32 {
        f.dma_load32(&self.region, self.head * COMPLETION_BYTES)
    }

    /// Goes to the next entry.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.head += 1;
        if self.head == self.entries {
            self.head = 0;
            self.phase = !self.phase;
        }
    }

    /// Reports the taken entries to the controller; false if there are none.
    #[inline]
    pub(crate) fn ring<F: PciFunction>(&mut self, f: &mut F) -> bool {
        if self.rung == self.head {
            return false;
        }
        self.rung = self.head;
        f.bar_write32(0, self.doorbell, self.head);
        true
    }

    /// Empty again, as after a reset of the controller: phase tags start at 0.
    pub(crate) fn clear<F: PciFunction>(&mut self, f: &mut F) {
        // All phase tags must be 0, because the first round writes 1. Entries of the time before
        // the reset would otherwise look like new ones.
        let mut at = 0;
        while at < self.region.bytes {
            let bytes = (self.region.bytes - at).min(ZEROES.len() as u32);
            f.dma_write(&self.region, at, &ZEROES[..bytes as usize]);
            at += bytes;
        }
        (self.head, self.rung, self.phase) = (0, 0, true);
    }

    pub(crate) fn free<F: PciFunction>(&self, f: &mut F) {
        f.dma_free(self.region);
    }
}

static ZEROES: [u8; 1024] = [0; 1024];
