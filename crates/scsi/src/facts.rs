//! The facts about the controller and its namespaces that the translator needs.

use ssdyno_spec::nvme::{IdentifyController, IdentifyNamespace};
use zerocopy::little_endian::U16;
use zerocopy::transmute_ref;

/// The memory page that [`ControllerFacts::from_identify`] reckons MDTS in, where CAP.MPSMIN is 0.
const PAGE_BYTES: u32 = 4096;

/// Formats that Identify Namespace has room for (NVM 1.0c, figure 97).
pub(crate) const FORMATS_MAX: usize = 64;

/// Why a namespace cannot be shown as a logical unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FactsError {
    /// There is no room for metadata or protection information in the path (S1-46).
    #[error(
        "namespace {nsid} carries {metadata_bytes} bytes of metadata per block, which are not translated; format it without metadata"
    )]
    Metadata {
        /// The namespace.
        nsid: u32,
        /// What each block carries.
        metadata_bytes: u16,
    },
    /// SCSI counts blocks of at least 512 bytes, and the size must be a power of two.
    #[error("namespace {nsid} has blocks of {block_bytes} bytes; 512 to 65536 are translated")]
    BlockSize {
        /// The namespace.
        nsid: u32,
        /// Its block.
        block_bytes: u32,
    },
    /// A namespace of no blocks.
    #[error("namespace {nsid} is empty; create it with a size")]
    Empty {
        /// The namespace.
        nsid: u32,
    },
    /// The same identifier twice, zero, or one beyond the LUNs that REPORT LUNS can name.
    #[error("namespace identifier {nsid} is zero, used twice or above {most}")]
    Identifier {
        /// The namespace.
        nsid: u32,
        /// The largest that is translated.
        most: u32,
    },
}

/// Commands and features that a controller may have (Identify Controller, base 2.0c, figure 275).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Optional {
    /// Compare (ONCS bit 0).
    pub compare: bool,
    /// Dataset management (ONCS bit 2).
    pub dataset_management: bool,
    /// Write zeroes (ONCS bit 3).
    pub write_zeroes: bool,
    /// Default and saved values of features can be read (ONCS bit 4).
    pub feature_select: bool,
    /// The volatile write cache can be switched for good: bit 0 of what Get Features says of feature
    /// 06h with SELECT 011b (base 2.0c, clause 5.15). Identify does not say it.
    pub saveable_cache: bool,
    /// Verify (ONCS bit 7).
    pub verify: bool,
    /// Compare and write, fused (FUSES bit 0).
    pub fused_compare_write: bool,
    /// Format NVM (OACS bit 1).
    pub format: bool,
    /// Sanitize: overwrite (SANICAP bit 2) that need not deallocate (bit 29 is clear).
    pub sanitize_overwrite: bool,
    /// Sanitize: block erase (SANICAP bit 1).
    pub sanitize_block_erase: bool,
    /// Sanitize: crypto erase (SANICAP bit 0).
    pub sanitize_crypto_erase: bool,
}

impl Optional {
    /// There is a way to sanitize.
    pub(crate) fn sanitizes(&self) -> bool {
        self.sanitize_overwrite || self.sanitize_block_erase || self.sanitize_crypto_erase
    }
}

/// The controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerFacts {
    /// PCI vendor identifier (VID).
    pub vendor_id: u16,
    /// Serial number (SN), ASCII padded with blanks.
    pub serial: [u8; 20],
    /// Model number (MN), ASCII padded with blanks.
    pub model: [u8; 40],
    /// Firmware revision (FR), ASCII padded with blanks.
    pub firmware: [u8; 8],
    /// Most bytes of one command (MDTS); 0: not limited.
    pub transfer_bytes_max: u32,
    /// Number of the deepest power state (NPSS).
    pub power_state_max: u8,
    /// Blocks that a fused compare and write does at once (ACWU + 1).
    pub compare_write_blocks_max: u32,
    /// There is a volatile write cache (VWC bit 0).
    pub volatile_write_cache: bool,
    /// Flush takes the identifier of all namespaces. VWC bits 2:1 report this; before version 1.4 they are undefined,
    /// and the cache is flushed.
    pub flush_of_all: bool,
    /// Its other capabilities.
    pub optional: Optional,
}

