//! OpenMetrics text, written and read.

use std::collections::BTreeSet;

use proptest::prelude::*;
use ssdyno_prober::{
    MetricKind, MetricLabels, MetricPoint, OpenMetricsWriter, SystemSample, read_open_metrics,
};

use crate::common::{Machine, STAT};

/// A sample with something of everything.
fn sample() -> SystemSample {
    let machine = Machine::new();
    machine.zone(1_000);
    machine.write("proc/pressure/io", "some avg10=1.32 total=100\n");
    machine.write("proc/diskstats", "8 0 sda 1 1 1 1 1 1 1 1 0 1 1 2 2 2 2 3 3\n");
    machine.sample(|machine| {
        let stat = STAT.replace("cpu  100", "cpu  150").replace("cpu0 60", "cpu0 110");
        machine.write("proc/stat", stat);
        machine.zone(2_000);
    })
}

/// Metrics that a sample can have, with those of each part once.
const METRICS: usize = 56;

fn text_of(samples: &[(&SystemSample, &MetricLabels)]) -> String {
    let mut writer = OpenMetricsWriter::new();
    writer.samples(samples).unwrap();
    writer.finish()
}

fn labels(all: &[(&str, &str)]) -> MetricLabels {
    MetricLabels::new(all.iter().copied()).unwrap()
}

#[test]
fn every_metric_of_a_sample_is_read_back_with_its_value_and_unit() {
    let host = [("host", "a \"b\"\\\n\r{}=,# é")];
    let sample = sample();
    let text = text_of(&[(&sample, &labels(&host))]);
    assert!(text.contains("# TYPE ssdyno_memory_free_bytes gauge\n# UNIT ssdyno_memory_free_bytes bytes\n# HELP ssdyno_memory_free_bytes Unused memory, in bytes.\n"), "{text}");
    let points = read_open_metrics(&text).unwrap();
    let found: BTreeSet<String> = points.iter().map(|point| point.name.clone()).collect();
    assert_eq!(found.len(), METRICS, "{found:?}");
    for point in &points {
        assert_eq!(point.labels[0], (host[0].0.to_owned(), host[0].1.to_owned()));
        assert_eq!((point.kind, point.timestamp_seconds), (MetricKind::Gauge, None));
        assert!(point.name.ends_with(&point.unit), "{point:?}");
    }
    let value = |name: &str, label: Option<(&str, &str)>| {
        let label = label.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut with =
            points.iter().filter(|p| p.name == name && p.labels.get(1) == label.as_ref());
        let found = with.next().unwrap_or_else(|| panic!("{name} {label:?} in {text}"));
        assert!(with.next().is_none());
        found.value
    };
    let interval = sample.interval_ns as f64 / 1e9;
    assert_eq!(value("ssdyno_sample_interval_seconds", None), interval);
    assert_eq!(value("ssdyno_cpu_user_fraction", None), 1.0);
    assert_eq!(value("ssdyno_core_user_fraction", Some(("core", "0"))), 1.0);
    assert_eq!(value("ssdyno_memory_cached_bytes", None), 409_600.0);
    let watts = sample.power["package-0 (intel-rapl:0)"].watts;
    assert_eq!(value("ssdyno_power_watts", Some(("sensor", "package-0 (intel-rapl:0)"))), watts);
    assert_eq!(value("ssdyno_disk_flushes_per_second", Some(("disk", "sda"))), 0.0);
    assert_eq!(value("ssdyno_pressure_stalled_fraction", Some(("resource", "io_some"))), 0.0);
}

#[test]
fn samples_of_several_machines_share_their_families() {
    let (a, b) = (labels(&[("host", "a")]), labels(&[("host", "b")]));
    let (sample, empty) = (sample(), SystemSample::default());
    let text = text_of(&[(&sample, &a), (&sample, &b), (&empty, &labels(&[]))]);
    let points = read_open_metrics(&text).unwrap();
    let one = read_open_metrics(&text_of(&[(&sample, &a)])).unwrap();
    // The sample that knows nothing has its interval only.
    assert_eq!(points.len(), 2 * one.len() + 1);
    let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let distinct: BTreeSet<&str> = types.iter().copied().collect();
    assert_eq!(types.len(), distinct.len());
    assert_eq!(read_open_metrics(&text_of(&[])), Ok(Vec::new()));
}

