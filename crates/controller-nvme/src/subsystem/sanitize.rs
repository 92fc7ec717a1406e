//! Sanitize: all user data are destroyed, in the background (base 2.0c, clauses 5.24 and 8.21).
//!
//! What the flash does for it, and how long that takes, is the [device's](ssdyno_device::Device::sanitize) affair. This
//! module contains the command, its states, the commands refused during the operation, the log page and the event. The
//! state is the subsystem's: no reset ends an operation, and none leaves a failure mode. The transport injects faults:
//! a delay, or that the operation fails.
//!
//! Not modelled: the persistent memory region, media verification (version 2.1), several operations.

use ssdyno_block::Time;
use ssdyno_spec::nvme::{
    AsynchronousEvent, NvmeStatus, SanitizeLog, SubmissionEntry, admin, nvm, page, sanicap,
    sanitize,
};
use zerocopy::{FromZeros, IntoBytes};

use super::NvmeSubsystem;
use super::admin::AdminOutcome;
use super::sanitizing::{Phase, SanitizeOrder, Sanitizing, passes};
use super::versions::Field;
use crate::answer::Answer;
use ssdyno_device::{Device, Sanitize, SanitizeMethod};

/// Passes of the overwrite whose time is in the log page.
const PASSES_TOLD: u8 = 16;
/// Log pages that can be read while an operation is in progress or has failed (base 2.0c, clause 8.21.4).
const PAGES_ALLOWED: [u8; 4] = [page::ERROR, page::SMART, page::CHANGED_NAMESPACES, page::SANITIZE];

/// The task of the device; `None` for an invalid action, or one that erases nothing.
fn order(dword10: u32) -> Option<Sanitize> {
    let method = match dword10 & 7 {
        sanitize::BLOCK_ERASE => SanitizeMethod::BlockErase,
        sanitize::OVERWRITE => SanitizeMethod::Overwrite { passes: passes(dword10) },
        sanitize::CRYPTO_ERASE => SanitizeMethod::CryptoErase,
        _ => return None,
    };
    Some(Sanitize { method, stays_allocated: dword10 & sanitize::NO_DEALLOCATION != 0 })
}

impl<D: Device> NvmeSubsystem<D> {
    /// SANICAP of Identify: 0 where the device cannot sanitize.
    pub(crate) fn sanitize_capabilities(&self) -> u32 {
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
    pub(crate) fn check_sanitizing(&self, entry: &SubmissionEntry) -> Answer {
        // Commands that show or change user data and namespaces are refused. The host must still
        // be able to ask for the state of the operation.
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
    pub(crate) fn refuse_io(&self, entry: &SubmissionEntry) -> Answer {
        if entry.opcode != nvm::FLUSH {
            return Err(self.sanitizing.refusal());
        }
        let id = entry.namespace_id.get();
        if id == u32::MAX { Ok(()) } else { self.namespaces.addressed(id).map(|_| ()) }
    }

    /// Sanitize (base 2.0c, clause 5.24): it completes when the operation has begun.
    pub(crate) fn accept_sanitize(&mut self, entry: &SubmissionEntry) -> Answer<AdminOutcome> {
        let invalid_field = NvmeStatus::INVALID_FIELD.with_do_not_retry();
        if ![0, u32::MAX].contains(&entry.namespace_id.get()) {
            return Err(invalid_field);
        }
        let dword10 = entry.dword10.get();
        let locked = self.sanitizing.phase == Phase::Failed && !self.sanitizing.is_unrestricted();
        if self.sanitizing.is_processing() {
            return Err(self.sanitizing.refusal());
        }
        // After a failure in restricted mode only another sanitize in that mode may leave it, so
        // that user data cannot be read by giving up (base 2.0c, clause 8.21).
        if dword10 & 7 == sanitize::EXIT_FAILURE_MODE {
            if locked {
                return Err(self.sanitizing.refusal());
            }
            self.sanitizing.phase = Phase::Idle;
            return Ok(AdminOutcome::Done(0));
        }
        let device = order(dword10).ok_or(invalid_field)?;
        if self.device.sanitize_time(device).is_none() {
            return Err(invalid_field);
        }
        // What failed in restricted mode can be mended in that mode alone.
        if locked && dword10 & sanitize::UNRESTRICTED_EXIT != 0 {
            return Err(self.sanitizing.refusal());
        }
        let pattern = entry.dword11.get();
        Ok(AdminOutcome::Sanitize(SanitizeOrder { device, dword10, pattern }))
    }

    /// Begins the operation at `at`; gives when it is over, at which time the transport calls
    /// [`end_sanitize`](NvmeSubsystem::end_sanitize). `None`: the device has refused it. It takes `later` longer than
    /// the device says, and `fails` in the end, where a fault is injected.
    pub fn begin_sanitize(
        &mut self,
        at: Time,
        order: SanitizeOrder,
        later: Time,
        fails: bool,
    ) -> Option<Time> {
        let SanitizeOrder { device, dword10, pattern } = order;
        // An event of an earlier operation that the host has not heard would be taken for the
        // end of this one.
        self.events.withdraw_event(AsynchronousEvent::SANITIZE_COMPLETED);
        let done = self.device.sanitize(at, device)?;
        let overwritten = matches!(device.method, SanitizeMethod::Overwrite { .. });
        let stays = overwritten && device.stays_allocated;
        // Only an overwrite without deallocation leaves its pattern. Deallocated blocks read as
        // zeroes.
        let pattern = if stays { pattern } else { 0 };
        self.media.start_anew(self.namespaces.capacity_bytes, pattern);
        let ends = done.ends + later;
        self.sanitizing = Sanitizing {
            phase: Phase::Processing,
            status: SanitizeLog::IN_PROGRESS,
            dword10,
            began: at,
            ends,
            fails: fails || done.failed,
            erased: false,
        };
        Some(ends)
    }

    /// The operation is over: an event is due.
    #[cold]
    pub fn end_sanitize(&mut self) {
        let failed = self.sanitizing.fails;
        self.sanitizing.phase = if failed { Phase::Failed } else { Phase::Idle };
        self.sanitizing.status = if failed { SanitizeLog::FAILED } else { SanitizeLog::SANITIZED };
        self.sanitizing.erased = !failed;
        self.raise(AsynchronousEvent::SANITIZE_COMPLETED);
    }

    /// A sanitize operation is in progress.
    pub fn is_sanitizing(&self) -> bool {
        self.sanitizing.is_processing()
    }

    /// The log page of the operation at `at` (base 2.0c, clause 5.16.1.25).
    pub(crate) fn sanitize_page(&self, at: Time) -> Vec<u8> {
        let seconds = |method, stays_allocated| {
            let time = self.device.sanitize_time(Sanitize { method, stays_allocated });
            let second = Time::from_s(1).as_ps();
            // The largest number stands for "not known". A time that long is reported as one
            // second less.
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
