//! The suite that every [`BlockTarget`] must pass.
//!
//! Call [`check_target`] from a test of the crate that implements the target. It drives the target
//! with a seeded mix of requests, at several depths, and asserts what the contract promises.

use std::collections::BTreeMap;

use crate::{BlockTarget, Completion, Op, Request, SubmitError, Time, Token};

/// Runs the whole suite against fresh targets made by `make`.
///
/// # Panics
/// With a description of the broken promise and the seed that replays it.
pub fn check_target<T: BlockTarget>(mut make: impl FnMut() -> T) {
    refuses_bad_ranges(&mut make());
    for (seed, depth) in [(1, 1), (2, 7), (3, 64)] {
        let first = exercise(&mut make(), seed, depth, 2_000);
        let again = exercise(&mut make(), seed, depth, 2_000);
        assert!(first == again, "two runs with seed {seed}, depth {depth} differ");
    }
}

fn refuses_bad_ranges<T: BlockTarget>(target: &mut T) {
    let capacity_bytes = target.capacity_bytes();
    let sector = target.sector_bytes();
    assert!(capacity_bytes >= u64::from(sector), "a target holds one sector at least");
    let beyond = Request::read(capacity_bytes, sector);
    let misaligned = Request::read(1, sector);
    let empty = Request::write(0, 0);
    let overflow = Request::write(u64::MAX - u64::from(sector) + 1, sector);
    for bad in [beyond, misaligned, empty, overflow] {
        let refused = target.submit(Time::ZERO, bad, Token(0));
        assert!(
            matches!(refused, Err(SubmitError::OutOfRange { .. } | SubmitError::Misaligned { .. })),
            "{bad:?} must be refused, was {refused:?}"
        );
    }
    let mut out = Vec::new();
    target.reap(Time::ZERO, &mut out);
    assert!(out.is_empty(), "a refused request must not complete");
}

/// xorshift64*: enough for a test, and no dependency.
fn draw(state: &mut u64, below: u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % below
}

fn some_request<T: BlockTarget>(target: &T, state: &mut u64) -> Request {
    let sector = u64::from(target.sector_bytes());
    let sectors = target.capacity_bytes() / sector;
    let length = (1 + draw(state, 32)).min(sectors);
    let offset_bytes = draw(state, sectors - length + 1) * sector;
    let length_bytes = (length * sector) as u32;
    match draw(state, 20) {
        0..9 => Request { op: Op::Read, offset_bytes, length_bytes },
        9..18 => Request { op: Op::Write, offset_bytes, length_bytes },
        18 => Request { op: Op::Trim, offset_bytes, length_bytes },
        _ => Request::flush(),
    }
}

fn exercise<T: BlockTarget>(
    target: &mut T,
    seed: u64,
    depth: usize,
    requests: usize,
) -> Vec<Completion> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut in_flight: BTreeMap<Token, Time> = BTreeMap::new();
    let mut free: Vec<u32> = (0..depth as u32).rev().collect();
    let mut done = Vec::new();
    let mut batch = Vec::new();
    let mut now = Time::ZERO;
    let mut issued = 0;
    while issued < requests || !in_flight.is_empty() {
        let mut full = false;
        while issued < requests && !full {
            let Some(token) = free.pop().map(Token) else { break };
            let request = some_request(target, &mut state);
            match target.submit(now, request, token) {
                Ok(()) => {
                    in_flight.insert(token, now);
                    issued += 1;
                }
                Err(SubmitError::Full) => {
                    assert!(!in_flight.is_empty(), "full with nothing in flight (seed {seed})");
                    free.push(token.0);
                    full = true;
                }
                Err(error) => panic!("{request:?} refused: {error} (seed {seed})"),
            }
        }
        let next = target.next_event();
        let next = next.unwrap_or_else(|| panic!("{} lost (seed {seed})", in_flight.len()));
        now = now.max(next);
        target.reap(now, &mut batch);
        for c in batch.drain(..) {
            let submitted = in_flight.remove(&c.token);
            let submitted = submitted.unwrap_or_else(|| panic!("{c:?} twice (seed {seed})"));
            assert!(
                submitted <= c.accepted && c.accepted <= c.completed && c.completed <= now,
                "{c:?}, submitted {submitted:?}, reaped {now:?}: out of order (seed {seed})"
            );
            free.push(c.token.0);
            done.push(c);
        }
    }
    done
}
