//! Commands of the NVM command set (NVM 1.0c, clause 3.2).

use ssdyno_block::{Completion, Fault, Op, Request, Status as DeviceStatus, Time, Token};
use ssdyno_pci::{BusMaster, DmaDirection, DmaFault};
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry, nvm};

use super::NvmeController;
use super::commands::{Command, Force, Kind, State};
use super::datasets::NO_DATASET;
use super::faults::Effect;
use super::prp::{self, Rest};
use super::subsystem::Part;
use super::timers::Timer;
use ssdyno_device::Device;

/// All namespaces, where a command allows it.
const ALL_NAMESPACES: u32 = u32::MAX;
/// In command dword 12: force unit access.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;
/// In command dword 12: directives (DTYPE), which are not offered. PRINFO and STC mean nothing without
/// protection information and are ignored (NVM 1.0c, clause 3.2.4).
const DIRECTIVE: u32 = 0xf << 20;

/// What a decoded command needs next.
pub(super) enum Next {
    /// To go to the device.
    Begin,
    /// So many entries of a PRP list first.
    List(u32),
    /// Nothing: it is done.
    Done,
}

impl<D: Device> NvmeController<D> {
    /// An I/O command is in the controller.
    #[inline]
    pub(super) fn decode(
        &mut self,
        at: Time,
        slot: u32,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) {
        match self.prepare(slot, entry, bus) {
            Ok(Next::Begin) => self.begin(at, slot, bus),
            Ok(Next::Done) => self.finish(at, slot, NvmeStatus::SUCCESS),
            Ok(Next::List(entries)) => self.fetch_list(at, slot, entries, bus),
            Err(status) => self.finish(at, slot, status),
        }
    }

    #[inline]
    fn prepare(
        &mut self,
        slot: u32,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) -> Result<Next, NvmeStatus> {
        // Fused commands and SGLs are not offered (base 2.0c, figure 86).
        if entry.flags != 0 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        if self.subsystem.sanitizing.restricts() {
            return self.subsystem.refuse_io(entry).map(|()| Next::Done);
        }
        match entry.opcode {
            nvm::READ => self.prepare_transfer(slot, entry, Kind::Read),
            nvm::WRITE => self.prepare_transfer(slot, entry, Kind::Write),
            nvm::COMPARE if self.subsystem.media.contents.is_some() => {
                self.prepare_transfer(slot, entry, Kind::Compare)
            }
            nvm::FLUSH => self.prepare_flush(slot, entry),
            nvm::VERIFY if self.subsystem.has(Part::Io(nvm::VERIFY)) => {
                self.set_range(slot, entry)?;
                let force = self.force(entry, Kind::Verify);
                let command = self.commands.get_mut(slot);
                (command.kind, command.force) = (Kind::Verify, force);
                Ok(Next::Begin)
            }
            nvm::WRITE_ZEROES if self.subsystem.has(Part::Io(nvm::WRITE_ZEROES)) => {
                self.prepare_write_zeroes(slot, entry)
            }
            nvm::WRITE_UNCORRECTABLE => {
                self.set_range(slot, entry)?;
                let Command { offset_bytes, bytes, .. } = *self.commands.get(slot);
                self.subsystem.media.uncorrectable.insert(offset_bytes, offset_bytes + bytes);
                Ok(Next::Done)
            }
            nvm::DATASET_MANAGEMENT => self.prepare_dataset(slot, entry, bus),
            _ => Err(NvmeStatus::INVALID_OPCODE.with_do_not_retry()),
        }
    }

    /// Namespace and range of blocks, from dwords 10 to 12.
    #[inline]
    fn set_range(&mut self, slot: u32, entry: &SubmissionEntry) -> Result<(), NvmeStatus> {
        let namespace = self.subsystem.namespaces.addressed(entry.namespace_id.get())?;
        let first = u64::from(entry.dword10.get()) | u64::from(entry.dword11.get()) << 32;
        let blocks = u64::from(entry.dword12.get() & 0xffff) + 1;
        if first.checked_add(blocks).is_none_or(|end| end > namespace.blocks) {
            return Err(NvmeStatus::LBA_OUT_OF_RANGE.with_do_not_retry());
        }
        let command = self.commands.get_mut(slot);
        command.offset_bytes = namespace.start_bytes + (first << namespace.shift);
        command.bytes = blocks << namespace.shift;
        if entry.dword12.get() & DIRECTIVE != 0 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        Ok(())
    }

