//! The cost of a write in the simulator's FTLs as devices grow: nanoseconds of CPU time per page that the host writes.
//! It includes all the work of the FTL (map, cleaning, wear levelling), but neither flash nor clock.
//!
//! The first three columns keep the capacity at 16 GiB and increase the number of planes from 512 to 8192 blocks: they
//! show the cost of searches within a plane, and nothing else does. The last two are devices of 64 and 256 GiB, whose
//! maps no processor's cache holds. Each row is one FTL with one policy; the load is uniform random writes in the
//! steady state (capacity and pages of configuration A: 64 of 4 KiB).
//!
//! `cargo bench -p ssdyno-ftl --bench scale [-- FILTER] [--fingerprint]`; the fingerprint of all
//! operations shows that a faster search finds the same blocks.

use std::hash::Hasher;

use rustc_hash::FxHasher;
use ssdyno_engine::Rng;
use ssdyno_flash::FlashOp;
use ssdyno_ftl::conformance::{ftl_config, small_flash};
use ssdyno_ftl::{Ftl, FtlFacts, Plane, Precondition, PrepareWatch, build};

const PAGES_PER_BLOCK: u32 = 64;

/// (GiB, blocks per plane).
const SIZES: [(u32, u32); 5] = [(16, 512), (16, 2048), (16, 8192), (64, 8192), (256, 8192)];

const POLICIES: [&str; 6] = ["greedy", "fifo", "random", "d-choices", "cost-benefit", "windowed"];

/// (name of the row, FTL, further keys of `[ftl]`).
fn cases() -> Vec<(String, &'static str, String)> {
    let mut all = Vec::new();
    for ftl in ["page", "dftl"] {
        for policy in POLICIES {
            all.push((format!("{ftl} {policy}"), ftl, format!(r#","cleaning":"{policy}""#)));
        }
    }
    for policy in ["greedy", "cost-benefit"] {
        for wear in ["dynamic", "static"] {
            let more = format!(r#","cleaning":"{policy}","wear_levelling":"{wear}""#);
            all.push((format!("page {policy} {wear}"), "page", more));
        }
    }
    for ftl in ["block", "bast", "fast"] {
        for wear in ["off", "dynamic"] {
            let more = format!(r#","wear_levelling":"{wear}""#);
            all.push((format!("{ftl} {wear}"), ftl, more));
        }
    }
    all.push(("agrawal".into(), "agrawal", r#","summary_pages":1"#.into()));
    all
}

fn device(ftl: &str, more: &str, (gib, blocks): (u32, u32)) -> Result<Box<dyn Ftl>, String> {
    let planes = gib * 262_144 / PAGES_PER_BLOCK / blocks;
    let planes_per_die = planes.min(4);
    let mut flash = small_flash(planes / planes_per_die, planes_per_die, blocks, PAGES_PER_BLOCK);
    flash.page_size.0 = 4096;
    let config = ftl_config(ftl, 0.28, more);
    let geometry = flash.geometry().map_err(|error| error.to_string())?;
    let facts = FtlFacts { geometry, flash: &flash, config: &config, seed: 1 };
    let mut ftl = build(&facts).map_err(|error| error.to_string())?;
    ftl.precondition(&Precondition::default(), 1, &mut PrepareWatch::new(&mut |_| true))
        .map_err(|error| error.to_string())?;
    Ok(ftl)
}

/// Writes `count` random pages; the fingerprint of all operations.
fn write(ftl: &mut dyn Ftl, count: u32, rng: &mut Rng, out: &mut Vec<FlashOp>) -> u64 {
    let pages = u64::from(ftl.logical_pages());
    let mut all = FxHasher::default();
    for _ in 0..count {
        out.clear();
        if ftl.write(rng.below(pages) as u32, Plane::Any, out).is_err() {
            return 0;
        }
        for op in out.iter() {
            all.write_u64(u64::from(op.page) << 32 | u64::from(op.to) ^ u64::from(op.plane));
        }
    }
    all.finish()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    let fingerprint = arguments.iter().any(|argument| argument == "--fingerprint");
    print!("{:26}", "CPU ns for a page written");
    for (gib, blocks) in SIZES {
        print!(" {:>14}", format!("{gib}G/{blocks}"));
    }
    println!();
    for (name, ftl, more) in cases() {
        if filter.is_some_and(|filter| !name.contains(filter.as_str())) {
            continue;
        }
        print!("{name:26}");
        for size in SIZES {
            let cell = match device(ftl, &more, size) {
                Ok(mut device) => measure(&mut *device, ftl, fingerprint),
                Err(error) => panic!("{name}: {error}"),
            };
            print!(" {cell:>14}");
        }
        println!();
    }
}

/// The median of seven measurements.
fn measure(ftl: &mut dyn Ftl, name: &str, fingerprint: bool) -> String {
    // Maps of blocks copy whole blocks for every page.
    let count = if matches!(name, "page" | "dftl" | "agrawal") { 100_000 } else { 4_000 };
    let mut rng = Rng::new(7, "scale");
    let mut out = Vec::new();
    let mut prints = 0;
    let mut times = [0.0; 7];
    for time in &mut times {
        let start = cpu_time::ThreadTime::now();
        prints ^= write(ftl, count, &mut rng, &mut out);
        *time = start.elapsed().as_secs_f64() * 1e9 / f64::from(count);
    }
    times.sort_by(f64::total_cmp);
    let time = format!("{:.0}", times[3]);
    if fingerprint { format!("{:07x}:{time}", prints >> 36) } else { time }
}
