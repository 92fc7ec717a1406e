//! What can happen inside the card.

ssdyno_engine::event_kinds! {
    /// What can happen inside the card.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum Event << 28 {
        /// [`CONTROL`](ssdyno_spec::ring::CONTROL) was written.
        Control(bool) = 0,
        /// [`NEXT_SIZE`](ssdyno_spec::ring::NEXT_SIZE) was written; the values wait in a queue.
        Doorbell = 1,
        /// [`INTERRUPT_MASK`](ssdyno_spec::ring::INTERRUPT_MASK) was written.
        Mask(bool) = 2,
        /// [`INTERRUPT_ACKNOWLEDGE`](ssdyno_spec::ring::INTERRUPT_ACKNOWLEDGE) was written.
        Acknowledge = 3,
        /// A microprocessor has done its job.
        Processor(u32) = 4,
        /// An engine is set up: its first packet may go.
        Start(u32) = 5,
        /// The first completion of an engine's read is there.
        Arrive(u32) = 6,
        /// An engine has done its transfer.
        Sent(u32) = 7,
        /// Descriptors are in host memory: which.
        Landed(Stretch) = 8,
        /// The medium has done its part of the command in a slot.
        Medium(u32) = 9,
        /// Returned descriptors have waited long enough for their interrupt.
        Timeout(u32) = 10,
        /// The command in a slot, which a fault held up, begins.
        Begin(u32) = 11,
    }
}

/// Descriptors in a row, by slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    pub(super) first: u32,
    pub(super) count: u32,
}

/// Bits of a slot, and of a number of descriptors.
pub(super) const SLOT_BITS: u32 = 13;

/// Both are below 2^13 (`RingCard::fresh` asserts it), so together they need 26 of the 28 bits.
impl ssdyno_engine::Event for Stretch {
    fn pack(self) -> u32 {
        self.first | self.count << SLOT_BITS
    }
    fn unpack(code: u32) -> Stretch {
        Stretch { first: code & ((1 << SLOT_BITS) - 1), count: code >> SLOT_BITS }
    }
}

/// The bits of an event that are not its kind. The number of a batch wraps there; its timeout is 4.3 s old at
/// most.
pub(super) const REST: u32 = (1 << 28) - 1;
