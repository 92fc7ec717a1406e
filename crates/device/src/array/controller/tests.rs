use ssdyno_block::BlockTarget;
use ssdyno_block::conformance::check_target;
use ssdyno_block::units::Span;
use ssdyno_energy::PowerModel;
use ssdyno_engine::events::{Busy, EventReader};

use super::*;
use crate::array::{ArrayConfig, StripedArray};
use crate::delay::DelayConfig;
use crate::{Device, DeviceKind, DeviceKinds, DeviceReport, LinkConfig};

const KINDS: DeviceKinds =
    DeviceKinds::new(&[DeviceKind::of::<DelayConfig>(&[]), DeviceKind::of::<ArrayConfig>(&[])]);
const PCIE: &str = "link = { kind = \"pcie\", generation = 1, lanes = 8 }\n";
const US: Time = Time::from_us(1);

pub(super) fn parse(stripe: &str, members: &[String], controller: &str) -> ArrayConfig {
    let members = members.join(", ");
    let text = format!(
        "[array]\nstripe = \"{stripe}\"\nmembers = [{members}]\n[array.controller]\n{controller}"
    );
    KINDS.parse(&text).unwrap().get::<ArrayConfig>().unwrap().clone()
}

/// An array of `count` members with these keys, in stripes of 64 KiB.
fn array(count: usize, member: &str, controller: &str) -> StripedArray {
    let member = format!("{{ delay = {{ capacity = \"256MiB\", {member} }} }}");
    StripedArray::new(&parse("64KiB", &vec![member; count], controller), 1).unwrap()
}

/// What the data of a request take on the link of [`PCIE`].
fn wire(bytes: u64) -> Time {
    let (generation, lanes) = (1, 8);
    let (max_payload, packet_overhead, latency) = (Bytes(256), Bytes(24), Span::default());
    let link = LinkConfig::Pcie { generation, lanes, max_payload, packet_overhead, latency };
    HostLink::new(&link).unwrap().time_for(bytes)
}

/// One request after another: what each took, and how it ended.
fn one_by_one(
    array: &mut StripedArray,
    began: Time,
    requests: impl IntoIterator<Item = Request>,
) -> Vec<(Time, Status)> {
    let (mut now, mut out, mut all) = (began, Vec::new(), Vec::new());
    for request in requests {
        let submitted = now;
        array.submit(now, request, Token(0)).unwrap();
        while out.is_empty() {
            now = array.next_event().unwrap();
            array.reap(now, &mut out);
        }
        assert_eq!(out.len(), 1);
        all.extend(out.drain(..).map(|done| (done.completed - submitted, done.status)));
    }
    all
}

/// Lets everything that is under way end; gives when.
fn drain(array: &mut StripedArray) -> Time {
    let (mut now, mut out) = (Time::ZERO, Vec::new());
    while let Some(next) = array.next_event() {
        now = next;
        array.reap(now, &mut out);
    }
    assert!(out.is_empty());
    now
}

/// Reads of 4 KiB, none behind another.
fn random_reads(number: u64) -> impl Iterator<Item = Request> {
    (0..number).map(|n| Request::read((n * 7919 % 65536) * 4096, 4096))
}

fn sequential(op: Op, bytes: u32, number: u64) -> impl Iterator<Item = Request> {
    let at = move |n| n * u64::from(bytes);
    (0..number).map(move |n| Request { op, offset_bytes: at(n), length_bytes: bytes })
}

fn sum(all: &[(Time, Status)]) -> Time {
    assert!(all.iter().all(|(_, status)| *status == Status::Ok));
    all.iter().map(|(took, _)| *took).sum()
}

/// Within `share` of `expected`.
#[track_caller]
fn close(got: Time, expected: Time, share: f64) {
    let ratio = got.as_s_f64() / expected.as_s_f64();
    assert!((ratio - 1.0).abs() < share, "{got:?}, expected {expected:?}");
}

