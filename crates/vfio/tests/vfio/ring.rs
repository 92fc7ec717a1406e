//! The ring driver, unchanged, over a card in another process (S0-33).

use std::time::{Duration, Instant};

use ssdyno_block::{Op, Request, Status, Time};
use ssdyno_driver_ring::{BlockPolicy, CompletionPolicy, ResponseMode, RingDriverOptions};
use ssdyno_engine::Rng;
use ssdyno_pci::{DmaRegion, PciFunction};
use ssdyno_spec::{pci, ring as layout};
use ssdyno_vfio::ClientError;

use crate::device;
use crate::wall_ring::Ring;

/// After so long a test hangs.
const HANGS: Duration = Duration::from_secs(60);
/// Requests at a time. Each has a part of the card, and memory, of its own.
const SLOTS: usize = 8;
const PART_BYTES: usize = 64 << 10;

/// The first thing that any driver reads.
#[test]
fn configuration_space_says_what_it_is() {
    let (mut process, _folder) = device("ring");
    let mut function = process.connect().unwrap();
    let ids = u32::from(layout::DEVICE) << 16 | u32::from(layout::VENDOR);
    assert_eq!(function.config_read(pci::VENDOR_ID), ids);
    assert_eq!(function.config_read(pci::CLASS_REVISION), layout::CLASS << 8 | 1);
    assert_eq!(function.bar_bytes(0), u64::from(layout::BAR_BYTES));
    // Nothing is decoded yet.
    assert_eq!(function.bar_read32(0, layout::IDENTIFIER), u32::MAX);
    function.config_write(pci::COMMAND, u32::from(pci::COMMAND_MEMORY));
    assert_eq!(function.bar_read32(0, layout::IDENTIFIER), layout::IDENTIFIER_VALUE);
}

/// What a part of the card holds, and the request that is under way there.
struct Slot {
    holds: Vec<u8>,
    under_way: Option<Request>,
    /// A write or a trim was given up: what the card holds is not known.
    unsure: bool,
}

/// A load of random requests, which knows what must be read.
struct Load {
    ring: Ring,
    memory: DmaRegion,
    slots: Vec<Slot>,
    random: Rng,
    answered: u32,
    /// Answers that were no success.
    failed: u32,
}