impl ControllerFacts {
    /// A controller of which nothing is known but its `model`: no optional command, no limit.
    pub fn named(model: &str, serial: &str, firmware: &str) -> ControllerFacts {
        ControllerFacts {
            vendor_id: 0,
            serial: padded(serial),
            model: padded(model),
            firmware: padded(firmware),
            transfer_bytes_max: 0,
            power_state_max: 0,
            compare_write_blocks_max: 1,
            volatile_write_cache: false,
            flush_of_all: true,
            optional: Optional::default(),
        }
    }

    /// From the Identify Controller data structure (base 2.0c, figure 275). Properties that it does not report do not
    /// exist: [`Optional::saveable_cache`] is for the caller to ask.
    pub fn from_identify(data: &[u8; 4096]) -> ControllerFacts {
        let data: &IdentifyController = transmute_ref!(data);
        let bit = |word: u32, bit: u32| word >> bit & 1 == 1;
        let (oncs, oacs) = (data.nvm_commands.get().into(), data.admin_commands.get().into());
        let (mdts, sanitize) = (data.max_transfer, data.sanitize.get());
        ControllerFacts {
            vendor_id: data.vendor.get(),
            serial: data.serial,
            model: data.model,
            firmware: data.firmware,
            // A limit that does not fit into 32 bits counts as none.
            transfer_bytes_max: if mdts == 0 || mdts > 19 { 0 } else { PAGE_BYTES << mdts },
            power_state_max: data.power_states.min(31),
            compare_write_blocks_max: u32::from(data.atomic_compare_write.get()) + 1,
            volatile_write_cache: data.volatile_write_cache & 1 == 1,
            // VWC bits 2:1 are 10b if Flush with FFFFFFFFh is not supported. Controllers before
            // NVMe 1.4 report 00b for "not indicated", so only the explicit 10b selects a flush per
            // namespace.
            flush_of_all: data.volatile_write_cache >> 1 & 3 != 2,
            optional: Optional {
                compare: bit(oncs, 0),
                dataset_management: bit(oncs, 2),
                write_zeroes: bit(oncs, 3),
                feature_select: bit(oncs, 4),
                saveable_cache: false,
                verify: bit(oncs, 7),
                fused_compare_write: data.fused_operations.get() & 1 == 1,
                format: bit(oacs, 1),
                // Bit 29 (NDI) is No-Deallocate Inhibited: such a controller deallocates after an
                // overwrite. SCSI OVERWRITE promises that blocks read as the pattern, so it cannot
                // offer the action.
                sanitize_overwrite: bit(sanitize, 2) && !bit(sanitize, 29),
                sanitize_block_erase: bit(sanitize, 1),
                sanitize_crypto_erase: bit(sanitize, 0),
            },
        }
    }
}

/// The read data of a deallocated block (DLFEAT bits 2:0, NVM 1.0c, figure 97).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeallocatedReads {
    /// The device does not say.
    #[default]
    NotReported,
    /// Zeroes.
    Zeroes,
    /// Ones.
    Ones,
}

/// One namespace: one logical unit (S1-50). Namespace `n` is LUN `n - 1` (translation reference,
/// clause 4.8).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamespaceFacts {
    /// Its identifier, from 1.
    pub nsid: u32,
    /// Its size (NSZE), in blocks.
    pub blocks: u64,
    /// Bytes of a block (LBADS).
    pub block_bytes: u32,
    /// Metadata of a block (MS), in bytes.
    pub metadata_bytes: u16,
    /// The block sizes that Format NVM offers without metadata: (number of the format, bytes).
    pub formats: [Option<(u8, u32)>; FORMATS_MAX],
    /// IEEE extended unique identifier (EUI64); zero: none.
    pub eui64: [u8; 8],
    /// Globally unique identifier (NGUID); zero: none.
    pub nguid: [u8; 16],
    /// The read data of a deallocated block.
    pub deallocated_reads: DeallocatedReads,
    /// Write Zeroes may deallocate (DLFEAT bit 3).
    pub write_zeroes_deallocates: bool,
    /// It is thinly provisioned (NSFEAT bit 0).
    pub thin: bool,
    /// It is write protected (NSATTR bit 0).
    pub write_protected: bool,
    /// Blocks that are best written together (NPWG); 0: not reported.
    pub write_granularity_blocks: u32,
    /// Blocks that are best deallocated together (NPDG); 0: not reported.
    pub deallocate_granularity_blocks: u32,
}