#[test]
fn arrays_with_a_controller_keep_the_contract_of_targets() {
    let delay = |us: u32, more: &str| {
        format!(
            "{{ delay = {{ capacity = \"1MiB\", depth = 3, read = \"{us}us\", write = \"{us}us\" }}{more} }}"
        )
    };
    let fails = ", faults = { error = 0.2 }";
    let removed = ", faults = { remove_at = \"5ms\" }";
    let write_back = "cache = \"32KiB\"\nwrite_back = true\n";
    let ahead = "read_ahead_size = \"8KiB\"\nstreams = 2\ncache = \"32KiB\"\n";
    for more in ["", fails, removed] {
        let members = [delay(70, more), delay(30, "")];
        for controller in [
            String::new(),
            format!("depth = 5\nlatency = \"20us\"\nmember_depth = 2\n{PCIE}"),
            format!("{write_back}latency = \"20us\"\ncores = 2\n{PCIE}"),
            format!("{write_back}destage = \"age\"\ndestage_depth = 1\nflush = \"pass-on\"\n"),
            format!("{ahead}read_ahead = \"always\"\nwrite_back = true\nflush = \"pass-on\"\n"),
            format!("{ahead}read_ahead = \"adaptive\"\nlatency = \"10us\"\n{PCIE}"),
        ] {
            let config = parse("4KiB", &members, &controller);
            check_target(|| StripedArray::new(&config, 1).unwrap());
        }
    }
}

/// Random reads at depth 1: latency, member and link, to the picosecond; adaptive read-ahead changes nothing.
#[test]
fn random_reads_take_latency_member_and_link() {
    for ahead in ["", "cache = \"64MiB\"\nread_ahead = \"adaptive\"\n"] {
        let controller = format!("latency = \"50us\"\n{PCIE}{ahead}");
        let mut array = array(2, "read = \"100us\", write = \"30us\"", &controller);
        for (took, _) in one_by_one(&mut array, Time::ZERO, random_reads(300)) {
            assert_eq!(took, US * 150 + wire(4096));
        }
    }
}

/// `cores / latency` commands a second; with a deep queue the last ends one member's time later.
#[test]
fn cores_limit_commands() {
    for cores in [1u64, 2, 4] {
        let controller = format!("depth = 1000\nlatency = \"50us\"\ncores = {cores}");
        let mut array = array(2, "read = \"100us\", write = \"1us\", servers = 64", &controller);
        for (token, request) in random_reads(1000).enumerate() {
            array.submit(Time::ZERO, request, Token(token as u32)).unwrap();
        }
        let full = array.submit(Time::ZERO, Request::flush(), Token(1000));
        assert_eq!(full, Err(SubmitError::Full));
        let mut out = Vec::new();
        while let Some(next) = array.next_event() {
            array.reap(next, &mut out);
        }
        assert_eq!(out.len(), 1000);
        assert_eq!(out.last().unwrap().completed, US * 50 * 1000 / cores + US * 100);
    }
}

/// A member that works on as many as it is given shows how many these are.
#[test]
fn members_get_so_many_commands_at_a_time() {
    for depth in [1u64, 4, 20] {
        let controller = format!("member_depth = {depth}");
        let mut array = array(1, "read = \"100us\", write = \"1us\", servers = 64", &controller);
        for token in 0..40 {
            array.submit(Time::ZERO, Request::read(0, 4096), Token(token)).unwrap();
        }
        let mut out = Vec::new();
        while let Some(next) = array.next_event() {
            array.reap(next, &mut out);
        }
        assert_eq!(out.last().unwrap().completed, US * 100 * 40 / depth);
    }
}

/// Sequential writes at depth 1: latency and link until the cache is full; from then on two members of 50 MB/s.
/// What the cache takes is written in the end, too.
#[test]
fn writes_take_latency_and_link_until_the_cache_is_full() {
    for (bytes, number) in [(4096, 8192), (64 << 10, 512), (100 << 10, 327)] {
        for order in ["age", "address"] {
            let controller = format!(
                "latency = \"20us\"\n{PCIE}cache = \"4MiB\"\nwrite_back = true\ndestage = \"{order}\""
            );
            let member = "read = \"1us\", write = \"0us\", bandwidth = \"50MB/s\"";
            let mut array = array(2, member, &controller);
            let all = one_by_one(&mut array, Time::ZERO, sequential(Op::Write, bytes, number));
            let own = US * 20 + wire(bytes.into());
            for (took, _) in &all[..(4 << 20) / bytes as usize] {
                assert_eq!(*took, own);
            }
            let total = u64::from(bytes) * number;
            let streaming = |bytes: u64| Time::from_s_f64(bytes as f64 / 100e6);
            let expected = streaming(total - (4 << 20)).max(own * number);
            close(sum(&all), expected, 0.02);
            close(drain(&mut array), streaming(total).max(own * number), 0.02);
        }
    }
}

