//! Admin commands (base 2.0c, clause 5).

use ssdyno_block::Time;
use ssdyno_pci::BusMaster;
use ssdyno_spec::nvme::{
    AsynchronousEvent, IdentifyNamespace, NvmeStatus, SmartLog, SubmissionEntry, admin, page,
};
use zerocopy::little_endian::U64;
use zerocopy::{FromZeros, IntoBytes};

use super::NvmeController;
use super::commands::State;
use super::identify::{ABORTS_MAX, CONTROLLER_ID};
use super::logs::Wear;
use super::namespaces::Namespace;
use super::prp::{self, Rest};
use super::timers::Timer;
use super::versions::{Field, Part};
use ssdyno_device::{Device, DeviceReport};

/// What becomes of an admin command.
pub(super) enum Outcome {
    /// It ends after its time, with this dword 0.
    Done(u32),
    /// It ends later, by itself.
    Later,
}

impl<D: Device> NvmeController<D> {
    /// An admin command is in the controller.
    pub(super) fn admin(
        &mut self,
        at: Time,
        slot: u32,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) {
        let (status, dword0) = match self.execute(at, slot, entry, bus) {
            Ok(Outcome::Later) => return,
            Ok(Outcome::Done(dword0)) => (NvmeStatus::SUCCESS, dword0),
            Err(status) => (status, 0),
        };
        let command = self.commands.get_mut(slot);
        (command.status, command.dword0) = (status, dword0);
        command.state = State::Timer;
        self.timers.set(at + self.config.admin_time.0, Timer::Finish(slot));
    }

    fn execute(
        &mut self,
        at: Time,
        slot: u32,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) -> Result<Outcome, NvmeStatus> {
        // Fused commands and SGLs are not offered.
        if entry.flags != 0 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        if !self.has(Part::Admin(entry.opcode)) {
            return Err(NvmeStatus::INVALID_OPCODE.with_do_not_retry());
        }
        self.check_sanitizing(entry)?;
        match entry.opcode {
            admin::DELETE_SUBMISSION_QUEUE => return self.delete_submission_queue(at, slot, entry),
            admin::CREATE_SUBMISSION_QUEUE => self.create_submission_queue(entry)?,
            admin::GET_LOG_PAGE => self.get_log_page(at, entry, bus)?,
            admin::DELETE_COMPLETION_QUEUE => self.delete_completion_queue(entry)?,
            admin::CREATE_COMPLETION_QUEUE => self.create_completion_queue(entry, bus.vectors())?,
            admin::IDENTIFY => {
                let structure = self.identify(entry)?;
                self.copy_to_host(entry, &structure, bus)?;
            }
            admin::ABORT => return self.abort(at, slot, entry),
            admin::SET_FEATURES => return self.set_features(at, entry, bus).map(Outcome::Done),
            admin::GET_FEATURES => return self.get_features(entry, bus).map(Outcome::Done),
            admin::ASYNCHRONOUS_EVENT_REQUEST => return self.request_event(at, slot),
            admin::NAMESPACE_MANAGEMENT => return self.manage_namespace(at, slot, entry, bus),
            admin::NAMESPACE_ATTACHMENT => self.attach_namespace(at, entry, bus)?,
            admin::KEEP_ALIVE => self.keep_alive(at),
            admin::FORMAT_NVM => return self.format(at, slot, entry),
            admin::SANITIZE => return self.sanitize(at, slot, entry),
            _ => return Err(NvmeStatus::INVALID_OPCODE.with_do_not_retry()),
        }
        Ok(Outcome::Done(0))
    }

    /// Copies `data` to where the command's PRPs point.
    pub(super) fn copy_to_host(
        &mut self,
        entry: &SubmissionEntry,
        data: &[u8],
        bus: &mut dyn BusMaster,
    ) -> Result<(), NvmeStatus> {
        let mut done = 0;
        self.walk(entry, data.len(), bus, |bus, address, bytes| {
            let part = &data[done..done + bytes];
            done += bytes;
            bus.write(address, part).map_err(|_| NvmeStatus::DATA_TRANSFER_ERROR)
        })
    }

    /// Copies from where the command's PRPs point.
    pub(super) fn copy_from_host(
        &mut self,
        entry: &SubmissionEntry,
        data: &mut [u8],
        bus: &mut dyn BusMaster,
    ) -> Result<(), NvmeStatus> {
        let mut done = 0;
        self.walk(entry, data.len(), bus, |bus, address, bytes| {
            let part = &mut data[done..done + bytes];
            done += bytes;
            bus.read(address, part).map_err(|_| NvmeStatus::DATA_TRANSFER_ERROR)
        })
    }

