//! Rented volumes: closed forms of their limits, the contract of targets, errors by their key.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use ssdyno_block::conformance::check_target;
use ssdyno_block::{BlockTarget, Completion, Request, Status, Time, Token};
use ssdyno_device::array::ArrayConfig;
use ssdyno_device::delay::{self, DelayConfig};
use ssdyno_device::volume::{self, Volume, VolumeConfig};
use ssdyno_device::{Device, DeviceFileError, DeviceKind, DeviceKinds, DeviceReport};

const KINDS: DeviceKinds = DeviceKinds::new(&[
    DeviceKind::of::<DelayConfig>(delay::presets::DELAYS),
    DeviceKind::of::<ArrayConfig>(&[]),
    DeviceKind::of::<VolumeConfig>(volume::presets::VOLUMES),
]);

/// A device that takes no time.
const INSTANT: &str = r#"device = { delay = { capacity = "1GiB", read = "0us", write = "0us" } }"#;
/// 100 us, four at a time.
const DELAY: &str =
    r#"device = { delay = { capacity = "1GiB", read = "100us", write = "100us", servers = 4 } }"#;

fn config(keys: &str) -> VolumeConfig {
    let spec = KINDS.parse(&format!("[volume]\n{keys}")).unwrap();
    spec.get::<VolumeConfig>().unwrap().clone()
}

fn volume(keys: &str) -> Volume {
    Volume::new(&config(keys), 1).unwrap()
}

/// A closed loop of `depth` requests; gives what became of each, in order of completion.
fn closed_loop(
    target: &mut dyn BlockTarget,
    depth: u32,
    number: u32,
    request: impl Fn(u32) -> Request,
) -> Vec<Completion> {
    let mut done = Vec::new();
    let mut issued = depth.min(number);
    for token in 0..issued {
        target.submit(Time::ZERO, request(token), Token(token)).unwrap();
    }
    let mut batch = Vec::new();
    while (done.len() as u32) < number {
        let now = target.next_event().unwrap();
        target.reap(now, &mut batch);
        for completion in batch.drain(..) {
            done.push(completion);
            if issued < number {
                target.submit(now, request(issued), Token(issued)).unwrap();
                issued += 1;
            }
        }
    }
    done
}

/// Scattered reads.
fn read(length: u32) -> impl Fn(u32) -> Request {
    move |n| Request::read(u64::from(n) * 7919 % 256 * (4 << 20), length)
}

/// After a burst of bucket / (burst - baseline) seconds at the burst rate, exactly the baseline.
#[test]
fn a_burst_lasts_as_long_as_its_credits() {
    let keys = format!("{INSTANT}\niops = {{ baseline = 100, burst = 500, bucket = 1000 }}");
    let mut target = volume(&keys);
    // 1000 / (500 - 100) = 2.5 s at 500 a second, and then 100 a second.
    let done = closed_loop(&mut target, 8, 2250, read(4096));
    let at = |n: usize| done[n].completed;
    for n in [0, 1, 77, 1250] {
        assert_eq!(at(n), Time::from_ms(2 * n as u64), "request {n}");
    }
    for n in [1251, 1252, 2000, 2249] {
        let expected = Time::from_ms(2500 + 10 * (n as u64 - 1250));
        assert_eq!(at(n), expected, "request {n}");
    }
}

/// The share that is full at the beginning decides how long the first burst lasts; what nobody uses fills the bucket.
#[test]
fn an_idle_volume_earns_credits() {
    for (initial, refill, idle_s, earned) in
        [(0.0, 100, 5, 500), (0.0, 50, 5, 250), (0.5, 100, 2, 700), (1.0, 100, 9, 1000)]
    {
        let mut target = volume(&format!(
            "{INSTANT}\ninitial = {initial}\n\
             iops = {{ baseline = 100, burst = 500, bucket = 1000, refill = {refill} }}"
        ));
        let start = Time::from_s(idle_s);
        for n in 0..1000 {
            target.submit(start, read(4096)(n), Token(n)).unwrap();
        }
        let mut done = Vec::new();
        while let Some(next) = target.next_event() {
            target.reap(next, &mut done);
        }
        // Each interval at 500 a second takes 0.8 of a credit: the baseline gives the rest.
        let intervals = earned * 10 / 8;
        let last = (intervals as usize).min(999);
        let expected = start + Time::from_ms(2 * last as u64);
        assert_eq!(done[last].completed, expected, "{initial}, {refill}");
        if last < 999 {
            let slow = done[999].completed - done[last + 1].completed;
            assert_eq!(slow, Time::from_ms(10 * (998 - last as u64)), "{initial}, {refill}");
        }
    }
}

