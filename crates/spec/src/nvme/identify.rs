//! What Identify returns and what Namespace Management takes (base 2.0c, clause 5.17; NVM command
//! set 1.0c, clause 4.1.5).

use zerocopy::little_endian::{U16, U32, U64, U128};

/// Values of CNS, command dword 10 bits 7:0 (base 2.0c, figure 274).
pub mod cns {
    /// Identify namespace of an active namespace; 0xffff_ffff: what all have in common.
    pub const NAMESPACE: u8 = 0x00;
    /// Identify controller.
    pub const CONTROLLER: u8 = 0x01;
    /// Up to 1024 identifiers of active namespaces above the one given.
    pub const ACTIVE_NAMESPACES: u8 = 0x02;
    /// Namespace identification descriptors.
    pub const NAMESPACE_DESCRIPTORS: u8 = 0x03;
    /// Identify namespace, specific to an I/O command set.
    pub const NAMESPACE_OF_COMMAND_SET: u8 = 0x05;
    /// Identify controller, specific to an I/O command set.
    pub const CONTROLLER_OF_COMMAND_SET: u8 = 0x06;
    /// As [`ACTIVE_NAMESPACES`], those of an I/O command set.
    pub const ACTIVE_NAMESPACES_OF_COMMAND_SET: u8 = 0x07;
    /// What a namespace has whatever its I/O command set:
    /// [`IndependentNamespace`](super::IndependentNamespace).
    pub const INDEPENDENT_NAMESPACE: u8 = 0x08;
    /// As [`ACTIVE_NAMESPACES`], whether attached or not.
    pub const ALLOCATED_NAMESPACES: u8 = 0x10;
    /// As [`NAMESPACE`], whether attached or not.
    pub const ALLOCATED_NAMESPACE: u8 = 0x11;
    /// Controllers that a namespace is attached to.
    pub const ATTACHED_CONTROLLERS: u8 = 0x12;
    /// Controllers of the NVM subsystem.
    pub const CONTROLLERS: u8 = 0x13;
    /// As [`ALLOCATED_NAMESPACES`], those of an I/O command set.
    pub const ALLOCATED_NAMESPACES_OF_COMMAND_SET: u8 = 0x1a;
    /// As [`NAMESPACE_OF_COMMAND_SET`], whether attached or not.
    pub const ALLOCATED_NAMESPACE_OF_COMMAND_SET: u8 = 0x1b;
}

wire! {
    /// A power state (base 2.0c, figure 277): 32 bytes.
    #[derive(Default)]
    pub struct PowerStateDescriptor = 32 {
        /// MP: most power, in 0.01 W, or 0.0001 W with [`FINE_POWER`](Self::FINE_POWER).
        pub max_power: U16,
        /// Reserved.
        pub reserved2: u8,
        /// Bit 0 unit of MP, bit 1 no I/O commands in this state.
        pub flags: u8,
        /// ENLAT: most time to enter, in microseconds.
        pub entry_latency_us: U32,
        /// EXLAT: most time to leave, in microseconds.
        pub exit_latency_us: U32,
        /// RRT: rank of read throughput, 0 is best.
        pub read_throughput: u8,
        /// RRL: rank of read latency.
        pub read_latency: u8,
        /// RWT: rank of write throughput.
        pub write_throughput: u8,
        /// RWL: rank of write latency.
        pub write_latency: u8,
        /// IDLP: idle power.
        pub idle_power: U16,
        /// IPS: scale of it, bits 7:6.
        pub idle_power_scale: u8,
        /// Reserved.
        pub reserved19: u8,
        /// ACTP: active power.
        pub active_power: U16,
        /// APS and APW: scale and workload of it.
        pub active_power_scale: u8,
        /// Reserved.
        pub reserved23: [u8; 9],
    }
}

impl PowerStateDescriptor {
    /// In `flags`, MXPS: the unit of the most power is 0.0001 W.
    pub const FINE_POWER: u8 = 1;
    /// In `flags`, NOPS: no I/O command is processed in this state.
    pub const NON_OPERATIONAL: u8 = 2;

