//! Where the FTL chooses the plane of a write, planes share the work, and cleaning costs no more than
//! they have room for.
//!
//! A placement that prefers some planes fills those and drains the others. Then write amplification
//! is that of the fullest planes, while latency and rate look like those of a busy device. Two
//! invariants tell:
//!
//! * **placement**: planes that are written in turn get about the same number of pages, and wear alike.
//! * **cleaning**: a victim that is no worse than the average block has the share *u* of its pages
//!   valid that its plane has; then each page written costs 1/(1 - u) programs at most. That holds for
//!   the greedy policy whatever the load, for FIFO over each turn through the blocks, and for random
//!   victims on average. Where planes are treated alike, the emptiest of them gives u.

use ssdyno_device::FlashReport;
use ssdyno_engine::PlaneUse;
use ssdyno_figures::Invariant;
use ssdyno_ftl::{Cleaning, FtlConfig, Placement, WearLevelling};
use ssdyno_workload::Source;

/// How many times as many pages one plane may get as another: far from what turns give, and from what
/// starving planes get.
const TIMES: f64 = 2.0;
/// The number of pages by which one plane may be further ahead at the start of a run.
const PAGES_AHEAD: f64 = 64.0;
/// Blocks erased, the same.
const ERASES_AHEAD: f64 = 32.0;
/// Room for the chances of random victims.
const CHANCE: f64 = 1.05;
/// Standard deviations of the number of valid pages by which the emptiest plane may be below the rest.
const DEVIATIONS: f64 = 5.0;

/// The properties of the load that decide whether all planes are treated alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Load {
    /// Only writes and flushes: no die is kept busy by reads of its data.
    pub(crate) only_writes: bool,
    /// Pages are never trimmed.
    pub(crate) keeps_pages: bool,
}

impl Load {
    /// The spread of `source`; unknown for a trace or a job file.
    pub(crate) fn of(source: &Source) -> Load {
        match source {
            Source::Generator(config) => {
                let [read, _, trim] = config.op_weights();
                Load { only_writes: read == 0.0 && trim == 0.0, keeps_pages: trim == 0.0 }
            }
            _ => Load { only_writes: false, keeps_pages: false },
        }
    }
}

/// The work on one plane in the run.
#[derive(Clone, Copy, Debug)]
struct Work {
    host_pages: u64,
    pages: u64,
    erases: u64,
}

/// Adds the invariants that hold for `ftl` under `load`, with what the device was before and is now.
pub(crate) fn add(
    invariants: &mut Vec<Invariant>,
    ftl: &FtlConfig,
    load: Load,
    before: &FlashReport,
    now: &FlashReport,
) {
    let work: Vec<Work> = (before.planes.iter().zip(&now.planes))
        .map(|(before, now)| Work {
            host_pages: now.host_pages - before.host_pages,
            pages: now.host_pages + now.table_pages - before.host_pages - before.table_pages,
            erases: now.erases - before.erases,
        })
        .collect();
    // A run of reads writes no page. Equal zeros would fulfil every bound and appear as a
    // successful check of the placement.
    if work.is_empty() || work.iter().all(|plane| plane.pages == 0) {
        return;
    }
    let alike = are_alike(ftl, load, now);
    invariants.extend(placement(ftl, alike, &work, now));
    invariants.extend(cleaning(ftl, alike && load.keeps_pages, &work, now));
}

/// Whether every plane is as likely to be written as any other.
fn are_alike(ftl: &FtlConfig, load: Load, now: &FlashReport) -> bool {
    let capacity = |plane: &PlaneUse| plane.capacity;
    let no_bad_blocks =
        now.planes.iter().map(capacity).min() == now.planes.iter().map(capacity).max();
    match ftl.placement {
        Placement::RoundRobin => true,
        // A die that many reads keep busy, or that has less room, is not the least busy one.
        Placement::LeastBusy => load.only_writes && no_bad_blocks,
        Placement::Static | Placement::MostFree => false,
    }
}

