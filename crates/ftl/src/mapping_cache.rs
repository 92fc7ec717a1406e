//! The cached mapping table of a DFTL: which entries are in RAM, and which of them are dirty.

use ssdyno_engine::{Linked, SlotLinks, SlotList, SlotTable};

use crate::map::NONE;

/// The dirty entries of a group, in any order.
#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    page: u32,
    protected: bool,
    dirty: bool,
    age: SlotLinks,
    /// Among the dirty entries of its group.
    group: Link,
}

impl Linked for Slot {
    #[inline]
    fn links(&mut self) -> &mut SlotLinks {
        &mut self.age
    }
}

/// A segmented LRU of entries: a new one is on probation, and a second use protects it; at most
/// half of the cache is protected, and what falls out of there is on probation again. Entries are
/// in groups, one a translation page. Every operation takes constant time, but for
/// [`clean_group`](Cache::clean_group), which takes one step an entry; none allocates.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    capacity: u32,
    group_size: u32,
    slots: SlotTable<Slot>,
    slot_of: Vec<u32>,
    /// First dirty slot of each group.
    dirty: Vec<u32>,
    probation: SlotList,
    protected: SlotList,
}

impl Cache {
    /// An empty cache of `capacity` entries, at least one, of a table of `pages` in groups of
    /// `group_size`.
    pub(crate) fn new(capacity: u32, pages: u32, group_size: u32) -> Cache {
        Cache {
            capacity,
            group_size,
            slots: SlotTable::with_capacity(capacity as usize),
            slot_of: vec![NONE; pages as usize],
            dirty: vec![NONE; pages.div_ceil(group_size) as usize],
            probation: SlotList::default(),
            protected: SlotList::default(),
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Entries in a group.
    pub(crate) fn group_size(&self) -> u32 {
        self.group_size
    }

    /// Groups that `pages` pages fill.
    pub(crate) fn groups(&self, pages: u32) -> u32 {
        pages.div_ceil(self.group_size)
    }

    #[inline]
    pub(crate) fn group_of(&self, page: u32) -> u32 {
        page / self.group_size
    }

    pub(crate) fn is_full(&self) -> bool {
        self.probation.len() + self.protected.len() >= self.capacity
    }

    #[inline]
    pub(crate) fn holds(&self, page: u32) -> bool {
        self.slot_of[page as usize] != NONE
    }

    pub(crate) fn is_dirty(&self, page: u32) -> bool {
        self.slots.get(self.slot_of[page as usize]).is_some_and(|slot| slot.dirty)
    }

    pub(crate) fn is_group_dirty(&self, group: u32) -> bool {
        self.dirty[group as usize] != NONE
    }

    /// The entry to throw out next; [`NONE`] of an empty cache.
    pub(crate) fn oldest(&self) -> u32 {
        // Entries that were used once leave first. A long sequential run therefore does not push
        // out the entries that are used again and again.
        let list = if self.probation.is_empty() { self.protected } else { self.probation };
        self.slots.get(list.oldest()).map_or(NONE, |slot| slot.page)
    }

    /// Notes a use of `page`; false if it is not here.
    pub(crate) fn touch(&mut self, page: u32) -> bool {
        let at = self.slot_of[page as usize];
        if at == NONE {
            return false;
        }
        self.unlink(at);
        self.link(at, true);
        // The protected part keeps at most half of the entries. The oldest of them gets a second
        // chance at the young end of the probation part instead of leaving the cache.
        if self.protected.len() > self.capacity / 2 {
            let demoted = self.protected.oldest();
            self.unlink(demoted);
            self.link(demoted, false);
        }
        true
    }

    /// Adds `page`, clean. There must be room, and `page` must not be here.
    pub(crate) fn insert(&mut self, page: u32) {
        debug_assert!(!self.is_full() && !self.holds(page));
        let (age, group) = (SlotLinks::LOOSE, Link { previous: NONE, next: NONE });
        let at = self.slots.insert(Slot { page, protected: false, dirty: false, age, group });
        self.slot_of[page as usize] = at;
        self.link(at, false);
    }

    /// Throws `page` out, dirty or not.
    pub(crate) fn remove(&mut self, page: u32) {
        let at = self.slot_of[page as usize];
        if at == NONE {
            return;
        }
        // A dirty slot is also in the list of its group. The slot will be reused for another
        // page, so it must leave that list first.
        self.make_clean(at);
        self.unlink(at);
        self.slot_of[page as usize] = NONE;
        self.slots.free(at);
    }

    /// Marks `page` as changed; false if it is not here.
    pub(crate) fn make_dirty(&mut self, page: u32) -> bool {
        let at = self.slot_of[page as usize];
        if at == NONE {
            return false;
        }
        // A dirty entry is in the list of its group already. A second link would close the list
        // into a circle, and `clean_group` would not end.
        if !self.slots[at].dirty {
            let group = self.group_of(page) as usize;
            let next = std::mem::replace(&mut self.dirty[group], at);
            self.slots[at].dirty = true;
            self.slots[at].group = Link { previous: NONE, next };
            if next != NONE {
                self.slots[next].group.previous = at;
            }
        }
        true
    }

    /// All entries of `group` were written back.
    pub(crate) fn clean_group(&mut self, group: u32) {
        while self.dirty[group as usize] != NONE {
            self.make_clean(self.dirty[group as usize]);
        }
    }

    fn make_clean(&mut self, at: u32) {
        let slot = &mut self.slots[at];
        if !slot.dirty {
            return;
        }
        slot.dirty = false;
        let (page, Link { previous, next }) = (slot.page, slot.group);
        match self.slots.get_mut(previous) {
            Some(slot) => slot.group.next = next,
            None => self.dirty[(page / self.group_size) as usize] = next,
        }
        if let Some(slot) = self.slots.get_mut(next) {
            slot.group.previous = previous;
        }
    }

    fn list(&mut self, at: u32) -> (&mut SlotList, &mut SlotTable<Slot>) {
        let protected = self.slots[at].protected;
        let list = if protected { &mut self.protected } else { &mut self.probation };
        (list, &mut self.slots)
    }

    fn unlink(&mut self, at: u32) {
        let (list, slots) = self.list(at);
        list.unlink(slots, at);
    }

    fn link(&mut self, at: u32, protected: bool) {
        self.slots[at].protected = protected;
        let (list, slots) = self.list(at);
        list.push(slots, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same cache, slow and obvious.
    struct Model {
        capacity: usize,
        probation: Vec<u32>,
        protected: Vec<u32>,
        dirty: Vec<u32>,
    }

    impl Model {
        fn touch(&mut self, page: u32) -> bool {
            let here = self.probation.contains(&page) || self.protected.contains(&page);
            if here {
                self.probation.retain(|other| *other != page);
                self.protected.retain(|other| *other != page);
                self.protected.push(page);
                if self.protected.len() > self.capacity / 2 {
                    self.probation.push(self.protected.remove(0));
                }
            }
            here
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_model(
            capacity in 1usize..12,
            steps in prop::collection::vec((0u32..40, 0u8..4), 1..400),
        ) {
            let mut cache = Cache::new(capacity as u32, 40, 8);
            let mut model =
                Model { capacity, probation: vec![], protected: vec![], dirty: vec![] };
            for (page, what) in steps {
                match what {
                    0 | 1 => {
                        prop_assert_eq!(cache.touch(page), model.touch(page));
                        if !cache.holds(page) {
                            if cache.is_full() {
                                let victim = cache.oldest();
                                let list = if model.probation.is_empty() {
                                    &mut model.protected
                                } else {
                                    &mut model.probation
                                };
                                prop_assert_eq!(victim, list.remove(0));
                                prop_assert_eq!(
                                    cache.is_dirty(victim), model.dirty.contains(&victim));
                                cache.remove(victim);
                                model.dirty.retain(|other| *other != victim);
                            }
                            cache.insert(page);
                            model.probation.push(page);
                        }
                    }
                    2 => {
                        if cache.make_dirty(page) && !model.dirty.contains(&page) {
                            model.dirty.push(page);
                        }
                    }
                    _ => {
                        cache.clean_group(page / 8);
                        model.dirty.retain(|other| other / 8 != page / 8);
                    }
                }
                for page in 0..40 {
                    prop_assert_eq!(cache.is_dirty(page), model.dirty.contains(&page));
                }
                for group in 0..5 {
                    let dirty = model.dirty.iter().any(|page| page / 8 == group);
                    prop_assert_eq!(cache.is_group_dirty(group), dirty);
                }
            }
        }
    }
}
