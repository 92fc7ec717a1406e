//! Values as they lie in the pages of a column (Parquet format, Encodings.md).
//!
//! The library's own writer takes a value at a time through a general path: 140 ns for a row of ours,
//! more than everything else that a run does with a request outside the kernel. These two encodings, a page at a
//! time, take a tenth. The library reads them back in the tests, and writes everything around them.

/// Values of a block of [`delta`], and of each of its parts, which have a width of their own.
const BLOCK: usize = 128;
const PART: usize = 32;

/// Least and most of a column, for readers that skip row groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Bounds {
    pub(super) const NONE: Bounds = Bounds { least: u64::MAX, most: 0 };

    pub(super) fn merge(&mut self, other: &Bounds) {
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    #[inline]
    pub(super) fn add(&mut self, values: &[u64]) {
        self.least = values.iter().fold(self.least, |least, value| least.min(*value));
        self.most = values.iter().fold(self.most, |most, value| most.max(*value));
    }
}

/// Appends `values`, as DELTA_BINARY_PACKED of 64-bit integers: differences, in as many bits as the
/// largest of 32 needs. Adds them to `bounds`.
///
/// The first x86-64 processors cannot compare several 64-bit integers at once, and have few shifts for them. Processors
/// since 2013 take half the time; the code checks for them at run time.
#[multiversion::multiversion(targets("x86_64+avx2+bmi1+bmi2"))]
pub(super) fn delta(values: &[u64], bounds: &mut Bounds, page: &mut Vec<u8>) {
    varint(BLOCK as u64, page);
    varint((BLOCK / PART) as u64, page);
    varint(values.len() as u64, page);
    let Some(first) = values.first() else { return zigzag(0, page) };
    zigzag(*first as i64, page);
    bounds.add(&values[..1]);
    let mut previous = *first;
    for block in values[1..].chunks(BLOCK) {
        bounds.add(block);
        let mut deltas = [0u64; BLOCK];
        for (delta, value) in deltas.iter_mut().zip(block) {
            *delta = value.wrapping_sub(previous);
            previous = *value;
        }
        let used = &mut deltas[..block.len()];
        let least = used.iter().fold(i64::MAX, |least, delta| least.min(*delta as i64));
        // Without the least difference all are zero or more and need no sign. Differences wrap
        // at 64 bits, as the sums of a reader do.
        used.iter_mut().for_each(|delta| *delta = delta.wrapping_sub(least as u64));
        zigzag(least, page);
        let widths_at = page.len();
        page.extend_from_slice(&[0; BLOCK / PART]);
        // A part without values has a width but no bits, and the format leaves its bits out.
        // The last part with values is filled up with zeros.
        for (number, part) in deltas.chunks_exact(PART).take(block.len().div_ceil(PART)).enumerate()
        {
            let width = u64::BITS - part.iter().fold(0, |all, delta| all | delta).leading_zeros();
            page[widths_at + number] = width as u8;
            pack(part, width, page);
        }
    }
}

/// Appends `values` indices into a dictionary of `entries`, as RLE_DICTIONARY: packed bits, or one run where
/// `indices` is but one.
pub(super) fn indices(indices: &[u32], values: usize, entries: usize, page: &mut Vec<u8>) {
    // A dictionary with one entry needs no bits, but not every reader accepts a width of zero.
    // So the width is one at least.
    let width = (usize::BITS - entries.saturating_sub(1).leading_zeros()).max(1);
    page.push(width as u8);
    if let [index] = indices {
        varint((values as u64) << 1, page);
        return page.extend_from_slice(&index.to_le_bytes()[..width.div_ceil(8) as usize]);
    }
    // The format packs groups of eight values and fills the last group with zeros. `pack` takes
    // 32 values, so the rest is cut off below.
    let groups = indices.len().div_ceil(8);
    varint(((groups as u64) << 1) | 1, page);
    let end = page.len() + groups * width as usize;
    for part in indices.chunks(PART) {
        let mut wide = [0u64; PART];
        wide.iter_mut().zip(part).for_each(|(wide, index)| *wide = u64::from(*index));
        pack(&wide, width, page);
    }
    page.truncate(end);
}

/// Appends the low `width` bits of each of 32 values, the first in the lowest bits.
#[inline]
fn pack(values: &[u64], width: u32, page: &mut Vec<u8>) {
    // As many words as the widest values fill.
    let mut words = [0u64; PART];
    let (mut word, mut bits, mut used) = (0, 0u64, 0);
    for value in values {
        bits |= value << used;
        used += width;
        if used >= u64::BITS {
            words[word % PART] = bits;
            word += 1;
            used -= u64::BITS;
            // The value may have crossed the border of a word. Its upper bits begin the next
            // word; a shift by 64 means that nothing is left over.
            bits = value.checked_shr(width - used).unwrap_or(0);
        }
    }
    // 32 values of `width` bits are a multiple of 32 bits. An even width fills whole words, and
    // an odd one leaves half a word.
    for word in &words[..width as usize / 2] {
        page.extend_from_slice(&word.to_le_bytes());
    }
    if width % 2 == 1 {
        page.extend_from_slice(&(bits as u32).to_le_bytes());
    }
}

/// ULEB128.
fn varint(mut value: u64, page: &mut Vec<u8>) {
    while value >= 0x80 {
        page.push(value as u8 | 0x80);
        value >>= 7;
    }
    page.push(value as u8);
}

/// Numbers near zero are short, whatever their sign.
fn zigzag(value: i64, page: &mut Vec<u8>) {
    varint(((value << 1) ^ (value >> 63)) as u64, page);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut page = Vec::new();
        fill(&mut page);
        page
    }

    /// The examples of the format's own text (Encodings.md, "Delta Encoding"): 1, 2, 3, 4, 5 has deltas of
    /// 1 and so no bits at all; 7, 5, 3, 1, 2, 3, 4, 5 has a least delta of -2, and 0 or 3 above it.
    #[test]
    fn examples_of_the_specification() {
        let mut bounds = Bounds::NONE;
        let page = encoded(|page| delta(&[1, 2, 3, 4, 5], &mut bounds, page));
        assert_eq!(page, [0x80, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
        let page = encoded(|page| delta(&[7, 5, 3, 1, 2, 3, 4, 5], &mut bounds, page));
        assert_eq!(page, [0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0xC0, 0x3F, 0, 0, 0, 0, 0, 0]);
        // "RLE / Bit-Packing Hybrid": the numbers 0 to 7 in three bits each.
        let page = encoded(|page| indices(&[0, 1, 2, 3, 4, 5, 6, 7], 8, 8, page));
        assert_eq!(page, [3, 0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        let page = encoded(|page| indices(&[2], 100, 3, page));
        assert_eq!(page, [2, 0xC8, 1, 2]);
    }
}
