//! A heap without room: if any allocation fails, once or from then on, nothing panics and nothing ends the program.
//! Each accepted command completes once, and the driver works again, immediately or after another start.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![expect(unsafe_code, reason = "a global allocator that fails is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use instant::Instant;
use ssdyno_block::{MonotonicTime, Token};
use ssdyno_driver_nvme::{
    AdminCommand, AdminError, DataBuffer, DriverState, Feature, IoCommand, IoError, NvmeConfig,
    NvmeDriver, NvmeError, QueuePolicy, SuspendMode,
};

#[path = "../benches/instant/mod.rs"]
#[expect(dead_code, reason = "one that is ready is for others")]
mod instant;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failing {
    Never,
    Once { at: u64 },
    From { at: u64 },
}

thread_local! {
    static FAILING: Cell<Failing> = const { Cell::new(Failing::Never) };
    /// Allocations of the driver are counted, and may fail.
    static COUNTS: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn fails() -> bool {
    if !COUNTS.get() {
        return false;
    }
    let n = COUNT.replace(COUNT.get() + 1);
    match FAILING.get() {
        Failing::Never => false,
        Failing::Once { at } => n == at,
        Failing::From { at } => n >= at,
    }
}

struct Heap;

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract, or answered
// with null, which the contract allows. Counting touches plain cells of the thread, without an allocation.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on; `at` came from `System`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static HEAP: Heap = Heap;

/// The driver at work: its allocations count.
fn at_work<T>(work: impl FnOnce() -> T) -> T {
    COUNTS.set(true);
    let done = work();
    COUNTS.set(false);
    done
}

const TOKENS: usize = 512;

struct Story {
    f: Instant,
    driver: NvmeDriver,
    now: u64,
    /// Tokens that were taken and not answered.
    outstanding: [bool; TOKENS],
    next: u32,
    answered: u32,
}

impl Story {
    fn new() -> Story {
        let policy = QueuePolicy::PerCorePool;
        let features = vec![Feature::autonomous_power(2, 3, 100)];
        let config =
            NvmeConfig { cores: 2, entries: 32, policy, features, ..NvmeConfig::default() };
        let driver = at_work(|| NvmeDriver::new(config));
        Story {
            f: Instant::new(16 << 20),
            driver,
            now: 0,
            outstanding: [false; TOKENS],
            next: 0,
            answered: 0,
        }
    }

    fn tick(&mut self) -> MonotonicTime {
        self.now += 1_000_000;
        MonotonicTime::from_ns(self.now)
    }

    /// A poll with a list that has no room yet.
    fn poll(&mut self) {
        let now = self.tick();
        let (mut out, queues) = (Vec::new(), self.driver.queues());
        let Story { f, driver, .. } = self;
        at_work(|| {
            driver.poll(f, now, &mut out);
            for queue in 1..=queues {
                driver.poll_queue(f, queue, &mut out);
            }
        });
        self.strike(&out);
    }

    fn strike(&mut self, out: &[ssdyno_driver_nvme::IoCompletion]) {
        for done in out {
            let open = std::mem::replace(&mut self.outstanding[done.token.0 as usize], false);
            assert!(open, "{done:?} was answered twice");
            self.answered += 1;
        }
    }

    fn polls(&mut self) {
        for _ in 0..80 {
            self.poll();
        }
    }

    /// Reads that need page lists, told to the controller or not.
    fn reads(&mut self, tell: bool) {
        let now = self.tick();
        for queue in 1..=self.driver.queues() {
            for _ in 0..4 {
                let token = self.next;
                let read = IoCommand::read(1, 0, 64, DataBuffer::Contiguous(1 << 40));
                let Story { f, driver, .. } = self;
                let taken = at_work(|| driver.stage(f, now, queue, &read, Token(token)));
                match taken {
                    Ok(()) => {
                        self.outstanding[token as usize] = true;
                        self.next += 1;
                    }
                    Err(IoError::NotReady | IoError::Gone | IoError::NoSuchNamespace { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            let Story { f, driver, .. } = self;
            if tell {
                at_work(|| driver.ring_doorbell(f, queue));
            }
        }
    }

    fn start(&mut self) {
        let now = self.tick();
        let Story { f, driver, .. } = self;
        match at_work(|| driver.start(f, now)) {
            Ok(()) | Err(NvmeError::NoMemory) => {}
            Err(error) => panic!("{error}"),
        }
        self.polls();
    }

    /// An admin command that receives a page: its end comes, or it is refused.
    fn identify(&mut self) {
        let now = self.tick();
        let (command, mut ends) = (AdminCommand::identify_controller(), Vec::new());
        let Story { f, driver, .. } = self;
        let taken = at_work(|| driver.submit_admin(f, now, &command, Token(9)));
        self.polls();
        at_work(|| self.driver.take_admin(&mut ends));
        self.driver.take_admin(&mut ends);
        match taken {
            Ok(()) => assert!(ends.len() == 1 && ends[0].data.len() == 4096),
            Err(AdminError::NoMemory | AdminError::NotReady) => assert!(ends.is_empty()),
            Err(error) => panic!("{error}"),
        }
    }

    fn live(&mut self) {
        self.start();
        self.reads(true);
        self.polls();
        self.identify();
        let now = self.tick();
        let Story { f, driver, .. } = self;
        let _ = at_work(|| driver.rescan(f, now));
        self.polls();
        // The reset gives up commands that were not reported.
        self.reads(false);
        let (now, mut out) = (self.tick(), Vec::new());
        let Story { f, driver, .. } = self;
        let _ = at_work(|| driver.reset(f, now, &mut out));
        self.strike(&out);
        self.polls();
        self.reads(true);
        self.polls();
        let now = self.tick();
        let Story { driver, .. } = self;
        let _ = at_work(|| driver.suspend(now, SuspendMode::PowerOff));
        self.polls();
        let now = self.tick();
        let Story { f, driver, .. } = self;
        let _ = at_work(|| driver.resume(f, now, &mut Vec::new()));
        self.polls();
        self.reads(false);
        let mut out = Vec::new();
        let Story { f, driver, .. } = self;
        at_work(|| driver.removed(f, &mut out));
        self.strike(&out);
        self.polls();
        self.events();
    }

    fn events(&mut self) {
        let mut events = Vec::new();
        at_work(|| self.driver.take_events(&mut events));
    }

    /// With a heap again: everything completes, and the driver serves.
    fn recover(&mut self) {
        self.polls();
        assert!(!self.outstanding.contains(&true), "{:?} not answered", self.driver.state());
        assert_eq!(self.answered, self.next);
        if matches!(self.driver.state(), DriverState::Stopped | DriverState::Failed(_)) {
            self.start();
        }
        assert_eq!(self.driver.state(), DriverState::Ready);
        let before = self.answered;
        self.reads(true);
        self.polls();
        assert_eq!((self.answered - before, self.driver.queues()), (32, 8));
        self.identify();
    }
}

/// Allocations of a whole life.
fn live(failing: Failing) -> u64 {
    COUNT.set(0);
    FAILING.set(failing);
    let mut story = Story::new();
    story.live();
    let count = COUNT.get();
    FAILING.set(Failing::Never);
    story.recover();
    count
}

#[test]
fn any_allocation_may_fail() {
    let all = live(Failing::Never);
    assert!(all > 50, "{all} allocations");
    for at in 0..all {
        live(Failing::Once { at });
        live(Failing::From { at });
    }
}

/// The first start alone, which is where most is allocated: it fails cleanly or comes up.
#[test]
fn a_start_without_memory_says_so() {
    let mut refused = 0;
    for at in 0..40 {
        COUNT.set(0);
        FAILING.set(Failing::From { at });
        let mut story = Story::new();
        story.start();
        let state = story.driver.state();
        let failed =
            matches!(state, DriverState::Failed(NvmeError::NoMemory) | DriverState::Stopped);
        assert!(failed || state == DriverState::Ready, "{state:?}");
        refused += u32::from(failed);
        FAILING.set(Failing::Never);
        story.recover();
    }
    assert!(refused > 20, "{refused}");
}
