//! Intervals of the figures that are counts of the whole device, and the power over time that one of them is made of.

use std::path::Path;

use ssdyno_block::units::Bytes;
use ssdyno_figures::{Interval, RunResult, WarningKind};
use ssdyno_ftl::buffer::BufferPolicy;
use ssdyno_ftl::{Fill, Precondition};
use ssdyno_rig::{KeepGoing, SimRun, Source};
use ssdyno_ssd::{Config, presets};
use ssdyno_workload::read_fio_jobs;

use crate::common;

/// 8 planes of 128 blocks of 32 pages under `requests` random writes after `ramp_up` of them.
fn measure(seed: u64, ramp_up: u32, requests: u32) -> RunResult {
    filled(Fill::Random, seed, ramp_up, requests)
}

fn filled(fill: Fill, seed: u64, ramp_up: u32, requests: u32) -> RunResult {
    loaded(fill, seed, &format!("ramp_up = {ramp_up}\nrequests = {requests}"))
}

fn loaded(fill: Fill, seed: u64, keys: &str) -> RunResult {
    preconditioned(Precondition { fill, ..Precondition::default() }, seed, keys)
}

fn preconditioned(precondition: Precondition, seed: u64, keys: &str) -> RunResult {
    on_device(seed, keys, |device| device.precondition = precondition)
}

fn on_device(seed: u64, keys: &str, change: impl FnOnce(&mut Config)) -> RunResult {
    let mut device = Config::parse(presets::find("config-a").unwrap().text).unwrap();
    let flash = &mut device.flash;
    (flash.channels, flash.chips_per_channel) = (2, 1);
    (flash.blocks_per_plane, flash.pages_per_block) = (128, 32);
    device.ftl.over_provisioning = 0.25;
    change(&mut device);
    let size = if keys.contains("block_size") { "" } else { "block_size = \"4KiB\"" };
    let load = format!("write_percent = 100\ndepth = 32\n{size}\n{keys}");
    let run = SimRun { seed, ..common::direct(device, &load) };
    run.execute(&mut |_| KeepGoing::Continue).unwrap().result
}

/// Power over time starts with the recorded window: its integral is the energy of the window, and the whole energy
/// but for the time in which the device settles.
#[test]
fn power_over_time_starts_after_the_ramp_up() {
    for ramp_up in [0, 20_000] {
        let result = measure(1, ramp_up, 40_000);
        let joules: f64 = result
            .series
            .iter()
            .map(|point| point.power_watts.unwrap().total * point.length_seconds)
            .sum();
        let total = result.energy_joules.unwrap().total;
        let settling = 1.0 - result.simulated_seconds / result.energy_seconds.unwrap();
        let off = 1.0 - joules / total;
        assert!(off >= -1e-9 && off <= settling + 1e-3, "{ramp_up}: {off} of {settling}");
    }
}

/// Of 60 seeds, the 95 % intervals cover the mean over all seeds nine times of ten at least, with 40 000 writes and with four
/// times as many, and shrink with the length of the run. They are not wider than 5 %.
#[test]
fn intervals_cover_the_mean_over_seeds() {
    let pick = |result: &RunResult| -> [Interval; 2] {
        let all = result.confidence.as_ref().unwrap();
        [all.write_amplification.unwrap(), all.energy_joules_per_request.unwrap()]
    };
    let mut widths = Vec::new();
    for requests in [40_000, 160_000] {
        let runs: Vec<[Interval; 2]> =
            (1..=60).map(|seed| pick(&measure(seed, 20_000, requests))).collect();
        for at in 0..2 {
            let all = || runs.iter().map(|run| run[at]);
            let mean = all().map(|i| i.estimate).sum::<f64>() / runs.len() as f64;
            let covering = all().filter(|i| i.low <= mean && mean <= i.high).count();
            assert!(covering >= 54, "{requests}, figure {at}: {covering} of 60 cover {mean}");
            let width = all().map(|i| i.relative_half_width().unwrap()).sum::<f64>() / 60.0;
            assert!(width < 0.05, "{requests}, figure {at}: {width}");
            widths.push(width);
        }
    }
    assert!(widths[2] < 0.7 * widths[0] && widths[3] < 0.7 * widths[1], "{widths:?}");
}

/// A run that erased no block knows nothing of the write amplification and the energy of longer ones.
#[test]
fn a_run_that_cleaned_nothing_has_no_interval_of_them() {
    let fresh = filled(Fill::Empty, 1, 0, 8_000);
    assert_eq!(fresh.flash_operations.unwrap().erases, 0);
    let all = fresh.confidence.unwrap();
    assert!(all.iops.is_some());
    assert_eq!((all.write_amplification, all.energy_joules_per_request), (None, None));
}

