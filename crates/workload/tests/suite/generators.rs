//! What generators issue, against closed forms. Seeds are fixed; tolerances are five standard
//! errors unless said otherwise.
use crate::common;

use std::collections::{BTreeMap, VecDeque};

use common::{DEVICE, Issued, play};
use proptest::prelude::*;
use ssdyno_block::{Op, Time};
use ssdyno_workload::{TargetFacts, WorkloadConfig, WorkloadStep, presets};

fn issue_at(text: &str, seed: u64, service: Time) -> Vec<Issued> {
    let config = WorkloadConfig::from_toml(text).unwrap();
    let mut workload = config.build(&DEVICE, seed).unwrap();
    play(workload.as_mut(), &DEVICE, service, 10_000_000)
}

fn issue(text: &str, seed: u64) -> Vec<Issued> {
    issue_at(text, seed, Time::from_us(100))
}

/// The announced requests are issued in their order, and announced twice: once as the far half,
/// once as the near half.
#[test]
fn what_is_told_ahead_is_issued() {
    let text = "read_percent = 50\nwrite_percent = 30\ntrim_percent = 20";
    let config = WorkloadConfig::from_toml(text).unwrap();
    let mut workload = config.build(&DEVICE, 4).unwrap();
    let mut told = VecDeque::new();
    let mut known = 0;
    for _ in 0..1_000 {
        let WorkloadStep::Issue { request, .. } = workload.next(Time::ZERO) else {
            panic!("it issues")
        };
        if let Some(expected) = told.pop_front() {
            assert_eq!(request, expected);
            known += 1;
        }
        let upcoming = workload.upcoming();
        let (near, new) = upcoming.split_at(upcoming.len() / 2);
        if told.is_empty() {
            told.extend(near);
        }
        if !upcoming.is_empty() {
            assert!(told.iter().eq(near), "{told:?} {near:?}");
            told.extend(new);
        }
        workload.completed(ssdyno_workload::Finished::UNKNOWN, Time::ZERO);
    }
    assert!(known > 980, "{known} of 1000 were told of");
}

/// `count` of `n` is binomial with probability `p`.
fn near(count: usize, n: usize, p: f64) {
    let (count, n) = (count as f64, n as f64);
    let tolerance = 5.0 * (n * p * (1.0 - p)).sqrt();
    assert!((count - n * p).abs() <= tolerance, "{count} of {n}, expected {}", n * p);
}

fn count(all: &[Issued], wanted: impl Fn(&Issued) -> bool) -> usize {
    all.iter().filter(|issued| wanted(issued)).count()
}

#[test]
fn every_preset_runs_twice_the_same() {
    for name in presets::names() {
        let mut config = WorkloadConfig::from_toml(presets::text(name).unwrap()).unwrap();
        assert!(presets::summary(name).is_some_and(|summary| summary.len() > 10), "{name}");
        (config.requests, config.duration, config.ramp_up) = (Some(20_000), None, 0);
        let run = |config: &WorkloadConfig, seed| {
            let mut workload = config.build(&DEVICE, seed).unwrap();
            play(workload.as_mut(), &DEVICE, Time::from_us(80), 20_000)
        };
        let first = run(&config, 1);
        assert_eq!(first.len(), 20_000, "{name}");
        assert_eq!(first, run(&config, 1), "{name}");
        assert_eq!(first, run(&config.resolved(), 1), "{name}: defaults written out");
        let text = toml::to_string(&config.resolved()).unwrap();
        assert_eq!(first, run(&WorkloadConfig::from_toml(&text).unwrap(), 1), "{name}: {text}");
        let drawn = !name.starts_with("s3") && !name.starts_with("seq") && name != "throughput";
        if drawn {
            assert_ne!(first, run(&config, 2), "{name}");
        }
    }
    assert!(presets::text("nothing").is_none());
}

#[test]
fn presets_that_say_so_never_write() {
    let says = |name: &&str| presets::summary(name).unwrap().contains("never writes");
    let harmless: Vec<&str> = presets::names().filter(says).collect();
    assert_eq!(harmless, ["quick", "latency", "throughput", "spek"]);
    for name in harmless {
        let config = WorkloadConfig::from_toml(presets::text(name).unwrap()).unwrap();
        assert_eq!(config.op_weights(), [100.0, 0.0, 0.0], "{name}");
    }
}

