//! The simulated SSD against the target suite, against closed forms, and on odd configurations.

use proptest::prelude::*;
use ssdyno_block::conformance::check_target;
use ssdyno_block::{BlockTarget, Op, Request, Time, Token};
use ssdyno_device::Device;
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::{Busy, EventReader};
use ssdyno_ssd::{Config, Ssd, presets};

/// Configuration A with some keys replaced and a few blocks only.
pub(super) fn small(changes: &[(&str, &str)]) -> Config {
    let mut text = presets::find("config-a").unwrap().text.to_owned();
    let shrink = [
        ("channels = 8", "channels = 2"),
        ("chips_per_channel = 4", "chips_per_channel = 2"),
        ("dies_per_chip = 2", "dies_per_chip = 1"),
        ("blocks_per_plane = 512", "blocks_per_plane = 24"),
        ("pages_per_block = 64", "pages_per_block = 8"),
        ("over_provisioning = 0.1454753722794959", "over_provisioning = 0.5"),
    ];
    for (from, to) in shrink.iter().chain(changes) {
        assert!(text.contains(from), "{from} is not in the preset");
        text = text.replace(from, to);
    }
    Config::parse(&text).unwrap()
}

fn build(config: &Config) -> Ssd {
    Ssd::new(config, 7).unwrap()
}

#[test]
fn passes_the_target_suite() {
    let fast = "kind = \"ideal\"";
    let pcie = "kind = \"pcie\"\ngeneration = 3\nlanes = 4\nlatency = \"1us\"";
    let slow = "kind = \"sector-bus\"\nsector_time = \"238400ps\"";
    let reads = "read_priority = true\nprogram_suspend = true\nerase_suspend = true\nsuspend_time = \"5us\"";
    let buffers = [
        "[queue]\ndepth = 4\nwaiting = \"c-look\"",
        "[buffer]\npolicy = \"lru\"\nsize = \"64KiB\"\ncache_reads = true\n[queue]\ndepth = 64",
        "[buffer]\npolicy = \"bplru\"\nsize = \"64KiB\"\n[queue]\ndepth = 64",
        "[buffer]\npolicy = \"clock\"\nsize = \"128KiB\"\nprotected = true\n[queue]\ndepth = 64",
    ];
    for ftl in ssdyno_ftl::names() {
        for (link, rules, queue) in [
            (fast, "multi_plane = \"any\"", buffers[0]),
            (pcie, reads, buffers[1]),
            (slow, reads, buffers[2]),
            (pcie, "multi_plane = \"off\"", buffers[3]),
        ] {
            let config = small(&[
                ("name = \"page\"", &format!("name = \"{ftl}\"")),
                (fast, link),
                ("multi_plane = \"any\"", rules),
                ("[queue]\ndepth = 1024", queue),
            ]);
            check_target(|| build(&config));
        }
    }
}

#[test]
fn preparation_is_watched_and_interrupted_and_no_different_for_it() {
    for ftl in ssdyno_ftl::names() {
        let name = format!("name = \"{ftl}\"");
        // Large enough that the watcher is called several times.
        let config = small(&[
            ("name = \"page\"", name.as_str()),
            ("blocks_per_plane = 24", "blocks_per_plane = 1000"),
        ]);
        let mut shares = Vec::new();
        let mut watched = Ssd::fresh(&config, 7).unwrap();
        let prepared = watched.precondition(&mut |share| {
            shares.push(share);
            true
        });
        assert_eq!(prepared, Ok(()), "{ftl}");
        assert!(shares.len() > 1 && shares.is_sorted(), "{ftl}: {shares:?}");
        let (first, last) = (shares[0], shares[shares.len() - 1]);
        assert!(first > 0.0 && first < last && last > 0.6 && last <= 1.0, "{ftl}: {shares:?}");
        let requests: Vec<_> = (0..50).map(|i| Request::write(i * 28672, 4096)).collect();
        let times = complete(&mut watched, &requests);
        assert_eq!(times, complete(&mut build(&config), &requests), "{ftl}");
        // The third begins with a copy of the state.
        assert_eq!(times, complete(&mut build(&config), &requests), "{ftl}: copied");
        let mut calls = 0;
        let interrupted = Ssd::fresh(&config, 8).unwrap().precondition(&mut |_| {
            calls += 1;
            false
        });
        assert_eq!(interrupted, Err(PrepareError::Interrupted), "{ftl}");
        assert_eq!(calls, 1, "{ftl}");
    }
}

/// Runs `requests` at once and gives the completion times in order of submission.
fn complete(ssd: &mut Ssd, requests: &[Request]) -> Vec<Time> {
    for (token, request) in (0..).zip(requests) {
        ssd.submit(Time::ZERO, *request, Token(token)).unwrap();
    }
    let mut times = vec![Time::ZERO; requests.len()];
    let mut out = Vec::new();
    while let Some(at) = ssd.next_event() {
        ssd.reap(at, &mut out);
        for completion in out.drain(..) {
            times[completion.token.0 as usize] = completion.completed;
        }
    }
    times
}

