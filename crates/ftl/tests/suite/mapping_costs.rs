//! The costs of the FTLs other than the page map, where they are known: sequential and random
//! overwrites, look-ups and write-backs of the mapping table, RAM, and the steady state after
//! preconditioning.

use ssdyno_engine::Rng;
use ssdyno_engine::events::FlashCause;
use ssdyno_flash::{FlashConfig, FlashOp, OpKind};
use ssdyno_ftl::conformance::{ftl_config, small_flash};
use ssdyno_ftl::{Fill, Ftl, FtlFacts, Plane, Precondition, PrepareWatch, build};

const BLOCK_FTLS: [&str; 3] = ["block", "bast", "fast"];

fn device(flash: &FlashConfig, name: &str, spare: f64, more: &str, fill: Fill) -> Box<dyn Ftl> {
    let geometry = flash.geometry().unwrap();
    let config = ftl_config(name, spare, more);
    let mut ftl = build(&FtlFacts { geometry, flash, config: &config, seed: 1 }).unwrap();
    ftl.precondition(
        &Precondition { fill, ..Precondition::default() },
        1,
        &mut PrepareWatch::new(&mut |_| true),
    )
    .unwrap();
    ftl
}

fn write(ftl: &mut dyn Ftl, page: u32) -> Vec<FlashOp> {
    let mut out = Vec::new();
    ftl.write(page, Plane::Any, &mut out).unwrap();
    out
}

fn count(ops: &[FlashOp], kind: OpKind) -> usize {
    ops.iter().filter(|op| op.kind == kind).count()
}

#[test]
fn sequential_overwrites_copy_nothing() {
    for name in BLOCK_FTLS {
        let mut ftl = device(&small_flash(2, 2, 64, 16), name, 0.28, "", Fill::Sequential);
        let mut ops = Vec::new();
        for turn in 0..3 {
            for page in 0..ftl.logical_pages() {
                ops.extend(write(ftl.as_mut(), page));
            }
            // Only a last logical block that the device cuts short cannot become full.
            let most = 4 * 16 * turn;
            assert!(count(&ops, OpKind::Copy) <= most, "{name}: {}", count(&ops, OpKind::Copy));
        }
        let whole_blocks = ftl.logical_pages() as usize / 64 * 4;
        assert!(count(&ops, OpKind::Erase) >= 2 * whole_blocks, "{name} kept its garbage");
    }
}

