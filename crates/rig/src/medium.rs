//! Loads that the flash did not carry: writes that a buffer or the free space of a fresh drive took, and reads of pages that
//! hold no data or lay in the buffer. Also those that the page cache of a simulated host carried.

use ssdyno_block::units::Bytes;
use ssdyno_device::{BurstCredits, DeviceReport, FlashReport, FlashWork, PagesRead};
use ssdyno_engine::PlaneUse;
use ssdyno_figures::{
    CacheResult, Warning, WarningKind, bytes_per_second, rate, seconds, significant,
};

/// A smaller share of pages that the flash did not carry does not move a percentile that a run has.
const SHARE_LEAST: f64 = 0.01;

/// The writes of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// All bytes, with those of a ramp-up.
    pub(crate) all_bytes: u64,
    /// The bytes since recording began.
    pub(crate) recorded_bytes: u64,
    /// Bytes of the pages that the flash programmed for the host since then.
    pub(crate) programmed_bytes: f64,
    /// Bytes of the pages that waited in the write buffer when recording began, and at the end.
    pub(crate) buffered_bytes: [u64; 2],
    /// Bytes that waited when the last request was issued. A disk writes them back after the last completion.
    pub(crate) waiting_bytes: u64,
    /// Flushes since recording began.
    pub(crate) flushes: u64,
    /// Trims since recording began.
    pub(crate) trims: u64,
}

impl Written {
    /// Bytes of the pages that the recorded writes made dirty: those that the flash programmed, and those that wait for it.
    /// Less than the written bytes where writes met pages that still waited, more where they cover a part of a page.
    fn dirtied_bytes(&self) -> f64 {
        let [start, end] = self.buffered_bytes.map(|bytes| bytes as f64);
        self.programmed_bytes + end - start
    }

    /// The share of what the recorded writes made dirty that waits in the buffer when the last of them is issued.
    fn waiting_share(&self) -> f64 {
        self.waiting_bytes.saturating_sub(self.buffered_bytes[0]) as f64 / self.dirtied_bytes()
    }

    /// The share of the recorded bytes that waits in the buffer when the last write is issued. It holds data that was written
    /// again once: with writes that replace each other it is smaller than [`waiting_share`](Written::waiting_share).
    fn held_share(&self) -> f64 {
        let dirtied = self.dirtied_bytes();
        self.waiting_share() * dirtied / dirtied.max(self.recorded_bytes as f64)
    }

    /// Whether flushes emptied the buffer again and again: however long the run is, it fills no further. A single flush
    /// at the end of a run only hides what the buffer took.
    fn is_flushed(&self) -> bool {
        self.flushes >= FLUSHES_LEAST && self.waiting_share() < BUFFERED_LEAST
    }

    /// Bytes of the host's recorded writes that the flash programmed; `None` if it programmed none.
    ///
    /// A ramp-up leaves a full buffer behind, which the device empties when the load ends: of 20 000 writes of 4 KiB after it,
    /// a buffer of 16 MiB adds 10 % to the programs. Without a ramp-up the buffer is empty at first, and takes the same share
    /// away. A page that waits carries as many bytes of the host as a page that was programmed: with writes of 512 B, that is
    /// an eighth of its size.
    pub(crate) fn reached_flash_bytes(&self) -> Option<f64> {
        let share = self.programmed_bytes / self.dirtied_bytes();
        let bytes = self.recorded_bytes as f64 * share;
        (bytes > 0.0 && bytes.is_finite()).then_some(bytes)
    }
}

