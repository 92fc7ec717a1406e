//! A few events, in order.

/// As many as are quicker to keep in order than to put into slots.
const MOST: usize = 16;

/// Up to [`MOST`] keys, sorted.
///
/// What happens next is often scheduled last (a read of 50 us while programs of 500 us are under way): then a
/// sorted list has it at its end, and neither adding nor taking it moves anything.
#[derive(Clone, Debug)]
pub(crate) struct Few {
    /// The greatest first; entries from `len` on have no meaning.
    keys: [u128; MOST],
    len: usize,
}

impl Few {
    /// None.
    pub(crate) const NONE: Few = Few { keys: [0; MOST], len: 0 };

    /// Adds `key`; false if there is no room.
    #[inline(always)]
    pub(crate) fn insert(&mut self, key: u128) -> bool {
        let mut at = self.len;
        if at >= MOST {
            return false;
        }
        while at > 0 && self.keys[at - 1] < key {
            self.keys[at] = self.keys[at - 1];
            at -= 1;
        }
        self.keys[at] = key;
        self.len += 1;
        true
    }

    /// Takes the least.
    #[inline(always)]
    pub(crate) fn take_first(&mut self) -> Option<u128> {
        self.len = self.len.checked_sub(1)?;
        self.keys.get(self.len).copied()
    }

    /// True if `count` more leave room for as many again: what has become few is to stay few for a while.
    pub(crate) fn has_ample_room_for(&self, count: usize) -> bool {
        2 * (self.len + count) <= MOST
    }

    /// Takes all, in any order.
    pub(crate) fn drain(&mut self, out: &mut Vec<u128>) {
        out.extend_from_slice(&self.keys[..self.len]);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Keys added and taken in any order, against a sorted list.
        #[test]
        fn is_a_sorted_list(steps in prop::collection::vec(prop::option::of(0u128..1000), 0..200)) {
            let mut few = Few::NONE;
            let mut list: Vec<u128> = Vec::new();
            for step in steps {
                match step {
                    Some(key) => {
                        let room = list.len() < MOST;
                        prop_assert_eq!(few.insert(key), room);
                        if room {
                            list.push(key);
                            list.sort_unstable();
                        }
                    }
                    None => {
                        let first = (!list.is_empty()).then(|| list.remove(0));
                        prop_assert_eq!(few.take_first(), first);
                    }
                }
            }
            let mut rest = Vec::new();
            few.drain(&mut rest);
            rest.sort_unstable();
            prop_assert_eq!(rest, list);
            prop_assert_eq!(few.take_first(), None);
        }
    }
}
