//! Figures 1 to 3 and their numbers.

use ssdyno_profile::{ProfileOp, ProfileTest};

use super::outcome::{Outcome, median};
use crate::chart::{Curve, Curves, Line, Lines, Places};
use crate::printed::Titled;
use crate::{Figure, FigureTable};

/// The drawing and the numbers of a figure.
pub(super) fn draw(figure: &Titled, outcome: &Outcome) -> (Figure, FigureTable) {
    let title = figure.title.as_str();
    let (svg, columns, rows) = match figure.id.as_str() {
        "figure1" => access_times(title, outcome),
        "figure2" => by_points(title, outcome),
        _ => by_repetitions(title, outcome),
    };
    Figure::with_table(format!("S2/{}", figure.id), title, svg, columns, rows)
}

type Drawn = (String, Vec<String>, Vec<Vec<String>>);

fn access_times(title: &str, outcome: &Outcome) -> Drawn {
    let device = outcome.devices.iter().find(|device| device.device.name == "edel");
    let times = device.and_then(|device| device.largest());
    let points = |test: ProfileTest| -> Vec<(f64, f64)> {
        let all = times.into_iter().flatten().filter(|((of, _), _)| *of == test);
        all.map(|((_, size), time)| (*size as f64 / 1024.0, time / 1e6)).collect()
    };
    let curve = |test: ProfileTest| Curve {
        label: test.to_string(),
        points: points(test),
        dashed: test.is_random(),
    };
    let curves: Vec<Curve> = ProfileTest::ALL.into_iter().map(curve).collect();
    // The curve has all 134 sizes, the table every sixteenth. A straight line (S2-13) is visible in
    // the drawing, and the table gives its numbers.
    let rows = points(ProfileTest::SequentialRead).into_iter().enumerate().step_by(16).map(
        |(at, point)| {
            let mut row = vec![format!("{:.0}", point.0)];
            row.extend(
                curves
                    .iter()
                    .map(|c| c.points.get(at).map_or_else(String::new, |p| format!("{:.3}", p.1))),
            );
            row
        },
    );
    let rows = rows.collect();
    let names = ProfileTest::ALL.map(|test| format!("{test} ms"));
    let columns = std::iter::once("size KiB".to_owned()).chain(names).collect();
    let (across, unit) = ("request size (KiB)", "access time (ms)");
    (Curves { title, across, unit, curves }.draw(), columns, rows)
}

fn by_points(title: &str, outcome: &Outcome) -> Drawn {
    let points = &outcome.points;
    let value = |test: ProfileTest, points: u32| {
        let errors = outcome.devices.iter().filter_map(|d| d.curve_errors.get(&(points, test)));
        median(errors.flatten().copied()).map(|error| error * 100.0)
    };
    let line = |test: ProfileTest| Line {
        label: test.to_string(),
        values: points.iter().map(|points| value(test, *points)).collect(),
        dashed: test.is_random(),
    };
    let lines: Vec<Line> = ProfileTest::ALL.into_iter().map(line).collect();
    let head = ProfileTest::ALL.map(|test| format!("{test} %"));
    let (places, unit) = (Places::values(points), "median error (%)");
    let rows = rows_of(points, &lines);
    let svg = Lines { title, unit, across: "points of each interval", places, lines }.draw();
    (svg, std::iter::once("points".to_owned()).chain(head).collect(), rows)
}

fn by_repetitions(title: &str, outcome: &Outcome) -> Drawn {
    let repetitions = &outcome.repetitions;
    let classes: Vec<&str> = outcome.classes().collect();
    let mut lines = Vec::new();
    for op in [ProfileOp::Write, ProfileOp::Read] {
        for class in &classes {
            lines.push(Line {
                label: format!("{class} {op}"),
                values: repetitions.iter().map(|n| outcome.ratio_error(class, *n, op)).collect(),
                dashed: op == ProfileOp::Read,
            });
        }
    }
    let head = lines.iter().map(|line| format!("{} %", line.label));
    let columns = std::iter::once("repetitions".to_owned()).chain(head).collect();
    let rows = rows_of(repetitions, &lines);
    let (places, unit) = (Places::values(repetitions), "median error (%)");
    (Lines { title, unit, across: "repetitions", places, lines }.draw(), columns, rows)
}

fn rows_of(places: &[u32], lines: &[Line]) -> Vec<Vec<String>> {
    let cell = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.1}"));
    let row = |(index, place): (usize, &u32)| {
        let values = lines.iter().map(|line| cell(line.values[index]));
        std::iter::once(place.to_string()).chain(values).collect()
    };
    places.iter().enumerate().map(row).collect()
}
