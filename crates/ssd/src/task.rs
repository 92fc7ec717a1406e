//! The waiters for a flash operation.

use ssdyno_engine::SlotTable;
use ssdyno_flash::NO_OWNER;

// One bit distinguishes tasks from requests, so the flash carries a single u32 per operation. An
// enum of eight bytes would double the owner field in each queued operation.
/// Set in an owner that is a [`Task`]; else it is a request.
const TASK: u32 = 1 << 31;

/// The owner of a flash operation, unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A page of a request, by slot.
    Request(u32),
    /// An internal task.
    Task(u32),
}

impl Owner {
    #[inline]
    pub(crate) fn pack(self) -> u32 {
        match self {
            Owner::Request(slot) => slot,
            Owner::Task(task) => task | TASK,
        }
    }
    #[inline]
    pub(crate) fn unpack(owner: u32) -> Owner {
        debug_assert_ne!(owner, NO_OWNER);
        if owner & TASK == 0 { Owner::Request(owner) } else { Owner::Task(owner & !TASK) }
    }
}

/// Something that goes on when its flash operations are complete.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// The rest of a partly written page was read: write the page for the request.
    Modify {
        /// The request.
        slot: u32,
        /// The logical page.
        page: u32,
    },
    /// A page of a read arrived that may stay in the buffer.
    Fill {
        /// The request.
        slot: u32,
        /// The logical page.
        page: u32,
    },
    /// The mapping of a page is known: read its data for `then`.
    Locate {
        /// Packed owner of the data read.
        then: u32,
        /// The logical page.
        page: u32,
    },
    /// A page of a write-back that must be read before it is written (padding of a block).
    Pad {
        /// The logical page.
        page: u32,
    },
    /// A page that the buffer handed out was written.
    WrittenBack {
        /// The logical page.
        page: u32,
    },
}

/// A goal and the flash operations before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) goal: Goal,
    pub(crate) pending: u32,
}

/// All tasks; slots are used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks(SlotTable<Task>);

impl Tasks {
    pub(crate) fn insert(&mut self, goal: Goal) -> u32 {
        self.0.insert(Task { goal, pending: 0 })
    }
    pub(crate) fn add_pending(&mut self, at: u32) {
        self.0[at].pending += 1;
    }
    pub(crate) fn pending(&self, at: u32) -> u32 {
        self.0[at].pending
    }
    /// The request that it is for, if it is for one.
    pub(crate) fn request(&self, at: u32) -> Option<u32> {
        match self.0[at].goal {
            Goal::Modify { slot, .. } | Goal::Fill { slot, .. } => Some(slot),
            Goal::Locate { .. } | Goal::Pad { .. } | Goal::WrittenBack { .. } => None,
        }
    }
    /// One operation fewer; the goal once none is left.
    pub(crate) fn complete_one(&mut self, at: u32) -> Option<Goal> {
        let task = &mut self.0[at];
        task.pending -= 1;
        (task.pending == 0).then(|| self.remove(at))
    }
    pub(crate) fn remove(&mut self, at: u32) -> Goal {
        self.0.take(at).goal
    }
}
