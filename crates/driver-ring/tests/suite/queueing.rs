//! Blocks and loads compared with the paper and with queueing theory.

use crate::common;

use common::{Loop, RingTarget, card, closed_loop, driver};
use ssdyno_block::{BlockTarget, Request, Time, Token};
use ssdyno_driver_ring::{
    BlockPolicy, CompletionPolicy, IdleDispatch, ResponseMode, RingDriverOptions, RingParameters,
    Technology,
};

fn run(options: RingDriverOptions, threads: u32, write: bool) -> Loop {
    let config = card(&[]);
    // What a host takes from completion to the thread's next request.
    let think = Time::from_us(3);
    closed_loop(&mut RingTarget::new(driver(&config, options)), threads, write, 8000, think)
}

fn fixed(size: u32) -> RingDriverOptions {
    RingDriverOptions { block: BlockPolicy::Static(size), ..RingDriverOptions::default() }
}

/// S0-49: threads are latency times throughput, so latency rises as a line, not "exponentially".
#[test]
fn littles_law_holds() {
    for threads in [1, 2, 5, 16, 33, 64, 100, 200] {
        let Loop { requests_per_second, latency_s_mean } =
            run(RingDriverOptions::default(), threads, false);
        let inside = requests_per_second * latency_s_mean;
        let error = inside / f64::from(threads) - 1.0;
        assert!(error.abs() < 0.01, "{threads} threads: {inside}");
    }
}

/// S0-36, S0-37, S0-50: with B threads nothing is pending when the block comes back; full throughput
/// needs 2 B.
#[test]
fn a_full_next_block_needs_twice_its_size_in_threads() {
    for size in [4, 16, 32] {
        let at = |threads| run(fixed(size), threads, false).requests_per_second;
        let (least, more, twice, much) =
            (at(size), at(size + size / 2), at(2 * size), at(4 * size));
        assert!(twice > 1.02 * least, "{size}: {least} {twice}");
        assert!(more < 0.98 * twice, "{size}: between B and 2 B threads still come too late");
        assert!((much / twice - 1.0).abs() < 0.01, "{size}: beyond 2 B nothing is won");
    }
}

/// S0-37: larger blocks raise throughput and latency.
#[test]
fn larger_blocks_raise_throughput_and_latency() {
    let loops: Vec<Loop> = [1, 4, 16, 32].iter().map(|b| run(fixed(*b), 64, true)).collect();
    assert!(loops.windows(2).all(|two| two[0].requests_per_second < two[1].requests_per_second));
    let light: Vec<Loop> = [1, 4, 16, 32].iter().map(|b| run(fixed(*b), *b, true)).collect();
    assert!(light.windows(2).all(|two| two[0].latency_s_mean < two[1].latency_s_mean));
}

/// S0-39: dynamic blocks reach the static maximum, and the least latency.
#[test]
fn dynamic_blocks_are_never_worse() {
    let heavy = run(RingDriverOptions::default(), 128, false).requests_per_second;
    let best = run(fixed(32), 128, false).requests_per_second;
    assert!((heavy / best - 1.0).abs() < 0.01, "{heavy} {best}");
    let light = run(RingDriverOptions::default(), 1, false).latency_s_mean;
    assert_eq!(light, run(fixed(1), 1, false).latency_s_mean);
}

/// S0-43: the least latency with blocks of one, answered at once; the most throughput with the
/// largest blocks, answered as a whole.
#[test]
fn extremes_are_where_the_paper_has_them() {
    let all = |threads: fn(u32) -> u32| -> Vec<(u32, ResponseMode, Loop)> {
        let modes = [ResponseMode::Block, ResponseMode::Each];
        let sizes = [1, 4, 32].into_iter().flat_map(|size| modes.map(|mode| (size, mode)));
        sizes
            .map(|(size, response)| {
                let completion = CompletionPolicy::PerReturn;
                let options = RingDriverOptions { response, completion, ..fixed(size) };
                (size, response, run(options, threads(size), false))
            })
            .collect()
    };
    let saturated = all(|_| 128);
    let most = saturated
        .iter()
        .max_by(|a, b| a.2.requests_per_second.total_cmp(&b.2.requests_per_second))
        .unwrap();
    assert_eq!((most.0, most.1), (32, ResponseMode::Block));
    // S0-48: below what the link can carry.
    assert!(most.2.requests_per_second < 411_184.0);
    let light = all(|size| size);
    let least =
        light.iter().min_by(|a, b| a.2.latency_s_mean.total_cmp(&b.2.latency_s_mean)).unwrap();
    assert_eq!(least.0, 1);
    // With blocks of one the modes are the same thing.
    assert_eq!(light[0].2.latency_s_mean, light[1].2.latency_s_mean);
}

