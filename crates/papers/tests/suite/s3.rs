//! S3 re-run against what it prints, and against the runs of the simulator behind it.

use std::path::{Path, PathBuf};

use ssdyno_papers::{KeepGoing, PapersOptions, PapersReport, run};
use ssdyno_session::FailureKind;

fn rerun(selector: &str, options: &PapersOptions) -> PapersReport {
    run(selector, options, &mut |_| KeepGoing::Continue).unwrap_or_else(|error| panic!("{error}"))
}

/// The traces that are at hand; they belong to others and are not part of the project.
fn traces() -> PapersOptions {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    PapersOptions { trace_directory: Some(directory), ..PapersOptions::default() }
}

fn assert_matches(report: &PapersReport) {
    let wrong: Vec<String> = report
        .mismatches()
        .map(|cell| format!("{}: printed {}, ours {:?}", cell.id, cell.printed_text, cell.ours))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Mean response in ms of the first 250 000 requests, from the simulator's own validation outputs
/// (S3-23). The original does not count the last request: one part in 250 000.
const SHORT_RUNS: [(&str, f64); 4] = [
    ("sequential_read", 0.132511),
    ("sequential_write", 0.310895),
    ("random_read", 0.136118),
    ("random_write", 0.329458),
];

#[test]
fn short_runs_give_the_latencies_of_the_original() {
    let options = PapersOptions { requests: Some(250_000), ..PapersOptions::default() };
    let report = rerun("S3/table3", &options);
    assert_eq!(report.runs.len(), 4);
    for (name, latency_ms) in SHORT_RUNS {
        let run = report.runs.iter().find(|run| run.name == name).unwrap();
        let error = run.device_latency_ms / latency_ms - 1.0;
        assert!(error.abs() < 1e-5, "{name}: {} ms, not {latency_ms}", run.device_latency_ms);
        assert_eq!((run.erases, run.relocations), (0, 0), "{name}");
        // Reads take S < 1 ms each, at gaps uniform in 0 to 1 ms: busy for S - S^2 / 2 (S3-32).
        if name.contains("read") {
            let form = latency_ms - latency_ms * latency_ms / 2.0;
            let busy = run.busy_share * run.simulated_seconds * 1e3 / run.requests as f64;
            assert!((busy / form - 1.0).abs() < 0.002, "{name}: {busy} ms, not {form}");
        }
    }
    assert!(report.cells.iter().all(|cell| !cell.expected_to_match));
    // Nothing was cleaned in so short a run, which says nothing about five million requests.
    let id = "S3/claims/five_million_requests_clean";
    let claim = report.claims.iter().find(|claim| claim.id == id).unwrap();
    assert_eq!(claim.holds, None);
    assert!(claim.evidence.contains("the run is incomplete"), "{}", claim.evidence);
}

#[test]
#[ignore = "simulates 20 million requests: for soak runs"]
fn table_3_matches_in_full() {
    let report = rerun("S3/table3", &PapersOptions::default());
    println!("{}", report.text());
    assert_eq!(report.cells.iter().filter(|cell| cell.expected_to_match).count(), 32);
    assert_matches(&report);
    let run = |name| report.runs.iter().find(|run| run.name == name).unwrap();
    // Counts of the original: pages moved, blocks erased (S3-34, exact). Those still in flight at
    // the last arrival may differ.
    let near = |ours: u64, original: u64| ours.abs_diff(original) <= 20;
    assert!(near(run("sequential_write").erases, 77_493));
    assert_eq!(run("sequential_write").relocations, 0);
    assert!(near(run("random_write").erases, 143_179));
    assert!(run("random_write").relocations.abs_diff(1_929_239) <= 300);
    let exact = [
        ("sequential_read", 0.132786),
        ("sequential_write", 0.334365),
        ("random_read", 0.136136),
        ("random_write", 0.593438),
    ];
    for (name, latency_ms) in exact {
        let error = run(name).device_latency_ms / latency_ms - 1.0;
        assert!(error.abs() < 1e-5, "{name}: {} ms, not {latency_ms}", run(name).device_latency_ms);
    }
}

#[test]
#[ignore = "simulates 31 million page operations: for soak runs"]
fn table_5_matches_in_full() {
    let options = traces();
    let report = rerun("S3/table5", &options);
    if report.runs.is_empty() {
        eprintln!("skipped: no IOzone trace in {:?}", options.trace_directory);
        return;
    }
    println!("{}", report.text());
    assert_eq!(report.cells.iter().filter(|cell| cell.expected_to_match).count(), 23);
    assert_matches(&report);
    // Inside the device and with the wait before it, from the original (S3-37).
    let exact = [
        ("iozone_nand1", 62.616606, 124.240349),
        ("iozone_nand2", 6.394276, 6.416810),
        ("iozone_nand3", 4.146343, 4.159904),
    ];
    for (name, inside_ms, whole_ms) in exact {
        let run = report.runs.iter().find(|run| run.name == name).unwrap();
        let error = run.device_latency_ms / inside_ms - 1.0;
        assert!(error.abs() < 5e-4, "{name}: {} ms, not {inside_ms}", run.device_latency_ms);
        let error = run.latency_ms / whole_ms - 1.0;
        assert!(error.abs() < 5e-4, "{name}: {} ms, not {whole_ms}", run.latency_ms);
    }
}

#[test]
fn iozone_matches_table_4() {
    let options = traces();
    let report = rerun("S3/table4/iozone", &options);
    if report.runs.is_empty() {
        eprintln!("skipped: no IOzone trace in {:?}", options.trace_directory);
        return;
    }
    assert_eq!(report.cells.iter().filter(|cell| cell.expected_to_match).count(), 8);
    assert_matches(&report);
}

#[test]
fn without_a_trace_the_cells_say_so() {
    let report = rerun("S3/table6", &PapersOptions::default());
    assert_eq!(report.cells.len(), 24);
    assert!(report.runs.is_empty());
    for cell in &report.cells {
        assert!(cell.ours.is_none() && !cell.expected_to_match);
        assert!(cell.note.contains("--trace postmark=FILE"), "{}", cell.note);
    }
    let claims: Vec<_> = report.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(claims, ["S3/claims/totals_are_sums", "S3/claims/ram_is_80_mw_times_time"]);
    let text = report.text();
    assert!(text.contains("--trace postmark=FILE") && text.contains("nand3/latency_ms"), "{text}");
}

#[test]
fn parameters_are_cells_with_what_they_should_have_been() {
    let report = rerun("s3/table2/nand2", &PapersOptions::default());
    assert_eq!(report.cells.len(), 10);
    let planes = report.cells.iter().find(|cell| cell.id.ends_with("planes_per_chip")).unwrap();
    assert_eq!((planes.printed, planes.ours), (Some(4.0), Some(8.0)));
    assert!(!planes.expected_to_match);
    assert_matches(&report);
}

#[test]
fn printed_totals_are_checked_against_their_parts() {
    let report = rerun("S3/claims/totals_are_sums", &PapersOptions::default());
    assert!(report.cells.is_empty() && report.runs.is_empty());
    let [claim] = &report.claims[..] else { panic!("{:?}", report.claims) };
    assert_eq!(claim.holds, Some(false));
    assert!(claim.evidence.starts_with("table4/postmark"), "{}", claim.evidence);
    assert!(!claim.evidence.contains("; "), "only one total is wrong: {}", claim.evidence);
}

#[test]
fn figures_are_drawn_even_where_nothing_was_run() {
    let report = rerun("S3/figure5", &PapersOptions::default());
    let [figure] = &report.figures[..] else { panic!("{:?}", report.figures) };
    assert!(figure.svg.contains("not run") && figure.svg.contains("page size (KiB)"));
}

#[test]
fn what_is_unknown_is_refused_with_what_is_known() {
    for selector in ["S3/table9", "S9", "S3/table5/nand4"] {
        let error =
            run(selector, &PapersOptions::default(), &mut |_| KeepGoing::Continue).unwrap_err();
        assert_eq!(error.kind, FailureKind::Usage);
        assert!(error.help.as_ref().unwrap().contains("S3/table5"), "{error:?}");
    }
    let mut options = PapersOptions::default();
    let error = options.add_trace("iozne=file").unwrap_err();
    assert!(error.help.as_ref().unwrap().contains("iozone, postmark"), "{error:?}");
    assert!(options.add_trace("iozone").is_err());
    options.add_trace("iozone=some/file").unwrap();
    assert_eq!(options.traces["iozone"], PathBuf::from("some/file"));
    let error = run("S3/table5", &options, &mut |_| KeepGoing::Continue).unwrap_err();
    assert_eq!(error.kind, FailureKind::Usage, "{error:?}");
}

#[test]
fn a_run_that_is_stopped_is_marked() {
    let report =
        run("S3/table3/random_write", &PapersOptions::default(), &mut |_| KeepGoing::Stop).unwrap();
    assert!(report.partial && report.runs[0].partial);
    assert!(report.cells.iter().all(|cell| !cell.expected_to_match));
}

#[test]
fn the_report_has_the_published_shape() {
    let report = rerun("S3/table1/value/dram_idle_power_milliwatts", &PapersOptions::default());
    let value = serde_json::to_value(&report).unwrap();
    let cell = &value["cells"][0];
    assert_eq!(cell["id"], "S3/table1/value/dram_idle_power_milliwatts");
    assert_eq!((&cell["printed"], &cell["ours"]), (&878.0.into(), &80.0.into()));
    assert_eq!(cell["expected_to_match"], false);
    for key in ["as_printed_model", "relative_error", "note"] {
        assert!(!cell[key].is_null(), "{key}");
    }
    let report = rerun("S3/claims/totals_are_sums", &PapersOptions::default());
    let claim = &serde_json::to_value(&report).unwrap()["claims"][0];
    for key in ["id", "text", "holds", "evidence"] {
        assert!(!claim[key].is_null(), "{key}");
    }
}
