//! With any faults, every request completes exactly once, and in order.

use crate::common;

use common::{RingTarget, card, driver};
use proptest::prelude::*;
use ssdyno_block::{
    BlockTarget, Completion, Fault, FaultPlan, FaultSite, FaultTrigger, MonotonicTime, Request,
    Status, SubmitError, Time, Token,
};
use ssdyno_driver_ring::{
    BlockPolicy, CompletionPolicy, IdleDispatch, ResponseMode, RingDriverOptions, Submission,
};
use ssdyno_pci::FaultyDevice;

#[derive(Clone, Debug)]
struct Case {
    options: RingDriverOptions,
    separate_engine: bool,
    /// Requests: kind, page, sectors, urgent, pause before it in ns.
    requests: Vec<(u8, u64, u32, bool, u64)>,
    failing: Vec<u64>,
    sticks: Option<u64>,
    lost: Vec<u64>,
    late_interrupt: Option<u64>,
    stuck: Option<(u64, u64)>,
    removal: Option<u64>,
}

fn options() -> impl Strategy<Value = RingDriverOptions> {
    let block = prop_oneof![Just(BlockPolicy::Dynamic), (1u32..=8).prop_map(BlockPolicy::Static)];
    let response = prop_oneof![
        Just(ResponseMode::Block),
        Just(ResponseMode::Each),
        Just(ResponseMode::Subsets)
    ];
    let completion = prop_oneof![
        Just(CompletionPolicy::PerBlock),
        Just(CompletionPolicy::PerReturn),
        (1u32..9).prop_map(|budget| CompletionPolicy::Napi { budget }),
        (1u32..9, 1u64..50).prop_map(|(threshold, us)| CompletionPolicy::Calibrated {
            threshold,
            timeout: Time::from_us(us)
        }),
        (100u64..5000)
            .prop_map(|ns| CompletionPolicy::HybridPolling { interval: Time::from_ns(ns) }),
    ];
    let ring = prop_oneof![Just(None), (0u32..4).prop_map(|more| Some(16 << more))];
    (block, response, 1u32..9, completion, 0u32..8, any::<bool>(), ring, 1u32..80).prop_map(
        |(block, response, subset, completion, prefetch, whole, ring_size, queue_depth)| {
            let size = if let BlockPolicy::Static(size) = block { size } else { 8 };
            let idle_dispatch =
                if whole { IdleDispatch::WholeRequest } else { IdleDispatch::FirstDescriptor };
            RingDriverOptions {
                block,
                partial_after: None,
                max_block: Some(8),
                idle_dispatch,
                response,
                subset,
                completion,
                prefetch: prefetch.min(size),
                queue_depth,
                ring_size,
                own_pages: true,
                timeout: Time::from_ms(1),
            }
        },
    )
}

fn cases() -> impl Strategy<Value = Case> {
    let request = (0u8..8, 0u64..200, 1u32..60, any::<bool>(), 0u64..20_000);
    let faults = (
        prop::collection::vec(0u64..200, 0..4),
        prop::option::weighted(0.2, 0u64..150),
        prop::collection::vec(0u64..30, 0..3),
        prop::option::weighted(0.2, 0u64..30),
        prop::option::weighted(0.2, (0u64..900, 1u64..3000)),
        prop::option::weighted(0.2, 0u64..1500),
    );
    (options(), any::<bool>(), prop::collection::vec(request, 1..60), faults).prop_map(
        |(options, separate_engine, requests, faults)| {
            let (failing, sticks, lost, late_interrupt, stuck, removal) = faults;
            Case {
                options,
                separate_engine,
                requests,
                failing,
                sticks,
                lost,
                late_interrupt,
                stuck,
                removal,
            }
        },
    )
}

const HANG: Fault = Fault::Hang(Time::MAX);

fn hits_command(plan: &mut FaultPlan, number: u64, fault: Fault) {
    plan.add(FaultSite::Command, fault, FaultTrigger::Number(number));
}