#[test]
fn a_single_request_takes_the_sum_of_its_steps() {
    // tR 50 us, 4 KiB at 333 MB/s 12.301 us, tPROG 500 us.
    let transfer = Time::from_ps(12_300_301);
    let read = complete(&mut build(&small(&[])), &[Request::read(0, 4096)]);
    assert_eq!(read, [Time::from_us(50) + transfer]);
    let write = complete(&mut build(&small(&[])), &[Request::write(0, 4096)]);
    assert_eq!(write, [Time::from_us(500) + transfer]);
    // A part of a page: the rest is read first.
    let part = complete(&mut build(&small(&[])), &[Request::write(512, 512)]);
    assert_eq!(part, [Time::from_us(550) + transfer * 2]);
}

#[test]
fn a_channel_serves_its_dies_one_after_another() {
    // Two dies on channel 0: the reads overlap, the transfers do not.
    let config = small(&[("static_order = \"CWDP\"", "static_order = \"WCDP\"")]);
    let times = complete(&mut build(&config), &[Request::read(0, 4096), Request::read(4096, 4096)]);
    let transfer = Time::from_ps(12_300_301);
    assert_eq!(times, [Time::from_us(50) + transfer, Time::from_us(50) + transfer * 2]);
}

#[test]
fn a_read_suspends_a_program_and_not_the_one_it_waits_for() {
    let rules = "read_priority = true\nprogram_suspend = true\nsuspend_time = \"10us\"\nmulti_plane = \"off\"";
    let config = small(&[("multi_plane = \"any\"", rules)]);
    let mut ssd = build(&config);
    // Pages 0 and 8 lie on the same die (four planes, two a die, plane last).
    ssd.submit(Time::ZERO, Request::write(0, 4096), Token(0)).unwrap();
    let mut out = Vec::new();
    ssd.reap(Time::from_us(100), &mut out);
    let other = Request::read(8 * 4096, 4096);
    ssd.submit(Time::from_us(100), other, Token(1)).unwrap();
    ssd.submit(Time::from_us(100), Request::read(0, 4096), Token(2)).unwrap();
    let mut done = Vec::new();
    while let Some(at) = ssd.next_event() {
        ssd.reap(at, &mut out);
        done.extend(out.drain(..).map(|c| (c.token.0, c.completed)));
    }
    let transfer = Time::from_ps(12_300_301);
    let first = Time::from_us(160) + transfer;
    // 500 us of program, and: suspend 10, read 50, transfer, resume 10.
    let written = transfer + Time::from_us(570) + transfer;
    assert_eq!(done[0], (1, first), "the other page does not wait");
    assert_eq!(done[1], (0, written), "the program goes on where it stopped");
    assert_eq!(done[2].0, 2);
}

/// For any order on the channels, and with cache registers: the same bytes twice, for every FTL.
#[test]
fn every_order_runs_twice_alike() {
    for ftl in ssdyno_ftl::names() {
        for (order, cached) in [
            ("commands-first", false),
            ("data-out-first", true),
            ("commands-then-data-out", true),
            ("fcfs", true),
        ] {
            let rules = format!(
                "multi_plane = \"any\"\ncommand_time = \"300ns\"\nread_priority = true\n\
                 program_suspend = true\nerase_suspend = true\nsuspend_time = \"5us\"\n\
                 channel_order = \"{order}\"\ncache_read = {cached}\ncache_program = {cached}"
            );
            let config = small(&[
                ("name = \"page\"", &format!("name = \"{ftl}\"")),
                ("multi_plane = \"any\"", &rules),
            ]);
            let run = || {
                let mut ssd = build(&config);
                let pages = ssd.capacity_bytes() / 4096;
                let some = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % pages * 4096;
                let request = |i: u64| match i % 3 {
                    0 => Request::read(some(i), 4096),
                    1 => Request::read(some(i), 512),
                    _ => Request::write(some(i), 4096),
                };
                let times = complete(&mut ssd, &(0..1500).map(request).collect::<Vec<_>>());
                let mut text = String::new();
                ssd.events().show_to(&mut Text(&mut text));
                (times, text)
            };
            let first = run();
            assert!(!first.1.is_empty() && first == run(), "{ftl}, {order}");
        }
    }
}

/// Events as text.
struct Text<'a>(&'a mut String);

impl EventReader for Text<'_> {
    fn read(&mut self, events: &[Busy]) {
        for event in events {
            self.0.push_str(&format!("{event:?}\n"));
        }
    }
}

#[test]
fn flush_waits_for_what_is_in_a_volatile_buffer() {
    let buffer = |protected| {
        let text = format!(
            "[buffer]\npolicy = \"lru\"\nsize = \"256KiB\"\nprotected = {protected}\n[queue]\ndepth = 64"
        );
        small(&[("[queue]\ndepth = 1024", &text)])
    };
    let requests = [Request::write(0, 4096), Request::flush()];
    let volatile = complete(&mut build(&buffer(false)), &requests);
    assert!(volatile[0] < Time::from_us(1) && volatile[1] > Time::from_us(500), "{volatile:?}");
    let protected = complete(&mut build(&buffer(true)), &requests);
    assert!(protected[1] < Time::from_us(1), "{protected:?}");
}

