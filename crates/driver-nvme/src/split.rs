//! How a request becomes commands: by the largest transfer, by the most that a command can name, and at
//! the boundaries that commands should not cross.
//!
//! A boundary is NOIOB (NVM command set 1.0c, figure 97), or the stripe of an older drive
//! ([`Quirks::STRIPE_IS_MAX_TRANSFER`](crate::Quirks::STRIPE_IS_MAX_TRANSFER)). As in Linux
//! (`nvme_set_chunk_sectors`, 6.16) one that is no power of two is ignored, and reads and writes are
//! split there; commands that move no data are not.

use crate::{IoCommand, IoOperation, Namespace};

/// Most blocks of a command: NLB has 16 bits and is zero based (NVM 1.0c, clause 3.2.4).
const BLOCKS_MAX: u32 = 1 << 16;

/// How a request is split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parts {
    /// Into so many commands.
    pub(crate) parts: u32,
    /// Each has at most this number of blocks or ranges.
    pub(crate) step: u32,
}

/// `command`, which moves `bytes`, is one command, as nearly all are.
#[inline(always)]
pub(crate) fn is_one(
    command: &IoCommand<'_>,
    namespace: &Namespace,
    bytes: u64,
    transfer_bytes: u32,
) -> bool {
    bytes <= u64::from(transfer_bytes)
        && command.blocks <= BLOCKS_MAX
        && !crosses(namespace.boundary_blocks, command.block, command.blocks)
}

/// The `blocks` from `first` on, at least one, are on both sides of a boundary.
#[inline(always)]
fn crosses(boundary: u32, first: u64, blocks: u32) -> bool {
    // The same multiple of a power of two has the same upper bits.
    // The exclusive or of the first and the last block has a bit at or above the boundary
    // exactly if they are on different sides of a multiple of it. This needs no division.
    boundary != 0 && (first ^ (first + u64::from(blocks) - 1)) >= u64::from(boundary)
}

/// The same for any command; `ranges` is how many ranges a command takes.
pub(crate) fn parts(
    command: &IoCommand<'_>,
    namespace: &Namespace,
    transfer_bytes: u32,
    ranges: u32,
) -> Parts {
    match command.operation {
        IoOperation::Read | IoOperation::Write | IoOperation::Compare => {
            let step = (transfer_bytes / namespace.block_bytes).clamp(1, BLOCKS_MAX);
            let parts = count(command.block, command.blocks, step, namespace.boundary_blocks);
            Parts { parts, step }
        }
        IoOperation::WriteZeroes | IoOperation::Verify => {
            Parts { parts: command.blocks.div_ceil(BLOCKS_MAX), step: BLOCKS_MAX }
        }
        IoOperation::Flush => Parts { parts: 1, step: 1 },
        IoOperation::Dataset { ranges: all, .. } => {
            Parts { parts: (all.len() as u32).div_ceil(ranges), step: ranges }
        }
    }
}

/// Commands of `step` blocks at most for `blocks` from `first` on.
fn count(first: u64, blocks: u32, step: u32, boundary: u32) -> u32 {
    if boundary == 0 {
        return blocks.div_ceil(step);
    }
    // The part before the first boundary, whole stretches, and the part after the last one: each
    // is cut into commands of at most `step` blocks on its own.
    let head = blocks.min(to_boundary(first, boundary));
    let rest = blocks - head;
    let whole = u64::from(rest / boundary) * u64::from(boundary.div_ceil(step));
    let ends = head.div_ceil(step) + (rest % boundary).div_ceil(step);
    // More than there is room for, in any case.
    u32::try_from(whole + u64::from(ends)).unwrap_or(u32::MAX)
}

/// Blocks from `block` to the next boundary.
#[inline]
fn to_boundary(block: u64, boundary: u32) -> u32 {
    boundary - (block & u64::from(boundary - 1)) as u32
}

/// How much the command does that begins `skip` blocks or ranges into `command`.
#[inline(always)]
pub(crate) fn amount(command: &IoCommand<'_>, namespace: &Namespace, skip: u32, step: u32) -> u32 {
    match command.operation {
        IoOperation::Flush => 0,
        IoOperation::Dataset { ranges, .. } => step.min(ranges.len() as u32 - skip),
        _ => {
            let most = step.min(command.blocks - skip);
            let boundary = namespace.boundary_blocks;
            if boundary == 0 || !command.operation.moves_blocks() {
                return most;
            }
            most.min(to_boundary(command.block + u64::from(skip), boundary))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ssdyno_spec::nvme::IdentifyNamespace;
    use zerocopy::FromZeros;

    use super::*;
    use crate::DataBuffer;

    fn namespace(boundary_blocks: u32) -> Namespace {
        let mut raw = IdentifyNamespace::new_zeroed();
        raw.lba_format[0].data_shift = 9;
        raw.size = (1_u64 << 40).into();
        Namespace { boundary_blocks, ..Namespace::new(1, &raw) }
    }

    proptest! {
        /// The commands are consecutive without a gap, none is too long or crosses a boundary, and their number equals
        /// the count; no two neighbours could have been one command.
        #[test]
        fn parts_are_the_request(
            shift in prop::option::of(0_u32..16),
            pages in 1_u32..40,
            first in 0_u64..1 << 36,
            blocks in 1_u32..20_000,
        ) {
            let boundary = shift.map_or(0, |shift| 1 << shift);
            let namespace = namespace(boundary);
            let data = DataBuffer::Contiguous(0);
            let command = IoCommand::read(1, first, blocks, data);
            let transfer = pages * 4096;
            let Parts { parts, step } = parts(&command, &namespace, transfer, 16);
            let bytes = u64::from(blocks) * 512;
            prop_assert_eq!(is_one(&command, &namespace, bytes, transfer), parts == 1);
            let chunk = |block: u64| if boundary == 0 { 0 } else { block / u64::from(boundary) };
            let (mut skip, mut before) = (0, 0);
            for _ in 0..parts {
                let amount = amount(&command, &namespace, skip, step);
                let at = first + u64::from(skip);
                prop_assert!(amount > 0 && amount * 512 <= transfer);
                prop_assert_eq!(chunk(at), chunk(at + u64::from(amount) - 1));
                prop_assert!(skip == 0 || before == step || chunk(at - 1) != chunk(at));
                (skip, before) = (skip + amount, amount);
            }
            prop_assert_eq!(skip, blocks);
        }
    }

    #[test]
    fn more_parts_than_fit_in_a_number_are_many() {
        assert_eq!(count(0, u32::MAX, 1, 0), u32::MAX);
        assert_eq!(count(1, u32::MAX, 1, 2), u32::MAX);
        assert_eq!(count(5, 8, 8, 8), 2);
        assert_eq!(count(8, 8, 8, 8), 1);
        assert_eq!(count(7, 18, 4, 8), 1 + 2 * 2 + 1);
    }
}
