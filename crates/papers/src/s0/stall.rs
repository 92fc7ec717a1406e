//! Fewer threads than a static block holds (S0-36): nothing will ever happen, and the driver says so.

use ssdyno_block::{Request, Time, Token};
use ssdyno_controller_ring::RingCard;
use ssdyno_driver_ring::{BlockPolicy, RingDriver, RingDriverOptions, Submission};
use ssdyno_pci::{PciTiming, SimulatedPci};

use super::data::Plan;
use super::simulate::card;
use crate::claims::Verdict;

/// True if `threads` threads with blocks of `size` leave the driver stalled, with nothing under way.
fn stalls(size: u32, threads: u32) -> Option<bool> {
    let zero = Time::ZERO;
    // The test is about the state of the driver and not about time. With costs of zero, an event
    // that is left would be due at once and disprove the stall.
    let timing = PciTiming { posted_write: zero, read_round_trip: zero, interrupt: zero };
    let pci = SimulatedPci::new(RingCard::new(&card().ok()?, 1).ok()?, timing);
    let options =
        RingDriverOptions { block: BlockPolicy::Static(size), ..RingDriverOptions::default() };
    let mut driver = RingDriver::new(pci, options).ok()?;
    for token in 0..threads {
        let request = Request::read(u64::from(token) * 4096, 4096);
        let token = Token(token);
        let submission = Submission { request, token, address: None, urgent: false };
        driver.submit(zero, submission).ok()?;
    }
    // Both conditions are needed: the driver says that it is stalled, and nothing is left that
    // could wake it. S0-36 demands that the deadlock is detected and not only present.
    let idle = driver.function().next_event().is_none() && driver.next_deadline().is_none();
    Some(driver.stalled() && idle)
}

/// Every block size with every smaller number of threads is found out, with as many it is not.
pub(super) fn check(plan: &Plan) -> Verdict {
    let (mut points, mut found, mut wrong) = (0, 0, 0);
    for size in plan.static_blocks.iter().copied() {
        for threads in plan.threads.iter().copied().filter(|threads| *threads < size) {
            points += 1;
            found += u32::from(stalls(size, threads)?);
        }
        // A detector that always reports a stall would find every point. The full block is the
        // counter-check.
        wrong += u32::from(stalls(size, size)?);
    }
    let text = format!("{found} of {points} such points detected, {wrong} false alarms");
    Some(((found == points && wrong == 0).into(), text))
}