/// Hot and cold writes over a drive that uniform writes filled: each of 32 768 pages must be programmed twice before
/// garbage collection is that of this load. The 3 000 first writes are steady among themselves, and below the level that
/// they end with.
#[test]
fn garbage_collection_that_has_not_settled_is_said() {
    const HOT: &str = "[address]\npattern = \"hot-cold\"";
    let hot = |keys: &str| loaded(Fill::Random, 1, &format!("{keys}\n{HOT}"));
    let early = hot("requests = 3000");
    let turns = early.steady_state.as_ref().unwrap().unsettled_block_erases.unwrap();
    let erased = early.flash_operations.unwrap().erases as f64 / (8.0 * 128.0);
    assert!((turns - erased).abs() < 1e-9 && turns < 0.6, "{turns}, {erased}");
    let says = |run: &RunResult| run.warnings.iter().any(|one| one.kind == WarningKind::Unsettled);
    assert!(says(&early), "{:?}", early.warnings);
    let late = hot("ramp_up = 30000\nrequests = 20000");
    assert!(!says(&late) && late.steady_state.unwrap().unsettled_block_erases.is_none());
    // Uniform writes are what the preconditioning did.
    assert!(!says(&measure(1, 0, 3_000)));
    // After a sequential fill they are not.
    assert!(says(&filled(Fill::Sequential, 1, 0, 12_000)));
}

/// Zipf writes with the exponent 1.5 have overwritten 6 % of the 26 214 pages after 40 000 writes and five erases of each block,
/// and 23 % after 420 000; a victim has about 20 % of invalid pages. Write amplification is 4.4 and 5.3.
#[test]
fn unpopular_pages_that_were_not_overwritten_are_said() {
    let zipf = |ramp_up: u32| {
        let load = "requests = 20000\n[address]\npattern = \"zipf\"\ntheta = 1.5";
        loaded(Fill::Random, 1, &format!("ramp_up = {ramp_up}\n{load}"))
    };
    let found = |run: &RunResult| {
        run.warnings.iter().find(|one| one.kind == WarningKind::Unsettled).cloned()
    };
    let early = zipf(20_000);
    let told = found(&early).unwrap_or_else(|| panic!("{:?}", early.warnings)).line();
    assert!(early.steady_state.as_ref().unwrap().unsettled_block_erases.unwrap() > 4.0);
    assert!(told.contains("write amplification still rises until"), "{told}");
    assert!(told.contains("5.6 % of the pages that the load writes"), "{told}");
    let late = zipf(400_000);
    assert!(found(&late).is_none(), "{:?}", late.warnings);
    let rise = late.write_amplification.unwrap() / early.write_amplification.unwrap();
    assert!(rise > 1.1, "{rise}");
}

/// Random writes after a sequential fill: a warm-up, an unsteady rate, and garbage collection that has not settled. A longer run,
/// or a ramp-up that is long enough for the first two, would only lead to the third.
#[test]
fn warnings_of_unsettled_garbage_collection_have_one_remedy() {
    let run = filled(Fill::Sequential, 1, 0, 12_000);
    let help = |kind| {
        let found = run.warnings.iter().find(|one| one.kind == kind);
        found.unwrap_or_else(|| panic!("{kind:?}: {:?}", run.warnings)).help.clone().unwrap()
    };
    let remedy = help(WarningKind::Unsettled);
    assert!(remedy.contains("workload.ramp_up="), "{remedy}");
    assert_eq!([help(WarningKind::WarmUp), help(WarningKind::NotSteady)], [&*remedy; 2]);
}

/// A stream over what a stream wrote: blocks are overwritten as a whole from the first one on, and no ramp-up changes that.
/// Over what random writes left behind it takes a while.
#[test]
fn a_stream_over_a_stream_is_settled_from_the_start() {
    let stream = |fill| loaded(fill, 1, "requests = 12000\n[address]\npattern = \"sequential\"");
    let says = |run: &RunResult| run.warnings.iter().any(|one| one.kind == WarningKind::Unsettled);
    let over_stream = stream(Fill::Sequential);
    assert_eq!(over_stream.write_amplification, Some(1.0));
    assert!(!says(&over_stream), "{:?}", over_stream.warnings);
    assert!(says(&stream(Fill::Random)));
}

/// Uniform writes over a drive of which half holds data: it fills while it is measured.
#[test]
fn a_drive_that_fills_is_said() {
    let says = |run: &RunResult| {
        run.warnings.iter().any(|one| one.message.contains("the drive fills during the run"))
    };
    let half_full = |keys: &str| {
        preconditioned(
            Precondition { fill: Fill::Random, share: 0.5, ..Precondition::default() },
            1,
            keys,
        )
    };
    let half = half_full("requests = 30000");
    assert!(half.flash_operations.unwrap().erases > 0);
    assert!(says(&half), "{:?}", half.warnings);
    assert!(!says(&measure(1, 0, 12_000)));
    // Only the half that holds data is written.
    assert!(!says(&half_full("requests = 30000\n[address]\nlength_percent = 50")));
}

