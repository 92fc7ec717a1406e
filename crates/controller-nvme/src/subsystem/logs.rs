//! Log pages (base 2.0c, clause 5.16).

use std::collections::VecDeque;

use ssdyno_block::Time;
use ssdyno_engine::Health;
use ssdyno_spec::nvme::{
    AsynchronousEvent, ErrorLogEntry, FirmwareSlotLog, NvmeStatus, SmartLog, SubmissionEntry, page,
};
use zerocopy::{FromZeros, IntoBytes};

use super::feature_values::TEMPERATURE_KELVIN;
use super::io::{Kind, NvmCommand};
use super::namespaces::Namespaces;
use super::text::padded;
use super::versions::{Field, Part};
use super::{HostData, NvmeSubsystem};
use crate::answer::Answer;
use ssdyno_device::{Device, DeviceReport};

/// Entries of the error log (ELPE + 1).
pub(crate) const ERROR_ENTRIES: usize = 64;
/// Namespaces that the changed namespace list names.
const CHANGED_MAX: usize = 1024;

/// What logs tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logs {
    errors: VecDeque<ErrorLogEntry>,
    error_count: u64,
    read_bytes: u64,
    written_bytes: u64,
    reads: u64,
    writes: u64,
    media_errors: u64,
    busy: Time,
    busy_since: Time,
    changed: Vec<u32>,
    /// The host knows that the device takes no more writes.
    told_worn_out: bool,
}

/// The content of the health log besides counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wear {
    pub(crate) health: Health,
    pub(crate) percentage_used: u8,
    /// The temperature is at or beyond a threshold.
    pub(crate) beyond_threshold: bool,
    pub(crate) now: Time,
}

/// Which command has failed, by the transport's names, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedCommand {
    /// Its submission queue.
    pub queue: u16,
    /// Its identifier there.
    pub id: u16,
    /// What it ended with.
    pub status: NvmeStatus,
}

impl Logs {
    /// A command was successful.
    #[inline]
    pub(crate) fn count(&mut self, kind: Kind, bytes: u64) {
        match kind {
            Kind::Read | Kind::Compare | Kind::Verify => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Kind::Write => {
                self.writes += 1;
                self.written_bytes += bytes;
            }
            _ => {}
        }
    }
    /// The first I/O command is on its way.
    pub(crate) fn busy(&mut self, at: Time) {
        self.busy_since = at;
    }
    /// The last I/O command completes.
    pub(crate) fn idle(&mut self, at: Time) {
        self.busy += at - self.busy_since;
    }

    /// A command failed.
    #[cold]
    pub(crate) fn command_error(
        &mut self,
        failed: FailedCommand,
        command: &NvmCommand,
        namespaces: &Namespaces,
    ) {
        if [NvmeStatus::UNRECOVERED_READ, NvmeStatus::WRITE_FAULT].contains(&failed.status.kind()) {
            self.media_errors += 1;
        }
        let namespace = namespaces.active(command.namespace);
        let lba = namespace.map_or(0, |namespace| {
            command.offset_bytes.saturating_sub(namespace.start_bytes) >> namespace.shift
        });
        let mut entry = ErrorLogEntry::new_zeroed();
        entry.queue = failed.queue.into();
        entry.command = failed.id.into();
        entry.status = (failed.status.bits() << 1).into();
        entry.location = 0xffff.into();
        entry.lba = lba.into();
        entry.namespace = command.namespace.into();
        self.push_error(entry);
    }
    /// No command is to blame: a doorbell write was refused, or the host is gone.
    pub(crate) fn controller_error(&mut self, status: NvmeStatus) {
        let mut entry = ErrorLogEntry::new_zeroed();
        entry.queue = 0xffff.into();
        entry.command = 0xffff.into();
        entry.status = (status.bits() << 1).into();
        entry.location = 0xffff.into();
        self.push_error(entry);
    }
    fn push_error(&mut self, mut entry: ErrorLogEntry) {
        self.error_count += 1;
        entry.count = self.error_count.into();
        // The newest entry comes first in the page. The oldest is dropped before the new one
        // comes, so the log never has more entries than the page.
        self.errors.truncate(ERROR_ENTRIES - 1);
        self.errors.push_front(entry);
    }

    /// Namespace `id` was created, deleted, attached, detached or formatted.
    pub(crate) fn namespace_changed(&mut self, id: u32) {
        if !self.changed.contains(&id) && self.changed.len() < CHANGED_MAX {
            self.changed.push(id);
            self.changed.sort_unstable();
        }
    }
    /// The host has read the changed namespace list.
    pub(crate) fn forget_changes(&mut self) {
        self.changed.clear();
    }

    /// The contents of log page `id`; `None` where there is no such page.
    pub(crate) fn page(&self, id: u8, firmware: &str, wear: Wear) -> Option<Vec<u8>> {
        Some(match id {
            page::ERROR => {
                let mut all = [ErrorLogEntry::new_zeroed(); ERROR_ENTRIES];
                for (place, entry) in all.iter_mut().zip(&self.errors) {
                    *place = *entry;
                }
                all.as_bytes().to_vec()
            }
            page::SMART => self.smart(wear).as_bytes().to_vec(),
            page::FIRMWARE_SLOT => {
                let mut log = FirmwareSlotLog::new_zeroed();
                log.active = 1;
                log.revision[0] = padded(firmware);
                log.as_bytes().to_vec()
            }
            page::CHANGED_NAMESPACES => {
                let mut ids = vec![0; 4096];
                for (place, id) in ids.chunks_exact_mut(4).zip(&self.changed) {
                    place.copy_from_slice(&id.to_le_bytes());
                }
                ids
            }
            _ => return None,
        })
    }

