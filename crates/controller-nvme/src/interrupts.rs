//! When interrupts are sent (base 2.0c, clauses 3.1.3.3 and 5.27.1.6; NVMe 1.4, clause 7.5).
//!
//! Each completion entry of a queue with interrupts wants a message of the queue's vector. Entries
//! that are posted at the same instant share one. Coalescing holds the message back until enough
//! entries wait or the first has waited long enough. Where the pin is used, it stays asserted as long
//! as a queue has entries that the host has not taken.

use ssdyno_block::Time;

/// The task of a vector's timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// Go on as it does.
    Unchanged,
    /// Start: the message is due after this time.
    Start(Time),
    /// Stop: the message is due now.
    Stop,
}

/// One vector.
#[derive(Clone, Copy, Debug, Default)]
struct Vector {
    /// Coalescing does not apply.
    at_once: bool,
    /// Entries that wait for company.
    waiting: u32,
    /// A message is due.
    due: bool,
    /// Entries in its queues that the host has not taken.
    unread: u64,
}

/// All vectors.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts {
    vectors: Vec<Vector>,
    due: Vec<u16>,
    /// Entries at which coalesced completions are signalled, and how long the first one waits.
    threshold: u32,
    time: Time,
    /// INTMS: vectors 0 to 31 that are masked.
    mask: u32,
    /// Masked vectors with a message due.
    masked: Vec<u16>,
    /// Entries in queues with interrupts that the host has not taken, of all vectors: they share the pin.
    unread: u64,
    /// The pin is.
    asserted: bool,
    /// Completion queues in which held completions may find room.
    pub(super) has_room: Vec<u16>,
}

impl Interrupts {
    pub(super) fn new(vectors: u16) -> Interrupts {
        Interrupts {
            vectors: vec![Vector::default(); usize::from(vectors)],
            due: Vec::with_capacity(usize::from(vectors)),
            ..Interrupts::default()
        }
    }
    pub(super) fn exists(&self, vector: u32) -> bool {
        (vector as usize) < self.vectors.len()
    }
    pub(super) fn reset(&mut self) {
        self.vectors.fill(Vector::default());
        self.due.clear();
        self.masked.clear();
        self.has_room.clear();
        self.mask = 0;
        // The queues are gone, and with them their entries. A pin that is asserted stays so
        // until `must_release` finds that nothing is unread.
        self.unread = 0;
    }
    /// The interrupt coalescing feature (base 2.0c, figure 325).
    pub(super) fn set_coalescing(&mut self, value: u32) {
        // The threshold is a number from zero: a message is due with one entry more than it says
        // (base 2.0c, figure 325). `posted` compares with "greater than" for this reason.
        self.threshold = value & 0xff;
        self.time = Time::from_us(100) * u64::from(value >> 8 & 0xff);
    }
    /// The interrupt vector configuration feature (base 2.0c, figure 326).
    pub(super) fn set_at_once(&mut self, vector: u16, at_once: bool) {
        self.vectors[usize::from(vector)].at_once = at_once;
    }
    pub(super) fn is_at_once(&self, vector: u16) -> bool {
        self.vectors[usize::from(vector)].at_once
    }

    /// An entry was posted.
    #[inline]
    pub(super) fn posted(&mut self, vector: u16, admin: bool) -> Wait {
        self.unread += 1;
        self.vectors[usize::from(vector)].unread += 1;
        // Coalescing trades latency for fewer interrupts. A threshold or a time of 0 switches it
        // off, as the specification says of both fields.
        let state = &mut self.vectors[usize::from(vector)];
        // Admin completions are never coalesced.
        if admin || state.at_once || self.threshold == 0 || self.time == Time::ZERO {
            self.make_due(vector);
            return Wait::Unchanged;
        }
        state.waiting += 1;
        match state.waiting {
            1 => Wait::Start(self.time),
            waiting if waiting > self.threshold => {
                self.make_due(vector);
                Wait::Stop
            }
            _ => Wait::Unchanged,
        }
    }
    /// The first of the entries that wait has waited long enough.
    pub(super) fn time_is_up(&mut self, vector: u16) {
        if self.vectors[usize::from(vector)].waiting > 0 {
            self.make_due(vector);
        }
    }
    #[inline]
    fn make_due(&mut self, vector: u16) {
        let state = &mut self.vectors[usize::from(vector)];
        state.waiting = 0;
        if !state.due {
            state.due = true;
            self.due.push(vector);
        }
    }
    /// The host has taken `count` entries from queues of `vector`.
    #[inline]
    pub(super) fn taken(&mut self, vector: u16, count: u32) {
        self.unread -= u64::from(count);
        self.vectors[usize::from(vector)].unread -= u64::from(count);
    }
    /// True if nothing has to be sent or released under `mask`.
    #[inline]
    pub(super) fn is_quiet(&self, mask: u32) -> bool {
        self.due.is_empty() && mask == self.mask && !(self.asserted && self.unread == 0)
    }
    /// INTMS as it is now: messages that a mask held back become due when it goes.
    #[inline(always)]
    pub(super) fn set_mask(&mut self, mask: u32) {
        if mask == self.mask {
            return;
        }
        let pin_unmasked = self.mask & !mask & 1 == 1;
        self.mask = mask;
        // A message that was held back is of no use once the host has taken all entries of its
        // vector. It is dropped then, and only messages with something to find are sent.
        self.masked.retain(|vector| {
            let still = mask >> vector & 1 == 1;
            let state = &mut self.vectors[usize::from(*vector)];
            if !still && state.unread > 0 {
                self.due.push(*vector);
            } else if !still {
                state.due = false;
            }
            still
        });
        // With the pin, unmasking with entries left asserts it again.
        if pin_unmasked && self.unread > 0 {
            self.make_due(0);
        }
    }
    /// True if the pin, if that is what is used, must be released now.
    #[inline]
    pub(super) fn must_release(&mut self) -> bool {
        let release = self.asserted && (self.unread == 0 || self.mask & 1 == 1);
        self.asserted &= !release;
        release
    }
    /// An interrupt of `vector` is still to be sent: it is coalesced, or masked.
    pub(super) fn is_due(&self, vector: u16) -> bool {
        let state = self.vectors.get(usize::from(vector));
        state.is_some_and(|state| state.due || state.waiting > 0)
    }
    /// The next vector to signal.
    #[inline]
    pub(super) fn next_due(&mut self) -> Option<u16> {
        // All messages of an instant leave at the same time, and nothing orders messages of
        // different vectors. A stack is the cheapest list.
        while let Some(vector) = self.due.pop() {
            // INTMS has 32 bits: vectors above 31 cannot be masked with it. A masked vector
            // stays due, so that further completions do not queue it a second time.
            if vector < 32 && self.mask >> vector & 1 == 1 {
                self.masked.push(vector);
                continue;
            }
            self.vectors[usize::from(vector)].due = false;
            return Some(vector);
        }
        None
    }
    /// It was sent; `pin` says that it stays until it is released.
    #[inline]
    pub(super) fn sent(&mut self, pin: bool) {
        self.asserted |= pin;
    }
}