/// The warnings of a run that has `written`, of a device that was `before` and is `now`. A host can address `reachable_share` of
/// its capacity.
pub(crate) fn warnings(
    before: &DeviceReport,
    now: &DeviceReport,
    written: Written,
    reachable_share: f64,
) -> Vec<Warning> {
    let flashes = || {
        let units = before.units().iter().zip(now.units());
        units.filter_map(|(before, now)| before.flash.as_ref().zip(now.flash.as_ref()))
    };
    let buffer_bytes = now.write_buffer_bytes();
    // The cache of a disk or of an array: what of it is dirty at the end is known. Writes that met
    // dirty data count as if they had made other data dirty.
    if flashes().next().is_none() {
        let [start, end] = written.buffered_bytes.map(|bytes| bytes as f64);
        let programmed_bytes = written.recorded_bytes as f64 + start - end;
        let written = Written { programmed_bytes, ..written };
        // A disk limits the extents of its cache, too. Random writes use them up long before the bytes, and what waits then
        // is all that the cache holds.
        let found = match now.buffer_waits() > before.buffer_waits() {
            true => filling_buffer(written.waiting_bytes, &written),
            false => buffered(buffer_bytes, written.all_bytes, &written)
                .or_else(|| filling_buffer(buffer_bytes, &written)),
        };
        return Vec::from_iter(found);
    }
    let read = flashes().map(|(before, now)| now.pages_read - before.pages_read);
    let read: PagesRead = read.fold(PagesRead::default(), |sum, one| sum + one);
    // Phase-change memory is written in place. It has no programs to count and no blocks to erase.
    if flashes().any(|(_, now)| now.work.is_none()) {
        return Vec::from_iter(unread(read, written.trims));
    }
    let erases = |report: &DeviceReport| work(report).map(|(work, _)| work.erases).sum::<u64>();
    let erased = erases(now).saturating_sub(erases(before));
    let programmed_bytes = programmed_bytes(before, now);
    let [was, is, full] = [
        pages(before, |plane| plane.valid),
        pages(now, |plane| plane.valid),
        (pages(now, |plane| plane.share) as f64 * reachable_share) as u64,
    ];
    let writes = absorbed(buffer_bytes, written)
        .or_else(|| {
            // Loads of a session follow one another: what an earlier one left in the buffer is not of this one.
            let left = written.buffered_bytes[1].saturating_sub(before.buffered_bytes());
            let dirtied_bytes = programmed_bytes + left;
            buffered(buffer_bytes, dirtied_bytes, &written)
        })
        .or_else(|| fresh(programmed_bytes, erased, invalid_bytes(now)))
        .or_else(|| filling_drive([was, is, full]))
        .or_else(|| filling_buffer(buffer_bytes, &written));
    writes.into_iter().chain(unread(read, written.trims)).collect()
}

/// Bytes of the pages that all flash programmed for the host from `before` to `now`.
pub(crate) fn programmed_bytes(before: &DeviceReport, now: &DeviceReport) -> u64 {
    let bytes = |report: &DeviceReport| -> u64 {
        work(report).map(|(work, page_bytes)| work.host_pages * page_bytes).sum()
    };
    bytes(now).saturating_sub(bytes(before))
}

/// The work of all flash of a device so far, with the bytes of a page.
fn work(report: &DeviceReport) -> impl Iterator<Item = (FlashWork, u64)> {
    let flash = report.units().iter().filter_map(|unit| unit.flash.as_ref());
    flash.filter_map(|flash| Some((flash.work?, u64::from(flash.page_bytes))))
}

/// Bytes of all pages that hold no valid data, of the blocks that garbage collection chooses from. 0 where an FTL does not count them.
fn invalid_bytes(report: &DeviceReport) -> u64 {
    let flash = report.units().iter().filter_map(|unit| unit.flash.as_ref());
    let of_unit = |flash: &FlashReport| {
        let invalid = |plane: &PlaneUse| u64::from(plane.capacity.saturating_sub(plane.valid));
        flash.planes.iter().map(invalid).sum::<u64>() * u64::from(flash.page_bytes)
    };
    flash.map(of_unit).sum()
}

/// The sum over all planes of all flash of a device.
fn pages(report: &DeviceReport, count: fn(&PlaneUse) -> u32) -> u64 {
    let flash = report.units().iter().filter_map(|unit| unit.flash.as_ref());
    flash.flat_map(|flash| &flash.planes).map(|plane| u64::from(count(plane))).sum()
}

