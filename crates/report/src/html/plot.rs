//! A small plot: axes with ticks and units, lines, steps and areas, as SVG.

use std::fmt::Write;

use super::markup::escape;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 14.0;
/// Width of a character of a label, about.
const CHARACTER: f64 = 6.6;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;
/// Labels of marks this near would cover each other.
const LABEL_ROOM: f64 = 12.0;

/// One axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Label of the axis.
    pub label: &'static str,
    /// Its lower end.
    pub from: f64,
    /// Its upper end.
    pub to: f64,
    /// Logarithmic; `from` must be positive then.
    pub log: bool,
    /// Value and unit of a tick.
    pub format: fn(f64) -> String,
}

impl Axis {
    /// A linear axis from zero that holds `most`, with a little room above.
    pub fn from_zero(label: &'static str, most: f64, format: fn(f64) -> String) -> Axis {
        let to = if most > 0.0 { most * 1.05 } else { 1.0 };
        Axis { label, from: 0.0, to, log: false, format }
    }

    /// A logarithmic axis over `[from, to]`, an octave at least.
    pub fn logarithmic(label: &'static str, from: f64, to: f64, format: fn(f64) -> String) -> Axis {
        let from = from.max(1e-12);
        let to = to.max(from);
        let widen = if to < from * 2.0 { 1.5 } else { 1.0 };
        Axis { label, from: from / widen, to: to * widen, log: true, format }
    }

    /// Where a value lies, 0 to 1; what is outside is put on the border.
    fn place(&self, value: f64) -> f64 {
        let at = match self.log {
            true => (value.max(self.from) / self.from).ln() / (self.to / self.from).ln(),
            false => (value - self.from) / (self.to - self.from),
        };
        if at.is_finite() { at.clamp(0.0, 1.0) } else { 0.0 }
    }

    fn ticks(&self) -> Vec<f64> {
        if self.log {
            return self.log_ticks();
        }
        // Long times are shown in minutes: there they are to be round.
        let unit = if (self.format)(self.to).ends_with(" min") { 60.0 } else { 1.0 };
        linear_ticks(self.from / unit, self.to / unit).into_iter().map(|t| t * unit).collect()
    }

    /// Powers of ten, with 2 and 5 between where the axis spans few, thinned where it spans many.
    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.to / self.from).log10();
        let steps: &[f64] = match decades {
            d if d < 0.7 => return linear_ticks(self.from, self.to),
            d if d < 2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let every = (decades / 7.0).ceil().max(1.0) as i32;
        let mut ticks = Vec::new();
        for power in self.from.log10().floor() as i32..=self.to.log10().ceil() as i32 {
            if steps.len() == 1 && power.rem_euclid(every) != 0 {
                continue;
            }
            ticks.extend(steps.iter().map(|s| s * 10f64.powi(power)));
        }
        ticks.retain(|t| (self.from..=self.to).contains(t));
        ticks
    }
}

/// About five round values in `[from, to]`.
fn linear_ticks(from: f64, to: f64) -> Vec<f64> {
    let raw = (to - from) / 5.0;
    if !(raw.is_finite() && raw > 0.0) {
        return Vec::new();
    }
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|s| s * power).into_iter().find(|s| *s >= raw);
    let step = step.unwrap_or(raw);
    let first = (from / step).ceil() as i64;
    (first..first + 12).map(|i| i as f64 * step).filter(|t| *t <= to).collect()
}

