//! The metrics of a run, compared with the snapshots from which they are made.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use ssdyno_block::Time;
use ssdyno_cluster::{ClusterProgress, MetricsCache, RunOutline, metrics_text};
use ssdyno_figures::{LiveSnapshot, RunProgress};
use ssdyno_prober::{MetricKind, MetricPoint, SystemSample, read_open_metrics};
use ssdyno_session::{RunPhase, RunSnapshot};

/// A host that read and wrote.
fn snapshot(phase: RunPhase, latencies_ns: &[u64], errors: u64) -> RunSnapshot {
    let mut glance = LiveSnapshot {
        now: Time::from_ms(1500),
        completed: latencies_ns.len() as u64 + errors,
        errors,
        latency_ns_sum: latencies_ns.iter().fold(0, |sum, ns| ns.saturating_add(sum)),
        ..LiveSnapshot::default()
    };
    glance.requests_by_op.read = latencies_ns.len() as u64;
    glance.bytes_by_op.read = 4096 * latencies_ns.len() as u64;
    latencies_ns.iter().for_each(|ns| glance.histogram.add(*ns));
    let now = glance.now;
    let progress = RunProgress { now, glance: Some(Arc::new(glance)), ..RunProgress::default() };
    RunSnapshot { sequence: 1, phase, progress }
}

fn outline(phase: RunPhase) -> RunOutline<'static> {
    RunOutline { number: 3, name: "a \"b\"\n", target: "null:", load: "randread", phase }
}

fn value(points: &[MetricPoint], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let has = |point: &MetricPoint| {
        labels.iter().all(|(name, value)| point.labels.iter().any(|(n, v)| n == name && v == value))
    };
    let mut found = points.iter().filter(|point| point.name == name && has(point));
    let value = found.next().map(|point| point.value);
    assert!(found.next().is_none(), "{name} {labels:?} is not alone");
    value
}

/// Rules of the format that the reader does not need: suffixes by kind, and families that are in one place each.
fn follows_the_rules(text: &str) {
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
    let (mut kinds, mut family) = (BTreeMap::new(), String::new());
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
            name.clone_into(&mut family);
        } else if let Some(rest) = line.strip_prefix("# ") {
            assert_eq!(rest.split(' ').nth(1), Some(&*family), "{line}");
        } else {
            let name = line.split(['{', ' ']).next().unwrap();
            let suffix = name.strip_prefix(&*family).unwrap_or_else(|| panic!("{line}"));
            let allowed: &[&str] = match kinds[&family].as_str() {
                "counter" => &["_total"],
                "info" => &["_info"],
                "histogram" => &["_bucket", "_count", "_sum"],
                _ => &[""],
            };
            assert!(allowed.contains(&suffix), "{line}");
        }
    }
}

