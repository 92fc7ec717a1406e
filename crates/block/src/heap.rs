//! Lists on a heap that may have no room: a driver gets an error, and the program goes on.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// `list` takes one more without asking the heap, or after having asked it with success.
#[inline(always)]
pub fn has_room<T>(list: &mut Vec<T>) -> bool {
    list.len() < list.capacity() || grows(list)
}

#[cold]
fn grows<T>(list: &mut Vec<T>) -> bool {
    list.try_reserve(1).is_ok()
}

/// A list of `n` times `value`.
///
/// # Errors
/// The heap has no room.
pub fn try_list<T: Clone>(value: T, n: usize) -> Result<Vec<T>, TryReserveError> {
    let mut list = Vec::new();
    list.try_reserve_exact(n)?;
    list.resize(n, value);
    Ok(list)
}
