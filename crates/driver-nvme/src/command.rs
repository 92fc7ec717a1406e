//! I/O commands as a caller puts them.

use ssdyno_block::{Op, Request, Status as BlockStatus, Token};
use ssdyno_spec::nvme::{DatasetRange, IdentifyNamespace, NvmeStatus, dataset, nvm};

use crate::Unusable;

/// Where the data of a command is, by addresses of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataBuffer<'a> {
    /// No data.
    None,
    /// One stretch from this address, a multiple of 4.
    Contiguous(u64),
    /// Pages of 4096 bytes.
    Pages {
        /// Addresses of the pages, each a multiple of 4096.
        pages: &'a [u64],
        /// Where in the first page the data begins: a multiple of 4, less than 4096.
        offset: u32,
    },
}

/// What a command does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoOperation<'a> {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// Data to the device, which says whether it has the same.
    Compare,
    /// The range reads as zeroes.
    WriteZeroes,
    /// The device checks that it could read the range.
    Verify,
    /// Everything completed before is durable when this completes.
    Flush,
    /// Attributes of ranges of blocks (S1-44).
    Dataset {
        /// The ranges, with their hints. One command of the device takes 256 at most; more are
        /// spread over several.
        ranges: &'a [DatasetRange],
        /// Bits of [`dataset`].
        attributes: u32,
    },
}

impl IoOperation<'_> {
    /// The opcode (NVM 1.0c, figure 18).
    pub const fn opcode(&self) -> u8 {
        match self {
            IoOperation::Read => nvm::READ,
            IoOperation::Write => nvm::WRITE,
            IoOperation::Compare => nvm::COMPARE,
            IoOperation::WriteZeroes => nvm::WRITE_ZEROES,
            IoOperation::Verify => nvm::VERIFY,
            IoOperation::Flush => nvm::FLUSH,
            IoOperation::Dataset { .. } => nvm::DATASET_MANAGEMENT,
        }
    }

    /// Moves data of the blocks.
    pub(crate) const fn moves_blocks(&self) -> bool {
        matches!(self, IoOperation::Read | IoOperation::Write | IoOperation::Compare)
    }
}

/// An I/O command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoCommand<'a> {
    /// Operation of the command.
    pub operation: IoOperation<'a>,
    /// The namespace, from 1.
    pub namespace: u32,
    /// The first block, in blocks of the namespace.
    pub block: u64,
    /// How many blocks.
    pub blocks: u32,
    /// Where the data is.
    pub data: DataBuffer<'a>,
    /// Where the metadata is, in one stretch, for a namespace that has some apart from its data.
    pub metadata: u64,
    /// FUA: a write is on the medium when it completes, a read comes from there.
    pub force_unit_access: bool,
}