    /// Most power, in watts.
    pub fn max_power_watts(&self) -> f64 {
        let unit = if self.flags & Self::FINE_POWER == 0 { 1e-2 } else { 1e-4 };
        f64::from(self.max_power.get()) * unit
    }
}

wire! {
    /// Identify controller (base 2.0c, figure 275): 4096 bytes.
    pub struct IdentifyController = 4096 {
        /// VID: PCI vendor.
        pub vendor: U16,
        /// SSVID: PCI subsystem vendor.
        pub subsystem_vendor: U16,
        /// SN: serial number, ASCII, padded with spaces.
        pub serial: [u8; 20],
        /// MN: model, ASCII, padded with spaces.
        pub model: [u8; 40],
        /// FR: firmware revision, ASCII, padded with spaces.
        pub firmware: [u8; 8],
        /// RAB: recommended arbitration burst, 2^n commands.
        pub arbitration_burst: u8,
        /// IEEE OUI, least significant byte first.
        pub oui: [u8; 3],
        /// CMIC: multi-path and sharing.
        pub multipath: u8,
        /// MDTS: most data in a command, 2^n pages of CAP.MPSMIN; 0 is no limit.
        pub max_transfer: u8,
        /// CNTLID.
        pub controller_id: U16,
        /// VER: as the register VS.
        pub version: U32,
        /// RTD3R: resume from runtime D3, in microseconds.
        pub d3_resume_us: U32,
        /// RTD3E: entry of runtime D3, in microseconds.
        pub d3_entry_us: U32,
        /// OAES: optional asynchronous events.
        pub asynchronous_events: U32,
        /// CTRATT: attributes.
        pub attributes: U32,
        /// RRLS: read recovery levels.
        pub read_recovery_levels: U16,
        /// Reserved.
        pub reserved102: [u8; 9],
        /// CNTRLTYPE: 1 is an I/O controller.
        pub controller_type: u8,
        /// FGUID.
        pub guid: [u8; 16],
        /// CRDT1 to CRDT3: command retry delays, in 100 ms.
        pub retry_delays: [U16; 3],
        /// Reserved, and NVMSR, VWCI, MEC of NVMe-MI.
        pub reserved134: [u8; 122],
        /// OACS: optional admin commands, see [`oacs`].
        pub admin_commands: U16,
        /// ACL: aborts outstanding at most, less one.
        pub abort_limit: u8,
        /// AERL: asynchronous event requests outstanding at most, less one.
        pub event_request_limit: u8,
        /// FRMW: firmware slots in bits 3:1, bit 0: the first is read-only.
        pub firmware_updates: u8,
        /// LPA: bit 2: Get Log Page takes an offset.
        pub log_attributes: u8,
        /// ELPE: entries of the error log, less one.
        pub error_log_entries: u8,
        /// NPSS: power states, less one.
        pub power_states: u8,
        /// AVSCC.
        pub vendor_commands: u8,
        /// APSTA: bit 0: autonomous power state transitions.
        pub autonomous_power: u8,
        /// WCTEMP: warning temperature, in kelvin.
        pub warning_temperature: U16,
        /// CCTEMP: critical temperature, in kelvin.
        pub critical_temperature: U16,
        /// MTFA: longest firmware activation, in 100 ms.
        pub firmware_activation: U16,
        /// HMPRE: preferred host memory buffer, in 4 KiB.
        pub host_memory_preferred: U32,
        /// HMMIN: least host memory buffer, in 4 KiB.
        pub host_memory_min: U32,
        /// TNVMCAP: total capacity, in bytes.
        pub total_capacity: U128,
        /// UNVMCAP: capacity that no namespace has, in bytes.
        pub unallocated_capacity: U128,
        /// RPMBS to FWUG: protected memory, self-test, firmware granularity.
        pub reserved312: [u8; 8],
        /// KAS: granularity of the keep alive timer, in 100 ms; 0: there is none.
        pub keep_alive: U16,
        /// HCTMA to MXTMT: thermal management.
        pub reserved322: [u8; 6],
        /// SANICAP: what Sanitize can do, see [`sanicap`].
        pub sanitize: U32,
        /// HMMINDS to PELS: host memory, sets, groups, asymmetric access.
        pub reserved332: [u8; 180],
        /// SQES: sizes of submission queue entries, 2^n: required in bits 3:0, most in 7:4.
        pub submission_entry_size: u8,
        /// CQES: sizes of completion queue entries, likewise.
        pub completion_entry_size: u8,
        /// MAXCMD: most commands outstanding on a queue, for fabrics; 0 is not reported.
        pub max_commands: U16,
        /// NN: largest namespace identifier.
        pub namespaces: U32,
        /// ONCS: optional I/O commands, see [`oncs`].
        pub nvm_commands: U16,
        /// FUSES: fused operations.
        pub fused_operations: U16,
        /// FNA: bit 0: a format covers all namespaces; bit 1: an erase does.
        pub format_attributes: u8,
        /// VWC: bit 0: there is a volatile write cache; bits 2:1 = 3: Flush of all namespaces.
        pub volatile_write_cache: u8,
        /// AWUN: atomic write unit, in blocks, less one.
        pub atomic_write: U16,
        /// AWUPF: the same when power fails.
        pub atomic_write_power_fail: U16,
        /// ICSVSCC.
        pub vendor_nvm_commands: u8,
        /// NWPC: namespace write protection.
        pub write_protection: u8,
        /// ACWU: atomic compare and write, in blocks, less one.
        pub atomic_compare_write: U16,
        /// OCFS: copy formats.
        pub copy_formats: U16,
        /// SGLS: 0: no scatter-gather lists.
        pub scatter_gather: U32,
        /// MNAN: most namespaces; 0 is NN.
        pub namespaces_allowed: U32,
        /// MAXDNA, MAXCNA and reserved.
        pub reserved544: [u8; 224],
        /// SUBNQN: the subsystem's name, UTF-8, ended by 0.
        pub subsystem_name: [u8; 256],
        /// Reserved, and what fabrics have.
        pub reserved1024: [u8; 1024],
        /// PSD0 to PSD31.
        pub power_state: [PowerStateDescriptor; 32],
        /// Vendor specific.
        pub vendor_specific: [u8; 1024],
    }
}

