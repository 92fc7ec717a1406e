//! Log pages (base 2.0c, clause 5.16.1).

use zerocopy::little_endian::{U16, U32, U64, U128};

/// Log page identifiers, command dword 10 bits 7:0 (base 2.0c, figure 202).
pub mod page {
    /// 256 dwords, one for each page: bit 0, it is there. Since version 2.0.
    pub const SUPPORTED: u8 = 0x00;
    /// [`ErrorLogEntry`](super::ErrorLogEntry)s, the newest first.
    pub const ERROR: u8 = 0x01;
    /// [`SmartLog`](super::SmartLog).
    pub const SMART: u8 = 0x02;
    /// [`FirmwareSlotLog`](super::FirmwareSlotLog).
    pub const FIRMWARE_SLOT: u8 = 0x03;
    /// Up to 1024 namespace identifiers, dwords, ended by 0.
    pub const CHANGED_NAMESPACES: u8 = 0x04;
    /// 256 dwords for admin commands and 256 for I/O commands, see [`effects`](super::effects).
    pub const COMMAND_EFFECTS: u8 = 0x05;
    /// 256 dwords, one for each feature, see [`effects`](super::effects). Since version 2.0.
    pub const FEATURE_EFFECTS: u8 = 0x12;
    /// 256 dwords, one for each command of NVMe-MI Send and Receive, and 3072 reserved bytes. Since version 2.0.
    pub const MI_COMMAND_EFFECTS: u8 = 0x13;
    /// [`SanitizeLog`](super::SanitizeLog). Since version 1.3.
    pub const SANITIZE: u8 = 0x81;
}

/// What commands and features do (base 2.0c, figures 211 and 256).
pub mod effects {
    /// It is supported.
    pub const SUPPORTED: u32 = 1;
    /// User data may change.
    pub const DATA: u32 = 1 << 1;
    /// What a namespace can do may change, as its block size.
    pub const NAMESPACE_CAPABILITY: u32 = 1 << 2;
    /// Which namespaces there are may change.
    pub const NAMESPACE_INVENTORY: u32 = 1 << 3;
    /// Of a command: no other may be under way for the namespace.
    pub const ALONE_IN_NAMESPACE: u32 = 1 << 16;
    /// Of a command: no other may be under way for any namespace.
    pub const ALONE: u32 = 2 << 16;
    /// Of a command or a feature: its scope is a namespace.
    pub const OF_NAMESPACE: u32 = 1 << 20;
    /// Of a command or a feature: its scope is the controller.
    pub const OF_CONTROLLER: u32 = 1 << 21;
    /// Of a command or a feature: its scope is the NVM subsystem.
    pub const OF_SUBSYSTEM: u32 = 1 << 25;
    /// All bits that may be a scope. Since version 2.0.
    pub const SCOPE: u32 = 0xfff << 20;
}

wire! {
    /// An entry of the error log (base 2.0c, figure 206): 64 bytes.
    pub struct ErrorLogEntry = 64 {
        /// How many errors there were, with this one; 0: the entry is empty.
        pub count: U64,
        /// The submission queue of the command; 0xffff: none.
        pub queue: U16,
        /// The command; 0xffff: none.
        pub command: U16,
        /// The status field in bits 15:1, the phase tag in bit 0.
        pub status: U16,
        /// Byte of the command in bits 7:0, its bit in 10:8; 0xffff: not specific.
        pub location: U16,
        /// The first block that failed.
        pub lba: U64,
        /// The namespace.
        pub namespace: U32,
        /// Vendor specific log page with more, 0: none.
        pub vendor_page: u8,
        /// TRTYPE: transport of fabrics; 0: none.
        pub transport: u8,
        /// Reserved, command and transport specific.
        pub reserved30: [u8; 34],
    }

    /// SMART / health information (base 2.0c, figure 207): 512 bytes.
    pub struct SmartLog = 512 {
        /// Bits: 0 spare, 1 temperature, 2 reliability, 3 read-only, 4 backup of volatile memory.
        pub critical_warning: u8,
        /// Temperature, in kelvin (not on a whole word).
        pub temperature: [u8; 2],
        /// Spare left, in percent.
        pub available_spare: u8,
        /// Spare below which a warning is due, in percent.
        pub spare_threshold: u8,
        /// Endurance used, in percent, to 255.
        pub percentage_used: u8,
        /// Endurance group summary.
        pub endurance_group_warning: u8,
        /// Reserved.
        pub reserved7: [u8; 25],
        /// Data read, in thousands of 512 bytes, rounded up.
        pub data_units_read: U128,
        /// Data written, in thousands of 512 bytes, rounded up.
        pub data_units_written: U128,
        /// Read, Compare and Verify commands.
        pub host_reads: U128,
        /// Write commands.
        pub host_writes: U128,
        /// Time with I/O commands outstanding, in minutes.
        pub busy_minutes: U128,
        /// Power cycles.
        pub power_cycles: U128,
        /// Hours with power on.
        pub power_on_hours: U128,
        /// Power losses without shutdown.
        pub unsafe_shutdowns: U128,
        /// Unrecovered errors of the medium.
        pub media_errors: U128,
        /// Entries that the error log has had.
        pub error_log_entries: U128,
        /// Time above the warning temperature, in minutes.
        pub warning_minutes: U32,
        /// Time above the critical temperature, in minutes.
        pub critical_minutes: U32,
        /// Further sensors, in kelvin; 0: not there.
        pub sensors: [U16; 8],
        /// Thermal management counters and reserved.
        pub reserved216: [u8; 296],
    }
}

