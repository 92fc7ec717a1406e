//! Real threads: each owns a queue pair, one owns the controller object and lets things go wrong.
//!
//! They share the function, behind a lock of the test (hardware has none), and the flags by which a kernel would
//! interrupt its cores.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use ssdyno_block::{Fault, Time};
use ssdyno_driver_nvme::{
    Controller, DriverState, InterruptChoice, IoError, IoResult, NvmeConfig, QueuePair,
};
use ssdyno_pci::{DmaRegion, FunctionError, InterruptMode, PciFunction, SimulatedPci};

use crate::double::{Double, Mishap, Nature};
use crate::owner::Owner;
use crate::rig::{config, double};

const CORES: u16 = 4;
/// The clock goes on by this with each round of the thread that has it.
const STEP: Time = Time::from_us(5);

/// One core's access to the function.
#[derive(Clone)]
struct Access(Arc<Mutex<SimulatedPci<Double>>>);

impl Access {
    fn pci(&self) -> MutexGuard<'_, SimulatedPci<Double>> {
        self.0.lock().unwrap()
    }
}

impl PciFunction for Access {
    fn config_read(&mut self, offset: u16) -> u32 {
        self.pci().config_read(offset)
    }
    fn config_write(&mut self, offset: u16, value: u32) {
        self.pci().config_write(offset, value);
    }
    fn bar_bytes(&self, bar: u8) -> u64 {
        self.pci().bar_bytes(bar)
    }
    fn bar_read32(&mut self, bar: u8, offset: u32) -> u32 {
        self.pci().bar_read32(bar, offset)
    }
    fn bar_write32(&mut self, bar: u8, offset: u32, value: u32) {
        self.pci().bar_write32(bar, offset, value);
    }
    fn dma_allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError> {
        self.pci().dma_allocate(bytes)
    }
    fn dma_free(&mut self, region: DmaRegion) {
        self.pci().dma_free(region);
    }
    fn dma_read(&mut self, region: &DmaRegion, offset: u32, out: &mut [u8]) {
        self.pci().dma_read(region, offset, out);
    }
    fn dma_write(&mut self, region: &DmaRegion, offset: u32, bytes: &[u8]) {
        self.pci().dma_write(region, offset, bytes);
    }
    fn dma_load32(&mut self, region: &DmaRegion, offset: u32) -> u32 {
        self.pci().dma_load32(region, offset)
    }
    fn enable_interrupts(
        &mut self,
        mode: InterruptMode,
        vectors: u16,
    ) -> Result<u16, FunctionError> {
        self.pci().enable_interrupts(mode, vectors)
    }
}

/// What a kernel has: a clock, and a way to interrupt each core.
struct Machine {
    access: Access,
    buffer: DmaRegion,
    now_ps: AtomicU64,
    /// For each queue: its interrupt came; its owner is called.
    interrupted: Vec<AtomicBool>,
    called: Vec<AtomicBool>,
    /// Something waits for the controller object.
    wanted: AtomicBool,
    /// The controller object's thread has failed: nobody waits for it.
    broken: AtomicBool,
    running: AtomicU32,
    answered: AtomicU64,
    given_up: AtomicU64,
}

impl Machine {
    fn now(&self) -> Time {
        Time::from_ps(self.now_ps.load(Ordering::Acquire))
    }
}

