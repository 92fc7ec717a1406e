//! The time of requests by part, compared with closed forms and as sums.

use proptest::prelude::*;
use ssdyno_block::{BlockTarget, Op, Request, Time, Token};
use ssdyno_device::{Device, ExplainedRequest, LatencyPart};
use ssdyno_ssd::{Config, Ssd};

use super::ssd::small;

/// Keeps `depth` of `requests` outstanding; returns the latencies in order of completion, and their parts.
fn run(
    config: &Config,
    requests: &[Request],
    depth: usize,
    explain: bool,
) -> (Vec<(Request, Time)>, Vec<ExplainedRequest>) {
    let mut ssd = Ssd::new(config, 7).unwrap();
    assert!(!explain || ssd.explain());
    let (mut sent, mut done, mut explained) = (Vec::new(), Vec::new(), Vec::new());
    let (mut out, mut now, mut outstanding) = (Vec::new(), Time::ZERO, 0);
    loop {
        while outstanding < depth && sent.len() < requests.len() {
            let request = requests[sent.len()];
            ssd.submit(now, request, Token(sent.len() as u32)).unwrap();
            sent.push(now);
            outstanding += 1;
        }
        let Some(next) = ssd.next_event() else { break };
        now = next;
        ssd.reap(now, &mut out);
        for completion in out.drain(..) {
            let token = completion.token.0 as usize;
            done.push((requests[token], completion.completed - sent[token]));
            outstanding -= 1;
        }
        // As a runner does: what was read is forgotten.
        ssd.events().clear();
        ssd.explained(&mut explained);
    }
    (done, explained)
}

/// The parts that are not zero.
fn parts(explained: &ExplainedRequest) -> Vec<(LatencyPart, Time)> {
    let all = LatencyPart::ALL.into_iter().map(|part| (part, explained.parts.get(part)));
    all.filter(|(_, time)| *time > Time::ZERO).collect()
}

const PCIE: (&str, &str) = (
    "kind = \"ideal\"",
    "kind = \"pcie\"\ngeneration = 3\nlanes = 4\npacket_overhead = \"0B\"\nlatency = \"1us\"",
);

/// 4 KiB at 333 MB/s.
const TRANSFER: Time = Time::from_ps(12_300_301);

#[test]
fn a_read_alone_takes_what_its_steps_take() {
    use LatencyPart::{Channel, Flash, Link};
    let (_, read) = run(&small(&[]), &[Request::read(0, 4096)], 1, true);
    assert_eq!(parts(&read[0]), [(Channel, TRANSFER), (Flash, Time::from_us(50))]);
    let (_, write) = run(&small(&[]), &[Request::write(0, 4096)], 1, true);
    assert_eq!(parts(&write[0]), [(Channel, TRANSFER), (Flash, Time::from_us(500))]);
    // 4096 bytes over four lanes of 8 GT/s at 128b/130b, and 1 us.
    let (done, read) = run(&small(&[PCIE]), &[Request::read(0, 4096)], 1, true);
    let link = Time::from_us(1) + Time::from_ps(1_040_000);
    assert_eq!(parts(&read[0]), [(Link, link), (Channel, TRANSFER), (Flash, Time::from_us(50))]);
    assert_eq!(done[0].1, read[0].latency);
}

#[test]
fn a_read_behind_a_write_waits_for_its_program() {
    use LatencyPart::{Channel, Flash, Programs, Queue, Reads};
    let write = Request::write(0, 4096);
    let (_, both) = run(&small(&[]), &[write, Request::read(0, 4096)], 2, true);
    let waits = [
        (Channel, TRANSFER + TRANSFER),
        (Flash, Time::from_us(50)),
        (Programs, Time::from_us(500)),
    ];
    assert_eq!(parts(&both[1]), waits);
    let (_, reads) = run(&small(&[]), &[Request::read(0, 4096); 2], 2, true);
    let waits =
        [(Channel, TRANSFER + TRANSFER), (Flash, Time::from_us(50)), (Reads, Time::from_us(50))];
    assert_eq!(parts(&reads[1]), waits);
    // A device with room for one request: the second waits before it for all that the first takes.
    let alone = small(&[("[queue]\ndepth = 1024", "[queue]\ndepth = 1")]);
    let (_, reads) = run(&alone, &[Request::read(0, 4096); 2], 2, true);
    let waits =
        [(Queue, TRANSFER + Time::from_us(50)), (Channel, TRANSFER), (Flash, Time::from_us(50))];
    assert_eq!(parts(&reads[1]), waits);
}

