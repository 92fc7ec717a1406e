//! Warnings of the runs of designs: what a reader of their table must know.

use std::collections::BTreeMap;

use ssdyno_block::counted;
use ssdyno_figures::{RunResult, Warning, WarningKind, common_notes, requests_needed};

use crate::designs::Sampling;
use crate::latencies::needs_run;
use crate::objective::Requirement;
use crate::plan::SweepPlan;
use crate::row::{DesignState, SweepRow, favours};

/// Numbers of designs that a note lists.
const LISTED: usize = 8;

/// The kinds of the warnings of `result` that matter to `plan`, each once.
pub(crate) fn kinds(plan: &SweepPlan, result: &RunResult) -> Vec<WarningKind> {
    // Nearly every design of a short sweep has too few requests for p99.9. A column full of that
    // hides the other warnings, and no reader of a mean or a p99 needs it.
    let figures = plan.objectives.iter().map(|one| one.figure);
    let mut figures = figures.chain(plan.require.iter().map(Requirement::figure));
    let requests = result.requests + result.unanswered;
    let has_few =
        figures.any(|figure| share(figure).is_some_and(|s| requests < requests_needed(s)));
    let matters = |kind: WarningKind| has_few || kind != WarningKind::FewRequests;
    let mut kinds: Vec<WarningKind> = Vec::new();
    for warning in result.warnings.iter().filter(|warning| matters(warning.kind)) {
        if !kinds.contains(&warning.kind) {
            kinds.push(warning.kind);
        }
    }
    kinds
}

/// The warning because of which figures can look better than they are: of several, the one that requires the most writes.
pub(crate) fn flattered_by<'a>(
    warnings: impl IntoIterator<Item = &'a Warning>,
) -> Option<&'a Warning> {
    let with_help = warnings.into_iter().filter(|one| favours(one.kind) && one.help.is_some());
    // Of equals, the first.
    with_help.reduce(
        |most, one| {
            if one.writes_least_bytes > most.writes_least_bytes { one } else { most }
        },
    )
}

/// The share of the requests that a percentile covers; `None` of other figures.
fn share(figure: &str) -> Option<f64> {
    match figure {
        "latency_ns.p50" => Some(0.5),
        "latency_ns.p95" => Some(0.95),
        "latency_ns.p99" => Some(0.99),
        "latency_ns.p99_9" => Some(0.999),
        _ => None,
    }
}

