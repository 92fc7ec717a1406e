//! The pictures of the page. Each gives its HTML, empty where the run has nothing to show.

use std::fmt::Write;

use ssdyno_figures::{
    HostRun, LatencyBin, Power, RunResult, SeriesPoint, bytes_per_second, joules, nanoseconds,
    percent, rate, seconds, significant, watts,
};

use super::markup::{escape, pair};
use super::page::table;
use super::plot::{Axis, Plot, short};
use crate::lines::energy::{energy_used, parts};

pub(super) fn ns_tick(v: f64) -> String {
    short(nanoseconds(v))
}
pub(super) fn rate_tick(v: f64) -> String {
    short(rate(v))
}
pub(super) fn bytes_tick(v: f64) -> String {
    short(bytes_per_second(v))
}
pub(super) fn watts_tick(v: f64) -> String {
    short(watts(v))
}
fn percent_tick(v: f64) -> String {
    short(format!("{} %", short(significant(v, 3))))
}
fn seconds_tick(v: f64) -> String {
    short(seconds(v))
}
pub(super) fn plain_tick(v: f64) -> String {
    short(significant(v, 3))
}

/// Bars of an octave in the histogram: coarser than the data, so that noise does not hide it.
const BARS_PER_OCTAVE: f64 = 8.0;

/// Density over a logarithmic axis: (from, to, share of requests by octave of latency).
fn bars(bins: &[LatencyBin], total: u64) -> Vec<(f64, f64, f64)> {
    let mut bars: Vec<(f64, f64, f64)> = Vec::new();
    for bin in bins {
        let (from, to) = (bin.from_ns.max(1) as f64, bin.to_ns.max(2) as f64);
        let octave = 2f64.powi(from.log2().floor() as i32);
        let width = (octave / BARS_PER_OCTAVE).max(1.0);
        let start = octave + ((from - octave) / width).floor() * width;
        let share = bin.count as f64 / total.max(1) as f64;
        match bars.last_mut() {
            Some(last) if last.0 == start => last.2 += share,
            _ => bars.push((start, (start + width).max(to.min(start + width)), share)),
        }
    }
    for (from, to, share) in &mut bars {
        *share /= (*to / *from).log2();
    }
    bars
}

/// How full the blocks were that garbage collection cleaned.
pub(super) fn victims(r: &RunResult) -> String {
    let Some(victims) = &r.gc_victims else { return String::new() };
    let parts = victims.by_valid_share.len() as f64;
    let share = |count: u64| 100.0 * count as f64 / victims.blocks.max(1) as f64;
    let most = victims.by_valid_share.iter().map(|count| share(*count)).fold(0.0, f64::max);
    let x = Axis::from_zero("valid pages of a victim", 100.0, percent_tick);
    let mut plot = Plot::new("Victims", x, Axis::from_zero("share of victims", most, percent_tick));
    for (part, count) in victims.by_valid_share.iter().enumerate().filter(|(_, count)| **count > 0)
    {
        let [from, to] = [part, part + 1].map(|edge| 100.0 * edge as f64 / parts);
        let top = share(*count);
        let outline = [(from, 0.0), (from, top), (to, top), (to, 0.0)];
        let title = format!("{from:.0} to {to:.0} % valid: {top:.1} % of the victims");
        plot.cell("write", &outline, 0.6, &title);
    }
    plot.mark(100.0 * victims.valid_mean, "mean");
    plot.finish()
}

/// First and last latency of all operations, in ns; `None` where no request took any time.
fn latency_range(r: &RunResult) -> Option<(f64, f64)> {
    r.latency_ns.as_ref().filter(|latency| latency.all.max > 0.0)?;
    let all = || r.latency_distribution.iter().flat_map(|(_, bins)| bins);
    let from = all().map(|b| b.from_ns).min()?;
    let to = all().map(|b| b.to_ns).max()?;
    Some((from.max(1) as f64, to as f64))
}

