//! Are equal runs told apart, and unequal ones not? By simulation of processes whose truth is known.

use ssdyno_block::{Completion, Request, Status, Time, Token};
use ssdyno_figures::{Keep, RunResult, Verdict};
use ssdyno_record::Recorder;
use ssdyno_report::compare;

use crate::processes::{Ar1, Mm1, Process};

fn result_of<P: Process>(seed: u64, requests: u64, stretch: f64) -> RunResult {
    let (mut recorder, mut process) = (Recorder::new(Keep::All, None), P::new(seed));
    let mut end = Time::ZERO;
    for _ in 0..requests {
        let (arrival, latency) = process.next();
        let at = |ns: f64| Time::from_ps((stretch * ns * 1e3) as u64);
        end = at(arrival + latency);
        let (token, status) = (Token(0), Status::Ok);
        let completion = Completion { token, status, accepted: at(arrival), completed: end };
        recorder.record(&Request::read(0, 512), at(arrival), &completion);
    }
    let mut result = RunResult::default();
    recorder.finish(end).fill(&mut result);
    result
}

/// Of 200 pairs of runs of the same load, at most 20 may have any figure reported as different; of
/// 20 pairs where one side takes 1.3 times as long, all must be distinguished.
#[test]
fn equal_runs_are_not_told_apart_and_unequal_ones_are() {
    fn false_verdicts<P: Process>(requests: u64) -> usize {
        let differs = |pair: &u64| {
            let one = result_of::<P>(2 * pair, requests, 1.0);
            let two = result_of::<P>(2 * pair + 1, requests, 1.0);
            let figures = compare(&one, &two).figures;
            figures.iter().any(|figure| figure.verdict != Verdict::CannotTell)
        };
        (0..200).filter(differs).count()
    }
    let wrong = [
        false_verdicts::<Ar1<0>>(5_000),
        false_verdicts::<Ar1<95>>(10_000),
        false_verdicts::<Mm1<80>>(20_000),
    ];
    assert!(wrong.iter().all(|n| *n <= 20), "{wrong:?} of 200");
    for seed in 0..20 {
        let one = result_of::<Ar1<95>>(seed, 10_000, 1.0);
        let two = result_of::<Ar1<95>>(seed + 1_000, 10_000, 1.3);
        assert_eq!(compare(&one, &two).verdict, Verdict::Worse, "seed {seed}");
    }
}
