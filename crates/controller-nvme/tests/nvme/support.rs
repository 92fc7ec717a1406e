//! A host of a few lines: memory, queues and registers by hand.

#![allow(clippy::unwrap_used, reason = "support of tests: what fails here fails the test")]

use std::collections::VecDeque;

use ssdyno_block::{BlockTarget, Completion, Op, Request, Status, SubmitError, Time, Token};
use ssdyno_controller_nvme::NvmeController;
use ssdyno_device::{
    Device, DeviceFacts, DeviceReport, FlashReport, PagesRead, PowerControl, Sanitize,
    SanitizeMethod, Sanitized,
};
use ssdyno_energy::{Facts, PowerModel};
use ssdyno_engine::Health;
use ssdyno_engine::events::EventLog;
use ssdyno_pci::{BusMaster, DmaDirection, DmaFault, PciDevice};
use ssdyno_spec::nvme::registers::{self, ControllerCapabilities};
use ssdyno_spec::nvme::{CompletionEntry, SubmissionEntry, admin, nvm};
use ssdyno_ssd::Config;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Where the shared memory begins.
pub(crate) const BASE: u64 = 0x10_0000;
/// How much there is.
pub(crate) const MEMORY: usize = 8 << 20;
/// Where data may be put.
pub(crate) const DATA: u64 = BASE + (2 << 20);
/// A list of the pages from the second of [`DATA`] on: 512 of them.
pub(crate) const LIST: u64 = BASE + (6 << 20);
/// What the test device takes for a request.
pub(crate) const LATENCY: Time = Time::from_us(10);

/// What the test device takes for a pass of an overwrite, a block erase and a crypto erase, in seconds. A second
/// more without deallocation.
pub(crate) const SANITIZE_SECONDS: [u32; 3] = [10, 8, 3];

/// A device that takes a fixed time for everything.
#[derive(Debug, Default)]
pub(crate) struct FixedTime {
    pub(crate) latency: Time,
    pub(crate) seen: Vec<Request>,
    pub(crate) status: Option<Status>,
    pub(crate) sleep: Vec<(u8, Time)>,
    /// The latest power limit, its start, and the refused operations.
    pub(crate) limit: Option<(Time, Option<f64>)>,
    pub(crate) least_watts: f64,
    pub(crate) under_way: VecDeque<Completion>,
    pub(crate) log: EventLog,
    pub(crate) cannot_sanitize: bool,
    /// Its sector, where that is not 512 B.
    pub(crate) sector_bytes: Option<u32>,
}

impl BlockTarget for FixedTime {
    fn capacity_bytes(&self) -> u64 {
        64 << 20
    }
    fn sector_bytes(&self) -> u32 {
        self.sector_bytes.unwrap_or(512)
    }
    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        self.seen.push(request);
        let status = self.status.unwrap_or(Status::Ok);
        let completed = now + self.latency;
        assert!(self.under_way.iter().all(|other| other.token != token), "{token:?} is in use");
        self.under_way.push_back(Completion { token, status, accepted: now, completed });
        Ok(())
    }
    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        while let Some(first) = self.under_way.front().filter(|c| c.completed <= now) {
            out.push(*first);
            self.under_way.pop_front();
        }
    }
    fn next_event(&self) -> Option<Time> {
        self.under_way.front().map(|completion| completion.completed)
    }
}

impl Device for FixedTime {
    fn events(&mut self) -> &mut EventLog {
        &mut self.log
    }
    fn report(&self, report: &mut DeviceReport) {
        let facts = DeviceFacts {
            capacity_bytes: self.capacity_bytes(),
            sector_bytes: self.sector_bytes(),
            queue_depth: 64,
            write_buffer_bytes: 0,
            link_ways: 2,
        };
        let energy = Config::parse(ssdyno_ssd::presets::SSDS[0].text).unwrap().energy;
        let power = PowerModel::Controller { config: Box::new(energy), facts: Facts::default() };
        report.unit("ssd", facts, power).flash = Some(FlashReport {
            channels: 1,
            dies: 1,
            page_bytes: 4096,
            pages_per_block: 64,
            effective_utilisation: None,
            victims: None,
            pools: Vec::new(),
            planes: Vec::new(),
            work: None,
            pages_read: PagesRead::default(),
            map_ram_bytes: 0,
            health: Health { read_only: false, bad_blocks: 0, erases_min: 0, erases_max: 300 },
        });
    }
    fn power(&mut self) -> Option<&mut dyn PowerControl> {
        Some(self)
    }
    fn sanitize(&mut self, now: Time, order: Sanitize) -> Option<Sanitized> {
        let time = self.sanitize_time(order)?;
        Some(Sanitized { ends: now + time, failed: false })
    }
    fn sanitize_time(&self, order: Sanitize) -> Option<Time> {
        let [overwrite, erase, crypto] = SANITIZE_SECONDS;
        let seconds = match order.method {
            SanitizeMethod::Overwrite { passes } => u32::from(passes) * overwrite,
            SanitizeMethod::BlockErase => erase,
            SanitizeMethod::CryptoErase => crypto,
        };
        let time = Time::from_s((seconds + u32::from(order.stays_allocated)).into());
        (!self.cannot_sanitize).then_some(time)
    }
}

