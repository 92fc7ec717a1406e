//! The timeline of a run, for chrome://tracing and ui.perfetto.dev.
//!
//! The Trace Event Format (JSON object form): a process for each kind of part, a thread for each
//! part, a complete event (`X`) for each time it was busy; requests are asynchronous events
//! (`b`, `e`), because they overlap. Times are microseconds with six decimals: whole picoseconds.

use std::io::{self, Write};

use ssdyno_block::{Status, Time};
use ssdyno_engine::events::{Activity, Busy, EventReader, PartEvent, PartKind, UnitNames};
use ssdyno_figures::{DriverActionKind, FaultsResult};
use ssdyno_record::Rows;

/// Events that are kept unless told otherwise: some hundred megabytes of JSON is what viewers bear.
pub const EVENTS_MAX: usize = 1_000_000;

/// The number of the requests where parts have the number of their kind.
const REQUESTS_PROCESS: usize = 7;

/// Numbers of processes that each unit of the device has.
const PROCESSES: usize = 16;

/// The process that shows `part`: a number of its kind and unit.
fn process(part: PartEvent) -> usize {
    // Declared parts came after the requests had their number.
    let kind = match part.kind {
        PartKind::Declared => REQUESTS_PROCESS + 1,
        kind => kind as usize,
    };
    usize::from(part.unit) * PROCESSES + kind
}

/// Threads of dies from here on are their cache registers.
const CACHE_REGISTERS: u32 = 1 << 16;

/// The thread that shows `event`: the number of its part. What a die does beside its array has one of its
/// own, since spans of one thread must not overlap.
fn thread(event: &Busy) -> u32 {
    match event.activity {
        Activity::CacheTransfer => CACHE_REGISTERS + u32::from(event.part.index),
        _ => event.part.index.into(),
    }
}

/// Collects events of a window of time: of the device, and of the cores of the host.
#[derive(Clone, Debug)]
pub struct Timeline {
    from: Time,
    to: Time,
    most: usize,
    events: Vec<Busy>,
    left_out: u64,
    units: Vec<UnitNames>,
}

impl Timeline {
    /// Keeps what overlaps `from` to `to`, at most `most` events: the first ones.
    pub fn new(from: Time, to: Time, most: usize) -> Timeline {
        let (events, left_out, units) = (Vec::new(), 0, Vec::new());
        Timeline { from, to, most, events, left_out, units }
    }

    /// Events inside the window that there was no room for.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Events that are kept.
    pub fn kept(&self) -> usize {
        self.events.len()
    }

    /// The time until which the timeline is complete: when it ran out of room, or the end.
    fn end(&self) -> Time {
        // Requests after the last kept event would be shown above idle parts. The timeline ends
        // where its device events end.
        let full = || self.events.iter().map(|event| event.from).max();
        if self.left_out > 0 { full().unwrap_or(self.to) } else { self.to }
    }

