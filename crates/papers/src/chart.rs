//! Stacked bars, lines and curves as SVG.

use std::fmt::Write;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 60.0;
/// Names of lines or parts side by side.
const LEGENDS_IN_A_ROW: usize = 4;
/// Distinct for eyes that do not tell red from green (Okabe and Ito).
const COLOURS: [&str; 7] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f"];

/// One stacked bar.
pub(crate) struct Bar {
    /// Bars of one group stand side by side.
    pub(crate) group: String,
    pub(crate) label: &'static str,
    /// Heights, bottom up; `None`: there is nothing to show.
    pub(crate) parts: Option<Vec<f64>>,
}

/// Groups of stacked bars.
pub(crate) struct Bars<'a> {
    pub(crate) title: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) parts: &'a [&'a str],
    pub(crate) bars: Vec<Bar>,
}

/// Values at the places of a [`Lines`].
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) dashed: bool,
}

/// Lines over named places.
pub(crate) struct Lines<'a> {
    pub(crate) title: &'a str,
    pub(crate) unit: &'a str,
    /// What the places are; empty where their names say it.
    pub(crate) across: &'a str,
    pub(crate) places: Vec<String>,
    pub(crate) lines: Vec<Line>,
}

/// Points of a [`Curves`], in order.
pub(crate) struct Curve {
    pub(crate) label: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) dashed: bool,
}

/// One quantity against another.
pub(crate) struct Curves<'a> {
    pub(crate) title: &'a str,
    /// Quantity and unit across.
    pub(crate) across: &'a str,
    /// Quantity and unit upwards.
    pub(crate) unit: &'a str,
    pub(crate) curves: Vec<Curve>,
}

/// A line through points: place across, value upwards.
struct Path<'a> {
    points: Vec<(f64, f64)>,
    colour: &'a str,
    dashed: bool,
}

/// The document under construction, with its vertical scale.
struct Canvas {
    svg: String,
    most: f64,
}

impl Canvas {
    fn new(title: &str, unit: &str, most: f64) -> Canvas {
        let step = step(most);
        let mut canvas = Canvas { svg: String::new(), most: (most / step).ceil().max(1.0) * step };
        let head = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" role="img"><title>{}</title><rect width="100%" height="100%" fill="white"/>"#,
            escape(title)
        );
        canvas.put(&head);
        canvas.text(WIDTH / 2.0, 22.0, "middle", title, r#" font-size="16""#);
        let turned = format!(r#" transform="rotate(-90 16 {0})""#, HEIGHT / 2.0);
        canvas.text(16.0, HEIGHT / 2.0, "middle", unit, &turned);
        let lines = (canvas.most / step).round() as u32;
        for line in 0..=lines {
            let value = f64::from(line) * step;
            let y = canvas.y(value);
            let right = WIDTH - RIGHT;
            canvas.put(&format!(
                r##"<line x1="{LEFT}" x2="{right}" y1="{y:.1}" y2="{y:.1}" stroke="#ddd"/>"##
            ));
            canvas.text(LEFT - 6.0, y + 4.0, "end", &format!("{}", rounded(value)), "");
        }
        canvas
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.most * (HEIGHT - TOP - BOTTOM)
    }

    fn put(&mut self, element: &str) {
        self.svg.push_str(element);
        self.svg.push('\n');
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str, more: &str) {
        let text = escape(text);
        // Writing to a string does not fail.
        let _ = writeln!(
            self.svg,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}"{more}>{text}</text>"#
        );
    }

