//! Commands of the NVM command set (NVM 1.0c, clause 3.2), as far as they are the same over every transport.

use std::ops::Range;

use ssdyno_block::{Op, Request, Status as DeviceStatus, SubmitError, Time, Token};
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry, nvm};

use super::ranges::NO_DATASET;
use super::versions::Part;
use super::{HostData, NvmeSubsystem};
use crate::answer::Answer;
use ssdyno_device::Device;

/// All namespaces, where a command allows it.
const ALL_NAMESPACES: u32 = u32::MAX;
/// In command dword 12: force unit access.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;
/// In command dword 12: directives (DTYPE), which are not offered. PRINFO and STC mean nothing without
/// protection information and are ignored (NVM 1.0c, clause 3.2.4).
const DIRECTIVE: u32 = 0xf << 20;

/// The device's part of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Data to the host.
    Read,
    /// Data from the host.
    Write,
    /// Data of the host and of the medium are compared.
    Compare,
    /// A read whose data stays inside.
    Verify,
    /// The data in the volatile cache goes to flash.
    Flush,
    /// Ranges lose their data, one after another.
    Deallocate,
    /// Nothing: an admin command, or one that needs no medium.
    Nothing,
}

/// How a command that must not rest on the volatile cache (FUA, or the cache is off) goes about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Force {
    /// It may rest on it.
    No,
    /// What is in the cache goes to flash before it begins: it reads what flash has (NVM 1.0c,
    /// clauses 3.2.2, 3.2.4 and 3.2.6).
    Before,
    /// That is under way.
    Flushing,
    /// Its data goes to flash before its completion.
    After,
}

/// A command on the medium, from its decoding to its end.
#[derive(Clone, Copy, Debug)]
pub struct NvmCommand {
    /// First byte on the device.
    pub(crate) offset_bytes: u64,
    /// Data to move, or what is left of a range to deallocate.
    pub(crate) bytes: u64,
    /// Its namespace.
    pub(crate) namespace: u32,
    /// The ranges that it deallocates, or [`NO_DATASET`].
    pub(crate) dataset: u32,
    pub(crate) opcode: u8,
    pub(crate) kind: Kind,
    /// The required operation on the volatile cache.
    pub(crate) force: Force,
}

/// The next need of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NvmStep {
    /// To be begun: [`NvmeSubsystem::begin`].
    Begin,
    /// The device does this for it: [`NvmeSubsystem::submit`].
    Submit(Request),
    /// Its data move between host and medium, as [`NvmeSubsystem::move_data`] does; it ends with the status of that.
    Move,
    /// It ends.
    End(NvmeStatus),
}

impl NvmCommand {
    /// Command `opcode` for `namespace`, not decoded yet.
    pub fn new(opcode: u8, namespace: u32) -> NvmCommand {
        NvmCommand {
            offset_bytes: 0,
            bytes: 0,
            namespace,
            dataset: NO_DATASET,
            opcode,
            kind: Kind::Nothing,
            force: Force::No,
        }
    }
    /// Bytes that move between host and medium, in either direction.
    #[inline]
    pub fn data_bytes(&self) -> u64 {
        if matches!(self.kind, Kind::Read | Kind::Write | Kind::Compare) { self.bytes } else { 0 }
    }
    /// The data come from the host, before the command begins.
    #[inline]
    pub fn is_write(&self) -> bool {
        self.kind == Kind::Write
    }
}

impl<D: Device> NvmeSubsystem<D> {
    /// Decodes an I/O command: afterwards it begins or, without any work for the device, ends.
    ///
    /// # Errors
    /// The status with which the command ends.
    #[inline]
    pub fn decode(
        &mut self,
        command: &mut NvmCommand,
        entry: &SubmissionEntry,
        data: &mut impl HostData,
    ) -> Result<NvmStep, NvmeStatus> {
        if self.sanitizing.restricts() {
            return self.refuse_io(entry).map(|()| NvmStep::End(NvmeStatus::SUCCESS));
        }
        match entry.opcode {
            nvm::READ => self.decode_transfer(command, entry, Kind::Read),
            nvm::WRITE => self.decode_transfer(command, entry, Kind::Write),
            nvm::COMPARE if self.media.contents.is_some() => {
                self.decode_transfer(command, entry, Kind::Compare)
            }
            nvm::FLUSH => self.decode_flush(command, entry),
            nvm::VERIFY if self.has(Part::Io(nvm::VERIFY)) => {
                self.set_range(command, entry)?;
                command.kind = Kind::Verify;
                command.force = self.force(entry, Kind::Verify);
                Ok(NvmStep::Begin)
            }
            // Deallocated blocks read as zeroes here, so deallocation is a correct way to write
            // zeroes. It costs no program of flash.
            nvm::WRITE_ZEROES if self.has(Part::Io(nvm::WRITE_ZEROES)) => {
                self.set_range(command, entry)?;
                command.kind = Kind::Deallocate;
                command.force = self.force(entry, Kind::Deallocate);
                command.dataset = NO_DATASET;
                self.media.forget(command.offset_bytes, command.bytes);
                // The log page shows whether the storage was written to (GDE, base 2.0c, figure
                // 267). Writing zeroes is that, however it is done; a mere deallocation is not.
                self.sanitizing.written();
                Ok(NvmStep::Begin)
            }
            nvm::WRITE_UNCORRECTABLE => {
                self.set_range(command, entry)?;
                let end = command.offset_bytes + command.bytes;
                // The command marks blocks and moves no data. A later write removes the mark; a
                // read before that ends with an unrecovered read error (NVM 1.0c, clause 3.2.7).
                self.media.uncorrectable.insert(command.offset_bytes, end);
                self.sanitizing.written();
                Ok(NvmStep::End(NvmeStatus::SUCCESS))
            }
            nvm::DATASET_MANAGEMENT => self.decode_dataset(command, entry, data),
            _ => Err(NvmeStatus::INVALID_OPCODE.with_do_not_retry()),
        }
    }

