//! A list whose places are used again.

use std::ops::{Index, IndexMut};

/// See the module. A place is known by its number, which stays small.
#[derive(Debug)]
pub(super) struct Places<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Places<T> {
    pub(super) fn insert(&mut self, value: T) -> u32 {
        let place = self.free.pop().unwrap_or(self.all.len() as u32);
        match self.all.get_mut(place as usize) {
            Some(old) => *old = value,
            None => self.all.push(value),
        }
        place
    }

    pub(super) fn take(&mut self, place: u32) -> T {
        self.free.push(place);
        self.all[place as usize]
    }
}

impl<T> Index<u32> for Places<T> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        &self.all[place as usize]
    }
}

impl<T> IndexMut<u32> for Places<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.all[place as usize]
    }
}

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places { all: Vec::new(), free: Vec::new() }
    }
}
