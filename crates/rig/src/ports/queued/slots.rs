//! Commands on their way, and what can happen to them.

use ssdyno_block::{Request, Status, Time, Token};
use ssdyno_engine::SlotTable;

ssdyno_engine::event_kinds! {
    /// The possible events of the command of a slot.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum Event << 29 {
        /// It has reached the target machine.
        AtTarget(u32) = 0,
        /// It has reached the device.
        AtDevice(u32) = 1,
        /// The target machine has sent its answer.
        Sent(u32) = 2,
        /// The host is told.
        Told(u32) = 3,
        /// It is sent to the target machine again.
        Again(u32) = 4,
        /// Its answer is sent to the host again.
        AnswerAgain(u32) = 5,
    }
}

/// How far a command is over a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// It waits to set out: a session that breaks costs it nothing.
    Waiting,
    /// It has set out since it was begun last: with its session it breaks.
    Sent,
    /// Its session broke too often: the host will be told, whatever becomes of the session.
    GivenUp,
}

/// A command of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) request: Request,
    pub(super) token: Token,
    pub(super) queue: u16,
    pub(super) status: Status,
    /// When the device began and ended the command.
    pub(super) in_device: (Time, Time),
    pub(super) stage: Stage,
    /// How often it was begun; 0: the slot is free, or its session broke and what still happens is for
    /// nobody.
    pub(super) tries: u32,
}

/// The commands of a session that have set out and have not completed.
pub(super) fn of_session(slots: &SlotTable<Slot>, queue: u16) -> Vec<u32> {
    // Only commands that have set out are lost with the session. Those that wait for the
    // reconnection are still with the initiator.
    let of = |slot: &Slot| slot.queue == queue && slot.tries > 0 && slot.stage == Stage::Sent;
    (0..).zip(slots.places()).filter(|(_, slot)| of(slot)).map(|(at, _)| at).collect()
}