pub(super) fn latency_histogram(r: &RunResult) -> String {
    let Some((from, to)) = latency_range(r) else { return String::new() };
    let by_op: Vec<_> = r
        .latency_distribution
        .iter()
        .map(|(op, bins)| (op, bars(bins, r.requests)))
        .filter(|(_, bars)| !bars.is_empty())
        .collect();
    let most = by_op.iter().flat_map(|(_, bars)| bars).map(|b| b.2).fold(0.0, f64::max);
    let x = Axis::logarithmic("latency", from / 1.1, to * 1.1, ns_tick);
    let y = Axis::from_zero("share of requests per octave", most, plain_tick);
    let mut plot = Plot::new("Latency distribution", x, y);
    for (op, bars) in by_op {
        let mut top = Vec::new();
        let mut end = f64::NAN;
        for (from, to, height) in bars {
            // A gap between bars has no requests.
            if from != end {
                top.extend((!end.is_nan()).then_some((end, 0.0)));
                top.push((from, 0.0));
            }
            top.extend([(from, height), (to, height)]);
            end = to;
        }
        top.push((end, 0.0));
        let bottom = [(top[0].0, 0.0), (end, 0.0)];
        plot.area(op, op, &top, &bottom);
    }
    if let Some(latency) = &r.latency_ns {
        plot.mark(latency.all.p50, "p50");
        plot.mark(latency.all.p99, "p99");
        plot.mark(latency.all.p99_9, "p99.9");
    }
    plot.finish()
}

/// Shortest and longest latency of an operation, in ns.
fn extremes(r: &RunResult, op: &str) -> Option<(f64, f64)> {
    let l = r.latency_ns.as_ref()?;
    let own = match op {
        "read" => l.read,
        "write" => l.write,
        "trim" => l.trim,
        _ => l.flush,
    };
    own.filter(|own| own.min <= own.max).map(|own| (own.min, own.max))
}

/// Latency over the share of requests, the x axis stretched towards 100 % so that the tail shows.
pub(super) fn latency_percentiles(r: &RunResult) -> String {
    let Some((from, to)) = latency_range(r) else { return String::new() };
    // Beyond one request in all there is nothing to see.
    let nines = (r.requests.max(10) as f64).log10();
    let x =
        Axis { label: "share of requests", from: 0.0, to: nines, log: false, format: plain_tick };
    let y = Axis::logarithmic("latency up to", from / 1.1, to * 1.1, ns_tick);
    let mut plot = Plot::new("Latency by percentile", x, y);
    let names = [
        (0.0, "0 %"),
        (0.5, "50 %"),
        (0.9, "90 %"),
        (0.99, "99 %"),
        (0.999, "99.9 %"),
        (0.9999, "99.99 %"),
        (0.99999, "99.999 %"),
        (0.999_999, "99.9999 %"),
    ];
    let ticks = names.map(|(share, name)| (-(1.0f64 - share).log10(), name.to_owned()));
    // In a long run the first two would lie on each other.
    let first = if nines > 4.0 { 1 } else { 0 };
    let ticks = ticks.into_iter().skip(first).filter(|(at, _)| *at <= nines + 1e-9);
    plot.set_x_ticks(ticks.collect());
    for (op, bins) in r.latency_distribution.iter().filter(|(_, bins)| !bins.is_empty()) {
        let total: u64 = bins.iter().map(|b| b.count).sum();
        // Bins reach beyond the shortest and the longest.
        let (least, most) = extremes(r, op).unwrap_or((0.0, f64::INFINITY));
        let within = |ns: u64| (ns as f64).clamp(least, most);
        let mut below = 0;
        let mut points = vec![(0.0, within(bins[0].from_ns))];
        for bin in bins {
            // Upwards over a gap, then along the bin.
            if let Some(last) = points.last().copied() {
                points.push((last.0, within(bin.from_ns)));
            }
            below += bin.count;
            let above = (total - below) as f64 / total as f64;
            // The largest of a few still takes its place in the picture.
            let at = if below < total { -above.log10() } else { (total.max(10) as f64).log10() };
            points.push((at.min(nines), within(bin.to_ns)));
        }
        plot.line(op, op, &points);
    }
    plot.finish()
}

