//! S4 re-run: what holds of its claims, and what cannot.

use crate::common;

use common::{assert_as_documented, assert_lists_are_complete, rerun};
use ssdyno_papers::{KeepGoing, PapersOptions, Vary, run};

#[test]
fn simulated_storage_and_iscsi_give_the_same_answers() {
    for part in ["S4/table3", "S4/table4"] {
        let report = rerun(part, &PapersOptions { vary: Vary::None, ..PapersOptions::default() });
        println!("{}", report.text());
        assert!(!report.partial && report.figures.len() == 1 && !report.claims.is_empty());
        assert!(report.tables[0].rows.iter().all(|r| r.len() == report.tables[0].columns.len()));
        assert_as_documented(&report);
    }
}

#[test]
fn parts_can_be_selected_and_repeat_to_the_bit() {
    let options = PapersOptions {
        requests: Some(300),
        threads: Some(1),
        vary: Vary::None,
        ..PapersOptions::default()
    };
    let report = rerun("S4/figure1", &options);
    assert_eq!((report.figures.len(), report.runs.len()), (1, 9 * 5));
    let again = rerun("S4/figure1", &PapersOptions { threads: Some(2), ..options.clone() });
    assert_eq!(report.tables, again.tables);
    assert_eq!(rerun("S4/arithmetic", &options).cells.len(), 55);
    assert_eq!(rerun("S4/table4/clients_2/megabytes_per_second", &options).cells.len(), 1);
    assert_eq!(rerun("S4/claims/zones", &options).claims[0].holds, None);
    assert!(run("S4/figure9", &options, &mut |_| KeepGoing::Continue).is_err());
}

#[test]
fn this_machine_is_measured() {
    let options = PapersOptions { requests: Some(2_000), ..PapersOptions::default() };
    let report = rerun("S4/machine", &options);
    println!("{}", report.text());
    if cfg!(target_os = "linux") {
        assert_eq!(report.tables.len(), 2);
        let null = report.tables[0].rows.iter().find(|row| row[0].starts_with("null:")).unwrap();
        assert_eq!(null[1], "0.000", "the null target takes no system calls");
        assert!(null[3].parse::<f64>().unwrap() > 0.0);
    }
}

#[test]
#[ignore = "a minute or two: for soak runs"]
fn full_runs_give_the_same_answers() {
    let report = rerun("S4", &PapersOptions::default());
    println!("{}", report.text());
    assert_eq!(report.tables.len(), 13);
    assert_as_documented(&report);
}

#[test]
#[ignore = "soak: every assumed value for every claim, ten minutes of CPU time"]
fn values_bear_on_no_other_claim() {
    let options = PapersOptions { vary: Vary::All, ..PapersOptions::default() };
    let assumptions = include_str!("../../../../papers/s4/assumptions.toml");
    assert_lists_are_complete("S4", assumptions, &options, |_| true);
}
