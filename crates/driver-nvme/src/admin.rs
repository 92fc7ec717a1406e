//! Admin commands as a caller puts them, and the queue that they go through.

use alloc::vec;
use alloc::vec::Vec;

use ssdyno_block::{MonotonicTime, Token};
use ssdyno_pci::{DmaRegion, FunctionError, PciFunction};
use ssdyno_spec::nvme::{
    AutonomousTransition, IdentifyNamespace, PAGE_BYTES, Status, SubmissionEntry, admin, cns,
    feature,
};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

use crate::ring::{CompletionRing, SubmissionRing};
use crate::{AdminError, Weights};

/// Entries of the admin queue: at most 4096 (base 2.0c, clause 3.1.3.8), more than a driver uses.
pub(crate) const ADMIN_ENTRIES: u32 = 32;
/// Bit SV of Set Features.
const SAVE: u32 = 1 << 31;

/// An admin command with its data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdminCommand {
    pub(crate) entry: SubmissionEntry,
    pub(crate) send: Vec<u8>,
    pub(crate) receive_bytes: u32,
}

impl AdminCommand {
    fn new(opcode: u8, namespace: u32, dword10: u32, dword11: u32) -> AdminCommand {
        let entry = SubmissionEntry {
            opcode,
            namespace_id: U32::new(namespace),
            dword10: U32::new(dword10),
            dword11: U32::new(dword11),
            ..SubmissionEntry::default()
        };
        AdminCommand { entry, send: Vec::new(), receive_bytes: 0 }
    }

    fn receiving(self, receive_bytes: u32) -> AdminCommand {
        AdminCommand { receive_bytes, ..self }
    }

    fn sending(self, send: Vec<u8>) -> AdminCommand {
        AdminCommand { send, ..self }
    }

    /// Any command, with up to a page of data to send and to receive. Data pointer and command
    /// identifier are filled in.
    pub fn raw(entry: SubmissionEntry, send: Vec<u8>, receive_bytes: u32) -> AdminCommand {
        AdminCommand { entry, send, receive_bytes }
    }

    /// Identify: structure `what` (see [`cns`]) of `namespace`.
    pub fn identify(what: u8, namespace: u32) -> AdminCommand {
        let command = AdminCommand::new(admin::IDENTIFY, namespace, u32::from(what), 0);
        command.receiving(PAGE_BYTES)
    }

    /// Identify controller.
    pub fn identify_controller() -> AdminCommand {
        AdminCommand::identify(cns::CONTROLLER, 0)
    }

    /// `bytes` of log page `page` from `offset` on, both multiples of 4; `namespace` is 0xffff_ffff
    /// for the controller's.
    pub fn log_page(page: u8, namespace: u32, offset: u64, bytes: u32) -> AdminCommand {
        let dwords = (bytes / 4).max(1) - 1;
        let dword10 = u32::from(page) | (dwords & 0xffff) << 16;
        let mut command = AdminCommand::new(admin::GET_LOG_PAGE, namespace, dword10, dwords >> 16);
        command.entry.dword12 = U32::new(offset as u32);
        command.entry.dword13 = U32::new((offset >> 32) as u32);
        command.receiving(bytes)
    }

    /// Sets `feature`, until the next reset or for ever (`save`).
    pub fn set_feature(feature: &Feature, save: bool) -> AdminCommand {
        let dword10 = u32::from(feature.identifier()) | if save { SAVE } else { 0 };
        let command = AdminCommand::new(admin::SET_FEATURES, 0, dword10, feature.dword11());
        command.sending(feature.data())
    }

    /// Gets value number `select` (see [`ssdyno_spec::nvme::select`]) of feature `identifier`: in
    /// dword 0 of the completion.
    pub fn get_feature(identifier: u8, select: u8) -> AdminCommand {
        let dword10 = u32::from(identifier) | u32::from(select) << 8;
        let receive = if identifier == feature::AUTONOMOUS_POWER { 256 } else { 0 };
        AdminCommand::new(admin::GET_FEATURES, 0, dword10, 0).receiving(receive)
    }

