//! From physical to logical pages in three bytes a page.

use std::ops::Range;

use ssdyno_engine::{Table, prefetch};

/// The number of the logical page that was last written to each physical page.
///
/// Three bytes each: with a page map, whose numbers count through one plane, forward and reverse map
/// together take 4 + 3 (1 + over-provisioning) bytes a logical page. Larger numbers get a fourth
/// byte each, once one is seen.
#[derive(Clone, Debug)]
pub(crate) struct Reverse {
    low: Table<[u8; 3]>,
    high: Vec<u8>,
}

impl Reverse {
    /// For `pages` physical pages.
    pub(crate) fn new(pages: u32) -> Reverse {
        Reverse { low: Table::new(pages as usize, [0; 3]), high: Vec::new() }
    }

    #[inline]
    pub(crate) fn set(&mut self, physical: u32, number: u32) {
        let [a, b, c, d] = number.to_le_bytes();
        self.low[physical as usize] = [a, b, c];
        if d != 0 && self.high.is_empty() {
            self.high = vec![0; self.low.len()];
        }
        if let Some(high) = self.high.get_mut(physical as usize) {
            *high = d;
        }
    }

    /// Brings the entries of `count` pages from `first` on into the cache.
    pub(crate) fn prefetch(&self, first: u32, count: u32) {
        // Lines of a cache have 64 bytes.
        for physical in (first..first + count).step_by(64 / size_of::<[u8; 3]>()) {
            if let Some(low) = self.low.get(physical as usize) {
                prefetch(low);
            }
        }
    }

    /// As [`set`](Reverse::set), of the pages from `first` on in turn.
    #[inline]
    pub(crate) fn set_all(
        &mut self,
        first: u32,
        numbers: impl ExactSizeIterator<Item = u32> + Clone,
    ) {
        let pages = first as usize..first as usize + numbers.len();
        let mut bits = 0;
        for (low, number) in self.low[pages].iter_mut().zip(numbers.clone()) {
            let [a, b, c, _] = number.to_le_bytes();
            *low = [a, b, c];
            bits |= number;
        }
        if bits >> 24 != 0 || !self.high.is_empty() {
            (first..).zip(numbers).for_each(|(physical, number)| self.set(physical, number));
        }
    }

    /// What lies at `pages` of `other` also lies at `first` and behind it.
    pub(crate) fn take_over(&mut self, first: u32, other: &Reverse, pages: Range<u32>) {
        let here = first as usize..first as usize + pages.len();
        let there = pages.start as usize..pages.end as usize;
        self.low[here.clone()].copy_from_slice(&other.low[there.clone()]);
        if !other.high.is_empty() && self.high.is_empty() {
            self.high = vec![0; self.low.len()];
        }
        if let (Some(high), Some(others)) = (self.high.get_mut(here), other.high.get(there)) {
            high.copy_from_slice(others);
        }
    }

    /// Appends `entry(page, number that was written to it last)` of `count` pages from `first` on.
    #[inline]
    pub(crate) fn each<T>(
        &self,
        first: u32,
        count: u32,
        entry: impl Fn(u32, u32) -> T,
        out: &mut Vec<T>,
    ) {
        if !self.high.is_empty() {
            return out.extend((first..first + count).map(|page| entry(page, self.get(page))));
        }
        let low = &self.low[first as usize..(first + count) as usize];
        let numbers = low.iter().map(|[a, b, c]| u32::from_le_bytes([*a, *b, *c, 0]));
        out.extend((first..).zip(numbers).map(|(page, number)| entry(page, number)));
    }

    /// The number that was written to `physical` last.
    #[inline]
    pub(crate) fn get(&self, physical: u32) -> u32 {
        let [a, b, c] = self.low[physical as usize];
        let d = self.high.get(physical as usize).copied().unwrap_or(0);
        u32::from_le_bytes([a, b, c, d])
    }

    /// The number that lives at `physical` according to `map`, if its data is valid.
    #[inline]
    pub(crate) fn owner(&self, physical: u32, map: &[u32]) -> Option<u32> {
        let number = self.get(physical);
        (map.get(number as usize) == Some(&physical)).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_map::NONE;

    #[test]
    fn large_numbers_get_a_fourth_byte() {
        let mut map = vec![NONE; (3 << 24) + 8];
        let mut reverse = Reverse::new(4);
        reverse.set(2, (2 << 24) + 5);
        assert_eq!(reverse.owner(2, &map), None);
        map[(2 << 24) + 5] = 2;
        map[5] = 3;
        reverse.set(3, 5);
        assert_eq!(reverse.owner(2, &map), Some((2 << 24) + 5));
        assert_eq!(reverse.owner(3, &map), Some(5));
        reverse.set_all(0, [5, (2 << 24) + 6].into_iter());
        assert_eq!([0, 1].map(|page| reverse.get(page)), [5, (2 << 24) + 6]);
        let mut all = Vec::new();
        reverse.each(0, 3, |page, number| (page, number), &mut all);
        assert_eq!(all, [(0, 5), (1, (2 << 24) + 6), (2, (2 << 24) + 5)]);
        let mut other = Reverse::new(3);
        other.take_over(1, &reverse, 1..3);
        assert_eq!([0, 1, 2].map(|page| other.get(page)), [0, (2 << 24) + 6, (2 << 24) + 5]);
    }
}
