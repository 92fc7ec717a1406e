//! Which generation each block should have, and what to make of what it has.

use crate::stamp::{Found, Stamp};
use crate::{Finding, VerifyFault};

/// The right answers for one block: from the least generation that must be there to the greatest
/// that may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Right {
    pub(crate) least: u64,
    pub(crate) most: u64,
}

/// Compares the sectors of `block` at `offset_bytes` with the `right` data; `None` if all is well. A block that need
/// not be there (`least` 0) may hold anything that is not wrong in itself.
pub(crate) fn judge(
    block: &[u8],
    sector_bytes: u32,
    offset_bytes: u64,
    run: u64,
    right: Right,
) -> Option<Finding> {
    let mut first: Option<Found> = None;
    let mut worst: Option<VerifyFault> = None;
    let mut generation = None;
    let mut belongs_to_bytes = None;
    for (sector, index) in block.chunks(sector_bytes as usize).zip(0u64..) {
        let address = offset_bytes + index * u64::from(sector_bytes);
        let found = Stamp::read(sector, &Stamp { address, generation: right.least, run });
        let fault = match found {
            Found::Foreign if right.least == 0 => None,
            Found::Foreign => match sector.iter().all(|byte| *byte == 0) {
                true => Some(VerifyFault::Unwritten),
                false => Some(VerifyFault::Foreign),
            },
            Found::Damaged => Some(VerifyFault::Damaged),
            Found::Torn => Some(VerifyFault::Torn),
            // Data of an earlier run counts as no data.
            Found::Stamped(stamp) if stamp.run != run => {
                (right.least > 0).then_some(VerifyFault::Unwritten)
            }
            Found::Stamped(stamp) if stamp.address != address => {
                generation.get_or_insert(stamp.generation);
                belongs_to_bytes.get_or_insert(stamp.address);
                Some(VerifyFault::Misplaced)
            }
            Found::Stamped(stamp) => {
                generation.get_or_insert(stamp.generation);
                match stamp.generation {
                    older if older < right.least => Some(VerifyFault::Lost),
                    newer if newer > right.most => Some(VerifyFault::Invented),
                    _ => None,
                }
            }
        };
        // Sectors that disagree about whose they are or about the write they belong to.
        let torn = first.is_some_and(|first| identity(first, run) != identity(found, run));
        first.get_or_insert(found);
        worst = match (worst, fault) {
            (Some(VerifyFault::Damaged), _) | (_, Some(VerifyFault::Damaged)) => {
                Some(VerifyFault::Damaged)
            }
            (Some(VerifyFault::Misplaced), _) | (_, Some(VerifyFault::Misplaced)) => {
                Some(VerifyFault::Misplaced)
            }
            _ if torn => Some(VerifyFault::Torn),
            (Some(fault), _) => Some(fault),
            (None, fault) => fault,
        };
    }
    worst.map(|fault| Finding {
        fault,
        offset_bytes,
        expected_generation: right.least,
        found_generation: generation,
        belongs_to_bytes,
    })
}

/// What all sectors of a block must have in common: the generation, or that they are not ours.
fn identity(found: Found, run: u64) -> Option<u64> {
    match found {
        Found::Stamped(stamp) if stamp.run == run => Some(stamp.generation),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: u32 = 512;

    fn block(address: u64, generations: [u64; 4], run: u64) -> Vec<u8> {
        let mut block = vec![0; 4 * SECTOR as usize];
        for (sector, index) in block.chunks_mut(SECTOR as usize).zip(0u64..) {
            let generation = generations[index as usize];
            let address = address + index * u64::from(SECTOR);
            Stamp { address, generation, run }.write(sector);
        }
        block
    }

    fn fault(block: &[u8], least: u64, most: u64) -> Option<VerifyFault> {
        judge(block, SECTOR, 4096, 1, Right { least, most }).map(|finding| finding.fault)
    }

    #[test]
    fn each_fault_is_told_from_the_others() {
        assert_eq!(fault(&block(4096, [5; 4], 1), 5, 5), None);
        assert_eq!(fault(&block(4096, [5; 4], 1), 4, 6), None, "may be newer than it must be");
        assert_eq!(fault(&block(4096, [3; 4], 1), 5, 5), Some(VerifyFault::Lost));
        assert_eq!(fault(&block(4096, [5, 5, 3, 3], 1), 5, 5), Some(VerifyFault::Torn));
        assert_eq!(
            fault(&block(4096, [5, 5, 6, 6], 1), 5, 6),
            Some(VerifyFault::Torn),
            "both right alone"
        );
        assert_eq!(fault(&block(8192, [5; 4], 1), 5, 5), Some(VerifyFault::Misplaced));
        assert_eq!(fault(&block(4096, [9; 4], 1), 5, 6), Some(VerifyFault::Invented));
        assert_eq!(fault(&[0; 2048], 5, 5), Some(VerifyFault::Unwritten));
        assert_eq!(fault(&[0x5a; 2048], 5, 5), Some(VerifyFault::Foreign));
        assert_eq!(fault(&[0x5a; 2048], 0, 5), None, "nothing need be there");
        assert_eq!(
            fault(&block(4096, [5; 4], 2), 5, 5),
            Some(VerifyFault::Unwritten),
            "another run's"
        );
        let mut damaged = block(4096, [5; 4], 1);
        damaged[1000] ^= 1;
        assert_eq!(fault(&damaged, 5, 5), Some(VerifyFault::Damaged));
        let mut half = block(4096, [5; 4], 1);
        half[1024..].fill(0);
        assert_eq!(fault(&half, 5, 5), Some(VerifyFault::Torn));
        let mut half_a_sector = block(4096, [5; 4], 1);
        half_a_sector[..256].fill(0);
        assert_eq!(fault(&half_a_sector, 5, 5), Some(VerifyFault::Torn));
        let mut mark = block(4096, [5; 4], 1);
        mark[5] ^= 4;
        assert_eq!(fault(&mark, 5, 5), Some(VerifyFault::Damaged));
    }

    #[test]
    fn a_block_that_need_not_be_there_may_hold_anything_whole() {
        assert_eq!(fault(&[7; 2048], 0, 0), None);
        assert_eq!(fault(&block(4096, [5; 4], 2), 0, 0), None);
        assert_eq!(fault(&block(4096, [5; 4], 1), 0, 5), None, "unflushed and there");
        let mut half = block(4096, [5; 4], 1);
        half[1024..].fill(0);
        assert_eq!(fault(&half, 0, 5), Some(VerifyFault::Torn), "unflushed, half there");
    }
}