impl NamespaceFacts {
    /// A namespace of `blocks` blocks of `block_bytes` and nothing special.
    pub fn plain(nsid: u32, blocks: u64, block_bytes: u32) -> NamespaceFacts {
        let mut formats = [None; FORMATS_MAX];
        formats[0] = Some((0, block_bytes));
        NamespaceFacts {
            nsid,
            blocks,
            block_bytes,
            metadata_bytes: 0,
            formats,
            eui64: [0; 8],
            nguid: [0; 16],
            deallocated_reads: DeallocatedReads::NotReported,
            write_zeroes_deallocates: false,
            thin: false,
            write_protected: false,
            write_granularity_blocks: 0,
            deallocate_granularity_blocks: 0,
        }
    }

    /// From the Identify Namespace data structure (NVM 1.0c, figure 97).
    pub fn from_identify(nsid: u32, data: &[u8; 4096]) -> NamespaceFacts {
        let data: &IdentifyNamespace = transmute_ref!(data);
        let in_use = data.format_in_use();
        let mut formats = [None; FORMATS_MAX];
        for (index, format) in
            data.lba_format.iter().enumerate().take(usize::from(data.formats) + 1)
        {
            // Formats with metadata are not offered: FORMAT UNIT could otherwise produce a
            // namespace that this translator then refuses (S1-46), and the unit would disappear.
            let bytes = format.block_bytes().filter(|_| format.metadata_bytes == 0);
            formats[index] = bytes.map(|bytes| (index as u8, bytes));
        }
        // NSFEAT bit 4 (OPTPERF) says that NPWG and NPDG are defined. Without it the bytes are
        // reserved and zero, and a zero-based zero would report a granularity of one block.
        let optperf = data.features >> 4 & 1 == 1;
        let granularity = |blocks: U16| if optperf { u32::from(blocks.get()) + 1 } else { 0 };
        NamespaceFacts {
            nsid,
            blocks: data.size.get(),
            block_bytes: in_use.block_bytes().unwrap_or(0),
            metadata_bytes: in_use.metadata_bytes.get(),
            formats,
            eui64: data.eui64,
            nguid: data.guid,
            deallocated_reads: match data.deallocate & 7 {
                1 => DeallocatedReads::Zeroes,
                2 => DeallocatedReads::Ones,
                _ => DeallocatedReads::NotReported,
            },
            write_zeroes_deallocates: data.deallocate >> 3 & 1 == 1,
            thin: data.features & 1 == 1,
            write_protected: data.attributes & 1 == 1,
            write_granularity_blocks: granularity(data.write_granularity),
            deallocate_granularity_blocks: granularity(data.deallocate_granularity),
        }
    }

    /// Whether it can be shown as a logical unit.
    pub(crate) fn check(&self) -> Result<(), FactsError> {
        let (nsid, block_bytes) = (self.nsid, self.block_bytes);
        if self.metadata_bytes != 0 {
            return Err(FactsError::Metadata { nsid, metadata_bytes: self.metadata_bytes });
        }
        if !block_bytes.is_power_of_two() || !(512..=65536).contains(&block_bytes) {
            return Err(FactsError::BlockSize { nsid, block_bytes });
        }
        if self.blocks == 0 { Err(FactsError::Empty { nsid }) } else { Ok(()) }
    }
}

/// Which commands are translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CommandSet {
    /// All (S1-49).
    #[default]
    Full,
    /// The set of the thesis: INQUIRY, REPORT LUNS, READ CAPACITY (10), READ (16), WRITE (16)
    /// (S1-48).
    Thesis,
}

/// How UNMAP is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UnmapBy {
    /// Dataset management, attribute deallocate (translation reference, clause 5.8): a hint.
    #[default]
    DatasetManagement,
    /// Write Zeroes with the deallocate bit: surely reads as zeroes afterwards.
    WriteZeroes,
}