#[test]
fn spek_mixes_the_sizes_of_its_paper() {
    let all = issue(presets::text("spek").unwrap(), 5);
    assert_eq!(all.len(), 201_000, "S4-30 and the ramp-up");
    for (kib, p) in [(8, 0.1), (16, 0.2), (32, 0.3), (64, 0.4)] {
        near(count(&all, |issued| issued.request.length_bytes == kib << 10), all.len(), p);
    }
}

#[test]
fn operations_follow_their_weights() {
    let all =
        issue("read_percent = 50\nwrite_percent = 30\ntrim_percent = 20\nrequests = 100000", 1);
    for (op, p) in [(Op::Read, 0.5), (Op::Write, 0.3), (Op::Trim, 0.2)] {
        near(count(&all, |issued| issued.request.op == op), all.len(), p);
    }
    let all = issue("read_percent = 70\nrequests = 100000", 2);
    near(count(&all, |issued| issued.request.op == Op::Write), all.len(), 0.3);
    let all = issue("write_percent = 1\nread_percent = 1\ntrim_percent = 2\nrequests = 100000", 3);
    near(count(&all, |issued| issued.request.op == Op::Trim), all.len(), 0.5);
    let all = issue("write_percent = 100\nrequests = 1000", 4);
    assert_eq!(count(&all, |issued| issued.request.op == Op::Write), 1000);
}