/// Counts threads that go on, also where one ends in a panic.
struct Running<'a>(&'a AtomicU32);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One core: submits, and takes what completed, until its pair is at its end.
fn core(machine: &Machine, pair: QueuePair, polls: bool) {
    let _running = Running(&machine.running);
    let index = usize::from(pair.id());
    let mut f = machine.access.clone();
    let mut owner = Owner::new(pair);
    let mut draw = 0x9E37_79B9_u32.wrapping_mul(index as u32 + 1);
    while !owner.pair.is_over() {
        if machine.broken.load(Ordering::Acquire) {
            return;
        }
        draw ^= draw << 13;
        draw ^= draw >> 17;
        draw ^= draw << 5;
        for _ in 0..draw % 4 {
            // Up to three commands of the controller.
            match owner.read(&mut f, machine.now(), &machine.buffer, 1 + draw % 700) {
                Ok(()) => {}
                Err(IoError::Full | IoError::NotReady | IoError::Gone) => break,
                Err(error) => panic!("{error}"),
            }
        }
        if polls || machine.interrupted[index].swap(false, Ordering::AcqRel) {
            owner.poll(&mut f);
        }
        let due = owner.pair.next_deadline().is_some_and(|at| at <= machine.now());
        // One kind of core looks after its own timeouts, the other sleeps until it is called.
        if (machine.called[index].swap(false, Ordering::AcqRel) || (polls && due))
            && owner.attend(&mut f, machine.now())
        {
            machine.wanted.store(true, Ordering::Release);
        }
        thread::yield_now();
    }
    assert!(owner.outstanding.is_empty(), "{} lost", owner.outstanding.len());
    assert_eq!((owner.pair.outstanding(), owner.pair.counters().strays), (0, 0));
    let given_up = owner.done.iter().filter(|done| done.result == IoResult::Abandoned).count();
    machine.given_up.fetch_add(given_up as u64, Ordering::AcqRel);
    machine.answered.fetch_add((owner.done.len() - given_up) as u64, Ordering::AcqRel);
}

/// The core with the clock and the controller object.
struct Control<'a> {
    machine: &'a Machine,
    controller: Controller,
    f: Access,
    calls: Vec<u16>,
    vectors: Vec<u16>,
    since: Instant,
}

impl Drop for Control<'_> {
    fn drop(&mut self) {
        self.machine.broken.store(true, Ordering::Release);
    }
}

impl Control<'_> {
    fn round(&mut self) {
        let machine = self.machine;
        let state = self.controller.state();
        assert!(self.since.elapsed() < Duration::from_secs(100), "still {state:?}");
        let mut now = machine.now();
        // No core can be late for a reset, however the threads are scheduled: the clock waits for it.
        if self.calls.is_empty() || self.controller.state() != DriverState::Recovering {
            now += STEP;
        }
        {
            let mut pci = machine.access.pci();
            pci.advance(now);
            pci.set_now(now);
            pci.take_interrupts(now, &mut self.vectors);
            pci.take_stall();
        }
        machine.now_ps.store(now.as_ps(), Ordering::Release);
        for vector in self.vectors.drain(..) {
            self.controller.on_interrupt(&mut self.f, now, vector);
            // Vector 0 may be everybody's.
            let of_vector = |queue: usize| vector == 0 || queue == usize::from(vector);
            for (_, flag) in machine.interrupted.iter().enumerate().filter(|(q, _)| of_vector(*q)) {
                flag.store(true, Ordering::Release);
            }
        }
        let wanted = machine.wanted.swap(false, Ordering::AcqRel);
        if wanted || self.controller.next_deadline().is_some_and(|at| at <= now) {
            self.controller.poll(&mut self.f, now);
        }
        self.calls.clear();
        self.controller.calls(&mut self.calls);
        for &queue in &self.calls {
            machine.called[usize::from(queue)].store(true, Ordering::Release);
        }
        thread::yield_now();
    }

    fn rounds(&mut self, n: u32) {
        (0..n).for_each(|_| self.round());
    }

    fn mishap(&mut self, n: u32) {
        let machine = self.machine;
        let mut pci = machine.access.pci();
        let now = machine.now();
        match n % 4 {
            0 => {
                let number = pci.counters().interrupts + 3;
                pci.inject_interrupt(number, Fault::Drop);
            }
            1 => pci.inject(now, Fault::Hang(Time::from_us(500))),
            _ => {
                let device = pci.device_mut();
                let kind = if n % 4 == 2 { Mishap::Forgotten } else { Mishap::LostForGood };
                let command = device.taken + 2;
                device.mishaps.insert(command, kind);
            }
        }
    }

    fn until_ready(&mut self) {
        while self.controller.state() == DriverState::Recovering {
            self.round();
        }
        assert_eq!(self.controller.state(), DriverState::Ready);
    }

    /// Resets that are asked for, resets that are needed, scans of namespaces.
    fn trouble(&mut self) {
        for n in 0..60 {
            self.until_ready();
            self.rounds(60 + n * 17 % 41);
            self.mishap(n);
            self.rounds(n * 7 % 23);
            let now = self.machine.now();
            if n % 3 == 0 && self.controller.state() == DriverState::Ready {
                self.controller.reset(&mut self.f, now).unwrap();
            } else {
                let _ = self.controller.rescan(&mut self.f, now);
            }
        }
        self.until_ready();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Shutdown,
    Pulled,
    /// Removed without a report: the watchdog detects it.
    FoundGone,
}

