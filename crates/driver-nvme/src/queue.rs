//! The rings of an I/O queue pair, one slot a command, the split of long requests.

use alloc::vec::Vec;

use ssdyno_block::{MonotonicTime, Token};
use ssdyno_pci::{FunctionError, PciFunction};
use ssdyno_spec::nvme::{Status, SubmissionEntry};
use zerocopy::little_endian::{U16, U32, U64};

use crate::NvmeCounters;
use crate::prp::{self, Lists};
use crate::ring::{CompletionRing, SubmissionRing};
use crate::{HeadDoorbell, IoCommand, IoCompletion, IoError, IoOperation, IoResult, Namespace};

/// Most blocks of a command: NLB has 16 bits and is zero based (NVM 1.0c, clause 3.2.4).
const BLOCKS_MAX: u32 = 1 << 16;
/// Dword 12 of reads and writes: FUA.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;

/// How far a command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotState {
    Free,
    /// With the controller.
    Waiting,
    /// With the controller, which was asked to abort it.
    Aborting,
    /// Answered; other commands of its request are not.
    Answered,
}

/// What the driver knows of a command identifier (S1-30). The first command of a request holds
/// what belongs to the request.
#[derive(Clone, Copy, Debug)]
struct Slot {
    deadline: MonotonicTime,
    token: Token,
    state: SlotState,
    /// The first command of the request.
    parent: u16,
    /// Commands of the request without an answer.
    parts: u16,
    /// The first error of the request.
    status: Status,
}

const EMPTY: Slot = Slot {
    deadline: MonotonicTime::MAX,
    token: Token(0),
    state: SlotState::Free,
    parent: 0,
    parts: 0,
    status: Status::SUCCESS,
};

/// What a command whose time is up needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overdue {
    /// It was not looked after yet.
    Late(u16),
    /// It was to be aborted, and still has no answer.
    Lost,
}

/// The rings of an I/O queue pair, and what is in them.
#[derive(Debug)]
pub(crate) struct IoQueue {
    pub(crate) id: u16,
    pub(crate) entries: u32,
    submission: SubmissionRing,
    completion: CompletionRing,
    slots: Vec<Slot>,
    free: Vec<u16>,
    lists: Lists,
    transfer_bytes: u32,
}

impl IoQueue {
    /// Everything that the queue will ever need.
    pub(crate) fn new<F: PciFunction>(
        f: &mut F,
        id: u16,
        entries: u32,
        stride: u8,
        transfer_bytes: u32,
    ) -> Result<IoQueue, FunctionError> {
        let commands = entries - 1;
        let mut lists = Lists::new(f, commands, transfer_bytes)?;
        let submission = match SubmissionRing::new(f, id, entries, stride) {
            Ok(ring) => ring,
            Err(error) => {
                lists.free(f);
                return Err(error);
            }
        };
        let completion = match CompletionRing::new(f, id, entries, stride) {
            Ok(ring) => ring,
            Err(error) => {
                lists.free(f);
                submission.free(f);
                return Err(error);
            }
        };
        let slots = alloc::vec![EMPTY; commands as usize];
        let free = (0..commands).rev().map(|c| c as u16).collect();
        Ok(IoQueue { id, entries, submission, completion, slots, free, lists, transfer_bytes })
    }

    /// Gives the memory back: the queue is not to be used any more.
    pub(crate) fn release<F: PciFunction>(&mut self, f: &mut F) {
        self.lists.free(f);
        self.submission.free(f);
        self.completion.free(f);
    }

    pub(crate) fn submission_address(&self) -> u64 {
        self.submission.address()
    }

    pub(crate) fn completion_address(&self) -> u64 {
        self.completion.address()
    }