const _: () = assert!(core::mem::offset_of!(IdentifyController, admin_commands) == 256);
const _: () = assert!(core::mem::offset_of!(IdentifyController, total_capacity) == 280);
const _: () = assert!(core::mem::offset_of!(IdentifyController, sanitize) == 328);
const _: () = assert!(core::mem::offset_of!(IdentifyController, submission_entry_size) == 512);
const _: () = assert!(core::mem::offset_of!(IdentifyController, subsystem_name) == 768);
const _: () = assert!(core::mem::offset_of!(IdentifyController, power_state) == 2048);

/// Bits of OACS (base 2.0c, figure 275).
pub mod oacs {
    /// Format NVM.
    pub const FORMAT_NVM: u16 = 1 << 1;
    /// Namespace Management and Namespace Attachment.
    pub const NAMESPACE_MANAGEMENT: u16 = 1 << 3;
}

/// Bits of SANICAP (base 2.0c, figure 275).
pub mod sanicap {
    /// CES: crypto erase.
    pub const CRYPTO_ERASE: u32 = 1 << 0;
    /// BES: block erase.
    pub const BLOCK_ERASE: u32 = 1 << 1;
    /// OWS: overwrite.
    pub const OVERWRITE: u32 = 1 << 2;
    /// NODMMAS = 2: without deallocation the medium is written once more. Before version 1.4 nothing
    /// is said.
    pub const WRITES_ONCE_MORE: u32 = 2 << 30;
}

/// Bits of ONCS (base 2.0c, figure 275).
pub mod oncs {
    /// Compare.
    pub const COMPARE: u16 = 1 << 0;
    /// Write Uncorrectable.
    pub const WRITE_UNCORRECTABLE: u16 = 1 << 1;
    /// Dataset Management.
    pub const DATASET_MANAGEMENT: u16 = 1 << 2;
    /// Write Zeroes.
    pub const WRITE_ZEROES: u16 = 1 << 3;
    /// Bits SV and SEL of Set and Get Features.
    pub const SAVE_AND_SELECT: u16 = 1 << 4;
    /// Verify.
    pub const VERIFY: u16 = 1 << 7;
}

