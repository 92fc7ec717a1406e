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
// Seven colours repeat after seven lines. A generated scale would give neighbouring lines colours
// that people with red-green blindness cannot tell apart.
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

/// What stands across a [`Lines`].
pub(crate) enum Places {
    /// Things that have no distance from one another, such as cores: evenly spaced, and their points
    /// are not joined, since nothing lies between them.
    Names(Vec<String>),
    /// Numbers. Each stands at its value, so that a straight line looks like one.
    Values(Vec<f64>),
}

impl Places {
    /// Of whole numbers of any type.
    pub(crate) fn values<T: Copy + Into<u32>>(numbers: &[T]) -> Places {
        Places::Values(numbers.iter().map(|number| f64::from((*number).into())).collect())
    }
}

/// Values at places.
pub(crate) struct Lines<'a> {
    pub(crate) title: &'a str,
    pub(crate) unit: &'a str,
    /// What the places are; empty where their names say it.
    pub(crate) across: &'a str,
    pub(crate) places: Places,
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
    /// Points of things that have nothing between them are not joined.
    joined: bool,
}

/// Pixels within which two lines hide one another.
const HIDDEN: f64 = 3.0;
/// Length of a stretch of a line that takes turns with others at the same place, in pixels.
const TURN: f64 = 12.0;

/// The document under construction, with its vertical scale.
struct Canvas {
    svg: String,
    most: f64,
    /// Dots that are drawn: place, and how many rings out.
    dots: Vec<(f64, f64, usize)>,
}

impl Canvas {
    fn new(title: &str, unit: &str, most: f64) -> Canvas {
        let step = step(most);
        let mut canvas = Canvas {
            svg: String::new(),
            // The axis ends at a grid line above the largest value, and is never empty. A chart of
            // zeros would otherwise divide by zero.
            most: (most / step).ceil().max(1.0) * step,
            dots: Vec::new(),
        };
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

    /// Dashed ones lie over the others. Lines that lie on one another take turns in stretches, and their
    /// dots are rings inside one another, so that each is seen.
    fn paths(&mut self, paths: Vec<Path<'_>>) {
        // Dashed lines are drawn last. The gaps show a solid line below, while a solid line on top
        // would hide a dashed one completely.
        let (dashed, solid): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.dashed);
        let paths: Vec<_> = solid.into_iter().chain(dashed).collect();
        let alike = |one: &Path<'_>, other: &Path<'_>| {
            let apart = |(a, b): (&(f64, f64), &(f64, f64))| {
                (a.0 - b.0).abs().max((self.y(a.1) - self.y(b.1)).abs())
            };
            let mut both = one.points.iter().zip(&other.points);
            one.points.len() == other.points.len() && both.all(|pair| apart(pair) < HIDDEN)
        };
        // Which of those that it lies on each path is, and of how many.
        let turns: Vec<(usize, usize)> = (0..paths.len())
            .map(|at| {
                let with = |range: std::ops::Range<usize>| {
                    range.filter(|other| alike(&paths[at], &paths[*other])).count()
                };
                (with(0..at), with(0..paths.len()))
            })
            .collect();
        paths.into_iter().zip(turns).for_each(|(path, turn)| self.path(path, turn));
    }