impl PowerControl for FixedTime {
    fn set_sleep(&mut self, _now: Time, policy: &[(u8, Time)]) {
        self.sleep = policy.to_vec();
    }
    fn limit_power(&mut self, from: Time, watts: Option<f64>) -> bool {
        let possible = watts.is_none_or(|watts| watts > self.least_watts);
        if possible {
            self.limit = Some((from, watts));
        }
        possible
    }
    fn least_watts(&self) -> f64 {
        self.least_watts
    }
}

/// Memory, and the device's accesses to it.
#[derive(Debug)]
pub(crate) struct Bus {
    pub(crate) memory: Vec<u8>,
    /// Reads of the device: address and length.
    pub(crate) reads: Vec<(u64, usize)>,
    pub(crate) touched: Vec<(u64, u64, DmaDirection)>,
    pub(crate) interrupts: Vec<(Time, u16)>,
    pub(crate) released: usize,
    /// Accesses outside the memory.
    pub(crate) faults: usize,
    /// Vectors that the host granted.
    pub(crate) vectors: u16,
}

impl Bus {
    fn range(&mut self, address: u64, bytes: u64) -> Result<std::ops::Range<usize>, DmaFault> {
        let start = address.wrapping_sub(BASE);
        match start.checked_add(bytes) {
            Some(end) if end <= MEMORY as u64 => Ok(start as usize..end as usize),
            _ => {
                self.faults += 1;
                Err(DmaFault { address, bytes })
            }
        }
    }
}

impl BusMaster for Bus {
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), DmaFault> {
        let range = self.range(address, out.len() as u64)?;
        self.reads.push((address, out.len()));
        out.copy_from_slice(&self.memory[range]);
        Ok(())
    }
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        let range = self.range(address, bytes.len() as u64)?;
        self.memory[range].copy_from_slice(bytes);
        Ok(())
    }
    fn touch(&mut self, address: u64, bytes: u64, way: DmaDirection) -> Result<(), DmaFault> {
        self.range(address, bytes)?;
        self.touched.push((address, bytes, way));
        Ok(())
    }
    fn interrupt(&mut self, at: Time, vector: u16) -> bool {
        self.interrupts.push((at, vector));
        true
    }
    fn deassert(&mut self, _at: Time) {
        self.released += 1;
    }
    fn vectors(&self) -> u16 {
        self.vectors
    }
}

/// A queue pair of the host; submission and completion queues have the same identifier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) submission: u64,
    pub(crate) completion: u64,
    pub(crate) entries: u32,
    pub(crate) tail: u32,
    pub(crate) head: u32,
    pub(crate) phase: bool,
}

/// Host and controller.
pub(crate) struct Host<D> {
    pub(crate) controller: NvmeController<D>,
    pub(crate) bus: Bus,
    pub(crate) now: Time,
    pub(crate) pairs: Vec<Option<Pair>>,
    /// CAP.DSTRD.
    pub(crate) stride: u8,
    next_id: u16,
}

/// Configuration A behind a PCIe link, with `[nvme]` keys and other changes.
pub(crate) fn config(nvme: &str, changes: &[(&str, &str)]) -> Config {
    let mut text = include_str!("../../../ssd/tests/small_nvme.toml").to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in the file");
        text = text.replace(from, to);
    }
    Config::parse(&format!("{text}\n[nvme]\n{nvme}")).unwrap()
}

/// A host with an enabled controller in front of a device of fixed time.
pub(crate) fn host(nvme: &str) -> Host<FixedTime> {
    host_with(&config(nvme, &[]))
}

/// As [`host`], from a whole device file.
pub(crate) fn host_with(config: &Config) -> Host<FixedTime> {
    let device = FixedTime { latency: LATENCY, ..FixedTime::default() };
    let mut host =
        Host::new(NvmeController::in_front_of(device, config.nvme_setup().unwrap()).unwrap());
    host.enable();
    host
}