wire! {
    /// A format of logical blocks (NVM 1.0c, figure 98): 4 bytes.
    #[derive(Default)]
    pub struct LbaFormat {
        /// MS: metadata of a block, in bytes.
        pub metadata_bytes: U16,
        /// LBADS: a block has 2^n bytes, 9 at least; 0: the format is not available.
        pub data_shift: u8,
        /// RP: rank of performance, bits 1:0, 0 is best.
        pub performance: u8,
    }

    /// Identify namespace of the NVM command set (NVM 1.0c, figure 97): 4096 bytes. Namespace Management
    /// takes the same layout, of which it looks at size, capacity, format and protection.
    pub struct IdentifyNamespace = 4096 {
        /// NSZE: size, in blocks.
        pub size: U64,
        /// NCAP: capacity, in blocks.
        pub capacity: U64,
        /// NUSE: blocks in use.
        pub used: U64,
        /// NSFEAT: bit 0 thin provisioning, bit 2 deallocated-block errors, bit 4 NPWG to NOWS are given.
        pub features: u8,
        /// NLBAF: formats, less one.
        pub formats: u8,
        /// FLBAS: the format in use: bits 6:5 and 3:0; bit 4: metadata follows the data.
        pub format: u8,
        /// MC: metadata capabilities.
        pub metadata: u8,
        /// DPC: protection capabilities.
        pub protection_capabilities: u8,
        /// DPS: protection in use.
        pub protection: u8,
        /// NMIC: bit 0: may be shared by controllers.
        pub sharing: u8,
        /// RESCAP: reservations.
        pub reservations: u8,
        /// FPI: progress of a format.
        pub format_progress: u8,
        /// DLFEAT: bits 2:0 = 1: deallocated blocks read as zeroes; bit 3: Write Zeroes may deallocate.
        pub deallocate: u8,
        /// NAWUN: atomic write, in blocks, less one.
        pub atomic_write: U16,
        /// NAWUPF: the same when power fails.
        pub atomic_write_power_fail: U16,
        /// NACWU: atomic compare and write, in blocks, less one.
        pub atomic_compare_write: U16,
        /// NABSN, NABO and NABSPF: atomic boundaries.
        pub atomic_boundaries: [U16; 3],
        /// NOIOB: boundary that commands should not cross, in blocks.
        pub io_boundary: U16,
        /// NVMCAP: capacity that the namespace takes, in bytes.
        pub nvm_capacity: U128,
        /// NPWG: preferred granularity of writes, in blocks, less one.
        pub write_granularity: U16,
        /// NPWA: preferred alignment of writes, in blocks, less one.
        pub write_alignment: U16,
        /// NPDG: preferred granularity of deallocations, in blocks, less one.
        pub deallocate_granularity: U16,
        /// NPDA: preferred alignment of deallocations, in blocks, less one.
        pub deallocate_alignment: U16,
        /// NOWS: optimal size of writes, in blocks, less one.
        pub optimal_write: U16,
        /// MSSRL, MCL, MSRC: limits of Copy; then reserved.
        pub reserved74: [u8; 18],
        /// ANAGRPID.
        pub access_group: U32,
        /// Reserved.
        pub reserved96: [u8; 3],
        /// NSATTR: bit 0: write protected.
        pub attributes: u8,
        /// NVMSETID.
        pub nvm_set: U16,
        /// ENDGID.
        pub endurance_group: U16,
        /// NGUID; all zero: none.
        pub guid: [u8; 16],
        /// EUI64; all zero: none.
        pub eui64: [u8; 8],
        /// LBAF0 to LBAF63.
        pub lba_format: [LbaFormat; 64],
        /// Vendor specific.
        pub vendor_specific: [u8; 3712],
    }
}

const _: () = assert!(core::mem::offset_of!(IdentifyNamespace, nvm_capacity) == 48);
const _: () = assert!(core::mem::offset_of!(IdentifyNamespace, access_group) == 92);
const _: () = assert!(core::mem::offset_of!(IdentifyNamespace, guid) == 104);
const _: () = assert!(core::mem::offset_of!(IdentifyNamespace, lba_format) == 128);