const _: () = assert!(core::mem::offset_of!(SmartLog, data_units_read) == 32);
const _: () = assert!(core::mem::offset_of!(SmartLog, warning_minutes) == 192);

impl SmartLog {
    /// In `critical_warning`: a temperature is at or beyond a threshold.
    pub const TEMPERATURE: u8 = 1 << 1;
    /// In `critical_warning`: the medium is read-only.
    pub const READ_ONLY: u8 = 1 << 3;
}

wire! {
    /// Firmware slots (base 2.0c, figure 208): 512 bytes.
    pub struct FirmwareSlotLog = 512 {
        /// AFI: the slot in use in bits 2:0, the one of the next reset in 6:4.
        pub active: u8,
        /// Reserved.
        pub reserved1: [u8; 7],
        /// FRS1 to FRS7: revisions, ASCII.
        pub revision: [[u8; 8]; 7],
        /// Reserved.
        pub reserved64: [u8; 448],
    }

    /// Sanitize status (base 2.0c, figure 267): 512 bytes.
    pub struct SanitizeLog = 512 {
        /// SPROG: how much is done, in 65536ths; ffffh where none is in progress.
        pub progress: U16,
        /// SSTAT: see [`STATUS`](Self::STATUS), completed passes of an overwrite in bits 7:3, and
        /// [`ERASED`](Self::ERASED).
        pub status: U16,
        /// SCDW10: command dword 10 of the Sanitize command that began the most recent operation.
        pub dword10: U32,
        /// ETO: what an overwrite of 16 passes takes, in seconds; [`UNKNOWN`](Self::UNKNOWN): not told.
        pub overwrite_seconds: U32,
        /// ETBE: a block erase.
        pub block_erase_seconds: U32,
        /// ETCE: a crypto erase.
        pub crypto_erase_seconds: U32,
        /// ETOND: the overwrite without deallocation, where that writes the medium once more.
        pub overwrite_allocated_seconds: U32,
        /// ETBEND: the same of the block erase.
        pub block_erase_allocated_seconds: U32,
        /// ETCEND: the same of the crypto erase.
        pub crypto_erase_allocated_seconds: U32,
        /// Reserved.
        pub reserved32: [u8; 480],
    }
}

impl SanitizeLog {
    /// In `status`: one of the following.
    pub const STATUS: u16 = 7;
    /// No sanitize operation was ever begun.
    pub const NEVER: u16 = 0;
    /// The most recent one has completed.
    pub const SANITIZED: u16 = 1;
    /// One is in progress.
    pub const IN_PROGRESS: u16 = 2;
    /// The most recent one has failed.
    pub const FAILED: u16 = 3;
    /// The most recent one has completed, and deallocated though that was not wanted.
    pub const DEALLOCATED: u16 = 4;
    /// In `status`, global data erased: nothing was written since the last successful operation, or,
    /// without one, since the device was made.
    pub const ERASED: u16 = 1 << 8;
    /// In `progress`: nothing is in progress.
    pub const NO_PROGRESS: u16 = 0xffff;
    /// A time that is not told.
    pub const UNKNOWN: u32 = u32::MAX;
}

/// Command dword 10 of Sanitize (base 2.0c, figure 304).
pub mod sanitize {
    /// SANACT in bits 2:0: leave the failure mode.
    pub const EXIT_FAILURE_MODE: u32 = 1;
    /// SANACT: block erase.
    pub const BLOCK_ERASE: u32 = 2;
    /// SANACT: overwrite.
    pub const OVERWRITE: u32 = 3;
    /// SANACT: crypto erase.
    pub const CRYPTO_ERASE: u32 = 4;
    /// AUSE: where it fails, the failure mode can be left.
    pub const UNRESTRICTED_EXIT: u32 = 1 << 3;
    /// OWPASS in bits 7:4: passes of an overwrite, 0 for 16.
    pub const PASSES_SHIFT: u32 = 4;
    /// OIPBP: the pattern is inverted between passes; the last pass writes it as in dword 11.
    pub const INVERT: u32 = 1 << 8;
    /// NDAS: no deallocation afterwards.
    pub const NO_DEALLOCATION: u32 = 1 << 9;
}
