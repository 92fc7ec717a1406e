//! The shapes that others rely on: schema, JSON, text, page.

use ssdyno_figures::{Keep, RunResult, schema};
use ssdyno_report::{report_html, summary_text, to_json};

use crate::sample;

fn assert_valid(result: &RunResult) {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&to_json(result).unwrap()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&json).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let back: RunResult = serde_json::from_value(json).unwrap();
    assert_eq!(&back, result);
}

/// A run that was interrupted before anything completed.
fn nothing() -> RunResult {
    let mut result = RunResult { partial: true, ..RunResult::default() };
    let recorder = ssdyno_record::Recorder::new(Keep::All, None);
    recorder.finish(ssdyno_block::Time::ZERO).fill(&mut result);
    result
}

#[test]
fn the_schema_describes_what_is_written() {
    assert_valid(&sample::result(Keep::All));
    assert_valid(&sample::result(Keep::Summary));
    assert_valid(&nothing());
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let wrong = serde_json::json!({ "target": 3 });
    assert!(!validator.is_valid(&wrong), "the schema accepts anything");
}

#[test]
fn the_schema_does_not_change_by_accident() {
    insta::assert_snapshot!("schema", serde_json::to_string_pretty(&schema()).unwrap());
}

#[test]
fn promised_keys_are_there() {
    let json = serde_json::to_value(sample::result(Keep::All)).unwrap();
    for key in [
        "target",
        "workload",
        "seed",
        "partial",
        "requests",
        "iops",
        "throughput_bytes_per_second",
        "latency_ns/mean",
        "latency_ns/p50",
        "latency_ns/p95",
        "latency_ns/p99",
        "latency_ns/p99_9",
        "latency_ns/max",
        "latency_ns/read/p99",
        "latency_ns/write/mean",
        "latency_ns/trim",
        "confidence/iops/low",
        "confidence/latency_ns/p99/high",
        "energy_joules/total",
        "energy_joules/flash",
        "energy_joules/cpu",
        "energy_joules/dram",
        "energy_joules/bus",
        "energy_joules/per_request",
        "energy_joules/above_idle",
        "write_amplification",
        "flash_operations/reads",
        "flash_operations/programs",
        "flash_operations/erases",
        "flash_operations/relocations",
        "simulated_seconds",
        "wall_seconds",
        "simulated_requests_per_wall_second",
        "own_cost/cpu_ns_per_request",
        "own_cost/syscalls_per_request",
        "own_cost/context_switches_per_request",
        "series/0/start_seconds",
        "series/0/power_watts/flash",
        "expected/0/figure",
        "expected/0/value",
        "expected/0/form",
        "expected/0/inputs/pages_per_block",
    ] {
        assert!(json.pointer(&format!("/{key}")).is_some(), "{key} is missing");
    }
}

#[test]
fn text_for_the_terminal() {
    insta::assert_snapshot!("summary", summary_text(&sample::result(Keep::All)));
    insta::assert_snapshot!("summary_of_nothing", summary_text(&nothing()));
}

#[test]
fn the_page_is_well_formed_and_whole() {
    for result in [sample::result(Keep::All), nothing()] {
        let page = report_html(&result);
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let tree = roxmltree::Document::parse_with_options(&page, options).unwrap();
        let ids: Vec<_> = tree
            .descendants()
            .filter(|n| n.has_tag_name("section"))
            .filter_map(|n| n.attribute("id"))
            .collect();
        let mut expected = Vec::new();
        expected.extend((!result.warnings.is_empty()).then_some("warnings"));
        expected.extend(["figures", "notes", "latency"]);
        expected.extend(result.latency_parts_ns.is_some().then_some("parts"));
        expected.push("time");
        // Nobody sees into a real device.
        if result.simulated_requests_per_wall_second.is_some() {
            expected.extend(["energy", "busy", "flash", "expected"]);
        }
        expected.extend(["invariants", "confidence", "configuration"]);
        assert_eq!(ids, expected);
        // Each has a place where it is shown over the page, by reference.
        let drawn = |n: &roxmltree::Node<'_, '_>| {
            n.has_tag_name("svg") && !n.children().any(|inner| inner.has_tag_name("use"))
        };
        let pictures = tree.descendants().filter(drawn).count();
        assert_eq!(pictures, if result.requests > 0 { 13 } else { 0 });
        for outside in ["http", "<script", "@import", "url(", "NaN", "inf\"", "inf "] {
            assert!(!page.contains(outside), "the page holds {outside}");
        }
    }
}