/// While the cache is full of random data at depth 1, each write waits for a destage: the member is the limit, with as
/// many writes at a time as the controller gives it.
#[test]
fn a_full_cache_is_as_fast_as_its_member() {
    for depth in [1, 2, 4] {
        let controller = format!("cache = \"1MiB\"\nwrite_back = true\ndestage_depth = {depth}");
        let member = "read = \"1us\", write = \"100us\", servers = 4";
        let mut array = array(1, member, &controller);
        let writes = (0..4096u64).map(|n| Request::write((n * 7919 % 4096) * 65536, 4096));
        let all = one_by_one(&mut array, Time::ZERO, writes);
        // 256 are in the cache in the end.
        close(sum(&all), US * 100 * (4096 - 256) / depth, 0.02);
        // Where several destages end together, several writes find room.
        assert!(DeviceReport::of(&array).buffer_waits() > 900);
    }
}

/// Dirty data come from the cache: no time of a member. The rest of the read comes from there, once.
#[test]
fn reads_of_dirty_data_are_hits() {
    let controller = format!("{PCIE}cache = \"1MiB\"\nwrite_back = true\n");
    let mut array = array(1, "read = \"100us\", write = \"10ms\"", &controller);
    let requests =
        [Request::write(4096, 4096), Request::read(4096, 4096), Request::write(6144, 4096)];
    let times = one_by_one(&mut array, Time::ZERO, requests);
    assert!(times.iter().all(|(took, _)| *took == wire(4096)), "{times:?}");
    // The member is still writing: the read waits for it, and takes its time.
    let now = times.iter().map(|(took, _)| *took).sum();
    let hit = one_by_one(&mut array, now, [Request::read(5120, 4096)]);
    assert_eq!(hit[0].0, wire(4096));
    let mixed = one_by_one(&mut array, now + hit[0].0, [Request::read(0, 8192)]);
    assert!(mixed[0].0 > Time::from_ms(10));
}

/// Sequential reads of 4 KiB at depth 1. Without read-ahead each takes a member's time. With it, the limit is that of
/// the controller, 4 KiB / latency, or of the members: two with a stripe of 64 KiB each millisecond.
#[test]
fn sequential_reads_with_read_ahead_stream() {
    let total = |latency: &str, policy: &str, bytes: u32| {
        let controller = format!(
            "latency = \"{latency}\"\ncache = \"8MiB\"\nread_ahead = \"{policy}\"\nread_ahead_size = \"512KiB\""
        );
        let mut array = array(2, "read = \"1ms\", write = \"1us\"", &controller);
        let number = (16 << 20) / u64::from(bytes);
        sum(&one_by_one(&mut array, Time::ZERO, sequential(Op::Read, bytes, number)))
    };
    assert_eq!(total("10us", "none", 4096), US * 1010 * 4096);
    let members = Time::from_ms(1) * ((16 << 20) / (2 * (64 << 10)));
    for policy in ["adaptive", "always"] {
        close(total("10us", policy, 4096), members, 0.03);
        close(total("10us", policy, 256 << 10), members, 0.03);
        close(total("50us", policy, 4096), US * 50 * 4096, 0.03);
    }
}

/// Several streams at once stay streams, as far as there is room for them.
#[test]
fn streams_are_kept_apart() {
    let total = |streams: u32| {
        let controller = format!(
            "cache = \"8MiB\"\nread_ahead = \"adaptive\"\nread_ahead_size = \"512KiB\"\nstreams = {streams}"
        );
        let mut array = array(2, "read = \"1ms\", write = \"1us\"", &controller);
        let reads = (0..2048u64).map(|n| Request::read((n % 4) * (64 << 20) + n / 4 * 4096, 4096));
        sum(&one_by_one(&mut array, Time::ZERO, reads))
    };
    assert_eq!(total(3), Time::from_ms(2048), "each takes the place of the next");
    // 8 MiB, which the members have in 64 ms; each stream begins with two reads.
    assert!(total(4) < Time::from_ms(64 + 8 + 20), "{:?}", total(4));
}

