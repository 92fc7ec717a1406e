//! The recorder against a naive computation over the same requests.

use proptest::prelude::*;
use ssdyno_block::{Completion, Op, Request, Status, Time, Token};
use ssdyno_figures::{Histogram, Keep, Latency, RunResult, WarningKind};
use ssdyno_record::{Recorder, Recording, Sent, Tape};

use crate::load::{Done, draw, feed, load};

fn run(mut recorder: Recorder, done: &[Done]) -> RunResult {
    feed(&mut recorder, done);
    let mut result = RunResult::default();
    recorder.finish(Time::ZERO).fill(&mut result);
    result
}

fn nearest_rank(sorted: &[u64], per_mille: u64) -> f64 {
    let rank = (per_mille * sorted.len() as u64).div_ceil(1_000).max(1);
    sorted[rank as usize - 1] as f64
}

fn naive(done: &[Done], op: Option<Op>, start: Time) -> Option<Latency> {
    let mut ps: Vec<u64> = done
        .iter()
        .filter(|(r, _, c)| op.is_none_or(|op| op == r.op) && c.status == Status::Ok)
        .filter(|(_, _, c)| c.completed >= start)
        .map(|(_, from, c)| (c.completed - *from).as_ps())
        .collect();
    ps.sort_unstable();
    let ns: Vec<u64> = ps.iter().map(|ps| ps / 1_000).collect();
    let (min, max) = (*ps.first()? as f64 / 1e3, *ps.last()? as f64 / 1e3);
    let sum: u128 = ps.iter().map(|p| u128::from(*p)).sum();
    let at = |per_mille| nearest_rank(&ns, per_mille).clamp(min, max);
    Some(Latency {
        mean: sum as f64 / ps.len() as f64 / 1e3,
        min,
        p50: at(500),
        p95: at(950),
        p99: at(990),
        p99_9: at(999),
        max,
        at_most: None,
    })
}

fn some_requests() -> impl Strategy<Value = Vec<Done>> {
    let one = (0u64..3_000_000_000, 0u64..40, any::<u64>(), 0usize..4, 0u8..12);
    prop::collection::vec(one, 0..300).prop_map(|many| {
        let done = many.into_iter().enumerate().map(|(i, (from_ns, bits, draw, op, status))| {
            let latency = Time::from_ps(draw >> (24 + bits));
            let start = Time::from_ns(from_ns);
            let length_bytes = if op == 3 { 0 } else { 512 * (1 + (draw % 64) as u32) };
            let request =
                Request { op: Op::ALL[op], offset_bytes: draw % (1 << 40) * 512, length_bytes };
            let status = if status == 0 { Status::Error } else { Status::Ok };
            let (token, accepted) = (Token(i as u32), start + latency / 3);
            (request, start, Completion { token, status, accepted, completed: start + latency })
        });
        done.collect()
    })
}