#[test]
fn every_preset_runs_twice_alike() {
    for preset in presets::SSDS {
        let mut config = Config::parse(preset.text).unwrap();
        // The whole of a large preset takes long without optimisation; fewer blocks, same rules.
        config.flash.blocks_per_plane = config.flash.blocks_per_plane.min(128);
        config.ftl.over_provisioning = config.ftl.over_provisioning.max(0.25);
        let run = || {
            let mut ssd = Ssd::new(&config, 3).unwrap();
            let pages = ssd.capacity_bytes() / 4096;
            let some = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % pages * 4096;
            let request = |i: u64| match i % 3 {
                0 => Request { op: Op::Trim, ..Request::read(some(i), 4096) },
                1 => Request::read(some(i), 4096),
                _ => Request::write(some(i), 4096),
            };
            complete(&mut ssd, &(0..3000).map(request).collect::<Vec<_>>())
        };
        assert!(run() == run(), "{} differs from run to run", preset.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn valid_configurations_answer_every_request(
        channels in 1u32..4,
        ways in 1u32..3,
        planes in 1u32..4,
        blocks in 5u32..20,
        pages in 1u32..17,
        spare in 0.1f64..2.0,
        ftl in prop::sample::select(ssdyno_ftl::names().collect::<Vec<_>>()),
        policy in prop::sample::select(vec!["none", "fifo", "lru", "clock", "bplru"]),
        priority: bool,
        suspend: bool,
        multi_plane in prop::sample::select(vec!["off", "same-page", "any"]),
        copy in prop::sample::select(vec!["copy-back", "controller"]),
        depth in 1u32..40,
        partial in prop::sample::select(vec!["read-modify-write", "whole-page"]),
        order in prop::sample::select(vec![
            "fcfs",
            "commands-first",
            "data-out-first",
            "commands-then-data-out",
        ]),
        cached: [bool; 2],
        seed: u64,
    ) {
        let suspend = priority && suspend;
        let [cache_read, cache_program] = cached;
        let config = small(&[
            ("channels = 2", &format!("channels = {channels}")),
            ("chips_per_channel = 2", &format!("chips_per_channel = {ways}")),
            ("planes_per_die = 2", &format!("planes_per_die = {planes}")),
            ("blocks_per_plane = 24", &format!("blocks_per_plane = {blocks}")),
            ("pages_per_block = 8", &format!("pages_per_block = {pages}")),
            ("over_provisioning = 0.5", &format!("over_provisioning = {spare}")),
            ("name = \"page\"", &format!("name = \"{ftl}\"")),
            ("multi_plane = \"any\"", &format!(
                "multi_plane = \"{multi_plane}\"\nread_priority = {priority}\nread_burst = 3\n\
                 program_suspend = {suspend}\nerase_suspend = {suspend}\ncommand_time = \"200ns\"\n\
                 channel_order = \"{order}\"\ncache_read = {cache_read}\n\
                 cache_program = {cache_program}"
            )),
            ("copy = \"copy-back\"", &format!("copy = \"{copy}\"")),
            ("[queue]\ndepth = 1024", &format!(
                "[buffer]\npolicy = \"{policy}\"\nsize = \"32KiB\"\n[queue]\ndepth = {depth}\n\
                 [controller]\npartial_page = \"{partial}\""
            )),
        ]);
        // An impossible configuration names the wrong number; all others must work to the end.
        match Ssd::new(&config, seed) {
            Ok(_) => check_target(|| Ssd::new(&config, seed).unwrap()),
            Err(error) => prop_assert!(!error.key.is_empty() && !error.help.is_empty(), "{error}"),
        }
    }
}

#[test]
fn all_requests_wait_for_a_device_that_wakes() {
    let mut config = small(&[]);
    let us = |us| ssdyno_block::units::Span(Time::from_us(us));
    config.power.states = vec![ssdyno_device::nvme::PowerState {
        power: ssdyno_block::units::Watts(0.01),
        idle_after: us(1000),
        entry_latency: us(100),
        exit_latency: us(5000),
    }];
    let awake = Time::from_us(7000);
    let mut ssd = build(&config);
    let mut done = Vec::new();
    for (token, after) in [(0, 0), (1, 0), (2, 40), (3, 4990)] {
        let now = Time::from_us(2000 + after);
        ssd.reap(now, &mut done);
        ssd.submit(now, Request::read(u64::from(token) * 65536, 4096), Token(token)).unwrap();
    }
    assert!(done.is_empty(), "before it is awake: {done:?}");
    ssd.reap(Time::from_s(1), &mut done);
    assert_eq!(done.len(), 4);
    assert!(done.iter().all(|completion| completion.completed > awake), "{done:?}");
}
