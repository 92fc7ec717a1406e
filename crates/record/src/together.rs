//! Recordings of several hosts as one, over the time in which all of them were running.
//!
//! Hosts begin and end a little apart. A rate that counts requests of three hosts over the time of four is wrong by a
//! quarter, so figures are over the common window alone (S4-19). The window begins and ends at a border between
//! stretches of the series. Stretches contain exact counts, sums and histograms by operation: nothing is estimated, and
//! at most one stretch is lost at the end.

use ssdyno_block::Time;

use crate::buckets::Grid;
use crate::little::Little;
use crate::recording::Recording;
use crate::side_by_side;
use crate::totals::{Latencies, Totals};

/// The recordings of the hosts for the time in which all of them were running.
#[derive(Debug)]
pub struct Together {
    /// All hosts as one.
    pub all: Recording,
    /// Each host, in the order in which they were given.
    pub hosts: Vec<HostPart>,
    /// From the start of the first host to the start of the common window.
    pub start: Time,
}

/// One host in the common window.
#[derive(Debug)]
pub struct HostPart {
    /// Its recording in the window.
    pub recording: Recording,
    /// How long it ran before the window.
    pub before: Time,
    /// How long it ran after the window.
    pub after: Time,
    /// Requests without error that it completed outside the window.
    pub requests_outside: u64,
    /// Requests that ended in an error outside the window.
    pub errors_outside: u64,
    /// Requests that it gave up outside the window, or that were outstanding when it ended after the window.
    pub unanswered_outside: u64,
}

/// Why recordings have no common window: a sum over them would be meaningless. Hosts are named by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Apart {
    /// A host recorded nothing: it ended during its ramp-up.
    Empty {
        /// The host.
        host: usize,
    },
    /// There is no moment at which all hosts were running.
    NeverTogether {
        /// The host that began last.
        last: usize,
        /// The host that ended first.
        first: usize,
        /// The time between the end of one host and the start of the other; zero if there is none, or if a host ran for
        /// no time.
        gap: Time,
    },
    /// The hosts ran together for less than a stretch of the series, so the recordings cannot be cut to this time.
    Coarse {
        /// The host with the longest stretches: the one that ran longest.
        host: usize,
        /// The length of its stretches.
        interval: Time,
        /// How long all hosts were running.
        common: Time,
    },
}

impl Together {
    /// The common window of `parts`, of which there is one at least, each with the start of its recorded window on a clock
    /// that all of them share.
    ///
    /// # Errors
    /// The hosts did not run at the same time.
    pub fn new(parts: &[(Time, Recording)]) -> Result<Together, Apart> {
        Together::of(parts).unwrap_or(Err(Apart::Empty { host: 0 }))
    }

    fn of(parts: &[(Time, Recording)]) -> Option<Result<Together, Apart>> {
        // Stretches can be joined but not divided. So all hosts use the grid of the coarsest
        // series.
        let numbers = || parts.iter().enumerate();
        let intervals = numbers().map(|(at, (_, part))| (at, part.series.grid().interval()));
        let (coarsest, interval) = intervals.max_by_key(|(_, interval)| *interval)?;
        let ends = |(start, part): &(Time, Recording)| start.saturating_add(part.window());
        let (last, (from, _)) = numbers().max_by_key(|(_, part)| part.0)?;
        let (first, to) = numbers().map(|(at, part)| (at, ends(part))).min_by_key(|(_, to)| *to)?;
        if let Some((host, _)) = numbers().find(|(_, (_, part))| !part.has_started()) {
            return Some(Err(Apart::Empty { host }));
        }
        // This check comes before the common grid. Hosts that ran a day apart would need a grid
        // of a day, with millions of stretches.
        if to <= *from {
            let gap = from.saturating_sub(to);
            return Some(Err(Apart::NeverTogether { last, first, gap }));
        }
        let earliest = parts.iter().map(|(start, _)| *start).min()?;
        let lead = from.saturating_sub(earliest);
        // The window begins at a border of the common grid. The grid begins a whole number of
        // intervals before it, so that the host that began first is on it.
        let base = interval * lead.as_ps().div_ceil(interval.as_ps());
        let place = |start: Time| base.saturating_add(start).saturating_sub(*from);
        let end = place(to);
        let mut moved: Vec<Recording> =
            parts.iter().map(|(start, part)| part.moved_to(place(*start), interval)).collect();
        let cut = moved.iter_mut().map(|part| part.within(base, end)).collect::<Option<Vec<_>>>();
        let Some(cut) = cut else {
            let common = to.saturating_sub(*from);
            return Some(Err(Apart::Coarse { host: coarsest, interval, common }));
        };
        // All hosts are moved to the common grid first and cut there. The parts before and after
        // the window follow from both, so nothing is lost unnoticed.
        let part = |(recording, moved): (&Recording, &Recording)| HostPart {
            before: recording.start.saturating_sub(moved.start),
            after: moved.end.saturating_sub(recording.end),
            requests_outside: moved.requests().saturating_sub(recording.requests()),
            errors_outside: moved.errors().saturating_sub(recording.errors()),
            unanswered_outside: moved.unanswered().saturating_sub(recording.unanswered()),
            recording: recording.copy(),
        };
        let hosts = cut.iter().zip(&moved).map(part).collect();
        let all = Recording::merge(cut)?;
        Some(Ok(Together { all, hosts, start: lead }))
    }
}

