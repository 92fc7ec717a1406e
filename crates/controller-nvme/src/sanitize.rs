//! Sanitize: all user data are destroyed, in the background (base 2.0c, clauses 5.24 and 8.21).
//!
//! What the flash does for it, and how long that takes, is the [device's](ssdyno_device::Device::sanitize) affair.
//! Here are the command, its states, what is refused meanwhile, the log page and the event. The state is
//! the subsystem's: no reset ends an operation, and none leaves a failure mode. Faults of opcode 84h (namespace
//! 0, no blocks) hit the command; [`Fault::Error`] makes the operation fail.
//!
//! Not modelled: the persistent memory region, media verification (version 2.1), several operations.

use ssdyno_block::{Fault, Time};
use ssdyno_spec::nvme::{
    AsynchronousEvent, NvmeStatus, SanitizeLog, SubmissionEntry, admin, nvm, page, sanicap,
    sanitize,
};
use zerocopy::{FromZeros, IntoBytes};

use super::NvmeController;
use super::admin::Outcome;
use super::commands::{Kind, State};
use super::faults::Effect;
use super::timers::Timer;
use super::versions::Field;
use ssdyno_device::{Device, Sanitize, SanitizeMethod};

/// Passes of the overwrite whose time the log page tells.
const PASSES_TOLD: u8 = 16;
/// Log pages that can be read while an operation is in progress or has failed (base 2.0c, clause 8.21.4).
const PAGES_ALLOWED: [u8; 4] = [page::ERROR, page::SMART, page::CHANGED_NAMESPACES, page::SANITIZE];

/// States of the sanitize operation (base 2.0c, clause 8.21).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    /// Nothing is in progress, nothing is to be mended.
    #[default]
    Idle,
    Processing,
    Failed,
}

/// The sanitize operation of the subsystem.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sanitizing {
    phase: Phase,
    /// What the log tells of the most recent operation.
    status: u16,
    dword10: u32,
    began: Time,
    ends: Time,
    /// It will fail.
    fails: bool,
    /// Nothing was written since the last successful one.
    erased: bool,
}

impl Sanitizing {
    /// Most commands are refused.
    #[inline]
    pub(super) fn restricts(&self) -> bool {
        self.phase != Phase::Idle
    }
    pub(super) fn is_processing(&self) -> bool {
        self.phase == Phase::Processing
    }
    /// The host writes.
    #[inline]
    pub(super) fn written(&mut self) {
        self.erased = false;
    }
    /// A failure mode can be left by command.
    fn is_unrestricted(&self) -> bool {
        self.dword10 & sanitize::UNRESTRICTED_EXIT != 0
    }
    fn refusal(&self) -> NvmeStatus {
        match self.phase {
            Phase::Failed => NvmeStatus::SANITIZE_FAILED.with_do_not_retry(),
            _ => NvmeStatus::SANITIZE_IN_PROGRESS,
        }
    }

    /// How much is done at `at`, in 65536ths.
    fn progress(&self, at: Time) -> u16 {
        if self.phase != Phase::Processing {
            return SanitizeLog::NO_PROGRESS;
        }
        let (done, all) = (at.saturating_sub(self.began), self.ends - self.began);
        let done = u128::from(done.as_ps()) << 16;
        let share = done / u128::from(all.as_ps().max(1));
        share.min(u128::from(SanitizeLog::NO_PROGRESS - 1)) as u16
    }