#[test]
fn labels_and_names_that_cannot_be_are_refused() {
    for (all, reason) in [
        (vec![("0a", "")], "label `0a` is not a name"),
        (vec![("a:b", "")], "label `a:b` is not a name"),
        (vec![("", "")], "label `` is not a name"),
        (vec![("disk", "")], "label `disk` is a label of the figures"),
        (vec![("a", "1"), ("a", "2")], "label `a` appears twice"),
    ] {
        let error = MetricLabels::new(all).unwrap_err();
        assert!(error.problem.starts_with(reason), "{error}");
    }
    let mut writer = OpenMetricsWriter::new();
    assert!(writer.value(&labels(&[]), None, 1.0).is_err());
    assert!(writer.family(MetricKind::Gauge, "a bytes", "", "").is_err());
    assert!(writer.family(MetricKind::Gauge, "bytes", "bytes", "").is_err());
    assert!(writer.family(MetricKind::Gauge, "free_bytes", "ytes", "").is_err());
    writer.family(MetricKind::Gauge, "free_bytes", "bytes", "").unwrap();
    assert!(writer.family(MetricKind::Gauge, "free_bytes", "bytes", "").is_err());
    assert!(writer.value(&labels(&[]), Some(("a b", "")), 1.0).is_err());
}

#[test]
fn families_of_every_kind_are_read_back() {
    let none = labels(&[]);
    let mut writer = OpenMetricsWriter::new();
    writer.family(MetricKind::Info, "program", "", "What it is.").unwrap();
    writer.value(&labels(&[("version", "1")]), None, 1.0).unwrap();
    assert!(writer.states(&none, &[]).is_err() && writer.buckets(&none, &[], 0, 0.0).is_err());
    writer.family(MetricKind::StateSet, "phase", "", "How far it is.").unwrap();
    assert!(writer.value(&none, None, 1.0).is_err());
    writer.states(&none, &[("on", true), ("off", false)]).unwrap();
    assert!(writer.states(&labels(&[("phase", "")]), &[("on", true)]).is_err());
    assert!(writer.family(MetricKind::Counter, "requests_total", "", "").is_err());
    writer.family(MetricKind::Counter, "requests", "", "All of them.").unwrap();
    writer.value(&none, Some(("op", "read")), 7.0).unwrap();
    writer.family(MetricKind::Histogram, "wait_seconds", "seconds", "Waits.").unwrap();
    assert!(writer.value(&none, None, 1.0).is_err());
    for bad in
        [&[(1.0, 2), (1.0, 3)][..], &[(1.0, 2), (2.0, 1)], &[(f64::INFINITY, 1)], &[(1.0, 9)]]
    {
        assert!(writer.buckets(&none, bad, 5, 0.0).is_err(), "{bad:?}");
    }
    writer.buckets(&none, &[(1.023e-6, 2), (2.0, 4)], 5, 3.5).unwrap();
    let points = read_open_metrics(&writer.finish()).unwrap();
    let found: Vec<(String, f64, MetricKind)> = points
        .iter()
        .map(|point| {
            let labels = point.labels.iter().map(|(name, value)| format!("{name}={value}"));
            let labels: Vec<String> = labels.collect();
            (format!("{} {}", point.name, labels.join(",")), point.value, point.kind)
        })
        .collect();
    let expected = [
        ("program_info version=1", 1.0, MetricKind::Info),
        ("phase phase=on", 1.0, MetricKind::StateSet),
        ("phase phase=off", 0.0, MetricKind::StateSet),
        ("requests_total op=read", 7.0, MetricKind::Counter),
        ("wait_seconds_bucket le=1.023e-6", 2.0, MetricKind::Histogram),
        ("wait_seconds_bucket le=2.0", 4.0, MetricKind::Histogram),
        ("wait_seconds_bucket le=+Inf", 5.0, MetricKind::Histogram),
        ("wait_seconds_count ", 5.0, MetricKind::Histogram),
        ("wait_seconds_sum ", 3.5, MetricKind::Histogram),
    ];
    assert_eq!(found, expected.map(|(text, value, kind)| (text.to_owned(), value, kind)));
}

