//! A strict runner in virtual time: it checks what a workload owes.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::collections::VecDeque;

use ssdyno_block::{Op, Request, Time};
use ssdyno_workload::{Finished, TargetFacts, Workload, WorkloadStep};

/// One issued request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Issued {
    pub at: Time,
    pub intended: Time,
    pub request: Request,
    /// Outstanding, with this one.
    pub outstanding: usize,
}

pub const DEVICE: TargetFacts = TargetFacts { capacity_bytes: 1 << 36, sector_bytes: 512 };

/// Plays to the end against a target that needs `service` for everything, any number at once.
///
/// # Panics
/// Where the workload breaks its contract, or issues more than `most`.
pub fn play(
    workload: &mut dyn Workload,
    device: &TargetFacts,
    service: Time,
    most: usize,
) -> Vec<Issued> {
    let mut all = Vec::new();
    let mut now = Time::ZERO;
    let mut intended_last = Time::ZERO;
    let mut flying: VecDeque<(Time, Time, Request)> = VecDeque::new();
    loop {
        let step = workload.next(now);
        let wake = match step {
            WorkloadStep::Issue { request, intended } => {
                assert!(intended <= now && intended >= intended_last, "{intended:?} at {now:?}");
                intended_last = intended;
                check(&request, device);
                flying.push_back((now + service, intended, request));
                all.push(Issued { at: now, intended, request, outstanding: flying.len() });
                assert!(all.len() <= most, "more than {most} requests");
                continue;
            }
            WorkloadStep::NotBefore(time) => {
                assert!(time > now, "not before {time:?} at {now:?}");
                Some(time)
            }
            WorkloadStep::Wait => {
                assert!(!flying.is_empty(), "waits for nothing at {now:?}");
                None
            }
            WorkloadStep::Done => {
                assert_eq!(workload.next(now), WorkloadStep::Done, "Done is the end");
                return all;
            }
        };
        let done = flying.front().map(|(done, ..)| *done);
        now = match (wake, done) {
            (Some(wake), Some(done)) => wake.min(done),
            (Some(time), None) | (None, Some(time)) => time,
            (None, None) => return all,
        };
        while let Some((_, intended, request)) = flying.pop_front_if(|(done, ..)| *done <= now) {
            workload.completed(Finished::of(&request, now - intended), now);
        }
    }
}

fn check(request: &Request, device: &TargetFacts) {
    let sector = device.sector_bytes;
    if request.op == Op::Flush {
        assert_eq!((request.offset_bytes, request.length_bytes), (0, 0));
        return;
    }
    assert!(request.length_bytes > 0, "{request:?}");
    assert!(request.length_bytes.is_multiple_of(sector), "{request:?}");
    assert!(request.offset_bytes.is_multiple_of(u64::from(sector)), "{request:?}");
    assert!(request.end_bytes().is_some_and(|end| end <= device.capacity_bytes), "{request:?}");
}
