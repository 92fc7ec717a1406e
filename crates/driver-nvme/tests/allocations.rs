//! No allocation per I/O (S1-30): everything was allocated at the start.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![expect(unsafe_code, reason = "a global allocator that counts is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use instant::Instant;
use ssdyno_block::{Time, Token};
use ssdyno_driver_nvme::{DataBuffer, HeadDoorbell, IoCommand, NvmeConfig, PriorityClass};

#[path = "../benches/instant/mod.rs"]
mod instant;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; `at` came from `System`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn io_allocates_nothing() {
    let config = NvmeConfig {
        cores: 4,
        entries: 256,
        head_doorbell: HeadDoorbell::PerCompletion,
        ..NvmeConfig::default()
    };
    let (mut function, mut driver) = Instant::ready(config);
    let mut out = Vec::with_capacity(256);
    let pages: Vec<u64> = (0..1024).map(|page| (1 << 40) + page * 8192).collect();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let writes = function.writes;
    let mut done = 0;
    for i in 0..20_000_u32 {
        let choice = driver.choose(i as u16, PriorityClass::Medium);
        // 512 B to 1 MiB: one page, two, lists, several commands.
        let blocks = 1 << (i % 12);
        let data = DataBuffer::Pages { pages: &pages, offset: 512 };
        let command = match i % 3 {
            0 => IoCommand::read(1, u64::from(i), blocks, data),
            1 => IoCommand::write(1, u64::from(i), blocks, data),
            _ => IoCommand::flush(1),
        };
        let now = Time::from_us(u64::from(i));
        driver.submit(&mut function, now, choice.queue, &command, Token(i)).unwrap();
        driver.on_interrupt(&mut function, now, choice.queue, &mut out);
        done += out.iter().filter(|done| done.is_success()).count();
        out.clear();
    }
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
    assert_eq!(done, 20_000);
    let counters = driver.counters();
    let doorbells = counters.submission_doorbells + counters.completion_doorbells;
    assert_eq!(function.writes - writes, doorbells);
    assert!(counters.commands > 20_000 && counters.completion_doorbells == counters.commands);

    // The same with pairs that cores own, which look after themselves.
    let (_controller, mut pairs) = driver.into_parts();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for i in 0..20_000_u32 {
        let pair = &mut pairs[i as usize % 4];
        let data = DataBuffer::Pages { pages: &pages, offset: 512 };
        let command = IoCommand::read(1, u64::from(i), 1 << (i % 12), data);
        let now = Time::from_us(u64::from(i));
        pair.submit(&mut function, now, &command, Token(i)).unwrap();
        pair.on_interrupt(&mut function, pair.id(), &mut out);
        pair.attend(&mut function, now, &mut out);
        done += out.iter().filter(|done| done.is_success()).count();
        out.clear();
    }
    assert_eq!((done, ALLOCATIONS.load(Ordering::Relaxed) - before), (40_000, 0));
}