/// Warns if a drive, of which `was` logical pages held data before the run and `is` pages now, is not `full` and fills up.
/// Blocks that are cleaned then have fewer valid pages than those of a full drive: half full, write amplification
/// was 1.19 after 20 000 writes, 4.07 after nine million, and 5.87 in the end (`config-a`).
fn filling_drive([was, is, full]: [u64; 3]) -> Option<Warning> {
    // Trims and a write buffer let the last percent vary on a drive that is as full as it will be.
    if is <= was || is * 100 > full * 99 {
        return None;
    }
    let share = |pages: u64| significant(100.0 * pages as f64 / full as f64, 4);
    let message = format!(
        "the drive fills during the run: {} % of its logical pages held data at the start, and {} % at the end; write \
         amplification rises until all pages that the load writes hold data",
        share(was),
        share(is)
    );
    let help = "fill the drive first with `--set precondition.share=1`, or write only pages that hold data";
    Some(Warning::new(WarningKind::NotExhausted, message).with_help(help))
}

/// A smaller share of the writes in the buffer does not move a rate by more than its interval.
const BUFFERED_LEAST: f64 = 0.05;

/// So many flushes divide a run into parts that are alike. The buffer then takes at most [`BUFFERED_LEAST`] of the run
/// between two of them.
const FLUSHES_LEAST: u64 = 20;

/// Warns if much of what a run wrote is still in the write buffer: writes were as fast as the buffer for a part of the run.
fn filling_buffer(buffer_bytes: u64, written: &Written) -> Option<Warning> {
    let share = written.waiting_share();
    if written.recorded_bytes == 0 || share < BUFFERED_LEAST {
        return None;
    }
    // The medium takes data while the buffer fills, so a buffer can fill during the whole run.
    let waiting = written.waiting_bytes as f64;
    let how = if waiting < 0.9 * buffer_bytes as f64 { "was still filling" } else { "filled" };
    let during = if how == "filled" { "during" } else { "at the end of" };
    let message = format!(
        "the write buffer {how} {during} the run: it still holds {} % of the written data, so writes were faster than in \
         a longer run",
        significant(100.0 * written.held_share(), 2)
    );
    // A small write fills a page of the buffer as a large one does.
    let each = written.recorded_bytes as f64 / written.dirtied_bytes();
    Some(of_buffer(message, buffer_bytes as f64 * each.min(1.0)))
}

/// The warning about a buffer that writes of `buffer_bytes` fill. It holds less than [`BUFFERED_LEAST`] of the bytes that the help
/// requires.
fn of_buffer(message: String, buffer_bytes: f64) -> Warning {
    let least = ((buffer_bytes / BUFFERED_LEAST) as u64).div_ceil(1 << 20) << 20;
    let help = format!(
        "write at least {}: run longer, or fill the buffer first with `workload.ramp_up`",
        Bytes(least)
    );
    let warning = Warning::new(WarningKind::NotExhausted, message).with_help(help);
    Warning { writes_least_bytes: Some(least), ..warning }
}

/// Warns if free blocks took all pages that the flash programmed. The first run on a fresh drive is faster than all later runs.
/// `invalid_bytes` of its flash hold no data now.
fn fresh(programmed_bytes: u64, erases: u64, invalid_bytes: u64) -> Option<Warning> {
    (programmed_bytes > 0 && erases == 0).then(|| {
        let message = format!(
            "no block was erased: all {} that the flash programmed went to free blocks; once \
             blocks must be cleaned, writes are slower and write amplification is higher",
            Bytes(programmed_bytes)
        );
        let warning = Warning::new(WarningKind::NotExhausted, message)
            .with_help("write more, or fill the drive first (`ssdyno explain precondition`)");
        // When all of it is programmed, no block is free.
        let least = (invalid_bytes > 0).then_some(programmed_bytes + invalid_bytes);
        Warning { writes_least_bytes: least, ..warning }
    })
}

/// Warns if reads of a load with so many `trims` did not reach the flash.
fn unread(pages: PagesRead, trims: u64) -> Option<Warning> {
    let PagesRead { flash, buffer, blank } = pages;
    let share = blank as f64 / (flash + buffer + blank).max(1) as f64;
    if share > SHARE_LEAST {
        let message = format!(
            "{} % of the pages that were read hold no data (never written, or trimmed): the device answers them without its flash",
            significant(100.0 * share, 3)
        );
        // What is written before the run, the load trims again.
        let help = match trims {
            0 => "write the range first (`ssdyno explain precondition`)",
            _ => {
                "the load itself trims pages: leave the trims out, or read a range that it does not trim; if pages were never \
                 written, write the range first (`ssdyno explain precondition`)"
            }
        };
        return Some(Warning::new(WarningKind::NoMedia, message).with_help(help));
    }
    (flash == 0 && buffer > 0).then(|| {
        let message = "no read reached the flash: the buffer of the device held all pages";
        Warning::new(WarningKind::NotExhausted, message).with_help("read a larger range")
    })
}