#[test]
fn the_page_takes_hostile_names() {
    let mut result = sample::result(Keep::Summary);
    result.target = "<script>alert(1)</script>&\u{0}\"".into();
    result.notes = vec!["a < b & c".into()];
    let page = report_html(&result);
    assert!(!page.contains("<script"));
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(&page, options).unwrap();
}

/// Two samples over the series of the sample run, the first of which began in the ramp-up.
fn probed() -> RunResult {
    use ssdyno_figures::probe::{
        CpuShares, DeviceCheck, Disk, MachineActivity, Memory, Moved, Network, Sample, SensorPower,
    };
    let mut result = sample::result(Keep::Summary);
    let end = result.series.last().map(|p| p.start_seconds + p.length_seconds).unwrap();
    let sample = |from: f64, to: f64| Sample {
        start_seconds: from,
        length_seconds: to - from,
        cpu: Some(CpuShares { user: 0.25, system: 0.25, idle: 0.5, ..CpuShares::default() }),
        interrupts_per_second: Some(2e3),
        context_switches_per_second: Some(3e3),
        memory: Some(Memory { free_bytes: 1 << 33, cached_bytes: 1 << 32, ..Memory::default() }),
        network: Some(Network { bytes_in_per_second: 1e5, ..Network::default() }),
        disk: Some(Disk { reads_per_second: 4e3, read_bytes_per_second: 16e6, ..Disk::default() }),
        power: Some(vec![SensorPower { sensor: "package-0 <&>".into(), watts: 7.5 }]),
        ..Sample::default()
    };
    let moved = Moved { reads: 9, read_bytes: 9 << 20, ..Moved::default() };
    result.machine = Some(MachineActivity {
        device: Some("loop<0>".into()),
        samples: vec![sample(-end / 4.0, end / 2.0), sample(end / 2.0, end)],
        device_check: Some(DeviceCheck::new("loop<0>", (true, true), 0, moved, Moved::default())),
    });
    result
}

/// A terminal has 80 columns, also where there are reads, writes, trims and flushes.
#[test]
fn the_table_of_latencies_fits_a_terminal() {
    let mut result = sample::result(Keep::Summary);
    let latency = result.latency_ns.as_mut().unwrap();
    let all = latency.all;
    (latency.read, latency.write) = (Some(all), Some(all));
    (latency.trim, latency.flush) = (Some(all), Some(all));
    result.device_latency_ns = Some(all);
    let text = summary_text(&result);
    let table = text.lines().skip_while(|line| !line.starts_with("Latency "));
    let table: Vec<&str> = table.take_while(|line| !line.starts_with("Write amp")).collect();
    assert!(table.iter().any(|line| line.contains("in device")), "{text}");
    for line in table {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn the_machine_is_drawn_on_the_time_axis_of_the_series() {
    let result = probed();
    assert_valid(&result);
    let page = report_html(&result);
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let tree = roxmltree::Document::parse_with_options(&page, options).unwrap();
    // Where a picture's lines begin and end.
    let ends = |title: &str| -> Vec<(String, String)> {
        let picture = tree
            .descendants()
            .find(|n| n.has_tag_name("svg") && n.attribute("aria-label") == Some(title))
            .unwrap_or_else(|| panic!("no {title}"));
        let lines = picture
            .descendants()
            .filter(|n| n.attribute("class").is_some_and(|class| class.starts_with("line ")));
        let x = |point: &str| point.split(' ').next().unwrap().to_owned();
        lines
            .map(|line| {
                let path = line.attribute("d").unwrap();
                let mut points = path.split(['M', 'L']).filter(|point| !point.is_empty()).map(x);
                let first = points.next().unwrap();
                (first, points.next_back().unwrap())
            })
            .collect()
    };
    let iops = ends("Requests per second")[0].clone();
    for title in [
        "Interrupts and context switches",
        "Requests by the device's own counters",
        "Throughput by the device's own counters",
        "Load of the device",
        "Memory",
        "Network",
        "Power by sensor",
    ] {
        let lines = ends(title);
        assert!(!lines.is_empty(), "{title} is empty");
        assert!(lines.iter().all(|line| *line == iops), "{title}: {lines:?}, the series {iops:?}");
    }
    assert!(page.contains("Processors, kinds stacked"));
    assert!(page.contains("keeps no statistics") && !page.contains("loop<0>"));
    let mut poor = result;
    poor.machine.as_mut().unwrap().samples.iter_mut().for_each(|sample| sample.power = None);
    assert!(report_html(&poor).contains("Power: not available on this machine"));
    let text = summary_text(&poor);
    assert!(text.contains("25.0 % user") && text.contains("power not available"), "{text}");
    assert!(text.contains("does NOT match the run"), "{text}");
}
