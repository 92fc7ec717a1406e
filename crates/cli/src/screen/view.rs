//! The layout of the live view: from figures to cells, nothing else.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{LineGauge, Paragraph, Sparkline};

/// One figure: its value now, over the whole run, and over time.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) now: String,
    pub(super) whole: String,
    /// Oldest first; `None` where nothing completed.
    pub(super) history: Vec<Option<u64>>,
}

/// Everything that is shown.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct View {
    pub(super) target: String,
    pub(super) workload: String,
    /// The present phase, such as `preparing the device`.
    pub(super) state: String,
    /// 0 to 1; `None` if its end is unknown.
    pub(super) share: Option<f64>,
    pub(super) figures: Vec<Figure>,
    /// Requests, errors.
    pub(super) counts: String,
    /// What the tool costs.
    pub(super) cost: String,
}

/// Least size of a terminal for the view.
pub(super) fn fits(width: u16, height: u16) -> bool {
    width >= 40 && height >= 12
}

/// Widths of the columns before the sparkline.
const NAME: u16 = 11;
const VALUE: u16 = 12;

const FAINT: Style = Style::new().fg(Color::DarkGray);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const SPARK: Style = Style::new().fg(Color::Cyan);

/// Draws `view` on all of the frame; what there is no room for is left out.
pub(super) fn draw(view: &View, frame: &mut Frame<'_>) {
    let area = frame.area();
    let figures = view.figures.len() as u16;
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(figures * if area.height >= 8 + 2 * figures { 2 } else { 1 }),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ]);
    let [title, progress, _, head, table, counts, cost, _, keys] = rows.areas(area);
    let name = [
        Span::styled(view.target.as_str(), BOLD),
        Span::raw("  "),
        Span::raw(view.workload.as_str()),
    ];
    frame.render_widget(Line::from_iter(name), title);
    draw_progress(view, frame, progress);
    let columns = format!(
        "{:NAME$}{:>VALUE$}{:>VALUE$}",
        "",
        "now",
        "run",
        NAME = NAME.into(),
        VALUE = VALUE.into()
    );
    frame.render_widget(Paragraph::new(columns).style(FAINT), head);
    if figures > 0 {
        let each = Layout::vertical(vec![Constraint::Fill(1); figures.into()]).split(table);
        for (figure, area) in view.figures.iter().zip(each.iter()) {
            draw_figure(figure, frame, *area);
        }
    }
    frame.render_widget(Paragraph::new(view.counts.as_str()), counts);
    frame.render_widget(Paragraph::new(view.cost.as_str()), cost);
    frame.render_widget(
        Line::styled("Ctrl-C ends the run and keeps the results so far", FAINT),
        keys,
    );
}

fn draw_progress(view: &View, frame: &mut Frame<'_>, area: Rect) {
    let Some(share) = view.share else {
        return frame.render_widget(Line::raw(view.state.as_str()), area);
    };
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let gauge = LineGauge::default()
        .ratio(share)
        .label(format!("{:>3.0} %  {} ", share * 100.0, view.state))
        .filled_style(SPARK)
        .unfilled_style(FAINT);
    frame.render_widget(gauge, area);
}

fn draw_figure(figure: &Figure, frame: &mut Frame<'_>, area: Rect) {
    let [name, now, whole, _, spark] = Layout::horizontal([
        Constraint::Length(NAME),
        Constraint::Length(VALUE),
        Constraint::Length(VALUE),
        Constraint::Length(2),
        Constraint::Fill(1),
    ])
    .areas(area);
    frame.render_widget(Line::raw(figure.name), name);
    frame.render_widget(Line::styled(figure.now.as_str(), BOLD).right_aligned(), now);
    frame.render_widget(Line::raw(figure.whole.as_str()).right_aligned(), whole);
    let room = figure.history.len().saturating_sub(spark.width.into());
    frame.render_widget(Sparkline::default().data(&figure.history[room..]).style(SPARK), spark);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn view() -> View {
        let figure = |name, now: &str, whole: &str, history: std::ops::Range<u64>| Figure {
            name,
            now: now.to_owned(),
            whole: whole.to_owned(),
            history: history.map(|n| (n % 5 > 0).then_some(n % 9)).collect(),
        };
        View {
            target: "/dev/loop0".to_owned(),
            workload: "randread".to_owned(),
            state: "12.3 s of 60 s, 47 s left".to_owned(),
            share: Some(0.205),
            figures: vec![
                figure("IOPS", "412.3 k", "398.1 k", 0..20),
                figure("Throughput", "1.689 GB/s", "1.631 GB/s", 0..90),
                figure("p50", "76.20 µs", "75.90 µs", 0..0),
                figure("p99", "120.1 µs", "119.5 µs", 3..9),
                figure("p99.9", "1.203 ms", "988.1 µs", 0..20),
            ],
            counts: "4,896,630 requests, no errors".to_owned(),
            cost: "overhead: 1.210 µs CPU per request, 48 % of one CPU".to_owned(),
        }
    }

    fn drawn(view: &View, width: u16, height: u16) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(view, frame)).unwrap();
        terminal
    }

    fn shown(view: &View, width: u16, height: u16) -> String {
        drawn(view, width, height).backend().to_string()
    }

    #[test]
    fn golden_frame() {
        insta::assert_snapshot!("frame", shown(&view(), 80, 24));
        insta::assert_snapshot!("frame_small", shown(&view(), 48, 12));
    }

    proptest! {
        #[test]
        fn no_size_of_terminal_and_no_figures_break_it(
            width in 0u16..200,
            height in 0u16..60,
            figures in 0usize..9,
            share in proptest::option::of(proptest::num::f64::ANY),
            history in proptest::collection::vec(proptest::option::of(any::<u64>()), 0..300),
        ) {
            let mut view = view();
            view.share = share;
            view.figures = vec![Figure { history, ..view.figures[0].clone() }; figures];
            drawn(&view, width, height);
        }
    }
}
