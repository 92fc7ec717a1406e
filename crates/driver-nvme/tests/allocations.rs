//! No allocation per I/O (S1-30): everything was allocated at the start.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![expect(unsafe_code, reason = "a global allocator that counts is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use instant::Instant;
use ssdyno_block::{ListGrowth, Time, Token};
use ssdyno_driver_nvme::{DataBuffer, HeadDoorbell, IoCommand, NvmeConfig, PriorityClass};

#[path = "../benches/instant/mod.rs"]
mod instant;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract. Counting touches
// a plain cell of the thread, without an allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
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
    let before = ALLOCATIONS.get();
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
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_eq!(done, 20_000);
    let counters = driver.counters();
    let doorbells = counters.submission_doorbells + counters.completion_doorbells;
    assert_eq!(function.writes - writes, doorbells);
    assert!(counters.commands > 20_000 && counters.completion_doorbells == counters.commands);

    // The same with pairs that cores own, which look after themselves.
    let (_controller, mut pairs) = driver.into_parts();
    let before = ALLOCATIONS.get();
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
    assert_eq!((done, ALLOCATIONS.get() - before), (40_000, 0));
}

/// Sends 64 reads to each of two queues, and takes them by interrupts with a list for so many. Gives the
/// allocations and what each call found.
fn undersized(growth: ListGrowth, room: usize) -> (u64, Vec<u32>) {
    let config =
        NvmeConfig { cores: 2, entries: 256, completion_lists: growth, ..NvmeConfig::default() };
    let (mut function, mut driver) = Instant::ready(config);
    for i in 0..128 {
        let read = IoCommand::read(1, 0, 1, DataBuffer::Contiguous(1 << 40));
        let queue = 1 + (i % 2) as u16;
        driver.submit(&mut function, Time::from_us(1), queue, &read, Token(i)).unwrap();
    }
    let mut out = Vec::with_capacity(room);
    let (mut found, mut seen) = (Vec::with_capacity(1000), [false; 128]);
    let before = ALLOCATIONS.get();
    for vector in [1, 2] {
        loop {
            let n = driver.on_interrupt(&mut function, Time::from_us(2), vector, &mut out);
            found.push(n);
            assert_eq!(n as usize, out.len());
            for done in out.drain(..) {
                assert!(done.is_success() && done.queue == vector);
                assert!(!std::mem::replace(&mut seen[done.token.0 as usize], true));
            }
            if !driver.has_more() {
                break;
            }
        }
    }
    let allocations = ALLOCATIONS.get() - before;
    assert_eq!(seen, [true; 128]);
    assert_eq!(driver.counters().completions, 128);
    (allocations, found)
}

/// A list that is too short: it grows in the interrupt, or takes the completions that fit, as
/// configured.
#[test]
fn an_undersized_list_need_not_grow_in_the_interrupt() {
    let (allocations, found) = undersized(ListGrowth::Grow, 8);
    assert!(allocations > 0 && found == [64, 64], "{allocations}, {found:?}");
    let (allocations, found) = undersized(ListGrowth::Fixed, 8);
    assert_eq!((allocations, found), (0, vec![8; 16]));
    let (allocations, found) = undersized(ListGrowth::Fixed, 60);
    assert_eq!((allocations, found), (0, vec![60, 4, 60, 4]));
    // Just enough: nothing is left, and nothing says so.
    let (allocations, found) = undersized(ListGrowth::Fixed, 64);
    assert_eq!((allocations, found), (0, vec![64, 64]));
}

/// The same where commands are given up: by a removal, with pairs that cores own and without.
#[test]
fn what_is_given_up_needs_no_room_at_once() {
    let config = || NvmeConfig {
        entries: 256,
        completion_lists: ListGrowth::Fixed,
        ..NvmeConfig::default()
    };
    let (mut function, mut driver) = Instant::ready(config());
    for i in 0..100 {
        let read = IoCommand::read(1, 0, 1, DataBuffer::Contiguous(1 << 40));
        driver.stage(&mut function, Time::from_us(1), 1, &read, Token(i)).unwrap();
    }
    let (mut out, mut given_up) = (Vec::with_capacity(16), 0);
    let before = ALLOCATIONS.get();
    driver.removed(&mut function, &mut out);
    while driver.has_more() {
        assert!(!out.is_empty(), "no progress");
        given_up += out.len();
        out.clear();
        driver.poll(&mut function, Time::from_us(2), &mut out);
    }
    assert_eq!((ALLOCATIONS.get() - before, given_up + out.len()), (0, 100));
}
