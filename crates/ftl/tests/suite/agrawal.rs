//! The FTL of Agrawal et al. against the suite, and against the counts of the simulator runs behind
//! the tables of S3.

use proptest::prelude::*;
use ssdyno_block::ConfigError;
use ssdyno_engine::events::FlashCause;
use ssdyno_flash::{FlashConfig, FlashOp, OpKind};
use ssdyno_ftl::conformance::{check_ftl, ftl_config, small_flash};
use ssdyno_ftl::{Fill, Ftl, FtlConfig, FtlFacts, Plane, Precondition, PrepareWatch, build};

fn build_on(flash: &FlashConfig, config: &FtlConfig) -> Result<Box<dyn Ftl>, ConfigError> {
    build(&FtlFacts { geometry: flash.geometry()?, flash, config, seed: 1 })
}

#[test]
fn passes_the_suite() {
    for summary_pages in [0, 1, 2] {
        let config = ftl_config("agrawal", 1.2, &format!(r#","summary_pages":{summary_pages}"#));
        for fill in [Fill::Empty, Fill::Sequential, Fill::Random] {
            for seed in 0..4 {
                check_ftl(&small_flash(2, 2, 24, 8), &config, fill, seed, 5_000);
                check_ftl(&small_flash(3, 1, 24, 5), &config, fill, seed, 5_000);
            }
        }
    }
}

#[test]
fn dies_of_a_chip_are_packages_of_their_own() {
    let mut flash = small_flash(2, 2, 24, 8);
    flash.dies_per_chip = 2;
    flash.chips_per_channel = 2;
    let config = ftl_config("agrawal", 1.0, r#","summary_pages":1"#);
    check_ftl(&flash, &config, Fill::Random, 7, 8_000);
    let mut ftl = build_on(&flash, &config).unwrap();
    ftl.precondition(
        &Precondition { fill: Fill::Sequential, ..Precondition::default() },
        1,
        &mut PrepareWatch::new(&mut |_| true),
    )
    .unwrap();
    // Consecutive pages: the channel changes fastest.
    let geometry = flash.geometry().unwrap();
    let die = |page| {
        geometry.die_of_plane(
            geometry.block_of_page(ftl.locate(page).unwrap()) / geometry.blocks_per_plane,
        )
    };
    assert_eq!((0..9).map(die).collect::<Vec<_>>(), [0, 4, 1, 5, 2, 6, 3, 7, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn tiny_full_devices_never_abort(
        blocks in 4u32..24,
        pages in 1u32..9,
        planes in 1u32..5,
        channels in 1u32..4,
        spare in 0.0f64..3.0,
        low in 0.0f64..0.3,
        summary in 0u32..2,
        sequential in any::<bool>(),
        seed: u64,
    ) {
        let more = format!(r#","summary_pages":{summary},"free_blocks_low":{low}"#);
        let config = ftl_config("agrawal", spare, &more);
        let flash = small_flash(channels, planes, blocks, pages);
        let fill = if sequential { Fill::Sequential } else { Fill::Random };
        // A flash that cannot hold its data is refused; all other flashes must work.
        if build_on(&flash, &config).is_ok() {
            check_ftl(&flash, &config, fill, seed, 800);
        }
    }
}

#[test]
fn wears_out_to_read_only_and_still_reads() {
    let mut flash = small_flash(1, 2, 24, 8);
    flash.endurance_cycles = Some(20);
    flash.endurance_spread = 0.2;
    flash.factory_bad = 0.05;
    let config = ftl_config("agrawal", 1.2, r#","summary_pages":1"#);
    check_ftl(&flash, &config, Fill::Random, 3, 200_000);
}

#[test]
fn policies_it_does_not_have_are_refused_by_key() {
    let cases = [
        (r#","cleaning":"fifo""#, "ftl.cleaning"),
        (r#","hot_cold":"survivors""#, "ftl.hot_cold"),
        (r#","wear_levelling":"static""#, "ftl.wear_levelling"),
        (r#","free_blocks_background":0.2"#, "ftl.free_blocks_background"),
        (r#","free_blocks_low":0.9"#, "ftl.over_provisioning"),
    ];
    for (more, key) in cases {
        let config = ftl_config("agrawal", 1.0, more);
        let error = build_on(&small_flash(1, 1, 24, 8), &config).unwrap_err();
        assert_eq!(error.key, key, "{error}");
    }
}

/// The same 48-bit generator as POSIX `drand48`.
struct Drand48(u64);

impl Drand48 {
    fn seeded(seed: u64) -> Drand48 {
        Drand48(seed << 16 | 0x330E)
    }
    fn next(&mut self) -> f64 {
        self.0 = (self.0.wrapping_mul(0x5_DEEC_E66D) + 0xB) & ((1 << 48) - 1);
        self.0 as f64 / (1u64 << 48) as f64
    }
}

/// The synthetic writes of S3-25 without their times: page and number of pages of each request.
struct Writes {
    numbers: Drand48,
    sequential: bool,
    page: u32,
    pages: u32,
    first: bool,
}

const SPACE_PAGES: u32 = 7_018_904 / 8;

impl Writes {
    fn new(sequential: bool) -> Writes {
        Writes { numbers: Drand48::seeded(42), sequential, page: 0, pages: 0, first: true }
    }

    fn anew(&mut self) {
        self.numbers.next();
        self.numbers.next();
        loop {
            self.page = (self.numbers.next() * f64::from(SPACE_PAGES)) as u32;
            let sectors = (-8.0 * (1.0 - self.numbers.next()).ln()) as u32;
            self.pages = sectors.div_ceil(8);
            if self.pages > 0 && self.page + self.pages < SPACE_PAGES {
                break;
            }
        }
        self.numbers.next();
        self.numbers.next();
    }

    fn next(&mut self) -> std::ops::Range<u32> {
        if self.first {
            self.first = false;
            self.anew();
            self.numbers = Drand48::seeded(1_000_003);
        } else {
            self.numbers.next();
            if self.sequential && self.page + 2 * self.pages < SPACE_PAGES {
                self.page += self.pages;
                self.numbers.next();
                self.numbers.next();
            } else {
                self.anew();
            }
        }
        self.page..self.page + self.pages
    }
}

#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Counts {
    pieces: u64,
    cleans: u64,
    moved: u64,
    summaries: u64,
}

/// Replays the synthetic writes, all but the last, as the original run ends at its arrival. With what
/// was counted when the first `early` were done.
fn replay(sequential: bool, early: u32, requests: u32) -> (Counts, Counts) {
    let flash = FlashConfig { pages_per_block: 64, ..small_flash(8, 8, 2048, 64) };
    // 1741 of 2048 blocks with 63 of 64 pages hold data (S3-26).
    let over_provisioning = 8_388_608.0 / 7_019_712.0 - 1.0;
    let config = ftl_config("agrawal", over_provisioning, r#","summary_pages":1"#);
    let mut ftl = build_on(&flash, &config).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ftl.logical_pages(), 7_019_712);
    let full = Precondition { fill: Fill::Sequential, ..Precondition::default() };
    ftl.precondition(&full, 1, &mut PrepareWatch::new(&mut |_| true))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut writes = Writes::new(sequential);
    let (mut counts, mut at_early) = (Counts::default(), Counts::default());
    let mut out: Vec<FlashOp> = Vec::new();
    for done in 1..requests {
        if done == early {
            at_early = counts;
        }
        for page in writes.next() {
            out.clear();
            assert_eq!(ftl.write(page, Plane::Any, &mut out), Ok(()));
            counts.pieces += 1;
            for op in &out {
                match op.kind {
                    OpKind::Erase => counts.cleans += 1,
                    OpKind::Copy => counts.moved += 1,
                    OpKind::Program if op.sector_only => counts.summaries += 1,
                    OpKind::Program => assert_eq!(op.cause, FlashCause::Host),
                    OpKind::Read => {}
                }
            }
        }
    }
    (at_early, counts)
}

#[test]
fn short_runs_clean_nothing() {
    let sequential = Counts { pieces: 249_999, summaries: 3968, ..Counts::default() };
    assert_eq!(replay(true, 0, 250_000).1, sequential);
    let random = Counts { pieces: 395_130, summaries: 6232, ..Counts::default() };
    assert_eq!(replay(false, 0, 250_000).1, random);
}

#[test]
fn five_million_sequential_writes_clean_as_the_original() {
    let expected = Counts { pieces: 5_704_304, cleans: 77_493, moved: 0, summaries: 90_543 };
    assert_eq!(replay(true, 0, 5_000_000).1, expected);
}

#[test]
fn five_million_random_writes_clean_as_the_original() {
    let expected =
        Counts { pieces: 7_913_348, cleans: 143_179, moved: 1_929_239, summaries: 156_227 };
    let (full, all) = replay(false, 3_500_000, 5_000_000);
    assert_eq!(all, expected);
    // Once the pool is full: the closed form of cleaning with a tenth of all pages to spare, over
    // the pages that are written at all (S3-45).
    let amplification = 1.0 + (all.moved - full.moved) as f64 / (all.pieces - full.pieces) as f64;
    let used = f64::from(SPACE_PAGES);
    let spare = 0.1 * 8_388_608.0;
    let form = ssdyno_ftl::closed_forms::fifo((used + spare) / used).unwrap();
    assert!((form - 1.2748).abs() < 1e-4, "{form}");
    assert!((amplification / form - 1.0).abs() < 0.01, "{amplification} instead of {form}");
}
