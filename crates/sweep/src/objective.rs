//! What designs are judged by: figures that are to be low or high, and bounds that they must keep.

use std::fmt;
use std::str::FromStr;

use ssdyno_block::text_form;
use ssdyno_block::units::Span;
use ssdyno_report::{FigureKind, HEADLINES};

use crate::cost::COSTS;

/// Short names of figures, as they are typed.
const SHORT: [(&str, &str); 10] = [
    ("throughput", "throughput_bytes_per_second"),
    ("mean", "latency_ns.mean"),
    ("p50", "latency_ns.p50"),
    ("p95", "latency_ns.p95"),
    ("p99", "latency_ns.p99"),
    ("p99.9", "latency_ns.p99_9"),
    ("energy_per_request", "energy_joules.per_request"),
    ("energy_delay", "energy_delay_joule_seconds"),
    ("wa", "write_amplification"),
    ("host_cpu", "host.cpu_ns_per_request"),
];

/// Figures that a target of latency can be about.
const LATENCIES: [&str; 5] = ["mean", "p50", "p95", "p99", "p99.9"];

/// The names for typing of the figures that runs have.
fn short_names() -> impl Iterator<Item = &'static str> {
    ["iops"].into_iter().chain(SHORT.map(|(short, _)| short))
}

/// The whole name of a figure, and whether more of it is better.
fn figure(text: &str) -> Result<(&'static str, bool), String> {
    if let Some(cost) = COSTS.into_iter().find(|cost| *cost == text) {
        return Ok((cost, false));
    }
    // Short names are only for typing. The table and `result.json` always have the whole
    // name, so that scripts need no second list.
    let name = SHORT.iter().find(|(short, _)| *short == text).map_or(text, |(_, name)| *name);
    let found = HEADLINES.iter().find(|(known, _)| *known == name);
    let (name, kind): (_, FigureKind) = *found.ok_or_else(|| {
        let names: Vec<&str> = short_names().chain(COSTS).collect();
        format!("unknown figure `{text}`: use one of {}", names.join(", "))
    })?;
    Ok((name, kind.more_is_better()))
}

/// A figure that designs are compared by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Objective {
    /// Its name in the table, such as `latency_ns.p99`.
    pub figure: &'static str,
    /// Whether more is better.
    pub more_is_better: bool,
}

impl Objective {
    /// A figure that single runs have: any but those of a design.
    ///
    /// # Errors
    /// It is none, or the cost of a design; the message has the figures.
    pub fn of_run(text: &str) -> Result<Objective, String> {
        let known = text.parse::<Objective>().ok().filter(|one| !one.is_of_design());
        known.ok_or_else(|| {
            let names: Vec<&str> = short_names().collect();
            format!("no run has the figure `{text}`: use one of {}", names.join(", "))
        })
    }

    /// Whether it follows from the design alone, so that no run has it.
    pub fn is_of_design(&self) -> bool {
        COSTS.contains(&self.figure)
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Objective, String> {
        let (figure, more_is_better) = figure(text.trim())?;
        Ok(Objective { figure, more_is_better })
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.figure)
    }
}

text_form!(Objective, "a figure, such as \"p99\", \"iops\" or \"cost\"", "^[a-z0-9_.]+$");

/// A bound that a design must keep, such as `p99<2ms`.
#[derive(Clone, PartialEq, Debug)]
pub struct Requirement {
    figure: &'static str,
    is_below: bool,
    /// In the unit of the figure.
    bound: f64,
    typed: String,
}

