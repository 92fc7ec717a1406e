//! What can happen inside the card, and how its parts report that they were busy.

use ssdyno_block::Time;

/// What can happen inside the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// [`CONTROL`](ssdyno_spec::ring::CONTROL) was written.
    Control(bool),
    /// [`NEXT_SIZE`](ssdyno_spec::ring::NEXT_SIZE) was written; the values wait in a queue.
    Doorbell,
    /// [`INTERRUPT_MASK`](ssdyno_spec::ring::INTERRUPT_MASK) was written.
    Mask(bool),
    /// [`INTERRUPT_ACKNOWLEDGE`](ssdyno_spec::ring::INTERRUPT_ACKNOWLEDGE) was written.
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
pub(super) const SLOT_BITS: u32 = 13;

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
            // Both are below 2^13 (`RingCard::fresh` asserts it), so together they need 26 of
            // the 28 bits. The number of a batch wraps at 28 bits below; its timeout is 4.3 s
            // old at most.
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

/// The bits of [`Event::pack`](ssdyno_engine::Event::pack) that are not the kind.
pub(super) const REST: u32 = (1 << 28) - 1;