    /// What the entry's FUA, or a cache that is off, asks of the volatile cache.
    #[inline]
    fn force(&self, entry: &SubmissionEntry, kind: Kind) -> Force {
        let asked = entry.dword12.get() & FORCE_UNIT_ACCESS != 0;
        match kind {
            _ if !self.subsystem.has_cache() => Force::No,
            Kind::Write | Kind::Deallocate if asked || !self.subsystem.features.write_cache() => {
                Force::After
            }
            Kind::Read | Kind::Compare | Kind::Verify if asked => Force::Before,
            _ => Force::No,
        }
    }

    #[inline(always)]
    fn prepare_transfer(
        &mut self,
        slot: u32,
        entry: &SubmissionEntry,
        kind: Kind,
    ) -> Result<Next, NvmeStatus> {
        self.set_range(slot, entry)?;
        let force = self.force(entry, kind);
        let command = self.commands.get_mut(slot);
        command.kind = kind;
        command.force = force;
        command.prp1 = entry.prp1.get();
        command.prp2 = entry.prp2.get();
        if command.bytes > self.subsystem.config().max_transfer.0 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        let page_bytes = self.registers.page_bytes();
        match prp::classify(page_bytes, command.prp1, command.prp2, command.bytes)? {
            Rest::Nothing | Rest::Second => Ok(Next::Begin),
            Rest::List(entries) => {
                command.listed = true;
                Ok(Next::List(entries))
            }
        }
    }

    fn prepare_flush(&mut self, slot: u32, entry: &SubmissionEntry) -> Result<Next, NvmeStatus> {
        let id = entry.namespace_id.get();
        if id != ALL_NAMESPACES {
            self.subsystem.namespaces.addressed(id)?;
        }
        self.commands.get_mut(slot).kind = Kind::Flush;
        Ok(Next::Begin)
    }

    fn prepare_write_zeroes(
        &mut self,
        slot: u32,
        entry: &SubmissionEntry,
    ) -> Result<Next, NvmeStatus> {
        self.set_range(slot, entry)?;
        let force = self.force(entry, Kind::Deallocate);
        let command = self.commands.get_mut(slot);
        (command.kind, command.force) = (Kind::Deallocate, force);
        command.prp2 = NO_DATASET;
        let Command { offset_bytes, bytes, .. } = *command;
        self.subsystem.media.forget(offset_bytes, bytes);
        Ok(Next::Begin)
    }

    /// Reads the PRP list of the command; it begins when the list is there.
    fn fetch_list(&mut self, at: Time, slot: u32, entries: u32, bus: &mut dyn BusMaster) {
        let page_bytes = self.registers.page_bytes();
        let pointer = self.commands.get(slot).prp2;
        let list = &mut self.commands.list_mut(slot)[..entries as usize];
        match prp::read_list(bus, page_bytes, pointer, list) {
            Ok(reads) => {
                self.counters.list_reads += u64::from(reads);
                let command = self.commands.get_mut(slot);
                command.state = State::List;
                // As long on the wire as so many entries of a queue.
                let wire = self.wire.times.list_time(entries);
                let (_, read) = self.wire.to_controller.reserve(at, wire);
                let latency = self.subsystem.config().fetch_latency.0 * u64::from(reads);
                self.pipes.lists.send(read + latency, slot);
            }
            Err(status) => self.finish(at, slot, status),
        }
    }

