//! The state of one die.

use ssdyno_block::Time;
use ssdyno_engine::events::FlashCause;

use crate::{FlashOp, OpKind};

/// No operation: the end of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// Most planes that join in one operation. Parts have four to six planes, of which each may stand
/// here as four with a mapping unit a page.
pub(crate) const MOST_PLANES: usize = 16;

/// Operations that a die executes together: one a plane, linked through the [`Slab`]. They are of one
/// kind, but for the copies through the controller that programs have joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) kind: OpKind,
    /// That of the oldest member.
    pub(crate) cause: FlashCause,
    pub(crate) len: u8,
    /// How many of them are copies.
    pub(crate) copies: u8,
    /// Members have different causes.
    pub(crate) mixed: bool,
    members: Fifo,
}

impl Group {
    pub(crate) fn new(kind: OpKind, cause: FlashCause) -> Group {
        Group { kind, cause, len: 0, copies: 0, mixed: false, members: Fifo::default() }
    }
    pub(crate) fn is_full(&self) -> bool {
        self.len as usize == MOST_PLANES
    }
    /// An operation of `kind` can be done together with these: of the same kind, or, where copies
    /// go `through` the controller, a copy and a program, which end alike.
    pub(crate) fn admits(&self, kind: OpKind, through: bool) -> bool {
        let programs = |kind| matches!(kind, OpKind::Program | OpKind::Copy);
        self.kind == kind || through && programs(self.kind) && programs(kind)
    }
    /// The place of the first member in the slab; [`NIL`] if there is none.
    #[inline]
    pub(crate) fn first(&self) -> u32 {
        self.members.head
    }
}

/// The present work of a die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Nothing.
    Idle,
    /// Something that cannot be interrupted: a read, a transfer, the act of suspending.
    Busy,
    /// What will be a program or erase in its array phase waits for the channel.
    Asked,
    /// A program or erase, in its array phase from `array_from` on.
    Array,
}

/// A program or erase that was interrupted, and how much of it is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspended {
    pub(crate) group: Group,
    pub(crate) remaining: Time,
}

#[derive(Clone, Debug)]
pub(crate) struct Die {
    pub(crate) phase: Phase,
    pub(crate) group: Group,
    /// Events of an older generation were overtaken by a suspension.
    pub(crate) generation: u8,
    /// A read that may overtake came while the phase was [`Phase::Asked`].
    pub(crate) called: bool,
    pub(crate) array_from: Time,
    pub(crate) array_to: Time,
    pub(crate) suspended: Option<Suspended>,
    /// Reads that may overtake.
    pub(crate) reads: Fifo,
    /// Operations in the queues of the planes.
    pub(crate) waiting: u32,
    pub(crate) reads_in_row: u32,
}

impl Die {
    pub(crate) fn new() -> Die {
        Die {
            phase: Phase::Idle,
            group: Group::new(OpKind::Read, FlashCause::None),
            generation: 0,
            called: false,
            array_from: Time::ZERO,
            array_to: Time::ZERO,
            suspended: None,
            reads: Fifo::default(),
            waiting: 0,
            reads_in_row: 0,
        }
    }
}

/// A queued operation. Kept in a slab so that queues of any length cost no allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) page: u32,
    pub(crate) to: u32,
    pub(crate) owner: u32,
    pub(crate) next: u32,
    pub(crate) sequence: u32,
    pub(crate) plane: u32,
    /// Epoch of the block of `page` that a read or copy reads.
    pub(crate) epoch: u16,
    /// Epoch of the block that a program or copy writes.
    pub(crate) to_epoch: u16,
    pub(crate) kind: OpKind,
    pub(crate) sector_only: bool,
    pub(crate) cause: FlashCause,
}

