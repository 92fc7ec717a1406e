//! From a map to its result, text and page.

use std::collections::BTreeMap;
use std::fmt::Write;

use ssdyno_block::counted;
use ssdyno_block::units::Bytes;
use ssdyno_figures::{
    Warning, WarningKind, bytes_per_second, nanoseconds, rate, seconds, significant,
};
use ssdyno_report::{Axis, Page, Plot, html_table};

use super::mesh::{FRAME, Node, Value, interpolate};
use super::result::{MapHeldOut, MapPoint, MapResult};
use super::run::{FILLING_SHARE_MAX, LEAD, MapRun, rates};
use crate::credits::credits_text;
use crate::result::ProfileResult;
use crate::stopped::StoppedBecause;

/// Cells of the table along each side, and of the picture.
const TABLE: usize = 8;
const PICTURE: usize = 40;
/// A point that writes less than so many times what the write buffers hold does not show what the device sustains.
const BUFFERS_LEAST: f64 = 2.0;
/// A real cache may take the writes of a point that is shorter, in seconds.
const SECONDS_SHORT: f64 = 3.0;
/// Latencies between isolines: a factor of two.
const ISOLINE: f64 = 2.0;
/// More isolines cannot be told apart.
const ISOLINES_MAX: usize = 6;

/// All findings so far.
pub(crate) fn result_of(run: &MapRun<'_>, stopped_because: StoppedBecause) -> ProfileResult {
    let mut map = MapResult {
        error: run.mesh.error(),
        read_bytes: run.load.read_bytes,
        write_bytes: run.load.write_bytes,
        read_iops_max: run.most[0],
        write_bytes_per_second_max: run.most[1] * run.load.write_bytes as f64,
        read_depths: run.depths[0].clone(),
        write_depths: run.depths[1].clone(),
        points: run.points.iter().map(|(_, point)| *point).collect(),
        triangles: Vec::new(),
        held_out: held_out(run),
    };
    add_triangles(run, &mut map);
    let mut result = run.loads.result(stopped_because);
    let credits = run.loads.credits.iter();
    result.notes.extend(
        credits.map(|one| credits_text(one, "the volume does not sustain the highest rates")),
    );
    result.warnings.extend(buffered(run));
    result.notes.extend(real_cache(run));
    if run.loads.is_real && run.loads.filled < run.load.span {
        result.notes.push(format!(
            "{} of the span of {} bytes were written sequentially before the reads: reads of parts \
             that were never written do not access the medium",
            run.loads.filled, run.load.span
        ));
    }
    if !run.mesh.has_frame() {
        let why = match stopped_because {
            StoppedBecause::TimeLimit => {
                "the time was too short for the coarse grid of the map: part of the map is empty; allow more `time`"
            }
            _ => "the coarse grid of the map is not complete: part of the map is empty",
        };
        result.notes.push(why.to_owned());
    }
    ProfileResult {
        depth: map.read_depths.iter().map(|one| one.depth).max().unwrap_or(1),
        sizes_bytes: vec![run.load.read_bytes, run.load.write_bytes],
        map: Some(map),
        ..result
    }
}

/// The points with writes that were not overloaded, with the bytes that the load of each wrote.
fn written<'a>(run: &'a MapRun<'_>) -> Vec<(&'a MapPoint, f64)> {
    let points = run.points.iter().map(|(_, point)| point);
    let open = points.filter(|point| !point.overloaded && point.write_bytes_per_second > 0.0);
    let bytes = |point: &MapPoint| {
        let seconds = point.reads as f64 / point.read_iops_reached.unwrap_or(f64::NAN);
        seconds * (1.0 + LEAD) * point.write_bytes_per_second
    };
    open.map(|point| (point, bytes(point))).collect()
}

/// The warning that the write buffers of a simulated device took the writes of points: the device may not sustain them.
fn buffered(run: &MapRun<'_>) -> Option<Warning> {
    let buffer = run.buffer_bytes as f64;
    // The axis ends at what a long write sustains. Rates below the coarse grid are of no concern.
    let least = run.most[1] * run.load.write_bytes as f64 / f64::from(FRAME);
    let all = written(run).into_iter();
    let all = all.filter(|(point, _)| point.write_bytes_per_second > 0.999 * least);
    let (short, long): (Vec<_>, Vec<_>) =
        all.partition(|(_, bytes)| *bytes < BUFFERS_LEAST * buffer);
    // A point is sustained if a longer one with no less of either rate was.
    let is_known = |point: &MapPoint| {
        long.iter().any(|(other, _)| {
            other.read_iops >= point.read_iops
                && other.write_bytes_per_second >= point.write_bytes_per_second
        })
    };
    let count = short.iter().filter(|(point, _)| !is_known(point)).count();
    if count == 0 {
        return None;
    }
    let time = (BUFFERS_LEAST * buffer / least / FILLING_SHARE_MAX).ceil();
    let message = format!(
        "{} of the map wrote less than {BUFFERS_LEAST} times what the write buffer holds ({}): the buffer took the writes, and \
         the device may not sustain these rates",
        counted(count as u64, "point", "points"),
        Bytes(run.buffer_bytes)
    );
    let help = format!("profile with `time={time}s` or more");
    Some(Warning::new(WarningKind::NotExhausted, message).with_help(help))
}