fn run(interrupts: InterruptChoice, end: End, seed: u64) {
    let limits = NvmeConfig {
        cores: CORES,
        interrupts,
        resets_max: 1000,
        io_timeout: Time::from_ms(1),
        admin_timeout: Time::from_ms(1),
        ..config()
    };
    let mut f = Access(Arc::new(Mutex::new(double(Nature { seed, ..Nature::default() }))));
    let buffer = f.dma_allocate(8 << 20).unwrap();
    let flags = || (0..=CORES).map(|_| AtomicBool::new(false)).collect();
    let machine = Machine {
        access: f.clone(),
        buffer,
        now_ps: AtomicU64::new(0),
        interrupted: flags(),
        called: flags(),
        wanted: AtomicBool::new(false),
        broken: AtomicBool::new(false),
        running: AtomicU32::new(u32::from(CORES)),
        answered: AtomicU64::new(0),
        given_up: AtomicU64::new(0),
    };
    let controller = Controller::new(limits);
    let (calls, vectors) = (Vec::new(), Vec::new());
    let since = Instant::now();
    let mut control = Control { machine: &machine, controller, f, calls, vectors, since };
    control.controller.start(&mut control.f, Time::ZERO).unwrap();
    while control.controller.state() == DriverState::Starting {
        control.round();
    }
    assert_eq!(control.controller.state(), DriverState::Ready);
    thread::scope(|scope| {
        for pair in control.controller.take_pairs() {
            // Half of the cores poll; without interrupts all do.
            let polls = interrupts == InterruptChoice::Polling || pair.id() % 2 == 0;
            let machine = &machine;
            scope.spawn(move || core(machine, pair, polls));
        }
        control.trouble();
        match end {
            End::Shutdown => {
                let now = machine.now();
                control.controller.shutdown(&mut control.f, now).unwrap();
            }
            End::Pulled | End::FoundGone => {
                // Between two accesses of any core.
                machine.access.pci().inject(machine.now(), Fault::Remove);
                if end == End::Pulled {
                    control.controller.removed(&mut control.f);
                }
            }
        }
        while machine.running.load(Ordering::Acquire) > 0 {
            control.round();
        }
    });
    let over = control.controller.state();
    match end {
        End::Shutdown => assert_eq!(over, DriverState::Stopped),
        _ => assert!(matches!(over, DriverState::Failed(_)), "{over:?}"),
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Acquire);
    let (answered, given_up) = (count(&machine.answered), count(&machine.given_up));
    assert!(answered > 100 && given_up > 0, "{answered} answered, {given_up} given up");
    assert!(control.controller.counters().resets >= 20);
    let mut pci = machine.access.pci();
    assert_eq!(pci.memory_bytes(), u64::from(buffer.bytes), "the memory of every pair came back");
    assert_eq!(pci.faults(), []);
    assert_eq!(pci.device_mut().violations, Vec::<String>::new());
}

#[test]
fn threads_hear_of_every_command_once_until_a_shutdown() {
    run(InterruptChoice::Best, End::Shutdown, 1);
}

#[test]
fn threads_hear_of_every_command_once_until_the_device_is_pulled() {
    run(InterruptChoice::Best, End::Pulled, 2);
}

#[test]
fn threads_that_share_a_pin_hear_of_every_command_once() {
    run(InterruptChoice::Only(InterruptMode::Pin), End::Shutdown, 4);
}

#[test]
fn threads_hear_of_every_command_once_when_nobody_reports_the_removal() {
    run(InterruptChoice::Polling, End::FoundGone, 3);
}
