//! Queue entries (base 2.0c, clauses 3.3.3.1 and 3.3.3.2).

use zerocopy::little_endian::{U16, U32, U64};

use super::NvmeStatus;

wire! {
    /// A submission queue entry: 64 bytes (base 2.0c, figure 88).
    #[derive(Default)]
    pub struct SubmissionEntry = 64 {
        /// What to do: [`admin`] or [`nvm`].
        pub opcode: u8,
        /// Bits 1:0 fused operation, bits 7:6 PRP (0) or SGL.
        pub flags: u8,
        /// Command identifier: unique among the outstanding commands of the queue.
        pub command_id: U16,
        /// Namespace, from 1; 0xffff_ffff means all.
        pub namespace_id: U32,
        /// Command dword 2.
        pub dword2: U32,
        /// Command dword 3.
        pub dword3: U32,
        /// Metadata pointer.
        pub metadata: U64,
        /// First physical region page entry: may have an offset in the page, in whole dwords.
        pub prp1: U64,
        /// Second page, or the list of pages.
        pub prp2: U64,
        /// Command dword 10.
        pub dword10: U32,
        /// Command dword 11.
        pub dword11: U32,
        /// Command dword 12.
        pub dword12: U32,
        /// Command dword 13.
        pub dword13: U32,
        /// Command dword 14.
        pub dword14: U32,
        /// Command dword 15.
        pub dword15: U32,
    }

    /// A completion queue entry: 16 bytes (base 2.0c, figure 90).
    #[derive(Default)]
    pub struct CompletionEntry = 16 {
        /// Command specific.
        pub dword0: U32,
        /// Command specific (reserved in 1.x).
        pub dword1: U32,
        /// How far the controller has taken entries from the submission queue.
        pub submission_head: U16,
        /// The queue of the command.
        pub submission_queue: U16,
        /// The command.
        pub command_id: U16,
        /// Bit 0 phase tag, bits 15:1 status field.
        pub status_and_phase: U16,
    }
}

impl CompletionEntry {
    /// Bytes before the last dword, the one that holds the phase tag.
    pub const PHASE_DWORD: usize = 12;

    /// The phase tag: inverted with every wrap of the queue.
    pub const fn phase(&self) -> bool {
        self.status_and_phase.get() & 1 == 1
    }
    /// How the command ended.
    pub const fn status(&self) -> NvmeStatus {
        NvmeStatus::from_bits(self.status_and_phase.get() >> 1)
    }
}

/// Admin opcodes (base 2.0c, figure 138).
pub mod admin {
    /// Delete I/O submission queue.
    pub const DELETE_SUBMISSION_QUEUE: u8 = 0x00;
    /// Create I/O submission queue.
    pub const CREATE_SUBMISSION_QUEUE: u8 = 0x01;
    /// Get log page.
    pub const GET_LOG_PAGE: u8 = 0x02;
    /// Delete I/O completion queue.
    pub const DELETE_COMPLETION_QUEUE: u8 = 0x04;
    /// Create I/O completion queue.
    pub const CREATE_COMPLETION_QUEUE: u8 = 0x05;
    /// Identify.
    pub const IDENTIFY: u8 = 0x06;
    /// Abort.
    pub const ABORT: u8 = 0x08;
    /// Set features.
    pub const SET_FEATURES: u8 = 0x09;
    /// Get features.
    pub const GET_FEATURES: u8 = 0x0a;
    /// Asynchronous event request.
    pub const ASYNCHRONOUS_EVENT_REQUEST: u8 = 0x0c;
    /// Namespace management.
    pub const NAMESPACE_MANAGEMENT: u8 = 0x0d;
    /// Namespace attachment.
    pub const NAMESPACE_ATTACHMENT: u8 = 0x15;
    /// Keep Alive (base 2.0c, clause 5.18).
    pub const KEEP_ALIVE: u8 = 0x18;
    /// Format NVM.
    pub const FORMAT_NVM: u8 = 0x80;
    /// Sanitize.
    pub const SANITIZE: u8 = 0x84;
}

/// I/O opcodes of the NVM command set (NVM 1.0c, figure 18).
pub mod nvm {
    /// Flush.
    pub const FLUSH: u8 = 0x00;
    /// Write.
    pub const WRITE: u8 = 0x01;
    /// Read.
    pub const READ: u8 = 0x02;
    /// Write uncorrectable.
    pub const WRITE_UNCORRECTABLE: u8 = 0x04;
    /// Compare.
    pub const COMPARE: u8 = 0x05;
    /// Write zeroes.
    pub const WRITE_ZEROES: u8 = 0x08;
    /// Dataset management.
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    /// Verify.
    pub const VERIFY: u8 = 0x0c;
}