#[test]
fn waiting_for_garbage_collection_is_told_where_there_is_some() {
    let buffer = [(
        "[queue]\ndepth = 1024",
        "[buffer]\npolicy = \"lru\"\nsize = \"64KiB\"\n[queue]\ndepth = 64",
    )];
    for changes in [&buffer[..], &[]] {
        let config = small(changes);
        let pages = Ssd::new(&config, 7).unwrap().capacity_bytes() / 4096;
        // A sequence that is far from overwriting anything twice, and one that does nothing else.
        let random: Vec<_> =
            (0..8 * pages).map(|i| Request::write(i * i * 7919 % pages * 4096, 4096)).collect();
        let total = |requests: &[Request], part| {
            let (_, explained) = run(&config, requests, 16, true);
            explained.iter().map(|one| one.parts.get(part)).sum::<Time>()
        };
        let reads: Vec<_> = (0..1000).map(|i| Request::read(i * 37 % pages * 4096, 4096)).collect();
        assert!(total(&random, LatencyPart::Cleaning) > Time::from_ms(1));
        assert!(total(&random, LatencyPart::Erases) > Time::from_ms(1));
        for part in [LatencyPart::Cleaning, LatencyPart::Erases, LatencyPart::Programs] {
            assert_eq!(total(&reads, part), Time::ZERO, "{part:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// For any device, each request is explained once, its parts sum to its latency, and no request is slower because
    /// of it.
    #[test]
    fn parts_sum_to_the_latency(seed in 0u64..1 << 40, depth in 1usize..40) {
        let pcie = PCIE.1;
        let slow = "kind = \"sector-bus\"\nsector_time = \"238400ps\"";
        let reads = "read_priority = true\nprogram_suspend = true\nerase_suspend = true\nsuspend_time = \"5us\"";
        let cached = "cache_read = true\ncache_program = true\nchannel_order = \"data-out-first\"";
        let buffers = [
            "[queue]\ndepth = 4\nwaiting = \"c-look\"",
            "[buffer]\npolicy = \"lru\"\nsize = \"64KiB\"\ncache_reads = true\n[queue]\ndepth = 64",
            "[buffer]\npolicy = \"bplru\"\nsize = \"64KiB\"\n[queue]\ndepth = 64",
            "[queue]\ndepth = 8",
        ];
        for ftl in ssdyno_ftl::names() {
            for (link, rules, queue) in [
                (pcie, "multi_plane = \"any\"", buffers[0]),
                (pcie, reads, buffers[1]),
                (slow, reads, buffers[2]),
                (pcie, cached, buffers[3]),
            ] {
                let config = small(&[
                    ("name = \"page\"", &format!("name = \"{ftl}\"")),
                    (PCIE.0, link),
                    ("multi_plane = \"any\"", rules),
                    ("[queue]\ndepth = 1024", queue),
                ]);
                let capacity = Ssd::new(&config, 7).unwrap().capacity_bytes() / 512;
                let requests: Vec<_> = (0..400u64).map(|i| {
                    let random = (seed + i).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17;
                    let sectors = 1 + random % 40;
                    let at = (random >> 8) % (capacity - sectors) * 512;
                    let (op, at, length) = match random % 16 {
                        0 => (Op::Flush, 0, 0),
                        1 => (Op::Trim, at, sectors * 512),
                        2..9 => (Op::Read, at, sectors * 512),
                        _ => (Op::Write, at, sectors * 512),
                    };
                    Request { op, offset_bytes: at, length_bytes: length as u32 }
                }).collect();
                let (done, explained) = run(&config, &requests, depth, true);
                prop_assert_eq!(done.len(), requests.len());
                let told = explained.iter().map(|one| (one.request, one.latency));
                prop_assert_eq!(told.collect::<Vec<_>>(), done.clone(), "{}", ftl);
                for one in &explained {
                    prop_assert_eq!(one.parts.total(), one.latency, "{:?}", one);
                    prop_assert_eq!(one.parts.get(LatencyPart::Host), Time::ZERO);
                }
                let (unasked, nothing) = run(&config, &requests, depth, false);
                prop_assert_eq!(unasked, done);
                prop_assert!(nothing.is_empty());
            }
        }
    }
}