/// The word of a kind, as in JSON.
fn word(kind: WarningKind) -> String {
    let value = serde_json::to_value(kind).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// The kinds of a row in one cell; `None` without warnings.
pub(crate) fn words(row: &SweepRow) -> Option<String> {
    let words: Vec<String> = row.warnings.iter().map(|kind| word(*kind)).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Whether a table of `rows` needs a column of warnings.
pub(crate) fn any(rows: &[SweepRow]) -> bool {
    rows.iter().any(|row| !row.warnings.is_empty())
}

fn done(rows: &[SweepRow]) -> impl Iterator<Item = &SweepRow> {
    rows.iter().filter(|row| row.state == DesignState::Done)
}

/// How many designs with figures look better than they are.
pub(crate) fn unrepresentative(plan: &SweepPlan, rows: &[SweepRow]) -> u64 {
    let is_one =
        |row: &&SweepRow| row.is_unrepresentative() || row.is_open(&plan.objectives, &plan.require);
    done(rows).filter(is_one).count() as u64
}

/// The notes about designs with warnings. Overloaded designs have a note of their own.
pub(crate) fn notes(plan: &SweepPlan, rows: &[SweepRow]) -> Vec<String> {
    // A bisection also loads beyond its answer. What such a design shows does not move the answer.
    let is_answer = |row: &&SweepRow| {
        let value = |bound: &Requirement| row.figure(bound.figure());
        let holds = |bound: &Requirement| value(bound).is_none_or(|value| bound.holds(value));
        plan.sampling != Sampling::Bisection || plan.require.iter().all(holds)
    };
    let flattered = done(rows).filter(|row| row.is_unrepresentative()).filter(is_answer);
    let what = if plan.sampling == Sampling::Bisection {
        "The highest rate may be too high"
    } else if needs_run(&plan.objectives, &plan.require) {
        "The front and the effects leave these designs out"
    } else {
        "All objectives are costs, so these designs are ranked like the others"
    };
    let flattered: Vec<&SweepRow> = flattered.collect();
    // The runs know what would help: a buffer that fills needs other writes than an empty drive, and a volume with credits none.
    let remedy = flattered_by(flattered.iter().filter_map(|row| row.flattered_by.as_ref()));
    let remedy = remedy.and_then(|warning| warning.help.as_deref()).unwrap_or("run longer");
    let remedy = remedy.to_owned();
    let first = listed(flattered.into_iter(), favours).map(|(count, list)| {
        let have = if count == 1 { "design looks" } else { "designs look" };
        format!(
            "{count} {have} better than a longer run would show: {list}. {what}. The remedy for the runs: {remedy}"
        )
    });
    let is_other = |kind: WarningKind| {
        !favours(kind) && !matches!(kind, WarningKind::Overloaded | WarningKind::Unsettled)
    };
    let second = listed(done(rows), is_other).map(|(count, list)| {
        let designs = counted(count, "design has", "designs have");
        format!(
            "{designs} a warning: {list}. Run longer, or leave the warm-up out with `workload.ramp_up`; `ssdyno run` of \
             a design shows its warnings in full"
        )
    });
    let third = listed(done(rows), |kind| kind == WarningKind::Unsettled).map(|(count, list)| {
        let designs = counted(count, "design", "designs");
        format!(
            "garbage collection has not settled in {designs}, {list}: write amplification, latency and rate still change, and \
             the order of the designs can change with them. Run longer, or leave the beginning out with `workload.ramp_up`"
        )
    });
    let failed = done(rows).filter(|row| row.errors > 0).count() as u64;
    // Requests that never completed are in the latencies with their waiting time.
    let covered = match done(rows).any(|row| row.unanswered > 0) {
        true => {
            "rates cover the other requests; in latencies, requests that never completed count with their waiting time, so \
             figures marked ≥ are lower bounds"
        }
        false => "the figures cover the other requests",
    };
    let fourth = (failed > 0).then(|| {
        format!(
            "{} requests that failed, because the plan injects faults: {covered}",
            counted(failed, "design has", "designs have")
        )
    });
    let common = common_notes(done(rows).map(|row| row.notes.as_slice()));
    let common = common.into_iter().map(|note| format!("all runs: {note}"));
    let of_kinds = first.into_iter().chain(third).chain(second).chain(fourth);
    of_kinds.chain(open(plan, rows)).chain(common).collect()
}

/// The note about designs that have only lower bounds of what they are judged by. A bisection counts them as failing.
fn open(plan: &SweepPlan, rows: &[SweepRow]) -> Option<String> {
    let is_open = |row: &&SweepRow| row.is_open(&plan.objectives, &plan.require);
    let designs: Vec<u64> = done(rows).filter(is_open).map(|row| row.design).collect();
    if designs.is_empty() || plan.sampling == Sampling::Bisection {
        return None;
    }
    Some(format!(
        "{} only a lower bound of an objective or of a figure of `require`, because requests never completed: {}. The front \
         and the effects on this figure leave these designs out. Remove the cause, such as `faults`, or run longer",
        counted(designs.len() as u64, "design has", "designs have"),
        numbers(&designs)
    ))
}

/// The first numbers of designs.
fn numbers(designs: &[u64]) -> String {
    let numbers: Vec<String> = designs.iter().take(LISTED).map(u64::to_string).collect();
    let more = if designs.len() > LISTED { ", …" } else { "" };
    numbers.join(", ") + more
}

/// How many of `rows` have a warning of the `wanted` kinds, and these kinds with the designs; `None` without any.
fn listed<'a>(
    rows: impl Iterator<Item = &'a SweepRow>,
    wanted: impl Fn(WarningKind) -> bool,
) -> Option<(u64, String)> {
    let (mut count, mut by_kind) = (0, BTreeMap::<String, Vec<u64>>::new());
    for row in rows {
        let kinds: Vec<WarningKind> =
            row.warnings.iter().copied().filter(|kind| wanted(*kind)).collect();
        count += u64::from(!kinds.is_empty());
        for kind in kinds {
            by_kind.entry(word(kind)).or_default().push(row.design);
        }
    }
    let one = |(word, designs): (&String, &Vec<u64>)| {
        format!("{word} ({}: {})", designs.len(), numbers(designs))
    };
    let list: Vec<String> = by_kind.iter().map(one).collect();
    (count > 0).then(|| (count, list.join("; ")))
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::{KeepGoing, Warning};

    use super::*;
    use crate::row::{Standing, SweepFigure};
    use crate::table::{Cells, SweepTable};
    use crate::{html, text};

    /// The plan injects the faults: the requests that fail are a property of the designs, which have figures.
    #[test]
    fn designs_with_injected_faults_have_figures() {
        let plan = "vary = [\"faults.error=0.001,0.1\"]\nobjectives = [\"iops\"]\n[run]\n\
                    target = \"sim:nvme-tlc\"\nworkload = \"randread\"\nrequests = 5000\n";
        let plan = SweepPlan::from_toml("plan.toml", plan).unwrap();
        let sweep = plan.prepare(&mut ssdyno_session::Unattended).unwrap();
        let (result, failure) = sweep.execute(&mut |_| KeepGoing::Continue).unwrap();
        assert!(failure.is_none(), "{failure:?}");
        let states: Vec<_> = result.rows.iter().map(|row| (row.state, row.errors > 0)).collect();
        assert_eq!(states, [(DesignState::Done, true); 2]);
        let told =
            result.notes.iter().any(|note| note.contains("2 designs have requests that failed"));
        assert!(told, "{:?}", result.notes);
    }

    #[test]
    fn requests_that_never_completed_make_lower_bounds() {
        let row = |unanswered| SweepRow {
            state: DesignState::Done,
            errors: 10,
            unanswered,
            ..SweepRow::new(0, Vec::new(), 1)
        };
        let told = |unanswered| notes(&SweepPlan::default(), &[row(unanswered)]).join("\n");
        assert!(told(10).contains("lower bounds") && !told(10).contains("the figures cover"));
        assert!(told(0).ends_with("the figures cover the other requests"), "{}", told(0));
    }

    /// A fault that no run reached: all designs have the figures of runs without it.
    #[test]
    fn notes_of_all_designs_are_those_of_the_sweep() {
        let row = |state, notes: &[&str]| SweepRow {
            state,
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            ..SweepRow::new(0, Vec::new(), 1)
        };
        let done = |notes: &[&str]| row(DesignState::Done, notes);
        let rows = [done(&["a", "b"]), row(DesignState::Impossible, &[]), done(&["b", "c"])];
        assert_eq!(notes(&SweepPlan::default(), &rows), ["all runs: b"]);
        let plan = "vary = [\"workload.depth=1,2\"]\nobjectives = [\"iops\"]\n[run]\n\
                    target = \"sim:delay-10us\"\nworkload = \"randread\"\nrequests = 1000\n\
                    set = [\"faults.remove_at=100s\"]\n";
        let plan = SweepPlan::from_toml("plan.toml", plan).unwrap();
        let sweep = plan.prepare(&mut ssdyno_session::Unattended).unwrap();
        let (result, _) = sweep.execute(&mut |_| KeepGoing::Continue).unwrap();
        let told = "all runs: faults.remove_at=100s did not happen: the run ended before this time";
        assert!(result.notes.iter().any(|note| note == told), "{:?}", result.notes);
    }

    /// p99 needs 1000 requests, p99.9 10 000.
    #[test]
    fn few_requests_are_those_of_an_objective_or_a_bound() {
        let result = |requests| RunResult {
            requests,
            warnings: vec![Warning::new(WarningKind::FewRequests, "too few requests")],
            ..RunResult::default()
        };
        let is_listed = |figure: &str, requests| {
            let objectives = vec![figure.parse().unwrap()];
            let plan = SweepPlan { objectives, ..SweepPlan::default() };
            !kinds(&plan, &result(requests)).is_empty()
        };
        assert!(is_listed("p99", 999) && !is_listed("p99", 1000));
        assert!(is_listed("p99.9", 9999) && !is_listed("p99.9", 10_000));
        assert!(!is_listed("mean", 10) && !is_listed("iops", 10));
        let require = vec!["p99.9<1ms".parse().unwrap()];
        let plan = SweepPlan { require, ..SweepPlan::default() };
        assert_eq!(kinds(&plan, &result(1000)), [WarningKind::FewRequests]);
    }

    /// An objective that is a lower bound has its note, and the design counts as unrepresentative.
    #[test]
    fn designs_with_lower_bounds_are_listed() {
        let row = |design, is_lower_bound| SweepRow {
            state: DesignState::Done,
            figures: [(
                "latency_ns.mean".to_owned(),
                SweepFigure { value: 1e6, is_lower_bound, ..SweepFigure::default() },
            )]
            .into(),
            ..SweepRow::new(design, Vec::new(), 1)
        };
        // The objective of a plan without others is the mean.
        let (plan, rows) = (SweepPlan::default(), [row(0, false), row(1, true)]);
        let told = notes(&plan, &rows);
        assert!(
            told.len() == 1 && told[0].starts_with("1 design has only a lower bound"),
            "{told:?}"
        );
        assert!(told[0].contains("never completed: 1. The front"), "{told:?}");
        assert_eq!(unrepresentative(&plan, &rows), 1);
        assert_eq!(notes(&plan, &rows[..1]), Vec::<String>::new());
    }

    /// All writes of a short run fit into the larger buffer: its design looks better than a longer run would show. The
    /// smaller one holds 3 % of them at the end.
    #[test]
    fn a_design_that_a_buffer_absorbs_is_on_no_front() {
        let plan = "vary = [\"buffer.size=4MiB,512MiB\"]\nobjectives = [\"p99\", \"cost\"]\n[run]\n\
                    target = \"sim:nvme-tlc\"\nworkload = \"randwrite\"\nrequests = 30000\n";
        let plan = SweepPlan::from_toml("plan.toml", plan).unwrap();
        let sweep = plan.prepare(&mut ssdyno_session::Unattended).unwrap();
        let (result, _) = sweep.execute(&mut |_| KeepGoing::Continue).unwrap();
        let [small, large] = result.rows.as_slice() else { panic!("{:?}", result.rows) };
        assert!(large.warnings.contains(&WarningKind::NotExhausted), "{large:?}");
        assert_eq!(large.standing, Some(Standing::Unrepresentative), "{large:?}");
        assert_eq!(large.lasting_figure("latency_ns.p99"), None);
        assert!(large.lasting_figure("cost").is_some());
        assert_ne!(small.standing, Some(Standing::Unrepresentative), "{small:?}");
        assert_eq!(result.unrepresentative, 1);
        for told in [text(&result, 5), html(&result, &|_| None)] {
            assert!(told.contains("1 design looks better than a longer run would show"), "{told}");
            assert!(told.contains("not_exhausted (1: 1"), "{told}");
            // By hand: the buffer of 512 MiB holds 5 % of 10 GiB.
            assert!(told.contains("The remedy for the runs: write at least 10GiB"), "{told}");
            assert!(!told.contains("precondition"), "{told}");
        }
        let table = SweepTable::of(&result);
        let (_, cells) = table.columns.iter().find(|(name, _)| name == "warnings").unwrap();
        let Cells::Texts(cells) = cells else { panic!("{cells:?}") };
        assert!(cells[1].as_ref().is_some_and(|text| text.contains("not_exhausted")));
    }

    #[test]
    fn the_remedy_is_that_of_the_design_that_needs_the_most_writes() {
        let row = |design, least: Option<u64>| SweepRow {
            state: DesignState::Done,
            warnings: vec![WarningKind::NotExhausted],
            flattered_by: Some(Warning {
                writes_least_bytes: least,
                ..Warning::new(WarningKind::NotExhausted, "").with_help(format!("help {design}"))
            }),
            ..SweepRow::new(design, Vec::new(), 1)
        };
        let told = notes(&SweepPlan::default(), &[row(0, Some(1)), row(1, Some(7)), row(2, None)]);
        assert!(told[0].ends_with("The remedy for the runs: help 1"), "{told:?}");
    }

    #[test]
    fn kinds_are_listed_with_their_designs() {
        let row = |design, warnings: &[WarningKind]| SweepRow {
            state: DesignState::Done,
            warnings: warnings.to_vec(),
            ..SweepRow::new(design, Vec::new(), 1)
        };
        let rows: Vec<SweepRow> = (0..10).map(|at| row(at, &[WarningKind::NoMedia])).collect();
        let told = notes(&SweepPlan::default(), &rows);
        assert!(told[0].contains("10 designs look better"), "{told:?}");
        assert!(told[0].contains("no_media (10: 0, 1, 2, 3, 4, 5, 6, 7, …)"), "{told:?}");
        // A warning that does not flatter leaves the design in its place.
        let rows = [row(0, &[WarningKind::WarmUp, WarningKind::Overloaded])];
        let told = notes(&SweepPlan::default(), &rows);
        assert!(told.len() == 1 && told[0].contains("1 design has a warning: warm_up (1: 0)"));
        assert!(!rows[0].is_unrepresentative());
        assert_eq!(words(&rows[0]).as_deref(), Some("warm_up overloaded"));
    }
}