/// The outline of a figure over time: level within each point, gaps where it does not exist.
pub(super) fn steps(
    series: &[SeriesPoint],
    pick: impl Fn(&SeriesPoint) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let level = |p: &SeriesPoint| {
        let value = pick(p)?;
        Some([(p.start_seconds, value), (p.start_seconds + p.length_seconds, value)])
    };
    shown(series).iter().filter_map(level).flatten().collect()
}

/// The points worth a picture: a last one of less than half the length is mostly noise. (It is in
/// the data.)
fn shown(series: &[SeriesPoint]) -> &[SeriesPoint] {
    match series {
        [first, .., last] if last.length_seconds < first.length_seconds / 2.0 => {
            &series[..series.len() - 1]
        }
        _ => series,
    }
}

pub(super) fn time_axis(r: &RunResult) -> Axis {
    let end = r.series.last().map_or(0.0, |p| p.start_seconds + p.length_seconds);
    let to = if end > 0.0 { end } else { 1.0 };
    Axis {
        label: "time since the start of recording",
        from: 0.0,
        to,
        log: false,
        format: seconds_tick,
    }
}

pub(super) fn highest(lines: &[Vec<(f64, f64)>]) -> f64 {
    lines.iter().flatten().map(|p| p.1).fold(0.0, f64::max)
}

pub(super) fn iops_over_time(r: &RunResult) -> String {
    let n = &r.requests_by_op;
    let kinds: [CountOfPoint; 4] = [
        ("read", n.read, |p| p.reads),
        ("write", n.write, |p| p.writes),
        ("trim", n.trim, |p| p.trims),
        ("error", r.errors, |p| p.errors),
    ];
    let named = rates(r, &kinds);
    lines_over_time(r, "Requests per second", "requests per second", rate_tick, named)
}

