//! Tapes against the recorder, over the same requests.

use proptest::prelude::*;
use ssdyno_block::{Completion, Op, Request, Status, Time, Token};
use ssdyno_figures::{Keep, RunResult};
use ssdyno_record::{Recorder, Recording, Row, Tape};

/// Request, intended start, acceptance and completion in ns, how it ended.
type Done = (Request, u64, u64, u64, Status);

/// Requests that are reaped together now and then: completions are whole microseconds. Some come in
/// rows that differ in their places only, or in operations too, and perhaps in how one of them ended.
fn some_requests() -> impl Strategy<Value = Vec<Done>> {
    let one = (0u64..3_000_000, 0u64..20_000, 1u64..400, any::<u64>(), 0usize..4, 0u8..12);
    let row = (one, prop_oneof![3 => Just((1, 0)), 1 => (1u64..40, 0u64..40)]);
    prop::collection::vec(row, 0..200).prop_map(|many| {
        let rows =
            many.into_iter().flat_map(|((at, wait, stay_us, draw, op, status), (row, bad))| {
                (0..row).map(move |i| {
                    let status = if i > 0 && i == bad { 0 } else { status };
                    let op = if bad % 2 == 1 { i as usize % 3 } else { op };
                    (at, wait, stay_us, draw ^ (i << 40), op, status)
                })
            });
        let done = rows.map(|(at, wait, stay_us, draw, op, status)| {
            // Half of them reach the target when they were meant to.
            let accepted = at + if draw % 2 == 0 { wait } else { 0 };
            let completed = (accepted / 1_000 + stay_us) * 1_000;
            let length_bytes = if op == 3 { 0 } else { 512 * (1 + (draw % 64) as u32) };
            let request =
                Request { op: Op::ALL[op], offset_bytes: (draw >> 33) * 512, length_bytes };
            let status = if status == 0 { Status::Error } else { Status::Ok };
            (request, at, accepted, completed, status)
        });
        done.collect()
    })
}

/// What happens, in order: completions before submissions at the same moment. True is a
/// completion.
fn events(done: &[Done]) -> Vec<(u64, bool, usize)> {
    let mut events = Vec::new();
    for (i, (_, _, accepted, completed, _)) in done.iter().enumerate() {
        events.push((*accepted, false, i));
        events.push((*completed, true, i));
    }
    events.sort_by_key(|(at, completion, i)| (*at, !*completion, *i));
    events
}

fn recorded(done: &[Done], keep: Keep, start_ns: u64) -> Recording {
    let mut recorder = Recorder::new(keep, None).start_recording_at(Time::from_ns(start_ns));
    for (at, completion, i) in events(done) {
        let (request, intended, accepted, _, status) = done[i];
        if completion {
            let (token, accepted) = (Token(i as u32), Time::from_ns(accepted));
            let completion = Completion { token, status, accepted, completed: Time::from_ns(at) };
            recorder.record(&request, Time::from_ns(intended), &completion);
        } else {
            recorder.arrived(Time::from_ns(intended));
        }
    }
    recorder.finish(Time::ZERO)
}

/// Request `i` belongs to job `i % jobs`.
fn taped(done: &[Done], keep: Keep, start_ns: u64, jobs: usize) -> Recording {
    let mut parts = Vec::new();
    let end_ns = done.iter().map(|d| d.3).max().unwrap_or(0);
    for job in 0..jobs {
        let mut tape = Tape::new(keep, None, start_ns > 0);
        let mine = events(done).into_iter().filter(|(_, _, i)| i % jobs == job);
        let mine: Vec<_> = mine.collect();
        for together in mine.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (at, completion, _) = together[0];
            if tape.ramping_up() && at >= start_ns {
                tape.start_at(start_ns);
            }
            if !completion {
                for (_, _, i) in together {
                    let (_, intended, accepted, ..) = done[*i];
                    if intended == accepted {
                        tape.issued(accepted, 1);
                    } else {
                        tape.issued_late(intended);
                    }
                }
                continue;
            }
            let ramping_up = tape.ramping_up();
            let mut reaped = tape.reaped(at);
            for (_, _, i) in together {
                let (request, intended, accepted, _, status) = done[*i];
                if ramping_up {
                    reaped.skip();
                } else {
                    reaped.add(&request, intended, accepted, status);
                }
            }
        }
        if tape.ramping_up() {
            tape.start_at(start_ns);
        }
        parts.push(tape.finish(end_ns));
    }
    Recording::merge(parts).unwrap()
}

fn filled(mut recording: Recording) -> RunResult {
    let mut result = RunResult::default();
    recording.fill(&mut result);
    result
}

