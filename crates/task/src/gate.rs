//! Bounds that figures must keep, judged by their intervals: what a build server needs of a result.

use std::str::FromStr;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::counted;
use ssdyno_block::units::Percent;
use ssdyno_figures::{Comparison, Interval, RepeatedRuns, RunResult, WarningKind};
use ssdyno_report::{HeadlineFigure, figure_format, headline_figures, repeated_figures};
use ssdyno_session::{Failure, FailureKind};
use ssdyno_sweep::{Objective, Requirement};

/// Verdict on a bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// The whole interval of the figure meets the bound.
    Holds,
    /// No value of the interval meets the bound.
    Broken,
    /// The bound is within the interval, or the figure is unknown.
    Undecided,
}

/// A bound and the verdict of a result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// The bound, such as `p99<2ms`, or `iops at most 5% slower`.
    pub bound: String,
    /// Verdict on the bound.
    pub verdict: GateVerdict,
    /// The figure with its interval, or the reason why it is unknown.
    pub found: String,
    /// Reason why the bound is undecided although the figure meets it: errors, an early end, or a warning that the
    /// figures can look better than they are. Left out without such a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

impl Gate {
    /// The bound and what was found, in one line.
    pub fn line(&self) -> String {
        let verdict = match self.verdict {
            GateVerdict::Holds => "holds",
            GateVerdict::Broken => "BROKEN",
            GateVerdict::Undecided => "UNDECIDED",
        };
        format!("{}: {verdict} ({})", self.bound, self.reason())
    }

    /// What was found, and the doubt about it.
    fn reason(&self) -> String {
        match &self.doubt {
            Some(doubt) => format!("{}, but {doubt}", self.found),
            None => self.found.clone(),
        }
    }
}

/// How much slower a run may be than the one that it is compared with, such as `5%` or `p99=10%`.
#[derive(Clone, PartialEq, Debug)]
pub struct SlowerLimit {
    /// Which figure; `None`: the request rate and the mean latency.
    figure: Option<Objective>,
    share: Percent,
}

/// What `5%` alone is about.
const USUAL: [&str; 2] = ["iops", "latency_ns.mean"];

impl FromStr for SlowerLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<SlowerLimit, String> {
        // A share alone is about the two figures that a build server usually
        // watches. Other figures are named one by one.
        let (figure, share) = match text.split_once('=') {
            Some((figure, share)) => (Some(figure.parse::<Objective>()?), share),
            None => (None, text),
        };
        let share = share
            .parse::<Percent>()
            .map_err(|_| format!("`{text}` is not a percentage such as 5% or p99=10%"))?;
        match figure {
            // A cost follows from the design, and no comparison has it. The limit
            // would be undecided in every build.
            Some(figure) if figure.is_of_design() => {
                Err(format!("a comparison has no `{}`: use a figure such as p99", figure.figure))
            }
            _ => Ok(SlowerLimit { figure, share }),
        }
    }
}

/// Judges `bounds` by the figures of `result` and their intervals. A figure without an interval is undecided.
pub fn requirements(bounds: &[Requirement], result: &RunResult) -> Vec<Gate> {
    let whole = result.errors == 0 && !result.partial;
    judged(bounds, &headline_figures(result), &Doubts::of(std::slice::from_ref(result), whole))
}

/// Judges `bounds` by the figures over the runs of `side` and their intervals between runs.
pub fn repeated_requirements(bounds: &[Requirement], side: &RepeatedRuns) -> Vec<Gate> {
    let whole = side.runs.iter().all(|run| run.errors == 0 && !run.partial);
    // Every round must have run to its end. A side with fewer rounds than requested lost some of them for a reason, and
    // that reason may have changed its figures, too.
    let whole = whole && side.runs.len() == side.asked as usize;
    judged(bounds, &repeated_figures(side), &Doubts::of(&side.runs, whole))
}

/// Why a bound that figures keep is not known to hold.
struct Doubts<'a> {
    of_all: Option<&'a str>,
    of_latencies: Option<&'a str>,
}