#[test]
fn sizes_follow_their_weights() {
    // The example of S4-8.
    let text = "requests = 100000
        block_sizes = [{ size = \"8KiB\", weight = 10 }, { size = \"16KiB\", weight = 20 },
                       { size = \"32KiB\", weight = 30 }, { size = \"64KiB\", weight = 40 }]";
    let all = issue(text, 5);
    for (size, p) in [(8, 0.1), (16, 0.2), (32, 0.3), (64, 0.4)] {
        near(count(&all, |issued| issued.request.length_bytes == size << 10), all.len(), p);
    }
    assert!(all.iter().all(|issued| issued.request.offset_bytes.is_multiple_of(8 << 10)));
}

#[test]
fn random_addresses_are_uniform_over_the_range() {
    let text = "requests = 160000\n[address]\nstart = \"1MiB\"\nlength = \"64KiB\"";
    let all = issue(text, 6);
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    for issued in &all {
        *seen.entry(issued.request.offset_bytes).or_default() += 1;
    }
    assert_eq!(seen.len(), 16, "first and last block included");
    for (offset, times) in seen {
        assert!(((1 << 20)..(1 << 20) + (64 << 10)).contains(&offset));
        near(times, all.len(), 1.0 / 16.0);
    }
    let text = "requests = 10000\n[address]\nlength_percent = 25";
    assert!(issue(text, 7).iter().all(|issued| issued.request.offset_bytes < 1 << 34));
}

#[test]
fn sequential_runs_wrap_and_threads_have_their_own() {
    let text = "requests = 40\n[address]\npattern = \"sequential\"\nlength = \"64KiB\"";
    let offsets: Vec<u64> = issue(text, 8).iter().map(|i| i.request.offset_bytes >> 12).collect();
    let expected: Vec<u64> = (0..40).map(|index| index % 16).collect();
    assert_eq!(offsets, expected);
    let text =
        "requests = 24\nthreads = 3\n[address]\npattern = \"sequential\"\nlength = \"48KiB\"";
    let offsets: Vec<u64> = issue(text, 8).iter().map(|i| i.request.offset_bytes >> 12).collect();
    let expected: Vec<u64> = (0..24).map(|index| index % 3 * 4 + index / 3 % 4).collect();
    assert_eq!(offsets, expected);
}

#[test]
fn sequential_share_continues_the_last_request() {
    let all = issue("requests = 100000\nsequential_percent = 60", 9);
    let follows = all
        .windows(2)
        .filter(|pair| pair[0].request.end_bytes() == Some(pair[1].request.offset_bytes));
    // By chance as well: one in 16 million blocks.
    near(follows.count(), all.len() - 1, 0.6);
}

#[test]
fn zipf_favours_few_blocks_that_are_not_neighbours() {
    let text = |scatter| {
        format!(
            "requests = 200000\n[address]\npattern = \"zipf\"\ntheta = 1.0\nlength = \"4MiB\"\n\
             scatter = {scatter}"
        )
    };
    let harmonic: f64 = (1..=1024).map(|k| 1.0 / f64::from(k)).sum();
    let ranks = issue(&text(false), 10);
    for rank in 0..8 {
        let hits = count(&ranks, |issued| issued.request.offset_bytes == rank << 12);
        near(hits, ranks.len(), 1.0 / ((rank + 1) as f64 * harmonic));
    }
    let mut hits: BTreeMap<u64, usize> = BTreeMap::new();
    for issued in issue(&text(true), 10) {
        *hits.entry(issued.request.offset_bytes >> 12).or_default() += 1;
    }
    let mut order: Vec<(usize, u64)> = hits.iter().map(|(&block, &times)| (times, block)).collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    near(order[0].0, 200_000, 1.0 / harmonic);
    let mut hottest: Vec<u64> = order[..8].iter().map(|(_, block)| *block).collect();
    hottest.sort_unstable();
    assert!(hottest.windows(2).all(|pair| pair[1] - pair[0] > 1), "{hottest:?}");
}

#[test]
fn hot_blocks_get_their_share() {
    let text = "requests = 100000\n[address]\npattern = \"hot-cold\"\nscatter = false\n\
                length = \"4MiB\"\nhot_space_percent = 25\nhot_access_percent = 90";
    let all = issue(text, 11);
    near(count(&all, |issued| issued.request.offset_bytes < 1 << 20), all.len(), 0.9);
    let scattered = issue(&text.replace("false", "true"), 11);
    let mut hits: BTreeMap<u64, usize> = BTreeMap::new();
    for issued in &scattered {
        *hits.entry(issued.request.offset_bytes).or_default() += 1;
    }
    // 352 expected on a hot block, 13 on a cold one.
    let hot = hits.values().filter(|&&times| times > 150).count();
    assert_eq!((hits.len(), hot), (1024, 256));
}

#[test]
fn closed_loop_keeps_depth_times_threads() {
    let all = issue("requests = 5000\ndepth = 8\nthreads = 3", 12);
    // All 24 complete together, and are issued together again.
    assert!(all.iter().zip((1..=24).cycle()).all(|(issued, n)| issued.outstanding == n));
    assert!(all.iter().all(|issued| issued.intended == issued.at));
    // 24 at a time, 100 us each (Little).
    assert_eq!(all.last().unwrap().at, Time::from_us(100) * (4999 / 24));
}

fn gaps_us(all: &[Issued]) -> Vec<f64> {
    let mut last = Time::ZERO;
    let gap = |issued: &Issued| {
        let gap = issued.intended - last;
        last = issued.intended;
        gap.as_ns_f64() / 1e3
    };
    all.iter().map(gap).collect()
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

#[test]
fn arrivals_have_their_mean_and_variance() {
    let n = 200_000_f64;
    let text = |rest: &str| format!("requests = 200000\n[arrivals]\n{rest}");
    let poisson = gaps_us(&issue(&text("kind = \"poisson\"\nrate = 2000"), 13));
    let (mean, variance) = mean_and_variance(&poisson);
    assert!((mean - 500.0).abs() < 5.0 * 500.0 / n.sqrt(), "{mean}");
    // Fourth central moment 9 m^4: the variance's relative error is sqrt(8 / n).
    assert!((variance / 250_000.0 - 1.0).abs() < 5.0 * (8.0 / n).sqrt(), "{variance}");
    let long = poisson.iter().filter(|&&gap| gap > 1000.0).count();
    near(long, poisson.len(), (-2.0_f64).exp());

    let uniform = gaps_us(&issue(&text("kind = \"uniform\"\nmean_gap = \"500us\""), 14));
    let (mean, variance) = mean_and_variance(&uniform);
    let expected = 1000.0_f64.powi(2) / 12.0;
    assert!((mean - 500.0).abs() < 5.0 * (expected / n).sqrt(), "{mean}");
    // Kurtosis 1.8.
    assert!((variance / expected - 1.0).abs() < 5.0 * (0.8 / n).sqrt(), "{variance}");
    assert!(uniform.iter().all(|&gap| gap <= 1000.0));

    let fixed = gaps_us(&issue(&text("kind = \"fixed\"\nrate = 2000"), 15));
    assert!(fixed[1..].iter().all(|&gap| gap == 500.0));
}

#[test]
fn arrivals_do_not_depend_on_what_is_asked() {
    let arrivals = "\n[arrivals]\nkind = \"poisson\"\nrate = 2000";
    let small = issue(&format!("requests = 1000{arrivals}"), 16);
    let mixed = issue(&format!("requests = 1000\nread_percent = 50{arrivals}"), 16);
    assert_eq!(gaps_us(&small), gaps_us(&mixed));
}

#[test]
fn bursts_come_at_once_and_zero_interval_is_continuous() {
    let text = "requests = 10\n[arrivals]\nkind = \"bursts\"\nlength = 4\ninterval = \"1ms\"";
    let at: Vec<u64> = issue(text, 17).iter().map(|i| i.intended.as_ns() / 1_000_000).collect();
    assert_eq!(at, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
    let all = issue(&format!("depth = 3\n{}", text.replace("1ms", "0s")), 17);
    assert!(all.iter().zip((1..=3).cycle()).all(|(issued, n)| issued.outstanding == n));
}

#[test]
fn a_full_queue_delays_the_issue_but_not_the_intent() {
    let text = "depth = 1\nrequests = 4\n[arrivals]\nkind = \"fixed\"\nmean_gap = \"40us\"";
    let all = issue(text, 18);
    let us = |time: Time| time.as_ns() / 1000;
    let times: Vec<(u64, u64)> = all.iter().map(|i| (us(i.intended), us(i.at))).collect();
    assert_eq!(times, [(0, 0), (40, 100), (80, 200), (120, 300)]);
}

/// A rate times a duration is the number of requests, whether or not the gap is whole picoseconds,
/// and the last arrival is where it belongs.
#[test]
fn a_fixed_rate_gives_as_many_as_it_says() {
    let rates = ["0.1", "3", "7", "1000", "1023", "10000", "33333.3", "1234.567", "299792.458"];
    for (rate, seconds) in rates.into_iter().zip([100, 30, 60, 10, 60, 5, 10, 100, 1]) {
        let arrivals = format!("[arrivals]\nkind = \"fixed\"\nrate = {rate}");
        let all = issue(&format!("duration = \"{seconds}s\"\n{arrivals}"), 20);
        let rate: f64 = rate.parse().unwrap();
        let exact = rate * f64::from(seconds);
        assert_eq!(all.len() as f64, (exact - 1e-6).ceil(), "{rate} a second");
        assert_eq!(all[0].intended, Time::ZERO);
        let last = all[all.len() - 1].intended.as_ps() as f64;
        let meant = (all.len() - 1) as f64 / rate * 1e12;
        assert!((last - meant).abs() <= 0.5 + meant * 1e-15, "{rate}: {last} for {meant}");
    }
}

#[test]
fn an_open_loop_lasts_as_long_as_it_is_meant_to() {
    for arrivals in ["kind = \"fixed\"\nrate = 1000", "kind = \"poisson\"\nrate = 1000"] {
        let text = format!("duration = \"5ms\"\n[arrivals]\n{arrivals}");
        let mut workload = WorkloadConfig::from_toml(&text).unwrap().build(&DEVICE, 21).unwrap();
        let (mut now, end) = (Time::ZERO, Time::from_ms(5));
        let ended = loop {
            match workload.next(now) {
                WorkloadStep::Issue { .. } => {
                    workload.completed(ssdyno_workload::Finished::UNKNOWN, now)
                }
                WorkloadStep::NotBefore(at) => now = at,
                WorkloadStep::Wait => panic!("nothing is outstanding"),
                WorkloadStep::Done => break now,
            }
        };
        assert_eq!(ended, end, "{arrivals}");
    }
}

#[test]
fn limits_end_the_workload() {
    let all = issue("depth = 2\nduration = \"1ms\"", 19);
    assert_eq!(all.len(), 20);
    let all = issue("duration = \"1ms\"\n[arrivals]\nkind = \"fixed\"\nmean_gap = \"100us\"", 19);
    assert_eq!(all.len(), 10, "the one at 1 ms is too late");
    assert_eq!(issue("requests = 10\nramp_up = 5", 19).len(), 15);
    let config = WorkloadConfig::from_toml("requests = 10\nramp_up = 5").unwrap();
    assert_eq!(config.total_requests(), Some(15));
    assert_eq!(WorkloadConfig::default().total_requests(), Some(1_000_000));
}

/// Text, key that must be named.
const WRONG: &[(&str, &str)] = &[
    ("requests = 0", "requests"),
    ("duration = \"0s\"", "duration"),
    ("depth = 0", "depth"),
    ("threads = 0", "threads"),
    ("threads = 70000", "threads"),
    ("read_percent = -1", "read_percent"),
    ("read_percent = 150", "read_percent"),
    ("write_percent = 80\ntrim_percent = 30", "write_percent"),
    ("read_percent = 70\ntrim_percent = 30", "trim_percent"),
    ("write_percent = nan", "write_percent"),
    ("read_percent = 0\nwrite_percent = 0", "read_percent"),
    ("block_size = \"0B\"", "block_size"),
    ("block_size = \"1000B\"", "block_size"),
    ("block_size = \"4GiB\"", "block_size"),
    ("block_size = \"4KiB\"\nblock_sizes = [{ size = \"4KiB\", weight = 1 }]", "block_size"),
    (
        "block_sizes = [{ size = \"4KiB\", weight = 1 }, { size = \"0B\", weight = 1 }]",
        "block_sizes[1].size",
    ),
    ("block_sizes = [{ size = \"4KiB\", weight = -1 }]", "block_sizes[0].weight"),
    ("block_sizes = [{ size = \"4KiB\", weight = 0 }]", "block_sizes"),
    ("alignment = \"0B\"", "alignment"),
    ("alignment = \"700B\"", "alignment"),
    ("sequential_percent = 101", "sequential_percent"),
    ("sequential_percent = 50\naddress.pattern = \"sequential\"", "sequential_percent"),
    ("address.start = \"512B\"", "address.start"),
    ("address.start = \"1TiB\"", "address.start"),
    ("address.length = \"1TiB\"", "address.length"),
    ("address.length = \"0B\"", "address.length"),
    ("address.length = \"2KiB\"", "block_size"),
    ("address.length = \"1MiB\"\naddress.length_percent = 5", "address.length"),
    ("address.length_percent = 0", "address.length_percent"),
    ("address.length_percent = nan", "address.length_percent"),
    ("address.start = \"1MiB\"\naddress.length_percent = 100", "address.length_percent"),
    ("threads = 9\naddress.pattern = \"sequential\"\naddress.length = \"32KiB\"", "threads"),
    ("address.pattern = \"zipf\"\naddress.theta = 0", "address.theta"),
    ("address.pattern = \"zipf\"\naddress.theta = inf", "address.theta"),
    ("address.theta = nan", "address.theta"),
    ("address.hot_space_percent = inf", "address.hot_space_percent"),
    ("address.pattern = \"hot-cold\"\naddress.hot_space_percent = 0", "address.hot_space_percent"),
    (
        "address.pattern = \"hot-cold\"\naddress.hot_access_percent = 101",
        "address.hot_access_percent",
    ),
    ("address.pattern = \"hot-cold\"\naddress.length = \"4KiB\"", "address.pattern"),
    ("arrivals.kind = \"poisson\"", "arrivals"),
    ("arrivals = { kind = \"poisson\", rate = 0 }", "arrivals.rate"),
    ("arrivals = { kind = \"poisson\", rate = 1e300 }", "arrivals.rate"),
    ("arrivals = { kind = \"poisson\", rate = 1e-300 }", "arrivals.rate"),
    ("arrivals = { kind = \"fixed\", mean_gap = \"0s\" }", "arrivals.mean_gap"),
    ("arrivals = { kind = \"fixed\", rate = 1, mean_gap = \"1s\" }", "arrivals.mean_gap"),
    ("arrivals = { kind = \"fixed\", rate = 1, length = 1 }", "arrivals.length"),
    ("arrivals = { kind = \"bursts\", length = 1 }", "arrivals"),
    ("arrivals = { kind = \"bursts\", length = 0, interval = \"1s\" }", "arrivals.length"),
    ("arrivals = { kind = \"bursts\", rate = 5, length = 1, interval = \"1s\" }", "arrivals.rate"),
    ("disksim = {}", "disksim"),
    ("kind = \"disksim-synthetic\"\ndepth = 3", "depth"),
    ("kind = \"disksim-synthetic\"\naddress.theta = 0.5", "address"),
    ("kind = \"disksim-synthetic\"\ndisksim.mean_size = \"100B\"", "disksim.mean_size"),
    ("kind = \"disksim-synthetic\"\ndisksim.space = \"8KiB\"", "disksim.space"),
    ("kind = \"disksim-synthetic\"\ndisksim.space = \"1TiB\"", "disksim.space"),
    ("kind = \"disksim-synthetic\"\ndisksim.read_probability = 1.5", "disksim.read_probability"),
    ("kind = \"disksim-synthetic\"\ndisksim.gap_max = \"0s\"", "disksim.gap_max"),
];

#[test]
fn wrong_values_are_named() {
    for (text, key) in WRONG {
        let config =
            WorkloadConfig::from_toml(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let Err(error) = config.build(&DEVICE, 1) else { panic!("{text} must be refused") };
        assert_eq!(error.key.as_deref(), Some(*key), "{text}: {error}");
        assert!(error.help.is_some(), "{text}");
    }
    for (text, word) in [
        ("kind = \"magic\"", "disksim-synthetic"),
        ("dept = 3", "depth"),
        ("block_size = 4096", "unit"),
        ("address.pattern = \"spiral\"", "hot-cold"),
    ] {
        let error = WorkloadConfig::from_toml(text).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
    let odd = TargetFacts { capacity_bytes: 100, sector_bytes: 512 };
    assert!(WorkloadConfig::default().build(&odd, 1).is_err());
}

#[test]
fn blocks_must_fit_the_sector() {
    let device = TargetFacts { capacity_bytes: 1 << 30, sector_bytes: 4096 };
    let config = WorkloadConfig::from_toml("block_size = \"2KiB\"").unwrap();
    let Err(error) = config.build(&device, 1) else { panic!("2 KiB on 4 KiB sectors") };
    assert_eq!(error.key.as_deref(), Some("block_size"));
}

prop_compose! {
    fn any_config()(
        depth in proptest::option::of(1_u32..40),
        threads in proptest::option::of(1_u32..5),
        percents in proptest::array::uniform3(proptest::option::of(0_u8..=100)),
        sizes in proptest::collection::vec((1_u64..64, 0_u8..9), 0..9),
        alignment in proptest::option::of(1_u64..64),
        sequential in proptest::option::of(0_u8..=100),
        pattern in 0..4_usize,
        theta in 0.01_f64..10.0,
        start in 0_u64..100,
        length in proptest::option::of(1_u64..300),
        arrivals in 0..5_usize,
    ) -> String {
        use std::fmt::Write as _;
        let mut text = String::from("requests = 300\n");
        let pattern = ["sequential", "random", "zipf", "hot-cold"][pattern];
        for (key, value) in [("depth", depth), ("threads", threads)] {
            if let Some(value) = value { writeln!(text, "{key} = {value}").unwrap(); }
        }
        for (key, value) in ["read", "write", "trim"].iter().zip(percents) {
            if let Some(value) = value { writeln!(text, "{key}_percent = {value}").unwrap(); }
        }
        let sizes: Vec<String> = sizes.iter()
            .map(|(size, weight)| format!("{{ size = \"{}B\", weight = {weight} }}", size * 512))
            .collect();
        writeln!(text, "block_sizes = [{}]", sizes.join(", ")).unwrap();
        if let Some(a) = alignment { writeln!(text, "alignment = \"{}B\"", a * 512).unwrap(); }
        if let Some(s) = sequential { writeln!(text, "sequential_percent = {s}").unwrap(); }
        text += match arrivals {
            0 => "arrivals = { kind = \"poisson\", rate = 5000 }\n",
            1 => "arrivals = { kind = \"uniform\", mean_gap = \"1ps\" }\n",
            2 => "arrivals = { kind = \"bursts\", length = 7, interval = \"1ms\" }\n",
            _ => "",
        };
        writeln!(text, "[address]\npattern = \"{pattern}\"\ntheta = {theta}").unwrap();
        let unit = alignment.unwrap_or(8) * 512;
        writeln!(text, "start = \"{}B\"", start * unit).unwrap();
        if let Some(l) = length { writeln!(text, "length = \"{}B\"", l * 512).unwrap(); }
        text
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever is accepted keeps the contract and its range; the rest is refused with a key.
    #[test]
    fn accepted_configurations_run(text in any_config(), seed: u64, sectors in 1_u64..2000) {
        let device = TargetFacts { capacity_bytes: sectors * 512, sector_bytes: 512 };
        let config = WorkloadConfig::from_toml(&text).unwrap();
        match config.build(&device, seed) {
            Ok(mut workload) => {
                let all = play(workload.as_mut(), &device, Time::from_us(50), 300);
                prop_assert_eq!(all.len(), 300);
                let start = config.address.start.0;
                let end = config.address.length.map_or(device.capacity_bytes, |l| start + l.0);
                for issued in &all {
                    prop_assert!(issued.request.offset_bytes >= start);
                    prop_assert!(issued.request.end_bytes().unwrap() <= end);
                }
                let mut again = config.build(&device, seed).unwrap();
                prop_assert_eq!(all, play(again.as_mut(), &device, Time::from_us(50), 300));
            }
            Err(error) => prop_assert!(error.key.is_some() && error.help.is_some(), "{}", error),
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z_=\\[\\]{}\"0-9. \n]{0,200}") {
        if let Ok(config) = WorkloadConfig::from_toml(&text) {
            let _ = config.build(&DEVICE, 1);
        }
    }
}
