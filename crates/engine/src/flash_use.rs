//! What an FTL knows of the flash under it. Devices pass it on to reports and controllers, which need to know of no FTL.

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

/// What was written to one plane, and what it holds.
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