/// A used drive with a write buffer of 4 MiB.
fn buffered(keys: &str) -> RunResult {
    on_device(1, keys, |device| {
        device.precondition.fill = Fill::Random;
        device.buffer.policy = BufferPolicy::Lru;
        device.buffer.size = Bytes(4 << 20);
    })
}

/// Writes of an eighth of a page: each of them costs a page, in the buffer as on the flash.
#[test]
fn small_writes_in_the_buffer_do_not_change_write_amplification() {
    let small = |keys: &str| buffered(&format!("block_size = \"512B\"\n{keys}"));
    let long = small("requests = 200000").write_amplification.unwrap();
    for keys in ["requests = 10000", "ramp_up = 20000\nrequests = 10000"] {
        let short = small(keys).write_amplification.unwrap();
        assert!((short / long - 1.0).abs() < 0.02, "{keys}: {short}, {long} in the long run");
    }
}

/// A size alone makes no buffer.
#[test]
fn a_size_without_a_policy_is_noted() {
    let has_note = |policy| {
        let result = on_device(1, "requests = 100", |device| {
            (device.buffer.policy, device.buffer.size) = (policy, Bytes(4 << 20));
        });
        result.notes.iter().any(|note| note.contains("buffer.policy is `none`"))
    };
    assert!(has_note(BufferPolicy::None) && !has_note(BufferPolicy::Lru));
}

/// The range fits into the write buffer: no write reaches the flash.
#[test]
fn writes_that_stay_in_the_buffer_have_no_write_amplification() {
    let keys = "requests = 20000\n[address]\nlength = \"1MiB\"";
    let result = buffered(keys);
    assert_eq!(result.write_amplification, None);
    let told = result.warnings.iter().any(|warning| warning.message.contains("absorbed"));
    assert!(told, "{:?}", result.warnings);
}

/// A write buffer that the ramp-up filled is emptied at the end of the run, and one that was empty at first keeps a part
/// of the writes. Neither changes write amplification: it is that of the bytes that reached the flash.
#[test]
fn the_contents_of_the_write_buffer_do_not_change_write_amplification() {
    let long = buffered("requests = 200000").write_amplification.unwrap();
    // The buffer holds 1024 pages: a tenth of the writes of a short run.
    for keys in ["requests = 10000", "ramp_up = 20000\nrequests = 10000"] {
        let short = buffered(keys).write_amplification.unwrap();
        assert!((short / long - 1.0).abs() < 0.02, "{keys}: {short}, {long} in the long run");
    }
}

/// The second group of jobs has a ramp-up, which lies within the window of the run. What the device does for its writes goes to
/// them, too: write amplification and energy per request are those of the same run without a ramp-up. The rates are not, and a
/// warning says so.
#[test]
fn a_ramp_up_within_the_window_is_shared_out() {
    let ran = |ramp_time: &str| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ramp{ramp_time}.fio"));
        let job = format!(
            "[global]\nrw=randwrite\nbs=4k\nioengine=libaio\niodepth=32\nrate_iops=1000\ntime_based\n[a]\nruntime=5\n\
             [b]\nstonewall\nramp_time={ramp_time}\nruntime={}\n",
            15 - ramp_time.parse::<u32>().unwrap()
        );
        std::fs::write(&path, job).unwrap();
        let jobs = read_fio_jobs(&path).unwrap();
        let mut device = Config::parse(presets::find("config-a").unwrap().text).unwrap();
        (device.flash.channels, device.flash.chips_per_channel) = (8, 1);
        (device.flash.blocks_per_plane, device.flash.pages_per_block) = (128, 32);
        device.ftl.over_provisioning = 0.25;
        let run = common::of(device, Source::Jobs { path, jobs });
        run.execute(&mut |_| KeepGoing::Continue).unwrap().result
    };
    let [whole, with] = ["0", "10"].map(ran);
    let says = |run: &RunResult| {
        run.warnings.iter().any(|one| one.message.starts_with("the ramp-up of a job lies within"))
    };
    assert!(!says(&whole) && says(&with), "{:?}", with.warnings);
    // Requests of the ramp-up that end after it count.
    assert!(whole.requests == 20_000 && with.requests.abs_diff(10_000) <= 32);
    let figures = |run: &RunResult| {
        [run.write_amplification, run.energy_joules.and_then(|energy| energy.per_request)]
    };
    for (whole, with) in figures(&whole).into_iter().zip(figures(&with)) {
        let ratio = with.unwrap() / whole.unwrap();
        assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    }
}
