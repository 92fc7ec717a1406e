//! SCSI: SPC-4 (INCITS 513), SBC-3 (INCITS 514) and SAM-5 (INCITS 515).
//!
//! All multi-byte fields are big-endian.

mod layouts;
pub mod mode;
pub mod opcode;
mod sense;

pub use layouts::{
    BlockLimitsPage, BlockStatusDescriptor, CharacteristicsPage, LogicalBlockProvisioningPage,
    ReadCapacity10Data, ReadCapacity16Data, StandardInquiry, TimeoutDescriptor, UnmapDescriptor,
    UnmapHeader, vpd,
};
pub use opcode::sanitize_action;
pub use sense::{AdditionalSense, SenseKey, status};