/// Choices of who runs the translator, or the device server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TranslatorConfig {
    /// Which commands are translated.
    pub commands: CommandSet,
    /// Longest READ or WRITE, in blocks, as block limits report it; more than one NVMe command is
    /// used where this is more than MDTS. 0: as much as one NVMe command moves.
    pub transfer_blocks_max: u32,
    /// Longest WRITE SAME, in blocks; one of no blocks is refused then (WSNZ). 0: not limited, and one of
    /// no blocks goes to the end of the medium.
    pub write_same_blocks_max: u32,
    /// Size of a physical block that READ CAPACITY (16) tells, a power of two; less than a logical block: as
    /// that.
    pub physical_block_bytes: u32,
    /// How UNMAP is done.
    pub unmap_by: UnmapBy,
    /// A nexus that is attached first hears of the power on (SAM-5, 5.14.4).
    pub power_on_attention: bool,
    /// Version descriptor of the transport, as 0x0960 for iSCSI (SPC-4, annex E.8); 0: none.
    pub transport_version: u16,
    /// The transport keeps the order of ORDERED and HEAD OF QUEUE tasks, which INQUIRY of a
    /// [`DeviceServer`](crate::DeviceServer) says then.
    pub ordered_tasks: bool,
}

impl Default for TranslatorConfig {
    fn default() -> TranslatorConfig {
        TranslatorConfig {
            commands: CommandSet::Full,
            transfer_blocks_max: 4096,
            write_same_blocks_max: 32768,
            physical_block_bytes: 0,
            unmap_by: UnmapBy::DatasetManagement,
            power_on_attention: true,
            transport_version: 0,
            ordered_tasks: false,
        }
    }
}

/// The first bytes of `bytes`, or all of them and zeroes.
pub(crate) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let length = N.min(bytes.len());
    out[..length].copy_from_slice(&bytes[..length]);
    out
}

