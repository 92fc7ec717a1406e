//! Submission and completion queues in host memory (base 2.0c, clause 3.3).

use super::arbiter::Arbiter;
use ssdyno_block::Time;
use ssdyno_device::nvme::NvmeControllerConfig;

/// A submission queue as the controller sees it.
#[derive(Clone, Debug)]
pub(super) struct SubmissionQueue {
    pub(super) base: u64,
    pub(super) entries: u32,
    /// Behind the last entry, as the doorbell said.
    pub(super) tail: u32,
    /// Behind the last entry that a fetch was begun for.
    pub(super) claimed: u32,
    /// Behind the last entry that arrived: what completions report.
    pub(super) head: u32,
    pub(super) completion: u16,
    /// Identifiers in use, a bit each.
    identifiers: Vec<u64>,
}

/// A completion queue as the controller sees it.
#[derive(Clone, Debug)]
pub(super) struct CompletionQueue {
    pub(super) base: u64,
    pub(super) entries: u32,
    /// Where the next entry goes.
    pub(super) tail: u32,
    /// Behind the last entry that the host has taken, as the doorbell said.
    pub(super) head: u32,
    pub(super) phase: bool,
    pub(super) vector: u16,
    pub(super) interrupts: bool,
    /// Submission queues that report here.
    pub(super) submissions: u16,
    /// Completions that wait for room: first and last slot of a chain.
    pub(super) held: Option<(u32, u32)>,
    /// When the entry in each place was written.
    pub(super) written: Vec<Time>,
}

/// The error of a doorbell write (base 2.0c, clause 5.2.1, figure 147).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BadDoorbell {
    /// There is no such queue.
    Register,
    /// The queue cannot have that value.
    Value,
}

/// Entries from `from` up to `to` in a ring.
#[inline]
fn distance(from: u32, to: u32, entries: u32) -> u32 {
    if to >= from { to - from } else { to + entries - from }
}

/// The place `count` entries after `at` in a ring, at most once around.
#[inline]
pub(super) fn advanced(at: u32, count: u32, entries: u32) -> u32 {
    let to = at + count;
    if to >= entries { to - entries } else { to }
}

impl SubmissionQueue {
    pub(super) fn new(base: u64, entries: u32, completion: u16) -> SubmissionQueue {
        // 2^10 words of 64 bits: one bit for each of the 2^16 identifiers. A host may choose any
        // identifier, so a table by queue depth would not do.
        let identifiers = vec![0; 1 << 10];
        SubmissionQueue { base, entries, tail: 0, claimed: 0, head: 0, completion, identifiers }
    }
    /// Entries that no fetch was begun for.
    #[inline]
    pub(super) fn unclaimed(&self) -> u32 {
        distance(self.claimed, self.tail, self.entries)
    }
    #[inline]
    pub(super) fn claim(&mut self, count: u32) {
        self.claimed = advanced(self.claimed, count, self.entries);
    }
    /// The host says that entries up to `tail` are there.
    pub(super) fn ring(&mut self, tail: u32) -> Result<(), BadDoorbell> {
        if tail >= self.entries || tail == self.tail {
            return Err(BadDoorbell::Value);
        }
        // The host may not pass entries that were not fetched. It knows the head only from
        // completions, so a new tail that laps the head is an error of the host (base 2.0c,
        // figure 147).
        let inside = distance(self.head, self.tail, self.entries);
        if inside + distance(self.tail, tail, self.entries) >= self.entries {
            return Err(BadDoorbell::Value);
        }
        self.tail = tail;
        Ok(())
    }
    /// Takes identifier `id`; false if it is in use.
    #[inline]
    pub(super) fn take_id(&mut self, id: u16) -> bool {
        let word = &mut self.identifiers[usize::from(id >> 6)];
        let bit = 1 << (id & 63);
        let free = *word & bit == 0;
        *word |= bit;
        free
    }
    #[inline]
    pub(super) fn free_id(&mut self, id: u16) {
        self.identifiers[usize::from(id >> 6)] &= !(1 << (id & 63));
    }
}