#[test]
fn all_hosts_together_are_the_sum_of_each() {
    let progress = ClusterProgress {
        hosts: vec![
            ("a".to_owned(), snapshot(RunPhase::Loaded, &[100, 1000, 1_000_000], 2), None),
            (
                "b".to_owned(),
                snapshot(RunPhase::Ready, &[500], 0),
                Some(Duration::from_millis(2500)),
            ),
            ("c".to_owned(), RunSnapshot::default(), None),
        ],
        systems: vec![("a".to_owned(), Some(SystemSample::default())), ("c".to_owned(), None)],
        ..ClusterProgress::default()
    };
    let text = metrics_text("1.2.3", Some(outline(RunPhase::Preparing)), &progress);
    follows_the_rules(&text);
    let points = read_open_metrics(&text).unwrap();
    let of = |name: &str, labels: &[(&str, &str)]| value(&points, name, labels);
    assert_eq!(of("ssdyno_build_info", &[("version", "1.2.3")]), Some(1.0));
    let facts = [("number", "3"), ("name", "a \"b\"\n"), ("target", "null:"), ("load", "randread")];
    assert_eq!(of("ssdyno_run_info", &facts), Some(1.0));
    assert_eq!(of("ssdyno_run_phase", &[("ssdyno_run_phase", "preparing")]), Some(1.0));
    assert_eq!(of("ssdyno_run_phase", &[("ssdyno_run_phase", "loaded")]), Some(0.0));
    assert_eq!(
        (of("ssdyno_run_hosts", &[]), of("ssdyno_run_hosts_cut_off", &[])),
        (Some(3.0), Some(1.0))
    );
    for (figure, op, [all, a, b, c]) in [
        ("requests_total", None, [6.0, 5.0, 1.0, 0.0]),
        ("errors_total", None, [2.0, 2.0, 0.0, 0.0]),
        ("operations_total", Some("read"), [4.0, 3.0, 1.0, 0.0]),
        ("operations_total", Some("write"), [0.0; 4]),
        ("bytes_total", Some("read"), [16384.0, 12288.0, 4096.0, 0.0]),
    ] {
        let op: Vec<(&str, &str)> = op.iter().map(|op| ("op", *op)).collect();
        assert_eq!(of(&format!("ssdyno_run_{figure}"), &op), Some(all), "{figure}");
        for (host, expected) in [("a", a), ("b", b), ("c", c)] {
            let labels: Vec<_> = op.iter().copied().chain([("host", host)]).collect();
            assert_eq!(of(&format!("ssdyno_host_{figure}"), &labels), Some(expected), "{figure}");
        }
    }
    assert_eq!(of("ssdyno_host_cut_off_seconds", &[("host", "b")]), Some(2.5));
    assert_eq!(of("ssdyno_host_cut_off_seconds", &[("host", "a")]), Some(0.0));
    let ready = [("host", "b"), ("ssdyno_host_phase", "ready")];
    assert_eq!(of("ssdyno_host_phase", &ready), Some(1.0));
    assert_eq!(of("ssdyno_run_latency_seconds_count", &[]), Some(4.0));
    assert_eq!(of("ssdyno_run_latency_seconds_sum", &[]), Some(1_001_600e-9));
    assert_eq!(of("ssdyno_run_latency_seconds_bucket", &[("le", "+Inf")]), Some(4.0));
    assert_eq!(of("ssdyno_run_latency_seconds_bucket", &[("le", "5.11e-7")]), Some(2.0));
    // Only the machine that was sampled.
    assert_eq!(of("ssdyno_sample_interval_seconds", &[("host", "a")]), Some(0.0));
    assert!(points.iter().all(|point| point.kind != MetricKind::Unknown), "{text}");
}

#[test]
fn without_a_run_there_is_the_version_and_the_machine() {
    let progress = ClusterProgress {
        systems: vec![("m".to_owned(), Some(SystemSample::default()))],
        ..ClusterProgress::default()
    };
    let text = metrics_text("1", None, &progress);
    follows_the_rules(&text);
    let names: BTreeSet<String> =
        read_open_metrics(&text).unwrap().into_iter().map(|point| point.name).collect();
    assert_eq!(
        names,
        ["ssdyno_build_info", "ssdyno_sample_interval_seconds"].map(str::to_owned).into()
    );
    follows_the_rules(&metrics_text("1", None, &ClusterProgress::default()));
}

#[test]
fn a_text_is_made_ten_times_a_second_at_most() {
    let cache = MetricsCache::default();
    let mut made = 0;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(300) {
        cache.text(|| {
            made += 1;
            made.to_string()
        });
    }
    assert!((3..=4).contains(&made), "{made}");
}

proptest! {
    /// Counts of buckets are exact: those of the latencies themselves.
    #[test]
    fn buckets_count_what_is_up_to_their_bound(
        latencies in prop::collection::vec(
            prop_oneof![0u64..2000, (0u32..40, 0u64..3).prop_map(|(bit, less)| (1u64 << bit).saturating_sub(less)), any::<u64>()],
            0..60,
        ),
    ) {
        let hosts = vec![("a".to_owned(), snapshot(RunPhase::Loaded, &latencies, 0), None)];
        let progress = ClusterProgress { hosts, ..ClusterProgress::default() };
        let text = metrics_text("1", Some(outline(RunPhase::Loaded)), &progress);
        let points = read_open_metrics(&text).unwrap();
        let buckets = points.iter().filter(|point| point.name == "ssdyno_run_latency_seconds_bucket");
        let (mut before, mut count) = (-1.0, 0);
        for point in buckets {
            let bound: f64 = point.labels[0].1.parse().unwrap();
            prop_assert!(bound > before);
            // Beyond the last bound are all.
            let bound_ns = (bound * 1e9).round() as u64;
            let up_to = latencies.iter().filter(|ns| **ns <= bound_ns).count();
            prop_assert_eq!(point.value, up_to as f64, "{} ns", bound_ns);
            (before, count) = (bound, count + 1);
        }
        prop_assert!(count > 100);
    }
}
