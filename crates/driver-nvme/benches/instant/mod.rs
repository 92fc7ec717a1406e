//! A controller that completes before the doorbell write returns: the remaining time is that of the
//! driver.

use ssdyno_block::Time;
use ssdyno_driver_nvme::{NvmeConfig, NvmeDriver};
use ssdyno_pci::{DmaRegion, FunctionError, InterruptMode, PciFunction};
use ssdyno_spec::nvme::{IdentifyController, IdentifyNamespace, LbaFormat, admin, cns, registers};
use zerocopy::{FromZeros, IntoBytes};

/// Memory begins here for the device.
const BASE: u64 = 1 << 32;
/// I/O queues that it has.
const QUEUES: u32 = 8;

#[derive(Clone, Copy, Default)]
struct Pair {
    submission: usize,
    completion: usize,
    entries: u32,
    /// Taken from the submission queue.
    head: u32,
    /// Put into the completion queue.
    tail: u32,
    phase: u16,
}

/// A function with a controller in it.
pub(crate) struct Instant {
    memory: Vec<u8>,
    used: usize,
    registers: [u32; 16],
    pairs: [Pair; 1 + QUEUES as usize],
    /// Register writes.
    pub(crate) writes: u64,
}

impl Instant {
    /// With so much memory.
    pub(crate) fn new(memory_bytes: usize) -> Instant {
        let mut registers = [0; 16];
        // CAP: 4096 entries, contiguous, 10 s; the NVM command set.
        registers[0] = 4095 | 1 << 16 | 20 << 24;
        registers[1] = 1 << 5;
        registers[2] = 0x0002_0000;
        let pairs = [Pair::default(); 1 + QUEUES as usize];
        Instant { memory: vec![0; memory_bytes], used: 0, registers, pairs, writes: 0 }
    }

    /// A driver that is ready, on such a function.
    pub(crate) fn ready(config: NvmeConfig) -> (Instant, NvmeDriver) {
        let mut function = Instant::new(64 << 20);
        let mut driver = NvmeDriver::new(config);
        let mut now = Time::ZERO;
        let clock = |_: &mut Instant| {
            now += Time::from_ms(1);
            now
        };
        driver.start_and_wait(&mut function, clock).expect("it starts");
        (function, driver)
    }

    fn dword(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.memory[at..at + 4].try_into().expect("four bytes"))
    }

    fn place(address: u64) -> usize {
        (address - BASE) as usize
    }

    fn enable(&mut self) {
        let address = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let r = &self.registers;
        self.pairs[0] = Pair {
            submission: Self::place(address(r[10], r[11])),
            completion: Self::place(address(r[12], r[13])),
            entries: (r[9] & 0xfff) + 1,
            phase: 1,
            ..Pair::default()
        };
    }

    /// Everything up to `tail` is taken and answered.
    #[inline]
    fn answer(&mut self, queue: usize, tail: u32) {
        while self.pairs[queue].head != tail {
            let pair = self.pairs[queue];
            let entry = pair.submission + pair.head as usize * 64;
            let id = u16::from_le_bytes([self.memory[entry + 2], self.memory[entry + 3]]);
            let dword0 = if queue == 0 { self.admin(entry) } else { Some(0) };
            let pair = &mut self.pairs[queue];
            pair.head = if pair.head + 1 == pair.entries { 0 } else { pair.head + 1 };
            let Some(dword0) = dword0 else { continue };
            let answer = [
                dword0,
                0,
                (queue as u32) << 16 | pair.head,
                u32::from(id) | u32::from(pair.phase) << 16,
            ];
            let at = pair.completion + pair.tail as usize * 16;
            pair.tail += 1;
            if pair.tail == pair.entries {
                pair.tail = 0;
                pair.phase ^= 1;
            }
            self.memory[at..at + 16].copy_from_slice(answer.as_bytes());
        }
    }

    /// An admin command; `None`: it waits for an event that never comes.
    fn admin(&mut self, entry: usize) -> Option<u32> {
        let opcode = self.memory[entry];
        let data = u64::from(self.dword(entry + 24)) | u64::from(self.dword(entry + 28)) << 32;
        let dword10 = self.dword(entry + 40);
        let (queue, entries) = ((dword10 & 0xffff) as usize, (dword10 >> 16) + 1);
        match opcode {
            admin::IDENTIFY => self.identify(dword10 as u8, Self::place(data)),
            admin::CREATE_COMPLETION_QUEUE => {
                let completion = Self::place(data);
                self.pairs[queue] = Pair { completion, entries, phase: 1, ..Pair::default() };
            }
            admin::CREATE_SUBMISSION_QUEUE => {
                self.pairs[queue].submission = Self::place(data);
            }
            admin::SET_FEATURES => return Some((QUEUES - 1) << 16 | (QUEUES - 1)),
            admin::ASYNCHRONOUS_EVENT_REQUEST => return None,
            _ => {}
        }
        Some(0)
    }

    fn identify(&mut self, what: u8, at: usize) {
        let out = &mut self.memory[at..at + 4096];
        match what {
            cns::CONTROLLER => {
                let mut controller = IdentifyController::new_zeroed();
                controller.max_transfer = 5;
                controller.namespaces = 1.into();
                out.copy_from_slice(controller.as_bytes());
            }
            cns::NAMESPACE => {
                let mut namespace = IdentifyNamespace::new_zeroed();
                namespace.size = (1 << 30).into();
                namespace.lba_format[0] = LbaFormat { data_shift: 9, ..LbaFormat::new_zeroed() };
                out.copy_from_slice(namespace.as_bytes());
            }
            _ => {
                out.fill(0);
                out[0] = 1;
            }
        }
    }
}