/// Drops zeros that an axis does not need: `100.0 µs` becomes `100 µs`.
/// A zero needs no unit.
pub(super) fn short(text: String) -> String {
    if text.starts_with("0 ") {
        return "0".into();
    }
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// A plot under construction: an SVG picture that follows the style sheet of the page.
#[derive(Debug)]
pub struct Plot {
    title: &'static str,
    x: Axis,
    y: Axis,
    /// Ticks of the x axis with their labels, where they are not the axis' own.
    x_ticks: Option<Vec<(f64, String)>>,
    /// Label of the x axis, where it is not the axis' own.
    x_label: Option<String>,
    body: String,
    /// Where marks are, and their labels.
    marks: Vec<(f64, String)>,
    legend: Vec<(String, String)>,
}

impl Plot {
    /// An empty plot.
    pub fn new(title: &'static str, x: Axis, y: Axis) -> Plot {
        Plot {
            title,
            x,
            y,
            x_ticks: None,
            x_label: None,
            body: String::new(),
            marks: Vec::new(),
            legend: Vec::new(),
        }
    }

    /// Ticks of the x axis with their labels, instead of the axis' own.
    pub fn set_x_ticks(&mut self, ticks: Vec<(f64, String)>) {
        self.x_ticks = Some(ticks);
    }

    /// Label of the x axis, instead of the axis' own: the name of a key, for example.
    pub fn set_x_label(&mut self, label: String) {
        self.x_label = Some(label);
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = LEFT + self.x.place(x) * (WIDTH - LEFT - RIGHT);
        let down = HEIGHT - BOTTOM - self.y.place(y) * (HEIGHT - TOP - BOTTOM);
        (across, down)
    }

    fn path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (i, point) in points.iter().enumerate() {
            let (x, y) = self.at(*point);
            let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { "L" });
        }
        path
    }

    /// A line in the colour of CSS class `class`, named in the legend.
    pub fn line(&mut self, class: &str, name: &str, points: &[(f64, f64)]) {
        let path = self.path(points);
        let _ = write!(self.body, "<path class=\"line {class}\" d=\"{path}\"/>");
        self.legend.push((class.to_owned(), name.to_owned()));
    }

    /// A filled area between `top` and `bottom` (left to right both), named in the legend.
    pub fn area(&mut self, class: &str, name: &str, top: &[(f64, f64)], bottom: &[(f64, f64)]) {
        let mut outline = top.to_vec();
        outline.extend(bottom.iter().rev());
        let path = self.path(&outline);
        let _ = write!(self.body, "<path class=\"area {class}\" d=\"{path}Z\"/>");
        self.legend.push((class.to_owned(), name.to_owned()));
    }

    /// A filled outline in the colour of CSS class `class`, the stronger the nearer `strength` is to 1; `title` is shown
    /// where the pointer rests on it.
    pub fn cell(&mut self, class: &str, outline: &[(f64, f64)], strength: f64, title: &str) {
        let (path, title) = (self.path(outline), escape(title));
        // The faintest cell still shows that there is one.
        let opacity = 0.06 + 0.84 * strength.clamp(0.0, 1.0);
        let _ = write!(
            self.body,
            "<path class=\"cell {class}\" d=\"{path}Z\" fill-opacity=\"{opacity:.3}\"><title>{title}</title></path>"
        );
    }

    /// A point with a title of its own, `title`.
    pub fn point(&mut self, class: &str, point: (f64, f64), title: &str) {
        let ((x, y), title) = (self.at(point), escape(title));
        let _ = write!(
            self.body,
            "<circle class=\"bar {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\"><title>{title}</title></circle>"
        );
    }

    /// Names what is drawn in the colour of CSS class `class` in the legend.
    pub fn name(&mut self, class: &str, name: &str) {
        self.legend.push((class.to_owned(), name.to_owned()));
    }

    /// A line of pieces that need not touch, named in the legend.
    pub fn pieces(&mut self, class: &str, name: &str, pieces: &[[(f64, f64); 2]]) {
        let path: String = pieces.iter().map(|piece| self.path(piece)).collect();
        let _ = write!(self.body, "<path class=\"line {class}\" d=\"{path}\"/>");
        self.name(class, name);
    }

    /// A vertical mark at `x` with a label at its top. Marks too near for labels of their own share
    /// one.
    pub fn mark(&mut self, x: f64, label: &str) {
        let (across, _) = self.at((x, 0.0));
        let near = |(at, _): &(f64, String)| (at - across).abs() < LABEL_ROOM;
        match self.marks.last_mut().filter(|last| near(last)) {
            Some((_, labels)) => labels.extend([", ", label]),
            None => self.marks.push((across, label.to_owned())),
        }
        let (top, bottom) = (TOP, HEIGHT - BOTTOM);
        let _ = write!(
            self.body,
            "<path class=\"mark\" d=\"M{across:.1} {top}L{across:.1} {bottom}\"/>"
        );
    }

    fn mark_labels(&self, html: &mut String) {
        for (across, label) in &self.marks {
            let _ = write!(
                html,
                "<text class=\"marked\" transform=\"translate({:.1} {}) rotate(-90)\" \
                 text-anchor=\"end\">{}</text>",
                across - 3.0,
                TOP + 2.0,
                escape(label)
            );
        }
    }

    /// The figure with title, legend and axes.
    pub fn finish(self) -> String {
        let mut html = format!("<figure><figcaption>{}", escape(self.title));
        for (class, name) in &self.legend {
            let name = escape(name);
            let _ = write!(html, " <span class=\"key\"><i class=\"{class}\"></i>{name}</span>");
        }
        let _ = write!(
            html,
            "</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escape(self.title)
        );
        self.axes(&mut html);
        html.push_str(&self.body);
        self.mark_labels(&mut html);
        html.push_str("</svg></figure>\n");
        html
    }

    fn axes(&self, html: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for tick in self.y.ticks() {
            let y = self.at((self.x.from, tick)).1;
            let label = escape(&(self.y.format)(tick));
            let _ = write!(
                html,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}L{right} {y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 6.0,
                y + 3.5
            );
        }
        let own = || self.x.ticks().into_iter().map(|t| (t, (self.x.format)(t))).collect();
        let ticks: Vec<(f64, String)> = self.x_ticks.clone().unwrap_or_else(own);
        for (tick, label) in ticks {
            let x = self.at((tick, 0.0)).0;
            // Lines that would be cut off at the edge end there.
            let cut = x + label.chars().count() as f64 * CHARACTER / 2.0 > WIDTH;
            let (place, anchor) = if cut { (WIDTH - 1.0, "end") } else { (x, "middle") };
            let _ = write!(
                html,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}L{x:.1} {bottom}\"/>\
                 <text x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                bottom + 15.0,
                escape(&label)
            );
        }
        let (middle_x, middle_y) = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
        let _ = write!(
            html,
            "<path class=\"axis\" d=\"M{LEFT} {TOP}L{LEFT} {bottom}L{right} {bottom}\"/>\
             <text class=\"label\" x=\"{middle_x}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text class=\"label\" transform=\"translate(11 {middle_y}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            HEIGHT - 8.0,
            escape(self.x_label.as_deref().unwrap_or(self.x.label)),
            escape(self.y.label)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdyno_figures::seconds;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(linear_ticks(0.0, 10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert!(linear_ticks(3.0, 3.0).is_empty());
        let hours = Axis::from_zero("", 7_200.0, seconds);
        let shown: Vec<String> = hours.ticks().into_iter().map(|t| short(seconds(t))).collect();
        assert_eq!(shown, ["0", "50 min", "100 min"]);
        let axis = Axis::logarithmic("", 90.0, 9e6, |v| v.to_string());
        assert_eq!(axis.ticks(), [100.0, 1e3, 1e4, 1e5, 1e6]);
        let axis = Axis::logarithmic("", 50.0, 50.0, |v| v.to_string());
        assert!(!axis.ticks().is_empty() && axis.place(50.0) > 0.4 && axis.place(50.0) < 0.6);
    }

    #[test]
    fn labels_end_at_the_edge() {
        let axis = |label| Axis { label, from: 0.0, to: 1.0, log: false, format: seconds };
        let drawn = |at: f64| {
            let mut plot = Plot::new("", axis("x"), axis("y"));
            plot.set_x_ticks(vec![(at, "99.9999 %".into())]);
            plot.finish()
        };
        assert!(drawn(1.0).contains(r#"text-anchor="end">99.9999 %"#));
        assert!(drawn(0.9).contains(r#"text-anchor="middle">99.9999 %"#));
    }

    #[test]
    fn an_axis_has_the_label_that_it_was_given() {
        let axis = |label| Axis { label, from: 0.0, to: 1.0, log: false, format: seconds };
        let mut plot = Plot::new("", axis("value"), axis("rate"));
        plot.set_x_label("a<b".to_owned());
        let drawn = plot.finish();
        assert!(drawn.contains(">a&lt;b</text>") && drawn.contains(">rate</text>"), "{drawn}");
        assert!(!drawn.contains(">value</text>"), "{drawn}");
        let own = Plot::new("", axis("value"), axis("rate")).finish();
        assert!(own.contains(">value</text>"), "{own}");
    }

    #[test]
    fn axis_labels_are_short() {
        assert_eq!(short("100.0 µs".into()), "100 µs");
        assert_eq!(short("1.250 M".into()), "1.25 M");
        assert_eq!(short("500".into()), "500");
        assert_eq!(short("0.5000".into()), "0.5");
    }
}