/// With a driver whose clock says `origin` when the case begins.
fn target(origin: MonotonicTime, case: &Case) -> RingTarget {
    let engine = if case.separate_engine { "separate" } else { "shared" };
    let engine = format!("descriptors = \"{engine}\"");
    let config = card(&[
        ("capacity = \"1GiB\"", "capacity = \"1MiB\""),
        ("descriptors = \"shared\"", &engine),
    ]);
    let mut target = RingTarget::with_driver_clock(driver(&config, case.options), origin);
    let plan = target.card().fault_plan_mut();
    case.sticks.iter().for_each(|number| hits_command(plan, *number, HANG));
    case.failing.iter().for_each(|number| hits_command(plan, *number, Fault::Error));
    for number in &case.lost {
        plan.add(FaultSite::Interrupt, Fault::Drop, FaultTrigger::Number(*number));
    }
    let pci = target.ring.driver.function_mut();
    if let Some(number) = case.late_interrupt {
        pci.inject_interrupt(number, Fault::Drop);
    }
    if let Some((from, length)) = case.stuck {
        pci.inject(Time::from_us(from), Fault::Hang(Time::from_us(length)));
    }
    if let Some(at) = case.removal {
        pci.inject(Time::from_us(at), Fault::Remove);
    }
    target
}

fn request(&(kind, page, sectors, ..): &(u8, u64, u32, bool, u64)) -> Request {
    let (offset, length) = (page * 512, sectors * 512);
    match kind {
        0..=2 => Request::read(offset, length),
        3..=5 => Request::write(offset, length),
        6 => Request::trim(offset, length),
        _ => Request::flush(),
    }
}

/// Runs the case to its end; completions in order.
fn run(case: &Case) -> (Vec<Completion>, RingTarget) {
    run_at(MonotonicTime::ZERO, case)
}

/// The same with a driver whose clock says `origin` when the case begins.
fn run_at(origin: MonotonicTime, case: &Case) -> (Vec<Completion>, RingTarget) {
    let mut target = target(origin, case);
    let mut done = Vec::new();
    let mut now = Time::ZERO;
    let mut turns = 0;
    let mut go_on = |target: &mut RingTarget, done: &mut Vec<Completion>, now: &mut Time| {
        let next = target.next_event().expect("requests are open, so something will happen");
        *now = next.max(*now);
        target.reap(*now, done);
        turns += 1;
        assert!(turns < 200_000, "it never ends");
    };
    for (token, what) in case.requests.iter().enumerate() {
        let until = now + Time::from_ns(what.4);
        while target.next_event().is_some_and(|next| next <= until) {
            go_on(&mut target, &mut done, &mut now);
        }
        now = now.max(until);
        let token = Token(token as u32);
        let submission =
            Submission { request: request(what), token, address: None, urgent: what.3 };
        while let Err(refused) = target.submit_with(now, submission) {
            assert_eq!(refused, SubmitError::Full);
            go_on(&mut target, &mut done, &mut now);
        }
    }
    while done.len() < case.requests.len() {
        go_on(&mut target, &mut done, &mut now);
    }
    (done, target)
}

