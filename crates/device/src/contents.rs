//! The data itself, where somebody looks at it, and ranges of bytes.

use std::collections::BTreeMap;

/// Bytes of a page of the store.
const PAGE: u64 = 4096;

/// The data of a device, for servers whose clients read back what they have written: a simulated device models only
/// times.
///
/// Written data is kept page by page, so memory grows with the written data and not with the capacity; everything else
/// reads as zero, or as the pattern of a sanitize operation. Ranges are the caller's to check: there is no end here.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pages: BTreeMap<u64, Box<[u8]>>,
    /// Where the pattern is: whole pages.
    patterned: Ranges,
    pattern: [u8; 4],
}

/// Cuts `offset..offset + length` at page borders and calls `each` with page number, offset in it,
/// offset in the whole, and length.
fn cut(offset: u64, length: u64, mut each: impl FnMut(u64, usize, usize, usize)) {
    let mut done = 0;
    while done < length {
        let at = offset + done;
        let inside = at % PAGE;
        let here = (PAGE - inside).min(length - done);
        each(at / PAGE, inside as usize, done as usize, here as usize);
        done += here;
    }
}

impl Contents {
    /// The first `bytes`, whole pages of them, read as `pattern` over and over, all else as zero.
    pub fn start_anew(&mut self, bytes: u64, pattern: [u8; 4]) {
        *self = Contents { pattern, ..Contents::default() };
        if pattern != [0; 4] {
            self.patterned.insert(0, bytes.next_multiple_of(PAGE));
        }
    }

    /// The pattern that page `page` repeats if it was never written.
    fn blank(&self, page: u64) -> [u8; 4] {
        let patterned = !self.patterned.is_empty()
            && self.patterned.first_in(page * PAGE, page * PAGE + 1).is_some();
        if patterned { self.pattern } else { [0; 4] }
    }

    /// The bytes from `offset` on.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        cut(offset, out.len() as u64, |page, inside, done, here| {
            let out = &mut out[done..done + here];
            match self.pages.get(&page) {
                Some(data) => out.copy_from_slice(&data[inside..inside + here]),
                None => {
                    let blank = self.blank(page).into_iter().cycle().skip(inside % 4);
                    out.iter_mut().zip(blank).for_each(|(byte, blank)| *byte = blank);
                }
            }
        });
    }

    /// Page `page`, which is kept from now on.
    fn page_mut(&mut self, page: u64) -> &mut [u8] {
        let blank = self.blank(page);
        let empty = || blank.into_iter().cycle().take(PAGE as usize).collect();
        self.pages.entry(page).or_insert_with(empty)
    }

    /// Replaces the bytes from `offset` on.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        cut(offset, bytes.len() as u64, |page, inside, done, here| {
            let data = self.page_mut(page);
            data[inside..inside + here].copy_from_slice(&bytes[done..done + here]);
        });
    }

    /// True if `bytes` are what the store has from `offset` on.
    pub fn equals(&self, offset: u64, bytes: &[u8]) -> bool {
        let mut equal = true;
        cut(offset, bytes.len() as u64, |page, inside, done, here| {
            let bytes = &bytes[done..done + here];
            equal &= match self.pages.get(&page) {
                Some(data) => data[inside..inside + here] == *bytes,
                None => {
                    let blank = self.blank(page).into_iter().cycle().skip(inside % 4);
                    bytes.iter().zip(blank).all(|(byte, blank)| *byte == blank)
                }
            };
        });
        equal
    }

    /// The range reads as zero again.
    pub fn clear(&mut self, offset: u64, length: u64) {
        let end = offset + length;
        let whole = offset.div_ceil(PAGE)..end / PAGE;
        if whole.start < whole.end {
            let inside: Vec<u64> = self.pages.range(whole.clone()).map(|(page, _)| *page).collect();
            for page in inside {
                self.pages.remove(&page);
            }
            if !self.patterned.is_empty() {
                self.patterned.remove(whole.start * PAGE, whole.end * PAGE);
            }
        }
        let edges = if whole.start < whole.end {
            [(offset, whole.start * PAGE), (whole.end * PAGE, end)]
        } else {
            [(offset, end), (end, end)]
        };
        for (from, to) in edges {
            cut(from, to - from, |page, inside, _, here| {
                if self.pages.contains_key(&page) || self.blank(page) != [0; 4] {
                    self.page_mut(page)[inside..inside + here].fill(0);
                }
            });
        }
    }
}

/// A set of bytes as ranges that do not touch.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Start to end.
    ranges: BTreeMap<u64, u64>,
}

impl Ranges {
    /// There are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The first byte of `from..to` that is in the set.
    pub fn first_in(&self, from: u64, to: u64) -> Option<u64> {
        let before = self.ranges.range(..=from).next_back();
        if before.is_some_and(|(_, end)| *end > from) {
            return Some(from);
        }
        self.ranges.range(from..to).next().map(|(start, _)| *start)
    }

    /// Takes `from..to` out of the set.
    pub fn remove(&mut self, from: u64, to: u64) {
        while let Some(at) = self.first_in(from, to) {
            let Some((&start, &end)) = self.ranges.range(..=at).next_back() else { return };
            self.ranges.remove(&start);
            if start < from {
                self.ranges.insert(start, from);
            }
            if end > to {
                self.ranges.insert(to, end);
            }
        }
    }

    /// Adds `from..to` to the set.
    pub fn insert(&mut self, from: u64, to: u64) {
        self.remove(from, to);
        self.ranges.insert(from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn contents_are_those_of_an_array(
            steps in prop::collection::vec((0u8..20, 0u64..16_000, 1u64..9_000), 1..40)
        ) {
            let mut array = vec![0u8; 32_768];
            let mut contents = Contents::default();
            for (number, (kind, offset, length)) in (1u8..).zip(steps) {
                let range = offset as usize..(offset + length) as usize;
                match kind {
                    // Seldom: all of it is overwritten with a pattern, or erased.
                    18 | 19 => {
                        let pattern = if kind == 18 { [number, 2, 3, 4] } else { [0; 4] };
                        array.iter_mut().zip(pattern.iter().cycle()).for_each(|(to, from)| *to = *from);
                        contents.start_anew(array.len() as u64, pattern);
                        prop_assert!(contents.equals(0, &array));
                    }
                    0..6 => {
                        array[range.clone()].fill(number);
                        contents.write(offset, &array[range]);
                    }
                    6..12 => {
                        array[range].fill(0);
                        contents.clear(offset, length);
                    }
                    _ => {
                        let mut got = vec![9; length as usize];
                        contents.read(offset, &mut got);
                        prop_assert_eq!(&got[..], &array[range]);
                    }
                }
            }
            let mut got = vec![9; array.len()];
            contents.read(0, &mut got);
            prop_assert!(got == array);
        }

        #[test]
        fn ranges_are_a_set(
            steps in prop::collection::vec((any::<bool>(), 0u64..60, 1u64..30), 1..40)
        ) {
            let mut set = [false; 100];
            let mut ranges = Ranges::default();
            for (insert, from, length) in steps {
                set[from as usize..(from + length) as usize].fill(insert);
                if insert { ranges.insert(from, from + length) } else { ranges.remove(from, from + length) }
                for at in 0..99 {
                    let first = (at..99).find(|byte| set[*byte as usize]);
                    prop_assert_eq!(ranges.first_in(at, 99), first);
                }
            }
            prop_assert_eq!(ranges.is_empty(), !set.contains(&true));
        }
    }
}
