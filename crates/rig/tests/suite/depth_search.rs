//! Searches for the greatest depth that meets a latency, on a storage system of one server: with `d` requests
//! outstanding each takes `d` times 100 us (`sim:delay-100us`), so the greatest depth that meets a latency `T` is
//! `T` by 100 us, rounded down.

use std::path::Path;

use ssdyno_block::Time;
use ssdyno_device::delay::{DelayConfig, presets};
use ssdyno_figures::{Keep, RunResult};
use ssdyno_rig::{KeepGoing, RunError, SimRun, Source};
use ssdyno_workload::{WorkloadConfig, read_fio_jobs};

use crate::common;

fn delay_100us() -> &'static str {
    presets::DELAYS.iter().find(|preset| preset.name == "delay-100us").unwrap().text
}

fn run(source: Source) -> SimRun {
    let device = DelayConfig::parse(delay_100us()).unwrap();
    SimRun { target: "sim:delay-100us".into(), keep: Keep::All, ..common::of(device, source) }
}

fn plan(text: &str) -> SimRun {
    run(Source::Generator(WorkloadConfig::from_toml(text).unwrap()))
}

fn fio(name: &str, text: &str) -> SimRun {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    let jobs = read_fio_jobs(&path).unwrap();
    run(Source::Jobs { path, jobs })
}

fn measure(run: &SimRun) -> RunResult {
    let measured = run.execute(&mut |_| KeepGoing::Continue).unwrap();
    assert!(measured.failure.is_none(), "{:?}", measured.failure);
    let broken: Vec<_> =
        measured.result.invariants.iter().filter(|invariant| !invariant.holds).collect();
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(measured.recording.rows().unwrap().len() as u64, measured.result.requests);
    measured.result
}

/// The search finds the exact depth; the figures are those of a run at this depth: 10 000 IOPS, and a latency for each
/// request that follows from the depth.
#[test]
fn the_depth_is_the_closed_form_and_the_figures_are_of_it_alone() {
    for (latency_us, fits) in [(100, 1), (450, 4), (1_250, 12), (3_100, 31), (100_000, 64)] {
        let text = format!(
            "depth = 64\nramp_up = 100\nlatency_target = \"{latency_us}us\"\nlatency_window = \"100ms\""
        );
        let result = measure(&plan(&text));
        let [search] = &result.depth_searches[..] else { panic!("one search") };
        assert_eq!((search.depth, search.met, search.depth_max), (fits, true, 64), "{latency_us}");
        assert_eq!((search.latency_target_ns, &search.job), (latency_us * 1_000, &None));
        assert!(search.tried[0].start_seconds == 0.01, "100 requests of ramp-up come first");
        let latency = result.latency_ns.unwrap().all;
        let each = 1e5 * fits as f64;
        assert_eq!((latency.p50, latency.max), (each, each));
        assert!((result.iops / 1e4 - 1.0).abs() < 0.001, "{}", result.iops);
        assert!((result.simulated_seconds - 0.1).abs() < 0.01, "{}", result.simulated_seconds);
        // The first ones found the device empty.
        assert!(latency.mean <= each && latency.mean > each * (1.0 - fits as f64 / 900.0));
    }
}

#[test]
fn jobs_of_a_file_search_each_for_itself() {
    let text = "[global]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\nsize=16g\n\
                latency_target=1250\nlatency_window=100ms\n[one]\n[two]\nstonewall\nlatency_target=820\n";
    let result = measure(&fio("each.fio", text));
    let found: Vec<_> =
        result.depth_searches.iter().map(|s| (s.job.as_deref().unwrap(), s.depth, s.met)).collect();
    assert_eq!(found, [("one", 12, true), ("two", 8, true)]);
    for (job, search) in result.jobs.iter().zip(&result.depth_searches) {
        let latency = job.latency_ns.as_ref().unwrap().all.max;
        assert!((latency / (1e5 * search.depth as f64) - 1.0).abs() < 0.005, "{latency}");
        assert!(job.requests > 950 && job.requests < 1_100, "{}", job.requests);
    }
    let all: u64 = result.jobs.iter().map(|job| job.requests).sum();
    assert_eq!(result.requests, all);
    let note = "[one]: latency_target: depth 12 was the greatest with";
    assert!(result.notes.iter().any(|told| told.starts_with(note)), "{:?}", result.notes);
}