    fn walk(
        &self,
        entry: &SubmissionEntry,
        bytes: usize,
        bus: &mut dyn BusMaster,
        mut each: impl FnMut(&mut dyn BusMaster, u64, usize) -> Result<(), NvmeStatus>,
    ) -> Result<(), NvmeStatus> {
        let page_bytes = self.registers.page_bytes();
        let (prp1, prp2, bytes) = (entry.prp1.get(), entry.prp2.get(), bytes as u64);
        let rest = match prp::classify(page_bytes, prp1, prp2, bytes)? {
            Rest::Nothing => Vec::new(),
            Rest::Second => vec![entry.prp2],
            Rest::List(entries) => {
                let mut list = vec![U64::ZERO; entries as usize];
                prp::read_list(bus, page_bytes, prp2, &mut list)?;
                list
            }
        };
        let piece = |address, bytes| each(bus, address, bytes as usize);
        prp::pieces(page_bytes, prp1, &rest, bytes, piece)
    }

    /// Get Log Page (base 2.0c, clause 5.16).
    fn get_log_page(
        &mut self,
        at: Time,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) -> Result<(), NvmeStatus> {
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
        if offset > log.len() as u64 {
            return Err(invalid_field);
        }
        log.drain(..offset as usize);
        // Beyond the end of a page everything reads as zero.
        log.resize((dwords * 4) as usize, 0);
        self.copy_to_host(entry, &log, bus)?;
        if !retain {
            if id == page::CHANGED_NAMESPACES {
                self.logs.forget_changes();
            }
            self.events.page_read(id);
            self.send_events(at);
        }
        Ok(())
    }

    /// Endurance used by the most worn block, in percent.
    fn percentage_used(&self) -> u8 {
        let erases = u64::from(DeviceReport::of(&self.device).health().erases_max) * 100;
        erases.checked_div(u64::from(self.endurance_cycles)).unwrap_or(0).min(255) as u8
    }

    /// Abort (base 2.0c, clause 5.1): what the device has not begun ends; all else goes on.
    fn abort(
        &mut self,
        at: Time,
        slot: u32,
        entry: &SubmissionEntry,
    ) -> Result<Outcome, NvmeStatus> {
        let outstanding = self.commands.waiting().filter(|other| {
            let other = self.commands.get(*other);
            other.queue == 0 && other.opcode == admin::ABORT && other.state == State::Timer
        });
        // The command itself is one of them.
        if outstanding.count() > usize::from(ABORTS_MAX) {
            return Err(NvmeStatus::ABORT_LIMIT_EXCEEDED);
        }
        let dword10 = entry.dword10.get();
        let (queue, id) = (dword10 as u16, (dword10 >> 16) as u16);
        let victim = self.commands.find(queue, id).filter(|victim| *victim != slot);
        let ended =
            victim.is_some_and(|victim| self.end_early(at, victim, NvmeStatus::ABORT_REQUESTED));
        // Bit 0: the command was not aborted.
        Ok(Outcome::Done(u32::from(!ended)))
    }

    /// Ends a command that the device has not begun; false where it is too late.
    pub(super) fn end_early(&mut self, at: Time, slot: u32, status: NvmeStatus) -> bool {
        let command = *self.commands.get(slot);
        match command.state {
            State::List => self.lists.retain(|waiting| *waiting != slot),
            State::Timer if command.queue != 0 => self.timers.cancel(Timer::Begin(slot)),
            State::Parked => self.events.withdraw(slot),
            State::Lost => {}
            _ => return false,
        }
        self.finish(at, slot, status);
        true
    }

    /// Asynchronous Event Request (base 2.0c, clause 5.2).
    fn request_event(&mut self, at: Time, slot: u32) -> Result<Outcome, NvmeStatus> {
        if !self.events.request(slot) {
            return Err(NvmeStatus::ASYNCHRONOUS_EVENT_LIMIT_EXCEEDED.with_do_not_retry());
        }
        self.commands.get_mut(slot).state = State::Parked;
        self.send_events(at);
        Ok(Outcome::Later)
    }

    /// Namespace Management (base 2.0c, clause 5.23): create and delete.
    fn manage_namespace(
        &mut self,
        at: Time,
        slot: u32,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) -> Result<Outcome, NvmeStatus> {
        let invalid_field = NvmeStatus::INVALID_FIELD.with_do_not_retry();
        match entry.dword10.get() & 0xf {
            0 if entry.dword11.get() >> 24 != 0 => {
                let named = self.has_field(Field::CommandSets);
                let unknown = NvmeStatus::COMMAND_SET_NOT_SUPPORTED.with_do_not_retry();
                Err(if named { unknown } else { invalid_field })
            }
            0 => {
                let mut wanted = IdentifyNamespace::new_zeroed();
                self.copy_from_host(entry, wanted.as_mut_bytes(), bus)?;
                let format = self.namespaces.format(usize::from(wanted.format_index()));
                let invalid_format = NvmeStatus::FORMAT_INVALID.with_do_not_retry();
                let shift = format.ok_or(invalid_format)?;
                // Metadata and protection are not offered (S1-46).
                if wanted.format & 0x10 != 0 || wanted.protection != 0 {
                    return Err(invalid_format);
                }
                if wanted.size.get() > wanted.capacity.get() {
                    return Err(NvmeStatus::THIN_PROVISIONING_NOT_SUPPORTED.with_do_not_retry());
                }
                if wanted.size != wanted.capacity || wanted.sharing != 0 {
                    return Err(invalid_field);
                }
                self.namespaces.create(wanted.size.get(), shift).map(Outcome::Done)
            }
            1 => self.delete_namespaces(at, slot, entry.namespace_id.get()),
            _ => Err(invalid_field),
        }
    }