    /// Creates a namespace of `data`'s size, capacity, format and protection; its identifier is in
    /// dword 0 of the completion (base 2.0c, clause 5.23; S1-43).
    pub fn create_namespace(data: &IdentifyNamespace) -> AdminCommand {
        let command = AdminCommand::new(admin::NAMESPACE_MANAGEMENT, 0, 0, 0);
        command.sending(data.as_bytes().to_vec())
    }

    /// Deletes `namespace`; 0xffff_ffff deletes all.
    pub fn delete_namespace(namespace: u32) -> AdminCommand {
        AdminCommand::new(admin::NAMESPACE_MANAGEMENT, namespace, 1, 0)
    }

    /// Attaches `namespace` to `controllers`, or detaches it (base 2.0c, clause 5.22). Have the driver
    /// look again with [`NvmeDriver::rescan`](crate::NvmeDriver::rescan).
    pub fn attach_namespace(namespace: u32, controllers: &[u16], attach: bool) -> AdminCommand {
        let mut list = vec![U16::ZERO; PAGE_BYTES as usize / 2];
        list[0] = U16::new(controllers.len() as u16);
        for (slot, id) in list[1..].iter_mut().zip(controllers) {
            *slot = U16::new(*id);
        }
        let dword10 = u32::from(!attach);
        let command = AdminCommand::new(admin::NAMESPACE_ATTACHMENT, namespace, dword10, 0);
        command.sending(list.as_bytes().to_vec())
    }

    /// Formats `namespace` with format number `format` (0 to 15), without protection: all data is
    /// lost.
    pub fn format(namespace: u32, format: u8) -> AdminCommand {
        AdminCommand::new(admin::FORMAT_NVM, namespace, u32::from(format & 0xf), 0)
    }

    pub(crate) fn number_of_queues(queues: u16) -> AdminCommand {
        let n = u32::from(queues) - 1;
        let identifier = u32::from(feature::NUMBER_OF_QUEUES);
        AdminCommand::new(admin::SET_FEATURES, 0, identifier, n << 16 | n)
    }

    /// Bit 0 of dword 11: contiguous; bit 1: interrupts; bits 31:16 the vector.
    pub(crate) fn create_completion_queue(
        queue: u16,
        entries: u32,
        address: u64,
        vector: Option<u16>,
    ) -> AdminCommand {
        let dword10 = (entries - 1) << 16 | u32::from(queue);
        let dword11 = 1 | vector.map_or(0, |v| 1 << 1 | u32::from(v) << 16);
        let mut command = AdminCommand::new(admin::CREATE_COMPLETION_QUEUE, 0, dword10, dword11);
        command.entry.prp1 = U64::new(address);
        command
    }

    /// Bit 0 of dword 11: contiguous; bits 2:1 the class; bits 31:16 the completion queue.
    pub(crate) fn create_submission_queue(
        queue: u16,
        entries: u32,
        address: u64,
        class: u8,
    ) -> AdminCommand {
        let dword10 = (entries - 1) << 16 | u32::from(queue);
        let dword11 = 1 | u32::from(class) << 1 | u32::from(queue) << 16;
        let mut command = AdminCommand::new(admin::CREATE_SUBMISSION_QUEUE, 0, dword10, dword11);
        command.entry.prp1 = U64::new(address);
        command
    }

    pub(crate) fn delete_submission_queue(queue: u16) -> AdminCommand {
        AdminCommand::new(admin::DELETE_SUBMISSION_QUEUE, 0, u32::from(queue), 0)
    }

    pub(crate) fn delete_completion_queue(queue: u16) -> AdminCommand {
        AdminCommand::new(admin::DELETE_COMPLETION_QUEUE, 0, u32::from(queue), 0)
    }

    pub(crate) fn abort(queue: u16, command: u16) -> AdminCommand {
        let dword10 = u32::from(command) << 16 | u32::from(queue);
        AdminCommand::new(admin::ABORT, 0, dword10, 0)
    }

    pub(crate) fn asynchronous_event() -> AdminCommand {
        AdminCommand::new(admin::ASYNCHRONOUS_EVENT_REQUEST, 0, 0, 0)
    }
}

