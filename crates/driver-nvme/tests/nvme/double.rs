//! A controller of another making: it answers in any order, forgets commands when told to, and writes
//! down whatever a driver does wrong.

use std::collections::{BTreeMap, BTreeSet};

use ssdyno_block::Time;
use ssdyno_pci::{BusMaster, DmaDirection, Identity, PciDevice};
use ssdyno_spec::nvme::{
    AsynchronousEvent, NvmeStatus, SubmissionEntry, admin, cns, feature, nvm, registers,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::nature::Logged;
pub(crate) use crate::nature::{Mishap, Nature, namespace};

#[derive(Clone, Copy, Debug, Default)]
struct Submission {
    base: u64,
    entries: u32,
    head: u32,
    tail: u32,
    completion: u16,
    class: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Completion {
    base: u64,
    entries: u32,
    head: u32,
    tail: u32,
    phase: bool,
    vector: Option<u16>,
}

pub(crate) struct Double {
    pub(crate) nature: Nature,
    registers: BTreeMap<u32, u32>,
    /// When RDY follows EN.
    ready_change: Option<Time>,
    /// When CC.EN was cleared last.
    disabled_at: Option<Time>,
    /// From then to the first look at CSTS.
    pub(crate) first_look: Option<Time>,
    /// Shutdowns that it was told of.
    pub(crate) shutdowns: u32,
    submissions: BTreeMap<u16, Submission>,
    completions: BTreeMap<u16, Completion>,
    /// Commands that the controller has and has not answered.
    owned: BTreeSet<(u16, u16)>,
    /// Answers by time.
    due: Vec<(Time, u16, u16, NvmeStatus, u32)>,
    forgotten: BTreeSet<(u16, u16)>,
    pub(crate) waiting_events: Vec<u16>,
    /// The identifier of the last admin command.
    pub(crate) last_admin: u16,
    pub(crate) features: BTreeMap<u8, u32>,
    /// What the driver did wrong.
    pub(crate) violations: Vec<String>,
    pub(crate) mishaps: BTreeMap<u64, Mishap>,
    /// I/O commands taken.
    pub(crate) taken: u64,
    /// The I/O commands, if they are kept.
    pub(crate) log: Vec<Logged>,
    pub(crate) keep_log: bool,
    random: u64,
    pin: bool,
}

impl Double {
    pub(crate) fn new(nature: Nature) -> Double {
        let random = nature.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Double {
            nature,
            registers: BTreeMap::new(),
            ready_change: None,
            disabled_at: None,
            first_look: None,
            shutdowns: 0,
            submissions: BTreeMap::new(),
            completions: BTreeMap::new(),
            owned: BTreeSet::new(),
            due: Vec::new(),
            forgotten: BTreeSet::new(),
            waiting_events: Vec::new(),
            last_admin: 0,
            features: BTreeMap::new(),
            violations: Vec::new(),
            mishaps: BTreeMap::new(),
            taken: 0,
            log: Vec::new(),
            keep_log: false,
            random,
            pin: false,
        }
    }

    /// An unrequested completion.
    pub(crate) fn answer_io(&mut self, now: Time, queue: u16, id: u16, status: NvmeStatus) {
        self.due.push((now, queue, id, status, 0));
    }

    /// The second answer of an admin command.
    pub(crate) fn answer_admin_again(&mut self, now: Time, id: u16) {
        self.due.push((now, 0, id, NvmeStatus::INVALID_FIELD, 0));
    }

    pub(crate) fn class_of(&self, queue: u16) -> Option<u8> {
        self.submissions.get(&queue).map(|s| s.class)
    }

    /// Tells the driver something.
    pub(crate) fn raise_event(&mut self, now: Time, event: AsynchronousEvent) {
        let id = self.waiting_events.remove(0);
        self.due.push((now, 0, id, NvmeStatus::SUCCESS, event.dword()));
    }

    fn register(&self, offset: u32) -> u32 {
        self.registers.get(&offset).copied().unwrap_or(0)
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn wrong(&mut self, what: String) {
        self.violations.push(what);
    }

    fn doorbell(&mut self, offset: u32, value: u32) {
        let step = 4 << self.nature.stride;
        let index = (offset - registers::DOORBELLS) / step;
        let queue = (index / 2) as u16;
        let known = if index.is_multiple_of(2) {
            self.submissions.get_mut(&queue).map(|s| (&mut s.tail, s.entries))
        } else {
            self.completions.get_mut(&queue).map(|c| (&mut c.head, c.entries))
        };
        match known {
            Some((place, entries)) if value < entries => *place = value,
            _ => self.wrong(format!("doorbell {index} of queue {queue} gets {value}")),
        }
    }

    fn reset(&mut self) {
        self.submissions.clear();
        self.completions.clear();
        self.owned.clear();
        self.due.clear();
        self.forgotten.clear();
        self.waiting_events.clear();
        self.features.clear();
    }

    fn enable(&mut self) {
        let address = |low| u64::from(self.register(low)) | u64::from(self.register(low + 4)) << 32;
        let aqa = self.register(registers::AQA);
        let base = address(registers::ASQ);
        let admin = Submission { base, entries: (aqa & 0xfff) + 1, ..Submission::default() };
        self.completions.insert(
            0,
            Completion {
                base: address(registers::ACQ),
                entries: (aqa >> 16 & 0xfff) + 1,
                phase: true,
                vector: Some(0),
                ..Completion::default()
            },
        );
        self.submissions.insert(0, admin);
        if self.register(registers::CC) & 0xff_0000 != registers::CC_ENTRY_SIZES & 0xff_0000 {
            self.wrong("entry sizes".to_owned());
        }
    }

    fn fetch(&mut self, now: Time, bus: &mut dyn BusMaster) {
        let queues: Vec<u16> = self.submissions.keys().copied().collect();
        for queue in queues {
            while let Some(s) = self.submissions.get_mut(&queue).filter(|s| s.head != s.tail) {
                let mut bytes = [0; 64];
                let at = s.base + u64::from(s.head) * 64;
                s.head = (s.head + 1) % s.entries;
                bus.read(at, &mut bytes).expect("the entry is shared");
                let entry = SubmissionEntry::read_from_bytes(&bytes).expect("64 bytes");
                let id = entry.command_id.get();
                if id >= self.nature.identifiers_max {
                    self.wrong(format!("identifier {id} of queue {queue} is too large"));
                }
                if !self.owned.insert((queue, id)) {
                    self.wrong(format!("command {id} of queue {queue} is in use"));
                }
                if queue == 0 {
                    self.admin(now, &entry, bus);
                } else {
                    self.io(now, queue, &entry, bus);
                }
            }
        }
    }

    fn answer(&mut self, at: Time, queue: u16, id: u16, status: NvmeStatus, dword0: u32) {
        self.due.push((at, queue, id, status, dword0));
    }

    fn admin(&mut self, now: Time, entry: &SubmissionEntry, bus: &mut dyn BusMaster) {
        let id = entry.command_id.get();
        self.last_admin = id;
        let (dword10, dword11) = (entry.dword10.get(), entry.dword11.get());
        let (queue, entries) = (dword10 as u16, (dword10 >> 16) + 1);
        let base = entry.prp1.get();
        let mut result = (NvmeStatus::SUCCESS, 0);
        match entry.opcode {
            admin::IDENTIFY => result.0 = self.identify(entry, bus),
            admin::CREATE_COMPLETION_QUEUE => {
                let vector = (dword11 >> 1 & 1 == 1).then_some((dword11 >> 16) as u16);
                let (head, tail, phase) = (0, 0, true);
                let new = Completion { base, entries, head, tail, phase, vector };
                if entries > self.nature.entries_max
                    || self.completions.insert(queue, new).is_some()
                {
                    result.0 = NvmeStatus::QUEUE_ID_INVALID;
                }
            }
            admin::CREATE_SUBMISSION_QUEUE => {
                let (completion, class) = ((dword11 >> 16) as u16, (dword11 >> 1 & 3) as u8);
                let new = Submission { base, entries, completion, class, ..Submission::default() };
                if !self.completions.contains_key(&completion) {
                    self.wrong("a submission queue before its completion queue".to_owned());
                }
                self.submissions.insert(queue, new);
            }
            admin::DELETE_SUBMISSION_QUEUE => {
                if self.submissions.remove(&queue).is_none() {
                    result.0 = NvmeStatus::QUEUE_ID_INVALID;
                }
            }
            admin::DELETE_COMPLETION_QUEUE => {
                if self.submissions.values().any(|s| s.completion == queue) {
                    self.wrong("a completion queue before its submission queues".to_owned());
                }
                self.completions.remove(&queue);
            }
            admin::SET_FEATURES => {
                self.features.insert(dword10 as u8, dword11);
                match dword10 as u8 {
                    feature::NUMBER_OF_QUEUES => {
                        let most = u32::from(self.nature.queues_max) - 1;
                        result.1 = (dword11 & 0xffff).min(most) | (dword11 >> 16).min(most) << 16;
                    }
                    feature::POWER_MANAGEMENT if !self.nature.power_states => {
                        self.features.remove(&feature::POWER_MANAGEMENT);
                        result.0 = NvmeStatus::INVALID_FIELD;
                    }
                    _ => {}
                }
            }
            admin::GET_FEATURES => {
                result.1 = self.features.get(&(dword10 as u8)).copied().unwrap_or(0)
            }
            admin::ABORT => {
                let target = (dword10 as u16, (dword10 >> 16) as u16);
                result.1 = u32::from(!self.forgotten.remove(&target));
                if result.1 == 0 {
                    self.answer(now, target.0, target.1, NvmeStatus::ABORT_REQUESTED, 0);
                }
            }
            admin::ASYNCHRONOUS_EVENT_REQUEST => return self.waiting_events.push(id),
            _ => result.0 = NvmeStatus::INVALID_OPCODE,
        }
        self.answer(now + Time::from_us(5), 0, id, result.0, result.1);
    }

    fn identify(&mut self, entry: &SubmissionEntry, bus: &mut dyn BusMaster) -> NvmeStatus {
        let id = entry.namespace_id.get();
        let mut out = [0; 4096];
        match entry.dword10.get() as u8 {
            cns::CONTROLLER => {
                let mut c = *self.nature.identity;
                c.max_transfer = self.nature.max_transfer;
                c.abort_limit = self.nature.abort_limit;
                c.event_request_limit = 3;
                c.namespaces = (self.nature.namespaces.len() as u32).into();
                c.nvm_commands = self.nature.nvm_commands.into();
                out.copy_from_slice(c.as_bytes());
            }
            cns::NAMESPACE => match self.nature.namespaces.get(id as usize - 1) {
                Some(ns) => out.copy_from_slice(ns.as_bytes()),
                None => return NvmeStatus::INVALID_NAMESPACE,
            },
            cns::ACTIVE_NAMESPACES => {
                let more = id + 1..=self.nature.namespaces.len() as u32;
                for (place, id) in out.chunks_exact_mut(4).zip(more) {
                    place.copy_from_slice(&id.to_le_bytes());
                }
            }
            _ => return NvmeStatus::INVALID_FIELD,
        }
        bus.write(entry.prp1.get(), &out).expect("the page is shared");
        NvmeStatus::SUCCESS
    }

    fn io(&mut self, now: Time, queue: u16, entry: &SubmissionEntry, bus: &mut dyn BusMaster) {
        let id = entry.command_id.get();
        let number = self.taken;
        self.taken += 1;
        let pieces = self.pieces(entry, bus);
        if self.keep_log {
            self.log.push((queue, *entry, pieces));
        }
        let mut status = NvmeStatus::SUCCESS;
        match self.mishaps.get(&number) {
            Some(Mishap::Fails) => status = NvmeStatus::UNRECOVERED_READ,
            Some(Mishap::Forgotten) => {
                self.forgotten.insert((queue, id));
                return;
            }
            Some(Mishap::LostForGood) => return,
            Some(Mishap::Twice { .. }) | None => {}
        }
        let latency = Time::from_ns(500 + self.draw(100_000));
        self.answer(now + latency, queue, id, status, 0);
        if let Some(Mishap::Twice { later_us }) = self.mishaps.get(&number) {
            let again = now + latency + Time::from_us(u64::from(*later_us));
            self.answer(again, queue, id, NvmeStatus::UNRECOVERED_READ, 0);
        }
    }

    /// Follows the PRPs, touches what they say and writes down what is wrong with them.
    fn pieces(&mut self, entry: &SubmissionEntry, bus: &mut dyn BusMaster) -> Vec<(u64, u64)> {
        let ns = &self.nature.namespaces[entry.namespace_id.get() as usize - 1];
        let unit = u64::from(ns.block_bytes().expect("a format"));
        let blocks = u64::from(entry.dword12.get() & 0xffff) + 1;
        let (mut left, way) = match entry.opcode {
            nvm::READ => (blocks * unit, DmaDirection::ToHost),
            nvm::WRITE | nvm::COMPARE => (blocks * unit, DmaDirection::FromHost),
            nvm::DATASET_MANAGEMENT => {
                ((u64::from(entry.dword10.get()) + 1) * 16, DmaDirection::FromHost)
            }
            _ => return Vec::new(),
        };
        let pages = 1_u64.checked_shl(self.nature.max_transfer.into());
        let most = pages.and_then(|pages| pages.checked_mul(4096)).unwrap_or(u64::MAX);
        if self.nature.max_transfer > 0 && left > most {
            self.wrong(format!("{left} bytes are more than MDTS"));
        }
        let mut pieces = Vec::new();
        let first = entry.prp1.get();
        if !first.is_multiple_of(4) {
            self.wrong(format!("PRP1 {first:#x} is not a whole dword"));
        }
        let bytes = (4096 - first % 4096).min(left);
        pieces.push((first, bytes));
        left -= bytes;
        let mut at = entry.prp2.get();
        let direct = left <= 4096;
        while left > 0 {
            let mut value = at;
            if !direct {
                let mut bytes = [0; 8];
                bus.read(at, &mut bytes).expect("the list is shared");
                value = u64::from_le_bytes(bytes);
                if at % 4096 == 4088 && left > 4096 {
                    at = value;
                    continue;
                }
                at += 8;
            }
            if !value.is_multiple_of(4096) {
                self.wrong(format!("PRP entry {value:#x} has an offset"));
            }
            let bytes = left.min(4096);
            pieces.push((value, bytes));
            left -= bytes;
        }
        for &(address, bytes) in &pieces {
            bus.touch(address, bytes, way).expect("the data is shared");
        }
        pieces
    }

    fn post(&mut self, now: Time, bus: &mut dyn BusMaster) {
        self.due.sort_by_key(|d| d.0);
        let mut later = Vec::new();
        for (at, queue, id, status, dword0) in std::mem::take(&mut self.due) {
            let Some(s) = self.submissions.get(&queue).copied() else { continue };
            let Some(c) = self.completions.get_mut(&s.completion) else { continue };
            if at > now || (c.tail + 1) % c.entries == c.head {
                // A full completion queue waits for the host.
                later.push((at.max(now + Time::from_us(1)), queue, id, status, dword0));
                continue;
            }
            let phase = u32::from(c.phase);
            let last = u32::from(id) | phase << 16 | u32::from(status.bits()) << 17;
            let answer = [dword0, 0, s.head | u32::from(queue) << 16, last];
            bus.write(c.base + u64::from(c.tail) * 16, answer.as_bytes()).expect("shared");
            c.tail += 1;
            if c.tail == c.entries {
                c.tail = 0;
                c.phase = !c.phase;
            }
            let vector = c.vector;
            // The entry of a command that completes twice may be in use again; its generation is not.
            self.owned.remove(&(queue, id));
            if let Some(vector) = vector {
                bus.interrupt(now, vector);
                self.pin = true;
            }
        }
        self.due = later;
        if self.pin && self.completions.values().all(|c| c.head == c.tail) {
            self.pin = false;
            bus.deassert(now);
        }
    }
}

impl PciDevice for Double {
    fn identity(&self) -> Identity {
        Identity {
            vendor: self.nature.pci.0,
            device: self.nature.pci.1,
            class: 0x01_0802,
            revision: 0,
            bar_bytes: [1 << 16, 0, 0],
            msix_vectors: self.nature.msix_vectors,
            msi_vectors: 4,
            interrupt_pin: 1,
        }
    }

    fn bar_read(&mut self, now: Time, _bar: u8, offset: u32) -> u32 {
        if offset == registers::CSTS && self.first_look.is_none() {
            self.first_look = self.disabled_at.map(|at| now - at);
        }
        match offset {
            registers::CAP => {
                let weighted = u32::from(self.nature.weighted) << 17;
                (self.nature.entries_max - 1)
                    | 1 << 16
                    | weighted
                    | u32::from(self.nature.timeout_500ms) << 24
            }
            0x04 => u32::from(self.nature.stride) | 1 << 5,
            registers::VS => self.nature.version,
            _ => self.register(offset),
        }
    }

    fn bar_write(&mut self, now: Time, _bar: u8, offset: u32, value: u32) {
        if offset >= registers::DOORBELLS {
            return self.doorbell(offset, value);
        }
        let before = self.registers.insert(offset, value).unwrap_or(0);
        if offset == registers::CC {
            if (before ^ value) & 1 != 0 {
                // Base 2.0c, figure 46: CC.EN and CSTS.RDY are the same before CC.EN changes.
                if self.register(registers::CSTS) & 1 != before & 1 {
                    self.violations.push(format!("CC.EN becomes {} too early", value & 1));
                }
                self.ready_change = Some(now + Time::from_us(700));
                if value & 1 == 0 {
                    self.reset();
                    (self.disabled_at, self.first_look) = (Some(now), None);
                }
            }
            if value & registers::CC_SHUTDOWN_NORMAL != 0 {
                self.shutdowns += u32::from(before & registers::CC_SHUTDOWN_NORMAL == 0);
                let csts = self.register(registers::CSTS) | registers::CSTS_SHUTDOWN_COMPLETE;
                self.registers.insert(registers::CSTS, csts);
            }
        }
    }

    fn reset(&mut self, _: Time) {
        Double::reset(self);
        self.registers.clear();
        (self.ready_change, self.pin) = (None, false);
    }

    fn advance(&mut self, now: Time, bus: &mut dyn BusMaster) {
        if self.ready_change.is_some_and(|at| at <= now) {
            self.ready_change = None;
            let enabled = self.register(registers::CC) & 1;
            self.registers.insert(registers::CSTS, enabled);
            if enabled == 1 {
                self.enable();
            }
        }
        self.fetch(now, bus);
        self.post(now, bus);
    }

    fn next_event(&self) -> Option<Time> {
        self.due.iter().map(|d| d.0).chain(self.ready_change).min()
    }
}