/// The note that short points cannot show the overload of a real device, whose cache is not known.
fn real_cache(run: &MapRun<'_>) -> Option<String> {
    let lasted = |(point, bytes): (&MapPoint, f64)| bytes / point.write_bytes_per_second;
    let shortest = written(run).into_iter().map(lasted).fold(f64::INFINITY, f64::min);
    (run.loads.is_real && shortest < SECONDS_SHORT).then(|| {
        format!(
            "points with writes lasted for {} or more: if a write cache holds more than the writes of a point, the device may \
             not sustain its rates",
            seconds(shortest)
        )
    })
}

/// The triangles, with those corners that were not measured.
fn add_triangles(run: &MapRun<'_>, map: &mut MapResult) {
    let mut places: BTreeMap<Node, u32> =
        run.points.iter().enumerate().map(|(at, (node, _))| (*node, at as u32)).collect();
    for triangle in run.mesh.triangles() {
        let corners = triangle.map(|node| {
            *places.entry(node).or_insert_with(|| {
                let (reads, writes) = rates(run.most, node);
                map.points.push(MapPoint {
                    read_iops: reads,
                    write_bytes_per_second: writes * run.load.write_bytes as f64,
                    overloaded: run.mesh.value(node) == Some(Value::Overloaded),
                    measured: false,
                    read_iops_reached: None,
                    write_bytes_per_second_reached: None,
                    read_p95_us: None,
                    low_us: None,
                    high_us: None,
                    reads: 0,
                });
                map.points.len() as u32 - 1
            })
        });
        map.triangles.push(corners);
    }
}

fn held_out(run: &MapRun<'_>) -> Option<MapHeldOut> {
    // Random points are a fair sample of the map. The middles that halve triangles lie where
    // the map is difficult, so they serve only if random points are missing.
    let random = run.checks.len() >= 3;
    let all: Vec<Option<f64>> = match random {
        true => run.checks.clone(),
        false => run.mesh.held_out().filter(|one| one.is_some()).collect(),
    };
    let mut known: Vec<f64> = all.iter().flatten().map(|log| log.exp_m1()).collect();
    known.sort_by(f64::total_cmp);
    let max = *known.last()?;
    let within = known.iter().filter(|one| **one <= run.mesh.error()).count();
    Some(MapHeldOut {
        points: all.len() as u32,
        random,
        median: known[known.len() / 2],
        max,
        within_error: within as f64 / all.len() as f64,
    })
}

impl MapResult {
    /// The 95th percentile of read latency in microseconds at these rates, as interpolated; `None` where the device is
    /// overloaded, or nothing is known.
    pub fn read_p95_us(&self, read_iops: f64, write_bytes_per_second: f64) -> Option<f64> {
        // Requests and bytes per second differ by orders of magnitude. In shares of the
        // greatest rates the triangles have the form that the mesh chose.
        let scale = |reads: f64, bytes: f64| {
            (reads / self.read_iops_max, bytes / self.write_bytes_per_second_max)
        };
        let point = |at: u32| self.points.get(at as usize);
        let place = |at: u32| {
            point(at).map_or((f64::NAN, f64::NAN), |point| {
                scale(point.read_iops, point.write_bytes_per_second)
            })
        };
        let log = |at: u32| Some(point(at)?.read_p95_us?.ln());
        let at = scale(read_iops, write_bytes_per_second);
        interpolate(&self.triangles, place, log, at).map(f64::exp)
    }

    /// The rates at `x` and `y`, shares of both axes.
    fn rates_at(&self, x: f64, y: f64) -> (f64, f64) {
        let ends = |of: fn(&MapPoint) -> f64| {
            let all = self.points.iter().map(of);
            all.fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)))
        };
        let (first, last) = ends(|point| point.read_iops);
        (first + (last - first) * x, self.write_bytes_per_second_max * y)
    }

    fn is_overloaded(&self, read_iops: f64, write_bytes_per_second: f64) -> bool {
        let beyond = |point: &MapPoint| {
            point.overloaded
                && point.read_iops <= read_iops * 1.000_001
                && point.write_bytes_per_second <= write_bytes_per_second * 1.000_001
        };
        self.points.iter().any(beyond)
    }
}