/// A feature with its value (base 2.0c, clause 5.27.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Feature {
    /// What the arbitration gives to each class.
    Arbitration(Weights),
    /// Interrupts are held back until so many entries wait, or so much time has passed.
    InterruptCoalescing {
        /// Entries, 1 to 256.
        entries: u16,
        /// Time, in units of 100 us.
        time_100us: u8,
    },
    /// The power state that the host chooses (S1-45).
    PowerState(u8),
    /// The volatile write cache is on.
    VolatileWriteCache(bool),
    /// Which asynchronous events are reported: see [`feature::ASYNCHRONOUS_EVENTS`].
    AsynchronousEvents(u32),
    /// For each power state where to go after which idleness; none: the host chooses (S1-45).
    AutonomousPower(Vec<AutonomousTransition>),
}

impl Feature {
    /// Goes from each of the `operational` first states to state `target` after `idle_ms`.
    pub fn autonomous_power(operational: u8, target: u8, idle_ms: u32) -> Feature {
        let entry = AutonomousTransition::new(target, idle_ms);
        Feature::AutonomousPower(vec![entry; usize::from(operational.min(32))])
    }

    /// Its identifier: see [`feature`].
    pub const fn identifier(&self) -> u8 {
        match self {
            Feature::Arbitration(_) => feature::ARBITRATION,
            Feature::InterruptCoalescing { .. } => feature::INTERRUPT_COALESCING,
            Feature::PowerState(_) => feature::POWER_MANAGEMENT,
            Feature::VolatileWriteCache(_) => feature::VOLATILE_WRITE_CACHE,
            Feature::AsynchronousEvents(_) => feature::ASYNCHRONOUS_EVENTS,
            Feature::AutonomousPower(_) => feature::AUTONOMOUS_POWER,
        }
    }

    /// Its value as the controller takes it.
    pub fn dword11(&self) -> u32 {
        let less_one = |n: u16| u32::from(n.clamp(1, 256) - 1);
        match self {
            Feature::Arbitration(w) => {
                u32::from(w.burst_shift & 7)
                    | less_one(w.low) << 8
                    | less_one(w.medium) << 16
                    | less_one(w.high) << 24
            }
            Feature::InterruptCoalescing { entries, time_100us } => {
                less_one(*entries) | u32::from(*time_100us) << 8
            }
            Feature::PowerState(state) => u32::from(state & 31),
            Feature::VolatileWriteCache(on) => u32::from(*on),
            Feature::AsynchronousEvents(bits) => *bits,
            Feature::AutonomousPower(table) => u32::from(!table.is_empty()),
        }
    }

    fn data(&self) -> Vec<u8> {
        let Feature::AutonomousPower(table) = self else { return Vec::new() };
        let mut all = [AutonomousTransition::default(); 32];
        for (slot, entry) in all.iter_mut().zip(table) {
            *slot = *entry;
        }
        all.as_bytes().to_vec()
    }
}

/// The end of an admin command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdminCompletion {
    /// What it was submitted with.
    pub token: Token,
    /// How it ended; `None`: given up in a reset.
    pub status: Option<Status>,
    /// Command specific.
    pub dword0: u32,
    /// What was received.
    pub data: Vec<u8>,
}

/// For whom an admin command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// The driver's own start, stop or rescan.
    Step,
    /// A caller.
    Caller(Token),
    /// The watchdog.
    Abort,
    /// Nobody until something happens.
    Event,
}

/// What the admin queue answered.
#[derive(Debug)]
pub(crate) struct AdminAnswer {
    pub(crate) owner: Owner,
    pub(crate) opcode: u8,
    pub(crate) status: Status,
    pub(crate) dword0: u32,
    pub(crate) data: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    owner: Owner,
    opcode: u8,
    deadline: MonotonicTime,
    receive_bytes: u32,
}

/// Queue 0, with a page of data for each command.
#[derive(Debug)]
pub(crate) struct AdminQueue {
    submission: SubmissionRing,
    completion: CompletionRing,
    slots: [Option<Slot>; ADMIN_ENTRIES as usize - 1],
    data: DmaRegion,
}