    /// Writes device events, the moments of `faults`, and the requests in `rows` that overlap the window.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        &self,
        rows: Option<&Rows>,
        faults: Option<&FaultsResult>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        self.write_names(rows.is_some(), out)?;
        for event in &self.events {
            let (process, thread) = (process(event.part), thread(event));
            // Durations are written as exact decimals. As a double, a run of more than 2.5 hours
            // (2^53 ps) would lose picoseconds, and viewers would draw neighbouring events as
            // overlapping.
            let length = event.to - event.from;
            write!(
                out,
                ",\n{{\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"name\":\"{}\",\"cat\":\"{}\",\
                 \"ts\":{},\"dur\":{},\"args\":{{\"operations\":{}}}}}",
                self.activity(event),
                event.cause.name(),
                Microseconds(event.from),
                Microseconds(length),
                event.operations,
            )?;
        }
        if let Some(faults) = faults {
            self.write_faults(faults, out)?;
        }
        if let Some(rows) = rows {
            self.write_requests(rows, out)?;
        }
        out.write_all(b"\n]}\n")
    }

    /// The name of a declared part, and the names of its activities.
    fn declared(&self, part: PartEvent) -> Option<&(String, Vec<String>)> {
        let unit = self.units.get(usize::from(part.unit))?;
        unit.parts.get(usize::from(part.index)).filter(|_| part.kind == PartKind::Declared)
    }

    /// What `event` is called.
    fn activity(&self, event: &Busy) -> &str {
        let declared = match event.activity {
            Activity::Declared(number) => self.declared(event.part).zip(Some(number)),
            _ => None,
        };
        let named = declared.and_then(|((_, all), number)| all.get(usize::from(number)));
        named.map_or(event.activity.name(), String::as_str)
    }

    /// Names of processes and threads, in a stable order.
    fn write_names(&self, with_requests: bool, out: &mut dyn Write) -> io::Result<()> {
        let mut first = true;
        let mut name =
            |out: &mut dyn Write, kind: &str, process: usize, thread: u32, name: &str| {
                let comma = if std::mem::take(&mut first) { "" } else { ",\n" };
                write!(
                    out,
                    "{comma}{{\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\"name\":\"{kind}\",\
                 \"args\":{{\"name\":\"{name}\"}}}}"
                )
            };
        let alone = PartKind::ALL.into_iter().filter(|kind| *kind != PartKind::Declared);
        for kind in alone {
            name(out, "process_name", kind as usize, 0, kind.name())?;
        }
        if with_requests {
            name(out, "process_name", REQUESTS_PROCESS, 0, "requests")?;
        }
        let mut parts: Vec<_> = self
            .events
            .iter()
            .map(|event| (process(event.part), thread(event), event.part))
            .collect();
        // The order of the events depends on the batches in which they are read. Sorted names make
        // the files of two equal runs equal byte by byte.
        parts.sort_unstable();
        parts.dedup();
        let mut last = None;
        for (process, thread, part) in parts {
            let unit = self.units.get(usize::from(part.unit)).filter(|_| self.units.len() > 1);
            let of_unit = |label: String| match unit {
                Some(unit) => format!("{} {label}", unit.path),
                None => label,
            };
            let is_named = part.unit == 0 && part.kind != PartKind::Declared;
            if !is_named && last.replace(process) != Some(process) {
                name(out, "process_name", process, 0, &of_unit(part.kind.name().to_owned()))?;
            }
            let declared = self.declared(part).map(|(name, _)| name.clone());
            let label = match (declared, thread.checked_sub(CACHE_REGISTERS)) {
                (Some(label), _) => label,
                (None, Some(die)) => format!("die {die} cache register"),
                (None, None) => format!("{} {thread}", part.kind.name()),
            };
            name(out, "thread_name", process, thread, &label)?;
        }
        Ok(())
    }

    /// Marks across all parts: a stall of every die has its cause in the same picture.
    fn write_faults(&self, faults: &FaultsResult, out: &mut dyn Write) -> io::Result<()> {
        let at = |name, seconds: Option<f64>| {
            Some((name, Time::from_ns((seconds? * 1e9).round() as u64)))
        };
        let device = faults.device.unwrap_or_default();
        let states = [
            at("device hung", device.hung_at_seconds),
            at("device removed", device.removed_at_seconds),
        ];
        let actions = faults.driver_actions.iter().map(|action| {
            let name = match action.kind {
                DriverActionKind::Abort => "abort",
                DriverActionKind::Reset => "reset",
            };
            (name, Time::from_ns(action.time_ns))
        });
        let end = self.end();
        for (name, moment) in states.into_iter().flatten().chain(actions) {
            if moment < self.from || moment >= end {
                continue;
            }
            write!(
                out,
                ",\n{{\"ph\":\"i\",\"s\":\"g\",\"pid\":{REQUESTS_PROCESS},\"tid\":0,\"cat\":\"fault\",\
                 \"name\":\"{name}\",\"ts\":{}}}",
                Microseconds(moment),
            )?;
        }
        Ok(())
    }

    fn write_requests(&self, rows: &Rows, out: &mut dyn Write) -> io::Result<()> {
        let end = self.end();
        let (mut id, mut written) = (0, 0);
        rows.for_each(|_, row| {
            let from = Time::from_ns(row.issue_ns);
            let to = from + Time::from_ns(row.latency_ns);
            id += 1;
            // The identifier counts also the requests that are left out. A request therefore has
            // the same number in every window of one run.
            if from >= end || to < self.from || written == self.most {
                return Ok(());
            }
            written += 1;
            let id = id - 1;
            let name = row.request.op.name();
            let common = format!(
                "\"pid\":{REQUESTS_PROCESS},\"tid\":0,\"cat\":\"request\",\"name\":\"{name}\",\"id\":{id}"
            );
            let failed = match row.status {
                Status::Ok => "",
                _ => ",\"failed\":true",
            };
            write!(
                out,
                ",\n{{\"ph\":\"b\",{common},\"ts\":{},\"args\":{{\"offset_bytes\":{},\
                 \"length_bytes\":{}{failed}}}}},\n{{\"ph\":\"e\",{common},\"ts\":{}}}",
                Microseconds(from),
                row.request.offset_bytes,
                row.request.length_bytes,
                Microseconds(to),
            )
        })
    }
}

