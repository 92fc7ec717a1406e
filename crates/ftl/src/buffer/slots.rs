//! The pages in the buffer, found by number, and their order.

use rustc_hash::FxHashMap;
use ssdyno_engine::{Linked, SlotLinks, SlotList, SlotTable};

/// The state of a slot's page.
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
    links: SlotLinks,
}

impl Linked for Slot {
    #[inline]
    fn links(&mut self) -> &mut SlotLinks {
        &mut self.links
    }
}

/// All slots. Memory follows the number of pages held at most.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    slots: SlotTable<Slot>,
    /// Looked up only, never iterated: its order affects nothing. The hasher has no seed.
    by_page: FxHashMap<u32, u32>,
    capacity: u32,
}

impl Slots {
    pub(super) fn new(capacity: u32) -> Slots {
        Slots { slots: SlotTable::default(), by_page: FxHashMap::default(), capacity }
    }

    pub(super) fn find(&self, page: u32) -> Option<u32> {
        self.by_page.get(&page).copied()
    }

    pub(super) fn get(&self, slot: u32) -> &Slot {
        &self.slots[slot]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot]
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
        let slot = self.slots.insert(Slot {
            page,
            state,
            referenced: false,
            epoch,
            next_epoch: epoch,
            links: SlotLinks::LOOSE,
        });
        self.by_page.insert(page, slot);
        slot
    }

    /// Frees a slot that is in no list.
    pub(super) fn remove(&mut self, slot: u32) {
        self.by_page.remove(&self.slots[slot].page);
        self.slots.free(slot);
    }

    pub(super) fn push(&mut self, list: &mut SlotList, slot: u32) {
        list.push(&mut self.slots, slot);
    }

    /// Takes `slot` out of `list`, in which it is.
    pub(super) fn unlink(&mut self, list: &mut SlotList, slot: u32) {
        list.unlink(&mut self.slots, slot);
    }

    pub(super) fn refresh(&mut self, list: &mut SlotList, slot: u32) {
        // A page that is written many times in a row is the newest already. The test spares it
        // two list operations.
        if list.newest() != slot {
            self.unlink(list, slot);
            self.push(list, slot);
        }
    }
}
