//! From physical to logical pages in three bytes a page.

use ssdyno_engine::Table;
use ssdyno_flash::{Divisor, Geometry};

/// The logical page that was last written to each physical page.
///
/// Validity is not kept here: `map[logical] == physical` holds for the owner of a page and for
/// nobody else, so invalidation writes nothing. Under static placement the plane tells the logical
/// page modulo the number of planes, and only the quotient is kept; it fits in 24 bits for planes
/// of up to 64 GiB with pages of 4 KiB. Forward and reverse map together then take 4 + 3 (1 + over-
/// provisioning) bytes a logical page. Larger numbers get a fourth byte each, once one is seen.
#[derive(Clone, Debug)]
pub(crate) struct Reverse {
    low: Table<[u8; 3]>,
    high: Vec<u8>,
    stripes: Divisor,
    /// Remainder of the logical pages of each plane; empty where pages are not striped.
    residues: Vec<u32>,
    pages_per_plane: u32,
}

impl Reverse {
    /// For `pages` physical pages that may hold any logical page.
    pub(crate) fn new(pages: u32) -> Reverse {
        Reverse {
            low: Table::new(pages as usize, [0; 3]),
            high: Vec::new(),
            stripes: Divisor::new(1),
            residues: Vec::new(),
            pages_per_plane: u32::MAX,
        }
    }

    /// For a device in which plane `p` holds only logical pages that leave `residues[p]` when
    /// divided by the number of planes.
    pub(crate) fn striped(geometry: &Geometry, residues: Vec<u32>) -> Reverse {
        let stripes = Divisor::new(geometry.planes());
        let pages_per_plane = geometry.blocks_per_plane * geometry.pages_per_block.get();
        Reverse { stripes, residues, pages_per_plane, ..Reverse::new(geometry.pages()) }
    }

    #[inline]
    pub(crate) fn set(&mut self, physical: u32, logical: u32) {
        let [a, b, c, d] = self.stripes.quotient(logical).to_le_bytes();
        self.low[physical as usize] = [a, b, c];
        if d != 0 && self.high.is_empty() {
            self.high = vec![0; self.low.len()];
        }
        if let Some(high) = self.high.get_mut(physical as usize) {
            *high = d;
        }
    }

    /// What lies at `from` now lies at `to`, in the same plane.
    #[inline]
    pub(crate) fn copy(&mut self, from: u32, to: u32) {
        self.low[to as usize] = self.low[from as usize];
        if !self.high.is_empty() {
            self.high[to as usize] = self.high[from as usize];
        }
    }

    #[inline]
    fn get(&self, physical: u32, residue: u32) -> u32 {
        let [a, b, c] = self.low[physical as usize];
        let d = self.high.get(physical as usize).copied().unwrap_or(0);
        u32::from_le_bytes([a, b, c, d]).wrapping_mul(self.stripes.get()).wrapping_add(residue)
    }

    fn residue(&self, physical: u32) -> u32 {
        match self.residues.get((physical / self.pages_per_plane) as usize) {
            Some(residue) => *residue,
            None => 0,
        }
    }

    /// The logical page that lives at `physical` according to `map`, if its data is valid.
    #[inline]
    pub(crate) fn owner(&self, physical: u32, map: &[u32]) -> Option<u32> {
        let logical = self.get(physical, self.residue(physical));
        (map.get(logical as usize) == Some(&physical)).then_some(logical)
    }

    /// Appends physical and logical page of all valid pages from `first` on, `count` in one plane.
    ///
    /// Nothing branches on validity: the reads of the map do not wait for one another.
    pub(crate) fn owners(&self, first: u32, count: u32, map: &[u32], out: &mut Vec<(u32, u32)>) {
        let residue = self.residue(first);
        out.clear();
        out.resize(count as usize + 1, (0, 0));
        let mut valid = 0;
        for physical in first..first + count {
            let logical = self.get(physical, residue);
            let at = map.get(logical as usize).copied().unwrap_or(u32::MAX);
            out[valid] = (physical, logical);
            valid += usize::from(at == physical);
        }
        out.truncate(valid);
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
        let mut out = Vec::new();
        reverse.owners(0, 4, &map, &mut out);
        assert_eq!(out, [(2, (2 << 24) + 5), (3, 5)]);
    }

    #[test]
    fn striped_pages_come_back() {
        let geometry = Geometry {
            channels: 3,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 2,
            pages_per_block: Divisor::new(4),
            page_bytes: 512,
        };
        let mut reverse = Reverse::striped(&geometry, vec![2, 0, 1]);
        let mut map = vec![NONE; 24];
        for (physical, logical) in [(0, 2), (7, 23), (8, 0), (15, 21), (16, 1), (23, 22)] {
            reverse.set(physical, logical);
            map[logical as usize] = physical;
            assert_eq!(reverse.owner(physical, &map), Some(logical));
        }
    }
}
