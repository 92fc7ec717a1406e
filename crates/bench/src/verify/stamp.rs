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
//! | 24..32 | seed of the run |
//! | 32.. | a pattern that depends on all of them |

/// Marks our sectors: "SSDV".
const MAGIC: u32 = 0x5644_5353;
/// Bytes before the pattern.
const HEADER_BYTES: usize = 32;

/// What a stamp says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    /// Byte address.
    pub(super) address: u64,
    /// Number of the write.
    pub(super) generation: u64,
    /// Seed of the run.
    pub(super) seed: u64,
}

/// What a sector turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// One of ours, whole.
    Stamped(Stamp),
    /// One of ours with wrong contents.
    Damaged,
    /// Nothing of ours.
    Foreign,
}

impl Stamp {
    /// Fills `sector`, which is longer than a header.
    pub(super) fn write(&self, sector: &mut [u8]) {
        sector[4..8].copy_from_slice(&MAGIC.to_le_bytes());
        sector[8..16].copy_from_slice(&self.address.to_le_bytes());
        sector[16..24].copy_from_slice(&self.generation.to_le_bytes());
        sector[24..32].copy_from_slice(&self.seed.to_le_bytes());
        // A device that compresses or joins equal blocks must find nothing to do.
        let mut state = self.seed ^ self.address.rotate_left(32) ^ self.generation;
        for word in sector[HEADER_BYTES..].chunks_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word.copy_from_slice(&(mixed ^ mixed >> 27).to_le_bytes()[..word.len()]);
        }
        let sum = crc32c::crc32c(&sector[4..]);
        sector[..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads `sector`.
    pub(super) fn read(sector: &[u8]) -> Found {
        let word = |at: usize| -> u64 {
            let bytes = sector[at..at + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        let first = word(0);
        if (first >> 32) as u32 != MAGIC {
            return Found::Foreign;
        }
        if first as u32 != crc32c::crc32c(&sector[4..]) {
            return Found::Damaged;
        }
        Found::Stamped(Stamp { address: word(8), generation: word(16), seed: word(24) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_stamp_reads_back_and_any_flipped_bit_shows(
            address: u64, generation: u64, seed: u64, size in prop::sample::select(vec![512, 520, 4096]),
            bit: usize,
        ) {
            let stamp = Stamp { address, generation, seed };
            let mut sector = vec![0; size];
            stamp.write(&mut sector);
            prop_assert_eq!(Stamp::read(&sector), Found::Stamped(stamp));
            let bit = bit % (size * 8);
            sector[bit / 8] ^= 1 << (bit % 8);
            prop_assert_ne!(Stamp::read(&sector), Found::Stamped(stamp));
        }
    }

    #[test]
    fn the_sum_is_castagnoli() {
        // RFC 3720, appendix B.4: 32 bytes of zeroes.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
    }
}
