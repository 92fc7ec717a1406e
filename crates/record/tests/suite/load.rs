//! A made-up load, the same each time.

use ssdyno_block::{Completion, Request, Status, Time, Token};
use ssdyno_record::Recorder;

pub(crate) fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// One request of the made-up run: request, start, completion.
pub(crate) type Done = (Request, Time, Completion);

/// A closed loop of depth 8; reads wait now and then behind a program or an erase.
pub(crate) fn load(requests: u64, mut state: u64) -> Vec<Done> {
    let mut free = [Time::ZERO; 8];
    let mut done = Vec::new();
    for i in 0..requests {
        let slot = (0..8).min_by_key(|s| free[*s]).unwrap_or(0);
        let start = free[slot];
        let offset = draw(&mut state) % 1_000_000 * 4096;
        let read = !draw(&mut state).is_multiple_of(10) && draw(&mut state) % 10 < 7;
        let wait_us = match draw(&mut state) % 100 {
            0 => 3_500,
            1..10 => 500,
            _ => 0,
        };
        let noise = Time::from_ns(draw(&mut state) % 12_000);
        let service = Time::from_us(if read { 62 } else { 512 }) + noise;
        let request = if read { Request::read(offset, 4096) } else { Request::write(offset, 4096) };
        let accepted = start + Time::from_ns(draw(&mut state) % 900);
        let completed = accepted + Time::from_us(wait_us) + service;
        let status = if i % 5_000 == 4_999 { Status::Error } else { Status::Ok };
        let token = Token(slot as u32);
        done.push((request, start, Completion { token, status, accepted, completed }));
        free[slot] = completed;
    }
    done
}

/// Feeds a recorder in the order of time, as a runner does.
pub(crate) fn feed(recorder: &mut Recorder, done: &[Done]) {
    let mut events: Vec<(Time, bool, usize)> = Vec::new();
    for (i, (_, start, completion)) in done.iter().enumerate() {
        events.push((*start, true, i));
        events.push((completion.completed, false, i));
    }
    // An arrival before the departure of the same request, a departure before what follows it.
    events.sort_by_key(|(at, arrival, i)| (*at, *arrival, *i));
    let mut early = std::collections::BTreeSet::new();
    for (_, arrival, i) in events {
        let (request, start, completion) = &done[i];
        if arrival {
            if !early.contains(&i) {
                recorder.arrived(*start);
            }
        } else {
            // Zero latency: the sort put the departure first.
            if completion.completed == *start && early.insert(i) {
                recorder.arrived(*start);
            }
            recorder.record(request, *start, completion);
        }
    }
}
