//! The driver's record of each command of an I/O queue.

use ssdyno_block::{MonotonicTime, Token};
use ssdyno_pci::DmaPiece;
use ssdyno_spec::nvme::NvmeStatus;

/// How far a command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum SlotState {
    Free,
    /// With the controller, within its timeout.
    Waiting,
    /// With the controller, and late; the controller took no abort.
    Late,
    /// With the controller, which was asked to abort it.
    Aborting,
    /// Completed; other commands of its request are not.
    Completed,
}

/// The state that the driver keeps for a command (S1-30). The first command of a request holds what belongs to the
/// request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) deadline: MonotonicTime,
    pub(super) token: Token,
    /// Its place in the line of those in its state.
    pub(super) place: u16,
    /// The first command of the request.
    pub(super) parent: u16,
    /// Commands of the request without a completion.
    pub(super) parts: u16,
    /// The first error of the request.
    pub(super) status: NvmeStatus,
    /// Its page list, if it has one.
    pub(super) list: DmaPiece,
    /// How often the slot was used, modulo 256 at most: a completion of an earlier use is known by it.
    pub(super) generation: u8,
    pub(super) state: SlotState,
}

// Two to a cache line.
// A larger slot would cost a second line of the processor's cache for each completion.
const _: () = assert!(size_of::<Slot>() == 32);

pub(super) const EMPTY: Slot = Slot {
    deadline: MonotonicTime::MAX,
    token: Token(0),
    place: 0,
    parent: 0,
    parts: 0,
    status: NvmeStatus::SUCCESS,
    list: DmaPiece::NONE,
    generation: 0,
    state: SlotState::Free,
};

impl Slot {
    /// The identifier of the command that is in slot `tag`.
    #[inline(always)]
    pub(super) fn identifier(&self, tag: u16, tag_bits: u32) -> u16 {
        tag | u16::from(self.generation) << tag_bits
    }

    #[inline(always)]
    pub(super) fn is_with_controller(&self) -> bool {
        matches!(self.state, SlotState::Waiting | SlotState::Late | SlotState::Aborting)
    }
}