    /// Everything about the command is known; perhaps a fault hits it.
    #[inline(always)]
    pub(super) fn begin(&mut self, at: Time, slot: u32, bus: &mut dyn BusMaster) {
        if self.faults.is_empty() {
            return self.begin_on_device(at, slot, bus);
        }
        let command = *self.commands.get(slot);
        let Some(namespace) = self.subsystem.namespaces.active(command.namespace) else {
            return self.begin_on_device(at, slot, bus);
        };
        let first = command.offset_bytes.saturating_sub(namespace.start_bytes) >> namespace.shift;
        let end = first + (command.bytes >> namespace.shift);
        match self.faults.hit(command.opcode, command.namespace, first..end) {
            Some(Effect::Fail(status)) => self.finish(at, slot, status),
            Some(Effect::Meet(Fault::Error)) => self.begin_spoilt(at, slot, bus),
            Some(Effect::Meet(Fault::Drop)) => self.commands.get_mut(slot).state = State::Lost,
            Some(Effect::Meet(Fault::Delay(time))) => {
                self.commands.get_mut(slot).state = State::Timer;
                self.timers.set(at + time, Timer::Begin(slot));
            }
            _ => self.begin_on_device(at, slot, bus),
        }
    }

    /// The command begins, and will fail.
    #[cold]
    fn begin_spoilt(&mut self, at: Time, slot: u32, bus: &mut dyn BusMaster) {
        self.begin_on_device(at, slot, bus);
        let kind = self.commands.get(slot).kind;
        let command = self.commands.get_mut(slot);
        match command.state {
            State::Device => command.state = State::Spoilt,
            // It needed no device: its answer is on its way.
            _ => command.status = failure(DeviceStatus::Error, kind),
        }
    }

    #[inline(always)]
    pub(super) fn begin_on_device(&mut self, at: Time, slot: u32, bus: &mut dyn BusMaster) {
        let command = *self.commands.get(slot);
        if command.force == Force::Before {
            self.commands.get_mut(slot).force = Force::Flushing;
            return self.submit(at, slot, Request::flush());
        }
        let end = command.offset_bytes + command.bytes;
        let op = match command.kind {
            Kind::Read | Kind::Compare | Kind::Verify => {
                if !self.subsystem.media.uncorrectable.is_empty()
                    && self
                        .subsystem
                        .media
                        .uncorrectable
                        .first_in(command.offset_bytes, end)
                        .is_some()
                {
                    return self.finish(at, slot, NvmeStatus::UNRECOVERED_READ.with_do_not_retry());
                }
                Op::Read
            }
            Kind::Write => {
                if self.move_data(slot, DmaDirection::FromHost, bus).is_err() {
                    return self.finish(at, slot, NvmeStatus::DATA_TRANSFER_ERROR);
                }
                if !self.subsystem.media.uncorrectable.is_empty() {
                    self.subsystem.media.uncorrectable.remove(command.offset_bytes, end);
                }
                self.subsystem.sanitizing.written();
                Op::Write
            }
            Kind::Flush => return self.submit(at, slot, Request::flush()),
            Kind::Deallocate => return self.deallocate_next(at, slot),
            Kind::Nothing => return self.finish(at, slot, command.status),
        };
        let request =
            Request { op, offset_bytes: command.offset_bytes, length_bytes: command.bytes as u32 };
        self.submit(at, slot, request);
    }

    #[inline(always)]
    pub(super) fn submit(&mut self, at: Time, slot: u32, request: Request) {
        self.commands.get_mut(slot).state = State::Device;
        if self.subsystem.device.submit(at, request, Token(slot)).is_err() {
            return self.finish(at, slot, NvmeStatus::INTERNAL_ERROR);
        }
        if self.subsystem.features.is_forced_to_sleep() {
            self.subsystem.wake(at);
        }
    }

