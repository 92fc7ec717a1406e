//! The pages in the buffer, found by number, and their order.

use rustc_hash::FxHashMap;

/// No slot.
pub(super) const NIL: u32 = u32::MAX;

/// What a slot's page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Same as on flash.
    Clean,
    /// Newer than on flash.
    Dirty,
    /// Handed out, not yet on flash.
    Writing,
    /// Handed out, and written again since.
    WritingDirty,
    /// Handed out although the same is on flash: its block is written as a whole.
    Rewriting,
    /// Handed out, and trimmed since: no data, but the slot waits for the end of the write.
    WritingTrimmed,
}

impl State {
    /// The page's newest data is here.
    pub(super) fn has_data(self) -> bool {
        self != State::WritingTrimmed
    }
    /// Handed out and not yet on flash.
    pub(super) fn is_writing(self) -> bool {
        !matches!(self, State::Clean | State::Dirty)
    }
    /// Data that flash lacks has not been handed out.
    pub(super) fn is_dirty(self) -> bool {
        matches!(self, State::Dirty | State::WritingDirty)
    }
}

/// One page of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) page: u32,
    pub(super) state: State,
    /// Used since the clock's hand last passed.
    pub(super) referenced: bool,
    /// Flushes begun when the page became dirty.
    pub(super) epoch: u32,
    /// The same for the version that was written while an earlier one was on its way.
    pub(super) next_epoch: u32,
    newer: u32,
    older: u32,
}

/// Slots in order, newest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    newest: u32,
    oldest: u32,
    len: u32,
}

impl Default for List {
    fn default() -> List {
        List { newest: NIL, oldest: NIL, len: 0 }
    }
}

impl List {
    pub(super) fn len(&self) -> u32 {
        self.len
    }
    /// The slot that came first, or `NIL`.
    pub(super) fn oldest(&self) -> u32 {
        self.oldest
    }
}

/// All slots. Memory follows the number of pages held at most.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Looked up only, never iterated: its order affects nothing. The hasher has no seed.
    by_page: FxHashMap<u32, u32>,
    capacity: u32,
}

impl Slots {
    pub(super) fn new(capacity: u32) -> Slots {
        Slots { slots: Vec::new(), free: Vec::new(), by_page: FxHashMap::default(), capacity }
    }

    pub(super) fn find(&self, page: u32) -> Option<u32> {
        self.by_page.get(&page).copied()
    }

    pub(super) fn get(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }

    pub(super) fn is_full(&self) -> bool {
        // The number of entries of the map is the number of slots in use: each slot that holds a
        // page has one entry, and a freed slot has none. No second counter can disagree with it.
        self.by_page.len() as u64 >= u64::from(self.capacity)
    }

    pub(super) fn len(&self) -> u32 {
        self.by_page.len() as u32
    }

    /// A slot for `page`, which has none; there must be room.
    pub(super) fn insert(&mut self, page: u32, state: State, epoch: u32) -> u32 {
        let new = Slot {
            page,
            state,
            referenced: false,
            epoch,
            next_epoch: epoch,
            newer: NIL,
            older: NIL,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                slot
            }
            None => {
                self.slots.push(new);
                self.slots.len() as u32 - 1
            }
        };
        self.by_page.insert(page, slot);
        slot
    }

    /// Frees a slot that is in no list.
    pub(super) fn remove(&mut self, slot: u32) {
        self.by_page.remove(&self.slots[slot as usize].page);
        self.free.push(slot);
    }

    pub(super) fn push(&mut self, list: &mut List, slot: u32) {
        let at = &mut self.slots[slot as usize];
        (at.newer, at.older) = (NIL, list.newest);
        match list.newest {
            NIL => list.oldest = slot,
            newest => self.slots[newest as usize].newer = slot,
        }
        list.newest = slot;
        list.len += 1;
    }

    /// Takes `slot` out of `list`, in which it is.
    pub(super) fn unlink(&mut self, list: &mut List, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        match newer {
            NIL => list.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NIL => list.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        list.len -= 1;
    }

    pub(super) fn refresh(&mut self, list: &mut List, slot: u32) {
        // A page that is written many times in a row is the newest already. The test spares it
        // two list operations.
        if list.newest != slot {
            self.unlink(list, slot);
            self.push(list, slot);
        }
    }
}