fn placement(ftl: &FtlConfig, alike: bool, work: &[Work], now: &FlashReport) -> Option<Invariant> {
    let by_chance = wear_by_chance(ftl, now).filter(|_| alike);
    // Planes among which pages are dealt evenly, and how many times as many one may get as another.
    let (group, times) = match (ftl.placement, by_chance) {
        (Placement::RoundRobin, _) => (work.len(), TIMES),
        // A die with more valid pages by chance cleans for longer, is busier, and gets as much less.
        (Placement::LeastBusy, Some(by_chance)) => (work.len(), TIMES * by_chance),
        // Which die is least busy is the load's doing, or chance; its planes take turns.
        (Placement::LeastBusy, None) => (work.len() / (now.dies as usize).max(1), TIMES),
        (Placement::Static | Placement::MostFree, _) => return None,
    };
    let spread = |count: fn(&Work) -> u64, times: f64, ahead: f64| {
        let ranges = work.chunks(group.max(1)).filter_map(|group| {
            let counts = || group.iter().map(count);
            Some((counts().min()?, counts().max()?))
        });
        // The constant part allows for the start: a plane can be ahead by a block before the run
        // begins. In a long run only the factor matters.
        let even = |least: u64, most: u64| most as f64 <= times * least as f64 + ahead;
        ranges.map(|(least, most)| (even(least, most), least, most)).min_by_key(|range| range.0)
    };
    let (mut holds, least, most) = spread(|plane| plane.host_pages, times, PAGES_AHEAD)?;
    let mut detail = format!("{least} to {most} pages written to each plane");
    if let Some(by_chance) = by_chance {
        let (even, least, most) = spread(|plane| plane.erases, TIMES * by_chance, ERASES_AHEAD)?;
        detail.push_str(&format!(", {least} to {most} blocks erased"));
        holds &= even;
    }
    Some(Invariant { name: "placement".into(), holds, detail })
}

/// The ratio of the wear of two planes that are written equally often, where one has more valid pages by chance: the
/// cost of cleaning grows with the reciprocal of the share of invalid pages. `None` where that can be anything, as in
/// small or nearly full planes.
fn wear_by_chance(ftl: &FtlConfig, now: &FlashReport) -> Option<f64> {
    let capacity = f64::from(now.planes.iter().map(|plane| plane.capacity).min()?);
    let share = f64::from(now.planes.iter().map(|plane| plane.share).max()?);
    // Random writes give each plane a Poisson-like number of valid pages: its standard deviation is
    // the square root of the mean. Five of them hold for all planes with near certainty.
    let apart = DEVIATIONS * share.sqrt();
    let (least_room, most_room) = (capacity - share - apart, capacity - share + apart);
    let levelled = ftl.wear_levelling == WearLevelling::Static;
    // Cleaning yields capacity - valid pages per turn, so wear goes with the reciprocal of the
    // room. Static wear levelling moves blocks on purpose and breaks this relation.
    (!levelled && least_room > 0.0).then(|| most_room / least_room)
}

fn cleaning(ftl: &FtlConfig, alike: bool, work: &[Work], now: &FlashReport) -> Option<Invariant> {
    // Both move pages that cleaning for want of room would not.
    if ftl.wear_levelling == WearLevelling::Static || ftl.free_blocks_background > 0.0 {
        return None;
    }
    let capacity = now.planes.iter().map(|plane| plane.capacity).min()?;
    let share = now.planes.iter().map(|plane| plane.share).max()?;
    let emptiest = now.planes.iter().map(|plane| plane.valid).min()?;
    let valid = match alike {
        true => (f64::from(emptiest) + DEVIATIONS * f64::from(share).sqrt()).min(share.into()),
        false => f64::from(share),
    };
    let used = valid / f64::from(capacity);
    if capacity == 0 || used >= 1.0 {
        return None;
    }
    let data_pages = f64::from(now.pages_per_block);
    // A victim with the share u of valid pages frees 1 - u of its pages. The ratio of programs to
    // host pages is thus 1 / (1 - u) for a victim that is as full as the average.
    let most = CHANCE / (1.0 - used);
    let planes = work.len() as f64;
    // Work begun before the run, and its first victims; other policies may first go through blocks
    // without a page to gain, up to a whole turn.
    let begun = match ftl.cleaning {
        Cleaning::Greedy => (2.0 + 2.0 * most) * data_pages,
        _ => (2.0 + 2.0 * most) * data_pages + f64::from(capacity),
    };
    let written: f64 = work.iter().map(|plane| plane.pages as f64).sum();
    let programmed: f64 = work.iter().map(|plane| plane.erases as f64 * data_pages).sum();
    let which = if alike { "the emptiest plane" } else { "a full device" };
    Some(Invariant {
        name: "cleaning".into(),
        // Erased blocks stand for programs: each block is filled before it is erased. This count
        // also covers pages that cleaning moved, without a counter of its own.
        holds: programmed <= most * written + planes * begun,
        detail: format!(
            "{:.2} pages erased for each page written; {which}, {:.1} % valid, allows {most:.2}",
            programmed / written,
            used * 100.0
        ),
    })
}