    /// A line with a dot for each point: a ring where it is dashed, or where another one has a dot. It is the
    /// `turn`-th, from zero, of several that lie on one another.
    fn path(&mut self, path: Path<'_>, (turn, of): (usize, usize)) {
        let Path { points, colour, dashed, joined } = path;
        let places = points.iter().map(|(x, value)| format!("{x:.1},{:.1}", self.y(*value)));
        let places: Vec<String> = places.collect();
        let dashes = match (dashed, of) {
            (_, 2..) => format!(
                r#" stroke-dasharray="{TURN} {}" stroke-dashoffset="{}""#,
                TURN * (of - 1) as f64,
                -TURN * turn as f64
            ),
            (true, _) => r#" stroke-dasharray="6 4""#.to_owned(),
            (false, _) => String::new(),
        };
        if joined {
            self.put(&format!(
                r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>"#,
                places.join(" ")
            ));
        }
        for (x, value) in points {
            let y = self.y(value);
            let near = |dot: &&(f64, f64, usize)| (dot.0 - x).abs().max((dot.1 - y).abs()) < HIDDEN;
            // Dots within 3 pixels are rings around each other, so each line keeps a visible mark.
            // This shows agreement of the paper with our run instead of one missing line.
            let here: Vec<usize> = self.dots.iter().filter(near).map(|dot| dot.2).collect();
            let first = usize::from(dashed && of == 1);
            let outer = (first..).find(|outer| !here.contains(outer)).unwrap_or(first);
            self.dots.push((x, y, outer));
            // The innermost is a full dot.
            let dot = match outer {
                0 => format!(r#"r="4" fill="{colour}""#),
                outer => {
                    let radius = 4 + 3 * outer;
                    format!(r#"r="{radius}" fill="none" stroke="{colour}" stroke-width="2""#)
                }
            };
            self.put(&format!(
                r#"<circle cx="{x:.1}" cy="{y:.1}" {dot}><title>{value:.3}</title></circle>"#
            ));
        }
    }

    /// An axis from zero to a round number that is `most` at least, with its labels; gives the place of
    /// a value.
    fn axis_across(&mut self, most: f64, across: &str) -> impl Fn(f64) -> f64 + use<> {
        let step = step(most);
        let most = (most / step).ceil().max(1.0) * step;
        let x = move |value: f64| LEFT + value / most * (WIDTH - LEFT - RIGHT);
        for tick in 0..=(most / step).round() as u32 {
            let value = f64::from(tick) * step;
            let label = format!("{}", rounded(value));
            self.text(x(value), HEIGHT - BOTTOM + 20.0, "middle", &label, "");
        }
        self.text(WIDTH / 2.0, HEIGHT - BOTTOM + 44.0, "middle", across, "");
        x
    }

    /// Draws lines with their names; `joined` where something is between their points.
    fn named_paths(mut self, lines: Vec<NamedLine<'_>>, joined: bool) -> String {
        let (of, mut paths) = (lines.len(), Vec::new());
        for (at, (label, dashed, points)) in lines.into_iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            // A line without values stays in the legend. A reader sees that it was not run and does
            // not conclude that the paper has no such line.
            let missing = if points.is_empty() { " (not run)" } else { "" };
            self.legend(at, of, colour, &format!("{label}{missing}"));
            paths.push(Path { points, colour, dashed, joined });
        }
        self.paths(paths);
        self.finish()
    }

    fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

/// A line: its label, whether it is dashed, and its points.
type NamedLine<'a> = (&'a str, bool, Vec<(f64, f64)>);

/// A round distance of grid lines: about five up to `most`.
fn step(most: f64) -> f64 {
    let raw = (most / 5.0).max(1e-9);
    let power = 10f64.powf(raw.log10().floor());
    // The steps 1, 2 and 5 times a power of ten have short labels. An axis with equal division of
    // the maximum would have labels such as 183.8.
    let nice = [1.0, 2.0, 5.0, 10.0].into_iter().find(|nice| nice * power >= raw);
    nice.unwrap_or(10.0) * power
}

/// Without the noise of binary fractions.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn escape(text: &str) -> String {
    // The ampersand must be replaced first, or the entities of the other two would be escaped
    // again. Quotation marks need no escape outside of attributes.
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
        let (across, joined) = match &self.places {
            Places::Names(names) => (self.names(&mut canvas, names), false),
            Places::Values(values) => {
                let most = values.iter().copied().fold(0.0, f64::max);
                let x = canvas.axis_across(most, self.across);
                (values.iter().map(|value| x(*value)).collect(), true)
            }
        };
        let points = |line: &Line| {
            let known = across.iter().zip(&line.values);
            known.filter_map(|(x, value)| Some((*x, (*value)?))).collect()
        };
        let named = self.lines.iter().map(|line| (line.label.as_str(), line.dashed, points(line)));
        canvas.named_paths(named.collect(), joined)
    }

    /// Labels of places that have names; gives where they are.
    fn names(&self, canvas: &mut Canvas, names: &[String]) -> Vec<f64> {
        let width = (WIDTH - LEFT - RIGHT) / names.len().max(1) as f64;
        let across: Vec<f64> =
            (0..names.len()).map(|place| LEFT + (place as f64 + 0.5) * width).collect();
        for (x, name) in across.iter().zip(names) {
            canvas.text(*x, HEIGHT - BOTTOM + 20.0, "middle", name, "");
        }
        canvas.text(WIDTH / 2.0, HEIGHT - BOTTOM + 44.0, "middle", self.across, "");
        across
    }
}

