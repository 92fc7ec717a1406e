//! The controller's properties in BAR 0 (base 2.0c, clause 3.1.3).

use ssdyno_block::Time;
use ssdyno_spec::nvme::registers as offset;

use super::subsystem::{Field, Part, Version};
use ssdyno_device::nvme::NvmeControllerConfig;

/// Largest memory page: 2^(12 + this).
const PAGE_SHIFT_MAX: u32 = 4;
/// In CAP: queues are contiguous in memory (CQR).
const CAP_CONTIGUOUS: u64 = 1 << 16;
/// In CAP: weighted round robin with urgent class (AMS bit 0).
const CAP_WEIGHTED: u64 = 1 << 17;
/// In CAP: a subsystem reset is possible (NSSRS).
const CAP_SUBSYSTEM_RESET: u64 = 1 << 36;
/// In CAP: the NVM command set (CSS bit 0).
const CAP_NVM: u64 = 1 << 37;
/// In CAP: ready with media (CRMS.CRWMS), from version 2.0 on.
const CAP_READY_WITH_MEDIA: u64 = 1 << 59;
/// In CC: the command set (CSS).
const CC_COMMAND_SET: u32 = 7 << 4;
/// In CC: what may be written (base 2.0c, figure 46).
const CC_WRITABLE: u32 = 0x00ff_fff1;
/// In CC: ready independent of media (CRIME), from version 2.0 on.
const CC_READY_INDEPENDENT: u32 = 1 << 24;
/// In CC: what shall not change while the controller is enabled (base 2.0c, figure 46): AMS, MPS, CSS.
const CC_FIXED: u32 = 0x3ff0;

/// The host's request after a write of CC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Nothing,
    /// CC.EN went from 0 to 1.
    Enable,
    /// CC.EN went from 1 to 0.
    Reset,
    /// CC.SHN asks to shut down: normally, or at once.
    Shutdown {
        abrupt: bool,
    },
    /// The whole subsystem is reset.
    SubsystemReset,
}

/// The registers.
#[derive(Clone, Debug, Default)]
pub(super) struct Registers {
    capabilities: u64,
    version: u32,
    /// Least interrupt mask bits set: INTMS and INTMC.
    pub(super) mask: u32,
    pub(super) configuration: u32,
    pub(super) status: u32,
    attributes: u32,
    submission_base: u64,
    completion_base: u64,
}

/// Where the admin queues are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AdminQueues {
    pub(super) submission_base: u64,
    pub(super) submission_entries: u32,
    pub(super) completion_base: u64,
    pub(super) completion_entries: u32,
}

/// Times of CAP.TO and CRTO, in units of 500 ms: one more than needed, because who waits counts from
/// a register write that is still on its way.
fn half_seconds(time: Time) -> u64 {
    time.as_ps().div_ceil(Time::from_ms(500).as_ps()) + 1
}

impl Registers {
    pub(super) fn new(config: &NvmeControllerConfig, version: Version) -> Registers {
        let has = |field| version.has(Part::Field(field));
        let stride = config.doorbell_stride.0.trailing_zeros() - 2;
        let mut capabilities = u64::from(config.queue_entries - 1)
            | CAP_CONTIGUOUS
            | half_seconds(config.ready_time.0) << 24
            | u64::from(stride) << 32
            | CAP_NVM
            | u64::from(PAGE_SHIFT_MAX) << 52;
        if config.weighted_round_robin {
            capabilities |= CAP_WEIGHTED;
        }
        if has(Field::SubsystemReset) {
            capabilities |= CAP_SUBSYSTEM_RESET;
        }
        if has(Field::ReadyModes) {
            capabilities |= CAP_READY_WITH_MEDIA;
        }
        Registers { capabilities, version: version.register(), ..Registers::default() }
    }

    pub(super) fn read(&self, at: u32) -> u32 {
        let high = |value: u64| (value >> 32) as u32;
        match at {
            offset::CAP => self.capabilities as u32,
            0x04 => high(self.capabilities),
            offset::VS => self.version,
            offset::INTMS | offset::INTMC => self.mask,
            offset::CC => self.configuration,
            offset::CSTS => self.status,
            offset::AQA => self.attributes,
            offset::ASQ => self.submission_base as u32,
            0x2c => high(self.submission_base),
            offset::ACQ => self.completion_base as u32,
            0x34 => high(self.completion_base),
            offset::CRTO if self.capabilities & CAP_READY_WITH_MEDIA != 0 => {
                (self.capabilities >> 24 & 0xff) as u32
            }
            _ => 0,
        }
    }

    pub(super) fn write(&mut self, at: u32, value: u32) -> Change {
        // The low 12 bits of the base addresses are reserved and read as zero: the queues begin
        // at a page of 4 KiB at least.
        let low = |old: u64| old & !0xffff_ffff | u64::from(value & !0xfff);
        let high = |old: u64| old & 0xffff_ffff | u64::from(value) << 32;
        match at {
            offset::INTMS => self.mask |= value,
            offset::INTMC => self.mask &= !value,
            offset::CC => return self.configure(value & self.writable()),
            // Write 1 to clear.
            offset::CSTS => self.status &= !(value & offset::CSTS_SUBSYSTEM_RESET),
            offset::NSSR if value == offset::NSSR_RESET && self.has_subsystem_reset() => {
                return Change::SubsystemReset;
            }
            offset::AQA => self.attributes = value & 0x0fff_0fff,
            offset::ASQ => self.submission_base = low(self.submission_base),
            0x2c => self.submission_base = high(self.submission_base),
            offset::ACQ => self.completion_base = low(self.completion_base),
            0x34 => self.completion_base = high(self.completion_base),
            _ => {}
        }
        Change::Nothing
    }

