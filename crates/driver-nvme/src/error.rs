//! What can go wrong.

use alloc::collections::TryReserveError;

use ssdyno_block::Time;
use ssdyno_pci::FunctionError;
use ssdyno_spec::nvme::NvmeStatus;

use crate::shared::NoHeap;

/// Why the driver could not start, stop or go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NvmeError {
    /// The function could not give what was asked.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// The heap has no room.
    #[error("the driver cannot allocate its memory; free some memory, then try again")]
    NoMemory,
    /// BAR 0 is missing or has no room for the doorbells.
    #[error("BAR 0 has {bytes} bytes, but {needed} are needed: is this an NVMe controller?")]
    RegistersMissing {
        /// What it has.
        bytes: u64,
        /// The size of the registers and doorbells.
        needed: u64,
    },
    /// The controller cannot do the NVM command set.
    #[error("the controller has no NVM command set (CAP.CSS)")]
    NoNvmCommandSet,
    /// The controller wants larger pages than this driver uses.
    #[error("the smallest page size of the controller is {bytes} bytes; this driver uses 4096")]
    PageSize {
        /// 2^(12 + CAP.MPSMIN).
        bytes: u64,
    },
    /// The controller takes no queue entries of the sizes that the NVM command set has.
    #[error(
        "the controller requires queue entries of at least 2^{submission} and 2^{completion} bytes (SQES, CQES); this driver has 64 and 16"
    )]
    EntrySizes {
        /// SQES bits 3:0.
        submission: u8,
        /// CQES bits 3:0.
        completion: u8,
    },
    /// The policy weighs queues, and the controller does not.
    #[error(
        "the controller has no weighted round robin (CAP.AMS): use another policy, for example more queues"
    )]
    NoWeightedArbitration,
    /// CSTS.RDY did not become what it should.
    #[error("the controller did not become {} within {limit}", if *.ready { "ready" } else { "idle" })]
    ReadyTimeout {
        /// The expected value of RDY.
        ready: bool,
        /// What CAP.TO allows.
        limit: Time,
    },
    /// CSTS.CFS is set.
    #[error("the controller reports a fatal error (CSTS.CFS)")]
    Fatal,
    /// An admin command of the start or stop had no completion.
    #[error("admin command {opcode:#04x} did not complete in time")]
    AdminTimeout {
        /// Its opcode.
        opcode: u8,
    },
    /// An admin command of the start or stop failed.
    #[error("admin command {opcode:#04x} ended with status {:#05x}", .status.bits())]
    AdminFailed {
        /// Its opcode.
        opcode: u8,
        /// How it ended.
        status: NvmeStatus,
    },
    /// After a reset the controller grants fewer queues than before.
    #[error("after the reset the controller grants {granted} queues; before, it had {before}")]
    FewerQueues {
        /// Now.
        granted: u16,
        /// Before.
        before: u16,
    },
    /// Resets do not help.
    #[error("{resets} resets in a row did not bring the controller back")]
    Unresponsive {
        /// Number of resets.
        resets: u32,
    },
    /// Shutdown was not reported complete.
    #[error("the controller did not finish its shutdown within {limit}")]
    ShutdownTimeout {
        /// What was allowed.
        limit: Time,
    },
    /// The namespace that was asked for is not there, or cannot be used.
    #[error("there is no namespace {namespace} that can be used")]
    NoUsableNamespace {
        /// The requested value.
        namespace: u32,
    },
    /// Called in a state where it cannot be.
    #[error("the driver cannot do this while it is {state}")]
    WrongState {
        /// What it is doing.
        state: &'static str,
    },
}

/// Why a command was not taken. It left no trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IoError {
    /// The queue has no room; submit again after the next completion.
    #[error("the queue is full")]
    Full,
    /// The driver starts, recovers or stops; submit again when it is ready.
    #[error("the driver is not ready")]
    NotReady,
    /// The driver has failed, was stopped, or the device is gone.
    #[error("the device cannot be used any more")]
    Gone,
    /// There is no such queue.
    #[error("there is no I/O queue {queue}")]
    NoSuchQueue {
        /// The requested value.
        queue: u16,
    },
    /// There is no such namespace.
    #[error("there is no namespace {namespace}")]
    NoSuchNamespace {
        /// The requested value.
        namespace: u32,
    },
    /// The namespace is formatted in a way that this driver does not do.
    #[error("the namespace cannot be used: {0}")]
    Format(#[from] Unusable),
    /// The controller does not do this command.
    #[error("the controller has no command {opcode:#04x} (ONCS)")]
    Unsupported {
        /// The requested value.
        opcode: u8,
    },
    /// The range is empty or ends behind the namespace.
    #[error("the range is empty or ends beyond the namespace's {blocks} blocks")]
    OutOfRange {
        /// Size of the namespace.
        blocks: u64,
    },
    /// The buffer is too short, absent, or not on whole dwords and pages.
    #[error("the buffer is too short, or not aligned to dwords (start) and pages (the rest)")]
    BadBuffer,
    /// There is no memory for a page list, and no other command has one that would come back.
    #[error(
        "no memory for DMA is left for a page list ({bytes} bytes); free some, then submit again"
    )]
    NoMemory {
        /// The requested value.
        bytes: u32,
    },
    /// The request takes more commands than the queue has.
    #[error("the request takes {commands} commands, the queue holds {slots}: split it")]
    TooLarge {
        /// What it takes.
        commands: u32,
        /// What there is.
        slots: u32,
    },
}

/// Why a namespace cannot be used (S1-46).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Unusable {
    /// End-to-end protection is on.
    #[error("end-to-end protection is on; format the namespace without it")]
    Protection,
    /// Metadata follows the data of each block.
    #[error("metadata is interleaved with data; use a format with separate metadata")]
    InterleavedMetadata,
    /// The block size is none, or larger than a page list can start with.
    #[error("the format has no valid block size")]
    BlockSize,
}

/// Why an admin command was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdminError {
    /// All slots are in use; try again after the next completion.
    #[error("the admin queue is full")]
    Full,
    /// The driver is not ready, or has failed.
    #[error("the driver is not ready")]
    NotReady,
    /// The heap has no room for the data that is to be received, or no memory for DMA is left.
    #[error(
        "no memory is left for the data of the command; free memory, then submit the command again"
    )]
    NoMemory,
    /// More data than one page.
    #[error("an admin command carries {bytes} bytes; the limit is 4096, so use several commands")]
    TooLong {
        /// The requested value.
        bytes: u32,
    },
}

impl From<NoHeap> for NvmeError {
    fn from(_: NoHeap) -> NvmeError {
        NvmeError::NoMemory
    }
}

impl From<TryReserveError> for NvmeError {
    fn from(_: TryReserveError) -> NvmeError {
        NvmeError::NoMemory
    }
}

impl From<TryReserveError> for AdminError {
    fn from(_: TryReserveError) -> AdminError {
        AdminError::NoMemory
    }
}
