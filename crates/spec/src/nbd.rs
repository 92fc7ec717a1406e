//! NBD: numbers of the handshake and of the transmission phase (`doc/proto.md` of the NBD project). All numbers are big-endian on
//! the wire.

/// `NBDMAGIC`: what a server begins with.
pub const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`: before each option, and after [`MAGIC`] from a server of the newstyle handshake.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454F_5054;
/// After [`MAGIC`] from a server that speaks the handshake of before 2012.
pub const OLD_STYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// Before each reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// `NBD_REQUEST_MAGIC`.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// `NBD_SIMPLE_REPLY_MAGIC`.
pub const REPLY_MAGIC: u32 = 0x6744_6698;

// Flags of the handshake, of both sides.

/// `NBD_FLAG_FIXED_NEWSTYLE` and the same flag of a client.
pub const FIXED_NEWSTYLE: u16 = 1;
/// `NBD_FLAG_NO_ZEROES` and the same flag of a client: no padding after `NBD_OPT_EXPORT_NAME`.
pub const NO_ZEROES: u16 = 2;

// Options.

/// `NBD_OPT_EXPORT_NAME`.
pub const OPT_EXPORT_NAME: u32 = 1;
/// `NBD_OPT_ABORT`.
pub const OPT_ABORT: u32 = 2;
/// `NBD_OPT_LIST`.
pub const OPT_LIST: u32 = 3;
/// `NBD_OPT_GO`.
pub const OPT_GO: u32 = 7;

// Kinds of replies to options.

/// `NBD_REP_ACK`.
pub const REP_ACK: u32 = 1;
/// `NBD_REP_SERVER`: one of the exports.
pub const REP_SERVER: u32 = 2;
/// `NBD_REP_INFO`.
pub const REP_INFO: u32 = 3;
/// Set in replies that are errors.
pub const REP_ERROR: u32 = 1 << 31;
/// `NBD_REP_ERR_UNSUP`.
pub const ERR_UNSUPPORTED: u32 = REP_ERROR | 1;
/// `NBD_REP_ERR_POLICY`.
pub const ERR_POLICY: u32 = REP_ERROR | 2;
/// `NBD_REP_ERR_INVALID`.
pub const ERR_INVALID: u32 = REP_ERROR | 3;
/// `NBD_REP_ERR_TLS_REQD`.
pub const ERR_TLS_REQUIRED: u32 = REP_ERROR | 5;
/// `NBD_REP_ERR_UNKNOWN`: there is no such export.
pub const ERR_UNKNOWN: u32 = REP_ERROR | 6;
/// `NBD_REP_ERR_SHUTDOWN`.
pub const ERR_SHUTDOWN: u32 = REP_ERROR | 7;

// Kinds of information in `NBD_REP_INFO`.

/// `NBD_INFO_EXPORT`: size and flags.
pub const INFO_EXPORT: u16 = 0;
/// `NBD_INFO_BLOCK_SIZE`: least, preferred and largest.
pub const INFO_BLOCK_SIZE: u16 = 3;

// Flags of an export.

/// `NBD_FLAG_HAS_FLAGS`: the flags are valid.
pub const HAS_FLAGS: u16 = 1;
/// `NBD_FLAG_READ_ONLY`.
pub const READ_ONLY: u16 = 1 << 1;
/// `NBD_FLAG_SEND_FLUSH`.
pub const SEND_FLUSH: u16 = 1 << 2;
/// `NBD_FLAG_SEND_FUA`.
pub const SEND_FUA: u16 = 1 << 3;
/// `NBD_FLAG_ROTATIONAL`.
pub const ROTATIONAL: u16 = 1 << 4;
/// `NBD_FLAG_SEND_TRIM`.
pub const SEND_TRIM: u16 = 1 << 5;
/// `NBD_FLAG_SEND_WRITE_ZEROES`.
pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
/// `NBD_FLAG_CAN_MULTI_CONN`: what one connection flushed, all see.
pub const CAN_MULTI_CONN: u16 = 1 << 8;

// Commands, and a flag of theirs.

/// `NBD_CMD_READ`.
pub const CMD_READ: u16 = 0;
/// `NBD_CMD_WRITE`.
pub const CMD_WRITE: u16 = 1;
/// `NBD_CMD_DISC`.
pub const CMD_DISCONNECT: u16 = 2;
/// `NBD_CMD_FLUSH`.
pub const CMD_FLUSH: u16 = 3;
/// `NBD_CMD_TRIM`.
pub const CMD_TRIM: u16 = 4;
/// `NBD_CMD_FLAG_FUA`: the command is durable when it completes.
pub const FUA: u16 = 1;

// Sizes.

/// Bytes of a request without its data.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of a simple reply without its data.
pub const REPLY_BYTES: usize = 16;
/// Bytes of an option without its data.
pub const OPTION_BYTES: usize = 16;
