//! Messages of the NBD protocol, as bytes.

pub(crate) use ssdyno_spec::nbd::*;

/// A request of the transmission phase, without the data of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Command {
    pub(crate) flags: u16,
    pub(crate) kind: u16,
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

impl Command {
    pub(crate) fn to_bytes(self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.kind.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }
}

/// A simple reply, without the data of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    pub(crate) magic: u32,
    pub(crate) error: u32,
    pub(crate) cookie: u64,
}

impl Reply {
    /// What `bytes` begin with; `None` where there are too few.
    pub(crate) fn of(bytes: &[u8]) -> Option<Reply> {
        // A simple reply has no length. How many bytes of data follow is known only from the
        // request with the same cookie.
        let mut reader = Reader(bytes);
        Some(Reply { magic: reader.u32()?, error: reader.u32()?, cookie: reader.u64()? })
    }
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

/// Takes numbers off the front of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}
