//! The block device behind a unit that is no namespace.

use super::DiskFacts;

/// What a unit is that is no namespace, and its state.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) facts: DiskFacts,
    /// WCE: the write cache is on.
    pub(crate) cache_on: bool,
    pub(crate) ordered_tasks: bool,
}
