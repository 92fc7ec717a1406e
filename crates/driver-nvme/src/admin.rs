//! The admin queue, and how commands end that went through it.

use alloc::vec::Vec;

use ssdyno_block::{MonotonicTime, Token, try_list};
use ssdyno_pci::{DmaPiece, DmaPool, PciFunction};
use ssdyno_spec::nvme::{NvmeStatus, PAGE_BYTES};
use zerocopy::little_endian::{U16, U64};

use crate::ring::{CompletionRing, SubmissionRing, both_rings};
use crate::{AdminCommand, AdminError, NvmeError};

/// Entries of the admin queue: at most 4096 (base 2.0c, clause 3.1.3.8), more than a driver uses.
pub(crate) const ADMIN_ENTRIES: u32 = 32;
/// Commands that can be outstanding.
const COMMANDS: usize = ADMIN_ENTRIES as usize - 1;
/// The bits of an identifier that say which slot it is; the others count the slot's uses.
const TAG_MASK: u16 = ADMIN_ENTRIES as u16 - 1;

/// The end of an admin command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdminCompletion {
    /// What it was submitted with.
    pub token: Token,
    /// How it ended; `None`: given up in a reset.
    pub status: Option<NvmeStatus>,
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

/// The completions of the admin queue.
#[derive(Debug)]
pub(crate) struct AdminAnswer {
    pub(crate) owner: Owner,
    pub(crate) opcode: u8,
    pub(crate) status: NvmeStatus,
    pub(crate) dword0: u32,
    pub(crate) data: Vec<u8>,
}

#[derive(Debug)]
struct Slot {
    owner: Owner,
    opcode: u8,
    deadline: MonotonicTime,
    receive_bytes: u32,
    /// The page with its data, if it has some.
    page: DmaPiece,
    /// Room for what a caller receives.
    data: Vec<u8>,
}

/// Queue 0. A command with data has a page of DMA memory for it. More pages are pinned when more commands are
/// outstanding than ever before: one at the start, at most 31.
#[derive(Debug)]
pub(crate) struct AdminQueue {
    submission: SubmissionRing,
    completion: CompletionRing,
    slots: [Option<Slot>; COMMANDS],
    /// The identifier of each slot's command, or of its last one.
    identifiers: [u16; COMMANDS],
    /// From one use of a slot to the next; 0 for identifiers without a generation.
    generation_step: u16,
    pages: DmaPool,
    /// The data that a command of the driver itself received; lent to the caller.
    received: Vec<u8>,
}

impl AdminQueue {
    pub(crate) fn new<F: PciFunction>(
        f: &mut F,
        stride: u8,
        generations: bool,
    ) -> Result<AdminQueue, NvmeError> {
        let received = try_list(0, PAGE_BYTES as usize)?;
        let pages = DmaPool::new(PAGE_BYTES, PAGE_BYTES, COMMANDS as u32);
        let mut pages = pages.map_err(|_| NvmeError::NoMemory)?;
        // The driver's own commands come one at a time, and go on without more memory.
        pages.reserve(f, 1)?;
        let (submission, completion) = match both_rings(f, 0, ADMIN_ENTRIES, stride) {
            Ok(rings) => rings,
            Err(error) => {
                pages.release(f);
                return Err(error.into());
            }
        };
        Ok(AdminQueue {
            submission,
            completion,
            slots: [const { None }; COMMANDS],
            identifiers: core::array::from_fn(|tag| tag as u16),
            generation_step: if generations { ADMIN_ENTRIES as u16 } else { 0 },
            pages,
            received,
        })
    }

    pub(crate) fn release<F: PciFunction>(mut self, f: &mut F) {
        self.submission.free(f);
        self.completion.free(f);
        self.pages.release(f);
    }