    /// Namespace and range of blocks, from dwords 10 to 12.
    #[inline]
    fn set_range(&self, command: &mut NvmCommand, entry: &SubmissionEntry) -> Answer {
        let namespace = self.namespaces.addressed(entry.namespace_id.get())?;
        let first = u64::from(entry.dword10.get()) | u64::from(entry.dword11.get()) << 32;
        let blocks = u64::from(entry.dword12.get() & 0xffff) + 1;
        // The first block has 64 bits. A sum that wrapped would pass the comparison and reach
        // another namespace.
        if first.checked_add(blocks).is_none_or(|end| end > namespace.blocks) {
            return Err(NvmeStatus::LBA_OUT_OF_RANGE.with_do_not_retry());
        }
        command.offset_bytes = namespace.start_bytes + (first << namespace.shift);
        command.bytes = blocks << namespace.shift;
        if entry.dword12.get() & DIRECTIVE != 0 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        Ok(())
    }

    /// The demand on the volatile cache from the entry's FUA, or from a disabled cache.
    #[inline]
    fn force(&self, entry: &SubmissionEntry, kind: Kind) -> Force {
        let asked = entry.dword12.get() & FORCE_UNIT_ACCESS != 0;
        match kind {
            _ if !self.has_cache() => Force::No,
            Kind::Write | Kind::Deallocate if asked || !self.features.write_cache() => Force::After,
            Kind::Read | Kind::Compare | Kind::Verify if asked => Force::Before,
            _ => Force::No,
        }
    }

    #[inline(always)]
    fn decode_transfer(
        &mut self,
        command: &mut NvmCommand,
        entry: &SubmissionEntry,
        kind: Kind,
    ) -> Answer<NvmStep> {
        self.set_range(command, entry)?;
        command.kind = kind;
        command.force = self.force(entry, kind);
        // MDTS limits commands that move data between host and controller. Commands that only
        // name a range, such as Verify here or Write Zeroes, are not limited by it.
        if command.bytes > self.config.max_transfer.0 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        Ok(NvmStep::Begin)
    }

    fn decode_flush(
        &mut self,
        command: &mut NvmCommand,
        entry: &SubmissionEntry,
    ) -> Answer<NvmStep> {
        let id = entry.namespace_id.get();
        if id != ALL_NAMESPACES {
            self.namespaces.addressed(id)?;
        }
        command.kind = Kind::Flush;
        Ok(NvmStep::Begin)
    }

    /// The command begins; the data of a [write](NvmCommand::is_write) have been moved.
    #[inline(always)]
    pub fn begin(&mut self, command: &mut NvmCommand) -> NvmStep {
        // A read with FUA must return what the medium has (NVM 1.0c, clause 3.2.4). The flush
        // comes first; the read itself begins when the device has answered.
        if command.force == Force::Before {
            command.force = Force::Flushing;
            return NvmStep::Submit(Request::flush());
        }
        let end = command.offset_bytes + command.bytes;
        let op = match command.kind {
            Kind::Read | Kind::Compare | Kind::Verify => {
                let spoilt = &self.media.uncorrectable;
                if !spoilt.is_empty() && spoilt.first_in(command.offset_bytes, end).is_some() {
                    return NvmStep::End(NvmeStatus::UNRECOVERED_READ.with_do_not_retry());
                }
                Op::Read
            }
            Kind::Write => {
                if !self.media.uncorrectable.is_empty() {
                    self.media.uncorrectable.remove(command.offset_bytes, end);
                }
                self.sanitizing.written();
                Op::Write
            }
            Kind::Flush => return NvmStep::Submit(Request::flush()),
            Kind::Deallocate => return self.deallocate_next(command),
            Kind::Nothing => return NvmStep::End(NvmeStatus::SUCCESS),
        };
        NvmStep::Submit(Request {
            op,
            offset_bytes: command.offset_bytes,
            length_bytes: command.bytes as u32,
        })
    }