/// `text`, cut or padded with blanks.
pub(crate) fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [b' '; N];
    let length = N.min(text.len());
    out[..length].copy_from_slice(&text.as_bytes()[..length]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structure of zeroes but for these bytes.
    fn structure(bytes: &[(usize, &[u8])]) -> [u8; 4096] {
        let mut data = [0; 4096];
        bytes.iter().for_each(|(at, bytes)| data[*at..at + bytes.len()].copy_from_slice(bytes));
        data
    }

    /// Base 2.0c, figure 275: each field by its offset, and by nothing else.
    #[test]
    fn identify_controller_field_by_field() {
        let none = ControllerFacts::from_identify(&[0; 4096]);
        assert_eq!(none.optional, Optional::default());
        assert_eq!((none.transfer_bytes_max, none.power_state_max), (0, 0));
        assert_eq!((none.compare_write_blocks_max, none.volatile_write_cache), (1, false));
        let facts = |at, bytes: &[u8]| ControllerFacts::from_identify(&structure(&[(at, bytes)]));
        assert_eq!(facts(0, &[0x4d, 0x14]).vendor_id, 0x144d);
        assert_eq!(facts(4, &[b'S'; 20]).serial, [b'S'; 20]);
        assert_eq!(facts(24, &[b'M'; 40]).model, [b'M'; 40]);
        assert_eq!(facts(64, b"FIRM 1.2").firmware, *b"FIRM 1.2");
        assert_eq!(facts(77, &[5]).transfer_bytes_max, 128 << 10);
        assert_eq!(facts(77, &[20]).transfer_bytes_max, 0, "no limit of 32 bits");
        assert_eq!(facts(263, &[4]).power_state_max, 4);
        assert_eq!(facts(532, &[63, 1]).compare_write_blocks_max, 320);
        assert!(facts(525, &[1]).volatile_write_cache && facts(525, &[1]).flush_of_all);
        assert!(facts(525, &[7]).flush_of_all && !facts(525, &[5]).flush_of_all);
        let optional = |at, byte: u8| facts(at, &[byte]).optional;
        let not = Optional::default();
        assert_eq!(optional(520, 1), Optional { compare: true, ..not });
        assert_eq!(optional(520, 1 << 2), Optional { dataset_management: true, ..not });
        assert_eq!(optional(520, 1 << 3), Optional { write_zeroes: true, ..not });
        assert_eq!(optional(520, 1 << 4), Optional { feature_select: true, ..not });
        assert_eq!(optional(520, 1 << 7), Optional { verify: true, ..not });
        assert_eq!(optional(522, 1), Optional { fused_compare_write: true, ..not });
        assert_eq!(optional(256, 1 << 1), Optional { format: true, ..not });
        assert_eq!(optional(328, 1), Optional { sanitize_crypto_erase: true, ..not });
        assert_eq!(optional(328, 1 << 1), Optional { sanitize_block_erase: true, ..not });
        assert_eq!(optional(328, 1 << 2), Optional { sanitize_overwrite: true, ..not });
        // NDI: everything is deallocated, and the pattern of an overwrite could not be read.
        assert_eq!(facts(328, &[4, 0, 0, 0x20]).optional, not);
        // Write Uncorrectable, reservations, Timestamp; firmware: none of ours.
        assert_eq!(optional(520, 0b0110_0010), not);
        assert_eq!(optional(256, 0xfd), not);
    }

    /// NVM 1.0c, figure 97.
    #[test]
    fn identify_namespace_field_by_field() {
        // Formats 512 + 0, 4096 + 0, 512 + 8, and one that NLBAF does not count.
        let formats = [0, 0, 9, 0, 0, 0, 12, 0, 8, 0, 9, 0, 0, 0, 13, 0];
        let with = |more: &[(usize, &[u8])]| {
            let mut data = structure(&[(0, &[0, 0, 1]), (25, &[2]), (26, &[1]), (128, &formats)]);
            more.iter().for_each(|(at, bytes)| data[*at..at + bytes.len()].copy_from_slice(bytes));
            NamespaceFacts::from_identify(7, &data)
        };
        let plain = with(&[]);
        assert_eq!((plain.nsid, plain.blocks), (7, 1 << 16));
        assert_eq!((plain.block_bytes, plain.metadata_bytes), (4096, 0));
        assert_eq!(plain.formats[..3], [Some((0, 512)), Some((1, 4096)), None]);
        assert_eq!(plain.formats[3..], [None; FORMATS_MAX - 3]);
        assert_eq!(with(&[(26, &[2])]).metadata_bytes, 8);
        assert_eq!(with(&[(26, &[0x10])]).block_bytes, 512, "bit 4 is where metadata go");
        assert_eq!(with(&[(120, &[3; 8])]).eui64, [3; 8]);
        assert_eq!(with(&[(104, &[4; 16])]).nguid, [4; 16]);
        let reads = |byte| with(&[(33, &[byte])]).deallocated_reads;
        assert_eq!(reads(0), DeallocatedReads::NotReported);
        assert_eq!(reads(1), DeallocatedReads::Zeroes);
        assert_eq!(reads(2), DeallocatedReads::Ones);
        assert!(with(&[(33, &[8])]).write_zeroes_deallocates && !plain.write_zeroes_deallocates);
        assert!(with(&[(24, &[1])]).thin && !plain.thin);
        assert!(with(&[(99, &[1])]).write_protected && !plain.write_protected);
        // NPWG counts from zero, and only with OPTPERF.
        assert_eq!(with(&[(24, &[1 << 4]), (64, &[7, 0])]).write_granularity_blocks, 8);
        assert_eq!(with(&[(64, &[7, 0])]).write_granularity_blocks, 0);
        // NPDG likewise.
        let deallocate = [(24, &[1 << 4][..]), (68, &[15, 1])];
        assert_eq!(with(&deallocate).deallocate_granularity_blocks, 272);
        assert_eq!(with(&deallocate[1..]).deallocate_granularity_blocks, 0);
    }

    /// More formats than four bits of FLBAS can name (NVM 1.0c, figure 97).
    #[test]
    fn formats_beyond_the_sixteenth() {
        let with = |last: u8, in_use: u8| {
            let (last, in_use) = ([last], [in_use]);
            let formats: [(usize, &[u8]); 5] = [
                (25, &last),
                (26, &in_use),
                (128, &[0, 0, 9, 0]),
                (128 + 4 * 16, &[0, 0, 12, 0]),
                (128 + 4 * 63, &[0, 0, 13, 0]),
            ];
            NamespaceFacts::from_identify(1, &structure(&formats))
        };
        let offered = |facts: &NamespaceFacts| facts.formats.iter().flatten().count();
        let seventeen = with(16, 0x20);
        assert_eq!((seventeen.block_bytes, seventeen.formats[16]), (4096, Some((16, 4096))));
        assert_eq!(offered(&seventeen), 2);
        assert_eq!(
            (with(63, 0x6f).block_bytes, with(63, 0x6f).formats[63]),
            (8192, Some((63, 8192)))
        );
        assert_eq!(offered(&with(255, 0)), 3, "there is no room for more");
        // Where 16 are enough the upper bits are reserved.
        assert_eq!((with(15, 0x20).block_bytes, offered(&with(15, 0x20))), (512, 1));
    }
}