impl CompletionQueue {
    pub(super) fn new(base: u64, entries: u32, vector: Option<u16>) -> CompletionQueue {
        CompletionQueue {
            base,
            entries,
            tail: 0,
            head: 0,
            phase: true,
            vector: vector.unwrap_or(0),
            interrupts: vector.is_some(),
            submissions: 0,
            held: None,
            written: vec![Time::ZERO; entries as usize],
        }
    }
    /// Entries that the host has not taken.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        distance(self.head, self.tail, self.entries)
    }
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.waiting() + 1 == self.entries
    }
    /// The number of entries that the host has taken, if its next entry is `head`.
    #[inline]
    pub(super) fn has_taken(&self, head: u32) -> Result<u32, BadDoorbell> {
        if head >= self.entries {
            return Err(BadDoorbell::Value);
        }
        let taken = distance(self.head, head, self.entries);
        // A head beyond the tail would take entries that were never posted. The same value as
        // before takes nothing, and the specification calls that an invalid value, too.
        if taken == 0 || taken > self.waiting() {
            return Err(BadDoorbell::Value);
        }
        Ok(taken)
    }
    /// The host says that it has taken entries up to `head`.
    pub(super) fn ring(&mut self, head: u32) -> Result<u32, BadDoorbell> {
        let taken = self.has_taken(head)?;
        self.head = head;
        Ok(taken)
    }
    /// The place and phase of the next entry, which is the host's from `at` on.
    #[inline]
    pub(super) fn push(&mut self, at: Time) -> (u64, bool) {
        self.written[self.tail as usize] = at;
        let place = (self.base + u64::from(self.tail) * 16, self.phase);
        self.tail += 1;
        // The phase tag changes with each pass through the ring. The host knows a new entry by
        // it and needs no register access to find the tail (base 2.0c, clause 3.3.3.2).
        if self.tail == self.entries {
            self.tail = 0;
            self.phase = !self.phase;
        }
        place
    }
}

impl CompletionQueue {
    /// When the entry in `place` was written.
    #[inline]
    pub(super) fn written_at(&self, place: u16) -> Option<Time> {
        self.written.get(usize::from(place)).copied()
    }
}

/// Values of the features that act on queues and interrupts.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueFeatures {
    pub(super) arbitration: u32,
    /// I/O queues less one: submission and completion.
    pub(super) queues: u32,
    pub(super) coalescing: u32,
}

impl QueueFeatures {
    /// The values after a reset.
    pub(super) fn new(config: &NvmeControllerConfig) -> QueueFeatures {
        let queues = u32::from(config.io_queues - 1);
        QueueFeatures {
            arbitration: Arbiter::feature(config.arbitration_burst),
            queues: queues << 16 | queues,
            coalescing: 0,
        }
    }
    /// I/O submission and completion queues that the host may create.
    pub(super) fn queues_granted(&self) -> (u32, u32) {
        ((self.queues & 0xffff) + 1, (self.queues >> 16) + 1)
    }
}

/// All queues by identifier; 0 is the admin queue.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    pub(super) submission: Vec<Option<SubmissionQueue>>,
    pub(super) completion: Vec<Option<CompletionQueue>>,
    /// An I/O queue was created since the last reset.
    pub(super) had_io: bool,
    pub(super) features: QueueFeatures,
    /// Submission queues whose deletion waits for their commands: slot of the deletion, queue.
    pub(super) deletions: Vec<(u32, u16)>,
}

impl Queues {
    pub(super) fn new(config: &NvmeControllerConfig) -> Queues {
        let count = usize::from(config.io_queues) + 1;
        Queues {
            submission: vec![None; count],
            completion: vec![None; count],
            had_io: false,
            features: QueueFeatures::new(config),
            deletions: Vec::new(),
        }
    }
    pub(super) fn clear(&mut self) {
        self.submission.fill(None);
        self.completion.fill(None);
        self.had_io = false;
        self.deletions.clear();
    }
    #[inline]
    pub(super) fn submission(&mut self, id: u16) -> Option<&mut SubmissionQueue> {
        self.submission.get_mut(usize::from(id))?.as_mut()
    }
    #[inline]
    pub(super) fn completion(&mut self, id: u16) -> Option<&mut CompletionQueue> {
        self.completion.get_mut(usize::from(id))?.as_mut()
    }
    /// The completion queue that commands of submission queue `id` report to.
    #[inline]
    pub(super) fn completion_of(&mut self, id: u16) -> Option<&mut CompletionQueue> {
        let completion = self.submission(id)?.completion;
        self.completion(completion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submission_queue_holds_one_entry_less_than_it_has() {
        let mut queue = SubmissionQueue::new(0, 4, 0);
        assert_eq!(queue.ring(3), Ok(()));
        assert_eq!(queue.unclaimed(), 3);
        // S1-27: full when the tail is one behind the head.
        assert_eq!(queue.ring(0), Err(BadDoorbell::Value));
        queue.claim(2);
        queue.head = 2;
        assert_eq!(queue.ring(1), Ok(()));
        assert_eq!(queue.unclaimed(), 3);
        assert_eq!(queue.ring(2), Err(BadDoorbell::Value));
    }

    #[test]
    fn the_phase_turns_with_each_wrap() {
        let mut queue = CompletionQueue::new(0x1000, 3, Some(1));
        assert_eq!(
            [queue.push(Time::ZERO), queue.push(Time::ZERO)],
            [(0x1000, true), (0x1010, true)]
        );
        assert!(queue.is_full());
        assert_eq!(queue.ring(1), Ok(1));
        assert_eq!(queue.push(Time::ZERO), (0x1020, true));
        assert_eq!(queue.ring(0), Ok(2));
        assert_eq!(queue.push(Time::ZERO), (0x1000, false));
        assert_eq!(queue.ring(2), Err(BadDoorbell::Value), "more than there is");
    }
}
