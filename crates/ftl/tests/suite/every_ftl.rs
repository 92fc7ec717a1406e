//! FTLs beyond the page map against the suite: every fill, tiny and worn devices.

use proptest::prelude::*;
use ssdyno_block::ConfigError;
use ssdyno_flash::FlashConfig;
use ssdyno_ftl::conformance::{check_erased, check_ftl, ftl_config, small_flash};
use ssdyno_ftl::{Fill, FtlConfig, FtlFacts, build};

const FTLS: [&str; 4] = ["dftl", "block", "bast", "fast"];
/// The FTLs that refuse a flash with bad blocks, like the example `ring_log`.
const WITHOUT_BAD_BLOCKS: [&str; 0] = [];
const FILLS: [Fill; 3] = [Fill::Empty, Fill::Sequential, Fill::Random];

fn builds(flash: &FlashConfig, config: &FtlConfig, seed: u64) -> Result<(), ConfigError> {
    let geometry = flash.geometry().unwrap();
    build(&FtlFacts { geometry, flash, config, seed }).map(|_| ())
}

#[test]
fn pass_the_suite() {
    for name in FTLS {
        for more in ["", r#","free_blocks_background":0.5,"wear_levelling":"dynamic""#] {
            for fill in FILLS {
                let config = ftl_config(name, 0.6, more);
                check_ftl(&small_flash(2, 2, 24, 8), &config, fill, 1, 6_000);
                let config = ftl_config(name, 0.4, more);
                check_ftl(&small_flash(1, 3, 40, 5), &config, fill, 2, 6_000);
            }
        }
    }
}

/// As after a sanitize operation: also where blocks go bad, with pools for classes and with every wear
/// levelling.
#[test]
fn a_device_that_was_erased_as_a_whole_keeps_its_wear() {
    let classes = r#","hot_cold":"classes","page.classes":[{"space":0.25,"writes":0.8},{"space":0.75,"writes":0.2}]"#;
    let of_pages = ["", classes].map(|more| ("page", more.to_owned()));
    let levelled = ["dynamic", "static"].map(|how| {
        [
            ("page", format!(r#","wear_levelling":"{how}""#)),
            ("page", format!(r#"{classes},"wear_levelling":"{how}""#)),
        ]
    });
    let others = FTLS.into_iter().chain(["agrawal"]).map(|name| (name, String::new()));
    for (name, more) in others.chain(of_pages).chain(levelled.into_iter().flatten()) {
        let config = ftl_config(name, 0.9, &more);
        for mortal in [false, true] {
            let mut flash = small_flash(2, 2, 24, 8);
            if mortal {
                (flash.endurance_cycles, flash.endurance_spread) = (Some(15), 0.2);
                flash.factory_bad = 0.05;
            }
            for seed in 1..4 {
                check_erased(&flash, &config, seed, 3_000);
            }
        }
    }
}

/// A setting that changes nothing would be taken for one that does.
#[test]
fn what_a_block_map_does_not_have_is_refused_by_key() {
    let cases = [
        (r#","cleaning":"fifo""#, "ftl.cleaning"),
        (r#","cleaning":"cost-benefit""#, "ftl.cleaning"),
        (r#","placement":"least-busy""#, "ftl.placement"),
        (r#","hot_cold":"survivors""#, "ftl.hot_cold"),
        (r#","page.cleaning_pace":"paced""#, "ftl.page.cleaning_pace"),
        (r#","wear_levelling":"static""#, "ftl.wear_levelling"),
        (r#","summary_pages":1"#, "ftl.summary_pages"),
    ];
    for name in ["block", "bast", "fast"] {
        for (more, key) in cases {
            let config = ftl_config(name, 0.6, more);
            let error = builds(&small_flash(2, 2, 24, 8), &config, 1).unwrap_err();
            assert_eq!(error.key, key, "{name}: {error}");
        }
    }
}

#[test]
fn dftl_passes_with_every_option_of_the_page_map() {
    for policy in ["greedy", "fifo", "random", "d-choices", "cost-benefit", "windowed"] {
        for placement in ["static", "round-robin", "most-free", "least-busy"] {
            for (cache, pages) in [("8B", 6), ("64B", 8), ("1KiB", 8)] {
                let more = format!(
                    r#","cleaning":"{policy}","placement":"{placement}","dftl.mapping_cache":"{cache}",
                    "free_blocks_background":0.2,"summary_pages":1,"hot_cold":"survivors",
                    "wear_levelling":"static","wear_threshold":3"#
                );
                let mut flash = small_flash(2, 2, 24, pages);
                // 128 entries a translation page.
                flash.page_size.0 = 512;
                for fill in FILLS {
                    check_ftl(&flash, &ftl_config("dftl", 0.9, &more), fill, 1, 2_000);
                }
            }
        }
    }
}

#[test]
fn wear_out_to_read_only_and_still_read() {
    for name in FTLS.into_iter().filter(|name| !WITHOUT_BAD_BLOCKS.contains(name)) {
        for (seed, fill) in [(3, Fill::Random), (4, Fill::Empty), (5, Fill::Sequential)] {
            let mut flash = small_flash(1, 2, 24, 8);
            flash.endurance_cycles = Some(20);
            flash.endurance_spread = 0.2;
            flash.factory_bad = 0.05;
            check_ftl(&flash, &ftl_config(name, 0.9, ""), fill, seed, 100_000);
        }
    }
}

/// The number after "at least " that `error` names for over-provisioning.
fn least(error: &ConfigError) -> Option<f64> {
    let (_, rest) = error.help.split_once("ftl.over_provisioning to at least ")?;
    rest.split([',', ' ']).next()?.parse().ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn tiny_full_devices_never_abort(
        name in prop::sample::select(FTLS.to_vec()),
        blocks in 4u32..24,
        pages in 1u32..9,
        planes in 1u32..4,
        channels in 1u32..4,
        spare in 0.0f64..3.0,
        log_blocks in 0.0f64..0.5,
        entries in 1u32..40,
        bad in prop::sample::select(vec![0.0, 0.1]),
        seed: u64,
    ) {
        let cache = entries * 8;
        let more = match name {
            "dftl" => format!(r#","dftl.mapping_cache":"{cache}B""#),
            "block" => String::new(),
            _ => format!(r#","{name}.log_blocks":{log_blocks}"#),
        };
        let mut flash = small_flash(channels, planes, blocks, pages);
        flash.page_size.0 = 512;
        flash.factory_bad = bad;
        let mut config = ftl_config(name, spare, &more);
        // A flash that cannot hold its data is refused with a value that would work; all other
        // flashes must work.
        if let Err(error) = builds(&flash, &config, seed) {
            prop_assert!(error.key.starts_with("ftl.") || error.key.starts_with("flash."));
            if bad > 0.0 && WITHOUT_BAD_BLOCKS.contains(&name) {
                return Ok(());
            }
            let Some(enough) = least(&error) else {
                prop_assert!(error.help.contains("flash.blocks_per_plane"), "{error:?}");
                return Ok(());
            };
            // Nor would much less do.
            config.over_provisioning = enough;
            let built = builds(&flash, &config, seed);
            prop_assert!(built.is_ok(), "{error:?} {} then {built:?}", error.help);
        }
        for fill in FILLS {
            check_ftl(&flash, &config, fill, seed, 600);
        }
    }
}