/// A flush of a battery-backed cache takes the latency. One that is passed on waits for the dirty data.
#[test]
fn flushes_complete_or_are_passed_on() {
    for (policy, expected) in [("", US * 5), ("flush = \"pass-on\"", US * 100 * 4 - US * 5 * 3)] {
        let controller = format!(
            "latency = \"5us\"\ncache = \"8MiB\"\nwrite_back = true\ndestage_depth = 1\n{policy}"
        );
        let mut array = array(1, "read = \"1us\", write = \"100us\"", &controller);
        let requests =
            (0..4).map(|n| Request::write(n * (1 << 20), 4096)).chain([Request::flush()]);
        let all = one_by_one(&mut array, Time::ZERO, requests);
        assert_eq!(all[4].0, expected, "{policy}");
    }
}

/// Data of a failed destage are lost: the next write or flush says so, once. A member that was removed fails all.
#[test]
fn a_failed_destage_is_reported() {
    for (fault, again) in [("error = 1.0", Status::Ok), ("remove_at = \"1us\"", Status::Error)] {
        let delay = "delay = { capacity = \"1MiB\", read = \"10us\", write = \"10us\" }";
        let member = format!("{{ {delay}, faults = {{ {fault} }} }}");
        let config = parse("4KiB", &[member], "cache = \"1MiB\"\nwrite_back = true");
        for next in [Request::write(8192, 4096), Request::flush()] {
            let mut array = StripedArray::new(&config, 1).unwrap();
            let began = Time::from_us(2);
            assert_eq!(one_by_one(&mut array, began, [Request::write(0, 4096)])[0].1, Status::Ok);
            let now = drain(&mut array);
            let got: Vec<_> =
                one_by_one(&mut array, now, [next; 2]).iter().map(|(_, status)| *status).collect();
            assert_eq!(got, [Status::Error, again], "{fault}");
            let read = one_by_one(&mut array, now, [Request::read(0, 4096)]);
            assert_eq!(read[0].1, Status::Error, "{fault}");
        }
    }
}

/// Its parts are told, and the controller is at work from the first command to the end of the last destage.
#[test]
fn power_is_that_of_the_table() {
    let controller =
        "cache = \"1MiB\"\nwrite_back = true\nidle_power = \"9W\"\nactive_power = \"14W\"";
    let mut array = array(1, "read = \"1us\", write = \"100us\"", controller);
    one_by_one(&mut array, Time::from_us(50), [Request::write(0, 4096)]);
    drain(&mut array);
    let report = DeviceReport::of(&array);
    let PowerModel::Parts(parts) = &report.whole().unwrap().power else { panic!() };
    assert_eq!((parts[0].idle.0, parts[0].activities[0].1.0), (9.0, 14.0));
    let mut at_work = AtWork(Time::ZERO);
    array.events().show_to(&mut at_work);
    assert_eq!(at_work.0, US * 100);
}

struct AtWork(Time);

impl EventReader for AtWork {
    fn read(&mut self, events: &[Busy]) {
        let own = events.iter().filter(|event| event.part.unit == 0 && event.part.index == 0);
        self.0 += own.map(|event| event.to - event.from).sum();
    }
}

#[test]
fn impossible_controllers_are_refused_by_their_key() {
    for (text, key) in [
        ("depth = 0", "depth"),
        ("member_depth = 0", "member_depth"),
        ("cores = 100000", "cores"),
        ("latency = \"2s\"", "latency"),
        ("write_back = true", "cache"),
        ("read_ahead = \"adaptive\"", "cache"),
        ("cache = \"2TiB\"", "cache"),
        ("cache = \"1MiB\"\nread_ahead = \"adaptive\"\nread_ahead_size = \"1MiB\"", "cache"),
        (
            "cache = \"8MiB\"\nread_ahead = \"always\"\nread_ahead_size = \"100B\"",
            "read_ahead_size",
        ),
        ("link = { kind = \"pcie\", generation = 9, lanes = 8 }", "link.generation"),
        ("link = { kind = \"sector-bus\", sector_time = \"1us\" }", "link.kind"),
        ("idle_power = \"2000000W\"", "idle_power"),
        ("destage_depth = 0", "destage_depth"),
        ("streams = 0", "streams"),
    ] {
        let member = "{ delay = { capacity = \"1MiB\", read = \"1us\", write = \"1us\" } }";
        let config = parse("64KiB", &[member.into()], text);
        let error = StripedArray::new(&config, 1).map(|_| ()).unwrap_err();
        assert_eq!(error.key, format!("array.controller.{key}"), "{error}");
    }
}
