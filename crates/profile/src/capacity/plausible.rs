//! Impossible figures, and unusual ones.

use ssdyno_figures::{rate, significant};

use super::load::Figure;
use super::result::{CapacityFigure, CapacityResult, MediaKind};
use crate::measure::ProfileOp;

/// Two figures within this share of each other are the same.
const SAME: f64 = 0.01;
/// Share of a core from which on a job was limited by it.
pub(crate) const CPU_BUSY: f64 = 0.9;
/// A random read of a medium without moving parts is done by then, in seconds.
const SSD_READ_SECONDS_MAX: f64 = 0.002;
/// Random reads of a disk that moves its heads take this many times as long as sequential ones.
const HDD_RATIO_MIN: f64 = 4.0;
/// Error of a predicted load from which on a warning is given.
const CHECK_ERROR: f64 = 0.1;

fn same(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() <= SAME
}

/// The medium by the first depth of small reads: random and sequential, in requests per second.
pub(crate) fn media(random: f64, sequential: f64) -> MediaKind {
    match 1.0 / random >= SSD_READ_SECONDS_MAX && sequential / random >= HDD_RATIO_MIN {
        true => MediaKind::Hdd,
        false => MediaKind::Ssd,
    }
}

/// Why the figures cannot be used.
pub(crate) fn implausible(result: &CapacityResult) -> Vec<String> {
    let mut reasons = Vec::new();
    for (op, bps, seq, rand) in [
        (ProfileOp::Read, Figure::Rbps, Figure::Rseqiops, Figure::Rrandiops),
        (ProfileOp::Write, Figure::Wbps, Figure::Wseqiops, Figure::Wrandiops),
    ] {
        let value = |figure| result.figure(figure).map(|one: &CapacityFigure| one.estimate);
        let (Some(bps), Some(seq), Some(rand)) = (value(bps), value(seq), value(rand)) else {
            continue;
        };
        let limit = bps / result.small_bytes as f64;
        // Both rates must equal the limit. Sequential requests alone may be limited by the
        // bandwidth, while the random ones still show the cost of a request.
        if same(seq, limit) && same(rand, limit) {
            reasons.push(format!(
                "{op} IOPS ({}) equal the {op} bandwidth divided by the request size: the bandwidth limited all {op} \
                 tests (a bus, a network, a limit of bytes per second, or a cache), so the cost of a request is unknown",
                rate(rand)
            ));
        }
    }
    for one in &result.figures {
        if one.estimate < 1.0 || one.estimate >= u64::MAX as f64 {
            let (key, value) = (one.figure.key(), significant(one.estimate, 4));
            reasons.push(format!(
                "{key} is {value}: for the kernel, 0 means no limit, and a value has 64 bits"
            ));
        }
    }
    reasons
}

/// The notes for a reader.
pub(crate) fn warnings(result: &CapacityResult) -> Vec<String> {
    let mut warnings = media_warning(result);
    warnings.extend(figure_warnings(result));
    for check in &result.checks {
        let models =
            [("io.cost.model", check.iocost_error), ("Seastar's model", check.seastar_error)];
        for (model, error) in models {
            let Some(error) = error.filter(|error| error.abs() > CHECK_ERROR) else { continue };
            let how = if error > 0.0 { "predicts too much" } else { "predicts too little" };
            warnings.push(format!(
                "{model} {how} for {}: off by {} %",
                check.load,
                significant(error * 100.0, 2)
            ));
        }
    }
    if let Some(cpu) = result.cpu_limit.as_ref().filter(|cpu| cpu.share > CPU_BUSY) {
        let cores: Vec<String> = cpu.cores.iter().map(ToString::to_string).collect();
        let which = match cores.is_empty() {
            true => "a CPU".to_owned(),
            false => format!("CPU {}", cores.join(", ")),
        };
        warnings.push(format!(
            "{which} limits {}: each of {} jobs used {} % of a CPU; the device may be faster: use more `real.jobs`",
            cpu.load,
            cpu.jobs,
            significant(cpu.share * 100.0, 2)
        ));
    }
    warnings
}

fn media_warning(result: &CapacityResult) -> Vec<String> {
    let pair = result.disk.media.zip(result.disk.rotational);
    let text = match pair {
        Some((MediaKind::Ssd, true)) => {
            "the kernel treats the disk as a hard disk (queue/rotational is 1), but it serves random reads as fast as an SSD: schedulers that read the flag choose wrong defaults"
        }
        Some((MediaKind::Hdd, false)) => {
            "the kernel treats the disk as an SSD (queue/rotational is 0), but its random reads are as slow as on a hard disk"
        }
        _ => return Vec::new(),
    };
    vec![text.to_owned()]
}

