//! The device's work for a SCSI command.

use ssdyno_spec::nvme::{NvmeStatus, nvm};

use crate::job::{NvmeCommand, ScsiData};
use crate::provisioning::DEALLOCATE;

/// The operation on a range of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockAction {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// The medium is read, and the data go nowhere.
    Verify,
    /// The range is written with zeroes.
    WriteZeroes,
    /// The range holds no data any more, and reads as zeroes.
    Unmap,
    /// What was completed before is on the medium when this completes. It has no range.
    Flush,
}

/// One command for the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockCommand {
    /// The block operation.
    pub action: BlockAction,
    /// First byte.
    pub offset_bytes: u64,
    /// Length, in bytes; 0 for a flush.
    pub length_bytes: u32,
    /// The medium, not a volatile cache, is at its other end.
    pub force_unit_access: bool,
    /// Its data.
    pub data: ScsiData,
}

/// How a block command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockEnd {
    /// Well.
    Done,
    /// The medium could not be read or written.
    MediumError,
    /// The device takes no writes any more.
    ReadOnly,
    /// The device is gone, or does not work.
    DeviceError,
    /// The transport has no data for it.
    NoData,
    /// It was not carried out, because its task is aborted.
    Aborted,
}

/// The block command of what a job does: the commands of jobs have the numbers of NVMe, the I/O commands
/// of which are those of any block device.
pub(super) fn command(from: &NvmeCommand, block_shift: u8, writes_through: bool) -> BlockCommand {
    let action = match from.opcode {
        nvm::READ => BlockAction::Read,
        nvm::WRITE => BlockAction::Write,
        nvm::VERIFY => BlockAction::Verify,
        nvm::WRITE_ZEROES if from.dwords[2] & DEALLOCATE != 0 => BlockAction::Unmap,
        nvm::WRITE_ZEROES => BlockAction::WriteZeroes,
        other => {
            debug_assert_eq!(other, nvm::FLUSH, "no other command comes from here");
            BlockAction::Flush
        }
    };
    let blocks = if action == BlockAction::Flush { 0 } else { from.blocks() };
    let writes = matches!(action, BlockAction::Write | BlockAction::WriteZeroes);
    BlockCommand {
        action,
        offset_bytes: from.lba() << block_shift,
        // The server's limits keep it within 32 bits.
        length_bytes: blocks << block_shift,
        force_unit_access: from.dwords[2] >> 30 & 1 == 1 || writes && writes_through,
        data: from.data,
    }
}

/// As the common part counts ends.
pub(super) fn status(action: BlockAction, end: BlockEnd) -> NvmeStatus {
    match end {
        BlockEnd::Done => NvmeStatus::SUCCESS,
        BlockEnd::MediumError => match action {
            BlockAction::Read | BlockAction::Verify => NvmeStatus::UNRECOVERED_READ,
            _ => NvmeStatus::WRITE_FAULT,
        },
        BlockEnd::ReadOnly => NvmeStatus::WRITE_PROTECTED,
        BlockEnd::DeviceError => NvmeStatus::INTERNAL_ERROR,
        BlockEnd::NoData => NvmeStatus::DATA_TRANSFER_ERROR,
        BlockEnd::Aborted => NvmeStatus::ABORT_REQUESTED,
    }
}
