//! Blocks of parameter data with a fixed layout.

use zerocopy::big_endian::{U16, U32, U64};

/// Codes of vital product data pages (SPC-4, table 593; SBC-3, table 205).
pub mod vpd {
    /// Supported pages.
    pub const SUPPORTED: u8 = 0x00;
    /// Unit serial number.
    pub const SERIAL_NUMBER: u8 = 0x80;
    /// Device identification.
    pub const IDENTIFICATION: u8 = 0x83;
    /// Extended INQUIRY data.
    pub const EXTENDED_INQUIRY: u8 = 0x86;
    /// Block limits.
    pub const BLOCK_LIMITS: u8 = 0xb0;
    /// Block device characteristics.
    pub const CHARACTERISTICS: u8 = 0xb1;
    /// Logical block provisioning.
    pub const PROVISIONING: u8 = 0xb2;
}

wire! {
    /// Standard INQUIRY data (SPC-4, table 174), with the eight version descriptors.
    pub struct StandardInquiry = 96 {
        /// Bits 7:5 peripheral qualifier, bits 4:0 device type.
        pub peripheral: u8,
        /// Bit 7 removable medium, bit 6 logical unit conglomerate.
        pub removable: u8,
        /// Version: 6 claims SPC-4.
        pub version: u8,
        /// Bit 5 NORMACA, bit 4 HISUP, bits 3:0 response data format: 2.
        pub response_format: u8,
        /// Bytes that follow this one.
        pub additional_length: u8,
        /// SCCS, TPGS, 3PC, PROTECT.
        pub flags_5: u8,
        /// ENCSERV, MULTIP.
        pub flags_6: u8,
        /// Bit 1 CMDQUE.
        pub flags_7: u8,
        /// T10 vendor identification, padded with blanks.
        pub vendor: [u8; 8],
        /// Product identification, padded with blanks.
        pub product: [u8; 16],
        /// Product revision level.
        pub revision: [u8; 4],
        /// Vendor specific, and the parallel interface's byte.
        pub vendor_specific: [u8; 22],
        /// Standards that the device claims (SPC-4, annex E.8).
        pub versions: [U16; 8],
        /// Reserved.
        pub reserved: [u8; 22],
    }

    /// Block limits VPD page (SBC-3, table 206).
    #[derive(Default)]
    pub struct BlockLimitsPage = 64 {
        /// As in standard INQUIRY data.
        pub peripheral: u8,
        /// 0xb0.
        pub page_code: u8,
        /// 60.
        pub page_length: U16,
        /// Bit 0 WSNZ: WRITE SAME refuses a length of zero.
        pub flags: u8,
        /// Longest COMPARE AND WRITE, in blocks; 0: there is none.
        pub compare_and_write_blocks_max: u8,
        /// Optimal granularity of transfers, in blocks; 0: not reported.
        pub transfer_granularity_blocks: U16,
        /// Longest transfer, in blocks; 0: not limited.
        pub transfer_blocks_max: U32,
        /// Optimal transfer, in blocks; 0: not reported.
        pub transfer_blocks_optimal: U32,
        /// Longest PRE-FETCH, in blocks.
        pub prefetch_blocks_max: U32,
        /// Most blocks of one UNMAP.
        pub unmap_blocks_max: U32,
        /// Most descriptors of one UNMAP.
        pub unmap_descriptors_max: U32,
        /// Optimal granularity of UNMAP, in blocks.
        pub unmap_granularity_blocks: U32,
        /// Bit 31: the alignment is valid; below, the first block that is aligned.
        pub unmap_alignment: U32,
        /// Longest WRITE SAME, in blocks; 0: not limited.
        pub write_same_blocks_max: U64,
        /// Limits of WRITE ATOMIC (SBC-4); zero: there is none.
        pub atomic: [u8; 20],
    }

    /// Block device characteristics VPD page (SBC-3, table 208).
    pub struct CharacteristicsPage = 64 {
        /// As in standard INQUIRY data.
        pub peripheral: u8,
        /// 0xb1.
        pub page_code: u8,
        /// 60.
        pub page_length: U16,
        /// 1: no medium turns.
        pub rotation_rate: U16,
        /// Product type; 0: not indicated.
        pub product_type: u8,
        /// Bits 7:6 WABEREQ, bits 5:4 WACEREQ, bits 3:0 nominal form factor.
        pub form_factor: u8,
        /// Bit 1 FUAB, bit 0 VBULS.
        pub flags: u8,
        /// Reserved.
        pub reserved: [u8; 55],
    }

    /// Logical block provisioning VPD page without a provisioning group (SBC-3, table 211).
    pub struct LogicalBlockProvisioningPage {
        /// As in standard INQUIRY data.
        pub peripheral: u8,
        /// 0xb2.
        pub page_code: u8,
        /// 4.
        pub page_length: U16,
        /// Threshold exponent; 0: no thresholds.
        pub threshold_exponent: u8,
        /// Bit 7 LBPU, bit 6 LBPWS, bit 5 LBPWS10, bits 4:2 LBPRZ, bit 1 ANC_SUP, bit 0 DP.
        pub flags: u8,
        /// Bits 2:0 provisioning type: 0 not reported, 1 resource, 2 thin.
        pub provisioning_type: u8,
        /// Reserved.
        pub reserved: u8,
    }

    /// Parameter data of READ CAPACITY (10) (SBC-3, table 64).
    pub struct ReadCapacity10Data {
        /// The last block; all ones where READ CAPACITY (16) is needed.
        pub last_lba: U32,
        /// Bytes of a block.
        pub block_bytes: U32,
    }

    /// Parameter data of READ CAPACITY (16) (SBC-3, table 66).
    pub struct ReadCapacity16Data = 32 {
        /// The last block.
        pub last_lba: U64,
        /// Bytes of a block.
        pub block_bytes: U32,
        /// Bits 3:1 P_TYPE, bit 0 PROT_EN.
        pub protection: u8,
        /// Bits 7:4 P_I_EXPONENT, bits 3:0 logical blocks per physical block exponent.
        pub exponents: u8,
        /// Bit 15 LBPME, bit 14 LBPRZ, bits 13:0 lowest aligned block.
        pub provisioning: U16,
        /// Reserved.
        pub reserved: [u8; 16],
    }

    /// LBA status descriptor (SBC-3, table 35).
    pub struct BlockStatusDescriptor {
        /// First block.
        pub lba: U64,
        /// Blocks.
        pub blocks: U32,
        /// 0 mapped or unknown, 1 deallocated, 2 anchored.
        pub provisioning: u8,
        /// Reserved.
        pub reserved: [u8; 3],
    }

    /// Head of the parameter list of UNMAP (SBC-3, table 90).
    #[derive(Default)]
    pub struct UnmapHeader {
        /// Bytes that follow this field.
        pub data_length: U16,
        /// Bytes of descriptors.
        pub descriptors_length: U16,
        /// Reserved.
        pub reserved: [u8; 4],
    }

    /// Block descriptor of UNMAP (SBC-3, table 91).
    #[derive(Default)]
    pub struct UnmapDescriptor {
        /// First block.
        pub lba: U64,
        /// Blocks.
        pub blocks: U32,
        /// Reserved.
        pub reserved: [u8; 4],
    }

    /// Command timeouts descriptor (SPC-4, table 305).
    pub struct TimeoutDescriptor = 12 {
        /// Bytes that follow: 10.
        pub length: U16,
        /// Reserved.
        pub reserved: u8,
        /// Depends on the command.
        pub command_specific: u8,
        /// Nominal time to process the command, in seconds; 0: not reported.
        pub nominal_seconds: U32,
        /// Recommended timeout, in seconds; 0: not reported.
        pub recommended_seconds: U32,
    }
}
