//! Places that are used again, and lists through them.

use std::ops::{Index, IndexMut};

/// No place.
pub const NO_SLOT: u32 = u32::MAX;

/// Values by the number of their place. A place that is free again is the next to be taken, so numbers stay small.
#[derive(Clone, Debug)]
pub struct SlotTable<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for SlotTable<T> {
    fn default() -> SlotTable<T> {
        SlotTable { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> SlotTable<T> {
    /// An empty table with room for `capacity` values.
    pub fn with_capacity(capacity: usize) -> SlotTable<T> {
        SlotTable { all: Vec::with_capacity(capacity), free: Vec::new() }
    }

    /// Puts `value` into a free place; gives its number.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.all[slot as usize] = value;
                slot
            }
            None => {
                self.all.push(value);
                (self.all.len() - 1) as u32
            }
        }
    }

    /// The place `slot` is free; its value stays there until the place is taken.
    #[inline]
    pub fn free(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Frees the place `slot`; gives its value.
    #[inline]
    pub fn take(&mut self, slot: u32) -> T
    where
        T: Copy,
    {
        self.free.push(slot);
        self.all[slot as usize]
    }

    /// The values of all places, also of those that are free.
    pub fn places(&self) -> &[T] {
        &self.all
    }

    /// The value at `slot`, if there is such a place: [`NO_SLOT`] is none.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&T> {
        self.all.get(slot as usize)
    }

    /// The same, to change.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.all.get_mut(slot as usize)
    }
}

impl<T> Index<u32> for SlotTable<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.all[slot as usize]
    }
}

impl<T> IndexMut<u32> for SlotTable<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.all[slot as usize]
    }
}

/// The neighbours of a place in a [`SlotList`]; [`NO_SLOT`] at its ends, and in no list.
///
/// Numbers of four bytes, not pointers: a look-up follows no allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotLinks {
    /// Who came next.
    pub newer: u32,
    /// Who came before.
    pub older: u32,
}

impl SlotLinks {
    /// In no list.
    pub const LOOSE: SlotLinks = SlotLinks { newer: NO_SLOT, older: NO_SLOT };
}

/// A value that one [`SlotList`] at a time may go through.
pub trait Linked {
    /// Its neighbours.
    fn links(&mut self) -> &mut SlotLinks;
}

/// A list through the places of a [`SlotTable`], by age. Every operation takes constant time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotList {
    newest: u32,
    oldest: u32,
    len: u32,
}

impl Default for SlotList {
    fn default() -> SlotList {
        SlotList { newest: NO_SLOT, oldest: NO_SLOT, len: 0 }
    }
}

impl SlotList {
    /// How many places are in the list.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True if no place is in the list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The youngest place; [`NO_SLOT`] if there is none.
    #[inline]
    pub fn newest(&self) -> u32 {
        self.newest
    }

    /// The oldest place; [`NO_SLOT`] if there is none.
    #[inline]
    pub fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Adds a place that is in no list at the young end.
    #[inline]
    pub fn push<T: Linked>(&mut self, slots: &mut SlotTable<T>, slot: u32) {
        let links = SlotLinks { newer: NO_SLOT, older: self.newest };
        self.link(slots, slot, links);
    }

    /// Adds a place that is in no list at the old end.
    #[inline]
    pub fn push_oldest<T: Linked>(&mut self, slots: &mut SlotTable<T>, slot: u32) {
        let links = SlotLinks { newer: self.oldest, older: NO_SLOT };
        self.link(slots, slot, links);
    }

    #[inline]
    fn link<T: Linked>(&mut self, slots: &mut SlotTable<T>, slot: u32, links: SlotLinks) {
        *slots[slot].links() = links;
        match links.newer {
            NO_SLOT => self.newest = slot,
            newer => slots[newer].links().older = slot,
        }
        match links.older {
            NO_SLOT => self.oldest = slot,
            older => slots[older].links().newer = slot,
        }
        self.len += 1;
    }

    /// Takes a place that is in this list out of it.
    #[inline]
    pub fn unlink<T: Linked>(&mut self, slots: &mut SlotTable<T>, slot: u32) {
        let links = std::mem::replace(slots[slot].links(), SlotLinks::LOOSE);
        match links.newer {
            NO_SLOT => self.newest = links.older,
            newer => slots[newer].links().older = links.older,
        }
        match links.older {
            NO_SLOT => self.oldest = links.newer,
            older => slots[older].links().newer = links.newer,
        }
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Node(SlotLinks);

    impl Linked for Node {
        fn links(&mut self) -> &mut SlotLinks {
            &mut self.0
        }
    }

    proptest! {
        #[test]
        fn a_list_is_a_list(steps in prop::collection::vec((0u8..3, any::<usize>()), 0..200)) {
            let (mut slots, mut list) = (SlotTable::default(), SlotList::default());
            // The oldest first.
            let mut expected: Vec<u32> = Vec::new();
            for (step, number) in steps {
                match step {
                    0 => {
                        let slot = slots.insert(Node(SlotLinks::LOOSE));
                        list.push(&mut slots, slot);
                        expected.push(slot);
                    }
                    1 => {
                        let slot = slots.insert(Node(SlotLinks::LOOSE));
                        list.push_oldest(&mut slots, slot);
                        expected.insert(0, slot);
                    }
                    _ if expected.is_empty() => {}
                    _ => {
                        let slot = expected.remove(number % expected.len());
                        list.unlink(&mut slots, slot);
                        slots.free(slot);
                        prop_assert_eq!(slots[slot].0, SlotLinks::LOOSE);
                    }
                }
                prop_assert_eq!(list.len() as usize, expected.len());
                prop_assert_eq!(list.is_empty(), expected.is_empty());
                prop_assert_eq!(list.oldest(), expected.first().copied().unwrap_or(NO_SLOT));
                prop_assert_eq!(list.newest(), expected.last().copied().unwrap_or(NO_SLOT));
                let mut at = list.oldest();
                for slot in &expected {
                    prop_assert_eq!(at, *slot);
                    at = slots[at].0.newer;
                }
                prop_assert_eq!(at, NO_SLOT);
                prop_assert!(slots.places().len() <= 200);
            }
        }
    }
}