impl Queued {
    /// `op` as number `sequence` of all, with `owner`; of the first epoch.
    #[inline(always)]
    pub(crate) fn new(op: &FlashOp, owner: u32, sequence: u32) -> Queued {
        Queued {
            page: op.page,
            to: op.to,
            owner,
            next: NIL,
            sequence,
            plane: op.plane,
            epoch: 0,
            to_epoch: 0,
            kind: op.kind,
            sector_only: op.sector_only,
            cause: op.cause,
        }
    }

    /// The page that changes, or is read.
    #[inline]
    pub(crate) fn target(&self) -> u32 {
        if self.kind == OpKind::Copy { self.to } else { self.page }
    }
}

/// A first-in, first-out list through the slab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fifo {
    pub(crate) head: u32,
    tail: u32,
}

impl Default for Fifo {
    fn default() -> Fifo {
        Fifo { head: NIL, tail: NIL }
    }
}

/// All queued operations.
#[derive(Clone, Debug)]
pub(crate) struct Slab {
    all: Vec<Queued>,
    /// The first of the unused places, which are linked.
    unused: u32,
}

impl Default for Slab {
    fn default() -> Slab {
        Slab { all: Vec::new(), unused: NIL }
    }
}

impl Slab {
    #[inline(always)]
    pub(crate) fn insert(&mut self, op: Queued) -> u32 {
        // Unused places are linked through `next`. A list beside the slab would touch a second
        // line of memory for each operation.
        let at = self.unused;
        match self.all.get_mut(at as usize) {
            Some(place) => {
                self.unused = place.next;
                *place = op;
                at
            }
            None => self.grow(op),
        }
    }
    #[cold]
    fn grow(&mut self, op: Queued) -> u32 {
        self.all.push(op);
        (self.all.len() - 1) as u32
    }
    /// The place is free again.
    #[inline]
    pub(crate) fn remove(&mut self, at: u32) {
        self.all[at as usize].next = self.unused;
        self.unused = at;
    }
    #[inline]
    pub(crate) fn get(&self, at: u32) -> &Queued {
        &self.all[at as usize]
    }
    #[inline]
    pub(crate) fn push_back(&mut self, list: &mut Fifo, at: u32) {
        self.all[at as usize].next = NIL;
        match list.tail {
            NIL => list.head = at,
            tail => self.all[tail as usize].next = at,
        }
        list.tail = at;
    }
    /// The operation at `at`, which is in no list, joins `group`.
    #[inline]
    pub(crate) fn join(&mut self, group: &mut Group, at: u32) {
        let op = &self.all[at as usize];
        // The flag is kept while members join. The log asks for it at each end of an array
        // phase, and a walk over the members there would cost each group with one member, too.
        group.mixed |= op.cause != group.cause;
        group.copies += u8::from(op.kind == OpKind::Copy);
        group.len += 1;
        self.push_back(&mut group.members, at);
    }
    /// Takes the first member out of `group`, if there is one.
    #[inline]
    pub(crate) fn leave(&mut self, group: &mut Group) -> Option<u32> {
        if group.members.head == NIL {
            return None;
        }
        // `copies` and `mixed` keep their values. Only groups of reads lose members one by one,
        // and reads use neither.
        group.len -= 1;
        Some(self.take_after(&mut group.members, NIL))
    }
    /// The members of `group`, in the order in which they joined.
    #[inline(always)]
    pub(crate) fn members(&self, group: &Group) -> impl Iterator<Item = (u32, &Queued)> {
        let mut next = group.members.head;
        std::iter::from_fn(move || {
            let at = next;
            let op = self.all.get(at as usize)?;
            next = op.next;
            Some((at, op))
        })
    }
    /// Takes out the member behind `before` (`NIL`: the head).
    #[inline]
    pub(crate) fn take_after(&mut self, list: &mut Fifo, before: u32) -> u32 {
        let at = if before == NIL { list.head } else { self.all[before as usize].next };
        let next = self.all[at as usize].next;
        match before {
            NIL => list.head = next,
            before => self.all[before as usize].next = next,
        }
        if next == NIL {
            list.tail = before;
        }
        at
    }
}