impl<D: Device> Host<D> {
    pub(crate) fn new(controller: NvmeController<D>) -> Host<D> {
        let bus = Bus {
            memory: vec![0; MEMORY],
            reads: Vec::new(),
            touched: Vec::new(),
            interrupts: Vec::new(),
            released: 0,
            faults: 0,
            vectors: u16::MAX,
        };
        let pairs = vec![None; 64];
        let mut host = Host { controller, bus, now: Time::ZERO, pairs, stride: 0, next_id: 0 };
        let pages = (1..=512u64).flat_map(|page| (DATA + page * 4096).to_le_bytes());
        let pages: Vec<u8> = pages.collect();
        host.data(LIST, pages.len()).copy_from_slice(&pages);
        let low = host.read(registers::CAP);
        let capabilities = u64::from(low) | u64::from(host.read(registers::CAP + 4)) << 32;
        host.stride = ControllerCapabilities(capabilities).doorbell_stride();
        host
    }

    pub(crate) fn read(&mut self, offset: u32) -> u32 {
        self.controller.bar_read(self.now, 0, offset)
    }
    pub(crate) fn write(&mut self, offset: u32, value: u32) {
        self.controller.bar_write(self.now, 0, offset, value);
        self.controller.advance(self.now, &mut self.bus);
    }
    /// Brings the device to its next event, and the clock; false if there is none by `limit`.
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        match self.controller.next_event() {
            Some(at) if at <= limit => {
                assert!(at >= self.now, "the past");
                self.now = at;
                self.controller.advance(at, &mut self.bus);
                true
            }
            _ => false,
        }
    }
    /// Until nothing is left to happen.
    pub(crate) fn settle(&mut self) {
        while self.step(Time::MAX) {}
    }
    pub(crate) fn run_until(&mut self, time: Time) {
        while self.step(time) {}
        self.now = time;
    }

    /// Where queue `id` lies: each has 64 KiB, its completion queue in the second half.
    fn place(id: u16) -> u64 {
        BASE + u64::from(id) * 0x1_0000
    }
    fn add_pair(&mut self, id: u16, entries: u32) {
        let submission = Self::place(id);
        let completion = submission + 0x8000;
        let range = (submission - BASE) as usize;
        self.bus.memory[range..range + 0x1_0000].fill(0);
        let pair = Pair { submission, completion, entries, tail: 0, head: 0, phase: true };
        self.pairs[usize::from(id)] = Some(pair);
    }

    pub(crate) fn enable(&mut self) {
        self.enable_with(registers::CC_ENTRY_SIZES | registers::CC_ENABLE);
        self.settle();
        assert_eq!(self.read(registers::CSTS), registers::CSTS_READY);
    }
    pub(crate) fn enable_with(&mut self, configuration: u32) {
        self.add_pair(0, 16);
        let Some(admin) = self.pairs[0] else { unreachable!() };
        self.write(registers::AQA, 15 << 16 | 15);
        self.write(registers::ASQ, admin.submission as u32);
        self.write(registers::ASQ + 4, (admin.submission >> 32) as u32);
        self.write(registers::ACQ, admin.completion as u32);
        self.write(registers::ACQ + 4, (admin.completion >> 32) as u32);
        self.write(registers::CC, configuration);
    }

    /// Puts an entry into queue `id` without telling the controller; gives its identifier.
    pub(crate) fn push(&mut self, id: u16, mut entry: SubmissionEntry) -> u16 {
        if entry.command_id.get() == 0 {
            self.next_id = self.next_id % 60_000 + 1;
            entry.command_id = self.next_id.into();
        }
        let pair = self.pairs[usize::from(id)].as_mut().unwrap();
        let at = (pair.submission - BASE) as usize + pair.tail as usize * 64;
        self.bus.memory[at..at + 64].copy_from_slice(entry.as_bytes());
        pair.tail = (pair.tail + 1) % pair.entries;
        entry.command_id.get()
    }
    pub(crate) fn ring(&mut self, id: u16) {
        let tail = self.pairs[usize::from(id)].unwrap().tail;
        self.write(registers::submission_doorbell(id, self.stride), tail);
    }
    /// Takes the completions of queue `id` that are there, without telling the controller.
    pub(crate) fn take(&mut self, id: u16) -> Vec<CompletionEntry> {
        let pair = self.pairs[usize::from(id)].as_mut().unwrap();
        let mut taken = Vec::new();
        loop {
            let at = (pair.completion - BASE) as usize + pair.head as usize * 16;
            let entry = CompletionEntry::read_from_bytes(&self.bus.memory[at..at + 16]).unwrap();
            if entry.phase() != pair.phase {
                return taken;
            }
            taken.push(entry);
            pair.head += 1;
            if pair.head == pair.entries {
                pair.head = 0;
                pair.phase = !pair.phase;
            }
        }
    }
    /// As [`take`](Host::take), and rings the doorbell.
    pub(crate) fn reap(&mut self, id: u16) -> Vec<CompletionEntry> {
        let taken = self.take(id);
        if !taken.is_empty() {
            let head = self.pairs[usize::from(id)].unwrap().head;
            self.write(registers::completion_doorbell(id, self.stride), head);
        }
        taken
    }
    /// Submits one entry to queue `id`, waits until all is quiet, and gives its completion.
    pub(crate) fn command(&mut self, id: u16, entry: SubmissionEntry) -> CompletionEntry {
        let command = self.push(id, entry);
        self.ring(id);
        self.settle();
        let mut found: Vec<_> =
            self.reap(id).into_iter().filter(|c| c.command_id.get() == command).collect();
        assert_eq!(found.len(), 1, "one completion for {entry:?}");
        found.remove(0)
    }
    pub(crate) fn admin(&mut self, entry: SubmissionEntry) -> CompletionEntry {
        self.command(0, entry)
    }

    /// Creates queue pair `id`, with interrupts of the vector of the same number.
    pub(crate) fn create_pair(&mut self, id: u16, entries: u32) {
        self.create_pair_of(id, entries, 0);
    }
    pub(crate) fn create_pair_of(&mut self, id: u16, entries: u32, priority: u32) {
        self.add_pair(id, entries);
        let created =
            self.admin(create_completion(id, entries, u32::from(id), Self::place(id) + 0x8000));
        assert!(created.status().is_success(), "{created:?}");
        let created = self.admin(create_submission(id, entries, id, priority, Self::place(id)));
        assert!(created.status().is_success(), "{created:?}");
    }
    pub(crate) fn data(&mut self, address: u64, bytes: usize) -> &mut [u8] {
        let at = (address - BASE) as usize;
        &mut self.bus.memory[at..at + bytes]
    }
}