/// The tighter of two limits rules, by size of the requests.
#[test]
fn both_limits_hold_together() {
    let keys = format!(
        "{INSTANT}\niops = {{ baseline = 1000 }}\nbandwidth = {{ baseline = \"16MiB/s\" }}"
    );
    // 16 MiB/s are 1000 requests a second of 16 KiB and a bit.
    for (length, expected_us) in [(4096, 1000.0), (16384, 1000.0), (65536, 3906.25)] {
        let done = closed_loop(&mut volume(&keys), 4, 1001, read(length));
        let expected = Time::from_s_f64(expected_us * 1000.0 / 1e6);
        assert_eq!(done[1000].completed, expected, "{length} bytes");
    }
}

/// A limit with credits and one without: while the credits last, the other limits.
#[test]
fn a_burst_is_bounded_by_the_other_limit() {
    let keys = format!(
        "{INSTANT}\niops = {{ baseline = 100, burst = 1000, bucket = 900 }}\n\
         bandwidth = {{ baseline = \"8MiB/s\" }}"
    );
    // 16 KiB at 8 MiB/s: 512 a second, of which 412 are of the bucket: 900 / 412 s.
    let done = closed_loop(&mut volume(&keys), 4, 2000, read(16384));
    let burst = 900.0 / 412.0 * 512.0;
    let last = burst as usize;
    assert_eq!(done[last].completed, Time::from_s_f64(last as f64 / 512.0));
    let slow = done[1999].completed - done[last + 2].completed;
    assert_eq!(slow, Time::from_ms(10 * (1999 - last as u64 - 2)));
}

/// A large request counts as several, and small ones that follow one another as one.
#[test]
fn requests_are_counted_in_units() {
    let limit = format!("{INSTANT}\niops = {{ baseline = 100 }}\nunit = \"256KiB\"");
    let merging = format!("{limit}\nmerge = true");
    let along = |length: u32| move |n: u32| Request::write(u64::from(n * length), length);
    let last = |keys: &str, request: &dyn Fn(u32) -> Request| {
        closed_loop(&mut volume(keys), 2, 101, request)[100].completed
    };
    let ms = Time::from_ms;
    assert_eq!(last(&limit, &read(256 << 10)), ms(1000), "one unit each");
    assert_eq!(last(&limit, &read((256 << 10) + 512)), ms(2000), "two units each");
    assert_eq!(last(&limit, &along(64 << 10)), ms(1000), "nothing is merged");
    assert_eq!(last(&merging, &along(64 << 10)), ms(250), "four of them are one");
    assert_eq!(last(&merging, &read(64 << 10)), ms(1000), "these do not follow one another");
}

/// Below its limits a volume is its device, and the latency.
#[test]
fn below_the_limit_the_device_rules() {
    let limits = "iops = { baseline = 50000 }\nbandwidth = { baseline = \"1GiB/s\" }";
    for depth in [1, 3, 4, 16] {
        let spec = config(DELAY);
        let volume::VolumeTable { device, .. } = &spec.volume;
        let ssdyno_device::array::MemberSpec::Device(device) = device else { panic!("a device") };
        let own = closed_loop(device.build(1).unwrap().as_mut(), depth, 500, read(4096));
        let keys = format!("{DELAY}\n{limits}");
        let limited = closed_loop(&mut volume(&keys), depth, 500, read(4096));
        let late = |done: &[Completion]| done.iter().map(|one| one.completed).max().unwrap();
        // A limit of 50 000 spaces the first requests by 20 us; the device has room for 40 000 a second.
        assert!(late(&limited) <= late(&own) + Time::from_us(20) * u64::from(depth.min(4)));
        if depth == 1 {
            assert_eq!(limited, own);
        }
        let keys = format!("{DELAY}\n{limits}\nlatency = \"1ms\"");
        let slow = closed_loop(&mut volume(&keys), 1, 500, read(4096));
        assert_eq!(late(&slow), Time::from_us(500 * 1100));
        assert!(slow.iter().all(|one| one.completed - one.accepted == Time::from_us(1100)));
    }
    assert_eq!(
        closed_loop(&mut volume(DELAY), 16, 500, read(4096)).last().unwrap().completed,
        Time::from_us(500 / 4 * 100),
        "without limits it is the device"
    );
}

#[test]
fn volumes_keep_the_contract_of_targets() {
    let small = DELAY.replace("1GiB", "1MiB");
    let shallow = small.replace("servers = 4", "depth = 2");
    let array =
        r#"device = { array = { stripe = "4KiB", members = ["delay-10us", "delay-10us"] } }"#;
    let iops = "iops = { baseline = 3000, burst = 9000, bucket = 100 }";
    let both = format!("{iops}\nbandwidth = {{ baseline = \"10MB/s\" }}\nunit = \"4KiB\"");
    let slow = format!("{both}\nmerge = true\nlatency = \"70us\"\ndepth = 3");
    for device in [&small, &shallow, array] {
        for limits in ["", iops, &both, &slow] {
            check_target(|| volume(&format!("{device}\n{limits}")));
        }
    }
    // One behind another.
    let inner = format!("device = {{ volume = {{ {small}, {iops} }} }}\n{iops}");
    check_target(|| volume(&inner));
}