proptest! {
    #[test]
    fn equals_the_naive_computation(done in some_requests(), ramp_ns in 0u64..2_000_000_000) {
        let start = Time::from_ns(ramp_ns);
        let result = run(Recorder::new(Keep::All, None).start_recording_at(start), &done);
        let latency = result.latency_ns.clone().unwrap_or_default();
        let want = naive(&done, None, start);
        prop_assert_eq!(result.latency_ns.as_ref().map(|l| l.all), want);
        prop_assert_eq!(latency.read, naive(&done, Some(Op::Read), start));
        prop_assert_eq!(latency.write, naive(&done, Some(Op::Write), start));
        prop_assert_eq!(latency.trim, naive(&done, Some(Op::Trim), start));
        prop_assert_eq!(latency.flush, naive(&done, Some(Op::Flush), start));
        prop_assert!(result.invariants.iter().all(|i| i.holds), "{:?}", result.invariants);
        // A value that is not finite would become `null` and not be read back.
        let json = serde_json::to_value(&result).unwrap();
        prop_assert_eq!(serde_json::from_value::<RunResult>(json).unwrap(), result.clone());
        let device = result.device_latency_ns.unwrap_or_default();
        prop_assert!(device.mean <= latency.all.mean && device.max <= latency.all.max);
        prop_assert!(device.p99_9 <= device.max && device.min <= device.p50);
    }

    #[test]
    fn series_sum_to_the_summary(done in some_requests(), interval_us in 100u64..1_000_000) {
        for interval in [None, Some(Time::from_us(interval_us))] {
            let result = run(Recorder::new(Keep::Summary, interval), &done);
            let sum = |pick: fn(&ssdyno_figures::SeriesPoint) -> u64| -> u64 {
                result.series.iter().map(pick).sum()
            };
            prop_assert_eq!(sum(|p| p.reads), result.requests_by_op.read);
            prop_assert_eq!(sum(|p| p.flushes), result.requests_by_op.flush);
            prop_assert_eq!(sum(|p| p.errors), result.errors);
            let length: f64 = result.series.iter().map(|p| p.length_seconds).sum();
            // Tolerance: rounding of picoseconds to seconds in floating point.
            prop_assert!((length - result.simulated_seconds).abs() <= 1e-9 * (1.0 + length));
            prop_assert!(interval.is_some() || result.series.len() <= 512);
        }
    }

    #[test]
    fn without_rows_the_error_is_as_stated(done in some_requests()) {
        let rows = run(Recorder::new(Keep::None, None), &done);
        let summary = run(Recorder::new(Keep::Summary, None), &done);
        prop_assert_eq!((rows.requests, rows.iops), (summary.requests, summary.iops));
        if let (Some(a), Some(b)) = (rows.latency_ns, summary.latency_ns) {
            prop_assert_eq!((a.all.mean, a.all.max), (b.all.mean, b.all.max));
            for (a, b) in [(a.all.p50, b.all.p50), (a.all.p99, b.all.p99), (a.all.p99_9, b.all.p99_9)] {
                prop_assert!((a - b).abs() <= a * Histogram::RELATIVE_ERROR + 1.0, "{a} {b}");
            }
        }
    }
}

#[test]
fn ramp_up_by_count_starts_the_window_at_its_last_completion() {
    let done = load(10_000, 3);
    let mut by_completion = done.clone();
    by_completion.sort_by_key(|(_, _, c)| c.completed);
    let start = by_completion[999].2.completed;
    let result = run(Recorder::new(Keep::All, None).skip_first(1_000), &done);
    assert_eq!(result.requests + result.errors, 9_000);
    let window = by_completion[9_999].2.completed - start;
    assert!((result.simulated_seconds - window.as_s_f64()).abs() < 1e-9);
    assert!(result.invariants.iter().all(|i| i.holds), "{:?}", result.invariants);
    let longer = "and not the ramp-up before them";
    let says = |result: &RunResult| result.notes.iter().any(|n| n.contains(longer));
    assert!(!says(&result), "{:?}", result.notes);
    let mostly = run(Recorder::new(Keep::All, None).skip_first(9_990), &done);
    assert!(mostly.requests > 0 && says(&mostly), "{:?}", mostly.notes);
    let none = run(Recorder::new(Keep::All, None).skip_first(20_000), &done);
    assert_eq!((none.requests, none.latency_ns.is_none()), (0, true));
    assert!(none.notes.iter().any(|n| n.contains("ramp-up")), "{:?}", none.notes);
}

#[test]
fn littles_law_fails_when_a_start_is_wrong() {
    let done = load(1_000, 3);
    let mut recorder = Recorder::new(Keep::All, None);
    for (request, start, completion) in &done {
        recorder.arrived(*start);
        let wrong = if start.as_ns() > 0 { *start - Time::from_ps(1) } else { *start };
        recorder.record(request, wrong, completion);
    }
    let mut result = RunResult::default();
    recorder.finish(Time::ZERO).fill(&mut result);
    let invariant = result.invariants.iter().find(|i| i.name == "littles_law").unwrap();
    assert!(!invariant.holds, "{}", invariant.detail);
}

