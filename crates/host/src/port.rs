//! The host's needs from a driver, and from the device behind it.

use ssdyno_block::{Completion, Op, Request, SubmitError, Time, Token};

/// Register accesses that a call made; the host pays for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Registers {
    /// Posted writes.
    pub writes: u32,
    /// Reads, which stall the core.
    pub reads: u32,
}

/// The queue of a command, and the lock that its core must hold meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The queue.
    pub queue: u16,
    /// The lock; `None` where no other core uses the queue.
    pub lock: Option<u16>,
}

/// A command that a port gave to the device again on its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResentCommand {
    /// The core that did.
    pub core: u16,
    /// Operation of the command.
    pub op: Op,
    /// Bytes that it moves.
    pub bytes: u32,
    /// It had completed, with an error.
    pub completed: bool,
}

/// A driver with its function and device, as the host calls it.
///
/// The port owes: every command taken by [`submit`](HostPort::submit) is given back exactly once by
/// [`complete`](HostPort::complete); the same calls give the same answers; it has no costs of its own -
/// the host charges them.
///
/// The host owes: `now` never goes back; [`advance`](HostPort::advance) is called for every time that
/// [`next_event`](HostPort::next_event) names; it holds the lock of a [`Choice`] while it submits.
pub trait HostPort {
    /// Size of the device, in bytes.
    fn capacity_bytes(&self) -> u64;
    /// Unit of address and length, in bytes.
    fn sector_bytes(&self) -> u32;
    /// Most bytes of one command; longer requests are cut by the host.
    fn transfer_bytes_max(&self) -> u32;
    /// Number of locks.
    fn locks(&self) -> u16;
    /// True if choices have locks; a policy either needs them or does not.
    fn shared(&self) -> bool;
    /// The queue for the next command of `core` for a thread of `class`: the policy (S1-34 to
    /// S1-36).
    fn choose(&mut self, core: u16, class: u8) -> Choice;
    /// The core that takes the interrupts of `vector`.
    fn core_of(&self, vector: u16) -> u16;
    /// Work of a protocol stack for a command beside that of the driver: before it goes, or (`done`)
    /// once its answer is there. None without a network.
    fn protocol_work(&self, _op: Op, _bytes: u32, _done: bool) -> Time {
        Time::ZERO
    }
    /// Takes a command for `queue`. With `more` another follows at once, and the doorbell may wait.
    ///
    /// # Errors
    /// [`SubmitError::Full`] where the queue has no room: again after a completion.
    fn submit(
        &mut self,
        now: Time,
        queue: u16,
        request: Request,
        token: Token,
        more: bool,
    ) -> Result<Registers, SubmitError>;
    /// Rings doorbells that still wait.
    fn ring(&mut self, now: Time, queue: u16) -> Registers;
    /// The next time at which [`advance`](HostPort::advance) may find something to do.
    fn next_event(&self) -> Option<Time>;
    /// Brings the device towards `until`, at least through what [`next_event`](HostPort::next_event)
    /// names, and no further than to the first time at which an interrupt reaches its core or anything
    /// else happens that the host may answer. Appends the vectors of the interrupts; without interrupts
    /// (polling), those whose handlers would find something new. Gives the time of the last thing that
    /// happened.
    fn advance(&mut self, until: Time, vectors: &mut Vec<u16>) -> Time;
    /// The interrupt handler of `vector`, or a poll: appends all commands that are done.
    fn complete(&mut self, now: Time, vector: u16, done: &mut Vec<Completion>) -> Registers;
    /// Commands that it gave to the device again since this was called last: the host pays for them.
    #[inline(always)]
    fn take_resent(&mut self) -> Vec<ResentCommand> {
        Vec::new()
    }
}
