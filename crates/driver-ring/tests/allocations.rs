//! The driver allocates nothing per I/O.

#![expect(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

#[path = "common/instant.rs"]
mod instant;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use instant::Instant;
use ssdyno_block::{Request, Time, Token};
use ssdyno_driver_ring::{CompletionPolicy, RingDriver, RingDriverOptions, Submission};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches a plain cell of the
// thread, which needs no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn nothing_is_allocated_per_request() {
    for completion in [CompletionPolicy::PerBlock, CompletionPolicy::Napi { budget: 8 }] {
        let options =
            RingDriverOptions { queue_depth: 64, completion, ..RingDriverOptions::default() };
        let mut driver = RingDriver::new(Instant::new(), options).unwrap();
        let mut done = Vec::with_capacity(64);
        let mut completed = 0;
        let mut work = |rounds: u64| {
            for round in 0..rounds {
                let now = Time::from_us(round);
                for token in 0..64 {
                    // Up to three pages.
                    let request = Request::write(512 * (round % 1000), 4096 * (1 + token % 2));
                    let token = Token(token);
                    let submission = Submission { request, token, address: None, urgent: false };
                    driver.submit(now, submission).unwrap();
                }
                while driver.in_flight() > 0 {
                    driver.on_interrupt(now);
                    driver.poll(now, &mut done);
                    completed += done.len() as u64;
                    done.clear();
                }
            }
        };
        assert_eq!(allocations_of(|| work(1)), 0, "not even the first time");
        assert_eq!(allocations_of(|| work(1000)), 0);
        assert_eq!(completed, 64 * 1001);
        assert!(allocations_of(|| drop(std::hint::black_box(vec![1]))) > 0, "it counts");
    }
}