#[test]
fn a_partial_run_keeps_its_open_requests() {
    let mut recorder = Recorder::new(Keep::All, None);
    for ns in 0..10 {
        recorder.arrived(Time::from_ns(ns));
    }
    let completion = Completion {
        token: Token(0),
        status: Status::Ok,
        accepted: Time::from_ns(1),
        completed: Time::from_ns(50),
    };
    recorder.record(&Request::read(0, 512), Time::ZERO, &completion);
    let mut recording = recorder.finish(Time::from_ns(100));
    let mut partial = RunResult { partial: true, ..RunResult::default() };
    recording.fill(&mut partial);
    assert!(partial.invariants.iter().all(|i| i.holds), "{:?}", partial.invariants);
    let mut whole = RunResult::default();
    recording.fill(&mut whole);
    assert!(whole.invariants.iter().any(|i| !i.holds), "unanswered requests pass unseen");
}

/// How many requests `compare` asks for.
#[test]
fn the_fewest_requests_with_intervals() {
    for (count, rate, latency) in
        [(159, false, false), (160, true, false), (255, true, false), (256, true, true)]
    {
        let mut recorder = Recorder::new(Keep::Summary, None);
        let one = |at: u64| {
            let (start, completed) = (Time::from_us(at), Time::from_us(at + 1));
            let (token, status) = (Token(0), Status::Ok);
            (Request::read(0, 512), start, Completion { token, status, accepted: start, completed })
        };
        feed(&mut recorder, &(0..count).map(one).collect::<Vec<Done>>());
        let mut result = RunResult::default();
        recorder.finish(Time::ZERO).fill(&mut result);
        let confidence = result.confidence.unwrap_or_default();
        assert_eq!(confidence.iops.is_some(), rate, "{count}");
        assert_eq!(confidence.latency_ns.all.mean.is_some(), latency, "{count}");
    }
}

#[test]
fn intervals_cover_independent_requests_as_often_as_they_say() {
    // 300 runs of 3200 exponential latencies (mean 1000 ns): 95 % of the intervals cover the true
    // mean and quantiles; 285 +- 15 (4 standard deviations). Seeds 0 to 299.
    let truth = [1_000.0, 1_000.0 * 2f64.ln(), 1_000.0 * 20f64.ln()];
    let mut covered = [0; 3];
    for seed in 0..300 {
        let (mut state, mut now) = (seed, Time::ZERO);
        let mut recorder = Recorder::new(Keep::All, None);
        for _ in 0..3_200 {
            let uniform = (draw(&mut state) >> 11) as f64 / (1u64 << 53) as f64;
            let completed = now + Time::from_ps((-1e6 * (1.0 - uniform).ln()) as u64);
            let (token, status) = (Token(0), Status::Ok);
            let completion = Completion { token, status, accepted: now, completed };
            recorder.record(&Request::read(0, 512), now, &completion);
            now = completed;
        }
        let mut result = RunResult::default();
        recorder.finish(now).fill(&mut result);
        let l = result.confidence.unwrap().latency_ns.all;
        for (n, (interval, truth)) in
            covered.iter_mut().zip([l.mean, l.p50, l.p95].iter().zip(truth))
        {
            let i = interval.unwrap();
            *n += u32::from(i.low <= truth && truth <= i.high + 1.0);
        }
    }
    assert!(covered.iter().all(|n| (270..=300).contains(n)), "{covered:?} of 300");
}

#[test]
fn warm_up_is_noticed() {
    let mut done = load(20_000, 5);
    let before = run(Recorder::new(Keep::All, None), &done);
    assert!(!before.warns_of(WarningKind::WarmUp), "{:?}", before.warnings);
    let mut shift = Time::ZERO;
    for (_, start, completion) in &mut done[..4_000] {
        shift += Time::from_ns(1);
        *start += shift;
        completion.accepted += shift;
        completion.completed += shift + Time::from_ms(1);
    }
    let after = run(Recorder::new(Keep::All, None), &done);
    assert!(after.warns_of(WarningKind::WarmUp), "{:?}", after.warnings);
}

const END_NS: u64 = 10_000_000;

