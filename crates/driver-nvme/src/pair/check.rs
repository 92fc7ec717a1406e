//! Which commands a namespace and its controller can carry out: what they cannot is not sent.

use ssdyno_spec::nvme::oncs;

use crate::{IoCommand, IoError, IoOperation, Namespace};

/// `command` can be sent to `namespace`, where the controller has these optional commands (bits of ONCS).
#[inline(always)]
pub(super) fn check(
    command: &IoCommand<'_>,
    namespace: &Namespace,
    nvm_commands: u16,
) -> Result<(), IoError> {
    if let Some(reason) = namespace.unusable {
        return Err(reason.into());
    }
    let needed = match command.operation {
        IoOperation::Read | IoOperation::Write => 0,
        IoOperation::Flush => return Ok(()),
        IoOperation::Dataset { .. } => oncs::DATASET_MANAGEMENT,
        IoOperation::Compare => oncs::COMPARE,
        IoOperation::WriteZeroes => oncs::WRITE_ZEROES,
        IoOperation::Verify => oncs::VERIFY,
    };
    if needed & !nvm_commands != 0 {
        return Err(IoError::Unsupported { opcode: command.operation.opcode() });
    }
    let fits = match command.operation {
        IoOperation::Dataset { ranges, .. } => {
            let inside = |first: u64, n: u32| within(first, n, namespace.blocks);
            !ranges.is_empty() && ranges.iter().all(|r| inside(r.first.get(), r.blocks.get()))
        }
        _ => command.blocks > 0 && within(command.block, command.blocks, namespace.blocks),
    };
    if fits { Ok(()) } else { Err(IoError::OutOfRange { blocks: namespace.blocks }) }
}

#[inline]
fn within(first: u64, blocks: u32, size: u64) -> bool {
    first.checked_add(u64::from(blocks)).is_some_and(|end| end <= size)
}
