//! From physical to logical pages in three bytes a page, beside a map that is a plain table.

use ssdyno_engine::HugePageTable;

/// The number of the logical page that was last written to each physical page.
///
/// Three bytes each. Larger numbers get a fourth byte each, once one is seen.
#[derive(Clone, Debug)]
pub(crate) struct Reverse {
    low: HugePageTable<[u8; 3]>,
    high: Vec<u8>,
}

impl Reverse {
    /// For `pages` physical pages.
    pub(crate) fn new(pages: u32) -> Reverse {
        Reverse { low: HugePageTable::new(pages as usize, [0; 3]), high: Vec::new() }
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
    use crate::map::NONE;

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
    }
}
