//! A sweep on the terminal.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use ssdyno_block::counted;
use ssdyno_figures::{Interval, LEVEL};
use ssdyno_report::{aligned, figure_format, figure_text, plus_minus};

use crate::curve_page::curve_text;
use crate::generations::{SearchEnd, SearchOutcome};
use crate::row::{
    DesignState, Effect, EffectLevel, Interaction, Interactions, Standing, SweepResult, SweepRow,
};
use crate::warned;

/// Reasons for impossible and failed designs that are shown.
const REASONS: usize = 3;

/// Effects below this share of the variation are left out.
const SHARE_LEAST: f64 = 0.01;

/// Interactions that are shown, the strongest.
const INTERACTIONS: usize = 10;

/// Levels of an effect that fit a line.
const LEVELS: usize = 8;

/// Generations of a search that are shown, the last.
const GENERATIONS: usize = 8;

/// The result as text; `top` rows of the front at the most. With 0 a sweep over one number shows its curve alone.
pub fn text(result: &SweepResult, top: usize) -> String {
    let mut text = String::new();
    for note in &result.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    let _ = writeln!(text, "{}", outcome(result));
    for (why, count) in reasons(result).into_iter().take(REASONS) {
        let _ = writeln!(text, "  {}: {why}", counted(count, "design", "designs"));
    }
    if let Some(search) = &result.search {
        let _ = writeln!(text, "{}", searched(search));
    }
    text.extend(found(result).map(|line| line + "\n"));
    if result.done == 0 {
        return text;
    }
    if result.curve.is_some() {
        let _ = write!(text, "\n{}", curve_text(result));
        // For a sweep over one number the curve is the answer. A front by one
        // objective would repeat one of its points.
        if top == 0 {
            return text;
        }
    }
    // Without a curve, the front is the answer.
    let top = if top == 0 { usize::MAX } else { top };
    let front = result.front();
    let names: Vec<&str> = result.plan.objectives.iter().map(|one| one.figure).collect();
    let _ = writeln!(text, "\n{}", heading(result, &names));
    let rows = [header(result)].into_iter();
    let rows: Vec<Vec<String>> =
        rows.chain(front.iter().take(top).map(|row| cells(result, row))).collect();
    if front.is_empty() {
        let _ = writeln!(text, "  {}", no_front(result));
    } else {
        text.push_str(&table(&rows));
    }
    if front.len() > top {
        let _ =
            writeln!(text, "  … and {} more; the table contains all designs", front.len() - top);
    }
    let effects = result.effects.iter().filter(|effect| effect.share >= SHARE_LEAST);
    let rows: Vec<Vec<String>> = effects.map(effect_cells).collect();
    // One key alone always explains everything.
    if result.plan.vary.len() > 1 {
        let _ = writeln!(text, "\n{}", effects_line(result, rows.len()));
        text.push_str(&table(&rows));
    }
    if result.interactions.examined > 0 && !rows.is_empty() {
        let _ = writeln!(text, "\n{}", interactions_line(&result.interactions));
        let found = result.interactions.found.iter().take(INTERACTIONS);
        let rows: Vec<Vec<String>> = found.map(interaction_cells).collect();
        text.push_str(&table(&rows));
    }
    if let Some(search) = &result.search {
        text.push_str(&covered(search));
    }
    text
}

/// What a bisection found, in a line.
pub(crate) fn found(result: &SweepResult) -> Option<String> {
    Some(result.ceiling.as_ref()?.line(result.plan.require.first()?))
}

/// How a search went, in a line.
pub(crate) fn searched(search: &SearchOutcome) -> String {
    let why = match search.stopped {
        SearchEnd::Budget => "the budget of `designs` is used up",
        SearchEnd::Time => "the time limit `time` was reached",
        SearchEnd::Exhausted => "no design is left",
        SearchEnd::NoImprovement => "ten generations added nothing to the front",
        SearchEnd::Interrupted => "interrupted",
    };
    // The size of a space is a `f64`. Above 1e15 the last digits are not
    // exact, so a rounded form is more honest.
    let space = match search.space < 1e15 {
        true => ssdyno_figures::count(search.space as u64),
        false => format!("{:.1e}", search.space),
    };
    let generations = counted(search.generations.len() as u64, "generation", "generations");
    format!(
        "Search ({}): {} of {space} designs run in {generations}; stopped: {why}",
        search.method, search.runs
    )
}