/// The closed form of the saturated static driver: a block takes its commands at the inter-command
/// time, and what stands around them once.
#[test]
fn saturated_throughput_is_the_closed_form() {
    let rate = |size| run(fixed(size), 4 * size, false).requests_per_second;
    // Two block sizes give inter-command time and overhead; a third must agree.
    let time = |size: u32| f64::from(size) / rate(size);
    let each = (time(32) - time(16)) / 16.0;
    let around = time(16) - 16.0 * each;
    let expected = 24.0 / (around + 24.0 * each);
    assert!((rate(24) / expected - 1.0).abs() < 0.002, "{} {expected}", rate(24));
    // 1.2 us set-up and 4864 bytes at 2 GB/s; descriptors add 32 B and packets each way.
    assert!(each > 3.632e-6 && each < 3.632e-6 + 0.1e-6, "{each}");
}

/// S0-26: prefetch pays, and more on a faster link.
#[test]
fn prefetch_pays_more_on_a_faster_link() {
    let gain = |generation: &str| {
        let config = card(&[("generation = 2", generation), ("\"shared\"", "\"separate\"")]);
        let rate = |prefetch| {
            let options = RingDriverOptions { prefetch, ..RingDriverOptions::default() };
            let mut target = RingTarget::new(driver(&config, options));
            closed_loop(&mut target, 128, true, 8000, Time::ZERO).requests_per_second
        };
        rate(8) / rate(0)
    };
    let (second, third) = (gain("generation = 2"), gain("generation = 3"));
    assert!(second > 1.01, "{second}");
    assert!(third > second, "{second} {third}");
}

/// S0-36: too few threads for a static block: found out, not hung.
#[test]
fn a_static_driver_with_too_few_requests_says_that_it_is_stalled() {
    let config = card(&[]);
    let mut target = RingTarget::new(driver(&config, fixed(8)));
    target.drains = false;
    for token in 0..7 {
        assert!(!target.ring.driver.stalled() || token > 0);
        target.submit(Time::ZERO, Request::read(0, 4096), Token(token)).unwrap();
    }
    assert!(target.ring.driver.stalled());
    assert_eq!(target.next_event(), None);
    target.submit(Time::ZERO, Request::read(0, 4096), Token(7)).unwrap();
    assert!(!target.ring.driver.stalled());
    let mut done = Vec::new();
    target.reap(Time::from_ms(1), &mut done);
    assert_eq!(done.len(), 8);
    assert!(!target.ring.driver.stalled());
}

/// Beyond the paper: a block that does not become full goes after a while.
#[test]
fn a_partial_block_goes_after_a_while() {
    let config = card(&[]);
    let options = RingDriverOptions { partial_after: Some(Time::from_us(100)), ..fixed(8) };
    let mut target = RingTarget::new(driver(&config, options));
    target.drains = false;
    target.submit(Time::from_us(1), Request::read(0, 4096), Token(0)).unwrap();
    target.submit(Time::from_us(20), Request::read(0, 4096), Token(1)).unwrap();
    assert_eq!(target.next_event(), Some(Time::from_us(120)));
    let mut done = Vec::new();
    target.reap(Time::from_ms(1), &mut done);
    assert_eq!(done.len(), 2);
    assert_eq!((done[0].accepted, target.next_event()), (Time::from_us(120), None));
}

/// S0-4: a large request goes as many bios; sent together they take two blocks fewer.
#[test]
fn large_requests_go_in_pieces() {
    let time = |idle_dispatch| {
        let config = card(&[]);
        let options = RingDriverOptions { idle_dispatch, ..RingDriverOptions::default() };
        let mut target = RingTarget::new(driver(&config, options));
        target.submit(Time::ZERO, Request::read(0, 16 * 4096), Token(0)).unwrap();
        let mut done = Vec::new();
        target.reap(Time::from_ms(1), &mut done);
        (done[0].completed, target.ring.driver.counters().blocks)
    };
    let (first, blocks) = time(IdleDispatch::FirstDescriptor);
    let (whole, one) = time(IdleDispatch::WholeRequest);
    assert_eq!((blocks, one), (2, 1));
    assert!(whole < first);
}

/// S0-10: every parameter as the card's registers say it, each another number.
#[test]
fn the_card_says_what_it_is() {
    let pcm = "kind = \"pcm\"\nchannels = 3\nbanks_per_channel = 2\nread_time = \"7us\"\nwrite_time = \"81us\"";
    let config = card(&[
        ("kind = \"dram\"", pcm),
        ("bandwidth = \"6.4GB/s\"", ""),
        ("capacity = \"1GiB\"", "capacity = \"24TiB\""),
        ("max_block = 32", "max_block = 40"),
    ]);
    let driver = driver(&config, RingDriverOptions::default());
    let expected = RingParameters {
        capacity_pages: 24 << 28,
        technology: Technology::Pcm,
        channels: 3,
        read_time_ns: 7_000,
        write_time_ns: 81_000,
        max_block: 40,
        prefetch_most: 8,
    };
    assert_eq!(*driver.parameters(), expected);
    // S0-9: four blocks of 40, for writes take more than ten times as long; a power of two.
    assert_eq!(driver.ring_size(), 256);
}

