//! Where the time goes: a bar for each operation, and the numbers.

use std::fmt::Write;

use ssdyno_figures::{MeanParts, OpLatencyParts, RunResult, nanoseconds};

use super::markup::escape;
use super::page::table;
use crate::lines::parts::{percent_of, rows};

const WIDTH: f64 = 900.0;
/// Room for the name of a bar, and for its latency behind it.
const LEFT: f64 = 150.0;
const RIGHT: f64 = 90.0;
const ROW: f64 = 34.0;

/// Bars and tables; empty where the run did not ask.
pub(super) fn blocks(r: &RunResult) -> Vec<String> {
    let Some(parts) = &r.latency_parts_ns else { return Vec::new() };
    let ops: Vec<_> = parts.iter().collect();
    let mut blocks = vec![bars(&ops)];
    let header = ["", "mean", "share", "slowest 1 %", "share"];
    for (name, op) in ops {
        let head = [&[name], &header[1..]].concat();
        blocks.push(table(&head, &rows(op)));
    }
    blocks.push(
        "<p class=\"fine\">Each part includes the wait for the part and its use. For a request of \
         several pages, the parts are those of the last page to arrive.</p>\n"
            .to_owned(),
    );
    blocks
}

/// A description of `parts` in words, for readers who do not see the chart.
fn in_words(parts: &MeanParts) -> String {
    let share = |time: f64| if parts.total > 0.0 { time / parts.total } else { 0.0 };
    let all = parts.list().into_iter().filter(|(_, _, time)| *time > 0.0);
    let all: Vec<_> =
        all.map(|(_, name, time)| format!("{name} {}", percent_of(share(time)))).collect();
    all.join(", ")
}

fn bars(ops: &[(&'static str, &OpLatencyParts)]) -> String {
    let mut named: Vec<(String, MeanParts)> = Vec::new();
    for (name, op) in ops {
        named.push((format!("{name}, mean"), op.mean));
        named.extend(op.slowest_1_percent.map(|parts| (format!("{name}, slowest 1 %"), parts)));
    }
    if named.is_empty() {
        return String::new();
    }
    let mut body = String::new();
    for (row, (name, parts)) in named.iter().enumerate() {
        bar(&mut body, row as f64 * ROW, name, parts);
    }
    let occurs = |key: &str| {
        let time = |parts: &MeanParts| parts.list().into_iter().find(|part| part.0 == key);
        named.iter().any(|(_, parts)| time(parts).is_some_and(|part| part.2 > 0.0))
    };
    let mut keys = String::new();
    for (key, name, _) in MeanParts::default().list().into_iter().filter(|part| occurs(part.0)) {
        let _ = write!(keys, " <span class=\"key\"><i class=\"part {key}\"></i>{name}</span>");
    }
    let words: Vec<_> =
        named.iter().map(|(name, parts)| format!("{name}: {}", in_words(parts))).collect();
    let (words, height) = (escape(&words.join("; ")), named.len() as f64 * ROW + 4.0);
    format!(
        "<figure class=\"wide\"><figcaption>Share of the latency{keys}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{words}\">{body}</svg></figure>\n"
    )
}

fn bar(body: &mut String, top: f64, name: &str, parts: &MeanParts) {
    let middle = top + ROW / 2.0 + 4.0;
    let _ = write!(
        body,
        "<text x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
        LEFT - 8.0,
        escape(name)
    );
    let mut left = LEFT;
    for (key, part, time) in parts.list() {
        let share = if parts.total > 0.0 { time / parts.total } else { 0.0 };
        let width = share * (WIDTH - LEFT - RIGHT);
        if width < 0.05 {
            continue;
        }
        let title = format!("{part}: {}, {}", nanoseconds(time), percent_of(share));
        let _ = write!(
            body,
            "<rect class=\"part {key}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\">\
             <title>{}</title></rect>",
            top + 5.0,
            ROW - 10.0,
            escape(&title)
        );
        // A number in a narrow part would reach into its neighbours.
        if width > 42.0 {
            let _ = write!(
                body,
                "<text class=\"inside\" x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"middle\">{:.0} %</text>",
                left + width / 2.0,
                100.0 * share
            );
        }
        left += width;
    }
    let _ = write!(
        body,
        "<text x=\"{:.1}\" y=\"{middle:.1}\">{}</text>",
        WIDTH - RIGHT + 8.0,
        escape(&nanoseconds(parts.total))
    );
}
