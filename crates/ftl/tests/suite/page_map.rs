//! The page-mapping FTL against the suite and against the closed forms of write amplification.

use proptest::prelude::*;
use ssdyno_ftl::conformance::{check_ftl, ftl_config, small_flash};
use ssdyno_ftl::{CleaningPace, Fill, FtlFacts, Precondition, PrepareWatch, build};

const POLICIES: [&str; 6] = ["greedy", "fifo", "random", "d-choices", "cost-benefit", "windowed"];

#[test]
fn passes_the_suite_with_every_policy() {
    for policy in POLICIES {
        for placement in ["static", "round-robin", "most-free", "least-busy"] {
            let more = format!(
                r#","cleaning":"{policy}","placement":"{placement}","free_blocks_background":0.2,
                "summary_pages":1,"hot_cold":"survivors","wear_levelling":"static","wear_threshold":3"#
            );
            let config = ftl_config("page", 0.5, &more);
            for fill in [Fill::Empty, Fill::Sequential, Fill::Random] {
                check_ftl(&small_flash(2, 2, 24, 8), &config, fill, 1, 4_000);
                let mut paced = config.clone();
                paced.page.cleaning_pace = CleaningPace::Paced;
                check_ftl(&small_flash(2, 2, 24, 8), &paced, fill, 1, 4_000);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn tiny_full_devices_never_abort(
        blocks in 4u32..20,
        pages in 1u32..9,
        planes in 1u32..4,
        channels in 1u32..4,
        spare in 0.0f64..3.0,
        policy in 0usize..6,
        cold in any::<bool>(),
        paced in any::<bool>(),
        seed: u64,
    ) {
        let more = format!(
            r#","cleaning":"{}","hot_cold":"{}","page.cleaning_pace":"{}""#,
            POLICIES[policy],
            if cold { "survivors" } else { "off" },
            if paced { "paced" } else { "whole" }
        );
        let config = ftl_config("page", spare, &more);
        let flash = small_flash(channels, planes, blocks, pages);
        let geometry = flash.geometry().unwrap();
        // A flash that cannot hold its data is refused; all other flashes must work.
        if config.limits(&geometry, 0).is_ok() {
            check_ftl(&flash, &config, Fill::Random, seed, 600);
        }
    }
}

#[test]
fn wears_out_to_read_only_and_still_reads() {
    let mut flash = small_flash(1, 2, 16, 8);
    flash.endurance_cycles = Some(20);
    flash.endurance_spread = 0.2;
    flash.factory_bad = 0.05;
    for more in ["", r#","page.cleaning_pace":"paced""#] {
        let config = ftl_config("page", 0.9, more);
        check_ftl(&flash, &config, Fill::Random, 3, 100_000);
    }
}

/// The test requests more free blocks than the data leaves: background cleaning must still end,
/// because a device finishes its work after the last request.
#[test]
fn background_cleaning_comes_to_an_end() {
    for policy in POLICIES {
        let more = format!(r#","cleaning":"{policy}","free_blocks_background":0.9"#);
        let (flash, config) = (small_flash(1, 2, 24, 8), ftl_config("page", 0.5, &more));
        let geometry = flash.geometry().unwrap();
        let facts = FtlFacts { geometry, flash: &flash, config: &config, seed: 1 };
        let mut ftl = build(&facts).unwrap();
        ftl.precondition(&Precondition::default(), 1, &mut PrepareWatch::new(&mut |_| true))
            .unwrap();
        let mut out = Vec::new();
        for plane in 0..2 {
            let calls = (0..10_000).take_while(|_| ftl.background(plane, &mut out)).count();
            assert!(calls < 1_000, "{policy}: {calls} calls");
        }
    }
}
