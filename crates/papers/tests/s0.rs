//! S0 re-run: what holds of its claims, and what cannot.

#![allow(clippy::unwrap_used, reason = "support of tests: what fails here fails the test")]

use ssdyno_papers::{Flow, Options, Report, run};

fn rerun(selector: &str, options: &Options) -> Report {
    run(selector, options, &mut |_| Flow::Continue).unwrap_or_else(|error| panic!("{error}"))
}

/// Claims of the paper that queueing theory contradicts (S0-49, S0-50), or that our runs do
/// (`papers/s0/notes.md` says why).
const DO_NOT_HOLD: [&str; 6] = [
    "one_engine_is_held_up",
    "maximum_is_largest_block_complete",
    "more_threads_than_a_block_suffice",
    "latency_rises_exponentially",
    "dynamic_is_never_behind",
    "prefetch_pays_more_on_gen3_for_reads",
];

fn assert_claims(report: &Report) {
    for claim in &report.claims {
        let name = claim.id.strip_prefix("S0/claims/").unwrap();
        let waits = name.starts_with("disk_");
        let expected = (!waits).then_some(!DO_NOT_HOLD.contains(&name));
        assert_eq!(claim.holds, expected, "{name}: {}", claim.evidence);
    }
    assert!(report.mismatches().next().is_none());
}

#[test]
fn short_runs_give_every_figure_and_the_same_answers() {
    let options = Options { requests: Some(2000), ..Options::default() };
    let report = rerun("S0", &options);
    println!("{}", report.text());
    assert_eq!(report.tables.len(), 7);
    assert!(report.figures.iter().all(|figure| !figure.svg.contains("not run")));
    assert!(report.tables.iter().all(|t| t.rows.iter().all(|r| r.len() == t.columns.len())));
    assert!(!report.partial);
    assert_claims(&report);
}

#[test]
fn parts_can_be_selected_and_repeat_to_the_bit() {
    let options = Options { requests: Some(500), threads: Some(1), ..Options::default() };
    let report = rerun("S0/mixed", &options);
    assert_eq!((report.figures.len(), report.cells.len()), (1, 0));
    assert_eq!(report.runs.len(), 5 * 5);
    let again = rerun("S0/mixed", &Options { threads: Some(2), ..options.clone() });
    assert_eq!(report.tables, again.tables);
    assert_eq!(rerun("S0/figure7/curve", &options).figures.len(), 3);
    assert_eq!(rerun("S0/claims/mixed_lies_between", &options).claims.len(), 1);
    assert_eq!(rerun("S0/arithmetic", &options).cells.len(), 4);
    assert!(run("S0/figure9", &options, &mut |_| Flow::Continue).is_err());
}

#[test]
#[ignore = "simulates 12 million requests: for soak runs"]
fn full_runs_give_the_same_answers() {
    let report = rerun("S0", &Options::default());
    println!("{}", report.text());
    assert_claims(&report);
}