/// A device of one plane with blocks of 8 pages that was filled in order.
fn one_plane(name: &str) -> Box<dyn Ftl> {
    let logs =
        if name == "block" { String::new() } else { format!(r#","{name}.log_blocks":0.05"#) };
    device(&small_flash(1, 1, 64, 8), name, 0.28, &logs, Fill::Sequential)
}

#[test]
fn block_map_copies_around_an_overwrite() {
    let mut ftl = one_plane("block");
    // Three pages before; the four after follow when the write goes backwards.
    let ops = write(ftl.as_mut(), 8 + 3);
    assert_eq!((count(&ops, OpKind::Copy), count(&ops, OpKind::Program)), (3, 1));
    let ops = write(ftl.as_mut(), 8 + 4);
    assert_eq!((count(&ops, OpKind::Copy), count(&ops, OpKind::Program)), (0, 1), "continues");
    let ops = write(ftl.as_mut(), 8 + 1);
    assert_eq!((count(&ops, OpKind::Copy), count(&ops, OpKind::Erase)), (3 + 1, 1));
}

#[test]
fn bast_merges_switches_and_logs() {
    let mut ftl = one_plane("bast");
    // A log takes eight pages in any order, without a copy …
    for offset in [5, 5, 2, 7, 0, 1, 3, 4] {
        assert_eq!(write(ftl.as_mut(), 8 + offset).len(), 1);
    }
    // … the ninth merges all in a fresh block, frees log and data block, and opens a log.
    let ops = write(ftl.as_mut(), 8 + 6);
    assert_eq!((count(&ops, OpKind::Copy), count(&ops, OpKind::Erase)), (8, 2));
    // In order from the start: the log becomes the data block.
    let mut ops = Vec::new();
    for offset in 0..8 {
        ops.extend(write(ftl.as_mut(), 16 + offset));
    }
    assert_eq!((count(&ops, OpKind::Copy), count(&ops, OpKind::Erase)), (0, 1));
    // 5 % of 64 are three logs. The fourth merges the least recently written, that of block 1,
    // fully; the next that of block 3, whose two pages are in order, partially.
    for page in [24, 25, 32] {
        assert_eq!(write(ftl.as_mut(), page).len(), 1);
    }
    let ops = write(ftl.as_mut(), 40);
    assert_eq!((count(&ops, OpKind::Copy), count(&ops, OpKind::Erase)), (8, 2));
    let ops = write(ftl.as_mut(), 48);
    assert_eq!((count(&ops, OpKind::Copy), count(&ops, OpKind::Erase)), (6, 1));
}

#[test]
fn fast_shares_logs_and_merges_what_the_oldest_holds() {
    let mut ftl = one_plane("fast");
    // Two random logs take sixteen pages of anybody: twelve of eight blocks, four of one.
    let mut pages: Vec<u32> = (1..9).map(|block| block * 8 + 3).collect();
    pages.extend([75, 76, 77, 78, 75, 76, 77, 78]);
    for page in pages {
        assert_eq!(write(ftl.as_mut(), page).len(), 1);
    }
    // The oldest holds a page each of eight blocks: eight full merges.
    let ops = write(ftl.as_mut(), 81 + 8);
    assert_eq!((count(&ops, OpKind::Copy), count(&ops, OpKind::Erase)), (64, 9));
    // The next holds four valid pages of one block only.
    for offset in 1..8 {
        assert_eq!(write(ftl.as_mut(), 96 + offset).len(), 1);
    }
    let ops = write(ftl.as_mut(), 104 + 1);
    assert_eq!((count(&ops, OpKind::Copy), count(&ops, OpKind::Erase)), (8, 2));
    // A sequential log that another follows is merged with the rest of its data block.
    for offset in 0..3 {
        assert_eq!(write(ftl.as_mut(), 160 + offset).len(), 1);
    }
    let ops = write(ftl.as_mut(), 168);
    assert_eq!((count(&ops, OpKind::Copy), count(&ops, OpKind::Erase)), (5, 1));
}

/// A DFTL with 128 entries a translation page and a cache of 16 entries.
fn dftl(fill: Fill) -> Box<dyn Ftl> {
    let mut flash = small_flash(1, 2, 64, 16);
    flash.page_size.0 = 512;
    device(&flash, "dftl", 0.28, r#","dftl.mapping_cache":"128B""#, fill)
}

#[test]
fn dftl_reads_its_table_on_a_miss_only() {
    let mut ftl = dftl(Fill::Sequential);
    let mut ops = Vec::new();
    assert!(ftl.read(300, &mut ops));
    let seen: Vec<_> = ops.iter().map(|op| (op.kind, op.cause, op.after_mapping)).collect();
    assert_eq!(
        seen,
        [(OpKind::Read, FlashCause::Mapping, false), (OpKind::Read, FlashCause::Host, true)]
    );
    ops.clear();
    assert!(ftl.read(300, &mut ops));
    assert_eq!(ops.len(), 1);
    assert!(!ops[0].after_mapping);
}

#[test]
fn dftl_writes_back_in_batches() {
    let mut ftl = dftl(Fill::Sequential);
    // Sixteen dirty entries of one translation page fill the cache. The first eviction writes back
    // all of them, so the next fifteen evictions cost nothing.
    for page in 0..16 {
        write(ftl.as_mut(), page);
    }
    let mut mapping_programs = Vec::new();
    for page in 256..272 {
        let mut ops = Vec::new();
        ftl.read(page, &mut ops);
        let programs =
            |op: &&FlashOp| op.kind == OpKind::Program && op.cause == FlashCause::Mapping;
        mapping_programs.push(ops.iter().filter(programs).count());
    }
    assert_eq!(mapping_programs[0], 1);
    assert_eq!(mapping_programs[1..], [0; 15]);
    let mut ops = Vec::new();
    write(ftl.as_mut(), 5);
    ftl.flush(&mut ops);
    assert_eq!(count(&ops, OpKind::Program), 1, "one dirty translation page");
    ops.clear();
    ftl.flush(&mut ops);
    assert!(ops.is_empty(), "all is durable already");
}

#[test]
fn dftl_pays_for_entries_that_cleaning_changed() {
    let mut ftl = dftl(Fill::Random);
    let pages = ftl.logical_pages();
    let mut rng = Rng::new(2, "cleaning");
    let (mut rewrites, mut data_cleanings) = (0, 0);
    for _ in 0..4 * pages {
        let ops = write(ftl.as_mut(), rng.below(u64::from(pages)) as u32);
        let cleaning: Vec<_> =
            ops.iter().filter(|op| op.cause.follows_cleaning()).copied().collect();
        rewrites += count(&cleaning, OpKind::Program);
        data_cleanings += count(&cleaning, OpKind::Copy) / 16;
    }
    // The survivors of a block belong to many translation pages, and nearly none of these is
    // cached.
    assert!(data_cleanings > 100 && rewrites > data_cleanings, "{rewrites} of {data_cleanings}");
}

#[test]
fn maps_need_the_ram_that_the_papers_promise() {
    let flash = small_flash(2, 2, 64, 16);
    let ram = |name, more| {
        let ftl = device(&flash, name, 0.28, more, Fill::Empty);
        (ftl.map_ram_bytes(), u64::from(ftl.logical_pages()))
    };
    let (page, pages) = ram("page", "");
    assert_eq!(page, 4 * pages);
    let (dftl, _) = ram("dftl", "");
    // 1/32 of the table, whole entries, and the directory of four translation pages.
    assert_eq!(dftl, pages * 4 / 32 / 8 * 8 + pages.div_ceil(1024) * 4);
    for name in BLOCK_FTLS {
        let (bytes, _) = ram(name, "");
        assert!(bytes * 2 < page, "{name}: {bytes} B against {page} B");
    }
}

#[test]
fn random_fill_is_the_steady_state() {
    for name in ["dftl", "block", "bast", "fast"] {
        let mut ftl = device(&small_flash(2, 2, 128, 32), name, 0.28, "", Fill::Random);
        let pages = ftl.logical_pages();
        let mut rng = Rng::new(9, "steady");
        let mut cost = |writes: u32| {
            let mut ops = 0;
            for _ in 0..writes {
                let out = write(ftl.as_mut(), rng.below(u64::from(pages)) as u32);
                ops += out.len() - count(&out, OpKind::Read);
            }
            ops as f64 / f64::from(writes)
        };
        let first = cost(pages / 2);
        cost(2 * pages);
        let later = cost(pages);
        println!("{name}: {first:.3} programs, copies and erases a write, later {later:.3}");
        assert!((first / later - 1.0).abs() < 0.03, "{name}: {first} at first, then {later}");
    }
}

#[test]
#[ignore = "a stopwatch: run it in the release profile"]
fn preconditioning_four_million_pages_takes_seconds_at_most() {
    let mut flash = small_flash(8, 2, 1024, 256);
    flash.page_size.0 = 4096;
    for name in ["page", "dftl", "block", "bast", "fast"] {
        for fill in [Fill::Sequential, Fill::Random] {
            let start = std::time::Instant::now();
            drop(device(&flash, name, 0.28, "", fill));
            let taken = start.elapsed();
            println!("{name} {fill:?}: {taken:?}");
            assert!(taken.as_secs() < 10, "{name} {fill:?}: {taken:?}");
        }
    }
}