fn microseconds(us: f64) -> String {
    nanoseconds(us * 1e3)
}

/// The work done, in parts.
fn facts(result: &ProfileResult, map: &MapResult) -> [String; 4] {
    let stopped = match result.stopped_because {
        StoppedBecause::WithinError => {
            let error = significant(map.error * 100.0, 3);
            format!("no tested point is off by more than {error} % beyond its noise")
        }
        other => other.words().to_owned(),
    };
    [
        format!("map, seed {}", result.seed),
        format!(
            "{} points in {} on the device's clock",
            map.measured(),
            seconds(result.seconds_spent)
        ),
        format!("span {}B", rate(result.span_bytes as f64)),
        stopped,
    ]
}

/// The ends of the axes, as far as they were measured.
fn highest(map: &MapResult) -> Option<String> {
    let reads =
        format!("{} random reads of {} per second", rate(map.read_iops_max), Bytes(map.read_bytes));
    let writes = format!(
        "sequential writes of {} at {}",
        Bytes(map.write_bytes),
        bytes_per_second(map.write_bytes_per_second_max)
    );
    let both = [(!map.read_depths.is_empty(), reads), (!map.write_depths.is_empty(), writes)];
    let known: Vec<String> =
        both.into_iter().filter_map(|(known, text)| known.then_some(text)).collect();
    // Without points the search for the highest rates may have ended early.
    let so_far = if map.points.is_empty() { " so far" } else { "" };
    let text = format!("highest rates alone{so_far}: {}", known.join(", "));
    (!known.is_empty()).then_some(text)
}

/// The lines that accompany the figures.
fn lines(map: &MapResult) -> Vec<String> {
    let mut lines = Vec::from_iter(highest(map));
    if let Some(held_out) = &map.held_out {
        let percent = |share: f64| significant(share * 100.0, 2);
        lines.push(format!(
            "{} points {}: {} % of the points within {} % of the interpolation, median difference {} %, greatest {} %",
            held_out.points,
            match held_out.random {
                true => "drawn at random at the end",
                false => "predicted before they were measured",
            },
            percent(held_out.within_error),
            percent(map.error),
            percent(held_out.median),
            percent(held_out.max),
        ));
    }
    lines
}

/// 95th percentiles by both rates.
fn table(map: &MapResult) -> (Vec<String>, Vec<Vec<String>>) {
    let share = |at: usize| at as f64 / TABLE as f64;
    let header = (0..=TABLE).map(|x| rate(map.rates_at(share(x), 0.0).0));
    let header = std::iter::once("written \\ reads/s".to_owned()).chain(header).collect();
    let row = |y: usize| {
        let cell = |x: usize| {
            let (reads, bytes) = map.rates_at(share(x), share(y));
            match map.read_p95_us(reads, bytes) {
                Some(p95) => microseconds(p95),
                None if map.is_overloaded(reads, bytes) => "over".to_owned(),
                None => "-".to_owned(),
            }
        };
        let written = bytes_per_second(map.rates_at(0.0, share(y)).1);
        std::iter::once(written).chain((0..=TABLE).map(cell)).collect()
    };
    (header, (0..=TABLE).rev().map(row).collect())
}

const POINTS: [&str; 5] =
    ["reads/s offered", "reached", "written offered", "reached", "p95 of reads"];

fn point_rows(map: &MapResult) -> Vec<Vec<String>> {
    let row = |point: &MapPoint| {
        vec![
            rate(point.read_iops),
            point.read_iops_reached.map_or("-".to_owned(), rate),
            bytes_per_second(point.write_bytes_per_second),
            point.write_bytes_per_second_reached.map_or("-".to_owned(), bytes_per_second),
            point.read_p95_us.map_or("overloaded".to_owned(), microseconds),
            point.low_us.zip(point.high_us).map_or("-".to_owned(), |(low, high)| {
                format!("{} to {}", microseconds(low), microseconds(high))
            }),
        ]
    };
    map.points.iter().filter(|point| point.measured).map(row).collect()
}