    /// One namespace, or all of them by the identifier that stands for all.
    fn delete_namespaces(&mut self, at: Time, slot: u32, id: u32) -> Result<Outcome, NvmeStatus> {
        let all = id == u32::MAX;
        let ids: Vec<u32> = self.namespaces.ids(0, true).filter(|own| all || *own == id).collect();
        if ids.is_empty() && !all {
            return Err(self.namespaces.refusal(id));
        }
        let mut stretch = (u64::MAX, 0);
        for id in ids {
            let Some(namespace) = self.namespaces.delete(id) else { continue };
            stretch = joined(stretch, &namespace);
            if namespace.attached {
                self.namespace_changed(at, id);
            }
        }
        self.deallocate_for_admin(at, slot, stretch);
        Ok(Outcome::Later)
    }

    fn namespace_changed(&mut self, at: Time, id: u32) {
        self.logs.namespace_changed(id);
        if self.features.wants_namespace_notices() {
            self.raise(at, AsynchronousEvent::NAMESPACE_CHANGED);
        }
    }

    /// Namespace Attachment (base 2.0c, clause 5.22).
    fn attach_namespace(
        &mut self,
        at: Time,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) -> Result<(), NvmeStatus> {
        let mut list = [zerocopy::little_endian::U16::ZERO; 2048];
        self.copy_from_host(entry, list.as_mut_bytes(), bus)?;
        let count = usize::from(list[0].get());
        let listed = list.get(1..=count).filter(|listed| !listed.is_empty());
        if listed.is_none_or(|listed| listed.iter().any(|id| id.get() != CONTROLLER_ID)) {
            return Err(NvmeStatus::CONTROLLER_LIST_INVALID.with_do_not_retry());
        }
        let id = entry.namespace_id.get();
        let refusal = self.namespaces.refusal(id);
        let namespace = self.namespaces.get_mut(id).ok_or(refusal)?;
        match (entry.dword10.get() & 0xf, namespace.attached) {
            (0, true) => return Err(NvmeStatus::NAMESPACE_ALREADY_ATTACHED.with_do_not_retry()),
            (1, false) => return Err(NvmeStatus::NAMESPACE_NOT_ATTACHED.with_do_not_retry()),
            (0, false) => namespace.attached = true,
            (1, true) => namespace.attached = false,
            _ => return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry()),
        }
        self.namespace_changed(at, id);
        Ok(())
    }

    /// Format NVM (base 2.0c, clause 5.14): new block size, no data.
    fn format(
        &mut self,
        at: Time,
        slot: u32,
        entry: &SubmissionEntry,
    ) -> Result<Outcome, NvmeStatus> {
        let dword10 = entry.dword10.get();
        let format = (dword10 & 0xf | (dword10 >> 12 & 3) << 4) as usize;
        let invalid_format = NvmeStatus::FORMAT_INVALID.with_do_not_retry();
        let shift = self.namespaces.format(format).ok_or(invalid_format)?;
        // Metadata and protection (S1-46), and erasing by keys, are not offered.
        if dword10 >> 4 & 0x1f != 0 {
            return Err(invalid_format);
        }
        if dword10 >> 9 & 7 > 1 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        let id = entry.namespace_id.get();
        let all = id == u32::MAX;
        let ids: Vec<u32> = self.namespaces.ids(0, false).filter(|own| all || *own == id).collect();
        if ids.is_empty() {
            return Err(self.namespaces.refusal(id));
        }
        let mut stretch = (u64::MAX, 0);
        for id in ids {
            let Some(namespace) = self.namespaces.get_mut(id) else { continue };
            stretch = joined(stretch, namespace);
            namespace.blocks = namespace.bytes() >> shift;
            namespace.shift = shift;
            self.namespace_changed(at, id);
        }
        // With all namespaces, what lies between them holds no data either.
        self.deallocate_for_admin(at, slot, stretch);
        Ok(Outcome::Later)
    }

    /// The device has refused a write for good.
    #[cold]
    pub(super) fn worn_out(&mut self, at: Time) {
        if !self.told_worn_out && self.features.wants_health(SmartLog::READ_ONLY) {
            self.told_worn_out = true;
            self.raise(at, AsynchronousEvent::RELIABILITY);
        }
    }
}

/// `stretch` of the device, from its first byte to the one behind its last, with `namespace`.
fn joined(stretch: (u64, u64), namespace: &Namespace) -> (u64, u64) {
    let (start, end) = (namespace.start_bytes, namespace.start_bytes + namespace.bytes());
    (stretch.0.min(start), stretch.1.max(end))
}
