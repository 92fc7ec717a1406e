//! The pictures of the machine, on the time axis of the series above them.

use ssdyno_figures::probe::{CpuShares, MachineActivity, Memory, Sample};
use ssdyno_figures::{RunResult, percent};

use super::charts::{bytes_tick, highest, plain_tick, rate_tick, steps, time_axis, watts_tick};
use super::markup::{escape, pair};
use super::plot::{Axis, Plot};

/// Colours, in turn, of lines that have none of their own.
const CLASSES: [&str; 4] = ["read", "write", "trim", "flush"];

/// Takes a figure out of a part of a sample.
type Pick<P, F> = fn(&P) -> F;

/// Colour, name, points.
type Line = (&'static str, String, Vec<(f64, f64)>);

/// Everything about the machine.
pub(super) fn blocks(r: &RunResult, m: &MachineActivity) -> Vec<String> {
    let check = m.device_check.as_ref().map(|check| {
        let class = if check.agrees { "fine" } else { "note bad" };
        format!("<p class=\"{class}\">{}</p>\n", escape(&check.detail))
    });
    vec![
        pair(cpu(r, m), events(r, m)),
        check.unwrap_or_default(),
        pair(device_requests(r, m), device_bytes(r, m)),
        pair(device_load(r, m), memory(r, m)),
        pair(network(r, m), power(r, m)),
    ]
}

/// The outline of a figure of the samples, clipped to the recorded window.
fn outline(m: &MachineActivity, pick: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    let level = |sample: &Sample| {
        let (from, to) = (sample.start_seconds, sample.start_seconds + sample.length_seconds);
        let value = pick(sample).filter(|_| to > 0.0)?;
        Some([(from.max(0.0), value), (to, value)])
    };
    m.samples.iter().filter_map(level).flatten().collect()
}

fn lines(
    r: &RunResult,
    title: &'static str,
    label: &'static str,
    format: fn(f64) -> String,
    named: Vec<Line>,
) -> String {
    let all: Vec<_> = named.iter().map(|(.., points)| points.clone()).collect();
    if all.iter().all(Vec::is_empty) {
        return String::new();
    }
    let mut plot = Plot::new(title, time_axis(r), Axis::from_zero(label, highest(&all), format));
    for (class, name, points) in named.iter().filter(|(.., points)| !points.is_empty()) {
        plot.line(class, name, points);
    }
    plot.finish()
}

fn cpu(r: &RunResult, m: &MachineActivity) -> String {
    let kinds: [(&str, &str, Pick<CpuShares, f64>); 5] = [
        ("read", "user", |cpu| cpu.user),
        ("write", "system", |cpu| cpu.system),
        ("flush", "interrupts", |cpu| cpu.irq + cpu.softirq),
        ("trim", "waiting for I/O", |cpu| cpu.iowait),
        ("other", "stolen", |cpu| cpu.steal),
    ];
    let mut bottom = outline(m, |s| s.cpu.map(|_| 0.0));
    if bottom.is_empty() {
        return String::new();
    }
    let y =
        Axis { label: "share of all processors", from: 0.0, to: 1.0, log: false, format: percent };
    let mut plot = Plot::new("Processors, kinds stacked", time_axis(r), y);
    for (i, (class, name, _)) in kinds.iter().enumerate() {
        let sum = |cpu| kinds[..=i].iter().map(|(.., pick)| pick(&cpu)).sum();
        let top = outline(m, |s| s.cpu.map(sum));
        plot.area(class, name, &top, &bottom);
        bottom = top;
    }
    plot.finish()
}

fn events(r: &RunResult, m: &MachineActivity) -> String {
    let named = vec![
        ("read", "interrupts".to_owned(), outline(m, |s| s.interrupts_per_second)),
        ("write", "context switches".to_owned(), outline(m, |s| s.context_switches_per_second)),
    ];
    lines(r, "Interrupts and context switches", "per second", rate_tick, named)
}

/// The device's counters beside the figures of the run.
fn device_requests(r: &RunResult, m: &MachineActivity) -> String {
    let Some(device) = &m.device else { return String::new() };
    let run = steps(&r.series, |p| {
        let requests = (p.reads + p.writes) as f64;
        (p.length_seconds > 0.0).then(|| requests / p.length_seconds)
    });
    let named = vec![
        ("max", "the run, reads and writes".to_owned(), run),
        ("read", format!("{device}, reads"), outline(m, |s| Some(s.disk?.reads_per_second))),
        ("write", format!("{device}, writes"), outline(m, |s| Some(s.disk?.writes_per_second))),
    ];
    lines(r, "Requests by the device's own counters", "requests per second", rate_tick, named)
}

fn device_bytes(r: &RunResult, m: &MachineActivity) -> String {
    let Some(device) = &m.device else { return String::new() };
    let run = steps(&r.series, |p| Some(p.throughput_bytes_per_second));
    let read = outline(m, |s| Some(s.disk?.read_bytes_per_second));
    let written = outline(m, |s| Some(s.disk?.write_bytes_per_second));
    let named = vec![
        ("max", "the run, read and written".to_owned(), run),
        ("read", format!("{device}, read"), read),
        ("write", format!("{device}, written"), written),
    ];
    lines(r, "Throughput by the device's own counters", "bytes per second", bytes_tick, named)
}

fn device_load(r: &RunResult, m: &MachineActivity) -> String {
    let named = vec![
        ("read", "in flight, mean".to_owned(), outline(m, |s| Some(s.disk?.in_flight_mean))),
        ("write", "busy, share".to_owned(), outline(m, |s| Some(s.disk?.busy_share))),
    ];
    lines(r, "Load of the device", "requests, and share of time", plain_tick, named)
}

fn memory(r: &RunResult, m: &MachineActivity) -> String {
    let kinds: [(&str, Pick<Memory, u64>); 4] = [
        ("free", |memory| memory.free_bytes),
        ("cached", |memory| memory.cached_bytes),
        ("buffered", |memory| memory.buffered_bytes),
        ("swap used", |memory| memory.swap_used_bytes),
    ];
    let line = |(class, (name, pick)): (&&'static str, &(&str, Pick<Memory, u64>))| {
        let points = outline(m, |s| s.memory.as_ref().map(|memory| pick(memory) as f64));
        (*class, (*name).to_owned(), points)
    };
    let named = CLASSES.iter().zip(&kinds).map(line).collect();
    lines(r, "Memory", "bytes", bytes, named)
}

/// A tick in powers of two.
fn bytes(value: f64) -> String {
    match value {
        v if v >= 1024.0 * 1024.0 * 1024.0 => format!("{:.1} GiB", v / (1u64 << 30) as f64),
        v if v >= 1024.0 * 1024.0 => format!("{:.0} MiB", v / (1u64 << 20) as f64),
        v => format!("{v:.0} B"),
    }
}

fn network(r: &RunResult, m: &MachineActivity) -> String {
    let named = vec![
        ("read", "in".to_owned(), outline(m, |s| Some(s.network?.bytes_in_per_second))),
        ("write", "out".to_owned(), outline(m, |s| Some(s.network?.bytes_out_per_second))),
    ];
    lines(r, "Network", "bytes per second", bytes_tick, named)
}

fn power(r: &RunResult, m: &MachineActivity) -> String {
    let sensors = m.sensors();
    if sensors.is_empty() {
        return "<p class=\"none\">Power: not available on this machine</p>\n".to_owned();
    }
    let line = |(i, sensor): (usize, &&str)| {
        let watts = |s: &Sample| {
            s.power.as_ref()?.iter().find(|power| power.sensor == *sensor).map(|p| p.watts)
        };
        (CLASSES[i % CLASSES.len()], (*sensor).to_owned(), outline(m, watts))
    };
    let named = sensors.iter().enumerate().map(line).collect();
    lines(r, "Power by sensor", "power", watts_tick, named)
}