impl PciFunction for Instant {
    fn config_read(&mut self, _offset: u16) -> u32 {
        0
    }
    fn config_write(&mut self, _offset: u16, _value: u32) {}
    fn bar_bytes(&self, bar: u8) -> u64 {
        if bar == 0 { 16384 } else { 0 }
    }
    fn bar_read32(&mut self, _bar: u8, offset: u32) -> u32 {
        self.registers[offset as usize / 4]
    }
    #[inline]
    fn bar_write32(&mut self, _bar: u8, offset: u32, value: u32) {
        self.writes += 1;
        if let Some(doorbell) = offset.checked_sub(registers::DOORBELLS) {
            if doorbell.is_multiple_of(8) {
                self.answer(doorbell as usize / 8, value);
            }
            return;
        }
        self.registers[offset as usize / 4] = value;
        if offset == registers::CC {
            let off = value & registers::CC_SHUTDOWN_NORMAL != 0;
            let told = if off { registers::CSTS_SHUTDOWN_COMPLETE } else { 0 };
            self.registers[registers::CSTS as usize / 4] = value & 1 | told;
            if value & 1 == 1 {
                self.enable();
            }
        }
    }
    fn dma_allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError> {
        let at = self.used;
        self.used += bytes.next_multiple_of(4096) as usize;
        if self.used > self.memory.len() {
            return Err(FunctionError::NoMemory { bytes });
        }
        Ok(DmaRegion { address: BASE + at as u64, bytes, handle: at as u64 })
    }
    fn dma_free(&mut self, _region: DmaRegion) {}
    #[inline]
    fn dma_read(&mut self, region: &DmaRegion, offset: u32, out: &mut [u8]) {
        let at = region.handle as usize + offset as usize;
        out.copy_from_slice(&self.memory[at..at + out.len()]);
    }
    #[inline]
    fn dma_write(&mut self, region: &DmaRegion, offset: u32, bytes: &[u8]) {
        let at = region.handle as usize + offset as usize;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }
    #[inline]
    fn dma_load32(&mut self, region: &DmaRegion, offset: u32) -> u32 {
        self.dword(region.handle as usize + offset as usize)
    }
    fn enable_interrupts(
        &mut self,
        _mode: InterruptMode,
        vectors: u16,
    ) -> Result<u16, FunctionError> {
        Ok(vectors)
    }
}
