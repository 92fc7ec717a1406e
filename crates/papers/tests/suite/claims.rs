//! `docs/claims.md` says what runs say: of claims that take a moment here, of all in the soak.

use crate::common;

use common::{assert_as_documented, documented, rerun};
use ssdyno_papers::{ClaimState, PapersOptions, selectable};

/// Every row is about a claim that there is, and names what it follows from.
#[test]
fn the_table_is_about_claims_that_there_are() {
    let all: Vec<String> = selectable().unwrap().into_iter().map(|(id, _)| id).collect();
    let table = documented();
    for (id, row) in &table {
        assert!(all.contains(id), "there is no {id}");
        assert!(!row.why.is_empty() && row.state != Some(ClaimState::Holds), "{id}: {}", row.why);
    }
    // Claims that hold need no row: something is read at all.
    assert!(table.len() > 20, "{} rows", table.len());
}

/// Claims whose runs, with every value that bears on them, take some seconds.
#[test]
fn the_table_has_the_states_that_runs_give() {
    let whole = PapersOptions::default();
    for selector in [
        "S3/claims/totals_are_sums",
        "S4/claims/iscsi_rises_then_falls",
        "S4/claims/iscsi_falls_by_a_fifth_when_fitted",
        "S4/claims/iscsi_target_is_the_bottleneck",
        "S4/claims/two_spek_workers_saturate",
        "S4/claims/zones",
        "S1/claims/three_times_the_disks",
    ] {
        let report = rerun(selector, &whole);
        println!("{}", report.text());
        assert!(!report.claims.is_empty(), "{selector}");
        assert_as_documented(&report);
    }
}