    /// SSTAT at `at`.
    fn told(&self, at: Time) -> u16 {
        let (passes, all) = (u32::from(passes(self.dword10)), u32::from(SanitizeLog::NO_PROGRESS));
        let overwrites = self.dword10 & 7 == sanitize::OVERWRITE;
        // Completed passes, of which 5 bits are told.
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
fn passes(dword10: u32) -> u8 {
    match (dword10 >> sanitize::PASSES_SHIFT & 0xf) as u8 {
        0 => 16,
        passes => passes,
    }
}

/// What the device is to do; `None` for an action that is none, or erases nothing.
fn order(dword10: u32) -> Option<Sanitize> {
    let method = match dword10 & 7 {
        sanitize::BLOCK_ERASE => SanitizeMethod::BlockErase,
        sanitize::OVERWRITE => SanitizeMethod::Overwrite { passes: passes(dword10) },
        sanitize::CRYPTO_ERASE => SanitizeMethod::CryptoErase,
        _ => return None,
    };
    Some(Sanitize { method, stays_allocated: dword10 & sanitize::NO_DEALLOCATION != 0 })
}

impl<D: Device> NvmeController<D> {
    /// SANICAP of Identify: 0 where the device cannot sanitize.
    pub(super) fn sanitize_capabilities(&self) -> u32 {
        let offers = |method| {
            self.device.sanitize_time(Sanitize { method, stays_allocated: false }).is_some()
        };
        let mut capabilities = 0;
        for (method, bit) in [
            (SanitizeMethod::CryptoErase, sanicap::CRYPTO_ERASE),
            (SanitizeMethod::BlockErase, sanicap::BLOCK_ERASE),
            (SanitizeMethod::Overwrite { passes: 1 }, sanicap::OVERWRITE),
        ] {
            capabilities |= if offers(method) { bit } else { 0 };
        }
        if capabilities != 0 && self.has_field(Field::SanitizeMedia) {
            capabilities |= sanicap::WRITES_ONCE_MORE;
        }
        capabilities
    }

    /// Refuses an admin command that is not allowed while a sanitize operation is in progress or has
    /// failed (base 2.0c, clause 8.21.4).
    pub(super) fn check_sanitizing(&self, entry: &SubmissionEntry) -> Result<(), NvmeStatus> {
        let allowed = match entry.opcode {
            admin::GET_LOG_PAGE => PAGES_ALLOWED.contains(&(entry.dword10.get() as u8)),
            admin::NAMESPACE_MANAGEMENT | admin::NAMESPACE_ATTACHMENT | admin::FORMAT_NVM => false,
            _ => true,
        };
        if allowed || !self.sanitizing.restricts() {
            Ok(())
        } else {
            Err(self.sanitizing.refusal())
        }
    }

    /// The same for an I/O command: none but Flush, which has nothing to do then.
    #[cold]
    pub(super) fn refuse_io(&self, entry: &SubmissionEntry) -> Result<(), NvmeStatus> {
        if entry.opcode != nvm::FLUSH {
            return Err(self.sanitizing.refusal());
        }
        let id = entry.namespace_id.get();
        if id == u32::MAX { Ok(()) } else { self.namespaces.addressed(id).map(|_| ()) }
    }

    /// Sanitize (base 2.0c, clause 5.24): it completes when the operation has begun.
    pub(super) fn sanitize(
        &mut self,
        at: Time,
        slot: u32,
        entry: &SubmissionEntry,
    ) -> Result<Outcome, NvmeStatus> {
        let invalid_field = NvmeStatus::INVALID_FIELD.with_do_not_retry();
        if ![0, u32::MAX].contains(&entry.namespace_id.get()) {
            return Err(invalid_field);
        }
        let dword10 = entry.dword10.get();
        let locked = self.sanitizing.phase == Phase::Failed && !self.sanitizing.is_unrestricted();
        if self.sanitizing.is_processing() {
            return Err(self.sanitizing.refusal());
        }
        if dword10 & 7 == sanitize::EXIT_FAILURE_MODE {
            if locked {
                return Err(self.sanitizing.refusal());
            }
            self.sanitizing.phase = Phase::Idle;
            return Ok(Outcome::Done(0));
        }
        let order = order(dword10).ok_or(invalid_field)?;
        if self.device.sanitize_time(order).is_none() {
            return Err(invalid_field);
        }
        // What failed in restricted mode can be mended in that mode alone.
        if locked && dword10 & sanitize::UNRESTRICTED_EXIT != 0 {
            return Err(self.sanitizing.refusal());
        }
        let mut later = Time::ZERO;
        let mut fails = false;
        match self.faults.hit_admin(entry.opcode) {
            Some(Effect::Fail(status)) => return Err(status),
            Some(Effect::Meet(Fault::Error)) => fails = true,
            Some(Effect::Meet(Fault::Delay(time))) => later = time,
            Some(Effect::Meet(Fault::Drop)) => {
                self.commands.get_mut(slot).state = State::Lost;
                return Ok(Outcome::Later);
            }
            _ => {}
        }
        self.begin_sanitize(at, order, entry, (later, fails));
        Ok(Outcome::Done(0))
    }

    fn begin_sanitize(
        &mut self,
        at: Time,
        order: Sanitize,
        entry: &SubmissionEntry,
        (later, fails): (Time, bool),
    ) {
        self.events.withdraw_event(AsynchronousEvent::SANITIZE_COMPLETED);
        self.abort_for_sanitize(at);
        let Some(done) = self.device.sanitize(at, order) else { return };
        self.uncorrectable = Default::default();
        if let Some(contents) = &mut self.contents {
            let overwritten = matches!(order.method, SanitizeMethod::Overwrite { .. });
            let stays = overwritten && order.stays_allocated;
            let pattern = if stays { entry.dword11.get() } else { 0 };
            contents.start_anew(self.namespaces.capacity_bytes, pattern.to_le_bytes());
        }
        let ends = done.ends + later;
        self.sanitizing = Sanitizing {
            phase: Phase::Processing,
            status: SanitizeLog::IN_PROGRESS,
            dword10: entry.dword10.get(),
            began: at,
            ends,
            fails: fails || done.failed,
            erased: false,
        };
        self.timers.set(ends, Timer::Sanitized);
    }

    /// Ends what is not allowed any more (base 2.0c, clause 8.21.4). What the device has begun is
    /// answered once the device is through with it.
    fn abort_for_sanitize(&mut self, at: Time) {
        let waiting: Vec<u32> = self.commands.waiting().collect();
        for slot in waiting {
            let command = *self.commands.get(slot);
            match command.state {
                State::Device | State::Spoilt if command.kind != Kind::Flush => {
                    self.commands.get_mut(slot).state = State::Sanitized;
                }
                State::List | State::Timer | State::Lost if command.queue != 0 => {
                    self.end_early(at, slot, NvmeStatus::SANITIZE_IN_PROGRESS);
                }
                _ => {}
            }
        }
    }

    /// The operation is over.
    #[cold]
    pub(super) fn sanitized(&mut self, at: Time) {
        let failed = self.sanitizing.fails;
        self.sanitizing.phase = if failed { Phase::Failed } else { Phase::Idle };
        self.sanitizing.status = if failed { SanitizeLog::FAILED } else { SanitizeLog::SANITIZED };
        self.sanitizing.erased = !failed;
        self.raise(at, AsynchronousEvent::SANITIZE_COMPLETED);
    }

    /// The log page of the operation at `at` (base 2.0c, clause 5.16.1.25).
    pub(super) fn sanitize_page(&self, at: Time) -> Vec<u8> {
        let seconds = |method, stays_allocated| {
            let time = self.device.sanitize_time(Sanitize { method, stays_allocated });
            let second = Time::from_s(1).as_ps();
            let whole = |time: Time| time.as_ps().div_ceil(second).min(u64::from(u32::MAX - 1));
            time.map_or(SanitizeLog::UNKNOWN, |time| whole(time) as u32)
        };
        // Before it was told what the medium is written once more for, so were these times not.
        let later =
            |method| if self.has_field(Field::SanitizeMedia) { seconds(method, true) } else { 0 };
        let overwrite = SanitizeMethod::Overwrite { passes: PASSES_TOLD };
        let mut log = SanitizeLog::new_zeroed();
        log.progress = self.sanitizing.progress(at).into();
        log.status = self.sanitizing.told(at).into();
        log.dword10 = self.sanitizing.dword10.into();
        log.overwrite_seconds = seconds(overwrite, false).into();
        log.block_erase_seconds = seconds(SanitizeMethod::BlockErase, false).into();
        log.crypto_erase_seconds = seconds(SanitizeMethod::CryptoErase, false).into();
        log.overwrite_allocated_seconds = later(overwrite).into();
        log.block_erase_allocated_seconds = later(SanitizeMethod::BlockErase).into();
        log.crypto_erase_allocated_seconds = later(SanitizeMethod::CryptoErase).into();
        log.as_bytes().to_vec()
    }
}
