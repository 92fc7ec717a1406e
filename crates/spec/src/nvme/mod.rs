//! NVM Express: base specification 2.0c and NVM command set 1.0c.

mod entries;
mod features;
mod identify;
mod logs;
pub mod registers;
mod status;

pub use entries::{CompletionEntry, SubmissionEntry, admin, nvm};
pub use features::{
    AsynchronousEvent, AutonomousTransition, DatasetRange, RangeType, dataset, feature, select,
};
pub use identify::{
    IdentifyController, IdentifyNamespace, IndependentNamespace, LbaFormat, NamespaceDescriptor,
    PowerStateDescriptor, cns, oacs, oncs, sanicap,
};
pub use logs::{ErrorLogEntry, FirmwareSlotLog, SanitizeLog, SmartLog, effects, page, sanitize};
pub use status::NvmeStatus;

/// The memory page that this project uses everywhere (CC.MPS = 0), in bytes.
pub const PAGE_BYTES: u32 = 4096;
