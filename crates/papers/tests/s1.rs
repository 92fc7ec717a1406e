//! S1 re-run: what holds of its claims, and what cannot.

#![allow(clippy::unwrap_used, reason = "support of tests: what fails here fails the test")]

use ssdyno_papers::{Flow, Options, Report, run};

fn rerun(selector: &str, options: &Options) -> Report {
    run(selector, options, &mut |_| Flow::Continue).unwrap_or_else(|error| panic!("{error}"))
}

/// Claims that do not come out with the costs that are assumed (`papers/s1/notes.md` says why).
const DO_NOT_HOLD: [&str; 3] =
    ["three_cores_are_enough", "direct_io_is_faster", "two_cores_reach_the_iops"];

fn assert_claims(report: &Report) {
    for claim in &report.claims {
        let name = claim.id.strip_prefix("S1/claims/").unwrap();
        let waits = name.ends_with("_the_disks");
        let expected = (!waits).then_some(!DO_NOT_HOLD.contains(&name));
        assert_eq!(claim.holds, expected, "{name}: {}", claim.evidence);
    }
    assert!(report.mismatches().next().is_none());
}

#[test]
fn parts_can_be_selected() {
    let options = Options { requests: Some(40), ..Options::default() };
    let report = rerun("S1/claims/writes_look_faster", &options);
    assert_eq!((report.claims.len(), report.figures.len(), report.runs.len()), (1, 0, 2 * 5));
    assert_claims(&report);
    assert_eq!(rerun("S1/arithmetic", &options).cells.len(), 47);
    assert!(run("S1/figure6_1", &options, &mut |_| Flow::Continue).is_err());
}

#[test]
#[ignore = "two minutes: for soak runs"]
fn full_runs_give_the_same_answers() {
    let report = rerun("S1", &Options::default());
    println!("{}", report.text());
    assert_eq!((report.tables.len(), report.figures.len()), (8, 8));
    assert_claims(&report);
    for table in &report.tables {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.id);
    }
    // Reads are reported when the device has done them, writes when they are copied (S1-56).
    let rows = &report.tables[0].rows;
    let [read, write] = [0, 1].map(|row| [2, 4].map(|at| rows[row][at].parse::<f64>().unwrap()));
    assert!(read[0] == read[1] && write[0] >= write[1], "{rows:?}");
}
