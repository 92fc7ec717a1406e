//! A sweep on the terminal.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use ssdyno_block::counted;
use ssdyno_report::{aligned, figure_format};

use crate::objective::Objective;
use crate::row::{DesignState, Effect, EffectLevel, Standing, SweepResult, SweepRow};

/// Reasons for impossible and failed designs that are shown.
const REASONS: usize = 3;

/// Effects below this share of the variation are left out.
const SHARE_LEAST: f64 = 0.01;

/// Levels of an effect that fit a line.
const LEVELS: usize = 8;

/// The result as text; `top` rows of the front at the most.
pub fn text(result: &SweepResult, top: usize) -> String {
    let mut text = String::new();
    for note in &result.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    let _ = writeln!(text, "{}", outcome(result));
    for (why, count) in reasons(result).into_iter().take(REASONS) {
        let _ = writeln!(text, "  {}: {why}", counted(count, "design", "designs"));
    }
    if result.done == 0 {
        return text;
    }
    let front = result.front();
    let names: Vec<&str> = result.plan.objectives.iter().map(|one| one.figure).collect();
    let _ = writeln!(text, "\n{}", heading(result, &names));
    let rows = [header(result)].into_iter();
    let rows: Vec<Vec<String>> =
        rows.chain(front.iter().take(top).map(|row| cells(result, row))).collect();
    if front.is_empty() {
        text.push_str("  no design keeps all bounds of `require`\n");
    } else {
        text.push_str(&table(&rows));
    }
    if front.len() > top {
        let _ = writeln!(text, "  … and {} more; the table has all", front.len() - top);
    }
    let effects = result.effects.iter().filter(|effect| effect.share >= SHARE_LEAST);
    let rows: Vec<Vec<String>> = effects.map(effect_cells).collect();
    if !rows.is_empty() {
        text.push_str("\nEffects: the share of the variation that a key explains alone, and the mean at its values\n");
        text.push_str(&table(&rows));
    }
    text
}

/// How many designs there are and what became of them.
pub(crate) fn outcome(result: &SweepResult) -> String {
    let mut parts = vec![format!("{} done", result.done)];
    let missing = result.designs - result.rows.len() as u64;
    for (count, what) in
        [(result.impossible, "impossible"), (result.failed, "failed"), (missing, "not run")]
    {
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
    if undecided > 0 {
        let _ = write!(heading, "; {undecided} more within the intervals of the figures");
    }
    let excluded = count(Standing::Excluded);
    if excluded > 0 {
        let _ = write!(heading, "; {excluded} break a bound");
    }
    heading
}

/// Why designs have no figures, with how many; the most frequent first.
pub(crate) fn reasons(result: &SweepResult) -> Vec<(String, u64)> {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for row in result.rows.iter().filter(|row| row.state != DesignState::Done) {
        *reasons.entry(row.why.clone().unwrap_or_default()).or_default() += 1;
    }
    let mut reasons: Vec<(String, u64)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons
}

/// The names of what [`cells`] shows.
pub(crate) fn header(result: &SweepResult) -> Vec<String> {
    let axes = result.plan.vary.iter().map(|axis| axis.key().to_owned());
    let figures = result.plan.objectives.iter().map(|one| one.figure.to_owned());
    ["design".to_owned()].into_iter().chain(axes).chain(figures).collect()
}

/// A design with the values of its axes and its objectives.
pub(crate) fn cells(result: &SweepResult, row: &SweepRow) -> Vec<String> {
    let mut cells = vec![row.design.to_string()];
    cells.extend(row.values.iter().map(value));
    cells.extend(result.plan.objectives.iter().map(|objective| figure(row, *objective)));
    cells
}

fn figure(row: &SweepRow, objective: Objective) -> String {
    let Some(figure) = row.figures.get(objective.figure) else { return "-".to_owned() };
    let shown = figure_format(objective.figure)(figure.value);
    match (figure.low, figure.high) {
        (Some(low), Some(high)) if figure.value > 0.0 => {
            format!("{shown} ± {:.1} %", 50.0 * (high - low) / figure.value)
        }
        _ => shown,
    }
}

/// A value as it is typed.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
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
        format!("{:.0} %", 100.0 * effect.share),
        levels.join(", "),
    ]
}

/// Rows in columns, indented.
fn table(rows: &[Vec<String>]) -> String {
    let Some((first, rest)) = rows.split_first() else { return String::new() };
    let lines = aligned(first, rest.iter().cloned(), &[]);
    lines.lines().map(|line| format!("  {line}\n")).collect()
}
