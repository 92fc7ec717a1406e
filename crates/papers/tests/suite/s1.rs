//! S1 re-run: what holds of its claims, and what cannot.

use crate::common;

use common::{assert_as_documented, assert_lists_are_complete, rerun};
use ssdyno_papers::{ClaimState, KeepGoing, PapersOptions, Vary, run};

/// The preset favours a core at the lock by a weight that nothing in the thesis gives. Without it no
/// core gets more; a claim that has nothing to do with it stays as it is.
#[test]
fn one_core_that_gets_more_is_assumed() {
    // The cores are compared in the window after the ramp-up, and with 80 requests chance decides at a weight of 1.1.
    let options = PapersOptions { requests: Some(240), ..PapersOptions::default() };
    let report = rerun("S1/claims/one_core_is_favoured", &options);
    let [claim] = &report.claims[..] else { panic!("{:?}", report.claims) };
    assert_eq!((claim.state, claim.holds), (Some(ClaimState::Assumed), None), "{claim:?}");
    let weight = &claim.assumptions[0];
    assert_eq!(weight.keys, ["host.lock.favoured_weight"]);
    assert!(weight.decides && weight.neutral.as_deref() == Some("1"), "{weight:?}");
    let at = |value: &str| weight.tried.iter().find(|trial| trial.value == value).unwrap().state;
    assert_ne!(at("1"), ClaimState::Holds, "{weight:?}");
    assert_eq!((at("2.5"), at("5")), (ClaimState::Holds, ClaimState::Holds), "{weight:?}");
    assert_as_documented(&report);
    let text = report.text();
    assert!(text.contains("  assumed: Figure 5.3"), "{text}");
    assert!(text.contains("2.5 assumed, 1 to 5 plausible: does not hold"), "{text}");
    // Varied all the same, a command reads no register.
    let options = PapersOptions { requests: Some(4), vary: Vary::All, ..PapersOptions::default() };
    let report = rerun("S1/claims/nvme_reads_no_registers", &options);
    let [claim] = &report.claims[..] else { panic!("{:?}", report.claims) };
    assert_eq!((claim.state, claim.holds), (Some(ClaimState::Holds), Some(true)), "{claim:?}");
    assert!(claim.assumptions.len() > 10, "{claim:?}");
    assert!(claim.assumptions.iter().all(|assumption| !assumption.decides), "{claim:?}");
}

#[test]
fn parts_can_be_selected() {
    let options =
        PapersOptions { requests: Some(40), vary: Vary::None, ..PapersOptions::default() };
    let report = rerun("S1/claims/writes_look_faster", &options);
    // Reads and writes of the SSD and of the disks beside it.
    assert_eq!((report.claims.len(), report.figures.len(), report.runs.len()), (1, 0, 4 * 5));
    assert_as_documented(&report);
    assert_eq!(rerun("S1/arithmetic", &options).cells.len(), 47);
    assert!(run("S1/figure6_1", &options, &mut |_| KeepGoing::Continue).is_err());
}

#[test]
#[ignore = "two minutes: for soak runs"]
fn full_runs_give_the_same_answers() {
    let report = rerun("S1", &PapersOptions { vary: Vary::None, ..PapersOptions::default() });
    println!("{}", report.text());
    assert_eq!((report.tables.len(), report.figures.len()), (8, 8));
    assert_as_documented(&report);
    for table in &report.tables {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.id);
    }
    // Alone the drive does what its data sheet says, in the state that the sheet is about (S1-66).
    let iops = report.tables.iter().find(|table| table.id == "S1/figure5_7").unwrap();
    let alone = iops.rows.iter().find(|row| row[0] == "drive alone").unwrap();
    let rate = alone[3].parse::<f64>().unwrap();
    assert!((rate / 56_000.0 - 1.0).abs() < 0.1, "{alone:?}");
    // Reads are reported when the device has done them, writes when they are copied (S1-56).
    let rows = &report.tables[0].rows;
    let [read, write] = [0, 1].map(|row| [2, 4].map(|at| rows[row][at].parse::<f64>().unwrap()));
    assert!(read[0] == read[1] && write[0] >= write[1], "{rows:?}");
}

#[test]
#[ignore = "soak: every claim with the values that bear on it, five minutes of CPU time"]
fn every_claim_is_as_documented() {
    let report = rerun("S1/claims", &PapersOptions::default());
    println!("{}", report.text());
    assert!(report.claims.len() > 15);
    assert_as_documented(&report);
}

const ASSUMPTIONS: &str = include_str!("../../../../papers/s1/assumptions.toml");

/// Claims about figure 5.7, whose runs fill buffers first.
fn is_about_iops(claim: &str) -> bool {
    claim.contains("iops") || claim == "batches_follow_little"
}

#[test]
#[ignore = "soak: runs of throughput with every assumed value, half an hour of CPU time"]
fn values_bear_on_no_other_claim_about_throughput() {
    let options = PapersOptions { vary: Vary::All, ..PapersOptions::default() };
    assert_lists_are_complete("S1", ASSUMPTIONS, &options, |claim| !is_about_iops(claim));
}

#[test]
#[ignore = "soak: runs of figure 5.7 with every assumed value, half an hour of CPU time"]
fn values_bear_on_no_other_claim_about_iops() {
    let options = PapersOptions { vary: Vary::All, ..PapersOptions::default() };
    assert_lists_are_complete("S1", ASSUMPTIONS, &options, is_about_iops);
}