    fn legend(&mut self, at: usize, of: usize, colour: &str, label: &str) {
        // Two rows where one would be narrow.
        let in_row = if of > LEGENDS_IN_A_ROW { of.div_ceil(2) } else { of.max(1) };
        let width = (WIDTH - LEFT - RIGHT) / in_row as f64;
        let x = LEFT + (at % in_row) as f64 * width;
        let y = 36.0 + 16.0 * (at / in_row) as f64;
        self.put(&format!(r#"<rect x="{x:.1}" y="{y}" width="12" height="12" fill="{colour}"/>"#));
        self.text(x + 18.0, y + 10.0, "start", label, "");
    }

    /// Dashed ones lie over the others, so that of two that agree both are seen.
    fn paths(&mut self, paths: Vec<Path<'_>>) {
        let (dashed, solid): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.dashed);
        solid.into_iter().chain(dashed).for_each(|path| self.path(path));
    }

    /// A line with a dot for each point; a ring where it is dashed.
    fn path(&mut self, Path { points, colour, dashed }: Path<'_>) {
        let path = points.iter().map(|(x, value)| format!("{x:.1},{:.1}", self.y(*value)));
        let path: Vec<String> = path.collect();
        let dashes = if dashed { r#" stroke-dasharray="6 4""# } else { "" };
        self.put(&format!(
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>"#,
            path.join(" ")
        ));
        let dot = match dashed {
            true => format!(r#"r="7" fill="none" stroke="{colour}" stroke-width="2""#),
            false => format!(r#"r="4" fill="{colour}""#),
        };
        for (x, value) in points {
            let y = self.y(value);
            self.put(&format!(
                r#"<circle cx="{x:.1}" cy="{y:.1}" {dot}><title>{value:.3}</title></circle>"#
            ));
        }
    }

    fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

/// A round distance of grid lines: about five up to `most`.
fn step(most: f64) -> f64 {
    let raw = (most / 5.0).max(1e-9);
    let power = 10f64.powf(raw.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0].into_iter().find(|nice| nice * power >= raw);
    nice.unwrap_or(10.0) * power
}

/// Without the noise of binary fractions.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Bars<'_> {
    /// The drawing.
    pub(crate) fn draw(&self) -> String {
        let height = |bar: &Bar| bar.parts.iter().flatten().sum::<f64>();
        let most = self.bars.iter().map(height).fold(0.0, f64::max);
        let mut canvas = Canvas::new(self.title, self.unit, most);
        for (at, part) in self.parts.iter().enumerate() {
            canvas.legend(at, self.parts.len(), COLOURS[at % COLOURS.len()], part);
        }
        let width = (WIDTH - LEFT - RIGHT) / self.bars.len().max(1) as f64;
        for (at, bar) in self.bars.iter().enumerate() {
            let x = LEFT + at as f64 * width;
            let middle = x + width / 2.0;
            self.bar(&mut canvas, bar, x + width * 0.1, width * 0.8);
            canvas.text(middle, HEIGHT - BOTTOM + 16.0, "middle", bar.label, "");
            let first = at == 0 || self.bars[at - 1].group != bar.group;
            if first {
                let size = self.bars.iter().filter(|other| other.group == bar.group).count();
                let centre = x + width * size as f64 / 2.0;
                canvas.text(centre, HEIGHT - BOTTOM + 36.0, "middle", &bar.group, "");
            }
        }
        canvas.finish()
    }

    fn bar(&self, canvas: &mut Canvas, bar: &Bar, x: f64, width: f64) {
        let Some(parts) = &bar.parts else {
            let y = canvas.y(0.0) - 6.0;
            return canvas.text(x + width / 2.0, y, "middle", "not run", r##" fill="#777""##);
        };
        let mut below = 0.0;
        for (at, part) in parts.iter().enumerate() {
            let (from, to) = (canvas.y(below), canvas.y(below + part));
            below += part;
            let colour = COLOURS[at % COLOURS.len()];
            let name = self.parts.get(at).copied().unwrap_or_default();
            canvas.put(&format!(
                r#"<rect x="{x:.1}" y="{to:.2}" width="{width:.1}" height="{:.2}" fill="{colour}"><title>{name} {part:.3}</title></rect>"#,
                from - to
            ));
        }
        canvas.text(x + width / 2.0, canvas.y(below) - 4.0, "middle", &format!("{below:.1}"), "");
    }
}

impl Lines<'_> {
    /// The drawing.
    pub(crate) fn draw(&self) -> String {
        let values = self.lines.iter().flat_map(|line| line.values.iter().flatten());
        let most = values.copied().fold(0.0, f64::max);
        let mut canvas = Canvas::new(self.title, self.unit, most);
        let width = (WIDTH - LEFT - RIGHT) / self.places.len().max(1) as f64;
        let x = |place: usize| LEFT + (place as f64 + 0.5) * width;
        for (place, name) in self.places.iter().enumerate() {
            canvas.text(x(place), HEIGHT - BOTTOM + 20.0, "middle", name, "");
        }
        canvas.text(WIDTH / 2.0, HEIGHT - BOTTOM + 44.0, "middle", self.across, "");
        let mut paths = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let missing = line.values.iter().all(Option::is_none);
            let label = format!("{}{}", line.label, if missing { " (not run)" } else { "" });
            canvas.legend(at, self.lines.len(), colour, &label);
            let known = line.values.iter().enumerate();
            let points: Vec<_> =
                known.filter_map(|(place, value)| Some((place, (*value)?))).collect();
            let points = points.iter().map(|(place, value)| (x(*place), *value)).collect();
            paths.push(Path { points, colour, dashed: line.dashed });
        }
        canvas.paths(paths);
        canvas.finish()
    }
}

impl Curves<'_> {
    /// The drawing.
    pub(crate) fn draw(&self) -> String {
        let all = || self.curves.iter().flat_map(|curve| &curve.points);
        let mut canvas =
            Canvas::new(self.title, self.unit, all().map(|point| point.1).fold(0.0, f64::max));
        let most = all().map(|point| point.0).fold(0.0, f64::max);
        let step = step(most);
        let most = (most / step).ceil().max(1.0) * step;
        let x = |value: f64| LEFT + value / most * (WIDTH - LEFT - RIGHT);
        for tick in 0..=(most / step).round() as u32 {
            let value = f64::from(tick) * step;
            let label = format!("{}", rounded(value));
            canvas.text(x(value), HEIGHT - BOTTOM + 20.0, "middle", &label, "");
        }
        canvas.text(WIDTH / 2.0, HEIGHT - BOTTOM + 44.0, "middle", self.across, "");
        let mut paths = Vec::new();
        for (at, curve) in self.curves.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let missing = if curve.points.is_empty() { " (not run)" } else { "" };
            let label = format!("{}{missing}", curve.label);
            canvas.legend(at, self.curves.len(), colour, &label);
            let points = curve.points.iter().map(|(across, up)| (x(*across), *up)).collect();
            paths.push(Path { points, colour, dashed: curve.dashed });
        }
        canvas.paths(paths);
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grid_steps_are_round() {
        assert_eq!([0.9, 4.0, 62.0, 919.0].map(step).map(rounded), [0.2, 1.0, 20.0, 200.0]);
        assert!(step(0.0) > 0.0);
    }

    #[test]
    fn curves_span_both_axes() {
        let curve = |label: &str, points| Curve { label: label.to_owned(), points, dashed: false };
        let curves = vec![curve("a", vec![(0.0, 0.0), (50.0, 10.0)]), curve("b", Vec::new())];
        let svg = Curves { title: "t", across: "x", unit: "y", curves }.draw();
        assert!(svg.contains("b (not run)"));
        // From the corner to the right edge and the top.
        assert!(svg.contains(r#"points="80.0,360.0 940.0,70.0""#), "{svg}");
    }

    /// Two lines that agree are both seen: the dashed one lies over the other, with rings for dots.
    #[test]
    fn of_two_equal_lines_both_are_seen() {
        let line =
            |label: &str, dashed| Line { label: label.into(), values: vec![Some(1.0)], dashed };
        let (places, lines) =
            (vec!["1".to_owned()], vec![line("printed", true), line("ours", false)]);
        let svg = Lines { title: "t", unit: "y", across: "", places, lines }.draw();
        let at = |what: &str| svg.find(what).unwrap();
        assert!(at("<polyline") < at("stroke-dasharray"), "{svg}");
        assert!(at(r#"r="4""#) < at(r#"r="7" fill="none""#), "{svg}");
    }

    /// Names have room: six of them stand in two rows, three abreast.
    #[test]
    fn many_names_take_two_rows() {
        let line =
            |n: usize| Line { label: format!("line {n}"), values: vec![Some(1.0)], dashed: false };
        let svg = |count| {
            let (places, lines) = (vec!["1".to_owned()], (0..count).map(line).collect());
            Lines { title: "t", unit: "y", across: "threads", places, lines }.draw()
        };
        assert!(svg(4).contains(">threads<") && !svg(4).contains(r#"y="62.0""#));
        assert_eq!(svg(6).matches(r#"y="62.0" text-anchor="start""#).count(), 3);
        assert_eq!(svg(6).matches(r#"<rect x="80.0""#).count(), 2);
    }

    #[test]
    fn draws_what_is_there_and_says_what_is_not() {
        let bars = vec![
            Bar { group: "a<b".into(), label: "printed", parts: Some(vec![1.0, 2.0]) },
            Bar { group: "a<b".into(), label: "ours", parts: None },
        ];
        let svg = Bars { title: "t", unit: "J", parts: &["x", "y"], bars }.draw();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a&lt;b") && svg.contains("not run"));
        // Two parts of the first bar over 3 J: 1/3 and 2/3 of its height.
        assert_eq!(svg.matches("<title>").count(), 3);
    }
}