/// S0-3: whatever is less than a page crosses the link as a page, and takes as long.
#[test]
fn a_short_request_is_a_whole_page_on_the_link() {
    let config = card(&[]);
    for op in [Request::read, Request::write] {
        let outcome = |request: Request| {
            let mut target = RingTarget::new(driver(&config, RingDriverOptions::default()));
            target.submit(Time::ZERO, request, Token(0)).unwrap();
            let mut done = Vec::new();
            target.reap(Time::from_ms(1), &mut done);
            let traffic = *target.card().traffic();
            (done[0].completed, traffic.data_to_host, traffic.data_from_host, traffic.commands)
        };
        let page = outcome(op(8192, 4096));
        for (offset, bytes) in [(8192, 512), (8192 + 3584, 512), (8192 + 1024, 2048)] {
            assert_eq!(outcome(op(offset, bytes)), page, "{bytes} bytes at {offset}");
        }
        // Over the border of two pages it is two of them.
        assert_eq!(outcome(op(8192 + 3584, 1024)).3, 2);
    }
}

/// S0-2, S0-6: the card may end its commands in any order and return each at once; requests are sent and
/// answered in the order in which they came.
#[test]
fn answers_come_in_the_order_of_the_requests() {
    let slow_writes = "kind = \"pcm\"\nchannels = 4\nbanks_per_channel = 2\nread_time = \"1us\"\nwrite_time = \"200us\"";
    let config = card(&[("kind = \"dram\"", slow_writes), ("bandwidth = \"6.4GB/s\"", "")]);
    let completion = CompletionPolicy::PerReturn;
    let options = RingDriverOptions { response: ResponseMode::Each, completion, ..fixed(12) };
    let mut target = RingTarget::new(driver(&config, options));
    target.drains = false;
    let mut done = Vec::new();
    for token in 0..12 {
        let op = if token % 4 == 2 { Request::write } else { Request::read };
        target.submit(Time::ZERO, op(u64::from(token) * 4096, 4096), Token(token)).unwrap();
    }
    target.reap(Time::from_us(150), &mut done);
    let answered = done.len();
    assert_eq!(answered, 2, "what is behind the first write waits for it");
    assert_eq!(target.card().traffic().commands, 12 - 3, "though the card is done with it");
    target.reap(Time::from_ms(1), &mut done);
    assert!(done.iter().map(|completion| completion.token.0).eq(0..12), "{done:?}");
}

/// The host's work under each completion policy, for the same load.
#[test]
fn completion_policies_trade_interrupts_for_polls_and_latency() {
    let config = card(&[]);
    let outcome = |completion, response| {
        let options = RingDriverOptions { completion, response, ..RingDriverOptions::default() };
        let mut target = RingTarget::new(driver(&config, options));
        let measured = closed_loop(&mut target, 16, false, 4000, Time::ZERO);
        let counters = *target.ring.driver.counters();
        let bios = counters.bios as f64;
        (counters.interrupts as f64 / bios, counters.polls as f64 / bios, measured)
    };
    let each = outcome(CompletionPolicy::PerReturn, ResponseMode::Each);
    let block = outcome(CompletionPolicy::PerBlock, ResponseMode::Each);
    let timeout = Time::from_us(50);
    let calibrated =
        outcome(CompletionPolicy::Calibrated { threshold: 4, timeout }, ResponseMode::Each);
    let napi = outcome(CompletionPolicy::Napi { budget: 64 }, ResponseMode::Each);
    let interval = Time::from_us(1);
    let hybrid = outcome(CompletionPolicy::HybridPolling { interval }, ResponseMode::Block);
    assert!(each.0 > 0.9, "{each:?}");
    assert!(block.0 < 0.25, "{block:?}");
    assert!(calibrated.0 > block.0 && calibrated.0 < 0.5, "{calibrated:?}");
    assert!(napi.0 <= each.0, "{napi:?}");
    assert_eq!(hybrid.0, 0.0);
    assert!(hybrid.1 > 0.5, "{hybrid:?}");
    assert!(each.2.latency_s_mean < block.2.latency_s_mean, "{each:?} {block:?}");
}

/// Urgent requests interrupt whatever is gathered.
#[test]
fn urgent_requests_do_not_wait_for_others() {
    use ssdyno_driver_ring::Submission;
    let config = card(&[]);
    let done_at = |urgent: bool| {
        let completion = CompletionPolicy::Calibrated { threshold: 100, timeout: Time::from_ms(1) };
        let response = ResponseMode::Each;
        let options = RingDriverOptions { completion, response, ..RingDriverOptions::default() };
        let mut target = RingTarget::new(driver(&config, options));
        for token in 0..17 {
            let request = Request::read(0, 4096);
            let urgent = urgent && token == 2;
            let token = Token(token);
            let submission = Submission { request, token, address: None, urgent };
            target.submit_with(Time::ZERO, submission).unwrap();
        }
        let mut done = Vec::new();
        target.reap(Time::from_ms(2), &mut done);
        done.iter().find(|completion| completion.token == Token(2)).unwrap().completed
    };
    assert!(done_at(true) < done_at(false) - Time::from_us(30));
}