impl Curves<'_> {
    /// The drawing.
    pub(crate) fn draw(&self) -> String {
        let all = || self.curves.iter().flat_map(|curve| &curve.points);
        let mut canvas =
            Canvas::new(self.title, self.unit, all().map(|point| point.1).fold(0.0, f64::max));
        let x = canvas.axis_across(all().map(|point| point.0).fold(0.0, f64::max), self.across);
        let points = |curve: &Curve| curve.points.iter().map(|(at, up)| (x(*at), *up)).collect();
        let named = self.curves.iter();
        let named = named.map(|curve| (curve.label.as_str(), curve.dashed, points(curve)));
        canvas.named_paths(named.collect(), true)
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
            (Places::values(&[1u32]), vec![line("printed", true), line("ours", false)]);
        let svg = Lines { title: "t", unit: "y", across: "", places, lines }.draw();
        let at = |what: &str| svg.find(what).unwrap();
        assert!(at(r#"r="4""#) < at(r#"r="7" fill="none""#), "{svg}");
        // They take turns, each as long as the other.
        assert!(svg.contains(r#"stroke-dasharray="12 12" stroke-dashoffset="-0""#), "{svg}");
        assert!(svg.contains(r#"stroke-dasharray="12 12" stroke-dashoffset="-12""#), "{svg}");
    }

    /// Lines that meet in a point only: each has a mark there.
    #[test]
    fn dots_on_one_another_are_rings_inside_one_another() {
        let line =
            |last| Line { label: "a".into(), values: vec![Some(1.0), Some(last)], dashed: false };
        let (places, lines) = (Places::values(&[1u32, 2]), vec![line(2.0), line(3.0), line(4.0)]);
        let svg = Lines { title: "t", unit: "y", across: "", places, lines }.draw();
        assert!(!svg.contains("stroke-dasharray"), "{svg}");
        // Where they meet a dot and two rings, elsewhere a dot each.
        let count = |mark: &str| svg.matches(mark).count();
        assert_eq!((count(r#"r="4""#), count(r#"r="7""#), count(r#"r="10""#)), (4, 1, 1), "{svg}");
    }

    /// A straight line looks like one, whatever the distances of its points.
    #[test]
    fn values_stand_where_they_belong_and_names_are_not_joined() {
        let line = |values| Line { label: "a".into(), values, dashed: false };
        let draw = |places, values| {
            let lines = vec![line(values)];
            Lines { title: "t", unit: "y", across: "threads", places, lines }.draw()
        };
        let values = vec![Some(10.0), Some(20.0), Some(100.0)];
        let svg = draw(Places::values(&[10u16, 20, 100]), values.clone());
        // 860 pixels across and 290 upwards stand for 100 each.
        assert!(svg.contains(r#"points="166.0,331.0 252.0,302.0 940.0,70.0""#), "{svg}");
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        let svg = draw(Places::Names(names), values);
        assert!(!svg.contains("<polyline") && svg.matches("<circle").count() == 3, "{svg}");
    }

    /// Names have room: six of them stand in two rows, three abreast.
    #[test]
    fn many_names_take_two_rows() {
        let line =
            |n: usize| Line { label: format!("line {n}"), values: vec![Some(1.0)], dashed: false };
        let svg = |count| {
            let places = Places::Names(vec!["1".to_owned()]);
            let lines = (0..count).map(line).collect();
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
