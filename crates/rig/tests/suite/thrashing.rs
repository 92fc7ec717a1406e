//! A DFTL whose translation pages take the room of the data: the run reports this, shows its progress although a write
//! needs thousands of operations, and ends when requested.

use std::time::Duration;

use cpu_time::ThreadTime;
use ssdyno_block::units::Bytes;
use ssdyno_ftl::{Cleaning, WearLevelling};
use ssdyno_rig::{KeepGoing, RunError, RunProgress, SimRun};
use ssdyno_ssd::{Config, presets};

use crate::common;

/// CPU time that may pass between two reports, and between the order to stop and the end: half of the second
/// that the user waits at most, for machines that are busy with something else.
const HEARD_WITHIN: Duration = Duration::from_millis(500);

/// Configuration A with `channels`, 64 blocks a plane, pages of 512 B and a DFTL that cleans by `policy`.
fn device(channels: u32, pages_per_block: u32, policy: Cleaning) -> Config {
    let mut device = Config::parse(presets::find("config-a").unwrap().text).unwrap();
    let flash = &mut device.flash;
    flash.channels = channels;
    flash.blocks_per_plane = 64;
    flash.pages_per_block = pages_per_block;
    flash.page_size = Bytes(512);
    device.ftl.name = "dftl".into();
    device.ftl.cleaning = policy;
    device.ftl.wear_levelling = WearLevelling::Off;
    device
}

fn run(device: Config, requests: u32) -> SimRun {
    let load =
        format!("write_percent = 100\nblock_size = \"4KiB\"\ndepth = 32\nrequests = {requests}");
    common::direct(device, &load)
}

/// The longest time without a report, and the result of `run`, which is stopped when `stop` returns true for its
/// progress and CPU time.
fn longest_silence(
    run: &SimRun,
    stop: impl Fn(&RunProgress, Duration) -> bool,
) -> (Duration, Result<ssdyno_rig::SimMeasured, RunError>) {
    let mut longest = Duration::ZERO;
    let (began, mut last) = (ThreadTime::now(), None);
    let ended = run.execute(&mut |progress| {
        let now = ThreadTime::now();
        let since: Option<ThreadTime> = last.replace(now);
        longest = longest.max(since.map_or(Duration::ZERO, |last| now.duration_since(last)));
        if stop(progress, began.elapsed()) { KeepGoing::Stop } else { KeepGoing::Continue }
    });
    let end = last.map_or(Duration::ZERO, |last| last.elapsed());
    println!("{longest:?} without a report, {end:?} after the order to stop");
    (longest.max(end), ended)
}

/// Every write of the host makes as many translation pages out of date as one call rewrites, or nearly, and
/// each of them is a dozen operations.
#[test]
fn preparation_is_told_of_and_ends_in_time() {
    let enough = Duration::from_millis(300);
    let (longest, ended) =
        longest_silence(&run(device(1, 1024, Cleaning::Random), 10), |progress, took| {
            progress.preparing.is_some() && took > enough
        });
    assert!(matches!(ended, Err(RunError::Unprepared)), "{:?}", ended.err());
    assert!(longest < HEARD_WITHIN, "{longest:?} without a report");
}

/// A request is eight pages and thousands of operations, during which none completes.
#[test]
fn a_run_of_few_requests_is_told_of_and_ends_in_time() {
    let run = run(device(1, 64, Cleaning::Random), 100);
    let (longest, ended) = longest_silence(&run, |progress, _| progress.completed > 0);
    let ended = ended.unwrap();
    assert!(matches!(ended.failure, Some(RunError::Interrupted)), "{:?}", ended.failure);
    assert!(ended.result.partial && ended.result.requests < 60, "{}", ended.result.requests);
    assert!(longest < HEARD_WITHIN, "{longest:?} without a report");
}

/// The note of a run of 4 KiB writes on pages of 4 KiB, where there is one, and the write amplification.
fn note(policy: Cleaning, name: &str, cache_kib: u64) -> (Option<String>, f64) {
    let mut device = device(1, 64, policy);
    device.flash.page_size = Bytes(4096);
    device.ftl.name = name.into();
    device.ftl.dftl.mapping_cache = (name == "dftl").then_some(Bytes(cache_kib << 10));
    let result = run(device, 3_000).execute(&mut |_| KeepGoing::Continue).unwrap().result;
    let note = result.notes.into_iter().find(|note| note.contains("thrashes"));
    (note, result.write_amplification.unwrap())
}

/// A device that is 93 % full: a thrashing device is named, and a healthy one, or one with the same cost for another
/// reason, is not. Seed 1.
#[test]
fn a_mapping_table_that_thrashes_is_named() {
    for policy in [Cleaning::Windowed, Cleaning::Fifo] {
        let (found, amplification) = note(policy, "dftl", 64);
        let found = found.unwrap();
        println!("{amplification:.1}: {found}");
        assert!(amplification > 25.0, "{amplification}");
        // 8192 entries of 57 212.
        for part in ["translation pages", "ftl.cleaning = \"greedy\"", "mapping_cache", "14.3 %"] {
            assert!(found.contains(part), "{found}");
        }
    }
    // Greedy cleaning; a cache for the whole table; and no table in flash, with the costliest policy.
    for (policy, name, cache) in [
        (Cleaning::Greedy, "dftl", 64),
        (Cleaning::Windowed, "dftl", 448),
        (Cleaning::Random, "page", 64),
    ] {
        let (found, amplification) = note(policy, name, cache);
        assert_eq!(found, None, "{policy:?} {name}");
        assert!(amplification > 5.0, "cleaning went on: {amplification}");
    }
}