fn figure_warnings(result: &CapacityResult) -> Vec<String> {
    let mut warnings = Vec::new();
    for one in &result.figures {
        let key = one.figure.key();
        if let Some(half) = one.relative_half_width().filter(|half| *half > result.error) {
            let (half, error) =
                (significant(half * 100.0, 2), significant(result.error * 100.0, 2));
            warnings.push(format!(
                "{key} has an interval of ± {half} %, wider than the requested ± \
                                   {error} %: allow more `time`"
            ));
        }
        let half = one.relative_half_width().unwrap_or(0.0);
        if one.drift.abs() > (2.0 * half).max(0.05) {
            let how = if one.drift < 0.0 { "fell" } else { "rose" };
            let by = significant(one.drift.abs() * 100.0, 2);
            warnings
                .push(format!("{key} {how} by {by} % over the rounds: it may not be sustained"));
        }
        let after = one.burst.map_or(one.estimate, |burst| burst.sustained);
        if (after / one.estimate - 1.0).abs() > half + result.error {
            warnings.push(format!(
                "{key} is {} per second in the rounds, and was {} right after the burst: it depends on the writes before it",
                rate(one.estimate),
                rate(after)
            ));
        }
    }
    let pairs = [
        (Figure::Rseqiops, Figure::Rrandiops, "read"),
        (Figure::Wseqiops, Figure::Wrandiops, "write"),
    ];
    for (sequential, random, op) in pairs {
        let (Some(seq), Some(rand)) = (result.figure(sequential), result.figure(random)) else {
            continue;
        };
        // The intervals of simulated figures have no width, so any difference would be
        // significant. The difference must exceed the error that the user asked for as well.
        let apart = seq.high.zip(rand.low).is_some_and(|(seq, rand)| seq < rand);
        if apart && seq.estimate < rand.estimate * (1.0 - result.error) {
            warnings.push(format!(
                "sequential {op}s are slower than random ones ({} and {} per second): this is usual for SSDs that serve neighbouring blocks from one die, but wrong for a hard disk",
                rate(seq.estimate),
                rate(rand.estimate)
            ));
        }
    }
    let value = |figure| result.figure(figure).map(|one: &CapacityFigure| one.estimate);
    if let (Some(read), Some(write)) = (value(Figure::Rrandiops), value(Figure::Wrandiops))
        && same(read, write)
    {
        warnings.push(format!(
            "random reads and writes have the same rate, {} per second: a limit of requests per second (a rented volume) \
             or of the host, not of the medium",
            rate(read)
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::super::result::{CpuLimit, DiskFacts, RateBurst};
    use super::*;

    fn result(figures: [f64; 3]) -> CapacityResult {
        let one = |(figure, estimate): (Figure, f64)| CapacityFigure {
            figure,
            estimate,
            low: Some(estimate * 0.99),
            high: Some(estimate * 1.01),
            rounds: 5,
            depth: 8,
            depths: Vec::new(),
            drift: 0.0,
            burst: None,
            longest_seconds: 1.0,
        };
        CapacityResult {
            error: 0.05,
            small_bytes: 4096,
            large_bytes: 1 << 20,
            figures: Figure::ALL.into_iter().zip(figures).map(one).collect(),
            checks: Vec::new(),
            moderate: None,
            disk: DiskFacts::default(),
            cpu_limit: None,
            implausible: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn iops_that_are_bandwidth_are_refused() {
        let limit = 1e9 / 4096.0;
        assert_eq!(implausible(&result([1e9, limit, limit * 1.005])).len(), 1);
        // Merged sequential requests of a volume are limited by bandwidth; random ones tell of requests.
        assert!(implausible(&result([1e9, limit, 3000.0])).is_empty());
        assert!(implausible(&result([1e9, limit * 1.02, limit * 1.02])).is_empty());
        assert_eq!(implausible(&result([1e9, 0.2, 3000.0])).len(), 1);
    }

    #[test]
    fn media_by_measurement() {
        assert_eq!(media(120.0, 5000.0), MediaKind::Hdd);
        assert_eq!(media(12_000.0, 50_000.0), MediaKind::Ssd);
        // A slow network is no hard disk: sequential reads are as slow.
        assert_eq!(media(120.0, 150.0), MediaKind::Ssd);
        let mut one = result([1e9, 9e4, 8e4]);
        one.disk.media = Some(MediaKind::Ssd);
        one.disk.rotational = Some(true);
        assert!(warnings(&one)[0].contains("hard disk"));
        one.disk.rotational = Some(false);
        assert!(warnings(&one).is_empty());
    }

    /// Rates that differ by 0.1 %, known to 0.01 %: equal within the error of the profile, 5 %.
    #[test]
    fn equal_rates_are_no_warning() {
        let mut one = result([1e9, 79_920.0, 80_000.0]);
        for figure in &mut one.figures {
            figure.low = Some(figure.estimate * 0.9999);
            figure.high = Some(figure.estimate * 1.0001);
        }
        assert!(warnings(&one).is_empty(), "{:?}", warnings(&one));
        one.figures[1].estimate = 75_000.0;
        one.figures[1].high = Some(75_010.0);
        assert!(warnings(&one)[0].contains("slower than random"));
        // Far apart, but too uncertain to distinguish.
        one.figures[1].high = Some(80_500.0);
        assert!(warnings(&one).iter().all(|text| !text.contains("slower")), "{:?}", warnings(&one));
    }

    /// A stretch of 329 MB/s after the burst and rounds of 58 MB/s contradict each other. A difference within the error does
    /// not.
    #[test]
    fn rounds_that_differ_from_the_end_of_the_burst_are_told() {
        let mut one = result([57.62e6, 12_000.0, 10_000.0]);
        let burst = |sustained| RateBurst { rate: 5e8, sustained, seconds: 1.0, bytes: 5e8 };
        one.figures[0].burst = Some(burst(329.1e6));
        let all = warnings(&one);
        let told =
            "rbps is 57.62 M per second in the rounds, and was 329.1 M right after the burst";
        assert!(all.iter().any(|text| text.starts_with(told)), "{all:?}");
        one.figures[0].burst = Some(burst(58e6));
        assert!(warnings(&one).iter().all(|text| !text.contains("burst")));
    }

    #[test]
    fn what_limits_is_named() {
        let mut one = result([1e9, 8e4, 9e4]);
        let load = "random reads of 4KiB".to_owned();
        one.cpu_limit = Some(CpuLimit { load, share: 0.97, jobs: 1, cores: vec![3] });
        let all = warnings(&one);
        assert!(all[0].contains("slower than random"), "{all:?}");
        assert!(all[1].contains("CPU 3 limits random reads") && all[1].contains("97 %"), "{all:?}");
    }
}