impl Load {
    fn new(mut ring: Ring) -> Load {
        let memory = ring.driver.function_mut().dma_allocate((SLOTS * PART_BYTES) as u32).unwrap();
        let slot = || Slot { holds: vec![0; PART_BYTES], under_way: None, unsure: false };
        let slots = (0..SLOTS).map(|_| slot()).collect();
        let random = Rng::new(7, "load");
        Load { ring, memory, slots, random, answered: 0, failed: 0 }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    /// The card may have been written by others: now its contents are known.
    fn fill(&mut self) {
        for slot in 0..SLOTS {
            self.slots[slot].unsure = false;
            self.submit(slot, Request::write((slot * PART_BYTES) as u64, PART_BYTES as u32));
        }
        self.drain();
    }

    fn submit(&mut self, slot: usize, request: Request) {
        let inside = request.offset_bytes as usize % PART_BYTES;
        let range = inside..inside + request.length_bytes as usize;
        let at = slot * PART_BYTES + inside;
        let function = self.ring.driver.function_mut();
        match request.op {
            Op::Write => {
                // Each dword differs from the others, and from those of other requests.
                let words = range.len() / 4;
                let mut data = Vec::with_capacity(range.len());
                let first = self.random.below(1 << 32) as u32;
                (0..words as u32)
                    .for_each(|at| data.extend(first.wrapping_add(at * 7).to_le_bytes()));
                function.dma_write(&self.memory, at as u32, &data);
                self.slots[slot].holds[range].copy_from_slice(&data);
            }
            Op::Trim => self.slots[slot].holds[range].fill(0),
            Op::Read => function.dma_write(&self.memory, at as u32, &vec![0x99; range.len()]),
            Op::Flush => {}
        }
        // The page in which the data begins.
        let address = self.memory.address + (at & !4095) as u64;
        self.ring.submit(request, slot as u32, address).unwrap();
        assert_eq!(self.slots[slot].under_way.replace(request), None);
    }

    fn submit_random(&mut self, slot: usize) {
        let start = (slot * PART_BYTES) as u64;
        let sectors = (PART_BYTES / 512) as u64;
        let first = self.below(sectors - 24);
        let bytes = (1 + self.below(24)) as u32 * 512;
        let request = match self.below(8) {
            0 => Request::flush(),
            1 => {
                Request { op: Op::Trim, offset_bytes: start + first / 8 * 4096, length_bytes: 8192 }
            }
            2..=4 => Request::write(start + first * 512, bytes),
            _ => Request::read(start + first * 512, bytes),
        };
        self.submit(slot, request);
    }

    /// Waits for answers and looks at the data.
    fn step(&mut self) {
        self.ring.step(Duration::from_millis(100));
        let done = std::mem::take(&mut self.ring.done);
        for completion in done {
            let slot = completion.token.0 as usize;
            let request = self.slots[slot].under_way.take().expect("each is answered once");
            self.answered += 1;
            if completion.status != Status::Ok {
                self.failed += 1;
                // It is unknown whether it was done.
                self.slots[slot].unsure |= request.op != Op::Read;
            } else if request.op == Op::Read && !self.slots[slot].unsure {
                let inside = request.offset_bytes as usize % PART_BYTES;
                let mut data = vec![0; request.length_bytes as usize];
                let at = (slot * PART_BYTES + inside) as u32;
                self.ring.driver.function_mut().dma_read(&self.memory, at, &mut data);
                assert!(data == self.slots[slot].holds[inside..inside + data.len()], "{request:?}");
            }
        }
    }

    fn drain(&mut self) {
        let start = Instant::now();
        while self.slots.iter().any(|slot| slot.under_way.is_some()) {
            assert!(start.elapsed() < HANGS, "{} are not answered", self.ring.driver.in_flight());
            self.step();
        }
        assert_eq!(self.ring.driver.in_flight(), 0);
    }

    /// `requests` of them, all slots busy.
    fn run(&mut self, requests: u32) {
        let start = Instant::now();
        let until = self.answered + requests;
        while self.answered < until {
            assert!(start.elapsed() < HANGS, "{} answered", self.answered);
            for slot in 0..SLOTS {
                if self.slots[slot].under_way.is_none() {
                    self.submit_random(slot);
                }
            }
            self.step();
        }
        self.drain();
    }
}

/// Three response modes, static and dynamic blocks.
fn all_ways(what: &str) {
    let (mut process, _folder) = device(what);
    for response in [ResponseMode::Block, ResponseMode::Each, ResponseMode::Subsets] {
        for block in [BlockPolicy::Dynamic, BlockPolicy::Static(4)] {
            let completion = match response {
                ResponseMode::Block => CompletionPolicy::PerBlock,
                _ => CompletionPolicy::PerReturn,
            };
            let partial_after = Some(Time::from_us(200));
            let options = RingDriverOptions {
                response,
                block,
                completion,
                subset: 3,
                partial_after,
                ..patient()
            };
            let mut load = Load::new(Ring::new(process.connect().unwrap(), options).unwrap());
            load.fill();
            load.run(150);
            let counters = *load.ring.driver.counters();
            assert_eq!((load.failed, counters.errors, counters.resets), (0, 0, 0), "{options:?}");
            assert!(counters.interrupts > 0, "{options:?}");
        }
    }
}

#[test]
fn data_is_right_with_msix_and_one_engine() {
    all_ways("ring engines=1");
}

#[test]
fn data_is_right_with_msix_and_two_engines() {
    all_ways("ring engines=2");
}

#[test]
fn data_is_right_with_msi() {
    all_ways("ring engines=1 msix=0");
}

#[test]
fn data_is_right_with_the_pin() {
    all_ways("ring engines=2 msix=0 msi=0");
}

/// The other completion policies, with the next block's descriptors held by the card.
#[test]
fn data_is_right_however_the_host_learns_of_it() {
    let (mut process, _folder) = device("ring");
    let us = Time::from_us;
    for completion in [
        CompletionPolicy::Napi { budget: 4 },
        CompletionPolicy::Calibrated { threshold: 3, timeout: us(50) },
        CompletionPolicy::HybridPolling { interval: us(20) },
    ] {
        let options = RingDriverOptions {
            response: ResponseMode::Each,
            completion,
            prefetch: 4,
            ..patient()
        };
        let mut load = Load::new(Ring::new(process.connect().unwrap(), options).unwrap());
        load.fill();
        load.run(300);
        let resets = load.ring.driver.counters().resets;
        assert_eq!((load.failed, resets), (0, 0), "{completion:?}");
    }
}

/// A driver that gives up on nothing.
fn patient() -> RingDriverOptions {
    RingDriverOptions {
        timeout: Time::from_s(20),
        own_pages: false,
        ..RingDriverOptions::default()
    }
}

/// A driver that gives up soon.
fn impatient() -> RingDriverOptions {
    RingDriverOptions { timeout: Time::from_s(1), ..patient() }
}

/// Every slot gets a request, and every request is answered within its time.
fn all_are_answered(load: &mut Load) {
    for slot in 0..SLOTS {
        if load.slots[slot].under_way.is_none() {
            load.submit_random(slot);
        }
    }
    load.drain();
}

/// The process is killed while requests are with the card: each is answered once, with an error, and so
/// are those that come later.
#[test]
fn a_card_that_dies_answers_every_request_with_an_error() {
    let (mut process, _folder) = device("ring");
    let mut load = Load::new(Ring::new(process.connect().unwrap(), impatient()).unwrap());
    load.fill();
    load.run(100);
    assert_eq!(load.failed, 0);
    // It hangs, so that it has not done them when it dies.
    process.stop().unwrap();
    for slot in 0..SLOTS {
        load.submit_random(slot);
    }
    process.kill();
    all_are_answered(&mut load);
    assert_eq!(load.failed, SLOTS as u32);
    let (answered, failed) = (load.answered, load.failed);
    all_are_answered(&mut load);
    assert_eq!((load.answered - answered, load.failed - failed), (SLOTS as u32, SLOTS as u32));
    let function = load.ring.driver.function_mut();
    assert!(matches!(function.why_gone(), Some(ClientError::Closed)), "{:?}", function.why_gone());
    assert_eq!(function.config_read(pci::VENDOR_ID), u32::MAX);
}

/// The process hangs: for the driver that is the same as a card that is gone.
#[test]
fn a_card_that_is_silent_is_given_up() {
    let (mut process, _folder) = device("ring");
    let function = process.connect_with(Duration::from_secs(2)).unwrap();
    let mut load = Load::new(Ring::new(function, impatient()).unwrap());
    load.fill();
    process.stop().unwrap();
    all_are_answered(&mut load);
    assert_eq!(load.failed, SLOTS as u32);
    let why = load.ring.driver.function_mut().why_gone();
    assert!(matches!(why, Some(ClientError::Late { .. })), "{why:?}");
}

/// The card starts no command any more until it is reset: the driver resets it, gives up what it had,
/// and goes on.
#[test]
fn a_card_that_hangs_is_reset() {
    let (mut process, _folder) = device("ring sticks_at=200");
    let mut load = Load::new(Ring::new(process.connect().unwrap(), impatient()).unwrap());
    load.fill();
    load.run(150);
    let counters = *load.ring.driver.counters();
    assert_eq!(counters.resets, 1);
    assert!(load.failed > 0 && load.failed <= SLOTS as u32, "{} failed", load.failed);
    // A write that was given up may have been executed or not: the content of the card is reset.
    let failed = load.failed;
    load.fill();
    load.run(100);
    assert_eq!(load.failed, failed);
}