    fn smart(&self, wear: Wear) -> SmartLog {
        // Thousands of units of 512 bytes, rounded up.
        let units = |bytes: u64| u128::from(bytes.div_ceil(512 * 1000)).into();
        let whole = |time: Time, unit: Time| u128::from(time / unit).into();
        let mut log = SmartLog::new_zeroed();
        if wear.health.read_only {
            log.critical_warning |= SmartLog::READ_ONLY;
        }
        if wear.beyond_threshold {
            log.critical_warning |= SmartLog::TEMPERATURE;
        }
        log.temperature = TEMPERATURE_KELVIN.to_le_bytes();
        log.available_spare = 100;
        log.spare_threshold = 10;
        log.percentage_used = wear.percentage_used;
        log.data_units_read = units(self.read_bytes);
        log.data_units_written = units(self.written_bytes);
        log.host_reads = u128::from(self.reads).into();
        log.host_writes = u128::from(self.writes).into();
        log.busy_minutes = whole(self.busy, Time::from_s(60));
        log.power_cycles = 1.into();
        log.power_on_hours = whole(wear.now, Time::from_s(3600));
        log.media_errors = u128::from(self.media_errors).into();
        log.error_log_entries = u128::from(self.error_count).into();
        log
    }
}

impl<D: Device> NvmeSubsystem<D> {
    /// A command has failed: the error log reports it.
    #[cold]
    pub fn log_error(&mut self, failed: FailedCommand, command: &NvmCommand) {
        self.logs.command_error(failed, command, &self.namespaces);
    }

    /// Get Log Page (base 2.0c, clause 5.16).
    pub(crate) fn get_log_page(
        &mut self,
        at: Time,
        entry: &SubmissionEntry,
        data: &mut dyn HostData,
    ) -> Answer {
        let dword10 = entry.dword10.get();
        let id = dword10 as u8;
        let retain = dword10 >> 15 & 1 == 1 && self.has_field(Field::RetainEvent);
        let dwords = u64::from(dword10 >> 16 | (entry.dword11.get() & 0xffff) << 16) + 1;
        let offset = u64::from(entry.dword12.get()) | u64::from(entry.dword13.get()) << 32;
        let invalid_field = NvmeStatus::INVALID_FIELD.with_do_not_retry();
        // All pages are those of the controller (LPA bit 0 is clear), not of a namespace.
        if ![0, u32::MAX].contains(&entry.namespace_id.get()) {
            return Err(invalid_field);
        }
        // Bit 23 of dword 14: the offset counts entries, which no page here allows.
        let by_index = entry.dword14.get() >> 23 & 1 == 1;
        if dwords * 4 > self.config.max_transfer.0 || offset & 3 != 0 || by_index {
            return Err(invalid_field);
        }
        // Before there were offsets, the number of dwords had 12 bits.
        if (offset != 0 || dwords > 4096) && !self.has_field(Field::LogOffset) {
            return Err(invalid_field);
        }
        if !self.has(Part::Log(id)) {
            return Err(NvmeStatus::LOG_PAGE_INVALID.with_do_not_retry());
        }
        let wear = Wear {
            health: DeviceReport::of(&self.device).health(),
            percentage_used: self.percentage_used(),
            beyond_threshold: self.features.is_beyond_threshold(),
            now: at,
        };
        let log = match id {
            page::SANITIZE => Some(self.sanitize_page(at)),
            _ => self.offered_page(id),
        };
        let log = log.or_else(|| self.logs.page(id, &self.config.firmware, wear));
        let mut log = log.ok_or(NvmeStatus::LOG_PAGE_INVALID.with_do_not_retry())?;
        // An offset equal to the length is allowed and reads zeroes. A larger one is an invalid
        // field (base 2.0c, clause 5.16).
        if offset > log.len() as u64 {
            return Err(invalid_field);
        }
        log.drain(..offset as usize);
        // Beyond the end of a page everything reads as zero.
        log.resize((dwords * 4) as usize, 0);
        data.send(&log)?;
        // Reading a page acknowledges its events, unless the host asks to retain them (RAE).
        // This happens after the data were sent: a host that did not get the page must be told
        // again.
        if !retain {
            if id == page::CHANGED_NAMESPACES {
                self.logs.forget_changes();
            }
            self.events.page_read(id);
        }
        Ok(())
    }

    /// Endurance used by the most worn block, in percent.
    fn percentage_used(&self) -> u8 {
        // A device without a rated endurance divides by zero; it reports 0 %. The field allows
        // values up to 255 %, because a block may live longer than rated.
        let erases = u64::from(DeviceReport::of(&self.device).health().erases_max) * 100;
        erases.checked_div(u64::from(self.limits.endurance_cycles)).unwrap_or(0).min(255) as u8
    }

    /// The device has refused a write for good.
    #[cold]
    pub(crate) fn worn_out(&mut self) {
        if !self.logs.told_worn_out && self.features.wants_health(SmartLog::READ_ONLY) {
            self.logs.told_worn_out = true;
            self.events.push(AsynchronousEvent::RELIABILITY);
        }
    }
}