/// The warnings of a load that used burst credits in the `window_seconds` from the report `before` to the report `now`: a
/// longer load has fewer of them per second, or none. `can_change`: the user can give the load another length and ramp-up.
pub(crate) fn credits(
    before: &DeviceReport,
    now: &DeviceReport,
    window_seconds: f64,
    can_change: bool,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (was, is) in before.units().iter().zip(now.units()) {
        for (was, left) in was.credits.iter().zip(&is.credits) {
            let Some((message, remedy)) = spent(was.left, *left, window_seconds) else { continue };
            let remedy = if can_change { remedy } else { "" };
            let help = format!("{remedy}start without credits: `--set {}volume.initial=0`", is.key);
            warnings.push(Warning::new(WarningKind::BurstCredits, message).with_help(help));
        }
    }
    warnings
}

/// Spending a smaller share of the baseline than this changes the figures of a run little.
const SPENT_LEAST: f64 = 0.05;
/// Credits that last this many times as long as the run end its rate in a time that matters.
const LASTS_MOST: f64 = 100.0;

/// The problem of a window in which `was` credits became those that are left, and the first part of its remedy.
fn spent(was: f64, credits: BurstCredits, window_seconds: f64) -> Option<(String, &'static str)> {
    let spent = was - credits.left;
    // A burst at the beginning of a long run spends little. So does a rate slightly above the baseline, which ends all the
    // same; Poisson arrivals that only wander above it spend a few standard deviations.
    let allowed = credits.baseline * window_seconds;
    let is_soon = credits.left > spent / 100.0 && credits.left < LASTS_MOST * spent;
    let ends = is_soon && !credits.of_bytes && spent > 4.0 * allowed.sqrt();
    if spent <= 0.0 || (spent <= SPENT_LEAST * allowed && !ends) {
        return None;
    }
    let baseline = match credits.of_bytes {
        true => bytes_per_second(credits.baseline),
        // Larger requests count as several, and merged ones as one.
        false => {
            format!("{} requests per second (each up to `volume.unit`)", rate(credits.baseline))
        }
    };
    let lasts_seconds = credits.left / spent * window_seconds;
    // The interval around the mean of two rates holds neither of them.
    if lasts_seconds < window_seconds / 100.0 {
        let percent = 100.0 * spent / (spent + allowed);
        let message = format!(
            "the burst credits ran out during the run: the figures mix the rates before and after that, and {} % of what the limit \
             let through was paid with credits; the volume completes {baseline} without credits",
            significant(percent, 2)
        );
        return Some((message, "leave the burst out with `workload.ramp_up`, or "));
    }
    let message = format!(
        "the rate depends on burst credits: at this rate they last {} more, and then the volume completes {baseline}",
        seconds(lasts_seconds)
    );
    Some((message, "run longer than that (`--for`), or "))
}

/// The warnings of a run through a page cache of the host.
pub(crate) fn page_cache(cache: &CacheResult) -> Vec<Warning> {
    // Pages that were read ahead are hits, but the device had to read them in this run.
    let hits = cache.pages_hit.saturating_sub(cache.pages_ahead);
    let share = hits as f64 / cache.pages_read.max(1) as f64;
    let reads = (share > SHARE_LEAST).then(|| {
        let message = format!(
            "the page cache of the host held {} % of the pages that were read: their latencies are memory latencies",
            significant(100.0 * share, 3)
        );
        Warning::new(WarningKind::Memory, message)
            .with_help("read a range that is larger than the cache, or choose a host without a page cache")
    });
    // While dirty pages accumulate, writes are as fast as memory. What the cache holds at the end of the run says nothing: the
    // run ends when the last page was written back. A disk had 197 k random writes per second, and needed 75 s afterwards.
    let (most, all) = (cache.dirty_pages_max, cache.pages_dirtied);
    let writes = (most as f64 > BUFFERED_LEAST * all as f64).then(|| {
        let message = format!(
            "the page cache of the host held {most} of {all} written pages at the same time: writes were faster than the device \
             until the cache was full"
        );
        let needed = (most as f64 / BUFFERED_LEAST).ceil();
        let help = format!("write at least {needed:.0} pages (run longer), flush (`fsync`), or choose a host without a page cache");
        Warning::new(WarningKind::Memory, message).with_help(help)
    });
    reads.into_iter().chain(writes).collect()
}