impl Doubts<'_> {
    /// The doubts about `runs`; `whole`: they are the runs that the user requested.
    fn of(runs: &[RunResult], whole: bool) -> Doubts<'_> {
        // With errors or an early end, the figures may keep the bound for that reason alone. The same applies to a run that a
        // buffer, free blocks or memory carried.
        let of_all = match whole {
            true => runs.iter().find_map(RunResult::flattered_by).map(|it| it.message.as_str()),
            false => Some(NOT_WHOLE),
        };
        // The queue of an overloaded target grows without limit: a longer run breaks every bound.
        let mut warnings = runs.iter().flat_map(|run| &run.warnings);
        let overload = warnings.find(|it| it.kind == WarningKind::Overloaded);
        Doubts { of_all, of_latencies: overload.map(|it| it.message.as_str()) }
    }

    /// The doubt about the figure `name`.
    fn about(&self, name: &str) -> Option<&str> {
        self.of_all.or(self.of_latencies.filter(|_| name.starts_with("latency_ns.")))
    }
}

/// The doubt about a run that is not the run that the user requested.
const NOT_WHOLE: &str = "the run has errors or is partial";

/// The end of the text about a figure that is not there.
const ABSENT: &str = "no such figure";

/// Why none of `figures` is `name`.
fn absent(name: &str, figures: &[HeadlineFigure]) -> String {
    let has_requests = figures.iter().any(|figure| figure.name == "latency_ns.mean");
    match name.starts_with("energy_") && has_requests {
        true => format!("the device has no energy model: {ABSENT}"),
        false => format!("the run has {ABSENT}"),
    }
}

/// Judges `bounds` by `figures`; none of them holds with one of the `doubts` about its figure.
fn judged(bounds: &[Requirement], figures: &[HeadlineFigure], doubts: &Doubts<'_>) -> Vec<Gate> {
    let judge = |bound: &Requirement| {
        let found = figures.iter().find(|figure| figure.name == bound.figure());
        let (verdict, found) = match found {
            None => (GateVerdict::Undecided, absent(bound.figure(), figures)),
            Some(figure) => {
                let format = figure_format(figure.name);
                // Every figure varies between seeds. Without an interval nobody knows by how much, and a
                // value near the bound would pass or fail by chance.
                match figure.interval {
                    Some(interval) => (by_interval(bound, &interval), shown(&interval, format)),
                    None => {
                        let value = figure.text();
                        (GateVerdict::Undecided, format!("{value}, without an interval"))
                    }
                }
            }
        };
        // A device that refuses requests can be fast, and so can one that spares its media. A bound that holds
        // then says nothing about the work that was asked for. A broken bound stays broken.
        let doubt = doubts.about(bound.figure()).filter(|_| verdict == GateVerdict::Holds);
        let doubt = doubt.map(str::to_owned);
        let verdict = if doubt.is_some() { GateVerdict::Undecided } else { verdict };
        Gate { bound: bound.to_string(), verdict, found, doubt }
    };
    bounds.iter().map(judge).collect()
}

fn by_interval(bound: &Requirement, interval: &Interval) -> GateVerdict {
    // The bound must hold at both ends of the interval. One end alone means
    // that the truth may lie on either side.
    match (bound.holds(interval.low), bound.holds(interval.high)) {
        (true, true) => GateVerdict::Holds,
        (false, false) => GateVerdict::Broken,
        _ => GateVerdict::Undecided,
    }
}

fn shown(interval: &Interval, format: fn(f64) -> String) -> String {
    let bounds = match interval.upper() {
        Some(high) => format!("{} to {}", format(interval.low), format(high)),
        // A percentile of few requests has no upper bound, which would be shown as `- s`.
        None => format!("at least {}", format(interval.low)),
    };
    format!("{}, {bounds} with 95 % confidence", format(interval.estimate))
}