    /// Hands a request of a command to the device. A device that the host has put to sleep wakes.
    ///
    /// # Errors
    /// The device does not take it.
    #[inline(always)]
    pub fn submit(&mut self, at: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.device.submit(at, request, token)?;
        // An I/O command ends a non-operational power state (base 2.0c, clause 8.15). The device
        // takes the command first, so that its entry and exit latencies are charged.
        if self.features.is_forced_to_sleep() {
            self.wake(at);
        }
        Ok(())
    }

    /// The device has executed the request.
    #[inline(always)]
    pub fn device_done(&mut self, command: &mut NvmCommand) -> NvmStep {
        if command.force == Force::Flushing {
            command.force = Force::No;
            return NvmStep::Begin;
        }
        match command.kind {
            Kind::Read | Kind::Compare => NvmStep::Move,
            Kind::Write if command.force == Force::After => {
                command.force = Force::No;
                NvmStep::Submit(Request::flush())
            }
            Kind::Deallocate => self.deallocate_next(command),
            _ => {
                self.succeeded(command);
                NvmStep::End(NvmeStatus::SUCCESS)
            }
        }
    }

    /// The data of a read or a comparison have been moved, and it ends successfully.
    #[inline]
    pub fn succeeded(&mut self, command: &NvmCommand) {
        self.logs.count(command.kind, command.bytes);
    }

    /// The device has failed to execute the request. An event may be due.
    pub fn device_failed(&mut self, command: &NvmCommand, status: DeviceStatus) -> NvmeStatus {
        if status == DeviceStatus::ReadOnly {
            self.worn_out();
        }
        command.failure(status)
    }

    /// The blocks of its namespace that a command touches; `None` where there is no such namespace.
    pub(crate) fn blocks_of(&self, command: &NvmCommand) -> Option<Range<u64>> {
        let namespace = self.namespaces.active(command.namespace)?;
        let first = command.offset_bytes.saturating_sub(namespace.start_bytes) >> namespace.shift;
        Some(first..first + (command.bytes >> namespace.shift))
    }

    /// The command is over: this module keeps no state of it.
    #[inline(always)]
    pub fn release(&mut self, command: &NvmCommand) {
        if command.kind == Kind::Deallocate {
            self.datasets.give_back(command.dataset);
        }
    }

    /// The data of commands are kept, so that [`move_data`](NvmeSubsystem::move_data) has something to move.
    #[inline]
    pub fn keeps_contents(&self) -> bool {
        self.media.contents.is_some()
    }

    /// Moves `bytes` of the command's data, from byte `at` of it on, through `host`: for a read it gets them, else it
    /// fills them in. False: a comparison failed.
    ///
    /// # Errors
    /// That of `host`.
    #[inline]
    pub fn move_data<E>(
        &mut self,
        command: &NvmCommand,
        at: u64,
        bytes: usize,
        host: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        let offset = command.offset_bytes + at;
        let scratch = &mut self.media.scratch;
        scratch.resize(bytes, 0);
        // Without contents the host still gets a buffer, so that its side of the transfer is the
        // same. What the last transfer left in it may be the data of another host.
        let Some(contents) = &mut self.media.contents else {
            if command.kind == Kind::Read {
                scratch.fill(0);
            }
            return host(scratch).map(|()| true);
        };
        if command.kind == Kind::Read {
            contents.read(offset, scratch);
            return host(scratch).map(|()| true);
        }
        host(scratch)?;
        if command.kind == Kind::Compare {
            return Ok(contents.equals(offset, scratch));
        }
        contents.write(offset, scratch);
        Ok(true)
    }
}

impl NvmCommand {
    /// The status that the host receives for a failure of the device.
    pub(crate) fn failure(&self, status: DeviceStatus) -> NvmeStatus {
        match (status, self.kind) {
            (DeviceStatus::ReadOnly, _) => NvmeStatus::WRITE_PROTECTED.with_do_not_retry(),
            (DeviceStatus::Error, Kind::Read | Kind::Compare | Kind::Verify) => {
                NvmeStatus::UNRECOVERED_READ
            }
            (DeviceStatus::Error, _) => NvmeStatus::WRITE_FAULT,
            _ => NvmeStatus::INTERNAL_ERROR,
        }
    }
}
