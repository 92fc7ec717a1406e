//! Against closed forms of queueing theory.

use proptest::prelude::*;
use ssdyno_block::conformance::check_target;
use ssdyno_block::{BlockTarget, Completion, Request, Time, Token};

use super::{DelayConfig, DelayDevice};

fn device(keys: &str, seed: u64) -> DelayDevice {
    let text = format!("[delay]\ncapacity = \"1GiB\"\n{keys}\n");
    DelayDevice::new(&DelayConfig::parse(&text).unwrap(), seed).unwrap()
}

/// A closed loop of `depth` requests of `bytes`; gives IOPS and the mean time of a request in s.
fn load(device: &mut DelayDevice, depth: u32, bytes: u32, total: u32) -> (f64, f64) {
    let mut began: Vec<Time> = vec![Time::ZERO; depth as usize];
    let (mut now, mut issued, mut batch, mut done) = (Time::ZERO, depth, Vec::new(), 0);
    let mut sum = 0.0;
    let request = Request::read(1 << 20, bytes);
    (0..depth).for_each(|n| device.submit(now, request, Token(n)).unwrap());
    while let Some(next) = device.next_event() {
        now = next;
        device.reap(now, &mut batch);
        for Completion { token, completed, .. } in batch.drain(..) {
            done += 1;
            sum += (completed - began[token.0 as usize]).as_s_f64();
            if issued < total {
                issued += 1;
                began[token.0 as usize] = now;
                device.submit(now, request, token).unwrap();
            }
        }
    }
    assert_eq!(done, total, "every request is answered once");
    (f64::from(total) / now.as_s_f64(), sum / f64::from(total))
}

#[test]
fn keeps_the_contract_of_targets() {
    let keys = [
        "read = \"100us\"\nwrite = \"100us\"",
        "read = \"10us\"\nwrite = \"30us\"\nservers = 4\nspread = \"exponential\"\ndepth = 5",
        "read = \"0us\"\nwrite = \"0us\"\nbandwidth = \"53MB/s\"\nstreams = true",
    ];
    for keys in keys {
        check_target(|| device(keys, 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Fixed times: throughput is the least of depth / (delay + transfer), servers / delay and
    /// bandwidth / size.
    #[test]
    fn throughput_is_that_of_the_bottleneck(
        depth in 1u32..40, servers in 1u32..20, delay_us in 5u32..500, sectors in 1u32..64,
        megabytes in 10u32..500,
    ) {
        let keys = format!(
            "read = \"{delay_us}us\"\nwrite = \"1us\"\nservers = {servers}\nbandwidth = \"{megabytes}MB/s\""
        );
        let (bytes, delay) = (sectors * 512, f64::from(delay_us) / 1e6);
        let crossing = f64::from(bytes) / (f64::from(megabytes) * 1e6);
        let bounds = [
            f64::from(depth) / (delay + crossing),
            f64::from(servers) / delay,
            1.0 / crossing,
        ];
        let expected = bounds.into_iter().fold(f64::INFINITY, f64::min);
        let total = 4000;
        let (iops, mean) = load(&mut device(&keys, 1), depth, bytes, total);
        // The last requests do not fill the depth: a share of depth / total.
        let slack = 2.0 * f64::from(depth) / f64::from(total) + 0.002;
        prop_assert!((iops / expected - 1.0).abs() < slack, "{iops} IOPS, not {expected}");
        let little = iops * mean / f64::from(depth);
        prop_assert!((little - 1.0).abs() < slack, "Little's law: {little}");
    }
}

/// A closed network of one exponential server: always busy, X = 1 / S; the time of a request is
/// depth times S.
#[test]
fn exponential_service_has_its_mean() {
    for (seed, depth) in [(1, 1), (2, 4), (3, 16)] {
        let keys = "read = \"100us\"\nwrite = \"1us\"\nspread = \"exponential\"";
        let n = 60_000;
        let (iops, mean) = load(&mut device(keys, seed), depth, 512, n);
        // Five standard errors of a mean of exponentials.
        let slack = 5.0 / f64::from(n).sqrt();
        assert!((iops / 1e4 - 1.0).abs() < slack, "seed {seed}: {iops}");
        assert!(
            (mean / (f64::from(depth) * 1e-4) - 1.0).abs() < 2.0 * slack,
            "seed {seed}: {mean}"
        );
    }
}

#[test]
fn streams_cost_their_transfer_only() {
    let mut device =
        device("read = \"5ms\"\nwrite = \"5ms\"\nbandwidth = \"50MB/s\"\nstreams = true", 1);
    let mut out = Vec::new();
    let mut now = Time::ZERO;
    for n in 0..3 {
        device.submit(now, Request::read(n * 50_176, 50_176), Token(0)).unwrap();
        while let Some(next) = device.next_event() {
            now = next;
            device.reap(now, &mut out);
        }
    }
    let transfer = Time::from_ns(1_003_520);
    assert_eq!(now, Time::from_ms(5) + transfer * 3, "only the first waits for its delay");
    device.submit(now, Request::write(3 * 50_176, 512), Token(0)).unwrap();
    assert!(device.next_event().unwrap() >= now + Time::from_ms(5), "writes stream by themselves");
}

#[test]
fn impossible_values_are_named() {
    for (keys, key) in [
        ("read = \"1us\"\nwrite = \"1us\"\nservers = 0", "delay.servers"),
        ("read = \"2h\"\nwrite = \"1us\"", "delay.read"),
        ("read = \"1us\"\nwrite = \"1us\"\ndepth = 0", "delay.depth"),
        ("read = \"1us\"\nwrite = \"1us\"\nbandwidth = \"1B/s\"", "delay.bandwidth"),
    ] {
        let config = DelayConfig::parse(&format!("[delay]\ncapacity = \"1GiB\"\n{keys}")).unwrap();
        assert_eq!(DelayDevice::new(&config, 1).unwrap_err().key, key);
    }
    let odd = DelayConfig::parse("[delay]\ncapacity = \"1000B\"\nread = \"1us\"\nwrite = \"1us\"")
        .unwrap();
    assert_eq!(DelayDevice::new(&odd, 1).unwrap_err().key, "delay.capacity");
}

#[test]
fn presets_are_sound_and_complete() {
    for preset in super::presets::DELAYS {
        let config = DelayConfig::parse(preset.text).unwrap();
        assert!(!config.description.is_empty(), "{}", preset.name);
        assert_eq!(DelayConfig::parse(&config.to_toml()).unwrap(), config, "{}", preset.name);
        check_target(|| DelayDevice::new(&config, 1).unwrap());
    }
}
