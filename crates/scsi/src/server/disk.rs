//! The block device behind a unit that is no namespace.

use super::DiskFacts;

/// The properties of a unit that is not a namespace, and its state.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) facts: DiskFacts,
    /// WCE: the write cache is on.
    pub(crate) cache_on: bool,
}
