//! What a verified block carries.
//!
//! Every sector of a block is stamped by itself, so that a write of which only a part arrived shows.
//! Layout, little endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | CRC32C (Castagnoli, RFC 3720 appendix B.4) of all that follows in the sector |
//! | 4..8 | [`MAGIC`] |
//! | 8..16 | byte address of the sector |
//! | 16..24 | generation: number of the write, from 1, over the whole run |
//! | 24..32 | number of the run |
//! | 32.. | a pattern that depends on all of them |

/// Marks our sectors: "SSDV".
const MAGIC: u32 = 0x5644_5353;
/// Bytes before the pattern.
const HEADER_BYTES: usize = 32;

/// What a stamp says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp {
    /// Byte address.
    pub(crate) address: u64,
    /// Number of the write.
    pub(crate) generation: u64,
    /// Number of the run: another one's blocks, though written with the same seed, are not of this one.
    pub(crate) run: u64,
}

/// What a sector turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// One of ours, whole.
    Stamped(Stamp),
    /// One of ours with wrong contents.
    Damaged,
    /// A part of one of ours: from some place on, or up to it, it is something else.
    Torn,
    /// Nothing of ours.
    Foreign,
}

impl Stamp {
    /// Fills `sector`, which is longer than a header.
    pub(crate) fn write(&self, sector: &mut [u8]) {
        sector[4..8].copy_from_slice(&MAGIC.to_le_bytes());
        sector[8..16].copy_from_slice(&self.address.to_le_bytes());
        sector[16..24].copy_from_slice(&self.generation.to_le_bytes());
        sector[24..32].copy_from_slice(&self.run.to_le_bytes());
        // A device that compresses or joins equal blocks must find nothing to do.
        let mut state = self.run ^ self.address.rotate_left(32) ^ self.generation;
        for word in sector[HEADER_BYTES..].chunks_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word.copy_from_slice(&(mixed ^ mixed >> 27).to_le_bytes()[..word.len()]);
        }
        let sum = crc32c::crc32c(&sector[4..]);
        sector[..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads `sector`, which should hold `expected`: a sector without a stamp of its own is compared with it.
    pub(crate) fn read(sector: &[u8], expected: &Stamp) -> Found {
        let word = |at: usize| -> u64 {
            let bytes = sector[at..at + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        let first = word(0);
        let marked = (first >> 32) as u32 == MAGIC;
        let told = Stamp { address: word(8), generation: word(16), run: word(24) };
        if marked && first as u32 == crc32c::crc32c(&sector[4..]) {
            return Found::Stamped(told);
        }
        let candidates = [Some(told).filter(|_| marked), Some(*expected)];
        let parts = candidates.into_iter().flatten().map(|stamp| stamp.part_of(sector));
        parts.flatten().next().unwrap_or(if marked { Found::Damaged } else { Found::Foreign })
    }

    /// The part of this stamp in `sector`, which does not contain all of it; `None` if hardly
    /// anything.
    fn part_of(&self, sector: &[u8]) -> Option<Found> {
        let mut whole = vec![0; sector.len()];
        self.write(&mut whole);
        let same: Vec<bool> = whole.chunks(8).zip(sector.chunks(8)).map(|(a, b)| a == b).collect();
        let others = same.iter().filter(|same| !**same).count();
        // One word is a flipped bit, wherever it is.
        let cut = same.windows(2).filter(|two| two[0] != two[1]).count() == 1;
        match () {
            () if cut && others > 1 && others + 1 < same.len() => Some(Found::Torn),
            () if others <= same.len() / 2 => Some(Found::Damaged),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_stamp_reads_back_and_any_flipped_bit_shows(
            address: u64, generation: u64, run: u64, size in prop::sample::select(vec![512, 520, 4096]),
            bit: usize,
        ) {
            let stamp = Stamp { address, generation, run };
            let mut sector = vec![0; size];
            stamp.write(&mut sector);
            prop_assert_eq!(Stamp::read(&sector, &stamp), Found::Stamped(stamp));
            let bit = bit % (size * 8);
            sector[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Stamp::read(&sector, &stamp), Found::Damaged);
        }

        /// Wherever within a sector a write ended, before or behind what was there.
        #[test]
        fn a_sector_of_which_a_part_arrived_is_torn(
            generation in 2u64..9, size in prop::sample::select(vec![512, 4096]),
            cut: usize, zeroes: bool, last: bool,
        ) {
            let stamp = Stamp { address: 512, generation, run: 3 };
            let (mut new, mut old) = (vec![0; size], vec![0; size]);
            stamp.write(&mut new);
            if !zeroes {
                Stamp { generation: generation - 1, ..stamp }.write(&mut old);
            }
            // Behind the header, which says which write it was; with two words left.
            let cut = HEADER_BYTES + 8 * (cut % ((size - HEADER_BYTES) / 8 - 2) + 1);
            let (first, second) = if last { (&old, &new) } else { (&new, &old) };
            let sector = [&first[..cut], &second[cut..]].concat();
            prop_assert_eq!(Stamp::read(&sector, &stamp), Found::Torn);
        }
    }

    #[test]
    fn what_is_not_ours_is_foreign() {
        let expected = Stamp { address: 0, generation: 5, run: 1 };
        for other in [[0; 512], [0xff; 512], [7; 512]] {
            assert_eq!(Stamp::read(&other, &expected), Found::Foreign);
        }
    }

    #[test]
    fn the_sum_is_castagnoli() {
        // RFC 3720, appendix B.4: 32 bytes of zeroes.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
    }
}
