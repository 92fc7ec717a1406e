//! I/O commands as the PCI transport carries them out: PRP lists, data in host memory, injected faults. The meaning of
//! commands belongs to the subsystem.

use ssdyno_block::{Completion, Fault, Request, Status as DeviceStatus, Time, Token};
use ssdyno_pci::{BusMaster, DmaDirection, DmaFault};
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry};

use super::NvmeController;
use super::commands::State;
use super::faults::Effect;
use super::pages::HostPages;
use super::prp::{self, Rest};
use super::subsystem::{Kind, NvmStep};
use super::timers::Timer;
use crate::answer::Answer;
use ssdyno_device::Device;

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
            Ok(NvmStep::Begin) => match self.find_pages(slot, entry) {
                Ok(Some(entries)) => self.fetch_list(at, slot, entries, bus),
                Ok(None) => self.begin(at, slot, bus),
                Err(status) => self.finish(at, slot, status),
            },
            Ok(step) => self.take_step(at, slot, step, bus),
            Err(status) => self.finish(at, slot, status),
        }
    }

    #[inline]
    fn prepare(
        &mut self,
        slot: u32,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) -> Answer<NvmStep> {
        // Fused commands and SGLs are not offered (base 2.0c, figure 86).
        if entry.flags != 0 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        let data = &mut HostPages { entry, registers: &self.registers, bus };
        self.subsystem.decode(&mut self.commands.get_mut(slot).nvm, entry, data)
    }

    /// Where the data of the command lie; gives the number of entries of its PRP list, if it has one.
    #[inline(always)]
    fn find_pages(&mut self, slot: u32, entry: &SubmissionEntry) -> Answer<Option<u32>> {
        let command = self.commands.get_mut(slot);
        let bytes = command.nvm.data_bytes();
        if bytes == 0 {
            return Ok(None);
        }
        command.prp1 = entry.prp1.get();
        command.prp2 = entry.prp2.get();
        match prp::classify(self.registers.page_bytes(), command.prp1, command.prp2, bytes)? {
            Rest::Nothing | Rest::Second => Ok(None),
            Rest::List(entries) => {
                command.listed = true;
                Ok(Some(entries))
            }
        }
    }

    /// Reads the PRP list of the command; it begins when the list is there.
    fn fetch_list(&mut self, at: Time, slot: u32, entries: u32, bus: &mut dyn BusMaster) {
        let page_bytes = self.registers.page_bytes();
        let pointer = self.commands.get(slot).prp2;
        // The list is read from host memory now, and its time is charged afterwards. The host
        // must not change it while the command is outstanding, so both moments give the same
        // list.
        let list = &mut self.commands.list_mut(slot)[..entries as usize];
        match prp::read_list(bus, page_bytes, pointer, list) {
            Ok(reads) => {
                self.counters.list_reads += u64::from(reads);
                let command = self.commands.get_mut(slot);
                command.state = State::List;
                // As long on the wire as this number of entries of a queue.
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
        // Runs without injected faults are the usual case. This single test keeps the search for
        // a fault out of the path of every command.
        if self.faults.is_empty() {
            return self.begin_on_device(at, slot, bus);
        }
        let command = *self.commands.get(slot);
        let Some(blocks) = self.subsystem.blocks_of(&command.nvm) else {
            return self.begin_on_device(at, slot, bus);
        };
        match self.faults.hit(command.nvm.opcode, command.nvm.namespace, blocks) {
            Some(Effect::Fail(status)) => self.finish(at, slot, status),
            Some(Effect::Meet(Fault::Error)) => self.begin_spoilt(at, slot, bus),
            // The command keeps its slot and its identifier. Only an abort or a reset ends it,
            // as with a controller that has lost track of a command.
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
        let command = self.commands.get_mut(slot);
        // The device does the work, so that time, energy and wear are those of a real attempt.
        // Only the status says that it failed.
        match command.state {
            State::Device => command.state = State::Spoilt,
            // It needed no device: its answer is on its way.
            _ => command.status = command.nvm.failure(DeviceStatus::Error),
        }
    }

    #[inline(always)]
    pub(super) fn begin_on_device(&mut self, at: Time, slot: u32, bus: &mut dyn BusMaster) {
        // The data of a write leave host memory before the device begins. The device charges the
        // time of the transfer itself; here only contents and addresses matter.
        if self.commands.get(slot).nvm.is_write()
            && self.move_data(slot, DmaDirection::FromHost, bus).is_err()
        {
            return self.finish(at, slot, NvmeStatus::DATA_TRANSFER_ERROR);
        }
        match self.subsystem.begin(&mut self.commands.get_mut(slot).nvm) {
            NvmStep::Submit(request) => self.submit(at, slot, request),
            NvmStep::End(status) => self.finish(at, slot, status),
            // Neither follows the beginning.
            NvmStep::Begin | NvmStep::Move => {}
        }
    }

    /// Does what the subsystem wants for the command.
    pub(super) fn take_step(
        &mut self,
        at: Time,
        slot: u32,
        step: NvmStep,
        bus: &mut dyn BusMaster,
    ) {
        match step {
            NvmStep::Begin => self.begin_on_device(at, slot, bus),
            NvmStep::Submit(request) => self.submit(at, slot, request),
            NvmStep::Move => self.move_answer(at, slot, bus),
            NvmStep::End(status) => self.finish(at, slot, status),
        }
    }

    #[inline(always)]
    fn submit(&mut self, at: Time, slot: u32, request: Request) {
        self.commands.get_mut(slot).state = State::Device;
        // A refusal is unexpected here: the range was checked, and the controller limits its
        // commands. The host gets an internal error instead of a command that hangs.
        if self.subsystem.submit(at, request, Token(slot)).is_err() {
            self.finish(at, slot, NvmeStatus::INTERNAL_ERROR);
        }
    }

    /// The device has executed the request.
    #[inline(always)]
    pub(super) fn device_done(
        &mut self,
        at: Time,
        completion: Completion,
        bus: &mut dyn BusMaster,
    ) {
        let slot = completion.token.0;
        // Flushes of a shutdown have no slot. Their tokens begin at 2^31 and are sorted out
        // before the token is used as an index.
        if self.shutdown_flushed(slot) {
            return;
        }
        let command = self.commands.get_mut(slot);
        // A reset or a deletion may have ended the command while the device worked on it. The
        // device cannot be interrupted, so its completion still comes.
        if command.state != State::Device {
            return self.device_done_for_nothing(at, slot, completion.status);
        }
        if completion.status != DeviceStatus::Ok {
            return self.device_failed(at, slot, completion.status);
        }
        match self.subsystem.device_done(&mut command.nvm) {
            NvmStep::Move => self.move_answer(at, slot, bus),
            NvmStep::End(status) => self.finish(at, slot, status),
            step => self.take_step(at, slot, step, bus),
        }
    }

    /// The data of a read or a comparison move, and it ends.
    #[inline(always)]
    fn move_answer(&mut self, at: Time, slot: u32, bus: &mut dyn BusMaster) {
        let reads = self.commands.get(slot).nvm.kind == Kind::Read;
        let way = if reads { DmaDirection::ToHost } else { DmaDirection::FromHost };
        let status = match self.move_data(slot, way, bus) {
            Ok(true) => {
                // The health log counts the command only after its data have moved. A command
                // whose host memory was bad did not succeed.
                self.subsystem.succeeded(&self.commands.get(slot).nvm);
                NvmeStatus::SUCCESS
            }
            Ok(false) => NvmeStatus::COMPARE_FAILURE,
            Err(_) => NvmeStatus::DATA_TRANSFER_ERROR,
        };
        self.finish(at, slot, status);
    }

    #[cold]
    fn device_failed(&mut self, at: Time, slot: u32, status: DeviceStatus) {
        let status = self.subsystem.device_failed(&self.commands.get(slot).nvm, status);
        self.send_events(at);
        self.finish(at, slot, status);
    }

    /// The device has done work that no command waits for, or that must fail.
    #[cold]
    fn device_done_for_nothing(&mut self, at: Time, slot: u32, status: DeviceStatus) {
        let command = self.commands.get(slot);
        match command.state {
            State::Spoilt => {}
            State::Sanitized => return self.finish(at, slot, NvmeStatus::SANITIZE_IN_PROGRESS),
            _ => return self.drop_command(slot),
        }
        let status = if status == DeviceStatus::Ok { DeviceStatus::Error } else { status };
        let status = command.nvm.failure(status);
        self.finish(at, slot, status);
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
        let second = [command.prp2.into()];
        let rest = if command.listed { self.commands.list(slot) } else { &second[..] };
        let nvm = &command.nvm;
        // Most runs keep no contents. The addresses are still checked, so that a host with a
        // wrong PRP list fails in these runs, too.
        if !self.subsystem.keeps_contents() {
            let touch = |address, bytes| bus.touch(address, bytes, way);
            return prp::pieces(page_bytes, command.prp1, rest, nvm.bytes, touch).map(|()| true);
        }
        let (mut done, mut equal) = (0, true);
        let subsystem = &mut self.subsystem;
        prp::pieces(page_bytes, command.prp1, rest, nvm.bytes, |address, bytes| {
            equal &= subsystem.move_data(nvm, done, bytes as usize, |data| match way {
                DmaDirection::ToHost => bus.write(address, data),
                DmaDirection::FromHost => bus.read(address, data),
            })?;
            done += bytes;
            Ok(())
        })?;
        Ok(equal)
    }

    /// The command ends without a completion.
    #[inline(always)]
    pub(super) fn drop_command(&mut self, slot: u32) {
        self.subsystem.release(&self.commands.get(slot).nvm);
        self.commands.remove(slot);
    }
}