/// Judges by `comparison` whether the second run is slower than `limits` allow.
pub fn not_slower(limits: &[SlowerLimit], comparison: &Comparison) -> Vec<Gate> {
    let mut gates = Vec::new();
    for SlowerLimit { figure, share } in limits {
        let figures = figure.map_or(USUAL.to_vec(), |figure| vec![figure.figure]);
        // Ratios above 1 mean faster. A run that is five percent slower takes 1.05 times
        // as long, so the smallest ratio is 1 / 1.05.
        let least = 1.0 / (1.0 + share.0 / 100.0);
        for name in figures {
            let found = comparison.figures.iter().find(|one| one.figure == name);
            let (verdict, found) = match found {
                // Runs that cannot be compared have no ratio that means anything. The gate says why, so that
                // the build does not fail for an unknown reason.
                _ if !comparison.not_comparable.is_empty() => {
                    // The verdict of the comparison has the reasons: with them, each line of a gate would be as long.
                    (GateVerdict::Undecided, "the runs are not comparable".to_owned())
                }
                None => (GateVerdict::Undecided, format!("one of the runs has {ABSENT}")),
                Some(one) => {
                    let verdict = match &one.interval {
                        // Simulations with the same seed give the same figure to the last digit. There is nothing
                        // uncertain then, although no interval exists.
                        _ if one.first == one.second && !one.second_is_lower_bound => {
                            GateVerdict::Holds
                        }
                        Some(interval) if interval.low >= least => GateVerdict::Holds,
                        Some(interval) if interval.high < least => GateVerdict::Broken,
                        _ => GateVerdict::Undecided,
                    };
                    (verdict, one.text.clone())
                }
            };
            let bound = format!("{}: {name} at most {share} slower", comparison.second);
            gates.push(Gate { bound, verdict, found, doubt: None });
        }
    }
    gates
}

/// Why a run is not a success by its bounds: one is broken, or else one is undecided.
pub fn gate_failure(gates: &[Gate]) -> Option<Failure> {
    let of = |verdict| gates.iter().filter(move |gate| gate.verdict == verdict);
    let lines = |verdict| {
        let lines = of(verdict).map(|gate| format!("{} ({})", gate.bound, gate.reason()));
        lines.collect::<Vec<_>>().join("; ")
    };
    // A broken bound comes first: more time decides an undecided bound,
    // but it does not repair a broken one.
    let broken = of(GateVerdict::Broken).count() as u64;
    if broken > 0 {
        let (count, lines) =
            (counted(broken, "bound is", "bounds are"), lines(GateVerdict::Broken));
        return Some(Failure::failed(format!("{count} broken: {lines}")));
    }
    let incomparable =
        of(GateVerdict::Undecided).any(|gate| gate.found.ends_with("not comparable"));
    let doubted = of(GateVerdict::Undecided).any(|gate| gate.doubt.is_some());
    let absent = of(GateVerdict::Undecided).all(|gate| gate.found.ends_with(ABSENT));
    let undecided = of(GateVerdict::Undecided).count() as u64;
    if undecided == 0 {
        return None;
    }
    let (count, lines) =
        (counted(undecided, "bound is", "bounds are"), lines(GateVerdict::Undecided));
    let failure = Failure::new(FailureKind::Undecided, format!("{count} undecided: {lines}"));
    Some(failure.with_help(match doubted {
        _ if absent => "bound a figure that the run has: reads have no write amplification, for example",
        true => "follow the warnings above the figures: run longer, fill the drive first, or remove the cause of the errors",
        false if incomparable => "correct the reasons why the runs are not comparable",
        false => "run longer, until the interval excludes the bound",
    }))
}