impl IdentifyNamespace {
    /// The number of the format in use.
    pub const fn format_index(&self) -> u8 {
        (self.format & 0xf) | (self.format >> 5 & 3) << 4
    }
    /// The format in use. Bits 6:5 of its number are reserved where 16 formats are enough.
    pub fn format_in_use(&self) -> LbaFormat {
        let bits = if self.formats < 16 { 0xf } else { 0x3f };
        self.lba_format[usize::from(self.format_index() & bits)]
    }
    /// Bytes of a block, without metadata; `None` where the structure names no format.
    pub fn block_bytes(&self) -> Option<u32> {
        self.format_in_use().block_bytes()
    }
}

impl LbaFormat {
    /// Bytes of a block, without metadata; `None` where the format is not available.
    pub fn block_bytes(&self) -> Option<u32> {
        (9..32).contains(&self.data_shift).then(|| 1 << self.data_shift)
    }
}

wire! {
    /// I/O command set independent identify namespace (base 2.0c, figure 280): 4096 bytes.
    pub struct IndependentNamespace = 4096 {
        /// NSFEAT: bit 3: identifiers are never used again.
        pub features: u8,
        /// NMIC: bit 0: it may be attached to several controllers.
        pub sharing: u8,
        /// RESCAP: reservations.
        pub reservations: u8,
        /// FPI: progress of a format.
        pub format_progress: u8,
        /// ANAGRPID.
        pub access_group: U32,
        /// NSATTR: bit 0: write protected.
        pub attributes: u8,
        /// Reserved.
        pub reserved9: u8,
        /// NVMSETID.
        pub nvm_set: U16,
        /// ENDGID.
        pub endurance_group: U16,
        /// NSTAT: see [`READY`](Self::READY).
        pub status: u8,
        /// Reserved.
        pub reserved15: [u8; 4081],
    }
}

const _: () = assert!(core::mem::offset_of!(IndependentNamespace, status) == 14);

impl IndependentNamespace {
    /// In `status`, NRDY: I/O commands are processed.
    pub const READY: u8 = 1;
}

wire! {
    /// Head of a namespace identification descriptor (base 2.0c, figure 278); the identifier follows.
    #[derive(Default)]
    pub struct NamespaceDescriptor {
        /// NIDT: 1 EUI64, 2 NGUID, 3 UUID, 4 command set; 0 ends the list.
        pub kind: u8,
        /// NIDL: bytes of the identifier: 8, 16, 16, 1.
        pub bytes: u8,
        /// Reserved.
        pub reserved: [u8; 2],
    }
}

impl NamespaceDescriptor {
    /// An IEEE extended unique identifier: 8 bytes.
    pub const EUI64: u8 = 1;
    /// A namespace globally unique identifier: 16 bytes.
    pub const NGUID: u8 = 2;
    /// The command set: 1 byte, 0 is NVM.
    pub const COMMAND_SET: u8 = 4;
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::IdentifyNamespace;

    #[test]
    fn the_format_in_use_is_named_by_six_bits() {
        let mut identify = IdentifyNamespace::new_zeroed();
        // Two formats: 512 B, and 4096 B with 8 B of metadata, in use.
        identify.lba_format[0].data_shift = 9;
        identify.lba_format[1].data_shift = 12;
        identify.format = 1;
        assert_eq!((identify.format_index(), identify.block_bytes()), (1, Some(4096)));
        // Bit 4 is the place of metadata.
        identify.format = 0x10;
        assert_eq!((identify.format_index(), identify.block_bytes()), (0, Some(512)));
        identify.format = 0x41;
        identify.lba_format[33].data_shift = 13;
        assert_eq!(identify.block_bytes(), Some(4096), "two formats have no use for bit 6");
        identify.formats = 39;
        assert_eq!((identify.format_index(), identify.block_bytes()), (33, Some(8192)));
        // No block has that size.
        identify.lba_format[33].data_shift = 200;
        assert_eq!(identify.block_bytes(), None);
    }
}