/// A map on the terminal.
pub(crate) fn map_text(result: &ProfileResult, map: &MapResult) -> String {
    let mut text = format!("{}  {}\n\n", result.target, facts(result, map).join("; "));
    if !map.points.is_empty() {
        text.push_str("95th percentile of read latency by arrival rates (over: the queue grows)\n");
        let (header, rows) = table(map);
        crate::columns::aligned(&mut text, &header, &rows, &[]);
        text.push('\n');
    }
    for line in lines(map).iter().chain(result.notes.iter()) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// A map as a page.
pub(crate) fn map_html(result: &ProfileResult, map: &MapResult) -> String {
    let title = format!("{} - map", result.target);
    let mut page = Page::new(&title, result.stopped_because.is_early(), &facts(result, map));
    for warning in &result.warnings {
        page.note(&format!("Warning: {}", warning.line()), true);
    }
    for line in lines(map).iter().chain(&result.notes) {
        page.note(line, false);
    }
    page.section("Read latency under writes", &[picture(map)]);
    let (header, rows) = table(map);
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    page.section("95th percentile of read latency", &[html_table(&header, &rows)]);
    // The load computes this interval, not the profile: its level is that of every run.
    let interval = format!("{:.0} % interval", ssdyno_figures::LEVEL * 100.0);
    let header: Vec<&str> = POINTS.into_iter().chain([interval.as_str()]).collect();
    page.section("Points", &[html_table(&header, &point_rows(map))]);
    page.finish()
}

/// Coloured cells, isolines, and the points.
fn picture(map: &MapResult) -> String {
    let p95s = map.points.iter().filter_map(|point| point.read_p95_us);
    let (low, high) =
        p95s.fold((f64::INFINITY, 0.0_f64), |(low, high), p95| (low.min(p95), high.max(p95)));
    if map.points.is_empty() {
        return String::new();
    }
    let x = Axis::from_zero("reads arriving per second", map.read_iops_max, rate);
    let y = Axis::from_zero("writes arriving", map.write_bytes_per_second_max, bytes_per_second);
    let mut plot = Plot::new("95th percentile of read latency", x, y);
    let strength = |p95: f64| (p95 / low).ln() / (high / low).ln().max(1e-9);
    for (column, row) in (0..PICTURE).flat_map(|x| (0..PICTURE).map(move |y| (x, y))) {
        let at = |dx: f64, dy: f64| {
            map.rates_at((column as f64 + dx) / PICTURE as f64, (row as f64 + dy) / PICTURE as f64)
        };
        let outline = [at(0.0, 0.0), at(1.0, 0.0), at(1.0, 1.0), at(0.0, 1.0)];
        let (reads, bytes) = at(0.5, 0.5);
        let said =
            |what: &str| format!("{} reads/s, {}: {what}", rate(reads), bytes_per_second(bytes));
        match map.read_p95_us(reads, bytes) {
            Some(p95) => plot.cell("read", &outline, strength(p95), &said(&microseconds(p95))),
            None if map.is_overloaded(reads, bytes) => {
                plot.cell("error", &outline, 0.4, &said("overloaded"));
            }
            None => {}
        }
    }
    if low < high {
        let ends = format!("{} (faint) to {} (strong)", microseconds(low), microseconds(high));
        plot.name("read", &ends);
        isolines(map, &mut plot, low, high);
    }
    plot.name("error", "overloaded");
    for point in map.points.iter().filter(|point| point.measured) {
        let class = if point.overloaded { "error" } else { "mean" };
        let p95 = point.read_p95_us.map_or("overloaded".to_owned(), microseconds);
        let title = format!(
            "{} reads/s, {}: {p95}",
            rate(point.read_iops),
            bytes_per_second(point.write_bytes_per_second)
        );
        plot.point(class, (point.read_iops, point.write_bytes_per_second), &title);
    }
    plot.finish()
}

/// Where latency is the least one times 2, 4 and so on.
fn isolines(map: &MapResult, plot: &mut Plot, low: f64, high: f64) {
    let looks = ["write", "trim", "flush"];
    let levels = (1..=ISOLINES_MAX as i32).map(|power| low * ISOLINE.powi(power));
    for (level, look) in levels.take_while(|level| *level < high).zip(looks.iter().cycle()) {
        let pieces: Vec<_> =
            map.triangles.iter().filter_map(|one| crossing(map, one, level)).collect();
        if !pieces.is_empty() {
            plot.pieces(look, &microseconds(level), &pieces);
        }
    }
}

/// Where a triangle has the latency `level`: two places on its sides.
fn crossing(map: &MapResult, triangle: &[u32; 3], level: f64) -> Option<[(f64, f64); 2]> {
    let corner = |at: u32| {
        let point = map.points.get(at as usize)?;
        Some((point.read_iops, point.write_bytes_per_second, point.read_p95_us?.ln()))
    };
    let [a, b, c] = [corner(triangle[0])?, corner(triangle[1])?, corner(triangle[2])?];
    let cut = |one: (f64, f64, f64), other: (f64, f64, f64)| {
        let (from, to) = (one.2 - level.ln(), other.2 - level.ln());
        let share = from / (from - to);
        ((from < 0.0) != (to < 0.0))
            .then_some((one.0 + (other.0 - one.0) * share, one.1 + (other.1 - one.1) * share))
    };
    let cuts: Vec<(f64, f64)> = [cut(a, b), cut(b, c), cut(c, a)].into_iter().flatten().collect();
    match cuts[..] {
        [first, second] => Some([first, second]),
        _ => None,
    }
}
