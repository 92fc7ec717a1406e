//! Lists without repetitions.

use alloc::vec::Vec;

/// All of `items` in order, each only where it occurs first: for short lists.
///
/// ```
/// assert_eq!(ssdyno_block::each_once([3, 1, 3, 2, 1]), [3, 1, 2]);
/// ```
pub fn each_once<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}