proptest! {
    #[test]
    fn equal_the_recorder(
        done in some_requests(),
        ramp_up in prop::option::of(1u64..2_000_000),
        jobs in 1usize..4,
        summary in any::<bool>(),
    ) {
        let keep = if summary { Keep::Summary } else { Keep::All };
        // A window that starts after the last completion is cut short by both.
        let last = done.iter().map(|d| d.3).max().unwrap_or(0);
        let start_ns = ramp_up.unwrap_or(0).min(last);
        let want = filled(recorded(&done, keep, start_ns));
        let got = filled(taped(&done, keep, start_ns, jobs));
        prop_assert_eq!((got.requests, got.errors), (want.requests, want.errors));
        prop_assert_eq!(&got.iops, &want.iops);
        prop_assert_eq!(&got.throughput_bytes_per_second, &want.throughput_bytes_per_second);
        prop_assert_eq!(&got.requests_by_op, &want.requests_by_op);
        prop_assert_eq!(&got.latency_ns, &want.latency_ns);
        prop_assert_eq!(&got.device_latency_ns, &want.device_latency_ns);
        prop_assert_eq!(&got.latency_distribution, &want.latency_distribution);
        prop_assert_eq!(&got.series, &want.series);
        let broken = |r: &RunResult| r.invariants.iter().find(|i| !i.holds).cloned();
        prop_assert_eq!(broken(&got), broken(&want));
        if jobs == 1 {
            // Slices of a tape end with what was reaped together, so those of latencies may differ.
            let equal = |r: &RunResult| {
                r.confidence.as_ref().map(|c| (c.iops, c.throughput_bytes_per_second))
            };
            prop_assert_eq!(equal(&got), equal(&want));
            prop_assert_eq!(&got.notes, &want.notes);
        }
    }

    #[test]
    fn merged_rows_are_all_rows_in_order(done in some_requests(), jobs in 2usize..5) {
        let merged = taped(&done, Keep::All, 0, jobs);
        let rows: Vec<Row> = merged.rows().unwrap().to_vec().unwrap();
        let ends: Vec<u64> = rows.iter().map(|r| r.issue_ns + r.latency_ns).collect();
        prop_assert!(ends.is_sorted());
        let key = |r: &Row| (r.issue_ns, r.latency_ns, r.request.offset_bytes, r.status as u8);
        let mut got: Vec<_> = rows.iter().map(key).collect();
        let one = recorded(&done, Keep::All, 0);
        let mut want: Vec<_> = one.rows().unwrap().to_vec().unwrap().iter().map(key).collect();
        got.sort_unstable();
        want.sort_unstable();
        prop_assert_eq!(got, want);
    }
}

#[test]
fn a_job_may_hear_late_that_the_window_began() {
    let mut tape = Tape::new(Keep::All, None, true);
    tape.issued(0, 2);
    tape.reaped(900).skip();
    tape.start_at(1_000);
    // Its clock was read before the other job decided.
    tape.reaped(950).add(&Request::read(0, 512), 0, 0, Status::Ok);
    tape.issued(950, 1);
    tape.reaped(3_000).add(&Request::read(512, 512), 950, 950, Status::Ok);
    let result = filled(tape.finish(3_000));
    assert_eq!((result.requests, result.simulated_seconds), (2, 2e-6));
    assert!(result.invariants.iter().all(|i| i.holds), "{:?}", result.invariants);
}

#[test]
fn intervals_of_merged_jobs_are_as_wide_as_those_of_one() {
    // Two jobs of the same steady load with noise; seed 3. Tolerance: a factor of two, as an
    // interval from 32 groups is itself a random figure.
    let mut state = 3;
    let mut done: Vec<Done> = Vec::new();
    for i in 0..40_000u64 {
        let latency = 50_000 + crate::load::draw(&mut state) % 50_000;
        done.push((
            Request::read(i * 4096, 4096),
            i * 1_000,
            i * 1_000,
            i * 1_000 + latency,
            Status::Ok,
        ));
    }
    let half_width = |jobs| {
        let confidence = filled(taped(&done, Keep::All, 0, jobs)).confidence.unwrap();
        confidence.latency_ns.all.mean.unwrap().relative_half_width().unwrap()
    };
    let (one, two) = (half_width(1), half_width(2));
    assert!(two < 2.0 * one && one < 2.0 * two, "{one} {two}");
}

/// One after the other for 1 to 400 us each; all from number `good` on fail.
fn failing(good: u64) -> Vec<Done> {
    let mut now = 0;
    let one = |i: u64| {
        let (at, status) = (now, if i < good { Status::Ok } else { Status::Error });
        now += 1_000 * (1 + i * 7919 % 400);
        (Request::read(0, 512), at, at, now, status)
    };
    (0..900).map(one).collect()
}

#[test]
fn a_run_in_which_all_fails_shows_when() {
    for recording in [
        recorded(&failing(0), Keep::Summary, 0),
        taped(&failing(0), Keep::Summary, 0, 1),
        taped(&failing(0), Keep::Summary, 0, 3),
    ] {
        let result = filled(recording);
        assert_eq!((result.requests, result.errors), (0, 900));
        assert_eq!(result.series.iter().map(|point| point.errors).sum::<u64>(), 900);
        assert!(result.invariants.iter().all(|i| i.holds), "{:?}", result.invariants);
        let sums = result.invariants.iter().find(|i| i.name == "series_sums").unwrap();
        assert!(sums.detail.contains("900 of 900 errors"), "{}", sums.detail);
        let told = "900 requests ended in an error between 1.000 µs and 18";
        let notes = result.notes.join("\n");
        assert!(notes.contains(told), "{notes}");
    }
}

/// Slices in which all requests failed counted as a steady run, and the measured part as its
/// start-up, which has no spread.
#[test]
fn errors_at_the_end_leave_the_spread_of_what_was_measured() {
    for recording in
        [recorded(&failing(300), Keep::Summary, 0), taped(&failing(300), Keep::Summary, 0, 1)]
    {
        let result = filled(recording);
        assert_eq!((result.requests, result.errors), (300, 600));
        let mean = result.confidence.unwrap().latency_ns.all.mean.unwrap();
        let half = mean.relative_half_width().unwrap();
        // Uniform from 1 to 400 us, 300 of them: 6.6 % were they drawn, less as they are spread evenly.
        assert!((0.005..0.2).contains(&half), "{half}");
        let notes = result.notes.join("\n");
        assert!(notes.contains("600 requests ended in an error between 6"), "{notes}");
    }
}