impl Recording {
    /// The same without rows.
    fn copy(&self) -> Recording {
        Recording {
            ops: self.ops.clone(),
            inside: self.inside.clone(),
            little: self.little.clone(),
            batches: self.batches.clone(),
            slices: self.slices.clone(),
            series: self.series.clone(),
            rows: None,
            ..*self
        }
    }

    /// With its window at `start`, and its series on a grid that begins at zero. Without rows.
    fn moved_to(&self, start: Time, interval: Time) -> Recording {
        let by = |at: Time| start.saturating_add(at.saturating_sub(self.start));
        let mut moved = self.copy();
        let grid = Grid::unlimited(interval);
        moved.series = moved.series.on_grid(grid, by);
        moved.batches.shift(by);
        moved.little.shift(by);
        moved.slices.shift(by);
        (moved.start, moved.end) = (by(self.start), by(self.end));
        moved
    }

    /// What lies within `from` and `to` as whole stretches; `None` if there are none. How many requests were in the
    /// system then is not known, nor what part of their latency was inside the device.
    fn within(&mut self, from: Time, to: Time) -> Option<Recording> {
        let (mut series, start, end) = self.series.within(from, to)?;
        let mut ops = series.totals();
        // Requests that were outstanding at the end have no place in the series. They belong to the window if it ends
        // with the run, up to the part of a stretch that the cut loses.
        if self.end.saturating_sub(end) < series.grid().interval() {
            ops.iter_mut().zip(&self.ops).for_each(|(part, whole)| part.merge_outstanding(whole));
        }
        let departures = ops.iter().map(|totals: &Totals| totals.latencies.histogram.total()).sum();
        Some(Recording {
            start,
            end,
            announced: false,
            arrivals: departures,
            departures,
            ops,
            inside: Latencies::default(),
            little: Little::default(),
            batches: side_by_side::batches(&[(self.start, &self.batches)], start, end),
            slices: side_by_side::slices(&[(self.start, &self.slices)], start, end),
            series,
            rows: None,
            ..*self
        })
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::{Request, Status};
    use ssdyno_figures::{Keep, RunResult};

    use super::*;
    use crate::Tape;
    use crate::tape::Sent;

    /// Requests of `latency_ns`, one each `every_ns`, for `seconds`.
    fn host(latency_ns: u64, every_ns: u64, seconds: f64) -> Recording {
        let mut tape = Tape::new(Keep::Summary, None, false);
        let end = (seconds * 1e9) as u64;
        let (read, write) = (Request::read(0, 4096), Request::write(0, 512));
        for (at, now) in (latency_ns..end).step_by(every_ns as usize).enumerate() {
            let start = now - latency_ns;
            tape.issued(start, 1);
            tape.reaped(now).add(
                if at % 3 == 0 { &write } else { &read },
                start,
                start,
                Status::Ok,
            );
        }
        tape.finish(end)
    }

    fn filled(mut recording: Recording) -> RunResult {
        let mut result = RunResult::default();
        recording.fill(&mut result);
        result
    }

    #[test]
    fn figures_are_of_the_window_that_all_have_in_common() {
        // The second begins 0.5 s after the first and ends 0.7 s before it.
        let (a, b) = (host(20_000, 100_000, 4.0), host(90_000, 200_000, 2.8));
        let starts = [Time::from_s(100), Time::from_ms(100_500)];
        let all = a.requests() + b.requests();
        let together = Together::new(&[(starts[0], a), (starts[1], b)]).unwrap();
        assert_eq!(together.start, Time::from_ms(500));
        let window = together.all.window().as_s_f64();
        // A stretch of 4 s is 8 ms long.
        assert!((2.792..=2.8).contains(&window), "{window}");
        let result = filled(together.all);
        assert!((result.iops - 15_000.0).abs() < 15_000.0 * 0.005, "{}", result.iops);
        let [of_a, of_b] = &together.hosts[..] else { panic!("two hosts") };
        let outside = of_a.requests_outside + of_b.requests_outside;
        assert_eq!(result.requests + outside, all, "nothing is lost and nothing counts twice");
        let around = of_a.before + of_a.after;
        assert!((1.2..1.21).contains(&around.as_s_f64()), "{around}");
        assert!(of_b.before == Time::ZERO && of_b.after < Time::from_ms(9));
        let latency = result.latency_ns.unwrap();
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.004;
        assert!(near(latency.all.mean, (20_000.0 * 2.0 + 90_000.0) / 3.0), "{latency:?}");
        assert!(near(latency.all.p50, 20_000.0) && near(latency.all.p95, 90_000.0));
        assert_eq!((latency.all.min, latency.all.max), (20_000.0, 90_000.0));
        assert!(latency.write.is_some() && result.device_latency_ns.is_none());
        assert!(result.invariants.iter().all(|one| one.holds), "{:?}", result.invariants);
        let by_op = &result.requests_by_op;
        assert!(near(by_op.write as f64 / result.requests as f64, 1.0 / 3.0));
    }

    #[test]
    fn hosts_that_did_not_run_at_the_same_time_have_no_sum() {
        let parts = |late_s| {
            vec![(Time::ZERO, host(9, 50_000, 1.0)), (Time::from_s(late_s), host(9, 50_000, 1.0))]
        };
        let apart = Together::new(&parts(3)).unwrap_err();
        assert_eq!(apart, Apart::NeverTogether { last: 1, first: 0, gap: Time::from_s(2) });
        assert!(Together::new(&parts(0)).is_ok());
        assert!(Together::new(&[]).is_err());
        let never = Tape::new(Keep::Summary, None, true).finish(1_000);
        let apart = Together::new(&[(Time::ZERO, host(9, 50_000, 1.0)), (Time::ZERO, never)]);
        assert_eq!(apart.unwrap_err(), Apart::Empty { host: 1 });
    }

    /// A host that waits 30 s for one request has stretches that are longer than the run of the other: the other host did
    /// not end during its ramp-up.
    #[test]
    fn a_series_that_is_too_coarse_for_the_window_is_the_reason() {
        let parts = [(Time::ZERO, host(9, 50_000, 30.0)), (Time::ZERO, host(9, 50_000, 0.02))];
        let common = Time::from_ms(20);
        let coarse = Apart::Coarse { host: 0, interval: Time::from_ms(64), common };
        assert_eq!(Together::new(&parts).unwrap_err(), coarse);
    }

    /// A request without a completion, given up at `lost_ms` or outstanding at the end, among fast ones.
    fn lossy(lost_ms: Option<u64>, end_ms: u64) -> Recording {
        let mut tape = Tape::new(Keep::Summary, Some(Time::from_ms(1)), false);
        let read = Request::read(0, 4096);
        tape.issued(0, 1);
        tape.make_places(1);
        for now in (50_000..15_000_000).step_by(50_000) {
            tape.issued(now - 9, 1);
            tape.reaped(now).add(&read, now - 9, now - 9, Status::Ok);
        }
        match lost_ms {
            Some(ms) => tape.reaped(ms * 1_000_000).add(&read, 0, 0, Status::Abandoned),
            None => tape.keep(0, Sent { request: read, intended_ns: 0, accepted_ns: 0 }),
        }
        tape.finish(end_ms * 1_000_000)
    }

    /// A request that its host gives up long after the window is neither an error nor a latency of the window.
    #[test]
    fn requests_without_a_completion_belong_to_the_time_at_which_they_were_given_up() {
        for (lost_ms, end_ms, errors, unanswered) in [
            (Some(16), 20, 1, 1),
            (Some(30_000), 30_000, 0, 0),
            (None, 20, 0, 1),
            (None, 30_000, 0, 0),
        ] {
            let (one, other) = (lossy(lost_ms, end_ms), host(9, 50_000, 0.02));
            let together = Together::new(&[(Time::ZERO, one), (Time::ZERO, other)]).unwrap();
            let of_one = &together.hosts[0];
            let outside = (of_one.errors_outside, of_one.unanswered_outside);
            let result = filled(together.all);
            let case = format!("{lost_ms:?} {end_ms}");
            assert_eq!((result.errors, result.unanswered), (errors, unanswered), "{case}");
            let lost = u64::from(lost_ms.is_some());
            assert_eq!(outside, (lost - errors, 1 - unanswered), "{case}");
            let latency = result.latency_ns.unwrap().all;
            assert_eq!(latency.max > 9.0, unanswered == 1, "{case}");
            assert_eq!(latency.at_most.is_some(), unanswered == 1, "{case}");
            assert!(result.invariants.iter().all(|one| one.holds), "{:?}", result.invariants);
        }
    }

    /// A worker that sends nonsense must not stop the controller.
    #[test]
    fn a_recording_that_cannot_be_is_refused() {
        fn replace(value: &mut ciborium::Value, key: &str, new: u64) {
            for (name, value) in value.as_map_mut().into_iter().flatten() {
                match name.as_text() == Some(key) {
                    true => *value = new.into(),
                    false => replace(value, key, new),
                }
            }
        }
        let sent = ciborium::Value::serialized(&host(20_000, 100_000, 0.7)).unwrap();
        for (key, new) in [
            ("size", 0),
            ("left", 0),
            ("groups", 0),
            ("groups", 1 << 40),
            ("interval", 0),
            ("most", 0),
        ] {
            let mut bad = sent.clone();
            replace(&mut bad, key, new);
            assert_ne!(bad, sent, "{key}");
            assert!(bad.deserialized::<Recording>().is_err(), "{key} = {new}");
        }
        assert!(sent.deserialized::<Recording>().is_ok());
    }

    #[test]
    fn what_travels_gives_the_same_figures() {
        let recording = host(20_000, 100_000, 0.7);
        let mut bytes = Vec::new();
        ciborium::into_writer(&recording, &mut bytes).unwrap();
        let travelled: Recording = ciborium::from_reader(&bytes[..]).unwrap();
        assert_eq!(filled(travelled), filled(recording));
    }
}