    /// Command identifiers that are not free.
    pub(crate) fn outstanding(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// Puts `command` into the ring, as one command or as several; the controller is not told yet.
    #[inline(always)]
    pub(crate) fn stage<F: PciFunction>(
        &mut self,
        f: &mut F,
        command: &IoCommand<'_>,
        namespace: &Namespace,
        deadline: MonotonicTime,
        token: Token,
    ) -> Result<u32, IoError> {
        if command.operation.moves_blocks() {
            let bytes = u64::from(command.blocks) * u64::from(namespace.block_bytes);
            prp::check(&command.data, bytes)?;
            if namespace.metadata_bytes != 0
                && (command.metadata == 0 || !command.metadata.is_multiple_of(4))
            {
                return Err(IoError::BadBuffer);
            }
        }
        let (parts, step) = self.split(command, namespace);
        let room = self.submission.room().min(self.free.len() as u32);
        if parts > room {
            let slots = self.slots.len() as u32;
            return Err(if parts > slots {
                IoError::TooLarge { commands: parts, slots }
            } else {
                IoError::Full
            });
        }
        let Some(first) = self.free.pop() else { return Err(IoError::Full) };
        self.slots[usize::from(first)] = Slot {
            deadline,
            token,
            state: SlotState::Waiting,
            parent: first,
            parts: parts as u16,
            status: Status::SUCCESS,
        };
        self.push_part(f, first, command, namespace, 0, step);
        for part in 1..parts {
            let Some(id) = self.free.pop() else { break };
            let state = SlotState::Waiting;
            self.slots[usize::from(id)] = Slot { deadline, state, parent: first, ..EMPTY };
            self.push_part(f, id, command, namespace, part, step);
        }
        Ok(parts)
    }

    /// How many commands `command` takes, and how much each of them does: blocks, or ranges.
    #[inline]
    fn split(&self, command: &IoCommand<'_>, namespace: &Namespace) -> (u32, u32) {
        let (amount, step) = match command.operation {
            IoOperation::Read | IoOperation::Write | IoOperation::Compare => {
                let bytes = u64::from(command.blocks) * u64::from(namespace.block_bytes);
                if bytes <= u64::from(self.transfer_bytes) && command.blocks <= BLOCKS_MAX {
                    return (1, command.blocks);
                }
                let blocks = self.transfer_bytes / namespace.block_bytes;
                (command.blocks, blocks.clamp(1, BLOCKS_MAX))
            }
            IoOperation::WriteZeroes | IoOperation::Verify => (command.blocks, BLOCKS_MAX),
            IoOperation::Flush => (1, 1),
            IoOperation::Dataset { ranges, .. } => (ranges.len() as u32, self.lists.ranges_max()),
        };
        (amount.div_ceil(step), step)
    }

    /// Puts part number `part` of `command` into the ring, as command `id`.
    #[inline(always)]
    fn push_part<F: PciFunction>(
        &mut self,
        f: &mut F,
        id: u16,
        command: &IoCommand<'_>,
        namespace: &Namespace,
        part: u32,
        step: u32,
    ) {
        let mut entry = SubmissionEntry {
            opcode: command.operation.opcode(),
            command_id: U16::new(id),
            namespace_id: U32::new(command.namespace),
            ..SubmissionEntry::default()
        };
        match command.operation {
            IoOperation::Flush => {}
            IoOperation::Dataset { ranges, attributes } => {
                let begin = (part * step) as usize;
                let end = ranges.len().min(begin + step as usize);
                let ranges = &ranges[begin..end];
                entry.prp1 = U64::new(self.lists.write_ranges(f, id, ranges));
                entry.dword10 = U32::new(ranges.len() as u32 - 1);
                entry.dword11 = U32::new(attributes);
            }
            _ => {
                let skip = u64::from(part) * u64::from(step);
                let blocks = step.min(command.blocks - skip as u32);
                let first = command.block + skip;
                entry.dword10 = U32::new(first as u32);
                entry.dword11 = U32::new((first >> 32) as u32);
                let access = if command.force_unit_access { FORCE_UNIT_ACCESS } else { 0 };
                entry.dword12 = U32::new((blocks - 1) | access);
                if command.operation.moves_blocks() {
                    let unit = u64::from(namespace.block_bytes);
                    let bytes = u64::from(blocks) * unit;
                    let (prp1, prp2) =
                        self.lists.describe(f, id, &command.data, skip * unit, bytes);
                    entry.prp1 = U64::new(prp1);
                    entry.prp2 = U64::new(prp2);
                    if namespace.metadata_bytes != 0 {
                        let skipped = skip * u64::from(namespace.metadata_bytes);
                        entry.metadata = U64::new(command.metadata + skipped);
                    }
                }
            }
        }
        self.submission.push(f, &entry);
    }

    /// Tells the controller about what was staged.
    #[inline]
    pub(crate) fn ring<F: PciFunction>(&mut self, f: &mut F, counters: &mut NvmeCounters) {
        counters.submission_doorbells += u64::from(self.submission.ring(f));
    }

    /// Takes all new completions, of one round of the ring at most, and gives how many they were.
    #[inline(always)]
    pub(crate) fn poll<F: PciFunction>(
        &mut self,
        f: &mut F,
        head_doorbell: HeadDoorbell,
        counters: &mut NvmeCounters,
        out: &mut Vec<IoCompletion>,
    ) -> u32 {
        let mut found = 0;
        while found < self.entries {
            let Some(entry) = self.completion.peek(f) else { break };
            self.completion.advance();
            found += 1;
            if head_doorbell == HeadDoorbell::PerCompletion {
                counters.completion_doorbells += u64::from(self.completion.ring(f));
            }
            let believed = self.submission.set_head(entry.submission_head);
            let known = self.answer(entry.command_id, entry.status, out);
            if !(believed && known) {
                counters.strays += 1;
            }
        }
        if found > 0 {
            counters.completions += u64::from(found);
            counters.completion_doorbells += u64::from(self.completion.ring(f));
        }
        found
    }

    /// Command `id` was answered; false where it was not outstanding.
    #[inline(always)]
    fn answer(&mut self, id: u16, status: Status, out: &mut Vec<IoCompletion>) -> bool {
        let Some(slot) = self.slots.get_mut(usize::from(id)) else { return false };
        if !matches!(slot.state, SlotState::Waiting | SlotState::Aborting) {
            return false;
        }
        slot.state = SlotState::Answered;
        let parent = slot.parent;
        if parent != id {
            slot.state = SlotState::Free;
            self.free.push(id);
        }
        let request = &mut self.slots[usize::from(parent)];
        if request.status.is_success() {
            request.status = status;
        }
        request.parts -= 1;
        if request.parts == 0 {
            request.state = SlotState::Free;
            let result = IoResult::Answered(request.status);
            out.push(IoCompletion { token: request.token, queue: self.id, result });
            self.free.push(parent);
        }
        true
    }

    /// The first deadline of an outstanding command, if any.
    pub(crate) fn deadline(&self) -> Option<MonotonicTime> {
        self.waiting().map(|(_, slot)| slot.deadline).min()
    }

    fn waiting(&self) -> impl Iterator<Item = (usize, &Slot)> {
        let with_controller =
            |s: &Slot| matches!(s.state, SlotState::Waiting | SlotState::Aborting);
        self.slots.iter().enumerate().filter(move |(_, slot)| with_controller(slot))
    }

    /// A command whose time is up; those that an abort did not help first.
    pub(crate) fn overdue(&self, now: MonotonicTime) -> Option<Overdue> {
        let mut late = None;
        for (id, slot) in self.waiting().filter(|(_, slot)| slot.deadline <= now) {
            if slot.state == SlotState::Aborting {
                return Some(Overdue::Lost);
            }
            late = late.or(Some(Overdue::Late(id as u16)));
        }
        late
    }

    /// Command `id` gets until `deadline`; `aborting` if the controller was asked to abort it.
    pub(crate) fn extend(&mut self, id: u16, deadline: MonotonicTime, aborting: bool) {
        let slot = &mut self.slots[usize::from(id)];
        slot.deadline = deadline;
        if aborting {
            slot.state = SlotState::Aborting;
        }
    }

    /// Command `id` is outstanding, and its abort was asked for.
    pub(crate) fn is_aborting(&self, id: u16) -> bool {
        self.slots.get(usize::from(id)).is_some_and(|slot| slot.state == SlotState::Aborting)
    }

    /// Gives up everything that is outstanding: each request is answered once.
    pub(crate) fn abandon(&mut self, out: &mut Vec<IoCompletion>) {
        for (id, slot) in self.slots.iter_mut().enumerate() {
            if slot.state != SlotState::Free && usize::from(slot.parent) == id {
                let result = IoResult::Abandoned;
                out.push(IoCompletion { token: slot.token, queue: self.id, result });
            }
            *slot = EMPTY;
        }
        self.free.clear();
        self.free.extend((0..self.slots.len()).rev().map(|id| id as u16));
    }

    /// Rings empty again, as after a reset of the controller.
    pub(crate) fn clear<F: PciFunction>(&mut self, f: &mut F) {
        self.submission.clear();
        self.completion.clear(f);
    }
}