/// The gates as a JUnit report of one suite: a bound that is broken is a failure, one that is undecided an error.
pub fn junit(suite: &str, gates: &[Gate]) -> Result<String, Failure> {
    let mut cases = TestSuite::new(suite);
    for gate in gates {
        // JUnit distinguishes failures and errors. A build server can therefore treat an
        // undecided bound in another way than a broken one.
        let mut status = match gate.verdict {
            GateVerdict::Holds => TestCaseStatus::success(),
            GateVerdict::Broken => TestCaseStatus::non_success(NonSuccessKind::Failure),
            GateVerdict::Undecided => TestCaseStatus::non_success(NonSuccessKind::Error),
        };
        if gate.verdict != GateVerdict::Holds {
            status.set_message(gate.line());
        }
        let mut case = TestCase::new(gate.bound.as_str(), status);
        case.set_classname(suite);
        cases.add_test_case(case);
    }
    let mut report = Report::new("ssdyno");
    report.add_test_suite(cases);
    report
        .to_string()
        .map_err(|error| Failure::failed(format!("cannot create the JUnit report: {error}")))
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::{
        Confidence, Energy, FigureComparison, Latency, LatencyAtMost, LatencyByOp,
        LatencyIntervals, LatencyIntervalsByOp, Verdict, Warning,
    };

    use super::*;

    fn interval(low: f64, high: f64) -> Interval {
        Interval { estimate: (low + high) / 2.0, low, high, level: 0.95 }
    }

    #[test]
    fn a_bound_is_judged_by_the_interval() {
        let confidence = Confidence { iops: Some(interval(90e3, 110e3)), ..Confidence::default() };
        let result =
            RunResult { iops: 100e3, confidence: Some(confidence), ..RunResult::default() };
        for (bound, verdict) in [
            ("iops>89k", GateVerdict::Holds),
            ("iops>95k", GateVerdict::Undecided),
            ("iops>111k", GateVerdict::Broken),
            ("iops<111k", GateVerdict::Holds),
            // No latency: nothing is known.
            ("p99<2ms", GateVerdict::Undecided),
        ] {
            let gates = requirements(&[bound.parse().unwrap()], &result);
            assert_eq!(gates[0].verdict, verdict, "{gates:?}");
            let kind = gate_failure(&gates).map(|failure| failure.kind);
            let expected = match verdict {
                GateVerdict::Holds => None,
                GateVerdict::Broken => Some(FailureKind::Failed),
                GateVerdict::Undecided => Some(FailureKind::Undecided),
            };
            assert_eq!(kind, expected);
        }
        // 20 000 requests that cleaned no block say nothing of the energy of the next 200 000.
        let energy = Energy { per_request: Some(1e-4), ..Energy::default() };
        let fresh = RunResult { energy_joules: Some(energy), ..result.clone() };
        let gates = requirements(&["energy_per_request<1".parse().unwrap()], &fresh);
        assert_eq!(gates[0].verdict, GateVerdict::Undecided, "{gates:?}");
        // A device that refuses requests is fast.
        let refused = RunResult { errors: 1, ..result };
        let gates = requirements(&["iops>89k".parse().unwrap()], &refused);
        assert_eq!(gates[0].verdict, GateVerdict::Undecided);
    }

    /// Writes that only fill free blocks are fast: the bound is undecided, and each report gives the reason.
    #[test]
    fn a_bound_that_flattered_figures_meet_is_undecided() {
        let confidence = Confidence { iops: Some(interval(90e3, 110e3)), ..Confidence::default() };
        let result = |kind| RunResult {
            iops: 100e3,
            confidence: Some(confidence.clone()),
            warnings: vec![Warning::new(kind, "no block was erased")],
            ..RunResult::default()
        };
        let judge =
            |bound: &str, kind| requirements(&[bound.parse().unwrap()], &result(kind)).remove(0);
        let gate = judge("iops>89k", WarningKind::NotExhausted);
        assert_eq!(gate.verdict, GateVerdict::Undecided);
        assert!(gate.line().ends_with("confidence, but no block was erased)"), "{}", gate.line());
        let text = junit("run", std::slice::from_ref(&gate)).unwrap();
        assert!(text.contains("errors=\"1\"") && text.contains("no block was erased"), "{text}");
        assert_eq!(serde_json::to_value(&gate).unwrap()["doubt"], "no block was erased");
        let failure = gate_failure(&[gate]).unwrap();
        assert_eq!(failure.kind, FailureKind::Undecided);
        assert_eq!(judge("iops>111k", WarningKind::NotExhausted).verdict, GateVerdict::Broken);
        assert_eq!(judge("iops>89k", WarningKind::FewRequests).verdict, GateVerdict::Holds);
    }

    /// The queue of an overloaded target grows: its latencies depend on the length of the run, its rate does not.
    #[test]
    fn a_latency_of_an_overloaded_run_keeps_no_bound() {
        let latency = ssdyno_figures::Latency { mean: 1e6, ..Default::default() };
        let means =
            LatencyIntervals { mean: Some(interval(0.9e6, 1.1e6)), ..LatencyIntervals::default() };
        let mut result = RunResult {
            iops: 100e3,
            latency_ns: Some(ssdyno_figures::LatencyByOp { all: latency, ..Default::default() }),
            confidence: Some(Confidence {
                iops: Some(interval(90e3, 110e3)),
                latency_ns: LatencyIntervalsByOp { all: means, ..Default::default() },
                ..Confidence::default()
            }),
            ..RunResult::default()
        };
        let verdicts = |result: &RunResult| {
            ["mean<2ms", "iops>89k"]
                .map(|bound| requirements(&[bound.parse().unwrap()], result)[0].verdict)
        };
        assert_eq!(verdicts(&result), [GateVerdict::Holds; 2]);
        result.warnings.push(Warning::new(WarningKind::Overloaded, "overloaded 1.7x"));
        assert_eq!(verdicts(&result), [GateVerdict::Undecided, GateVerdict::Holds]);
    }

    #[test]
    fn a_failure_lists_all_broken_bounds() {
        let gate = |bound: &str| Gate {
            bound: bound.to_owned(),
            verdict: GateVerdict::Broken,
            found: "found".to_owned(),
            doubt: None,
        };
        let failure = gate_failure(&[gate("p99<33ms"), gate("iops>1M")]).unwrap();
        let text = failure.to_string();
        assert!(text.contains("2 bounds are broken: p99<33ms (found); iops>1M (found)"), "{text}");
    }

    #[test]
    fn an_interval_without_an_upper_bound_has_its_lower_one() {
        let format = ssdyno_report::figure_format("latency_ns.p99");
        let open = Interval { high: f64::INFINITY, ..interval(126.8e6, 150e6) };
        assert_eq!(shown(&open, format), "138.4 ms, at least 126.8 ms with 95 % confidence");
        let closed = shown(&interval(126.8e6, 150e6), format);
        assert_eq!(closed, "138.4 ms, 126.8 ms to 150.0 ms with 95 % confidence");
    }

    /// One run alone has no interval here: what judges is the spread between the runs.
    #[test]
    fn a_bound_of_repeated_runs_is_judged_by_their_spread() {
        let runs: Vec<RunResult> =
            [99e3, 100e3, 101e3].map(|iops| RunResult { iops, ..RunResult::default() }).to_vec();
        let figures = ssdyno_report::spread(&runs);
        let side = RepeatedRuns { name: "a".to_owned(), asked: 3, runs, figures };
        let verdict = |bound: &str, side: &RepeatedRuns| {
            repeated_requirements(&[bound.parse().unwrap()], side)[0].verdict
        };
        // 100k, more or less 4.303 times 1k / sqrt 3: 97.5k to 102.5k.
        assert_eq!(verdict("iops>97k", &side), GateVerdict::Holds);
        assert_eq!(verdict("iops>98k", &side), GateVerdict::Undecided);
        assert_eq!(verdict("iops>103k", &side), GateVerdict::Broken);
        let cut_short = RepeatedRuns { asked: 4, ..side };
        assert_eq!(verdict("iops>97k", &cut_short), GateVerdict::Undecided);
    }

    /// More requests give reads no write amplification.
    #[test]
    fn a_figure_that_the_run_lacks_asks_for_another_bound() {
        let result = RunResult { requests: 1000, iops: 1e5, ..RunResult::default() };
        let gates = requirements(&["wa<6".parse().unwrap()], &result);
        let failure = gate_failure(&gates).unwrap();
        assert_eq!(failure.kind, FailureKind::Undecided);
        assert!(failure.help.as_ref().unwrap().contains("bound a figure"), "{failure:?}");
    }

    #[test]
    fn a_bound_of_energy_needs_an_energy_model() {
        let latency = ssdyno_figures::LatencyByOp::default();
        let result = RunResult {
            requests: 1000,
            iops: 1e5,
            latency_ns: Some(latency),
            ..RunResult::default()
        };
        let gates = requirements(&["energy_per_request<1m".parse().unwrap()], &result);
        let failure = gate_failure(&gates).unwrap();
        assert!(failure.message.contains("the device has no energy model"), "{failure:?}");
        assert!(failure.help.as_ref().unwrap().contains("bound a figure"), "{failure:?}");
    }

    /// A mean of 1 ms that contains requests which never completed may be any greater time.
    #[test]
    fn a_lower_bound_never_keeps_a_bound_from_above() {
        let judge = |bound: &str, mean: Option<Interval>| {
            let all = Latency {
                mean: 1e6,
                at_most: Some(LatencyAtMost::default()),
                ..Latency::default()
            };
            let latency_ns = LatencyIntervalsByOp {
                all: LatencyIntervals { mean, ..Default::default() },
                ..Default::default()
            };
            let result = RunResult {
                requests: 1000,
                latency_ns: Some(LatencyByOp { all, ..LatencyByOp::default() }),
                confidence: Some(Confidence { latency_ns, ..Confidence::default() }),
                ..RunResult::default()
            };
            requirements(&[bound.parse().unwrap()], &result).remove(0)
        };
        let open = Interval { high: f64::INFINITY, ..interval(0.9e6, 1.1e6) };
        assert_eq!(judge("mean<2ms", Some(open)).verdict, GateVerdict::Undecided);
        assert_eq!(judge("mean<500us", Some(open)).verdict, GateVerdict::Broken);
        assert_eq!(judge("mean>500us", Some(open)).verdict, GateVerdict::Holds);
        assert_eq!(judge("mean>2ms", Some(open)).verdict, GateVerdict::Undecided);
        let gate = judge("mean<2ms", None);
        assert_eq!(gate.verdict, GateVerdict::Undecided);
        assert_eq!(gate.found, "≥ 1.000 ms, without an interval");
    }

    #[test]
    fn slower_is_judged_by_the_interval_of_the_ratio() {
        let figure = |name: &str, low, high| FigureComparison {
            figure: name.to_owned(),
            first: 1.0,
            second: 2.0,
            first_is_lower_bound: false,
            second_is_lower_bound: false,
            ratio: (low + high) / 2.0,
            interval: Some(interval(low, high)),
            verdict: Verdict::CannotTell,
            text: String::new(),
        };
        let comparison = Comparison {
            changed_provenance: Vec::new(),
            figures: vec![figure("iops", 0.94, 0.97), figure("latency_ns.p99", 0.5, 0.9)],
            ..serde_json::from_str(r#"{"first": "a", "second": "b", "figures": [], "notes": []}"#)
                .unwrap()
        };
        for (limit, verdict) in [
            ("iops=10%", GateVerdict::Holds),
            ("iops=5%", GateVerdict::Undecided),
            ("iops=1%", GateVerdict::Broken),
            ("p99=10%", GateVerdict::Broken),
        ] {
            let gates = not_slower(&[limit.parse().unwrap()], &comparison);
            assert_eq!((gates.len(), gates[0].verdict), (1, verdict), "{gates:?}");
        }
        // The second of the usual figures is missing.
        let gates = not_slower(&["10%".parse().unwrap()], &comparison);
        assert_eq!(
            gates.iter().map(|gate| gate.verdict).collect::<Vec<_>>(),
            [GateVerdict::Holds, GateVerdict::Undecided]
        );
        let unlike = Comparison { not_comparable: vec!["why".to_owned()], ..comparison };
        let gates = not_slower(&["iops=10%".parse().unwrap()], &unlike);
        assert_eq!(gates[0].verdict, GateVerdict::Undecided);
        for wrong in ["5", "speed=5%", "cost=5%", "p99=", "-5%"] {
            assert!(wrong.parse::<SlowerLimit>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn junit_has_a_case_for_each_bound() {
        let gate = |verdict| Gate {
            bound: "p99<2ms".to_owned(),
            verdict,
            found: "a & b".to_owned(),
            doubt: None,
        };
        let all = [GateVerdict::Holds, GateVerdict::Broken, GateVerdict::Undecided].map(gate);
        let text = junit("run", &all).unwrap();
        assert!(text.contains("tests=\"3\"") && text.contains("failures=\"1\""), "{text}");
        assert!(text.contains("p99&lt;2ms") && text.contains("a &amp; b"), "{text}");
    }
}