impl Requirement {
    /// Name of the figure in the table.
    pub fn figure(&self) -> &'static str {
        self.figure
    }

    /// A bound of a figure that single runs have: any but those of a design.
    ///
    /// # Errors
    /// It is none, or is about the cost of a design; the message says which.
    pub fn of_run(text: &str) -> Result<Requirement, String> {
        let bound: Requirement = text.parse().map_err(|error: String| {
            // Costs are in no run.
            error.replace(&format!(", {}", COSTS.join(", ")), "")
        })?;
        match COSTS.contains(&bound.figure) {
            true => {
                let figure = bound.figure;
                Err(format!("a run has no `{figure}`: use `ssdyno sweep --require '{text}'`"))
            }
            false => Ok(bound),
        }
    }

    /// The bound of a latency as `p99=1ms`: one of `mean`, `p50`, `p95`, `p99` and `p99.9`.
    ///
    /// # Errors
    /// It is another figure, or the bound is not a time with its unit; the message says which.
    pub fn latency_target(text: &str) -> Result<Requirement, String> {
        let (name, bound) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` is not FIGURE=TIME, such as p99=1ms"))?;
        let name = name.trim();
        if !LATENCIES.contains(&name) {
            return Err(format!("`{name}` is not a latency: use one of {}", LATENCIES.join(", ")));
        }
        let time: Span = bound
            .trim()
            .parse()
            .map_err(|_| format!("`{text}`: a latency needs a time with its unit, such as 1ms"))?;
        // `holds` compares with `<`, so no latency is below 0. A search for it would
        // run down to the lowest rate and then fail.
        if time.0.as_ns() == 0 {
            return Err(format!("`{text}`: the bound of a latency must be above 0"));
        }
        format!("{name}<{}", bound.trim()).parse()
    }

    /// In the unit of the figure.
    pub(crate) fn bound(&self) -> f64 {
        self.bound
    }

    pub(crate) fn is_latency_from_above(&self) -> bool {
        self.is_below && self.figure.starts_with("latency_ns.")
    }

    /// As it was typed, with the bound itself allowed: `p99 <= 1ms`.
    pub(crate) fn latency(&self) -> String {
        self.related("<=")
    }

    /// The opposite of [`latency`](Requirement::latency): `p99 was above 1ms`, or `may be` where it is not certain.
    pub(crate) fn latency_above(&self, is_certain: bool) -> String {
        self.related(if is_certain { "was above" } else { "may be above" })
    }

    fn related(&self, relation: &str) -> String {
        let (name, bound) = self.typed.split_once('<').unwrap_or((&self.typed, ""));
        format!("{} {relation} {}", name.trim(), bound.trim())
    }

    /// Whether a design with this value of the figure keeps the bound.
    pub fn holds(&self, value: f64) -> bool {
        if self.is_below { value < self.bound } else { value > self.bound }
    }

    /// Whether the figure keeps the bound if its value is only known to be at least `value`, where `is_lower_bound`; `None`
    /// if the true value may be on either side of the bound.
    pub(crate) fn decides(&self, value: f64, is_lower_bound: bool) -> Option<bool> {
        let holds = self.holds(value);
        // A value above the bound stays above it, however much greater the true value is.
        (!is_lower_bound || holds != self.is_below).then_some(holds)
    }

    /// How far a design with this value is from keeping the bound, as a share of the bound; 0 where it keeps it.
    pub(crate) fn excess(&self, value: f64) -> f64 {
        match self.holds(value) {
            true => 0.0,
            // A design exactly at the bound breaks it, because the comparison is
            // strict. Its excess must then be above zero.
            false => f64::MIN_POSITIVE + (value - self.bound).abs() / self.bound.abs().max(1e-9),
        }
    }
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Requirement, String> {
        let at = text.find(['<', '>']).ok_or_else(|| {
            format!("`{text}` is not FIGURE<VALUE or FIGURE>VALUE, such as p99<2ms")
        })?;
        let (name, bound) = (text[..at].trim(), text[at + 1..].trim());
        let (figure, _) = figure(name)?;
        // A time without a unit would be ambiguous: figures are in
        // nanoseconds, and users think in milliseconds.
        let bound = match figure.contains("_ns") {
            true => bound.parse().map(|span: Span| span.0.as_ns_f64()).map_err(|_| {
                format!("`{text}`: the bound must be a time with its unit, such as 2ms")
            })?,
            false => number(bound).ok_or_else(|| {
                format!("`{text}`: `{bound}` is not a number, such as 60 or 200k")
            })?,
        };
        Ok(Requirement {
            figure,
            is_below: text[at..].starts_with('<'),
            bound,
            typed: text.trim().to_owned(),
        })
    }
}

/// `200k` as 200 000.
fn number(text: &str) -> Option<f64> {
    // `m` is a thousandth and `M` a million, as in SI. Letters are
    // compared with their case for that reason.
    let scales = [('k', 1e3), ('M', 1e6), ('G', 1e9), ('m', 1e-3), ('u', 1e-6), ('n', 1e-9)];
    let scale = scales.iter().find(|(letter, _)| text.ends_with(*letter));
    let digits = if scale.is_some() { &text[..text.len() - 1] } else { text };
    let value: f64 = digits.trim().parse().ok()?;
    value.is_finite().then_some(value * scale.map_or(1.0, |(_, scale)| *scale))
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

text_form!(
    Requirement,
    "a bound of a figure, such as \"p99<2ms\" or \"iops>200k\"",
    "^[a-z0-9_.]+ *[<>].+$"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_no_cost() {
        for text in ["cost", "cost_per_gib", "nothing"] {
            let error = Objective::of_run(text).unwrap_err();
            assert!(error.contains("use one of iops,") && !error.contains(", cost"), "{error}");
        }
        assert_eq!(Objective::of_run("p99").unwrap().figure, "latency_ns.p99");
    }

    #[test]
    fn objectives_have_a_direction() {
        for (text, name, more) in [
            ("p99", "latency_ns.p99", false),
            ("latency_ns.p99_9", "latency_ns.p99_9", false),
            ("iops", "iops", true),
            ("cost", "cost", false),
            ("cost_per_gib", "cost_per_gib", false),
            ("energy_per_request", "energy_joules.per_request", false),
            ("host_cpu", "host.cpu_ns_per_request", false),
        ] {
            assert_eq!(text.parse(), Ok(Objective { figure: name, more_is_better: more }));
        }
        let error = "speed".parse::<Objective>().unwrap_err();
        assert!(error.contains("`speed`") && error.contains("p99") && error.contains("cost"));
    }

    #[test]
    fn a_target_of_latency_names_its_figure_and_a_time() {
        let target = Requirement::latency_target("p99.9 = 2ms").unwrap();
        assert_eq!((target.figure(), target.bound()), ("latency_ns.p99_9", 2e6));
        assert_eq!(
            (target.to_string(), target.latency()),
            ("p99.9<2ms".into(), "p99.9 <= 2ms".into())
        );
        for (text, says) in [
            ("p99", "FIGURE=TIME"),
            ("p99=2", "with its unit"),
            ("p99=0ms", "above 0"),
            ("iops=1ms", "mean, p50, p95, p99, p99.9"),
        ] {
            let error = Requirement::latency_target(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_lower_bound_decides_only_above_the_bound() {
        let [below, above] =
            ["p99<2ms", "p99>2ms"].map(|text| text.parse::<Requirement>().unwrap());
        for (value, is_below, is_above) in [(1e6, None, None), (3e6, Some(false), Some(true))] {
            assert_eq!(
                (below.decides(value, true), above.decides(value, true)),
                (is_below, is_above)
            );
            assert_eq!(below.decides(value, false), Some(below.holds(value)));
            assert_eq!(above.decides(value, false), Some(above.holds(value)));
        }
    }

    #[test]
    fn bounds_are_in_the_unit_of_their_figure() {
        let bound: Requirement = "p99<2ms".parse().unwrap();
        assert!(bound.holds(1.99e6) && !bound.holds(2e6) && bound.figure() == "latency_ns.p99");
        let bound: Requirement = "iops > 200k".parse().unwrap();
        assert!(bound.holds(200_001.0) && !bound.holds(200_000.0));
        let bound: Requirement = "host_cpu<3us".parse().unwrap();
        assert!(bound.holds(2_999.0) && !bound.holds(3_000.0));
        assert!(Requirement::of_run("cost<12").unwrap_err().contains("ssdyno sweep"));
        assert_eq!(Requirement::of_run("iops>1").unwrap().figure(), "iops");
        for (text, says) in [
            ("host_cpu<3", "with its unit"),
            ("p99=2ms", "FIGURE<VALUE"),
            ("p99<2", "with its unit"),
            ("iops>many", "`many` is not a number"),
            ("speed>1", "unknown figure `speed`"),
        ] {
            let error = text.parse::<Requirement>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
