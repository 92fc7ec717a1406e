//! S0 re-run: what holds of its claims, and what cannot.

#![allow(clippy::unwrap_used, reason = "support of tests: what fails here fails the test")]

use ssdyno_papers::{ClaimState, Flow, Options, Report, Vary, run};

fn rerun(selector: &str, options: &Options) -> Report {
    run(selector, options, &mut |_| Flow::Continue).unwrap_or_else(|error| panic!("{error}"))
}

/// Claims of the paper that queueing theory contradicts (S0-49, S0-50), or that our runs do
/// (`papers/s0/notes.md` says why).
const DO_NOT_HOLD: [&str; 3] =
    ["more_threads_than_a_block_suffice", "latency_rises_exponentially", "dynamic_is_never_behind"];

/// Claims whose figures are too near to one another, or that follow from what is assumed.
const UNDECIDED: [&str; 6] = [
    "reads_are_faster_than_writes",
    "one_engine_is_held_up",
    "a_second_engine_helps",
    "maximum_is_largest_block_complete",
    "prefetch_pays_more_on_gen3",
    "prefetch_pays_more_on_gen3_for_reads",
];

fn assert_claims(report: &Report) {
    for claim in &report.claims {
        let name = claim.id.strip_prefix("S0/claims/").unwrap();
        // Where nothing was varied, all that may depend on a value are undecided.
        let varied = !claim.evidence.ends_with("assumed values were not varied");
        let expected = match name {
            _ if name.starts_with("disk_") => None,
            _ if !varied || UNDECIDED.contains(&name) => Some(ClaimState::Undecided),
            _ if DO_NOT_HOLD.contains(&name) => Some(ClaimState::DoesNotHold),
            _ => Some(ClaimState::Holds),
        };
        assert_eq!(claim.state, expected, "{name}: {}", claim.evidence);
        assert_eq!(claim.holds, claim.state.and_then(ClaimState::decided), "{name}");
    }
    assert!(report.mismatches().next().is_none());
}

/// 2.4 % and 0.1 % below another way of response is neither the maximum nor surely below it.
#[test]
fn a_maximum_within_the_slack_is_undecided() {
    let options = Options { requests: Some(2000), vary: Vary::None, ..Options::default() };
    let report = rerun("S0/claims/maximum_is_largest_block_complete", &options);
    let [claim] = &report.claims[..] else { panic!("{:?}", report.claims) };
    assert_eq!((claim.state, claim.holds), (Some(ClaimState::Undecided), None));
    assert!(claim.evidence.contains("% of the best of the others"), "{}", claim.evidence);
}

#[test]
fn short_runs_give_every_figure_and_the_same_answers() {
    let options = Options { requests: Some(2000), vary: Vary::None, ..Options::default() };
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
    let options =
        Options { requests: Some(500), threads: Some(1), vary: Vary::None, ..Options::default() };
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

/// The lists of claims in `assumptions.toml` are complete: no other claim has another answer with a
/// value elsewhere in its range. Little's law is a law, whose 1 % is for runs of full length.
#[test]
#[ignore = "simulates 40 million requests: for soak runs"]
fn values_bear_on_no_other_claim() {
    let options = Options { requests: Some(2000), vary: Vary::All, ..Options::default() };
    let report = rerun("S0", &options);
    let table: toml::Table =
        toml::from_str(include_str!("../../../papers/s0/assumptions.toml")).unwrap();
    let listed = |value: &str, claim: &str| {
        let all = table["values"].as_array().unwrap();
        let own = all.iter().find(|own| own["name"].as_str() == Some(value)).unwrap();
        own["claims"].as_array().unwrap().iter().any(|one| one.as_str() == Some(claim))
    };
    for claim in report.claims.iter().filter(|claim| claim.id != "S0/claims/littles_law") {
        let name = claim.id.strip_prefix("S0/claims/").unwrap();
        for value in claim.assumptions.iter().filter(|assumption| assumption.decides) {
            assert!(listed(&value.name, name), "{name}: {}: {}", value.name, value.ranges());
        }
    }
}

#[test]
#[ignore = "simulates 40 million requests: for soak runs"]
fn full_runs_give_the_same_answers() {
    let report = rerun("S0", &Options::default());
    println!("{}", report.text());
    assert_claims(&report);
}
