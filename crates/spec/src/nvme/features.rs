//! Features, asynchronous events and command data (base 2.0c, clauses 5.2, 5.27; NVM 1.0c, 3.2.3).

use zerocopy::little_endian::{U32, U64};

/// Feature identifiers, command dword 10 bits 7:0 (base 2.0c, figure 317; NVM 1.0c, figure 84).
pub mod feature {
    /// Burst in bits 2:0 as 2^n (7: no limit), weights less one: low 15:8, medium 23:16, high 31:24.
    pub const ARBITRATION: u8 = 0x01;
    /// The power state in bits 4:0, a hint at the workload in 7:5.
    pub const POWER_MANAGEMENT: u8 = 0x02;
    /// Types of ranges of blocks, 64 bytes each, up to 64; of a namespace.
    pub const LBA_RANGE_TYPE: u8 = 0x03;
    /// Threshold in kelvin in bits 15:0, sensor in 19:16, over or under in 21:20.
    pub const TEMPERATURE_THRESHOLD: u8 = 0x04;
    /// Time-limited error recovery in bits 15:0, in 100 ms; of a namespace.
    pub const ERROR_RECOVERY: u8 = 0x05;
    /// Bit 0: the volatile write cache is on.
    pub const VOLATILE_WRITE_CACHE: u8 = 0x06;
    /// I/O queues less one: submission in bits 15:0, completion in 31:16.
    pub const NUMBER_OF_QUEUES: u8 = 0x07;
    /// Entries less one in bits 7:0, time in 15:8 in 100 us.
    pub const INTERRUPT_COALESCING: u8 = 0x08;
    /// Vector in bits 15:0, bit 16: it is not coalesced.
    pub const INTERRUPT_VECTOR: u8 = 0x09;
    /// Bit 0: writes need not be atomic beyond what survives a power failure.
    pub const WRITE_ATOMICITY: u8 = 0x0a;
    /// Which asynchronous events are reported: bits of [`SmartLog::critical_warning`] in 7:0, bit 8:
    /// namespace attributes.
    ///
    /// [`SmartLog::critical_warning`]: crate::nvme::SmartLog::critical_warning
    pub const ASYNCHRONOUS_EVENTS: u8 = 0x0b;
    /// Bit 0: on; the table is data: 32 entries of 8 bytes.
    pub const AUTONOMOUS_POWER: u8 = 0x0c;
    /// Time without a Keep Alive command after which the host counts as gone, in milliseconds; 0: forever.
    pub const KEEP_ALIVE: u8 = 0x0f;
    /// What the host understands, 512 bytes of data: byte 0 (ACRE) delays of a retry.
    pub const HOST_BEHAVIOR: u8 = 0x16;
}

/// Which value of a feature Get Features gives, command dword 10 bits 10:8 (base 2.0c, figure 195).
pub mod select {
    /// The value in force.
    pub const CURRENT: u8 = 0;
    /// The value after a reset, if none was saved.
    pub const DEFAULT: u8 = 1;
    /// Bits: 0 can be saved, 1 belongs to a namespace, 2 can be changed.
    pub const CAPABILITIES: u8 = 3;
}

wire! {
    /// An entry of the autonomous power state table (base 2.0c, figure 330): bits 7:3 the state to go
    /// to, bits 31:8 the time of idleness before it, in milliseconds; all zero: stay.
    #[derive(Default)]
    pub struct AutonomousTransition {
        /// Bits 7:3 ITPS, 31:8 ITPT.
        pub target_and_time: U32,
        /// Reserved.
        pub reserved: U32,
    }
}

impl AutonomousTransition {
    /// To `state` after `idle_ms` (at most 2^24 - 1) without a command.
    pub const fn new(state: u8, idle_ms: u32) -> AutonomousTransition {
        let bits = (state as u32 & 31) << 3 | idle_ms << 8;
        AutonomousTransition { target_and_time: U32::new(bits), reserved: U32::ZERO }
    }
    /// The state to go to.
    pub const fn target(self) -> u8 {
        (self.target_and_time.get() >> 3 & 31) as u8
    }
    /// Idleness before it, in milliseconds; 0: no transition.
    pub const fn idle_ms(self) -> u32 {
        self.target_and_time.get() >> 8
    }
}

wire! {
    /// An entry of LBA Range Type (NVM 1.0c, clause 4.1.3.1): 64 bytes, up to 64 of them.
    pub struct RangeType = 64 {
        /// What uses the range; 0: anything.
        pub kind: u8,
        /// Bit 0: it may be overwritten; bit 1: it should be hidden.
        pub attributes: u8,
        /// Reserved.
        pub reserved2: [u8; 14],
        /// The first block.
        pub first: U64,
        /// Blocks, less one.
        pub blocks: U64,
        /// A unique identifier.
        pub guid: [u8; 16],
        /// Reserved.
        pub reserved48: [u8; 16],
    }

    /// A range of Dataset Management (NVM 1.0c, figure 44): 16 bytes, up to 256 in a command.
    #[derive(Default)]
    pub struct DatasetRange {
        /// Hints: access frequency in bits 3:0, latency 5:4, sequential read 8, write 9, write soon 10,
        /// size of a command 31:24.
        pub attributes: U32,
        /// Blocks.
        pub blocks: U32,
        /// The first block.
        pub first: U64,
    }
}

/// Command dword 11 of Dataset Management (NVM 1.0c, figure 43).
pub mod dataset {
    /// IDR: the ranges will be read as a whole.
    pub const INTEGRAL_READ: u32 = 1;
    /// AD: the ranges hold no data any more.
    pub const DEALLOCATE: u32 = 4;
}

/// Dword 0 of a completed Asynchronous Event Request (base 2.0c, figure 146).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsynchronousEvent {
    /// Bits 2:0: 0 error, 1 health, 2 notice, 6 of an I/O command set.
    pub kind: u8,
    /// Bits 15:8, by kind.
    pub information: u8,
    /// Bits 23:16: reading this log page lets the next event of the kind through.
    pub page: u8,
}

impl AsynchronousEvent {
    /// Error: a doorbell that no queue has was written.
    pub const INVALID_DOORBELL: AsynchronousEvent = AsynchronousEvent::new(0, 0, 1);
    /// Error: a doorbell got a value that it cannot have.
    pub const INVALID_DOORBELL_VALUE: AsynchronousEvent = AsynchronousEvent::new(0, 1, 1);
    /// Health: the subsystem's reliability is degraded.
    pub const RELIABILITY: AsynchronousEvent = AsynchronousEvent::new(1, 0, 2);
    /// Health: a temperature is at or beyond a threshold.
    pub const TEMPERATURE: AsynchronousEvent = AsynchronousEvent::new(1, 1, 2);
    /// Notice: namespaces were changed.
    pub const NAMESPACE_CHANGED: AsynchronousEvent = AsynchronousEvent::new(2, 0, 4);

    /// I/O command set: a sanitize operation has ended, well or not.
    pub const SANITIZE_COMPLETED: AsynchronousEvent = AsynchronousEvent::new(6, 1, 0x81);

    const fn new(kind: u8, information: u8, page: u8) -> AsynchronousEvent {
        AsynchronousEvent { kind, information, page }
    }
    /// From dword 0.
    pub const fn from_dword(dword: u32) -> AsynchronousEvent {
        AsynchronousEvent::new(dword as u8 & 7, (dword >> 8) as u8, (dword >> 16) as u8)
    }
    /// As dword 0.
    pub const fn dword(self) -> u32 {
        self.kind as u32 | (self.information as u32) << 8 | (self.page as u32) << 16
    }
}
