//! Messages of the NBD protocol, as bytes.

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub(crate) use ssdyno_spec::nbd::*;

/// A request of the transmission phase, without the data of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Command {
    /// [`REQUEST_MAGIC`].
    pub(crate) magic: U32,
    pub(crate) flags: U16,
    pub(crate) kind: U16,
    pub(crate) cookie: U64,
    pub(crate) offset: U64,
    pub(crate) length: U32,
}

/// A simple reply, without the data of a read. It has no length: how many bytes of data follow is known only from
/// the request with the same cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Reply {
    pub(crate) magic: U32,
    pub(crate) error: U32,
    pub(crate) cookie: U64,
}

/// A reply to an option, without its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub(crate) struct OptionHead {
    pub(crate) magic: U64,
    pub(crate) option: U32,
    pub(crate) kind: U32,
    pub(crate) length: U32,
}

/// Size and flags of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub(crate) struct ExportHead {
    pub(crate) size_bytes: U64,
    pub(crate) flags: U16,
}

/// An option of the handshake.
pub(crate) fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The data of `NBD_OPT_GO`: the name of an export, and the kinds of information that are wanted.
pub(crate) fn go(export: &str, wanted: &[u16]) -> Vec<u8> {
    let mut bytes = (export.len() as u32).to_be_bytes().to_vec();
    bytes.extend(export.as_bytes());
    bytes.extend((wanted.len() as u16).to_be_bytes());
    wanted.iter().for_each(|kind| bytes.extend(kind.to_be_bytes()));
    bytes
}