#[cfg(test)]
mod tests {
    use ssdyno_device::DeviceReport;
    use ssdyno_ssd::{Config as DeviceConfig, Ssd, presets};

    use super::*;

    const WRITES: Load = Load { only_writes: true, keeps_pages: true };
    const MIXED: Load = Load { only_writes: false, keeps_pages: true };

    /// Configuration A, 64 dies of two planes, of which each got 1000 pages and was cleaned as
    /// `amplification` says; then `change` is applied.
    fn broken(
        (placement, load, amplification): (Placement, Load, f64),
        change: impl Fn(&mut [PlaneUse]),
    ) -> Vec<String> {
        let mut config = DeviceConfig::parse(presets::find("config-a").unwrap().text).unwrap();
        config.ftl.placement = placement;
        let before = DeviceReport::of(&Ssd::fresh(&config, 1).unwrap());
        let before = before.flash().unwrap();
        let mut now = before.clone();
        for plane in &mut now.planes {
            plane.valid = plane.share;
            plane.host_pages += 100_000;
            plane.erases += (100_000.0 * amplification / 64.0) as u64;
        }
        change(&mut now.planes);
        let mut invariants = Vec::new();
        add(&mut invariants, &config.ftl, load, before, &now);
        assert!(invariants.iter().any(|invariant| invariant.name == "cleaning"));
        invariants
            .into_iter()
            .filter(|invariant| !invariant.holds)
            .map(|invariant| invariant.name)
            .collect()
    }

    /// A plane of each die gets nothing, and drains.
    fn half_starve(planes: &mut [PlaneUse]) {
        for plane in planes.iter_mut().step_by(2) {
            (plane.host_pages, plane.erases, plane.valid) = (0, 0, 0);
        }
    }

    #[test]
    fn starved_planes_are_caught() {
        use Placement::{LeastBusy, MostFree, RoundRobin, Static};
        for placement in [Static, RoundRobin, MostFree, LeastBusy] {
            for load in [WRITES, MIXED] {
                // 0.92 valid: greedy gives 5.9, random victims 12.3.
                assert_eq!(broken((placement, load, 5.9), |_| ()), [""; 0], "{placement:?}");
                assert_eq!(broken((placement, load, 12.3), |_| ()), [""; 0], "{placement:?}");
                assert_eq!(broken((placement, load, 31.0), |_| ()), ["cleaning"]);
            }
        }
        for load in [WRITES, MIXED] {
            assert_eq!(broken((RoundRobin, load, 5.9), half_starve), ["placement", "cleaning"]);
        }
        assert_eq!(broken((LeastBusy, WRITES, 5.9), half_starve), ["placement", "cleaning"]);
        assert_eq!(broken((LeastBusy, MIXED, 5.9), half_starve), ["placement"]);
        // Where the load decides, it may: one plane is written only.
        assert_eq!(broken((Static, WRITES, 5.9), half_starve), [""; 0]);
    }

    #[test]
    fn uneven_wear_and_emptiness_are_caught() {
        let wears = |planes: &mut [PlaneUse]| planes[7].erases *= 5;
        assert_eq!(broken((Placement::RoundRobin, WRITES, 3.0), wears), ["placement"]);
        let drains = |planes: &mut [PlaneUse]| planes[7].valid /= 2;
        assert_eq!(broken((Placement::LeastBusy, WRITES, 5.9), drains), ["cleaning"]);
        // A die that reads keep busy may drain.
        let dies = |planes: &mut [PlaneUse]| {
            for plane in &mut planes[6..8] {
                (plane.valid, plane.host_pages, plane.erases) = (0, 0, 0);
            }
        };
        assert_eq!(broken((Placement::LeastBusy, MIXED, 5.9), dies), [""; 0]);
    }
}
