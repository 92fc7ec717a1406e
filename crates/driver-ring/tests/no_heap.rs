//! A heap without room: the start says so, and afterwards each request that was taken completes once,
//! whichever allocation fails.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![expect(unsafe_code, reason = "a global allocator that fails is an unsafe trait")]

#[path = "common/instant.rs"]
mod instant;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use instant::Instant;
use ssdyno_block::{Request, Time, Token};
use ssdyno_driver_ring::{CompletionPolicy, RingDriver, RingDriverOptions, RingError, Submission};

thread_local! {
    /// Allocations of the driver are counted, and fail from this one on.
    static FAILS_FROM: Cell<u64> = const { Cell::new(u64::MAX) };
    static COUNTS: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Heap;

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract, or answered
// with null, which the contract allows. Counting touches plain cells of the thread, without an allocation.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTS.get() && COUNT.replace(COUNT.get() + 1) >= FAILS_FROM.get() {
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

/// Takes 32 requests and has them answered; gives how many allocations that took.
fn live(completion: CompletionPolicy, fails_from: u64) -> (u64, bool) {
    COUNT.set(0);
    FAILS_FROM.set(fails_from);
    let options = RingDriverOptions { queue_depth: 64, completion, ..RingDriverOptions::default() };
    let function = Instant::new();
    let mut driver = match at_work(|| RingDriver::new(function, options)) {
        Ok(driver) => driver,
        Err(error) => {
            assert_eq!(error, RingError::NoMemory);
            return (COUNT.get(), false);
        }
    };
    let mut answered = [false; 32];
    let now = Time::from_us(1);
    for token in 0..32 {
        let request = Request::read(u64::from(token) * 8192, 8192);
        let submission = Submission { request, token: Token(token), address: None, urgent: false };
        at_work(|| driver.submit(now, submission)).unwrap();
    }
    for round in 0..200 {
        if round == 100 {
            // There is room again.
            FAILS_FROM.set(u64::MAX);
        }
        let mut out = Vec::new();
        let again = at_work(|| {
            driver.on_interrupt(now);
            driver.poll(now, &mut out).again
        });
        if driver.in_flight() > 0 && !again {
            assert!(driver.next_deadline().is_some(), "nobody would look after what waits");
        }
        for done in out {
            let again = std::mem::replace(&mut answered[done.token.0 as usize], true);
            assert!(!again, "{done:?} was answered twice");
        }
    }
    assert!(answered.iter().all(|answered| *answered) && driver.in_flight() == 0);
    (COUNT.get(), true)
}

#[test]
fn any_allocation_may_fail() {
    for completion in [CompletionPolicy::PerBlock, CompletionPolicy::Napi { budget: 8 }] {
        let (all, started) = live(completion, u64::MAX);
        assert!(all > 8 && started, "{all} allocations");
        let starts = (0..all).filter(|at| live(completion, *at).1).count();
        assert!(starts > 0 && starts < all as usize, "the start, and what follows, both fail");
    }
}