/// Writes that the buffer absorbs by a larger share than this describe the buffer more than the medium.
const ABSORBED_MOST: f64 = 0.5;

/// Warns if most written bytes replaced bytes that still waited in the write buffer, so that the flash never saw them. A buffer
/// that never filled is reported as such.
fn absorbed(buffer_bytes: u64, written: Written) -> Option<Warning> {
    let written_bytes = written.recorded_bytes as f64;
    let share = 1.0 - written.dirtied_bytes() / written_bytes;
    if buffer_bytes == 0 || written.all_bytes <= buffer_bytes {
        return None;
    }
    if written_bytes == 0.0 || share <= ABSORBED_MOST {
        return None;
    }
    let message = format!(
        "the write buffer absorbed {} % of the written bytes: later writes replaced them before the flash stored them; the \
         figures of writes describe the buffer, not the medium",
        significant(100.0 * share, 3)
    );
    let help =
        format!("write a range that is much larger than the buffer of {}", Bytes(buffer_bytes));
    Some(Warning::new(WarningKind::NotExhausted, message).with_help(help))
}

/// Warns if all `dirtied_bytes` that a run made dirty fit into the write buffer, so that no write waited for the medium.
fn buffered(buffer_bytes: u64, dirtied_bytes: u64, written: &Written) -> Option<Warning> {
    let written_bytes = written.all_bytes;
    if buffer_bytes == 0
        || written_bytes == 0
        || dirtied_bytes > buffer_bytes
        || written.is_flushed()
    {
        return None;
    }
    let message = format!(
        "the write buffer never filled: it holds {}, and the run wrote {}; the figures of writes describe the buffer, not the medium",
        Bytes(buffer_bytes),
        Bytes(written_bytes)
    );
    Some(of_buffer(message, buffer_bytes as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_fit_into_the_buffer_are_told_with_both_sizes() {
        let told = |buffer_bytes: u64, dirtied_bytes: u64, all_bytes: u64| {
            let written = Written { all_bytes, ..Written::default() };
            buffered(buffer_bytes, dirtied_bytes, &written)
        };
        let warning = told(64 << 20, 3 << 20, 3 << 20).unwrap();
        assert!(warning.message.contains("holds 64MiB, and the run wrote 3MiB"), "{warning:?}");
        assert_eq!(warning.writes_least_bytes, Some(1280 << 20));
        let help = warning.help.unwrap();
        assert!(help.starts_with("write at least 1280MiB: run longer"), "{help}");
        assert!(told(4096, 4096, 4096).is_some());
        assert_eq!(told(4096, 8192, 8192), None);
        // Two writes of 512 B made two pages dirty.
        assert_eq!(told(4096, 8192, 1024), None);
        // Reads alone, and a device without a buffer.
        assert_eq!(told(4096, 0, 0), None);
        assert_eq!((told(0, 4096, 4096), told(0, 0, 4096)), (None, None));
    }

    /// A write and a flush, again and again, never fill a buffer; one flush at the end hides a full one.
    #[test]
    fn a_buffer_that_is_flushed_does_not_describe_the_figures() {
        let after = |flushes| {
            let written = Written {
                all_bytes: 8 << 20,
                recorded_bytes: 8 << 20,
                programmed_bytes: f64::from(8 << 20),
                flushes,
                ..Written::default()
            };
            buffered(64 << 20, 8 << 20, &written).is_some()
        };
        assert!(after(1) && !after(2000));
    }

    #[test]
    fn burst_credits_that_are_left_are_told_with_their_time() {
        let told = |was, left| {
            let credits = BurstCredits { of_bytes: false, left, baseline: 300.0 };
            spent(was, credits, 60.0)
        };
        // 2700 a second beyond the baseline, for a minute.
        let (message, _) = told(5_400_000.0, 5_238_000.0).unwrap();
        assert!(message.contains("they last 32.33 min more"), "{message}");
        assert!(message.contains("completes 300.0 requests per second"), "{message}");
        // 12 a second more than the baseline, of which 26 s are left.
        let (message, _) = told(1_080.0, 360.0).unwrap();
        assert!(message.contains("they last 30.00 s more"), "{message}");
        assert_eq!((told(5e6, 5e6), told(5e6, 5.1e6)), (None, None));
        // 18 000 requests at the baseline and as many with credits, which a run of a day does not notice.
        let (message, _) = told(18_000.0, 0.0).unwrap();
        assert!(
            message.contains("ran out during the run") && message.contains("50 %"),
            "{message}"
        );
        assert_eq!(told(800.0, 0.0), None);
        // Poisson arrivals below the baseline.
        assert_eq!(told(5e6, 5e6 - 20.0), None);
    }

    #[test]
    fn free_blocks_that_took_all_writes_are_told() {
        let told = fresh(3 << 20, 0, 5 << 20).unwrap();
        assert!(
            told.message.contains("all 3MiB that the flash programmed went to free blocks"),
            "{}",
            told.message
        );
        assert_eq!(told.kind, WarningKind::NotExhausted);
        assert_eq!(told.writes_least_bytes, Some(8 << 20));
        assert_eq!(fresh(3 << 20, 0, 0).unwrap().writes_least_bytes, None);
        assert_eq!((fresh(3 << 20, 1, 0), fresh(0, 0, 0)), (None, None));
    }

    #[test]
    fn a_drive_that_fills_is_told_with_both_shares() {
        let told = filling_drive([500, 512, 1_000]).unwrap();
        assert!(told.message.contains("50.00 % of its logical pages"), "{}", told.message);
        assert!(told.message.contains("51.20 % at the end"), "{}", told.message);
        // Overwritten pages, a full drive, and one of which pages are trimmed.
        assert_eq!(filling_drive([500, 500, 1_000]), None);
        assert_eq!(filling_drive([990, 995, 1_000]), None);
        assert_eq!(filling_drive([1_000, 700, 1_000]), None);
        assert_eq!(filling_drive([0, 0, 0]), None);
    }

    /// The writes of a run without a ramp-up that left `waiting` bytes in the buffer, and replaced none in it.
    fn wrote(recorded_bytes: u64, buffered_bytes: [u64; 2]) -> Written {
        let [start, end] = buffered_bytes;
        let programmed_bytes = (recorded_bytes + start).saturating_sub(end) as f64;
        Written {
            all_bytes: 1_000_000,
            recorded_bytes,
            programmed_bytes,
            buffered_bytes,
            waiting_bytes: end,
            flushes: 0,
            trims: 0,
        }
    }

    #[test]
    fn writes_that_the_buffer_absorbed_are_told() {
        let told = |programmed_bytes, end| {
            let written = Written { programmed_bytes, ..wrote(10_000, [0, end]) };
            absorbed(1_000, written).map(|warning| warning.message)
        };
        // A range that fits into the buffer: nothing reaches the flash.
        assert!(told(0.0, 500).unwrap().contains("absorbed 95.0 % of the written"));
        assert!(told(3_000.0, 1_000).unwrap().contains("absorbed 60.0 %"));
        assert_eq!(told(9_000.0, 1_000), None);
        // Small writes fill whole pages.
        assert_eq!(told(70_000.0, 1_000), None);
        assert_eq!(absorbed(0, wrote(10_000, [0, 0])), None);
        assert_eq!(absorbed(1_000, wrote(0, [0, 0])), None);
    }

    #[test]
    fn bytes_that_reached_the_flash_do_not_depend_on_their_place_in_a_page() {
        // 60 writes of 512 B: 50 pages of 4 KiB were programmed, and 10 wait.
        let written =
            Written { programmed_bytes: 50.0 * 4096.0, ..wrote(60 * 512, [0, 10 * 4096]) };
        assert_eq!(written.reached_flash_bytes(), Some(50.0 * 512.0));
        // The buffer was full before, and is full again.
        let steady = Written { programmed_bytes: 60.0 * 4096.0, ..wrote(60 * 512, [4096, 4096]) };
        assert_eq!(steady.reached_flash_bytes(), Some(60.0 * 512.0));
        let none = Written { programmed_bytes: 0.0, ..wrote(4096, [0, 4096]) };
        assert_eq!(none.reached_flash_bytes(), None);
    }

    #[test]
    fn a_buffer_that_filled_in_the_run_is_told_from_one_that_was_full() {
        let told = |recorded_bytes, buffered_bytes| {
            filling_buffer(1_000, &wrote(recorded_bytes, buffered_bytes))
        };
        assert!(told(2_000, [0, 1_000]).unwrap().message.contains("still holds 50 % of"));
        assert_eq!(told(100_000, [0, 1_000]), None);
        let holds = |programmed_bytes| {
            let written = Written { programmed_bytes, ..wrote(2_000, [0, 1_000]) };
            filling_buffer(1_000, &written).unwrap().message
        };
        // Of 2000 bytes, later writes replaced 800 in the buffer: it holds 1000, and the flash 200.
        assert!(holds(200.0).contains("still holds 50 % of the written data"), "{}", holds(200.0));
        // `sim:p3600`, 36 MiB: of 200 000 pages the flash programmed 106 057, and 4095 wait. The replaced pages count, too.
        let written = Written { programmed_bytes: 106_057.0, ..wrote(200_000, [0, 4_095]) };
        assert!((written.reached_flash_bytes().unwrap() - 192_565.0).abs() < 1.0);
        assert!((written.held_share() - 4_095.0 / 200_000.0).abs() < 1e-9);
        // Small writes fill pages: of 17 the flash has 16, and the buffer has 1.
        assert!(holds(16_000.0).contains("still holds 5.9 % of"), "{}", holds(16_000.0));
        // Full before the recording began, and empty at its end.
        assert_eq!(told(2_000, [1_000, 950]), None);
        assert_eq!(told(0, [0, 0]), None);
    }

    #[test]
    fn pages_without_data_are_told_from_one_in_a_hundred() {
        let told = |flash, buffer, blank| unread(PagesRead { flash, buffer, blank }, 0);
        assert_eq!(told(0, 0, 0), None);
        assert_eq!(told(80, 19, 1), None);
        let some = told(48, 2, 50).unwrap();
        assert_eq!(some.kind, WarningKind::NoMedia);
        assert!(some.message.starts_with("50.0 % of the pages"), "{}", some.message);
        assert_eq!(told(1, 1_000, 0), None);
        assert_eq!(told(0, 1_000, 0).unwrap().kind, WarningKind::NotExhausted);
        assert!(some.help.unwrap().starts_with("write the range first"));
        let trimmed = unread(PagesRead { flash: 48, buffer: 2, blank: 50 }, 7).unwrap();
        assert!(trimmed.help.unwrap().starts_with("the load itself trims pages"));
    }

    #[test]
    fn pages_in_the_cache_of_the_host_are_told_but_those_that_were_read_ahead() {
        let told = |cache| {
            let warnings: Vec<String> =
                page_cache(&cache).into_iter().map(|one| one.message).collect();
            warnings.join("; ")
        };
        let ahead = CacheResult {
            pages_read: 1_000,
            pages_hit: 990,
            pages_ahead: 985,
            pages_dirtied: 1_000,
            dirty_pages_max: 40,
            ..CacheResult::default()
        };
        assert_eq!(told(ahead), "");
        let used = CacheResult { pages_ahead: 490, ..ahead };
        assert!(told(used).contains("held 50.0 % of the pages"));
        let kept = CacheResult { dirty_pages_max: 600, ..ahead };
        assert!(told(kept).contains("held 600 of 1000 written pages at the same time"));
        assert_eq!(told(CacheResult::default()), "");
    }
}