/// A kind of counts: its name, the number in the run, and that in a point.
type CountOfPoint = (&'static str, u64, fn(&SeriesPoint) -> u64);

/// The counts per second of each kind that occurs in the run.
fn rates(r: &RunResult, kinds: &[CountOfPoint]) -> Vec<(&'static str, Vec<(f64, f64)>)> {
    let of = |(name, _, pick): &CountOfPoint| {
        let rate = |p: &SeriesPoint| pick(p) as f64 / p.length_seconds;
        (*name, steps(&r.series, |p| (p.length_seconds > 0.0).then(|| rate(p))))
    };
    kinds.iter().filter(|(_, count, _)| *count > 0).map(of).collect()
}

/// Draws each of several hosts as a line, in the colours of a plot; with more hosts than colours, draws those with the
/// most and the fewest requests, which are the interesting ones.
pub(super) fn hosts_over_time(r: &RunResult) -> Vec<String> {
    let mut hosts: Vec<&HostRun> = r.hosts.iter().filter(|host| !host.series.is_empty()).collect();
    if hosts.len() < 2 {
        return Vec::new();
    }
    let half = COLOURS.len() / 2;
    if hosts.len() > COLOURS.len() {
        hosts.sort_by(|a, b| b.iops.total_cmp(&a.iops));
        hosts.drain(half..hosts.len() - half);
    }
    let plot = |title, label, format, pick: fn(&SeriesPoint) -> Option<f64>| {
        let lines: Vec<_> = hosts.iter().map(|host| steps(&host.series, pick)).collect();
        let mut plot =
            Plot::new(title, time_axis(r), Axis::from_zero(label, highest(&lines), format));
        for ((host, line), colour) in hosts.iter().zip(&lines).zip(COLOURS) {
            plot.line(colour, &host.name, line);
        }
        plot.finish()
    };
    let rate = plot("Requests per second, by host", "requests per second", rate_tick, |point| {
        Some(point.iops)
    });
    let tail = plot("99th percentile, by host", "latency", ns_tick, |point| point.latency_ns_p99);
    vec![pair(rate, tail)]
}

pub(super) fn throughput_over_time(r: &RunResult) -> String {
    let n = &r.requests_by_op;
    let named =
        rates(r, &[("read", n.read, |p| p.read_bytes), ("write", n.write, |p| p.write_bytes)]);
    lines_over_time(r, "Throughput", "bytes per second", bytes_tick, named)
}

fn lines_over_time(
    r: &RunResult,
    title: &'static str,
    label: &'static str,
    format: fn(f64) -> String,
    named: Vec<(&str, Vec<(f64, f64)>)>,
) -> String {
    let lines: Vec<_> = named.iter().map(|(_, points)| points.clone()).collect();
    if lines.iter().all(Vec::is_empty) {
        return String::new();
    }
    let mut plot = Plot::new(title, time_axis(r), Axis::from_zero(label, highest(&lines), format));
    for (name, points) in named.iter().filter(|(_, points)| !points.is_empty()) {
        plot.line(name, name, points);
    }
    mark_steady(&mut plot, r);
    plot.finish()
}

/// The classes of lines that have a colour of their own.
const COLOURS: [&str; 8] = ["read", "write", "trim", "flush", "error", "cpu", "bus", "dram"];

/// Marks where steady stretches begin and end.
fn mark_steady(plot: &mut Plot, r: &RunResult) {
    for period in r.steady_state.iter().flat_map(|steady| &steady.periods) {
        if period.from_seconds > 0.0 {
            plot.mark(period.from_seconds, "steady");
        }
        if period.left_because.is_some() {
            plot.mark(period.to_seconds, "left");
        }
    }
}

/// Of the series, highest first; older results have no percentiles in it.
pub(super) fn latency_over_time(r: &RunResult) -> String {
    type Pick = fn(&SeriesPoint) -> Option<f64>;
    let named: [(&str, Pick); 5] = [
        ("max", |p| p.latency_ns_max),
        ("p99", |p| p.latency_ns_p99),
        ("p95", |p| p.latency_ns_p95),
        ("mean", |p| p.latency_ns_mean),
        ("p50", |p| p.latency_ns_p50),
    ];
    let lines = named.map(|(name, pick)| (name, steps(&r.series, pick)));
    let values = || lines.iter().flat_map(|(_, points)| points).map(|point| point.1);
    let most = values().fold(0.0, f64::max);
    if most == 0.0 {
        return String::new();
    }
    // Points of no latency at all have no place on a logarithmic axis.
    let low = values().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
    let y = Axis::logarithmic("latency", low / 1.3, most * 1.3, ns_tick);
    let mut plot = Plot::new("Latency", time_axis(r), y);
    for (name, points) in lines.iter().filter(|(_, points)| !points.is_empty()) {
        plot.line(name, name, points);
    }
    mark_steady(&mut plot, r);
    plot.finish()
}

pub(super) fn power_over_time(r: &RunResult) -> String {
    let total = steps(&r.series, |p| p.power_watts.map(|w| w.total));
    if highest(std::slice::from_ref(&total)) == 0.0 {
        return String::new();
    }
    let y = Axis::from_zero("power", highest(std::slice::from_ref(&total)), watts_tick);
    let mut plot = Plot::new("Power, parts stacked", time_axis(r), y);
    let mut bottom = steps(&r.series, |p| p.power_watts.map(|_| 0.0));
    let has_parts = r.series.iter().any(|p| p.power_watts.is_some_and(|w| w.parts != 0.0));
    let names = ["flash", "cpu", "dram", "bus", "parts"];
    for (i, name) in names.into_iter().take(4 + usize::from(has_parts)).enumerate() {
        let upto = |w: Power| [w.flash, w.cpu, w.dram, w.bus, w.parts][..=i].iter().sum();
        let top = steps(&r.series, |p| p.power_watts.map(upto));
        plot.area(name, name, &top, &bottom);
        bottom = top;
    }
    plot.finish()
}

pub(super) fn energy_by_part(r: &RunResult) -> String {
    let Some(energy) = energy_used(r) else { return String::new() };
    let (width, row, left) = (900.0, 26.0, 60.0);
    let most = energy.total;
    let mut body = String::new();
    let parts = parts(&energy);
    let rows = parts.len() as f64;
    for (i, (name, value)) in parts.into_iter().enumerate() {
        let y = i as f64 * row;
        let length = (width - left - 220.0) * (value / most).clamp(0.0, 1.0);
        let _ = write!(
            body,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>\
             <rect class=\"bar {name}\" x=\"{left}\" y=\"{:.1}\" width=\"{length:.1}\" \
             height=\"{:.1}\" rx=\"2\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{} · {}</text>",
            left - 8.0,
            y + 17.0,
            y + 4.0,
            row - 8.0,
            left + length + 8.0,
            y + 17.0,
            joules(value),
            percent(value / most),
        );
    }
    format!(
        "<figure class=\"wide\"><figcaption>Energy, in joules</figcaption>\
         <svg viewBox=\"0 0 {width} {}\" role=\"img\" aria-label=\"energy by part\">{body}</svg>\
         </figure>\n",
        rows * row + 4.0
    )
}

pub(super) fn busy(r: &RunResult) -> Vec<String> {
    let Some(busy) = &r.busy_share else { return busy_by_part(r) };
    let single =
        [("host link", busy.host_link), ("DRAM", busy.dram), ("in service", busy.in_service)];
    let facts: Vec<String> = single
        .iter()
        .filter_map(|(name, share)| share.map(|s| format!("{name} {}", percent(s))))
        .collect();
    let mut blocks = Vec::new();
    if !facts.is_empty() {
        blocks.push(format!("<p>{}</p>\n", facts.join(" · ")));
    }
    blocks.push(heat("Channels", "channel", &busy.channels));
    blocks.push(heat("Dies", "die", &busy.dies));
    blocks.push(heat("Cores", "core", &busy.cores));
    if let Some(host) = &r.host {
        let shares: Vec<f64> = host.cores.iter().map(|core| core.busy_share).collect();
        blocks.push(heat("Cores of the host", "host core", &shares));
    }
    blocks
}

/// A table of the parts by path, for devices that are not a controller alone.
fn busy_by_part(r: &RunResult) -> Vec<String> {
    if r.busy_by_part.is_empty() {
        return Vec::new();
    }
    let row = |busy: &ssdyno_figures::PartBusy| vec![busy.part.clone(), percent(busy.share)];
    let rows: Vec<_> = r.busy_by_part.iter().map(row).collect();
    vec![table(&["part", "busy"], &rows)]
}

/// A cell for each part, darker the busier, with its share where there is room for it; rows of 16
/// (32 where there are many).
fn heat(title: &str, part: &str, shares: &[f64]) -> String {
    if shares.is_empty() {
        return String::new();
    }
    let columns = if shares.len() > 256 { 32 } else { 16 };
    let (left, cell) = (50.0, 850.0 / columns as f64);
    let height = if columns == 16 { 22.0 } else { 14.0 };
    let mut body = String::new();
    for (i, share) in shares.iter().enumerate() {
        let x = left + (i % columns) as f64 * cell;
        let y = (i / columns) as f64 * height;
        let shown = percent(*share);
        // A cell has room for six characters.
        let short = if (1e-12..1e-3).contains(share) { "<0.1 %" } else { &shown };
        if i % columns == 0 {
            let _ = write!(
                body,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{i}</text>",
                left - 8.0,
                y + height / 2.0 + 4.0
            );
        }
        // The faintest cell still shows that there is a part.
        let opacity = 0.06 + 0.84 * share.clamp(0.0, 1.0);
        let _ = write!(
            body,
            "<rect class=\"cell\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             rx=\"2\" fill-opacity=\"{opacity:.3}\"><title>{part} {i}: {shown} busy</title></rect>",
            x + 1.0,
            y + 1.0,
            cell - 2.0,
            height - 2.0
        );
        if columns == 16 {
            let _ = write!(
                body,
                "<text class=\"share\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                x + cell / 2.0,
                y + height / 2.0 + 4.0,
                escape(short)
            );
        }
    }
    let rows = shares.len().div_ceil(columns) as f64;
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let most = shares.iter().copied().fold(0.0, f64::max);
    format!(
        "<figure class=\"wide\"><figcaption>{title} ({}): mean {}, least {}, most {} busy\
         </figcaption><svg viewBox=\"0 0 900 {:.0}\" role=\"img\" aria-label=\"{title}\">{body}\
         </svg></figure>\n",
        shares.len(),
        percent(mean),
        percent(least),
        percent(most),
        rows * height + 2.0
    )
}
