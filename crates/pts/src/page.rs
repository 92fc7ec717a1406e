//! A result as a page.

use ssdyno_figures::{nanoseconds, seconds, significant};
use ssdyno_report::{Axis, Page, Plot, html_table};

use crate::plan::{Test, block_name};
use crate::result::{PtsCell, PtsHistogram, PtsPart, PtsResult};
use crate::rule::{RANGE_MOST, Window};
use crate::text::{summary, tables, verdict};

/// The report: one file, opens without a network. It has the tables, the convergence of all rounds
/// and the steady state window with its best line, as the specification wants them reported.
pub fn html(result: &PtsResult) -> String {
    let s = &result.settings;
    let facts = [
        result.specification.clone(),
        format!("seed {}", result.seed),
        format!("{} outstanding", s.outstanding),
        format!("loads of {}", seconds(s.round_seconds)),
        format!("active range {} of {} bytes", s.active_range_bytes, s.capacity_bytes),
    ];
    let title = format!("{} - PTS {}", result.target, result.test);
    let mut page = Page::new(&title, result.partial, &facts);
    for warning in &result.warnings {
        page.note(&format!("Warning: {}", warning.line()), true);
    }
    for note in &result.notes {
        page.note(note, false);
    }
    for part in &result.parts {
        let mut blocks = vec![steps(part)];
        for (name, rows) in tables(result.test, part) {
            let header: Vec<&str> = rows[0].iter().map(String::as_str).collect();
            blocks.push(format!("<h3>{name}</h3>\n{}", html_table(&header, &rows[1..])));
        }
        let verdict = html_table(&["steady state"], &[vec![verdict(part)]]);
        let plots = window_plot(result.test, part) + &convergence(result.test, part);
        blocks.extend([verdict, format!("<div class=\"pair\">{plots}</div>\n")]);
        blocks.extend(part.histogram.iter().map(histogram));
        page.section(&part.name, &blocks);
    }
    page.finish()
}

fn steps(part: &PtsPart) -> String {
    let row = |step: &crate::PtsStep| {
        let gigabytes = format!("{} GB", significant(step.written_bytes as f64 / 1e9, 4));
        vec![step.step.replace('_', " "), step.detail.clone(), seconds(step.seconds), gigabytes]
    };
    let rows: Vec<Vec<String>> = part.steps.iter().map(row).collect();
    html_table(&["before the rounds", "", "took", "written"], &rows)
}

fn rounds_axis(from: f64, to: f64) -> Axis {
    Axis { label: "round", from, to, log: false, format: |round| significant(round, 3) }
}

/// Whole rounds as ticks: half a round is none.
fn round_ticks(from: usize, to: usize) -> Vec<(f64, String)> {
    // A tick for each of 25 rounds would be too dense, so every second round gets one. Ticks are
    // whole numbers, because there is no half round.
    let every = (to - from) / 13 + 1;
    (from..=to).step_by(every).map(|round| (round as f64, round.to_string())).collect()
}

/// The tracked figure in the window: values, average, the bounds of the range, the best line.
fn window_plot(test: Test, part: &PtsPart) -> String {
    let Some(window) = &part.tracked.window else { return String::new() };
    let Window { first_round, last_round, average, fit_first, fit_last, .. } = *window;
    let (first, last) = (f64::from(first_round), f64::from(last_round));
    let values = part.tracked.values.iter().enumerate().skip(first_round as usize - 1);
    let points: Vec<(f64, f64)> = values.map(|(at, value)| (at as f64 + 1.0, *value)).collect();
    let most = points.iter().map(|point| point.1).fold(average * 1.1, f64::max);
    let (.., label, format) = test.tracked();
    let x = rounds_axis(first - 0.2, last + 0.2);
    let mut plot = Plot::new("Steady state window", x, Axis::from_zero(label, most * 1.1, format));
    plot.set_x_ticks(round_ticks(first_round as usize, last_round as usize));
    let level = |share: f64| [(first, average * share), (last, average * share)];
    plot.line("bus", "average + 10 %", &level(1.0 + RANGE_MOST / 2.0));
    plot.line("bus", "- 10 %", &level(1.0 - RANGE_MOST / 2.0));
    plot.line("dram", "average", &level(1.0));
    plot.line("write", "best line", &[(first, fit_first), (last, fit_last)]);
    plot.line("read", &part.tracked.load, &points);
    plot.finish()
}

/// Requests by latency, both on logarithmic axes: the rare long ones are what it is drawn for.
fn histogram(histogram: &PtsHistogram) -> String {
    let (Some(first), Some(last)) = (histogram.bins.first(), histogram.bins.last()) else {
        return String::new();
    };
    let most = histogram.bins.iter().map(|bin| bin.count).max().unwrap_or(1);
    let (from, to) = (first.from_ns.max(1) as f64, last.to_ns.max(2) as f64);
    let x = Axis::logarithmic("latency", from, to, nanoseconds);
    let count = |count: f64| significant(count, 3);
    let y = Axis::logarithmic("requests", 0.5, (most as f64).max(10.0), count);
    let mut plot = Plot::new("Response time histogram", x, y);
    // Each bin is a step of its own height. Between two bins that are apart the line falls to
    // the bottom, because no latency lies there.
    let (mut steps, mut end) = (Vec::new(), first.from_ns);
    for bin in &histogram.bins {
        if bin.from_ns > end {
            steps.extend([(end as f64, 0.5), (bin.from_ns as f64, 0.5)]);
        }
        let height = bin.count as f64;
        steps.extend([(bin.from_ns.max(1) as f64, height), (bin.to_ns as f64, height)]);
        end = bin.to_ns;
    }
    plot.line("read", &histogram.load, &steps);
    let row = vec![summary(histogram)];
    format!("{}{}", html_table(&["response times"], &[row]), plot.finish())
}

/// Colours of the lines, by number.
const COLOURS: [&str; 4] = ["read", "write", "trim", "flush"];

/// Writes of each block size over all rounds: whether and when they settled.
fn convergence(test: Test, part: &PtsPart) -> String {
    let (_, pick, label, format) = test.tracked();
    let Some(first) = part.rounds.first().filter(|_| part.rounds.len() > 1) else {
        return String::new();
    };
    let writes: Vec<(usize, &PtsCell)> =
        first.cells.iter().enumerate().filter(|(_, cell)| cell.read_percent == 0).collect();
    let line = |at: usize| -> Vec<(f64, f64)> {
        let point =
            |round: &crate::Round| Some((f64::from(round.round), pick(round.cells.get(at)?)?));
        part.rounds.iter().filter_map(point).collect()
    };
    let mut html = String::new();
    // Four lines can be told apart by colour in one plot. The IOPS test has eight block sizes,
    // so it gets two plots.
    for some in writes.chunks(COLOURS.len()) {
        let lines: Vec<_> = some.iter().map(|(at, cell)| (line(*at), cell.block_bytes)).collect();
        let most = lines.iter().flat_map(|(line, _)| line).map(|p| p.1).fold(0.0, f64::max);
        let x = rounds_axis(1.0, part.rounds.len() as f64);
        let y = Axis::from_zero(label, most, format);
        let mut plot = Plot::new("Convergence of 100 % writes", x, y);
        plot.set_x_ticks(round_ticks(1, part.rounds.len()));
        for ((line, block), colour) in lines.iter().zip(COLOURS) {
            plot.line(colour, &block_name(*block), line);
        }
        html.push_str(&plot.finish());
    }
    html
}
