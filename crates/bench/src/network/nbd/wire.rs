//! Messages of the NBD protocol, as bytes (`doc/proto.md` of the NBD project); all numbers are big-endian.

/// What a server of today begins with.
pub(crate) const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`: before each option.
pub(crate) const OPTION_MAGIC: u64 = 0x4948_4156_454F_5054;
/// After [`MAGIC`] from a server that speaks the handshake of before 2012.
pub(crate) const OLD_STYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(crate) const REPLY_MAGIC: u32 = 0x6744_6698;

/// Flags of the handshake, of both sides.
pub(crate) const FIXED_NEWSTYLE: u16 = 1;
pub(crate) const NO_ZEROES: u16 = 2;

pub(crate) const OPT_EXPORT_NAME: u32 = 1;
pub(crate) const OPT_ABORT: u32 = 2;
pub(crate) const OPT_LIST: u32 = 3;
pub(crate) const OPT_GO: u32 = 7;

pub(crate) const REP_ACK: u32 = 1;
pub(crate) const REP_SERVER: u32 = 2;
pub(crate) const REP_INFO: u32 = 3;
/// Set in replies that are errors.
pub(crate) const REP_ERROR: u32 = 1 << 31;
pub(crate) const ERR_UNSUPPORTED: u32 = REP_ERROR | 1;
pub(crate) const ERR_POLICY: u32 = REP_ERROR | 2;
pub(crate) const ERR_INVALID: u32 = REP_ERROR | 3;
pub(crate) const ERR_TLS_REQUIRED: u32 = REP_ERROR | 5;
pub(crate) const ERR_UNKNOWN: u32 = REP_ERROR | 6;
pub(crate) const ERR_SHUTDOWN: u32 = REP_ERROR | 7;

pub(crate) const INFO_EXPORT: u16 = 0;
pub(crate) const INFO_BLOCK_SIZE: u16 = 3;

/// Flags of an export.
pub(crate) const READ_ONLY: u16 = 1 << 1;
pub(crate) const SEND_FLUSH: u16 = 1 << 2;
pub(crate) const SEND_FUA: u16 = 1 << 3;
pub(crate) const ROTATIONAL: u16 = 1 << 4;
pub(crate) const SEND_TRIM: u16 = 1 << 5;
pub(crate) const SEND_WRITE_ZEROES: u16 = 1 << 6;
pub(crate) const CAN_MULTI_CONN: u16 = 1 << 8;

pub(crate) const CMD_READ: u16 = 0;
pub(crate) const CMD_WRITE: u16 = 1;
pub(crate) const CMD_DISCONNECT: u16 = 2;
pub(crate) const CMD_FLUSH: u16 = 3;
pub(crate) const CMD_TRIM: u16 = 4;
/// Flag of a command: it is durable when it completes.
pub(crate) const FUA: u16 = 1;

/// Bytes of a request without its data.
pub(crate) const REQUEST_BYTES: usize = 28;
/// Bytes of a simple reply without its data.
pub(crate) const REPLY_BYTES: usize = 16;

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
