//! iSCSI: numbers of its protocol data units (RFC 7143, clause 11). All numbers are big-endian on the wire.

/// The port that IANA assigned to iSCSI targets.
pub const PORT: u16 = 3260;

/// Bytes of the basic header segment.
pub const BHS_BYTES: usize = 48;

/// A tag that stands for none.
pub const NO_TAG: u32 = 0xffff_ffff;

/// Bit I of byte 0: the command is not numbered in its turn.
pub const IMMEDIATE: u8 = 0x40;
/// The final bit of byte 1, in many PDUs; bit T of login.
pub const FINAL: u8 = 0x80;
/// Bit C of login and text: the text goes on in the next PDU.
pub const CONTINUE: u8 = 0x40;

/// Bit R of SCSI Command: data to the initiator.
pub const READ: u8 = 0x40;
/// Bit W of SCSI Command: data from the initiator.
pub const WRITE: u8 = 0x20;
/// Bit U of SCSI Response and Data-In: less data than expected.
pub const UNDERFLOW: u8 = 0x02;
/// Bit S of Data-In: the status is in it.
pub const STATUS: u8 = 0x01;

/// Operation codes (RFC 7143, clause 11.2.1.2).
pub mod opcode {
    /// NOP-Out.
    pub const NOP_OUT: u8 = 0x00;
    /// SCSI Command.
    pub const SCSI_COMMAND: u8 = 0x01;
    /// Task Management Function Request.
    pub const TASK_MANAGEMENT: u8 = 0x02;
    /// Login Request.
    pub const LOGIN: u8 = 0x03;
    /// Text Request.
    pub const TEXT: u8 = 0x04;
    /// SCSI Data-Out.
    pub const DATA_OUT: u8 = 0x05;
    /// Logout Request.
    pub const LOGOUT: u8 = 0x06;
    /// SNACK Request.
    pub const SNACK: u8 = 0x10;
    /// NOP-In.
    pub const NOP_IN: u8 = 0x20;
    /// SCSI Response.
    pub const SCSI_RESPONSE: u8 = 0x21;
    /// Task Management Function Response.
    pub const TASK_MANAGEMENT_RESPONSE: u8 = 0x22;
    /// Login Response.
    pub const LOGIN_RESPONSE: u8 = 0x23;
    /// Text Response.
    pub const TEXT_RESPONSE: u8 = 0x24;
    /// SCSI Data-In.
    pub const DATA_IN: u8 = 0x25;
    /// Logout Response.
    pub const LOGOUT_RESPONSE: u8 = 0x26;
    /// Ready To Transfer.
    pub const READY_TO_TRANSFER: u8 = 0x31;
    /// Asynchronous Message.
    pub const ASYNC_MESSAGE: u8 = 0x32;
    /// Reject.
    pub const REJECT: u8 = 0x3f;
}

/// Stages of login (RFC 7143, clause 11.12.3).
pub mod stage {
    /// Security negotiation.
    pub const SECURITY: u8 = 0;
    /// Operational negotiation.
    pub const OPERATIONAL: u8 = 1;
    /// The full-feature phase.
    pub const FULL_FEATURE: u8 = 3;
}

/// Reasons of Reject (RFC 7143, clause 11.17.1).
pub mod reject {
    /// The data digest was wrong.
    pub const DATA_DIGEST: u8 = 0x02;
    /// SNACK is not taken.
    pub const SNACK: u8 = 0x03;
    /// The PDU breaks the protocol.
    pub const PROTOCOL_ERROR: u8 = 0x04;
    /// The command is not supported.
    pub const NOT_SUPPORTED: u8 = 0x05;
    /// Too many immediate commands.
    pub const TOO_MANY_IMMEDIATE: u8 = 0x06;
    /// The task is in progress.
    pub const TASK_IN_PROGRESS: u8 = 0x07;
}

/// Events of Asynchronous Message (RFC 7143, clause 11.9.1).
pub mod event {
    /// A SCSI event, with sense data.
    pub const SCSI: u8 = 0;
    /// The target wants the initiator to log out.
    pub const LOGOUT: u8 = 1;
    /// The target will drop this connection.
    pub const DROP_CONNECTION: u8 = 2;
    /// The target will drop all connections of the session.
    pub const DROP_SESSION: u8 = 3;
    /// The target wants to negotiate parameters anew.
    pub const NEGOTIATE: u8 = 4;
}