impl<'a> IoCommand<'a> {
    const fn plain(operation: IoOperation<'a>, namespace: u32, block: u64, blocks: u32) -> Self {
        let data = DataBuffer::None;
        let (metadata, force_unit_access) = (0, false);
        IoCommand { operation, namespace, block, blocks, data, metadata, force_unit_access }
    }
    /// Reads `blocks` from `block` on into `data`.
    pub const fn read(namespace: u32, block: u64, blocks: u32, data: DataBuffer<'a>) -> Self {
        IoCommand { data, ..Self::plain(IoOperation::Read, namespace, block, blocks) }
    }
    /// Writes `blocks` from `block` on out of `data`.
    pub const fn write(namespace: u32, block: u64, blocks: u32, data: DataBuffer<'a>) -> Self {
        IoCommand { data, ..Self::plain(IoOperation::Write, namespace, block, blocks) }
    }
    /// Compares `blocks` from `block` on with `data`.
    pub const fn compare(namespace: u32, block: u64, blocks: u32, data: DataBuffer<'a>) -> Self {
        IoCommand { data, ..Self::plain(IoOperation::Compare, namespace, block, blocks) }
    }
    /// Makes `blocks` from `block` on read as zeroes.
    pub const fn write_zeroes(namespace: u32, block: u64, blocks: u32) -> Self {
        Self::plain(IoOperation::WriteZeroes, namespace, block, blocks)
    }
    /// Lets the device check `blocks` from `block` on.
    pub const fn verify(namespace: u32, block: u64, blocks: u32) -> Self {
        Self::plain(IoOperation::Verify, namespace, block, blocks)
    }
    /// Makes everything completed before durable.
    pub const fn flush(namespace: u32) -> Self {
        Self::plain(IoOperation::Flush, namespace, 0, 0)
    }
    /// `request` on `namespace`, with its data in `data`. `range` is the caller's room for what a
    /// deallocation names.
    #[inline]
    pub fn of_request(
        namespace: &Namespace,
        request: &Request,
        data: DataBuffer<'a>,
        range: &'a mut [DatasetRange; 1],
    ) -> Self {
        let (first, blocks) = namespace.blocks_of(request);
        match request.op {
            Op::Read => Self::read(namespace.id, first, blocks, data),
            Op::Write => Self::write(namespace.id, first, blocks, data),
            Op::Flush => Self::flush(namespace.id),
            Op::Trim => {
                *range = [DatasetRange {
                    attributes: 0.into(),
                    blocks: blocks.into(),
                    first: first.into(),
                }];
                Self::deallocate(namespace.id, range)
            }
        }
    }
    /// Tells the device attributes of `ranges`.
    pub const fn dataset(namespace: u32, ranges: &'a [DatasetRange], attributes: u32) -> Self {
        Self::plain(IoOperation::Dataset { ranges, attributes }, namespace, 0, 0)
    }
    /// Tells the device that `ranges` hold no data any more.
    pub const fn deallocate(namespace: u32, ranges: &'a [DatasetRange]) -> Self {
        Self::dataset(namespace, ranges, dataset::DEALLOCATE)
    }
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IoResult {
    /// The controller completed it. Of a request that took several commands: the first error, if any.
    Completed(NvmeStatus),
    /// Given up in a reset or because the device is gone; it may or may not have been done.
    Abandoned,
}

impl IoResult {
    /// Its meaning for the request.
    #[inline]
    pub fn block_status(self) -> BlockStatus {
        match self {
            IoResult::Abandoned => BlockStatus::Abandoned,
            IoResult::Completed(status) if status.is_success() => BlockStatus::Ok,
            IoResult::Completed(status) => match status.kind() {
                NvmeStatus::WRITE_PROTECTED | NvmeStatus::READ_ONLY_RANGE => BlockStatus::ReadOnly,
                // The driver aborts what it has waited for too long. How long the command would have
                // taken is not known, as after a reset; an error would leave its wait out of all latencies.
                NvmeStatus::ABORT_REQUESTED => BlockStatus::Abandoned,
                _ => BlockStatus::Error,
            },
        }
    }
}

/// The end of one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoCompletion {
    /// What it was submitted with.
    pub token: Token,
    /// The queue it went through.
    pub queue: u16,
    /// Place of its entry in the completion queue, of the last entry where the request was split. Zero
    /// for a request that was given up.
    pub entry: u16,
    /// How it ended.
    pub result: IoResult,
}

impl IoCompletion {
    /// Completed, and without an error.
    pub const fn is_success(&self) -> bool {
        matches!(self.result, IoResult::Completed(status) if status.is_success())
    }
}

/// A namespace, as the driver uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Namespace {
    /// Its identifier, from 1.
    pub id: u32,
    /// Size, in blocks.
    pub blocks: u64,
    /// Size of a block, in bytes.
    pub block_bytes: u32,
    /// Metadata of a block, apart from its data, in bytes.
    pub metadata_bytes: u16,
    /// Boundary that commands do not cross, in blocks, a power of two; 0: none (NOIOB, or the stripe of an
    /// [older drive](crate::Quirks::STRIPE_IS_MAX_TRANSFER)). Reads and writes are split there.
    pub boundary_blocks: u32,
    /// May be attached to several controllers (NMIC bit 0).
    pub shared: bool,
    /// Why it cannot be used, if so (S1-46).
    pub unusable: Option<Unusable>,
}

impl Namespace {
    /// From what the controller says about namespace `id`.
    pub fn new(id: u32, data: &IdentifyNamespace) -> Namespace {
        let format = data.format_in_use();
        let metadata_bytes = format.metadata_bytes.get();
        let block_bytes = data.block_bytes();
        let unusable = if data.protection & 0b111 != 0 {
            Some(Unusable::Protection)
        } else if data.format & 1 << 4 != 0 && metadata_bytes != 0 {
            Some(Unusable::InterleavedMetadata)
        } else {
            block_bytes.is_none_or(|b| b > 1 << 16).then_some(Unusable::BlockSize)
        };
        let boundary = u32::from(data.io_boundary.get());
        Namespace {
            id,
            blocks: data.size.get(),
            block_bytes: block_bytes.unwrap_or(512),
            metadata_bytes,
            boundary_blocks: if boundary.is_power_of_two() { boundary } else { 0 },
            shared: data.sharing & 1 != 0,
            unusable,
        }
    }

    /// The first block of `request`, and how many there are. A block is a power of two (LBADS; NVM command
    /// set 1.0c, figure 98).
    #[inline]
    pub const fn blocks_of(&self, request: &Request) -> (u64, u32) {
        let shift = self.block_bytes.trailing_zeros();
        (request.offset_bytes >> shift, request.length_bytes >> shift)
    }

    /// Size, in bytes.
    pub const fn capacity_bytes(&self) -> u64 {
        self.blocks.saturating_mul(self.block_bytes as u64)
    }
}