/// 90 requests that take 1 to 90 us, and 10 that never complete: all issued after 100 us, in a run of 10 ms.
fn some_in_vain(keep: Keep) -> [Recording; 2] {
    let read = Request::read(0, 4096);
    let mut recorder = Recorder::new(keep, None);
    let issued = Time::from_us(100);
    (0..100).for_each(|_| recorder.arrived(issued));
    for us in 1..=90 {
        let completed = issued + Time::from_us(us);
        let (token, status) = (Token(0), Status::Ok);
        let completion = Completion { token, status, accepted: issued, completed };
        recorder.record(&read, issued, &completion);
    }
    (0..10).for_each(|_| recorder.never_answered(0, &read, [issued; 2], Time::from_ns(END_NS)));

    let mut tape = Tape::new(keep, None, false);
    tape.make_places(100);
    tape.issued(100_000, 100);
    let sent = Sent { request: read, intended_ns: 100_000, accepted_ns: 100_000 };
    (0..100).for_each(|place| tape.keep(place, sent));
    for place in 0..90u32 {
        let mut reaped = tape.reaped(100_000 + 1_000 * u64::from(place + 1));
        let sent = reaped.take(place);
        reaped.add(&sent.request, sent.intended_ns, sent.accepted_ns, Status::Ok);
    }
    [recorder.finish(Time::from_ns(END_NS)), tape.finish(END_NS)]
}

/// Requests without a completion count with their wait: the figure is a lower bound, whatever the true latencies are.
#[test]
fn requests_without_an_answer_are_in_the_figures_as_at_least_so_long() {
    for (keep, within) in [(Keep::All, 0.0), (Keep::Summary, 0.004)] {
        for mut recording in some_in_vain(keep) {
            let mut result = RunResult { partial: true, ..RunResult::default() };
            recording.fill(&mut result);
            assert_eq!((result.requests, result.errors, result.unanswered), (90, 0, 10));
            let latency = result.latency_ns.clone().unwrap().all;
            let near = |got: f64, want: f64| (got / want - 1.0).abs() <= within;
            // Of 100: the 50th is certain, the 95th is one of those in vain.
            assert!(near(latency.p50, 50_000.0), "{latency:?}");
            assert!(near(latency.p95, 9.9e6) && near(latency.p99_9, 9.9e6), "{latency:?}");
            let mean = (f64::from(90 * 91 / 2) * 1e3 + 10.0 * 9.9e6) / 100.0;
            assert!((latency.mean / mean - 1.0).abs() < 1e-12);
            assert_eq!((latency.min, latency.max), (1_000.0, 9_900_000.0));
            let most = latency.at_most.unwrap();
            assert_eq!((most.p50, most.p95, most.p99), (Some(latency.p50), None, None));
            assert!(result.notes.iter().any(|note| note.contains("10 requests were never")));
            if let Some(rows) = recording.rows() {
                let rows = rows.to_vec().unwrap();
                let in_vain = rows.iter().filter(|row| row.status == Status::Abandoned);
                assert!(in_vain.clone().all(|row| row.latency_ns == 9_900_000));
                assert_eq!((rows.len(), in_vain.count()), (100, 10));
            }
        }
    }
}

/// Those that were waited for shorter than others took: the percentile lies between two bounds.
#[test]
fn percentiles_have_two_bounds_where_requests_were_given_up_early() {
    let mut recorder = Recorder::new(Keep::All, None);
    let read = Request::read(0, 4096);
    for i in 0..100u64 {
        let status = if i % 4 == 3 { Status::Abandoned } else { Status::Ok };
        let us = if i % 4 == 3 { 10 } else { 100 + i };
        let completion = Completion {
            token: Token(0),
            status,
            accepted: Time::ZERO,
            completed: Time::from_us(us),
        };
        recorder.arrived(Time::ZERO);
        recorder.record(&read, Time::ZERO, &completion);
    }
    let mut result = RunResult::default();
    recorder.finish(Time::ZERO).fill(&mut result);
    assert_eq!((result.requests, result.errors, result.unanswered), (75, 25, 25));
    let latency = result.latency_ns.unwrap().all;
    let mut answered: Vec<u64> = (0..100).filter(|i| i % 4 != 3).map(|i| 100 + i).collect();
    answered.sort_unstable();
    // The 50th of 100 if all 25 came first, and if all came last.
    assert_eq!(latency.p50, answered[24] as f64 * 1e3);
    let most = latency.at_most.unwrap().p50.unwrap();
    assert!((most / (answered[49] as f64 * 1e3) - 1.0).abs() < 0.008, "{most}");
    assert_eq!(latency.at_most.unwrap().p95, None);
}