    fn has_subsystem_reset(&self) -> bool {
        self.capabilities & CAP_SUBSYSTEM_RESET != 0
    }
    /// The writable bits of CC.
    fn writable(&self) -> u32 {
        let modes = self.capabilities & CAP_READY_WITH_MEDIA != 0;
        CC_WRITABLE | if modes { CC_READY_INDEPENDENT } else { 0 }
    }

    fn configure(&mut self, value: u32) -> Change {
        let old = self.configuration;
        let enabled = |cc: u32| cc & offset::CC_ENABLE != 0;
        // Commands under way rest on what was chosen.
        let fixed = if enabled(old) && enabled(value) { CC_FIXED } else { 0 };
        let value = value & !fixed | old & fixed;
        self.configuration = value;
        let notification = |cc: u32| cc >> 14 & 3;
        // A change of CC.EN comes before everything else in the same write: a reset makes a
        // shutdown pointless, and a fresh controller has nothing to shut down.
        match (enabled(old), enabled(value)) {
            (false, true) => Change::Enable,
            (true, false) => Change::Reset,
            _ if notification(value) != notification(old) => match notification(value) {
                1 => Change::Shutdown { abrupt: false },
                2 => Change::Shutdown { abrupt: true },
                _ => Change::Nothing,
            },
            _ => Change::Nothing,
        }
    }

    /// Where the admin queues are, if the host has set everything up as the specification wants it
    /// (base 2.0c, clause 3.5.1; figures 46 and 49).
    pub(super) fn admin_queues(&self) -> Option<AdminQueues> {
        let queues = AdminQueues {
            submission_base: self.submission_base,
            submission_entries: (self.attributes & 0xfff) + 1,
            completion_base: self.completion_base,
            completion_entries: (self.attributes >> 16 & 0xfff) + 1,
        };
        let page_mask = self.page_bytes() - 1;
        let arbitration = self.configuration >> 11 & 7;
        // A ring needs two entries: one slot stays empty so that full and empty can be told
        // apart. The other conditions are those of CC, ASQ and ACQ.
        let legal = queues.submission_entries >= 2
            && queues.completion_entries >= 2
            && (queues.submission_base | queues.completion_base) & page_mask == 0
            && self.configuration >> 7 & 0xf <= PAGE_SHIFT_MAX
            && self.configuration & CC_COMMAND_SET == 0
            && (arbitration == 0 || arbitration == 1 && self.capabilities & CAP_WEIGHTED != 0);
        legal.then_some(queues)
    }

    /// The host's memory page, by CC.MPS.
    pub(super) fn page_bytes(&self) -> u64 {
        4096 << (self.configuration >> 7 & 0xf).min(PAGE_SHIFT_MAX)
    }
    /// Weighted round robin is chosen.
    pub(super) fn weighted(&self) -> bool {
        self.configuration & offset::CC_ARBITRATION_WEIGHTED != 0
    }
    /// The entry size of submission queues is the one that exists (CC.IOSQES).
    pub(super) fn has_submission_entry_size(&self) -> bool {
        (self.configuration ^ offset::CC_ENTRY_SIZES) & 0x000f_0000 == 0
    }
    /// The same of completion queues (CC.IOCQES).
    pub(super) fn has_completion_entry_size(&self) -> bool {
        (self.configuration ^ offset::CC_ENTRY_SIZES) & 0x00f0_0000 == 0
    }
    /// Ready, enabled and not broken.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.status & (offset::CSTS_READY | offset::CSTS_FATAL) == offset::CSTS_READY
    }
    pub(super) fn set_ready(&mut self) {
        self.status |= offset::CSTS_READY;
    }
    pub(super) fn set_fatal(&mut self) {
        self.status |= offset::CSTS_FATAL;
    }
    /// True from the host's wish to shut down until the next reset.
    #[inline]
    pub(super) fn is_shutting_down(&self) -> bool {
        self.status & (3 << 2) != 0
    }
    pub(super) fn set_shutdown(&mut self, bits: u32) {
        self.status = self.status & !(3 << 2) | bits;
    }
    /// The effects of a reset (base 2.0c, clause 3.7.2): the admin queue registers stay.
    pub(super) fn reset(&mut self) {
        self.configuration &= !offset::CC_ENABLE;
        // Only NSSRO outlives a reset: the host clears it by writing a 1 after it has learnt
        // that the subsystem was reset.
        self.status &= offset::CSTS_SUBSYSTEM_RESET;
        self.mask = 0;
    }
    /// The additional effects of a function level reset.
    pub(super) fn function_level_reset(&mut self) {
        self.configuration = 0;
        self.attributes = 0;
        self.submission_base = 0;
        self.completion_base = 0;
    }
    /// The additional effects of a subsystem reset.
    pub(super) fn subsystem_reset(&mut self) {
        self.function_level_reset();
        self.status = offset::CSTS_SUBSYSTEM_RESET;
    }
}