/// The names of what [`generation_cells`] shows.
pub(crate) const GENERATION: [&str; 4] = ["generation", "runs", "front", "hypervolume"];

/// A generation with the share of the last front that it covered.
pub(crate) fn generation_cells(search: &SearchOutcome) -> Vec<Vec<String>> {
    let last = search.generations.last().and_then(|last| last.hypervolume);
    let cells = search.generations.iter().enumerate().map(|(at, one)| {
        let share = one.hypervolume.zip(last).map(|(share, last)| 100.0 * share / last);
        let share = share.map_or("-".to_owned(), |share| format!("{share:.1} %"));
        vec![(at + 1).to_string(), one.runs.to_string(), one.front.to_string(), share]
    });
    cells.collect()
}

/// What the reference point of the hypervolumes is.
pub(crate) fn reference(search: &SearchOutcome) -> String {
    let one = |(name, value): (&String, &f64)| format!("{name} {}", figure_format(name)(*value));
    let values: Vec<String> = search.reference.iter().map(one).collect();
    format!(
        "hypervolume as a percentage of the last generation; reference point {}",
        values.join(", ")
    )
}

/// The generations; of many the last.
fn covered(search: &SearchOutcome) -> String {
    let rows = generation_cells(search);
    if rows.is_empty() || search.reference.is_empty() {
        return String::new();
    }
    let head = vec![GENERATION.map(str::to_owned).to_vec()];
    let left_out = rows.len().saturating_sub(GENERATIONS);
    let rows: Vec<Vec<String>> = head.into_iter().chain(rows.into_iter().skip(left_out)).collect();
    format!("\nGenerations: {}\n{}", reference(search), table(&rows))
}

