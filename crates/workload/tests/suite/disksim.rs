//! The synthetic runs of S3 against the numbers that the paper and DiskSim's validation print.
use ssdyno_block::{Op, Time};
use ssdyno_workload::{TargetFacts, Workload, WorkloadConfig, WorkloadStep, presets};

const DEVICE: TargetFacts = TargetFacts { capacity_bytes: 1 << 34, sector_bytes: 512 };

struct Totals {
    requests: u64,
    reads: u64,
    sectors: u64,
    blocks_end: u64,
    last: Time,
    /// Requests that begin where the one before ended.
    follows: u64,
}

fn totals(workload: &mut dyn Workload) -> Totals {
    let mut t =
        Totals { requests: 0, reads: 0, sectors: 0, blocks_end: 0, last: Time::ZERO, follows: 0 };
    let mut now = Time::ZERO;
    let mut end = None;
    loop {
        match workload.next(now) {
            WorkloadStep::NotBefore(time) => now = time,
            WorkloadStep::Issue { request, intended } => {
                t.requests += 1;
                t.reads += u64::from(request.op == Op::Read);
                t.sectors += u64::from(request.length_bytes / 512);
                t.follows += u64::from(end == Some(request.offset_bytes));
                end = request.end_bytes();
                t.blocks_end = t.blocks_end.max(end.unwrap() / 4096);
                t.last = intended;
                assert!(request.offset_bytes.is_multiple_of(4096));
            }
            WorkloadStep::Wait | WorkloadStep::Done => return t,
        }
    }
}

fn preset(name: &str) -> WorkloadConfig {
    WorkloadConfig::from_toml(presets::text(name).unwrap()).unwrap()
}

/// S3-19 prints running times of 2500.27 s and 2499.68 s, S3-25 a mean of 9.127 sectors, the
/// validation output that comes with the SSD add-on 2500271.1 ms and 9.126888 sectors (S3-23).
/// The requests are DiskSim's own, so nothing but rounding is allowed.
#[test]
fn sequential_runs_are_disksims() {
    for (name, reads) in [("s3-seq-read", 5_000_000), ("s3-seq-write", 0)] {
        let t = totals(preset(name).build(&DEVICE, 1).unwrap().as_mut());
        assert_eq!((t.requests, t.reads), (5_000_000, reads));
        let seconds = t.last.as_s_f64();
        assert!((seconds - 2500.2711).abs() < 0.001, "{name}: {seconds} s");
        let mean = t.sectors as f64 / 5e6;
        assert!((mean - 9.126_888).abs() < 1e-6, "{name}: {mean} sectors");
        assert!(t.blocks_end < 877_363);
    }
}

#[test]
fn random_runs_are_disksims() {
    for (name, reads) in [("s3-rand-read", 5_000_000), ("s3-rand-write", 0)] {
        let t = totals(preset(name).build(&DEVICE, 1).unwrap().as_mut());
        assert_eq!((t.requests, t.reads), (5_000_000, reads));
        let seconds = t.last.as_s_f64();
        // 5e6 / 2000.254249 IOPS and 2499681.7 ms (S3-23).
        assert!((seconds - 2499.6817).abs() < 0.001, "{name}: {seconds} s");
        // Blocks per request are geometric: 1 / (1 - 1/e), times 8 sectors (S3-25: 12.66).
        let expected = 8.0 / (1.0 - (-1.0_f64).exp());
        let mean = t.sectors as f64 / 5e6;
        // Five standard errors: deviation 8 * 0.9595 sectors.
        assert!((mean - expected).abs() < 5.0 * 7.68 / 5e6_f64.sqrt(), "{name}: {mean} sectors");
    }
}

#[test]
fn the_seed_counts_only_where_asked() {
    let mut config = preset("s3-rand-write");
    config.requests = Some(10_000);
    let sectors = |config: &WorkloadConfig, seed| {
        let mut workload = config.build(&DEVICE, seed).unwrap();
        let exact = !workload.notes().is_empty();
        (totals(workload.as_mut()).sectors, exact)
    };
    assert_eq!(sectors(&config, 1), sectors(&config, 2));
    assert!(sectors(&config, 1).1, "a note says so");
    config.disksim.as_mut().unwrap().numbers = ssdyno_workload::Numbers::Seeded;
    assert_ne!(sectors(&config, 1), sectors(&config, 2));
    assert_eq!(sectors(&config, 1), sectors(&config, 1));
}

#[test]
fn partly_sequential_runs_follow_their_probability() {
    let text = "kind = \"disksim-synthetic\"\nrequests = 100000\n[disksim]\n\
                numbers = \"seeded\"\nsequential_probability = 0.4\nread_probability = 0.25";
    let t = totals(WorkloadConfig::from_toml(text).unwrap().build(&DEVICE, 3).unwrap().as_mut());
    let near = |count: u64, p: f64| {
        let tolerance = 5.0 * (1e5 * p * (1.0 - p)).sqrt();
        assert!((count as f64 - 1e5 * p).abs() < tolerance, "{count} {p}");
    };
    near(t.follows, 0.4);
    // Directions come in runs of 1 / 0.6 on average: a wider binomial.
    let p = 0.25;
    let tolerance = 5.0 * (1e5_f64 * p * (1.0 - p) * (1.0 + 0.4) / 0.6).sqrt();
    assert!((t.reads as f64 - 1e5 * p).abs() < tolerance, "{}", t.reads);
}