impl EventReader for Timeline {
    fn name_units(&mut self, units: &[UnitNames]) {
        self.units = units.to_vec();
    }

    fn read(&mut self, events: &[Busy]) {
        for event in events {
            if event.from >= self.to || event.to < self.from {
                continue;
            }
            // The first events are kept, without moving any of them. `left_out` tells the user that
            // the window is cut, and `end` cuts the requests at the same time.
            if self.events.len() < self.most {
                self.events.push(*event);
            } else {
                self.left_out += 1;
            }
        }
    }
}

/// A time as the format wants it, without the rounding of a floating-point number.
struct Microseconds(Time);

impl std::fmt::Display for Microseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ps = self.0.as_ps();
        write!(f, "{}.{:06}", ps / 1_000_000, ps % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_engine::events::FlashCause;
    use ssdyno_figures::{DeviceFaults, DriverAction};

    use super::*;

    fn busy(index: u16, from_ns: u64, to_ns: u64) -> Busy {
        Busy {
            part: PartEvent::new(PartKind::Die, index),
            activity: Activity::Program,
            cause: FlashCause::Cleaning,
            operations: 1,
            from: Time::from_ns(from_ns),
            to: Time::from_ns(to_ns),
        }
    }

    fn written(timeline: &Timeline) -> serde_json::Value {
        let mut text = Vec::new();
        timeline.write(None, None, &mut text).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn what_overlaps_the_window_is_written_to_the_picosecond() {
        let mut timeline = Timeline::new(Time::from_ns(10), Time::from_ns(20), EVENTS_MAX);
        timeline.read(&[busy(0, 0, 9), busy(1, 5, 12), busy(2, 19, 30), busy(3, 20, 21)]);
        let json = written(&timeline);
        let events = json["traceEvents"].as_array().unwrap();
        let busy: Vec<_> = events.iter().filter(|e| e["ph"] == "X").collect();
        assert_eq!(busy.len(), 2);
        assert_eq!(busy[0]["tid"], 1);
        assert_eq!(busy[0]["ts"], 0.005);
        assert_eq!(busy[0]["dur"], 0.007);
        assert_eq!(busy[0]["cat"], "cleaning");
        let named =
            |e: &&serde_json::Value| e["name"] == "thread_name" && e["args"]["name"] == "die 2";
        assert_eq!(events.iter().filter(named).count(), 1);
    }

    #[test]
    fn faults_are_moments_across_all_parts() {
        let mut timeline = Timeline::new(Time::from_ms(1), Time::from_ms(9), EVENTS_MAX);
        timeline.read(&[busy(0, 2_000_000, 3_000_000)]);
        let action = |time_ns, kind| DriverAction { time_ns, kind };
        let faults = FaultsResult {
            device: Some(DeviceFaults { hung_at_seconds: Some(0.002), ..DeviceFaults::default() }),
            driver_actions: vec![
                action(500_000, DriverActionKind::Abort),
                action(4_000_000, DriverActionKind::Abort),
                action(5_000_000, DriverActionKind::Reset),
            ],
            ..FaultsResult::default()
        };
        let mut text = Vec::new();
        timeline.write(None, Some(&faults), &mut text).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let moments = json["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "i");
        let moments: Vec<_> = moments
            .map(|event| (event["name"].as_str().unwrap(), event["ts"].as_f64().unwrap()))
            .collect();
        assert_eq!(moments, [("device hung", 2e3), ("abort", 4e3), ("reset", 5e3)]);
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut timeline = Timeline::new(Time::ZERO, Time::MAX, 2);
        timeline.read(&[busy(0, 0, 1), busy(0, 1, 2), busy(0, 2, 3)]);
        assert_eq!(timeline.left_out(), 1);
        assert_eq!(written(&timeline)["displayTimeUnit"], "ns");
    }

    /// Reads one at a time, without a host: a request is its die's read and the channel's transfer,
    /// one after the other, and the spans must say so to the picosecond.
    #[test]
    fn spans_lie_inside_their_requests_and_add_up_to_them() {
        let text = ssdyno_ssd::presets::find("config-a").unwrap().text;
        let text = text.replace("blocks_per_plane = 512", "blocks_per_plane = 32");
        let workload = "read_percent = 100\nblock_size = \"4KiB\"\ndepth = 1\nrequests = 300";
        let run = crate::SimRun {
            target: "sim:test".into(),
            device: ssdyno_ssd::Config::parse(&text).unwrap().into(),
            workload: "test".into(),
            source: crate::Source::Generator(
                ssdyno_workload::WorkloadConfig::from_toml(workload).unwrap(),
            ),
            seed: 5,
            limits: crate::RunLimits::default(),
            keep: ssdyno_figures::Keep::All,
            interval: None,
            why: false,
        };
        let mut timeline = Timeline::new(Time::ZERO, Time::MAX, EVENTS_MAX);
        let go_on = &mut |_: &crate::RunProgress| crate::KeepGoing::Continue;
        let measured = run.supervise(Some(&mut timeline), go_on).unwrap();
        let mut text = Vec::new();
        timeline.write(measured.recording.rows(), None, &mut text).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        // Picoseconds, exactly: six decimals of a microsecond.
        let ps = |event: &serde_json::Value, key: &str| {
            (event[key].as_f64().unwrap() * 1e6).round() as u64
        };
        let of = |ph: &str| events.iter().filter(|e| e["ph"] == ph).collect::<Vec<_>>();
        let (begins, ends) = (of("b"), of("e"));
        assert_eq!((begins.len(), ends.len()), (300, 300));
        let spans: Vec<(&str, u64, u64)> = of("X")
            .into_iter()
            .filter(|e| e["name"] == "read" || e["name"] == "transfer" && e["pid"] == 1)
            .map(|e| (e["name"].as_str().unwrap(), ps(e, "ts"), ps(e, "ts") + ps(e, "dur")))
            .collect();
        assert_eq!(spans.len(), 600, "a read and a transfer for each");
        for (begin, end) in begins.iter().zip(&ends) {
            assert_eq!(begin["id"], end["id"]);
            let (from, to) = (ps(begin, "ts"), ps(end, "ts"));
            // Rows are whole nanoseconds.
            let inside = |s: &&(&str, u64, u64)| s.1 + 1_000 > from && s.2 < to + 2_000;
            let own: Vec<_> = spans.iter().filter(inside).collect();
            let [("read", a, b), ("transfer", c, d)] = own[..] else { panic!("{own:?}") };
            assert_eq!((b - a, b == c), (50_000_000, true), "{own:?}");
            assert!((d - a).abs_diff(to - from) < 2_000, "{own:?} in {from} to {to}");
        }
    }

    /// A page goes out of the cache register while the array reads the next.
    #[test]
    fn spans_of_one_thread_do_not_overlap() {
        let mut timeline = Timeline::new(Time::ZERO, Time::MAX, EVENTS_MAX);
        let out = Busy { activity: Activity::CacheTransfer, ..busy(7, 60, 70) };
        timeline.read(&[busy(7, 0, 50), busy(7, 60, 110), out]);
        let json = written(&timeline);
        let events = json["traceEvents"].as_array().unwrap();
        let spans = events.iter().filter(|e| e["ph"] == "X");
        let threads: Vec<_> = spans.map(|e| e["tid"].as_u64().unwrap()).collect();
        assert_eq!(threads, [7, 7, 65_543]);
        let named = |e: &&serde_json::Value| e["args"]["name"] == "die 7 cache register";
        let register = events.iter().find(named).unwrap();
        assert_eq!(register["tid"], 65_543);
    }

    #[test]
    fn requests_end_where_there_was_no_room_for_more() {
        let mut timeline = Timeline::new(Time::ZERO, Time::MAX, 2);
        timeline.read(&[busy(0, 0, 10), busy(0, 10, 20), busy(0, 20, 30)]);
        assert_eq!((timeline.end(), timeline.kept()), (Time::from_ns(10), 2));
    }
}