/// How many designs there are and what became of them.
pub(crate) fn outcome(result: &SweepResult) -> String {
    let mut parts = vec![format!("{} done", result.done)];
    let missing = result.designs - result.rows.len() as u64;
    for (count, what) in [
        (result.impossible, "impossible"),
        (result.ruled_out, "ruled out by their cost"),
        (result.stopped, "stopped early"),
        (result.failed, "failed"),
        (missing, "not run"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    format!("{}: {}", counted(result.designs, "design", "designs"), parts.join(", "))
}

fn heading(result: &SweepResult, names: &[&str]) -> String {
    let count = |standing| result.rows.iter().filter(|row| row.standing == Some(standing)).count();
    let (front, undecided) = (count(Standing::Front), count(Standing::Undecided));
    let mut heading = match names {
        [one] => format!("Best by {one}"),
        _ => format!("Front by {}: {front} of {}", names.join(", "), result.done),
    };
    for (count, what) in [
        (result.rows.iter().filter(|row| row.within_chance).count(), "of them within chance"),
        (undecided, "undecided within the 95 % intervals"),
        (count(Standing::Excluded), "break a bound"),
        (count(Standing::Overloaded), "overloaded"),
        (count(Standing::Unrepresentative), "unrepresentative"),
    ] {
        if count > 0 {
            let _ = write!(heading, "; {count} {what}");
        }
    }
    heading
}

/// Why no design is on the front.
fn no_front(result: &SweepResult) -> &'static str {
    let is = |standing| result.rows.iter().any(|row| row.standing == Some(standing));
    if is(Standing::Unrepresentative) {
        return "all designs that could be ranked look better than they are: see the notes above";
    }
    match (is(Standing::Overloaded), is(Standing::Excluded)) {
        (true, false) => "all designs are overloaded: lower the rate of arrivals",
        (true, true) => "all designs are overloaded or break a bound of `require`",
        (false, _) => "no design meets all bounds of `require`",
    }
}

/// Why designs have no figures, with how many; the most frequent first.
pub(crate) fn reasons(result: &SweepResult) -> Vec<(String, u64)> {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for row in result.rows.iter().filter(|row| row.state != DesignState::Done) {
        // The intervals of stopped runs all differ, and each would be a reason of its own. The
        // bound that they broke is what they have in common.
        let why = match (row.state, &row.stopped) {
            (DesignState::Stopped, Some(bound)) => format!("stopped early: breaks `{bound}`"),
            _ => row.why.clone().unwrap_or_default(),
        };
        *reasons.entry(why).or_default() += 1;
    }
    let mut reasons: Vec<(String, u64)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons
}

/// The names of what [`cells`] shows.
pub(crate) fn header(result: &SweepResult) -> Vec<String> {
    let axes = result.plan.vary.iter().map(|axis| axis.key().to_owned());
    let figures = result.plan.objectives.iter().map(|one| one.figure.to_owned());
    let warnings = warned::any(&result.rows).then(|| "warnings".to_owned());
    let chance = has_chance(result).then(|| "on the front".to_owned());
    let names = ["design".to_owned()].into_iter().chain(axes).chain(figures);
    names.chain(chance).chain(warnings).collect()
}

/// A design with the values of its axes and its objectives.
pub(crate) fn cells(result: &SweepResult, row: &SweepRow) -> Vec<String> {
    let mut cells = vec![row.design.to_string()];
    cells.extend(row.values.iter().map(value));
    cells.extend(result.plan.objectives.iter().map(|objective| figure(row, objective.figure)));
    if has_chance(result) {
        cells.push(if row.within_chance { "within chance" } else { "-" }.to_owned());
    }
    if warned::any(&result.rows) {
        cells.push(warned::words(row).unwrap_or_else(|| "-".to_owned()));
    }
    cells
}

/// Whether a design is on the front within chance, so that the tables have a column for it.
fn has_chance(result: &SweepResult) -> bool {
    result.rows.iter().any(|row| row.within_chance)
}

/// A figure with its interval.
pub(crate) fn figure(row: &SweepRow, name: &str) -> String {
    let Some(figure) = row.figures.get(name) else { return "-".to_owned() };
    let shown = figure_text(name, figure.value, figure.is_lower_bound);
    // An interval around a value of zero has no relative width, and a sign before
    // a percentage of nothing would confuse.
    let bounds = figure.low.zip(figure.high).filter(|_| figure.value > 0.0);
    let interval =
        bounds.map(|(low, high)| Interval { estimate: figure.value, low, high, level: LEVEL });
    format!("{shown}{}", plus_minus(interval))
}

/// A value as it is typed.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What the table of effects shows, or why there is none.
pub(crate) fn effects_line(result: &SweepResult, shown: usize) -> String {
    if shown > 0 && result.search.is_some() {
        return "Effects: the share of the variation that a key explains alone, by a linear model of the designs that the search ran; \
                geometric means at its values".to_owned();
    }
    if shown > 0 {
        return "Effects: the share of the variation that a key explains alone (greatest mean / least), and the \
                geometric mean at its values".to_owned();
    }
    let judged = |row: &&SweepRow| row.state == DesignState::Done;
    let figures = |figure: &str| -> Vec<f64> {
        let rows = result.rows.iter().filter(judged);
        rows.filter_map(|row| row.lasting_figure(figure)).collect()
    };
    let of_all: Vec<Vec<f64>> =
        result.plan.objectives.iter().map(|one| figures(one.figure)).collect();
    let why = if !result.effects.is_empty() {
        "every key explains less than 1 % of the variation"
    } else if of_all.iter().all(|all| all.len() < 2) {
        "fewer than two designs have figures to compare"
    } else if of_all.iter().all(|all| all.iter().all(|value| *value == all[0])) {
        "the objective is the same in all designs"
    } else {
        "too few designs for the number of keys and values"
    };
    format!("Effects: none, because {why}")
}

/// Key, objective, share, and the means at the values.
pub(crate) fn effect_cells(effect: &Effect) -> Vec<String> {
    let format = figure_format(&effect.figure);
    let level = |level: &EffectLevel| format!("{}: {}", value(&level.value), format(level.mean));
    let mut levels: Vec<String> = effect.levels.iter().take(LEVELS).map(level).collect();
    if effect.levels.len() > LEVELS {
        levels.push("…".to_owned());
    }
    vec![
        effect.key.clone(),
        effect.figure.clone(),
        match effect.within_chance {
            true => "within chance".to_owned(),
            false => format!("{:.0} %{}", 100.0 * effect.share, range(effect)),
        },
        levels.join(", "),
    ]
}

/// The greatest mean of an effect divided by the least: a large share of hardly any variation is small.
fn range(effect: &Effect) -> String {
    let means = || effect.levels.iter().map(|level| level.mean);
    let ratio = means().fold(0.0, f64::max) / means().fold(f64::INFINITY, f64::min);
    if ratio.is_finite() && ratio >= 1.0 { format!(" (x {ratio:.3})") } else { String::new() }
}

/// How many pairs of keys act together, of how many.
pub(crate) fn interactions_line(all: &Interactions) -> String {
    let examined = counted(all.examined, "pair", "pairs");
    match all.found.len() {
        // The products are of ranks, and their intervals contain the lack of fit.
        0 => format!(
            "Interactions: none found; {examined} examined, and each interval contains 1 (the test misses an effect that \
             exists only at one end of the other key)"
        ),
        found => {
            let others = match all.examined > found as u64 {
                true => "; the intervals of the others contain 1",
                false => "",
            };
            format!("Interactions: {found} of {examined} examined{others}")
        }
    }
}

/// The effect of a key at two values of another, and how much they differ.
pub(crate) fn interaction_cells(one: &Interaction) -> Vec<String> {
    let at = |at: usize| value(&one.at[at]);
    let how = if one.fitted { "fitted " } else { "" };
    let [first, second] = match one.factors {
        Some(factors) => {
            [0, 1].map(|end| format!("{how}x {:.3} at {} = {}", factors[end], one.by, at(end)))
        }
        None => [format!("at {} = {} and {}", one.by, at(0), at(1)), String::new()],
    };
    let ratio = match (one.ratio, one.low, one.high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!("fitted ratio {ratio:.3} ({low:.3} to {high:.3})")
        }
        (_, Some(low), _) => format!("ratio at least {low:.3}; too few designs to say more"),
        (_, _, Some(high)) => format!("ratio at most {high:.3}; too few designs to say more"),
        _ => "ratio not known".to_owned(),
    };
    vec![
        format!("{} from {} to {}", one.key, value(&one.between[0]), value(&one.between[1])),
        one.figure.clone(),
        first,
        second,
        ratio,
    ]
}

