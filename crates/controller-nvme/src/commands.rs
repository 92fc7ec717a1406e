//! The commands inside the controller, in slots that are allocated once.

use ssdyno_spec::nvme::NvmeStatus;
use zerocopy::little_endian::U64;

use super::subsystem::NvmCommand;

/// No slot.
pub(super) const NIL: u32 = u32::MAX;

/// Where a command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The slot is free.
    Free,
    /// Its PRP list is on the way from host memory.
    List,
    /// The device works on it.
    Device,
    /// The device works on it, and whatever it says the command fails: an injected fault.
    Spoilt,
    /// The device works on it, and a sanitize operation has begun meanwhile: it ends with that status.
    Sanitized,
    /// A timer runs: an admin command in execution, or an injected delay.
    Timer,
    /// Its completion entry is on the way to host memory.
    Posting,
    /// Its completion queue is full.
    Held,
    /// An asynchronous event request that waits for an event.
    Parked,
    /// Lost by an injected fault: only an abort or a reset ends it.
    Lost,
    /// The device works on it, but a reset or a deleted queue has ended it: no answer.
    Forgotten,
}

/// A command inside the controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    /// First physical region page entry.
    pub(super) prp1: u64,
    /// The second, where there is no list.
    pub(super) prp2: u64,
    /// The subsystem's part of it.
    pub(super) nvm: NvmCommand,
    /// Result for the completion.
    pub(super) dword0: u32,
    /// The next of a chain of held completions.
    pub(super) next: u32,
    pub(super) queue: u16,
    pub(super) id: u16,
    pub(super) status: NvmeStatus,
    pub(super) state: State,
    /// Its pages are in the list of its slot.
    pub(super) listed: bool,
    /// The queue knows its identifier as taken by this command.
    pub(super) owns_id: bool,
}

impl Command {
    pub(super) fn new(queue: u16, id: u16, nvm: NvmCommand) -> Command {
        Command {
            prp1: 0,
            prp2: 0,
            nvm,
            dword0: 0,
            next: NIL,
            queue,
            id,
            status: NvmeStatus::SUCCESS,
            state: State::Timer,
            listed: false,
            owns_id: false,
        }
    }
}

/// All slots. I/O commands and admin commands have each their own number of places, so that neither
/// keeps the other out.
#[derive(Debug)]
pub(super) struct Commands {
    slots: Vec<Command>,
    free: Vec<u32>,
    /// Page lists: `list_entries` for each slot.
    lists: Vec<U64>,
    list_entries: usize,
    /// Places not taken and not promised to a fetch.
    room_io: u32,
    room_admin: u32,
    depth: u32,
}

/// Admin commands at a time.
// Asynchronous event requests stay inside for a long time: up to 4 of these places. The others
// are for commands that end by themselves.
pub(super) const ADMIN_COMMANDS: u32 = 16;

impl Commands {
    /// `depth` I/O commands, each with up to `list_entries` pages in a list.
    pub(super) fn new(depth: u32, list_entries: usize) -> Commands {
        let slots = depth + ADMIN_COMMANDS;
        let mut empty = Command::new(0, 0, NvmCommand::new(0, 0));
        empty.state = State::Free;
        Commands {
            slots: vec![empty; slots as usize],
            // The list is used from its end, so slot 0 is taken first. A shallow queue thus
            // keeps using the same few slots, which stay in the processor's cache.
            free: (0..slots).rev().collect(),
            lists: vec![U64::ZERO; slots as usize * list_entries],
            list_entries,
            room_io: depth,
            room_admin: ADMIN_COMMANDS,
            depth,
        }
    }

    /// No I/O command is inside or on the way.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.io() == 0
    }

    /// I/O commands inside or on the way.
    #[inline]
    pub(super) fn io(&self) -> u32 {
        self.depth - self.room_io
    }

    /// How many commands of this kind of queue may come.
    #[inline]
    pub(super) fn room(&self, admin: bool) -> u32 {
        if admin { self.room_admin } else { self.room_io }
    }
    /// Keeps `count` places for a fetch that was begun.
    #[inline]
    pub(super) fn promise(&mut self, admin: bool, count: u32) {
        *self.room_mut(admin) -= count;
    }
    /// A promised place is not needed.
    #[inline]
    pub(super) fn give_back(&mut self, admin: bool, count: u32) {
        *self.room_mut(admin) += count;
    }
    #[inline]
    fn room_mut(&mut self, admin: bool) -> &mut u32 {
        if admin { &mut self.room_admin } else { &mut self.room_io }
    }

    /// Puts a command into a promised place.
    #[inline]
    pub(super) fn insert(&mut self, command: Command) -> u32 {
        // There are as many slots as places, so a promised place always has one.
        let slot = self.free.pop().unwrap_or_else(|| unreachable!("a promised place has a slot"));
        self.slots[slot as usize] = command;
        slot
    }
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        let command = &mut self.slots[slot as usize];
        debug_assert!(command.state != State::Free);
        command.state = State::Free;
        let admin = command.queue == 0;
        self.free.push(slot);
        self.give_back(admin, 1);
    }
    #[inline]
    pub(super) fn get(&self, slot: u32) -> &Command {
        &self.slots[slot as usize]
    }
    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Command {
        &mut self.slots[slot as usize]
    }
    /// The slot's page list.
    #[inline]
    pub(super) fn list(&self, slot: u32) -> &[U64] {
        let first = slot as usize * self.list_entries;
        &self.lists[first..first + self.list_entries]
    }
    /// The slot's page list.
    #[inline]
    pub(super) fn list_mut(&mut self, slot: u32) -> &mut [U64] {
        let first = slot as usize * self.list_entries;
        &mut self.lists[first..first + self.list_entries]
    }
    /// The slot of command `id` of `queue`, if it is inside.
    pub(super) fn find(&self, queue: u16, id: u16) -> Option<u32> {
        let is_it = |c: &Command| {
            c.queue == queue
                && c.id == id
                // Two commands with one identifier may be inside for a moment. The one that
                // ended with a conflict does not own the identifier, and an abort must not hit
                // it.
                && c.owns_id
                && !matches!(c.state, State::Free | State::Forgotten)
        };
        self.slots.iter().position(is_it).map(|slot| slot as u32)
    }
    /// Every slot with a command whose host still waits for it.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        let waits = |c: &Command| !matches!(c.state, State::Free | State::Forgotten);
        (0..self.slots.len() as u32).filter(move |slot| waits(&self.slots[*slot as usize]))
    }
    /// Every slot.
    pub(super) fn all(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }
}