proptest! {
    #![proptest_config(ProptestConfig::default())]
    #[test]
    fn every_request_is_answered_once_and_in_order(case in cases()) {
        let (done, target) = run(&case);
        let tokens: Vec<u32> = done.iter().map(|completion| completion.token.0).collect();
        let all: Vec<u32> = (0..case.requests.len() as u32).collect();
        prop_assert_eq!(tokens, all);
        prop_assert_eq!(target.ring.driver.in_flight(), 0);
        prop_assert!(!target.ring.driver.is_outstanding());
        let counters = *target.ring.driver.counters();
        if case.removal.is_none() && case.stuck.is_none() {
            // No innocent request is hurt.
            let failed = done.iter().filter(|c| c.status == Status::Error).count();
            prop_assert!(failed <= case.failing.len());
            if case.sticks.is_none() {
                prop_assert_eq!(counters.resets, 0);
                prop_assert!(done.iter().all(|c| c.status != Status::Abandoned));
            }
        }
        let (again, _) = run(&case);
        prop_assert_eq!(done, again);
    }

    /// For any start of its clock: everything is the same to the picosecond, also if 64 bits of picoseconds (213 days)
    /// or of nanoseconds (584 years) overflow meanwhile.
    #[test]
    fn nothing_depends_on_the_origin_of_the_clock(
        case in cases(),
        end in prop::sample::select(vec![1_u128 << 64, (1_u128 << 64) * 1000]),
        before_ns in 0_u64..5_000_000,
    ) {
        let origin = MonotonicTime::from_ps(end - u128::from(before_ns) * 1000);
        let (done, target) = run_at(origin, &case);
        let (expected, plain) = run(&case);
        prop_assert_eq!(done, expected);
        prop_assert_eq!(target.ring.driver.counters(), plain.ring.driver.counters());
    }

    /// The paths of failure are paths of the same driver: the card never sees it break the protocol.
    #[test]
    fn the_driver_keeps_the_protocol(case in cases()) {
        // A card that is given up and comes back finds its memory closed, and says so.
        let (_, target) = run(&Case { stuck: None, ..case });
        prop_assert_eq!(target.ring.driver.function().device().fault(), None);
        prop_assert!(target.ring.driver.function().faults().is_empty());
    }
}

#[test]
fn errors_reach_the_request_and_only_that() {
    let config = card(&[]);
    let mut target = RingTarget::new(driver(&config, RingDriverOptions::default()));
    for number in [1, 9] {
        hits_command(target.card().fault_plan_mut(), number, Fault::Error);
    }
    for token in 0..4 {
        // 1, 4, 4 and 4 pages: commands 0, 1-4, 5-8, 9-12.
        let pages = if token == 0 { 1 } else { 4 };
        let request = Request::read(u64::from(token) * 65536, pages * 4096);
        target.submit(Time::ZERO, request, Token(token)).unwrap();
    }
    let mut done = Vec::new();
    target.reap(Time::from_ms(1), &mut done);
    let statuses: Vec<Status> = done.iter().map(|completion| completion.status).collect();
    assert_eq!(statuses, [Status::Ok, Status::Error, Status::Ok, Status::Error]);
    assert_eq!(target.ring.driver.counters().errors, 2);
}

#[test]
fn a_lost_interrupt_costs_the_timeout_and_nothing_else() {
    let config = card(&[]);
    let options = RingDriverOptions { timeout: Time::from_ms(5), ..RingDriverOptions::default() };
    let mut target = RingTarget::new(driver(&config, options));
    let plan = target.card().fault_plan_mut();
    plan.add(FaultSite::Interrupt, Fault::Drop, FaultTrigger::Number(0));
    target.submit(Time::ZERO, Request::read(0, 4096), Token(0)).unwrap();
    let mut done = Vec::new();
    target.reap(Time::from_ms(10), &mut done);
    assert_eq!((done[0].status, done[0].completed), (Status::Ok, Time::from_ms(5)));
    let counters = target.ring.driver.counters();
    assert_eq!((counters.lost_interrupts, counters.resets), (1, 0));
}

#[test]
fn a_card_that_stands_still_is_reset_and_goes_on() {
    let config = card(&[]);
    let mut target = RingTarget::new(driver(&config, RingDriverOptions::default()));
    hits_command(target.card().fault_plan_mut(), 3, HANG);
    for token in 0..8 {
        target.submit(Time::ZERO, Request::read(0, 4096), Token(token)).unwrap();
    }
    let mut done = Vec::new();
    target.reap(Time::from_s(2), &mut done);
    let statuses: Vec<Status> = done.iter().map(|completion| completion.status).collect();
    // The first went alone, seven in the second block, which stuck.
    assert_eq!(statuses[0], Status::Ok);
    assert!(statuses[1..].iter().all(|status| *status == Status::Abandoned), "{statuses:?}");
    assert_eq!(target.ring.driver.counters().resets, 1);
    done.clear();
    target.submit(Time::from_s(3), Request::read(0, 4096), Token(9)).unwrap();
    target.reap(Time::from_s(4), &mut done);
    assert_eq!(done[0].status, Status::Ok);
}

