//! The rings of an I/O queue pair, one slot a command, the split of long requests.

mod late;
mod slot;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use ssdyno_block::{ListGrowth, MonotonicTime, Token, try_list};
use ssdyno_pci::{DmaPiece, PciFunction};
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry};
use zerocopy::little_endian::{U16, U32, U64};

use self::slot::{EMPTY, Slot, SlotState};
use crate::line::Line;
use crate::prp::{self, Lists};
use crate::ring::{CompletionRing, Found, SubmissionRing, both_rings};
use crate::split::{self, Parts};
use crate::{HeadDoorbell, IoCommand, IoCompletion, IoError, IoOperation, IoResult, Namespace};
use crate::{NvmeCounters, NvmeError};

/// Dword 12 of reads and writes: FUA.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;

/// The action for a command whose timeout has expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overdue {
    /// It was not looked after yet, or could not be aborted: its slot.
    Late(u16),
    /// It was to be aborted, and still has no answer.
    Lost,
}

/// The parameters of a new queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewQueue {
    pub(crate) id: u16,
    pub(crate) entries: u32,
    pub(crate) stride: u8,
    pub(crate) transfer_bytes: u32,
    /// Page lists to have from the start.
    pub(crate) lists: u32,
    /// The least size of a page list.
    pub(crate) list_bytes_min: u32,
    /// Command identifiers carry a generation.
    pub(crate) generations: bool,
    /// Of callers' lists for completions.
    pub(crate) growth: ListGrowth,
}

/// The rings of an I/O queue pair, and their contents.
#[derive(Debug)]
pub(crate) struct IoQueue {
    pub(crate) id: u16,
    pub(crate) entries: u32,
    submission: SubmissionRing,
    completion: CompletionRing,
    slots: Vec<Slot>,
    /// First in, first out, so that an identifier comes again as late as it can.
    free: VecDeque<u16>,
    lists: Lists,
    transfer_bytes: u32,
    /// The number of bits of an identifier that give its slot; the other bits count the uses of the
    /// slot.
    tag_bits: u32,
    /// As many generations as those bits and a byte have; 0 for identifiers without one.
    generation_mask: u8,
    growth: ListGrowth,
    /// The last call left completions behind: its list had no room.
    more: bool,
    /// Commands in the states Waiting, Late and Aborting, each in the order of their deadlines.
    lines: [Line; 3],
    /// The last identifier that completed and is not outstanding, until somebody asks.
    stray: Option<u16>,
}

/// Where the line of a state is.
const LINES: [SlotState; 3] = [SlotState::Waiting, SlotState::Late, SlotState::Aborting];

impl IoQueue {
    /// Everything that the queue will ever need, but for page lists.
    pub(crate) fn new<F: PciFunction>(f: &mut F, new: &NewQueue) -> Result<IoQueue, NvmeError> {
        let commands = new.entries - 1;
        // All memory is taken here. Submitting and completing never ask the heap, so a driver in
        // a kernel cannot fail for lack of memory while the system writes its pages out (S1-30).
        let slots = try_list(EMPTY, commands as usize)?;
        let mut free = VecDeque::new();
        free.try_reserve_exact(commands as usize)?;
        free.extend((0..commands).map(|tag| tag as u16));
        // No tag has ones in all of these bits, so no identifier is FFFFh, which stands for no command in the
        // error log (base 2.0c, figure 206).
        let tag_bits = u32::BITS - commands.leading_zeros();
        let lines = [Line::new(commands)?, Line::new(commands)?, Line::new(commands)?];
        let mut lists = Lists::new(commands, new.transfer_bytes, new.list_bytes_min)?;
        let reserved = lists.pool.reserve(f, new.lists);
        let rings = reserved.and_then(|()| both_rings(f, new.id, new.entries, new.stride));
        let (submission, completion) = match rings {
            Ok(rings) => rings,
            Err(error) => {
                lists.pool.release(f);
                return Err(error.into());
            }
        };
        Ok(IoQueue {
            id: new.id,
            entries: new.entries,
            submission,
            completion,
            slots,
            free,
            lists,
            transfer_bytes: new.transfer_bytes,
            tag_bits,
            generation_mask: if new.generations {
                (u16::MAX >> tag_bits).min(255) as u8
            } else {
                0
            },
            growth: new.growth,
            more: false,
            lines,
            stray: None,
        })
    }

