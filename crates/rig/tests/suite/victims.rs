//! The victims of garbage collection explain write amplification.

use ssdyno_figures::{GcVictims, RunResult};
use ssdyno_ftl::{Cleaning, CleaningPace, WearLevelling};
use ssdyno_rig::KeepGoing;
use ssdyno_ssd::{Config, presets};

use crate::common;

/// 8 planes of 128 blocks of 32 pages under random writes: `requests` of them after `ramp_up` writes as a ramp-up.
fn measure(ftl: &str, (cleaning, pace): (Cleaning, CleaningPace), ramp_up: u32) -> RunResult {
    let mut device = Config::parse(presets::find("config-a").unwrap().text).unwrap();
    let flash = &mut device.flash;
    (flash.channels, flash.chips_per_channel) = (2, 1);
    (flash.blocks_per_plane, flash.pages_per_block) = (128, 32);
    device.ftl.over_provisioning = 0.25;
    device.ftl.wear_levelling = WearLevelling::Off;
    ftl.clone_into(&mut device.ftl.name);
    (device.ftl.cleaning, device.ftl.page.cleaning_pace) = (cleaning, pace);
    let load = format!(
        "write_percent = 100\nblock_size = \"4KiB\"\ndepth = 32\nramp_up = {ramp_up}\nrequests = 60000"
    );
    common::direct(device, &load).execute(&mut |_| KeepGoing::Continue).unwrap().result
}

/// A victim with the share u of valid pages gives room for 1 - u pages of the host and costs u copies, so that a page costs
/// 1/(1 - u) programs. The steady state is there from the first request on: each of some thousand victims. Tolerance 2 %.
#[test]
fn write_amplification_is_that_of_the_mean_victim() {
    let mut means = Vec::new();
    for cleaning in [Cleaning::Greedy, Cleaning::Fifo, Cleaning::Random] {
        for pace in [CleaningPace::Whole, CleaningPace::Paced] {
            let result = measure("page", (cleaning, pace), 0);
            let victims = result.gc_victims.unwrap();
            let measured = result.write_amplification.unwrap();
            let ratio = measured * (1.0 - victims.valid_mean);
            assert!((ratio - 1.0).abs() < 0.02, "{cleaning:?} {pace:?}: {measured} {victims:?}");
            assert_eq!(victims.by_valid_share.iter().sum::<u64>(), victims.blocks);
            if pace == CleaningPace::Whole {
                means.push(victims);
            }
        }
    }
    let [greedy, fifo, random] = &means[..] else { panic!("three") };
    assert!(greedy.valid_mean < fifo.valid_mean, "{greedy:?} {fifo:?}");
    assert!(fifo.valid_mean < random.valid_mean, "{fifo:?} {random:?}");
    // Greedy victims are alike; random ones are anything from old to just written.
    let spread = |victims: &GcVictims| victims.valid_p90 - victims.valid_p10;
    assert!(spread(greedy) < 0.5 * spread(random), "{greedy:?} {random:?}");
}

/// Victims are those of the recorded part: as many as blocks were erased in it, but those on their way at its ends.
#[test]
fn victims_of_a_ramp_up_are_not_counted() {
    for ramp_up in [0, 60_000] {
        let result = measure("page", (Cleaning::Greedy, CleaningPace::Whole), ramp_up);
        let (victims, erased) =
            (result.gc_victims.unwrap().blocks, result.flash_operations.unwrap().erases);
        assert!(erased > 2_000, "{erased}");
        assert!(victims.abs_diff(erased) <= 16, "{ramp_up}: {victims} of {erased}");
    }
}

#[test]
fn a_hybrid_ftl_has_no_victims() {
    let result = measure("bast", (Cleaning::Greedy, CleaningPace::Whole), 0);
    assert_eq!(result.gc_victims, None);
}