    /// Memory for DMA that it has now, in bytes.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.submission.bytes() + self.completion.bytes() + self.pages.pinned_bytes()
    }

    pub(crate) fn addresses(&self) -> (u64, u64) {
        (self.submission.address(), self.completion.address())
    }

    /// Sends `command` at once; `deadline` is [`MonotonicTime::MAX`] for one that may take forever.
    pub(crate) fn submit<F: PciFunction>(
        &mut self,
        f: &mut F,
        command: &AdminCommand<'_>,
        owner: Owner,
        deadline: MonotonicTime,
    ) -> Result<(), AdminError> {
        let bytes = command.receive_bytes.max(command.send.bytes());
        if bytes > PAGE_BYTES {
            return Err(AdminError::TooLong { bytes });
        }
        let free = self.slots.iter().position(Option::is_none);
        let Some(tag) = free.filter(|_| self.submission.room() > 0) else {
            return Err(AdminError::Full);
        };
        let receive_bytes = command.receive_bytes;
        // A caller keeps the data of its answer, so it gets a buffer of its own. The driver's
        // own steps come one at a time and share one.
        let data = match owner {
            Owner::Caller(_) => try_list(0, receive_bytes as usize)?,
            _ => Vec::new(),
        };
        let mut entry = command.entry;
        let mut page = DmaPiece::NONE;
        if bytes > 0 {
            page = match self.pages.take(f) {
                Ok(Some(page)) => page,
                // As many pages as slots: only memory can be short.
                Ok(None) | Err(_) => return Err(AdminError::NoMemory),
            };
            let (region, at) = self.pages.place(page);
            entry.prp1 = U64::new(region.address + u64::from(at));
            command.send.write(f, &region, at);
        }
        let identifier = &mut self.identifiers[tag];
        // The low 5 bits name the slot and never change. The upper 11 count its uses: an answer
        // is believed only if it names the latest of 2048.
        *identifier = identifier.wrapping_add(self.generation_step);
        entry.command_id = U16::new(*identifier);
        let opcode = entry.opcode;
        self.slots[tag] = Some(Slot { owner, opcode, deadline, receive_bytes, page, data });
        self.submission.push(f, &entry);
        self.submission.ring(f);
        Ok(())
    }

    /// The next answer; `Err` is the identifier of a command that is not outstanding.
    pub(crate) fn take<F: PciFunction>(&mut self, f: &mut F) -> Option<Result<AdminAnswer, u16>> {
        let Some(found) = self.completion.peek(f) else {
            // The doorbell is rung once, when no entry is left. Admin entries are few, but a
            // start takes dozens of them.
            self.completion.ring(f);
            return None;
        };
        let dword0 = self.completion.dword0(f);
        self.completion.advance();
        let id = found.command_id;
        let tag = usize::from(id & TAG_MASK);
        let is_new = self.identifiers.get(tag) == Some(&id);
        let slot = self.slots.get_mut(tag).filter(|_| is_new).and_then(Option::take);
        let Some(Slot { owner, opcode, receive_bytes, page, mut data, .. }) = slot else {
            return Some(Err(id));
        };
        // Only an answer that somebody waits for is believed. The head of a stray one may be of
        // the time before a reset.
        self.submission.set_head(found.submission_head);
        if owner == Owner::Step {
            data = core::mem::take(&mut self.received);
        }
        if page != DmaPiece::NONE {
            let (region, at) = self.pages.place(page);
            // Both have room for it from the start.
            data.resize((receive_bytes as usize).min(data.capacity()), 0);
            f.dma_read(&region, at, &mut data);
            self.pages.put_back(page);
        }
        Some(Ok(AdminAnswer { owner, opcode, status: found.status, dword0, data }))
    }

    /// The data of an answer to the driver itself comes back.
    pub(crate) fn give_back(&mut self, data: Vec<u8>) {
        self.received = data;
    }

    /// Commands of `owner` that wait for their completion.
    pub(crate) fn count(&self, owner: Owner) -> usize {
        self.slots.iter().flatten().filter(|slot| slot.owner == owner).count()
    }

    /// Somebody waits for a completion.
    pub(crate) fn is_busy(&self) -> bool {
        // Event requests wait for something that may never happen. Counting them would keep a
        // shutdown waiting forever.
        self.slots.iter().flatten().any(|slot| slot.owner != Owner::Event)
    }

    /// The first deadline, and the opcode that it belongs to.
    pub(crate) fn deadline(&self) -> Option<(MonotonicTime, u8)> {
        self.slots.iter().flatten().map(|slot| (slot.deadline, slot.opcode)).min()
    }

    /// Callers' commands that wait for their completion.
    pub(crate) fn of_callers(&self) -> usize {
        let is_callers = |slot: &&Slot| matches!(slot.owner, Owner::Caller(_));
        self.slots.iter().flatten().filter(is_callers).count()
    }

    /// Gives up everything; `told` receives the command of each caller.
    pub(crate) fn abandon(&mut self, mut told: impl FnMut(Token)) {
        for slot in &mut self.slots {
            if let Some(Slot { owner: Owner::Caller(token), .. }) = slot.take() {
                told(token);
            }
        }
        self.pages.put_back_all();
    }

    /// Rings empty again, as after a reset of the controller.
    pub(crate) fn clear<F: PciFunction>(&mut self, f: &mut F) {
        self.submission.clear();
        self.completion.clear(f);
    }
}