impl AdminQueue {
    pub(crate) fn new<F: PciFunction>(f: &mut F, stride: u8) -> Result<AdminQueue, FunctionError> {
        let submission = SubmissionRing::new(f, 0, ADMIN_ENTRIES, stride)?;
        let completion = match CompletionRing::new(f, 0, ADMIN_ENTRIES, stride) {
            Ok(ring) => ring,
            Err(error) => {
                submission.free(f);
                return Err(error);
            }
        };
        let data = match f.dma_allocate((ADMIN_ENTRIES - 1) * PAGE_BYTES) {
            Ok(region) => region,
            Err(error) => {
                submission.free(f);
                completion.free(f);
                return Err(error);
            }
        };
        Ok(AdminQueue { submission, completion, slots: [None; ADMIN_ENTRIES as usize - 1], data })
    }

    pub(crate) fn release<F: PciFunction>(self, f: &mut F) {
        self.submission.free(f);
        self.completion.free(f);
        f.dma_free(self.data);
    }

    pub(crate) fn addresses(&self) -> (u64, u64) {
        (self.submission.address(), self.completion.address())
    }

    /// Sends `command` at once; `deadline` is [`MonotonicTime::MAX`] for one that may take for ever.
    pub(crate) fn submit<F: PciFunction>(
        &mut self,
        f: &mut F,
        command: &AdminCommand,
        owner: Owner,
        deadline: MonotonicTime,
    ) -> Result<(), AdminError> {
        let bytes = command.receive_bytes.max(command.send.len() as u32);
        if bytes > PAGE_BYTES {
            return Err(AdminError::TooLong { bytes });
        }
        let free = self.slots.iter().position(Option::is_none);
        let Some(id) = free.filter(|_| self.submission.room() > 0) else {
            return Err(AdminError::Full);
        };
        let mut entry = command.entry;
        entry.command_id = U16::new(id as u16);
        let page = id as u32 * PAGE_BYTES;
        if bytes > 0 {
            entry.prp1 = U64::new(self.data.address + u64::from(page));
        }
        f.dma_write(&self.data, page, &command.send);
        let receive_bytes = command.receive_bytes;
        self.slots[id] = Some(Slot { owner, opcode: entry.opcode, deadline, receive_bytes });
        self.submission.push(f, &entry);
        self.submission.ring(f);
        Ok(())
    }

    /// The next answer; `Err` is one that nobody asked for.
    pub(crate) fn take<F: PciFunction>(&mut self, f: &mut F) -> Option<Result<AdminAnswer, ()>> {
        let Some(found) = self.completion.peek(f) else {
            self.completion.ring(f);
            return None;
        };
        let dword0 = self.completion.dword0(f);
        self.completion.advance();
        self.submission.set_head(found.submission_head);
        let slot = self.slots.get_mut(usize::from(found.command_id)).and_then(Option::take);
        let Some(slot) = slot else { return Some(Err(())) };
        let mut data = vec![0; slot.receive_bytes as usize];
        f.dma_read(&self.data, u32::from(found.command_id) * PAGE_BYTES, &mut data);
        let (owner, opcode, status) = (slot.owner, slot.opcode, found.status);
        Some(Ok(AdminAnswer { owner, opcode, status, dword0, data }))
    }

    /// Commands of `owner` that wait for their answer.
    pub(crate) fn count(&self, owner: Owner) -> usize {
        self.slots.iter().flatten().filter(|slot| slot.owner == owner).count()
    }

    /// Somebody waits for an answer.
    pub(crate) fn is_busy(&self) -> bool {
        self.slots.iter().flatten().any(|slot| slot.owner != Owner::Event)
    }

    /// The first deadline, and the opcode that it belongs to.
    pub(crate) fn deadline(&self) -> Option<(MonotonicTime, u8)> {
        self.slots.iter().flatten().map(|slot| (slot.deadline, slot.opcode)).min()
    }

    /// Gives up everything; `told` hears of each caller's command.
    pub(crate) fn abandon(&mut self, mut told: impl FnMut(Token)) {
        for slot in &mut self.slots {
            if let Some(Slot { owner: Owner::Caller(token), .. }) = slot.take() {
                told(token);
            }
        }
    }

    /// Rings empty again, as after a reset of the controller.
    pub(crate) fn clear<F: PciFunction>(&mut self, f: &mut F) {
        self.submission.clear();
        self.completion.clear(f);
    }
}