/// Another job beside it is recorded all the time.
#[test]
fn a_job_without_a_target_is_recorded_meanwhile() {
    let text = "[global]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\nsize=16g\n[searches]\niodepth=32\n\
                latency_target=1250\nlatency_window=100ms\n[other]\niodepth=1\nruntime=3\ntime_based\n";
    let result = measure(&fio("beside.fio", text));
    // One place of the twelve is the other job's.
    assert_eq!((result.depth_searches[0].depth, result.depth_searches[0].met), (11, true));
    assert!((result.jobs[1].seconds - 3.0).abs() < 0.01, "{}", result.jobs[1].seconds);
    assert!((result.simulated_seconds - 3.0).abs() < 0.01);
    assert_eq!(result.requests, result.jobs[0].requests + result.jobs[1].requests);
}

/// Another job begins in the window that is to confirm depth 12, and takes one place of the server: 13 outstanding take
/// 1300 us each. Depth 11 is found, and its figures are those of a server of 12 places of which 11 are of the job: 1200 us,
/// and 11 / 1200 us. Depth 12 had 10 000 requests in a second before.
#[test]
fn a_depth_that_a_later_load_rules_out_is_in_no_figure() {
    let text = "[global]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\nsize=16g\n[searches]\niodepth=32\n\
                latency_target=1250\nlatency_window=100ms\n[other]\niodepth=1\nstartdelay=650ms\nruntime=3\n\
                time_based\n";
    let result = measure(&fio("later.fio", text));
    let search = &result.depth_searches[0];
    let depths: Vec<u64> = search.tried.iter().map(|tried| tried.depth).collect();
    assert_eq!(depths, [1, 2, 4, 8, 16, 12, 14, 13, 12, 12, 11, 11, 11]);
    let latency = result.jobs[0].latency_ns.as_ref().unwrap().all;
    assert!((latency.max / 1.2e6 - 1.0).abs() < 0.005, "{}", latency.max);
    let iops = result.jobs[0].iops;
    assert!((iops / (11.0 / 1.2e-3) - 1.0).abs() < 0.01, "{iops}");
    let outstanding = iops * latency.mean / 1e9;
    assert!((outstanding - search.depth as f64).abs() < 0.15, "{outstanding}");
}

#[test]
fn what_no_depth_meets_ends_the_run_with_an_error() {
    let run = plan("depth = 8\nlatency_target = \"99us\"\nlatency_window = \"10ms\"");
    let measured = run.execute(&mut |_| KeepGoing::Continue).unwrap();
    let Some(RunError::Workload(error)) = &measured.failure else { panic!("no error") };
    assert!(error.to_string().contains("`latency_target`: no depth meets it"), "{error}");
    let [search] = &measured.result.depth_searches[..] else { panic!("one search") };
    assert_eq!((search.depth, search.met, measured.result.requests), (1, false, 0));
}

/// With `latency_run` the run goes on to its own end, and all of it is in the figures.
#[test]
fn with_latency_run_all_is_recorded() {
    let text = "depth = 64\nlatency_target = \"1250us\"\nlatency_window = \"50ms\"\nlatency_run = true\n\
                ramp_up = 1000\nduration = \"4s\"";
    let result = measure(&plan(text));
    let [search] = &result.depth_searches[..] else { panic!("one search") };
    assert!((12..=13).contains(&search.depth) && search.latency_run, "{search:?}");
    assert!((result.simulated_seconds - 3.9).abs() < 0.01, "{}", result.simulated_seconds);
    let p50 = result.latency_ns.unwrap().all.p50;
    assert!((p50 / 1.2e6 - 1.0).abs() < 0.09, "{p50}");
    assert_eq!(Time::from_ms(50).as_ns(), search.latency_window_ns);
}
