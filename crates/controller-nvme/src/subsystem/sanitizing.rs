//! The state of the sanitize operation (base 2.0c, clause 8.21), and its reports.

use ssdyno_block::Time;
use ssdyno_spec::nvme::{NvmeStatus, SanitizeLog, sanitize};

use ssdyno_device::Sanitize;

/// States of the sanitize operation (base 2.0c, clause 8.21).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    /// Nothing is in progress, nothing is to be mended.
    #[default]
    Idle,
    Processing,
    Failed,
}

/// A sanitize operation that was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SanitizeOrder {
    pub(super) device: Sanitize,
    /// From the command; the log page contains it.
    pub(super) dword10: u32,
    /// The pattern that an overwrite leaves (dword 11).
    pub(super) pattern: u32,
}

/// The sanitize operation of the subsystem.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sanitizing {
    pub(super) phase: Phase,
    /// The log's data on the most recent operation.
    pub(super) status: u16,
    pub(super) dword10: u32,
    pub(super) began: Time,
    pub(super) ends: Time,
    /// It will fail.
    pub(super) fails: bool,
    /// Nothing was written since the last successful one.
    pub(super) erased: bool,
}

impl Sanitizing {
    /// Most commands are refused.
    #[inline]
    pub(crate) fn restricts(&self) -> bool {
        self.phase != Phase::Idle
    }
    pub(crate) fn is_processing(&self) -> bool {
        self.phase == Phase::Processing
    }
    /// The host writes.
    #[inline]
    pub(crate) fn written(&mut self) {
        self.erased = false;
    }
    /// A failure mode can be left by command.
    pub(super) fn is_unrestricted(&self) -> bool {
        self.dword10 & sanitize::UNRESTRICTED_EXIT != 0
    }
    pub(super) fn refusal(&self) -> NvmeStatus {
        match self.phase {
            Phase::Failed => NvmeStatus::SANITIZE_FAILED.with_do_not_retry(),
            _ => NvmeStatus::SANITIZE_IN_PROGRESS,
        }
    }

    /// How much is done at `at`, in 65536ths.
    pub(super) fn progress(&self, at: Time) -> u16 {
        if self.phase != Phase::Processing {
            return SanitizeLog::NO_PROGRESS;
        }
        let (done, all) = (at.saturating_sub(self.began), self.ends - self.began);
        // Picoseconds of a day need 57 bits. With 16 more bits for the fraction the product
        // exceeds 64 bits.
        let done = u128::from(done.as_ps()) << 16;
        let share = done / u128::from(all.as_ps().max(1));
        // FFFFh means that no operation is in progress (base 2.0c, clause 5.16.1.25), so an
        // operation that runs reports FFFEh at most.
        share.min(u128::from(SanitizeLog::NO_PROGRESS - 1)) as u16
    }

    /// SSTAT at `at`.
    pub(super) fn told(&self, at: Time) -> u16 {
        let (passes, all) = (u32::from(passes(self.dword10)), u32::from(SanitizeLog::NO_PROGRESS));
        let overwrites = self.dword10 & 7 == sanitize::OVERWRITE;
        // Completed passes, of which 5 bits are reported.
        let completed = match self.status & SanitizeLog::STATUS {
            SanitizeLog::IN_PROGRESS => u32::from(self.progress(at)) * passes / all,
            SanitizeLog::SANITIZED => passes,
            _ => 0,
        };
        let completed = if overwrites { completed as u16 & 0x1f } else { 0 };
        self.status | completed << 3 | if self.erased { SanitizeLog::ERASED } else { 0 }
    }
}

/// OWPASS: 0 stands for 16.
pub(super) fn passes(dword10: u32) -> u8 {
    match (dword10 >> sanitize::PASSES_SHIFT & 0xf) as u8 {
        0 => 16,
        passes => passes,
    }
}