/// If the device fails a request, the volume fails it; nothing hangs after the device is removed.
#[test]
fn an_error_of_the_device_is_one_of_the_volume() {
    let fails = |fault: &str| {
        let faulty = DELAY.replace("} }", &format!("}}, faults = {{ {fault} }} }}"));
        volume(&format!("{faulty}\niops = {{ baseline = 1000 }}"))
    };
    let mut target = fails("error = 1.0");
    let done = closed_loop(&mut target, 8, 100, read(4096));
    assert!(done.iter().all(|one| one.status == Status::Error));
    let mut target = fails("remove_at = \"5050us\"");
    let done = closed_loop(&mut target, 8, 100, read(4096));
    let good = done.iter().filter(|one| one.status == Status::Ok).count();
    assert_eq!(good, 5, "a millisecond each, and 100 us");
    assert!(target.is_gone());
    // The one that was inside never completes; those that come later fail at once.
    assert_eq!(done[5].status, Status::Abandoned);
    assert!(done[6..].iter().all(|one| one.status == Status::Error));
}

#[test]
fn units_are_named_by_path() {
    let mut target = volume(DELAY);
    let report = DeviceReport::of(&target);
    let named: Vec<_> =
        report.units().iter().map(|unit| (unit.path.as_str(), unit.key.as_str())).collect();
    assert_eq!(named, [("volume", ""), ("volume.delay[0]", "volume.device.")]);
    closed_loop(&mut target, 1, 10, read(4096));
    assert!(!target.events().is_empty());
}

#[test]
fn impossible_volumes_are_refused_by_their_key() {
    for (keys, key) in [
        ("iops = { baseline = 0 }", "volume.iops.baseline"),
        ("iops = { baseline = 100, burst = 50 }", "volume.iops"),
        ("iops = { baseline = 100, bucket = 50 }", "volume.iops.bucket"),
        ("iops = { baseline = 100, refill = -1 }", "volume.iops.refill"),
        ("bandwidth = { baseline = \"1B/s\" }", "volume.bandwidth.baseline"),
        ("bandwidth = { baseline = \"1MB/s\", burst = \"1KB/s\" }", "volume.bandwidth"),
        ("unit = \"512B\"", "volume.unit"),
        ("merge = true", "volume.merge"),
        ("initial = 1.5", "volume.initial"),
        ("depth = 0", "volume.depth"),
        ("latency = \"2h\"", "volume.latency"),
    ] {
        let error = Volume::new(&config(&format!("{DELAY}\n{keys}")), 1).map(|_| ()).unwrap_err();
        assert_eq!(error.key, key, "{keys}: {error}");
    }
    for (device, key) in [
        (DELAY.replace("1GiB", "100B"), "volume.device.delay.capacity"),
        (DELAY.replace("} }", "}, faults = { drop = 0.1 } }"), "volume.device.faults.drop"),
    ] {
        let error = Volume::new(&config(&device), 1).map(|_| ()).unwrap_err();
        assert_eq!(error.key, key, "{device}: {error}");
    }
    let unknown = KINDS.parse("[volume]\ndevice = \"nvme-tcl\"").unwrap_err();
    let DeviceFileError::Member(error) = unknown else { panic!("{unknown}") };
    assert_eq!(error.key, "volume.device");
}

/// The presets match the documentation of the cloud.
#[test]
fn presets_are_what_their_source_says() {
    let built = |name: &str| {
        let spec = KINDS.parse(KINDS.find(name).unwrap().text).unwrap();
        assert_eq!(KINDS.parse(&spec.to_toml()).unwrap(), spec, "{name} survives being written");
        spec.build(1).unwrap()
    };
    let rate = |done: &[Completion], from: usize, to: usize| {
        (to - from) as f64 / (done[to].completed - done[from].completed).as_s_f64()
    };
    // 5.4 million credits at 3000 - 300 a second: 2000 s, which are 6 million requests.
    let mut gp2 = built("volume-gp2-100g");
    let done = closed_loop(gp2.as_mut(), 32, 6_003_000, read(4096));
    assert!((rate(&done, 100, 5_999_000) - 3000.0).abs() < 0.01);
    assert!((rate(&done, 6_001_000, 6_002_900) - 300.0).abs() < 0.01);
    let mut gp3 = built("volume-gp3");
    let done = closed_loop(gp3.as_mut(), 32, 20_000, read(4096));
    assert!((rate(&done, 100, 19_900) - 3000.0).abs() < 0.01);
    let mut gp3 = built("volume-gp3");
    let done = closed_loop(gp3.as_mut(), 32, 4_000, read(256 << 10));
    assert!((rate(&done, 100, 3_900) - 500.0).abs() < 0.01, "125 MiB/s");
}
