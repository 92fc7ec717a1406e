//! Controller properties, memory mapped in BAR 0 (base 2.0c, clause 3.1.3).

/// Controller capabilities, 64 bits.
pub const CAP: u32 = 0x00;
/// Version.
pub const VS: u32 = 0x08;
/// Interrupt mask set.
pub const INTMS: u32 = 0x0c;
/// Interrupt mask clear.
pub const INTMC: u32 = 0x10;
/// Controller configuration.
pub const CC: u32 = 0x14;
/// Controller status.
pub const CSTS: u32 = 0x1c;
/// NVM subsystem reset.
pub const NSSR: u32 = 0x20;
/// Admin queue attributes.
pub const AQA: u32 = 0x24;
/// Admin submission queue base address, 64 bits.
pub const ASQ: u32 = 0x28;
/// Admin completion queue base address, 64 bits.
pub const ACQ: u32 = 0x30;
/// Controller ready timeouts: with media in bits 15:0, without in 31:16, in units of 500 ms.
pub const CRTO: u32 = 0x68;
/// The first doorbell.
pub const DOORBELLS: u32 = 0x1000;

/// CC.EN: enable.
pub const CC_ENABLE: u32 = 1;
/// CC.SHN: shutdown notification, bits 15:14.
pub const CC_SHUTDOWN_NORMAL: u32 = 1 << 14;
/// CC.AMS: arbitration mechanism, bits 13:11; 0 round robin, 1 weighted with urgent class.
pub const CC_ARBITRATION_WEIGHTED: u32 = 1 << 11;
/// CC.IOSQES = 6 and CC.IOCQES = 4: entries of 64 and 16 bytes.
pub const CC_ENTRY_SIZES: u32 = 6 << 16 | 4 << 20;
/// CSTS.RDY: ready.
pub const CSTS_READY: u32 = 1;
/// CSTS.CFS: controller fatal status.
pub const CSTS_FATAL: u32 = 1 << 1;
/// CSTS.SHST: shutdown status, bits 3:2; 2 is complete.
pub const CSTS_SHUTDOWN_COMPLETE: u32 = 2 << 2;
/// CSTS.SHST: shutdown in progress.
pub const CSTS_SHUTDOWN_PROCESSING: u32 = 1 << 2;
/// CSTS.NSSRO: a subsystem reset occurred; written with 1 to clear.
pub const CSTS_SUBSYSTEM_RESET: u32 = 1 << 4;
/// What NSSR must be written with for a subsystem reset: "NVMe".
pub const NSSR_RESET: u32 = 0x4e56_4d65;

/// Offset of the tail doorbell of submission queue `queue` with `stride` = CAP.DSTRD.
pub const fn submission_doorbell(queue: u16, stride: u8) -> u32 {
    DOORBELLS + 2 * queue as u32 * (4 << stride)
}
/// Offset of the head doorbell of completion queue `queue` with `stride` = CAP.DSTRD.
pub const fn completion_doorbell(queue: u16, stride: u8) -> u32 {
    DOORBELLS + (2 * queue as u32 + 1) * (4 << stride)
}

/// Controller capabilities (base 2.0c, figure 36).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerCapabilities(pub u64);

impl ControllerCapabilities {
    /// Most entries of an I/O queue (MQES is zero based).
    pub const fn queue_entries_max(self) -> u32 {
        (self.0 as u16) as u32 + 1
    }
    /// Queues must be physically contiguous (CQR).
    pub const fn contiguous_queues(self) -> bool {
        self.0 >> 16 & 1 == 1
    }
    /// Weighted round robin with urgent class is there (AMS bit 0).
    pub const fn weighted_round_robin(self) -> bool {
        self.0 >> 17 & 1 == 1
    }
    /// Longest time from a change of CC.EN to that of CSTS.RDY, in units of 500 ms (TO).
    pub const fn timeout_500ms(self) -> u8 {
        (self.0 >> 24) as u8
    }
    /// Doorbells are 4 << stride bytes apart (DSTRD).
    pub const fn doorbell_stride(self) -> u8 {
        (self.0 >> 32 & 0xf) as u8
    }
    /// The NVM command set is there (CSS bit 0).
    pub const fn nvm_command_set(self) -> bool {
        self.0 >> 37 & 1 == 1
    }
    /// Least memory page: 2^(12 + MPSMIN) bytes.
    pub const fn page_shift_min(self) -> u8 {
        (self.0 >> 48 & 0xf) as u8 + 12
    }
    /// Largest memory page: 2^(12 + MPSMAX) bytes.
    pub const fn page_shift_max(self) -> u8 {
        (self.0 >> 52 & 0xf) as u8 + 12
    }
}
