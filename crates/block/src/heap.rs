//! Lists on a heap that may have no room: a driver gets an error, and the program goes on.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// A driver's behaviour if a caller's list has no room for the next entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum ListGrowth {
    /// It makes the list longer. Where the heap has no room, the entry waits for the next call.
    #[default]
    Grow,
    /// It never asks the heap: what does not fit waits for the next call. For callers in an interrupt.
    Fixed,
}

impl ListGrowth {
    /// `list` takes one more.
    #[inline(always)]
    pub fn has_room<T>(self, list: &mut Vec<T>) -> bool {
        list.len() < list.capacity() || (self == ListGrowth::Grow && grows(list))
    }
}

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