/// The slot says that the card was removed: everything completes then, and nothing is waited for.
#[test]
fn a_card_that_was_pulled_answers_at_once_where_the_slot_tells() {
    let mut target = RingTarget::new(driver(&card(&[]), RingDriverOptions::default()));
    // More than the ring has descriptors for.
    let pages = target.ring.driver.ring_size() / 64 + 2;
    for token in 0..pages {
        let request = Request::read(u64::from(token) * 262_144, 64 * 4096);
        target.submit(Time::ZERO, request, Token(token)).unwrap();
    }
    let (mut done, at) = (Vec::new(), Time::from_us(3));
    target.reap(at, &mut done);
    assert_eq!(done, []);
    let pci = target.ring.driver.function_mut();
    pci.inject(at, Fault::Remove);
    pci.advance(at);
    target.ring.driver.removed(at);
    assert_eq!(target.ring.deadline(), Some(at));
    target.reap(at, &mut done);
    assert_eq!(done.len(), pages as usize);
    assert!(done.iter().all(|done| done.status != Status::Ok && done.completed == at));
    assert_eq!((target.ring.driver.counters().resets, target.ring.driver.in_flight()), (0, 0));
    // A repetition has no effect; later callers receive the same error.
    target.ring.driver.removed(at);
    target.submit(Time::from_us(5), Request::read(0, 4096), Token(0)).unwrap();
    done.clear();
    target.reap(Time::from_us(5), &mut done);
    assert_eq!((done.len(), done[0].status), (1, Status::Error));
}

/// A block is looked for, and the card reset, although 64 bits of picoseconds end meanwhile.
#[test]
fn a_card_that_stands_still_is_reset_across_the_end_of_64_bits() {
    for before_ms in [0, 1, 4, 5, 6, 9, 11, 29_000] {
        let options =
            RingDriverOptions { timeout: Time::from_ms(5), ..RingDriverOptions::default() };
        let before = u128::from(Time::from_ms(before_ms).as_ps());
        let origin = MonotonicTime::from_ps((1 << 64) - before);
        let mut target = RingTarget::with_driver_clock(driver(&card(&[]), options), origin);
        hits_command(target.card().fault_plan_mut(), 0, HANG);
        target.submit(Time::ZERO, Request::read(0, 4096), Token(0)).unwrap();
        assert_eq!(target.ring.deadline(), Some(Time::from_ms(5)));
        let mut done = Vec::new();
        target.reap(Time::from_ms(20), &mut done);
        assert_eq!(
            (done.len(), target.ring.driver.counters().resets),
            (1, 1),
            "{before_ms} ms before"
        );
        assert_eq!((done[0].status, done[0].accepted), (Status::Abandoned, Time::ZERO));
    }
}

/// Where no slot tells, registers that read as ones do, with the timeout: that is no reset.
#[test]
fn registers_that_read_as_ones_are_no_reset() {
    let options = RingDriverOptions { timeout: Time::from_ms(5), ..RingDriverOptions::default() };
    let mut target = RingTarget::new(driver(&card(&[]), options));
    target.ring.driver.function_mut().inject(Time::ZERO, Fault::Remove);
    target.submit(Time::ZERO, Request::read(0, 4096), Token(0)).unwrap();
    let mut done = Vec::new();
    target.reap(Time::from_s(1), &mut done);
    assert_eq!((done.len(), done[0].completed), (1, Time::from_ms(5)));
    assert_ne!(done[0].status, Status::Ok);
    assert!(target.ring.driver.is_gone());
    assert_eq!(target.ring.driver.counters().resets, 0);
}
