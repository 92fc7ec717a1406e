//! `expected`: where a closed form stands beside a measured figure the two agree, whatever the
//! device is like otherwise; where none holds, none stands.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use ssdyno_device::{Config, presets};
use ssdyno_ftl::{Cleaning, CleaningPace, HotCold, WearLevelling};
use ssdyno_result::{Keep, RunResult};
use ssdyno_rig::{Flow, Limits, Run, Source};

fn measure(device: Config, load: &str, seed: u64) -> RunResult {
    let run = Run {
        target: "sim:test".into(),
        device: device.into(),
        workload: "test".into(),
        source: Source::Generator(ssdyno_workload::Config::from_toml(load).unwrap()),
        seed,
        limits: Limits::default(),
        keep: Keep::Summary,
        interval: None,
    };
    run.execute(&mut |_| Flow::Continue).unwrap().result
}

/// Two planes on two channels.
fn device(blocks: u32, pages: u32, over_provisioning: f64) -> Config {
    let mut device = Config::parse(presets::find("config-a").unwrap().text).unwrap();
    let flash = &mut device.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip) = (2, 1, 1);
    (flash.planes_per_die, flash.blocks_per_plane, flash.pages_per_block) = (1, blocks, pages);
    device.ftl.over_provisioning = over_provisioning;
    device
}

fn load(read_percent: u32, requests: u32) -> String {
    format!(
        "read_percent = {read_percent}\nblock_size = \"4KiB\"\ndepth = 4\nrequests = {requests}"
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// 3 %: two planes of 200 blocks and more, where the forms are within 1.5 %, and chance.
    #[test]
    fn a_closed_form_that_stands_is_kept(
        (blocks, pages) in (200_u32..400, 2_u32..100),
        over_provisioning in 0.12_f64..1.2,
        cleaning in proptest::sample::select(vec![
            Cleaning::Greedy, Cleaning::Greedy, Cleaning::Fifo, Cleaning::Random, Cleaning::Windowed,
        ]),
        pace in proptest::sample::select(vec![CleaningPace::Whole, CleaningPace::Paced]),
        wear in proptest::sample::select(vec![
            WearLevelling::Off, WearLevelling::Dynamic, WearLevelling::Static,
        ]),
        hot_cold in proptest::sample::select(vec![HotCold::Off, HotCold::Off, HotCold::Survivors]),
        summary_pages in 0_u32..2,
        factory_bad in proptest::sample::select(vec![0.0, 0.0, 0.02]),
        read_percent in proptest::sample::select(vec![0_u32, 40]),
        seed: u64,
    ) {
        let mut device = device(blocks, pages, over_provisioning);
        device.flash.factory_bad = factory_bad;
        let ftl = &mut device.ftl;
        (ftl.cleaning, ftl.cleaning_pace, ftl.wear_levelling) = (cleaning, pace, wear);
        (ftl.hot_cold, ftl.wear_threshold) = (hot_cold, 2);
        ftl.cleaning_window = if cleaning == Cleaning::Windowed { 50 } else { 0 };
        if summary_pages > 0 && pages >= 8 {
            // An eighth of a block at most is no data.
            (ftl.summary_pages, ftl.over_provisioning) = (1, over_provisioning + 0.3);
        }
        if device.flash.factory_bad > 0.0 {
            device.ftl.over_provisioning += 0.1;
        }
        let result = measure(device, &load(read_percent, 60_000), seed);
        for expected in &result.expected {
            let measured = result.write_amplification.unwrap();
            prop_assert_eq!(expected.measured, Some(measured));
            let ratio = measured / expected.value;
            prop_assert!((ratio - 1.0).abs() < 0.03, "{} {:?}", ratio, expected);
        }
        let plain = wear != WearLevelling::Static && hot_cold == HotCold::Off && factory_bad == 0.0;
        let known = cleaning != Cleaning::Windowed && pace == CleaningPace::Whole;
        prop_assert!(plain || result.expected.is_empty());
        prop_assert!(!(plain && known) || result.expected.len() == 1);
    }
}

/// Planes of which the forms know nothing: the notes say so.
#[test]
fn few_blocks_have_no_closed_form() {
    let result = measure(device(24, 4, 0.5), &load(0, 20_000), 1);
    assert!(result.expected.is_empty(), "{:?}", result.expected);
    assert!(result.notes.iter().any(|note| note.contains("planes have 24 blocks")));
}

/// A device that wears out loses blocks, and with them what the form was worked out for.
#[test]
fn worn_out_devices_have_no_closed_form() {
    let mut device = device(200, 32, 0.3);
    device.flash.endurance_cycles = Some(20);
    device.flash.endurance_spread = 0.3;
    let result = measure(device, &load(0, 100_000), 1);
    assert!(result.notes.iter().any(|note| note.contains("bad")), "{:?}", result.notes);
    assert!(result.expected.is_empty(), "{:?}", result.expected);
}
