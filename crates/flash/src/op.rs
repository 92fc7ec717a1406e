//! The operations that an FTL requests from the flash.

use ssdyno_engine::events::FlashCause;

/// No request waits for this operation.
pub const NO_OWNER: u32 = u32::MAX;

/// A flash command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Page to controller.
    Read,
    /// Controller to page.
    Program,
    /// Page to another page of the same plane (copy-back, or through the controller).
    Copy,
    /// Whole block.
    Erase,
}

/// One flash operation. The order in which an FTL emits operations on one plane is the order in
/// which they take effect there; reads may overtake programs and erases of other blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashOp {
    /// Kind of the operation.
    pub kind: OpKind,
    /// On whose behalf.
    pub cause: FlashCause,
    /// The plane, counted through the device.
    pub plane: u32,
    /// The page; for [`OpKind::Erase`] the first page of the block.
    pub page: u32,
    /// Where a [`OpKind::Copy`] goes; unused otherwise.
    pub to: u32,
    /// A read of data that may start only when the operations emitted before it in the same call
    /// are complete (a mapping page must be known first). The device then asks the FTL again where
    /// the data is, since cleaning may have moved it.
    pub after_mapping: bool,
    /// Only one sector with its share of the spare bytes crosses the bus, not a page: a summary
    /// that the controller makes itself (S3-28).
    pub sector_only: bool,
}

impl FlashOp {
    const fn plain(kind: OpKind, plane: u32, page: u32, cause: FlashCause) -> FlashOp {
        FlashOp { kind, cause, plane, page, to: 0, after_mapping: false, sector_only: false }
    }
    /// A read of `page`.
    pub const fn read(plane: u32, page: u32, cause: FlashCause) -> FlashOp {
        FlashOp::plain(OpKind::Read, plane, page, cause)
    }
    /// A program of `page`.
    pub const fn program(plane: u32, page: u32, cause: FlashCause) -> FlashOp {
        FlashOp::plain(OpKind::Program, plane, page, cause)
    }
    /// A copy of `page` to `to`, both in `plane`.
    pub const fn copy(plane: u32, page: u32, to: u32, cause: FlashCause) -> FlashOp {
        FlashOp { to, ..FlashOp::plain(OpKind::Copy, plane, page, cause) }
    }
    /// An erase of the block that begins at `page`.
    pub const fn erase(plane: u32, page: u32, cause: FlashCause) -> FlashOp {
        FlashOp::plain(OpKind::Erase, plane, page, cause)
    }
}
