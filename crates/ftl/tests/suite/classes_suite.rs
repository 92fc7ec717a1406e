//! Pools for classes of pages against the suite of every FTL, and what happens to their blocks.

use proptest::prelude::*;
use ssdyno_block::ConfigError;
use ssdyno_engine::Rng;
use ssdyno_flash::FlashConfig;
use ssdyno_ftl::conformance::{check_ftl, ftl_config, small_flash};
use ssdyno_ftl::{
    Fill, Ftl, FtlConfig, FtlFacts, PageClass, Plane, Precondition, PrepareWatch, build,
};

const POLICIES: [&str; 6] = ["greedy", "fifo", "random", "d-choices", "cost-benefit", "windowed"];
const FILLS: [Fill; 3] = [Fill::Empty, Fill::Sequential, Fill::Random];
const TWO: &str = r#"[{"space":0.25,"writes":0.8},{"space":0.75,"writes":0.2}]"#;
const THREE: &str =
    r#"[{"space":0.1,"spare":0.5},{"space":0.3,"spare":0.3},{"space":0.6,"spare":0.2}]"#;

fn with_classes(over_provisioning: f64, classes: &str, more: &str) -> FtlConfig {
    let more = format!(r#","hot_cold":"classes","page.classes":{classes}{more}"#);
    ftl_config("page", over_provisioning, &more)
}

fn made(flash: &FlashConfig, config: &FtlConfig, seed: u64) -> Result<Box<dyn Ftl>, ConfigError> {
    let geometry = flash.geometry().unwrap();
    build(&FtlFacts { geometry, flash, config, seed })
}

fn filled(flash: &FlashConfig, config: &FtlConfig) -> Box<dyn Ftl> {
    let mut ftl = made(flash, config, 1).unwrap();
    ftl.precondition(&Precondition::default(), 1, &mut PrepareWatch::new(&mut |_| true)).unwrap();
    ftl
}

#[test]
fn pass_the_suite_with_every_option() {
    for policy in POLICIES {
        for placement in ["static", "round-robin", "most-free", "least-busy"] {
            for (classes, wear) in [(TWO, "off"), (THREE, "static"), (TWO, "dynamic")] {
                for pace in ["whole", "paced"] {
                    let more = format!(
                        r#","cleaning":"{policy}","placement":"{placement}","page.cleaning_pace":"{pace}",
                        "free_blocks_background":0.2,"summary_pages":1,"wear_levelling":"{wear}",
                        "wear_threshold":3"#
                    );
                    let config = with_classes(0.9, classes, &more);
                    for fill in FILLS {
                        check_ftl(&small_flash(2, 2, 32, 8), &config, fill, 1, 2_000);
                    }
                }
            }
        }
    }
}

fn error(classes: &str, more: &str) -> ConfigError {
    made(&small_flash(1, 2, 32, 8), &with_classes(0.9, classes, more), 1).unwrap_err()
}

#[test]
fn what_cannot_be_is_refused_by_key() {
    for (classes, problem) in [
        ("[]", "0 entries"),
        (r#"[{"space":1.0,"writes":1.0}]"#, "1 entries"),
        (
            r#"[{"space":0.5,"writes":0.5},{"space":0.4,"writes":0.5}]"#,
            "`space` of all classes adds up to 0.9",
        ),
        (
            r#"[{"space":0.5,"writes":0.5},{"space":0.5,"writes":0.6}]"#,
            "`writes` of all classes adds up to 1.1",
        ),
        (
            r#"[{"space":0.5,"spare":0.5},{"space":0.5,"spare":0.1}]"#,
            "`spare` of all classes adds up to 0.6",
        ),
        (r#"[{"space":0.5,"writes":1.0},{"space":0.5}]"#, "`writes` is in 1 of 2"),
        (r#"[{"space":0.5},{"space":0.5}]"#, "are missing"),
        (
            r#"[{"space":0.0,"writes":0.5},{"space":1.0,"writes":0.5}]"#,
            "`space` = 0 is not a share",
        ),
        (
            r#"[{"space":1.5,"writes":0.5},{"space":-0.5,"writes":0.5}]"#,
            "`space` = 1.5 is not a share",
        ),
    ] {
        let error = error(classes, "");
        assert_eq!(error.key, "ftl.page.classes", "{error:?}");
        assert!(error.problem.contains(problem), "{error:?}, not {problem}");
    }
    let nine = format!(
        "[{}]",
        [r#"{"space":0.1111111111111111,"spare":0.1111111111111111}"#; 9].join(",")
    );
    assert!(error(&nine, "").problem.contains("9 entries"));
    // A setting that changes nothing would be taken for one that does.
    let config = FtlConfig { hot_cold: Default::default(), ..with_classes(0.9, TWO, "") };
    for name in ssdyno_ftl::names() {
        let config = FtlConfig { name: name.into(), ..config.clone() };
        let error = made(&small_flash(1, 2, 32, 8), &config, 1).unwrap_err();
        assert_eq!(error.key, "ftl.page.classes", "{name}: {error:?}");
    }
    for name in ssdyno_ftl::names().filter(|name| *name != "page") {
        let mut config = FtlConfig { name: name.into(), ..with_classes(0.9, TWO, "") };
        config.page = Default::default();
        let error = made(&small_flash(1, 2, 32, 8), &config, 1).unwrap_err();
        assert_eq!(error.key, "ftl.hot_cold", "{name}: {error:?}");
    }
    assert_eq!(error(TWO, r#","free_blocks_low":1.5"#).key, "ftl.free_blocks_low");
    assert_eq!(error(TWO, r#","summary_pages":8"#).key, "ftl.summary_pages");
}

/// The number after "at least " that `error` names for over-provisioning.
fn least(error: &ConfigError) -> Option<f64> {
    let (_, rest) = error.help.split_once("ftl.over_provisioning to at least ")?;
    rest.split([',', ' ']).next()?.parse().ok()
}

/// Shares of any sizes that add up to 1.
fn shares(parts: &[u32]) -> Vec<f64> {
    let all: u32 = parts.iter().sum();
    parts.iter().map(|part| f64::from(*part) / f64::from(all)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    /// Few blocks, full to the brim, bad from the factory and wearing out: refused with a number that
    /// works, or never failing.
    #[test]
    fn tiny_full_devices_never_abort(
        (blocks, pages, planes, channels) in (6u32..40, 1u32..9, 1u32..4, 1u32..4),
        spare in 0.0f64..3.0,
        parts in prop::collection::vec((1u32..100, 0u32..100, 0u32..100), 2..=8),
        given: bool,
        policy in prop::sample::select(POLICIES.to_vec()),
        placement in prop::sample::select(vec!["static", "round-robin", "most-free", "least-busy"]),
        (paced, background) in (any::<bool>(), prop::sample::select(vec![0.0, 0.3])),
        wear in prop::sample::select(vec!["off", "dynamic", "static"]),
        (low, bad) in (0.0f64..0.2, prop::sample::select(vec![0.0, 0.0, 0.1])),
        endurance in prop::sample::select(vec![None, None, Some(12)]),
        fill in prop::sample::select(FILLS.to_vec()),
        seed: u64,
    ) {
        let pace = if paced { "paced" } else { "whole" };
        let more = format!(
            r#","cleaning":"{policy}","placement":"{placement}","page.cleaning_pace":"{pace}",
            "free_blocks_background":{background},"wear_levelling":"{wear}","wear_threshold":2,
            "free_blocks_low":{low}"#
        );
        let mut config = with_classes(spare, TWO, &more);
        let all = |part: fn(&(u32, u32, u32)) -> u32| {
            let mut parts: Vec<u32> = parts.iter().map(part).collect();
            parts[0] += 1;
            shares(&parts)
        };
        let classes = all(|p| p.0).into_iter().zip(all(|p| p.1)).zip(all(|p| p.2));
        config.page.classes = classes
            .map(|((space, writes), spare)| PageClass {
                space,
                writes: Some(writes),
                spare: given.then_some(spare),
            })
            .collect();
        let mut flash = small_flash(channels, planes, blocks, pages);
        flash.factory_bad = bad;
        flash.endurance_cycles = endurance;
        flash.endurance_spread = 0.2;
        if let Err(error) = made(&flash, &config, seed) {
            prop_assert_eq!(&error.key, "ftl.over_provisioning");
            let Some(enough) = least(&error) else {
                prop_assert!(error.help.contains("flash.blocks_per_plane"), "{error:?}");
                return Ok(());
            };
            config.over_provisioning = enough;
            let built = made(&flash, &config, seed);
            prop_assert!(built.is_ok(), "{error:?} {} then {built:?}", error.help);
        }
        check_ftl(&flash, &config, fill, seed, 1_500);
    }
}

/// Writes pages of class 0 until the device is read-only, at most `most` times; how many it took.
fn wear_out(ftl: &mut dyn Ftl, most: u64, rng: &mut Rng) -> u64 {
    let hot = ftl.pools().first().map_or(ftl.logical_pages() / 4, |pool| pool.logical_pages);
    let mut out = Vec::new();
    (0..most)
        .take_while(|_| {
            out.clear();
            ftl.write(rng.below(u64::from(hot)) as u32, Plane::Any, &mut out).is_ok()
        })
        .count() as u64
}

/// Only the hot class is written. A worn-out block of one class is replaced from the spare blocks of the other, so the
/// device lives until both are used up, and wear is levelled over all blocks.
#[test]
fn blocks_of_all_classes_serve_the_one_that_wears_out() {
    for placement in ["static", "round-robin"] {
        let mut flash = small_flash(1, 4, 64, 16);
        flash.endurance_cycles = Some(30);
        flash.endurance_spread = 0.1;
        let worn = |wear: &str| {
            let more = format!(
                r#","wear_levelling":"{wear}","wear_threshold":4,"placement":"{placement}",
                "free_blocks_low":0"#
            );
            let config = with_classes(0.4, TWO, &more);
            let mut ftl = filled(&flash, &config);
            let writes = wear_out(&mut *ftl, u64::MAX, &mut Rng::new(1, "wear"));
            (writes, ftl.health())
        };
        let (off, health) = worn("off");
        let (level, level_health) = worn("static");
        println!("{placement}: {off} writes, {health:?}; levelled {level}, {level_health:?}");
        // Data fill 45.7 of the 64 blocks of each plane; 4 are in reserve, 2 open, and each class has a
        // page to gain. Without blocks of the other the hot class would end when 5 were bad.
        assert!(health.read_only && health.bad_blocks >= 4 * 6, "{health:?}");
        assert_eq!(health.erases_min, 0, "cold blocks stay where they are");
        // All blocks are worn, not only those of the hot class.
        assert!(level_health.erases_min >= 15, "{level_health:?}");
        assert!(level > 2 * off, "{level} writes levelled, {off} not");
    }
}

/// Only the hot class is written: the device becomes read-only when the other class has only the blocks that it needs,
/// and not before, also if many blocks go bad at once.
#[test]
fn no_class_keeps_spare_blocks_from_one_that_is_worn_out() {
    for seed in 0..200 {
        let mut flash = small_flash(1, 1, 40, 4);
        flash.endurance_cycles = Some(8);
        flash.endurance_spread = 0.3;
        let policy = POLICIES[seed as usize % 6];
        let pace = if seed % 4 < 2 { "whole" } else { "paced" };
        let more =
            format!(r#","cleaning":"{policy}","page.cleaning_pace":"{pace}","free_blocks_low":0"#);
        let mut ftl = made(&flash, &with_classes(0.5, TWO, &more), seed).unwrap();
        ftl.precondition(&Precondition::default(), seed, &mut PrepareWatch::new(&mut |_| true))
            .unwrap();
        wear_out(&mut *ftl, u64::MAX, &mut Rng::new(seed, "wear"));
        let pools = ftl.pools();
        // A reserve of two, one open, what the data fill, and one to gain.
        let needs = 2 + 1 + pools[1].logical_pages / 4 + 1;
        assert!(pools[1].blocks_least <= needs, "{policy} {pace} seed {seed}: {pools:?}");
    }
}

/// While the data last, the classes keep their shares of the blocks that are left.
#[test]
fn shares_are_kept_as_blocks_go_bad() {
    let mut flash = small_flash(1, 2, 128, 16);
    flash.endurance_cycles = Some(40);
    flash.endurance_spread = 0.2;
    let config = with_classes(0.6, TWO, r#","free_blocks_low":0"#);
    let mut ftl = filled(&flash, &config);
    let spare = |ftl: &dyn Ftl| -> Vec<f64> {
        let spare = |pool: &ssdyno_engine::Pool| {
            f64::from(pool.logical_pages) * (1.0 / pool.utilisation - 1.0) / 32.0
        };
        ftl.pools().iter().map(spare).collect()
    };
    let before = spare(&*ftl);
    let mut rng = Rng::new(1, "wear");
    let whole = before[0] + before[1];
    let mut seen = 0;
    for _ in 0..400 {
        wear_out(&mut *ftl, 500, &mut rng);
        let now = spare(&*ftl);
        let left = now[0] + now[1];
        if ftl.health().read_only || left < 8.0 {
            break;
        }
        seen = ftl.health().bad_blocks;
        // Half a block each way in each of two planes, and one that the giver must clean first.
        assert!((now[0] - before[0] * left / whole).abs() < 1.6, "{before:?} became {now:?}");
    }
    assert!(seen > 40, "only {seen} blocks went bad");
}

/// With static wear levelling the wear of a plane differs by little more than the threshold, whichever
/// class it comes from.
#[test]
fn wear_is_levelled_over_classes() {
    for pace in ["whole", "paced"] {
        let spread = |wear: &str| {
            let more = format!(
                r#","wear_levelling":"{wear}","wear_threshold":5,"page.cleaning_pace":"{pace}""#
            );
            let mut ftl = filled(&small_flash(1, 2, 64, 16), &with_classes(0.4, TWO, &more));
            wear_out(&mut *ftl, 100_000, &mut Rng::new(1, "wear"));
            let health = ftl.health();
            health.erases_max - health.erases_min
        };
        let (off, dynamic, level) = (spread("off"), spread("dynamic"), spread("static"));
        println!("{pace}: difference of erases {off}, dynamic {dynamic}, static {level}");
        assert!(level <= 5 + 3, "{level}");
        assert!(level * 4 < dynamic && dynamic <= off, "{off}, {dynamic}, {level}");
    }
}

/// Classes follow one another as the hot and the cold part of a workload do, and static placement
/// puts each page on the plane where it would be without classes.
#[test]
fn classes_are_ranges_and_placement_is_that_of_the_page() {
    let flash = small_flash(3, 2, 32, 8);
    let config =
        with_classes(0.9, r#"[{"space":0.17,"writes":0.5},{"space":0.83,"writes":0.5}]"#, "");
    let ftl = filled(&flash, &config);
    let pools = ftl.pools();
    assert_eq!(pools[0].logical_pages, (f64::from(ftl.logical_pages()) * 0.17).round() as u32);
    assert_eq!(pools.iter().map(|pool| pool.logical_pages).sum::<u32>(), ftl.logical_pages());
    let plain = filled(&flash, &ftl_config("page", 0.9, ""));
    let plane = |ftl: &dyn Ftl, page| ftl.locate(page).unwrap() / (32 * 8);
    for page in 0..ftl.logical_pages() {
        assert_eq!(plane(&*ftl, page), plane(&*plain, page), "page {page}");
    }
}

/// Part of the space filled: classes beyond it are empty.
#[test]
fn part_of_the_space_can_be_filled() {
    for fill in FILLS {
        for share in [0.0, 0.1, 0.25, 0.6, 1.0] {
            let (flash, config) = (small_flash(2, 2, 32, 8), with_classes(0.9, TWO, ""));
            let mut ftl = made(&flash, &config, 1).unwrap();
            ftl.precondition(
                &Precondition { fill, share, ..Precondition::default() },
                1,
                &mut PrepareWatch::new(&mut |_| true),
            )
            .unwrap();
            let share = if fill == Fill::Empty { 0.0 } else { share };
            let held = (f64::from(ftl.logical_pages()) * share) as u32;
            for page in 0..ftl.logical_pages() {
                assert_eq!(ftl.locate(page).is_some(), page < held, "{fill:?} {share} page {page}");
            }
        }
    }
}

/// The preparation reports its progress over all classes: it rises, and is about half-way in the
/// middle.
#[test]
fn progress_is_of_all_classes() {
    let mut shares = Vec::new();
    let mut ftl = made(&small_flash(2, 2, 512, 64), &with_classes(0.3, TWO, ""), 1).unwrap();
    let mut watcher = |share| {
        shares.push(share);
        true
    };
    ftl.precondition(&Precondition::default(), 1, &mut PrepareWatch::new(&mut watcher)).unwrap();
    assert!(shares.windows(2).all(|pair| pair[0] <= pair[1]));
    let middle = shares[shares.len() / 2];
    assert!((0.4..0.6).contains(&middle), "{middle} half-way");
    assert!(*shares.last().unwrap() > 0.9);
}

/// More free blocks are asked for than the data leave, in every class.
#[test]
fn background_cleaning_comes_to_an_end() {
    for policy in POLICIES {
        for wear in ["off", "static"] {
            let more = format!(
                r#","cleaning":"{policy}","free_blocks_background":0.9,"wear_levelling":"{wear}",
                "wear_threshold":1"#
            );
            let mut ftl = filled(&small_flash(1, 2, 32, 8), &with_classes(0.6, THREE, &more));
            let mut out = Vec::new();
            for plane in 0..2 {
                let calls = (0..10_000).take_while(|_| ftl.background(plane, &mut out)).count();
                assert!((1..1_000).contains(&calls), "{policy} {wear}: {calls} calls");
            }
        }
    }
}
