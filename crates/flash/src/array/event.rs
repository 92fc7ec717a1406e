//! The events of dies and channels, and the needs of the array from its device.

use ssdyno_block::Time;
use ssdyno_engine::events::EventLog;
use ssdyno_engine::{Event, EventQueue};

/// Something that happens to a die or a channel; packs into 26 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashEvent {
    pub(super) kind: Kind,
    /// The die's generation when an event that can be overtaken was scheduled: older ones are
    /// void. Eight bits suffice, since no event outlives 256 suspensions of its die. Of
    /// [`Kind::Other`], which cannot be overtaken: which of them.
    pub(super) generation: u8,
    pub(super) die: u16,
}

/// The events of nearly every operation, and the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The array phase of the current operation ends.
    ArrayDone,
    /// The next page of a read left the die.
    PageOut,
    /// A program or erase enters its array phase with reads waiting: suspend it now.
    Suspend,
    /// See [`Other`].
    Other,
}

/// Events of some devices only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Other {
    /// The die has suspended and is free for reads.
    Suspended,
    /// A channel with waiting transfers becomes free; its number is in the place of the die.
    Free,
    /// All that became ready at this time is in the channel's line: choose.
    Choose,
    /// The data read is in the cache registers.
    Moved,
    /// The next page in the cache registers left the die.
    CachedPageOut,
    /// The data of a program is in the cache registers.
    Loaded,
    /// Data of a program has left the cache registers for the page registers.
    RegistersFree,
}

impl Other {
    pub(super) const ALL: [Other; 7] = [
        Other::Suspended,
        Other::Free,
        Other::Choose,
        Other::Moved,
        Other::CachedPageOut,
        Other::Loaded,
        Other::RegistersFree,
    ];
}

impl FlashEvent {
    /// Bits that [`pack`](Event::pack) needs.
    pub const BITS: u32 = 26;

    /// `other`, of die or channel `number`.
    pub(super) fn other(other: Other, number: u16) -> FlashEvent {
        FlashEvent { kind: Kind::Other, generation: other as u8, die: number }
    }
}

impl Event for FlashEvent {
    #[inline]
    fn pack(self) -> u32 {
        u32::from(self.die) | u32::from(self.generation) << 16 | (self.kind as u32) << 24
    }

    #[inline]
    fn unpack(code: u32) -> FlashEvent {
        let kind = match code >> 24 & 3 {
            0 => Kind::ArrayDone,
            1 => Kind::PageOut,
            2 => Kind::Suspend,
            _ => Kind::Other,
        };
        FlashEvent { kind, generation: (code >> 16) as u8, die: code as u16 }
    }
}

/// The array's needs from its device at one moment.
pub struct PlanePort<'a, E> {
    /// The moment.
    pub now: Time,
    /// Where the array's events go.
    pub queue: &'a mut EventQueue<E>,
    /// Where the array reports what is busy.
    pub log: &'a mut EventLog,
    /// Owners of the operations that completed, in order; one entry an operation.
    pub done: &'a mut Vec<u32>,
}