/// Rows in columns, indented.
fn table(rows: &[Vec<String>]) -> String {
    let Some((first, rest)) = rows.split_first() else { return String::new() };
    let lines = aligned(first, rest.iter().cloned(), &[]);
    lines.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::SweepFigure;

    /// Half widths above the figure itself say nothing; bounds that are much closer at one side are told apart.
    #[test]
    fn intervals_above_100_percent_are_not_told() {
        let told = |low, high| {
            let one = SweepFigure {
                value: 100_000.0,
                low: Some(low),
                high: Some(high),
                ..SweepFigure::default()
            };
            let figures = [("latency_ns.p99".to_owned(), one)].into();
            let row = SweepRow { figures, ..SweepRow::new(0, Vec::new(), 1) };
            figure(&row, "latency_ns.p99")
        };
        assert_eq!(told(98_000.0, 102_000.0), "100.0 µs ± 2.0 %");
        assert_eq!(told(90_000.0, 350_000.0), "100.0 µs (interval wider than ± 100 %)");
        assert_eq!(told(90_000.0, 250_000.0), "100.0 µs -10 +∞ %");
    }

    #[test]
    fn the_others_are_told_of_only_if_there_are_others() {
        let one = Interaction {
            figure: String::new(),
            key: String::new(),
            between: [1.into(), 2.into()],
            by: String::new(),
            at: [1.into(), 2.into()],
            factors: None,
            fitted: true,
            ratio: None,
            low: None,
            high: None,
        };
        let line =
            |examined| interactions_line(&Interactions { examined, found: vec![one.clone()] });
        assert_eq!(line(1), "Interactions: 1 of 1 pair examined");
        assert!(line(2).contains("1 of 2 pairs examined; the intervals of the others"));
    }

    #[test]
    fn a_lower_bound_has_its_sign() {
        let one = SweepFigure { value: 100_000.0, is_lower_bound: true, ..SweepFigure::default() };
        let figures = [("latency_ns.p99".to_owned(), one)].into();
        let row = SweepRow { figures, ..SweepRow::new(0, Vec::new(), 1) };
        assert_eq!(figure(&row, "latency_ns.p99"), "≥ 100.0 µs");
    }
}