#[test]
fn texts_of_other_programs_are_read() {
    let text = "\
# TYPE http_requests counter
# HELP http_requests All of them.
http_requests_total{code=\"200\",path=\"C:\\\\x \\q\"} 1027 1395066363.5 # {trace=\"a\"} 0.67 1.5
http_requests_created 1e3
# TYPE wait_seconds histogram
# UNIT wait_seconds seconds
wait_seconds_bucket{le=\"+Inf\"} +Inf
wait_seconds_sum NaN
# a comment

other{} -2
# EOF
";
    let points = read_open_metrics(text).unwrap();
    let kinds: Vec<_> = points.iter().map(|point| (point.kind, point.unit.as_str())).collect();
    assert_eq!(
        kinds,
        [
            (MetricKind::Counter, ""),
            (MetricKind::Counter, ""),
            (MetricKind::Histogram, "seconds"),
            (MetricKind::Histogram, "seconds"),
            (MetricKind::Unknown, ""),
        ]
    );
    assert_eq!((points[0].value, points[0].timestamp_seconds), (1027.0, Some(1395066363.5)));
    assert_eq!(points[0].labels[1].1, "C:\\x \\q");
    assert_eq!((points[2].value, points[4].value), (f64::INFINITY, -2.0));
    assert!(points[3].value.is_nan() && points[4].labels.is_empty());
}

#[test]
fn errors_have_the_line_and_what_is_wrong() {
    for (text, line, problem) in [
        ("", 1, "the text ends without `# EOF`"),
        ("a 1\n", 2, "the text ends without `# EOF`"),
        ("a 1\n# EOF\nb 1\n", 3, "there is text after `# EOF`"),
        ("\n\na one\n", 3, "the value is `one`, which is not a number"),
        ("a\n", 1, "expected ` `, found ``"),
        ("a  1\n", 1, "the value is ``"),
        ("a 1 2 3\n", 1, "expected ` # `, found ` 3`"),
        ("a 1 NaN\n", 1, "the time is not finite"),
        ("0a 1\n", 1, "`0a` is not the name of a metric"),
        ("{\"a.b\"} 1\n", 1, "`` is not the name of a metric"),
        ("a{b=\"1\"", 1, "expected `,`, found ``"),
        ("a{b=\"1\",b=\"2\"} 1", 1, "label `b` appears twice"),
        ("a{b=\"1\\", 1, "the value of a label does not end with a quote"),
        ("a{b=1} 1", 1, "expected `=\"`, found `=1} 1`"),
        ("a 1 # {} x", 1, "the value of the exemplar is `x`"),
        ("a 1 # {} 1 1 1", 1, "` 1` is too much"),
        ("# TYPE a guage\n", 1, "`guage` is not a type of metric"),
        ("# TYPE\n", 1, "`` after TYPE is not the name of a metric"),
        ("# UNIT a_bytes seconds\n", 1, "`a_bytes` does not end with its unit `seconds`"),
    ] {
        let error = read_open_metrics(text).unwrap_err();
        assert_eq!(error.line, line, "{text:?}: {error}");
        assert!(error.problem.starts_with(problem), "{text:?}: {error}");
    }
}

/// Names of labels, each once, with any values.
/// Time to read grows with the length of the text and no faster: 60 000 labels took more than 45 s.
#[test]
fn lines_that_are_too_long_are_refused() {
    let with = |count: usize| {
        let labels: Vec<String> = (0..count).map(|n| format!("l{n}=\"\"")).collect();
        format!("m{{{}}} 1\n# EOF\n", labels.join(","))
    };
    assert_eq!(read_open_metrics(&with(128)).unwrap()[0].labels.len(), 128);
    let refused = |text: &str| read_open_metrics(text).unwrap_err().to_string();
    assert_eq!(refused(&with(129)), "line 1: a metric has more than 128 labels");
    assert_eq!(refused(&with(60_000)), "line 1: the line has more than 65536 bytes");
}

fn any_labels() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::btree_map("[a-z_][a-zA-Z0-9_]{0,6}", any::<String>(), 0..4)
        .prop_map(|labels| labels.into_iter().filter(|(name, _)| !is_own(name)).collect())
}

fn is_own(name: &str) -> bool {
    ["core", "interface", "disk", "sensor", "resource"].contains(&name)
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        families in prop::collection::btree_map(
            "[a-zA-Z_:][a-zA-Z0-9_:]{0,8}",
            (any::<String>(), prop::collection::vec((any_labels(), any::<f64>()), 0..4)),
            0..5,
        ),
    ) {
        let mut writer = OpenMetricsWriter::new();
        let mut expected = Vec::new();
        for (name, (help, values)) in families {
            let name = format!("{name}_seconds");
            writer.family(MetricKind::Gauge, &name, "seconds", &help).unwrap();
            for (labels, value) in values {
                writer.value(&MetricLabels::new(labels.clone()).unwrap(), None, value).unwrap();
                let (kind, unit) = (MetricKind::Gauge, "seconds".to_owned());
                expected.push(MetricPoint { name: name.clone(), labels, value, timestamp_seconds: None, kind, unit });
            }
        }
        let found = read_open_metrics(&writer.finish()).unwrap();
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            // To the last bit; not a number is not equal to itself.
            if expected.value.is_nan() {
                prop_assert!(found.value.is_nan());
                prop_assert_eq!((&found.name, &found.labels), (&expected.name, &expected.labels));
            } else {
                prop_assert_eq!(found.value.to_bits(), expected.value.to_bits());
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        if let Err(error) = read_open_metrics(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.split('\n').count());
        }
    }

    #[test]
    fn what_looks_like_metrics_is_read_or_refused(
        text in "([a-z{}=\"\\\\, #0-9.\n]|# TYPE |# UNIT |# HELP |# EOF\n|\\{a=\"|\"\\} 1){0,40}",
    ) {
        let _ = read_open_metrics(&text);
    }
}