    /// Gives the memory back: the queue is not to be used any more.
    pub(crate) fn release<F: PciFunction>(&mut self, f: &mut F) {
        // The controller must be idle or the queue deleted by now. Until then the controller may
        // still write into this memory.
        self.lists.pool.release(f);
        self.submission.free(f);
        self.completion.free(f);
    }

    pub(crate) fn addresses(&self) -> (u64, u64) {
        (self.submission.address(), self.completion.address())
    }

    /// Memory for DMA that it has now, in bytes.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.submission.bytes() + self.completion.bytes() + self.lists.pool.pinned_bytes()
    }

    /// Slots that are not free.
    pub(crate) fn outstanding(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// Commands that have no completion yet.
    pub(crate) fn unanswered(&self) -> u64 {
        self.slots.iter().filter(|slot| slot.is_with_controller()).count() as u64
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
        let mut one = false;
        if command.operation.moves_blocks() {
            let bytes = u64::from(command.blocks) * u64::from(namespace.block_bytes);
            prp::check(&command.data, bytes)?;
            // Without a buffer for metadata the controller would write to address 0. The command
            // is refused before it takes a slot.
            if namespace.metadata_bytes != 0
                && (command.metadata == 0 || !command.metadata.is_multiple_of(4))
            {
                return Err(IoError::BadBuffer);
            }
            one = split::is_one(command, namespace, bytes, self.transfer_bytes);
            // At most two pages are touched by so few bytes, so no list is needed. This short
            // way is that of nearly all commands of random loads.
            if one && bytes <= prp::PAGE {
                return self.stage_one(f, command, namespace, deadline, token);
            }
        }
        self.stage_parts(f, command, namespace, deadline, token, one)
    }

    /// The same of a request that is one command and needs no page list.
    #[inline(always)]
    fn stage_one<F: PciFunction>(
        &mut self,
        f: &mut F,
        command: &IoCommand<'_>,
        namespace: &Namespace,
        deadline: MonotonicTime,
        token: Token,
    ) -> Result<u32, IoError> {
        // The ring has room for as many entries as there are slots, but its head is known only
        // from completions. Either can be the one that is full.
        if self.submission.room() == 0 {
            return Err(IoError::Full);
        }
        let Some(tag) = self.enter(deadline, token, 1) else { return Err(IoError::Full) };
        self.push_part(f, tag, command, namespace, 0, command.blocks);
        Ok(1)
    }

    /// The same of any request; `one` of one that is known to be one command.
    fn stage_parts<F: PciFunction>(
        &mut self,
        f: &mut F,
        command: &IoCommand<'_>,
        namespace: &Namespace,
        deadline: MonotonicTime,
        token: Token,
        one: bool,
    ) -> Result<u32, IoError> {
        let Parts { parts, step } = match one {
            true => Parts { parts: 1, step: command.blocks },
            false => split::parts(command, namespace, self.transfer_bytes, self.lists.ranges_max()),
        };
        // All parts must fit before the first one is put in. A request of which only some parts
        // were sent could not be taken back.
        let room = self.submission.room().min(self.free.len() as u32);
        if parts > room {
            let slots = self.slots.len() as u32;
            // A caller waits for completions after `Full`. More parts than the queue has slots
            // would never fit, so that case has an error of its own.
            return Err(if parts > slots {
                IoError::TooLarge { commands: parts, slots }
            } else {
                IoError::Full
            });
        }
        if self.lists.may_be_needed(command, namespace) {
            // Lists are reserved before a slot is taken. A lack of memory then leaves no trace:
            // no slot, no entry in the ring.
            self.lists.prepare(f, parts)?;
        }
        let (mut skip, mut parent) = (0, None);
        for _ in 0..parts {
            let Some(tag) = self.enter(deadline, token, parts as u16) else { break };
            let first = *parent.get_or_insert(tag);
            self.slots[usize::from(tag)].parent = first;
            let amount = split::amount(command, namespace, skip, step);
            self.push_part(f, tag, command, namespace, skip, amount);
            skip += amount;
        }
        Ok(parts)
    }

    /// Takes a slot into use.
    #[inline(always)]
    fn enter(&mut self, deadline: MonotonicTime, token: Token, parts: u16) -> Option<u16> {
        // First in, first out: the same identifier returns as late as possible. With last in,
        // first out at depth 1 an identifier came again after 16 commands, and a completion that
        // was 16 uses old ended the wrong command.
        let tag = self.free.pop_front()?;
        let place = self.line_up(tag, 0);
        let slot = &mut self.slots[usize::from(tag)];
        let generation = slot.generation.wrapping_add(1) & self.generation_mask;
        *slot = Slot {
            deadline,
            token,
            place,
            parent: tag,
            parts,
            status: NvmeStatus::SUCCESS,
            list: DmaPiece::NONE,
            generation,
            state: SlotState::Waiting,
        };
        Some(tag)
    }

    /// Puts a part of `command`, from `skip` blocks or ranges on, into the ring, as command `tag`.
    #[inline(always)]
    fn push_part<F: PciFunction>(
        &mut self,
        f: &mut F,
        tag: u16,
        command: &IoCommand<'_>,
        namespace: &Namespace,
        skip: u32,
        amount: u32,
    ) {
        let slot = &mut self.slots[usize::from(tag)];
        let mut entry = SubmissionEntry {
            opcode: command.operation.opcode(),
            command_id: U16::new(slot.identifier(tag, self.tag_bits)),
            namespace_id: U32::new(command.namespace),
            ..SubmissionEntry::default()
        };
        match command.operation {
            IoOperation::Flush => {}
            IoOperation::Dataset { ranges, attributes } => {
                let ranges = &ranges[skip as usize..(skip + amount) as usize];
                entry.prp1 = U64::new(self.lists.write_ranges(f, &mut slot.list, ranges));
                entry.dword10 = U32::new(ranges.len() as u32 - 1);
                entry.dword11 = U32::new(attributes);
            }
            _ => {
                let skip = u64::from(skip);
                let first = command.block + skip;
                entry.dword10 = U32::new(first as u32);
                entry.dword11 = U32::new((first >> 32) as u32);
                let access = if command.force_unit_access { FORCE_UNIT_ACCESS } else { 0 };
                entry.dword12 = U32::new((amount - 1) | access);
                if command.operation.moves_blocks() {
                    let unit = u64::from(namespace.block_bytes);
                    let bytes = u64::from(amount) * unit;
                    let list = &mut slot.list;
                    let data = &command.data;
                    let (prp1, prp2) = self.lists.describe(f, list, data, skip * unit, bytes);
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

    /// Takes all new completions, of one round of the ring and as many as `out` has room for, and gives how
    /// many they were.
    #[inline(always)]
    pub(crate) fn poll<F: PciFunction>(
        &mut self,
        f: &mut F,
        head_doorbell: HeadDoorbell,
        counters: &mut NvmeCounters,
        out: &mut Vec<IoCompletion>,
    ) -> u32 {
        let mut found = 0;
        self.more = false;
        // The bound ends the call even if a broken controller fills the ring as fast as it is
        // read. One round of the ring is the most that can be new.
        while found < self.entries {
            let Some(entry) = self.completion.peek(f) else { break };
            // The entry stays in the ring, where it is safe. Taking it without a place for its
            // token would lose the request.
            if !self.growth.has_room(out) {
                self.more = true;
                break;
            }
            self.completion.advance();
            found += 1;
            if head_doorbell == HeadDoorbell::PerCompletion {
                // One doorbell for all entries of this call. The thesis rings it for every
                // completion; the counters show the difference (S1-31).
                counters.completion_doorbells += u64::from(self.completion.ring(f));
            }
            // A completion that belongs to no command is not trusted at all, not even its position of the controller in
            // the submission queue: it may be old.
            if !self.answer(&entry, out) {
                counters.strays += 1;
                self.stray = Some(entry.command_id);
            } else if !self.submission.set_head(entry.submission_head) {
                counters.strays += 1;
            }
        }
        if found > 0 {
            if self.free.len() == self.slots.len() {
                // The line is empty: there are no old entries to check.
                self.lines[0].clear();
            }
            counters.completions += u64::from(found);
            counters.completion_doorbells += u64::from(self.completion.ring(f));
        }
        found
    }

    /// The command of `entry` completed; false where it was not outstanding: never used, completed before, or of
    /// an earlier use of its slot.
    #[inline(always)]
    fn answer(&mut self, entry: &Found, out: &mut Vec<IoCompletion>) -> bool {
        let (id, status) = (entry.command_id, entry.status);
        let tag = self.tag_of(id);
        let Some(slot) = self.slots.get_mut(usize::from(tag)) else { return false };
        if !slot.is_with_controller() || slot.identifier(tag, self.tag_bits) != id {
            return false;
        }
        slot.state = SlotState::Completed;
        // The controller reads the list at most until it completes the command. From here on the
        // list can serve another one.
        if slot.list != DmaPiece::NONE {
            self.lists.pool.put_back(core::mem::replace(&mut slot.list, DmaPiece::NONE));
        }
        let parent = slot.parent;
        // The first slot of a request stays taken until the last part has completed: it holds
        // the token and the first error.
        if parent != tag {
            slot.state = SlotState::Free;
            self.free.push_back(tag);
        }
        let request = &mut self.slots[usize::from(parent)];
        // The first error wins. Parts complete in any order, and a later success must not hide a
        // failure.
        if request.status.is_success() {
            request.status = status;
        }
        request.parts -= 1;
        if request.parts == 0 {
            request.state = SlotState::Free;
            let (token, result) = (request.token, IoResult::Completed(request.status));
            out.push(IoCompletion { token, queue: self.id, entry: entry.place, result });
            self.free.push_back(parent);
        }
        true
    }

    /// The slot that identifier `id` names, if there is one.
    #[inline(always)]
    fn tag_of(&self, id: u16) -> u16 {
        id & ((1 << self.tag_bits) - 1)
    }

    /// The last [`poll`](IoQueue::poll) left completions behind, for which its list had no room.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    /// The last identifier that completed and was not outstanding, once.
    pub(crate) fn take_stray(&mut self) -> Option<u16> {
        self.stray.take()
    }

    /// Gives up everything that is outstanding: each request completes once. False: `out` had no room
    /// for all, and the rest is for the next call.
    pub(crate) fn abandon(&mut self, out: &mut Vec<IoCompletion>) -> bool {
        self.more = false;
        for (tag, slot) in (0_u16..).zip(&mut self.slots) {
            if slot.state == SlotState::Free {
                continue;
            }
            // Only the first slot of a request has its token. Its parts give no completion of
            // their own, so the token comes back once.
            if slot.parent == tag {
                if !self.growth.has_room(out) {
                    return false;
                }
                let result = IoResult::Abandoned;
                out.push(IoCompletion { token: slot.token, queue: self.id, entry: 0, result });
            }
            // A late completion of what was given up is known by its generation.
            *slot = Slot { generation: slot.generation, ..EMPTY };
            self.free.push_back(tag);
        }
        // The controller is idle, so it reads no list any more. All lists go back at once, which
        // is less work than one by one.
        self.lists.pool.put_back_all();
        self.lines.iter_mut().for_each(Line::clear);
        true
    }

    /// Rings empty again, as after a reset of the controller.
    pub(crate) fn clear<F: PciFunction>(&mut self, f: &mut F) {
        self.submission.clear();
        self.completion.clear(f);
    }
}