pub(crate) fn entry(opcode: u8, namespace: u32, dwords: [u32; 3]) -> SubmissionEntry {
    let mut entry = SubmissionEntry::new_zeroed();
    entry.opcode = opcode;
    entry.namespace_id = namespace.into();
    entry.prp1 = DATA.into();
    [entry.dword10, entry.dword11, entry.dword12] = dwords.map(Into::into);
    entry
}
pub(crate) fn create_completion(id: u16, entries: u32, vector: u32, at: u64) -> SubmissionEntry {
    let dwords = [u32::from(id) | (entries - 1) << 16, vector << 16 | 2 | 1, 0];
    let command = entry(admin::CREATE_COMPLETION_QUEUE, 0, dwords);
    SubmissionEntry { prp1: at.into(), ..command }
}
pub(crate) fn create_submission(
    id: u16,
    entries: u32,
    to: u16,
    priority: u32,
    at: u64,
) -> SubmissionEntry {
    let dwords = [u32::from(id) | (entries - 1) << 16, u32::from(to) << 16 | priority << 1 | 1, 0];
    let command = entry(admin::CREATE_SUBMISSION_QUEUE, 0, dwords);
    SubmissionEntry { prp1: at.into(), ..command }
}
pub(crate) fn identify(what: u8, namespace: u32) -> SubmissionEntry {
    entry(admin::IDENTIFY, namespace, [u32::from(what), 0, 0])
}
pub(crate) fn set_feature(id: u8, value: u32) -> SubmissionEntry {
    entry(admin::SET_FEATURES, 0, [u32::from(id), value, 0])
}
pub(crate) fn get_feature(id: u8) -> SubmissionEntry {
    entry(admin::GET_FEATURES, 0, [u32::from(id), 0, 0])
}
/// A command for `blocks` of 512 bytes at `first` of namespace 1, to or from [`DATA`].
pub(crate) fn transfer(opcode: u8, first: u64, blocks: u32) -> SubmissionEntry {
    let second = if blocks > 16 { LIST } else { DATA + 4096 };
    let command = entry(opcode, 1, [first as u32, (first >> 32) as u32, blocks - 1]);
    SubmissionEntry { prp2: second.into(), ..command }
}
/// A read of 4 KiB at block `first`, of 512 bytes each.
pub(crate) fn read(first: u64) -> SubmissionEntry {
    transfer(nvm::READ, first, 8)
}
/// A write of 4 KiB at block `first`, of 512 bytes each.
pub(crate) fn write(first: u64) -> SubmissionEntry {
    transfer(nvm::WRITE, first, 8)
}
/// The operations that the device saw.
pub(crate) fn ops(requests: &[Request]) -> Vec<(Op, u64, u32)> {
    requests.iter().map(|r| (r.op, r.offset_bytes, r.length_bytes)).collect()
}
