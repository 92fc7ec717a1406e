//! An FTL's knowledge of the flash below it. Devices pass it on to reports and controllers, which need to know of no
//! FTL.

/// How worn the flash is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Health {
    /// True once a write was refused.
    pub read_only: bool,
    /// Blocks retired, from the factory and since.
    pub bad_blocks: u32,
    /// Erases of the least worn good block.
    pub erases_min: u32,
    /// Erases of the most worn block.
    pub erases_max: u32,
}

/// The pages written to one plane, and its present pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlaneUse {
    /// Pages of the host written there since the FTL was made.
    pub host_pages: u64,
    /// The same of a mapping table that is kept in flash.
    pub table_pages: u64,
    /// Blocks erased there since the device was preconditioned.
    pub erases: u64,
    /// Valid pages there now.
    pub valid: u32,
    /// Valid pages there when the logical space is full and spread evenly.
    pub share: u32,
    /// Pages of the blocks that cleaning chooses from: all but reserved, open and bad ones. 0 where
    /// blocks belong to classes of pages.
    pub capacity: u32,
}

/// Logical pages that share blocks of their own, and are cleaned within them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pool {
    /// Its logical pages; pools follow one another in the logical space.
    pub logical_pages: u32,
    /// The share of its pages available to data (free reserve excluded) that hold valid data when the logical space
    /// is full: the utilisation of the closed forms of write amplification.
    pub utilisation: f64,
    /// Good blocks in the plane where it has the fewest.
    pub blocks_least: u32,
}

/// The blocks that garbage collection has cleaned, by how many of their pages it had to move. Blocks moved by wear
/// levelling do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Victims {
    /// Blocks of which less than 5 % of the data pages were valid, then 5 to less than 10 %, and so on; the last has those
    /// of 95 to 100 %.
    pub by_valid_share: [u64; 20],
    /// Valid pages of all of them.
    pub valid_pages: u64,
    /// Data pages of all of them, valid or not.
    pub pages: u64,
}

impl Victims {
    /// One more, of whose `pages` data pages `valid` were moved.
    #[inline]
    pub fn count(&mut self, valid: u32, pages: u32) {
        let bucket = u64::from(valid) * 20 / u64::from(pages.max(1));
        self.by_valid_share[(bucket as usize).min(19)] += 1;
        self.valid_pages += u64::from(valid);
        self.pages += u64::from(pages);
    }

    /// These and `others`.
    #[must_use]
    pub fn with(self, others: Victims) -> Victims {
        self.combined(others, u64::saturating_add)
    }

    /// The increase since `earlier`, an earlier count.
    #[must_use]
    pub fn since(self, earlier: Victims) -> Victims {
        // A sanitized device counts anew.
        self.combined(earlier, u64::saturating_sub)
    }

    fn combined(self, other: Victims, both: fn(u64, u64) -> u64) -> Victims {
        let blocks = |at| both(self.by_valid_share[at], other.by_valid_share[at]);
        Victims {
            by_valid_share: std::array::from_fn(blocks),
            valid_pages: both(self.valid_pages, other.valid_pages),
            pages: both(self.pages, other.pages),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victims_are_counted_in_twentieths() {
        let mut all = Victims::default();
        for valid in [0, 4, 5, 99, 100] {
            all.count(valid, 100);
        }
        let at = [0, 1, 18, 19].map(|bucket: usize| all.by_valid_share[bucket]);
        assert_eq!((at, all.valid_pages, all.pages), ([2, 1, 0, 2], 208, 500));
        let mut more = all;
        more.count(30, 100);
        let mut one = Victims::default();
        one.count(30, 100);
        assert_eq!((more.since(all), all.with(one)), (one, more));
    }
}