    /// The device has done what it was asked for.
    #[inline(always)]
    pub(super) fn device_done(
        &mut self,
        at: Time,
        completion: Completion,
        bus: &mut dyn BusMaster,
    ) {
        let slot = completion.token.0;
        if self.shutdown_flushed(slot) {
            return;
        }
        let command = *self.commands.get(slot);
        if command.state != State::Device {
            return self.device_done_for_nothing(at, slot, completion.status);
        }
        if completion.status != DeviceStatus::Ok {
            if completion.status == DeviceStatus::ReadOnly {
                self.subsystem.worn_out();
                self.send_events(at);
            }
            return self.finish(at, slot, failure(completion.status, command.kind));
        }
        if command.force == Force::Flushing {
            self.commands.get_mut(slot).force = Force::No;
            return self.begin_on_device(at, slot, bus);
        }
        let status = match command.kind {
            Kind::Read | Kind::Compare => {
                let way = if command.kind == Kind::Read {
                    DmaDirection::ToHost
                } else {
                    DmaDirection::FromHost
                };
                match self.move_data(slot, way, bus) {
                    Ok(true) => NvmeStatus::SUCCESS,
                    Ok(false) => NvmeStatus::COMPARE_FAILURE,
                    Err(_) => NvmeStatus::DATA_TRANSFER_ERROR,
                }
            }
            Kind::Write if command.force == Force::After => {
                self.commands.get_mut(slot).force = Force::No;
                return self.submit(at, slot, Request::flush());
            }
            Kind::Deallocate => return self.deallocate_next(at, slot),
            _ => NvmeStatus::SUCCESS,
        };
        if status.is_success() {
            self.subsystem.logs.count(command.kind, command.bytes);
        }
        self.finish(at, slot, status);
    }

    /// The device has done what nobody waits for, or what shall fail.
    #[cold]
    fn device_done_for_nothing(&mut self, at: Time, slot: u32, status: DeviceStatus) {
        let Command { state, kind, .. } = *self.commands.get(slot);
        match state {
            State::Spoilt => {}
            State::Sanitized => return self.finish(at, slot, NvmeStatus::SANITIZE_IN_PROGRESS),
            _ => return self.drop_command(slot),
        }
        let status = if status == DeviceStatus::Ok { DeviceStatus::Error } else { status };
        self.finish(at, slot, failure(status, kind));
    }

    /// Moves the data of a command, or checks that it could be moved where no contents are kept;
    /// false if a comparison failed.
    #[inline(always)]
    fn move_data(
        &mut self,
        slot: u32,
        way: DmaDirection,
        bus: &mut dyn BusMaster,
    ) -> Result<bool, DmaFault> {
        let command = self.commands.get(slot);
        let page_bytes = self.registers.page_bytes();
        let media = &mut self.subsystem.media;
        let second = [command.prp2.into()];
        let rest = if command.listed { self.commands.list(slot) } else { &second[..] };
        let Some(contents) = &mut media.contents else {
            let touch = |address, bytes| bus.touch(address, bytes, way);
            return prp::pieces(page_bytes, command.prp1, rest, command.bytes, touch)
                .map(|()| true);
        };
        let mut offset = command.offset_bytes;
        let mut equal = true;
        let scratch = &mut media.scratch;
        prp::pieces(page_bytes, command.prp1, rest, command.bytes, |address, bytes| {
            scratch.resize(bytes as usize, 0);
            match command.kind {
                Kind::Read => {
                    contents.read(offset, scratch);
                    bus.write(address, scratch)?;
                }
                Kind::Compare => {
                    bus.read(address, scratch)?;
                    equal &= contents.equals(offset, scratch);
                }
                _ => {
                    bus.read(address, scratch)?;
                    contents.write(offset, scratch);
                }
            }
            offset += bytes;
            Ok(())
        })?;
        Ok(equal)
    }

    /// The command ends without a completion.
    #[inline(always)]
    pub(super) fn drop_command(&mut self, slot: u32) {
        let command = self.commands.get(slot);
        if command.kind == Kind::Deallocate {
            self.datasets.give_back(command.prp2);
        }
        self.commands.remove(slot);
    }
}

/// What the host hears of a failure of the device.
fn failure(status: DeviceStatus, kind: Kind) -> NvmeStatus {
    match (status, kind) {
        (DeviceStatus::ReadOnly, _) => NvmeStatus::WRITE_PROTECTED.with_do_not_retry(),
        (DeviceStatus::Error, Kind::Read | Kind::Compare | Kind::Verify) => {
            NvmeStatus::UNRECOVERED_READ
        }
        (DeviceStatus::Error, _) => NvmeStatus::WRITE_FAULT,
        _ => NvmeStatus::INTERNAL_ERROR,
    }
}
