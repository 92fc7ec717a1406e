//! S0 re-run: what holds of its claims, and what cannot.

use crate::common;

use common::{assert_as_documented, rerun, unlisted};
use ssdyno_papers::{ClaimState, KeepGoing, PapersOptions, Vary, run};

/// 2.4 % and 0.1 % below another way of response is neither the maximum nor surely below it.
#[test]
fn a_maximum_within_the_slack_is_undecided() {
    let options =
        PapersOptions { requests: Some(2000), vary: Vary::None, ..PapersOptions::default() };
    let report = rerun("S0/claims/maximum_is_largest_block_complete", &options);
    let [claim] = &report.claims[..] else { panic!("{:?}", report.claims) };
    assert_eq!((claim.state, claim.holds), (Some(ClaimState::Undecided), None));
    assert!(claim.evidence.contains("% of the best of the others"), "{}", claim.evidence);
}

#[test]
fn short_runs_give_every_figure_and_the_same_answers() {
    let options =
        PapersOptions { requests: Some(2000), vary: Vary::None, ..PapersOptions::default() };
    let report = rerun("S0", &options);
    println!("{}", report.text());
    assert_eq!(report.tables.len(), 7);
    assert!(report.figures.iter().all(|figure| !figure.svg.contains("not run")));
    assert!(report.tables.iter().all(|t| t.rows.iter().all(|r| r.len() == t.columns.len())));
    assert!(!report.partial);
    assert_as_documented(&report);
}

#[test]
fn parts_can_be_selected_and_repeat_to_the_bit() {
    let options = PapersOptions {
        requests: Some(500),
        threads: Some(1),
        vary: Vary::None,
        ..PapersOptions::default()
    };
    let report = rerun("S0/mixed", &options);
    assert_eq!((report.figures.len(), report.cells.len()), (1, 0));
    assert_eq!(report.runs.len(), 5 * 5);
    let again = rerun("S0/mixed", &PapersOptions { threads: Some(2), ..options.clone() });
    assert_eq!(report.tables, again.tables);
    assert_eq!(rerun("S0/figure7/curve", &options).figures.len(), 3);
    assert_eq!(rerun("S0/claims/mixed_lies_between", &options).claims.len(), 1);
    assert_eq!(rerun("S0/arithmetic", &options).cells.len(), 4);
    assert!(run("S0/figure9", &options, &mut |_| KeepGoing::Continue).is_err());
}

/// The lists of claims in `assumptions.toml` are complete: no other claim has another answer with a
/// value elsewhere in its range. Little's law is an invariant, whose 1 % is for runs of full length.
#[test]
#[ignore = "simulates 40 million requests: for soak runs"]
fn values_bear_on_no_other_claim() {
    let options =
        PapersOptions { requests: Some(2000), vary: Vary::All, ..PapersOptions::default() };
    let mut report = rerun("S0", &options);
    report.claims.retain(|claim| claim.id != "S0/claims/littles_law");
    let wrong = unlisted(&report, include_str!("../../../../papers/s0/assumptions.toml"));
    assert!(wrong.is_empty(), "not in assumptions.toml:\n{}", wrong.join("\n"));
}

#[test]
#[ignore = "simulates 40 million requests: for soak runs"]
fn full_runs_give_the_same_answers() {
    let report = rerun("S0", &PapersOptions::default());
    println!("{}", report.text());
    assert_as_documented(&report);
}
