//! From two readings of counters to rates.
//!
//! A counter that went back was reset, and the group that it belongs to is missing: the other counters of the group
//! were reset with it, even if they are greater by now. Only counters that are known to wrap may go back.

use std::collections::BTreeMap;

use crate::counters::{CPU_KINDS, CpuTicks, DiskCounters, PowerReading, Reading, SystemCounters};
use crate::figures::Figures;
use crate::sample::{
    CpuFractions, DiscardRates, DiskRates, FlushRates, KernelActivity, MemoryLevels, SensorLevel,
    StalledTime, SystemSample,
};

/// Sectors of `/proc/diskstats` have this size, whatever the sectors of the device have.
const SECTOR_BYTES: f64 = 512.0;

/// Ticks that idle and iowait may go back: the kernel estimates both (proc_stat(5)). A core that goes offline and comes
/// back goes back by more.
const IDLE_TICKS_BACK_MOST: u64 = 10;

/// Places of idle and iowait in [`CpuTicks`].
const IDLE: [usize; 2] = [3, 4];

/// Most power that is believed after a counter of energy went back. A reset looks as a wrap does, and would show up
/// to 262 kJ; no zone (a processor package, a whole platform) draws as much as this.
const ZONE_WATTS_MOST: f64 = 5_000.0;

impl SystemCounters {
    /// What happened from `earlier` to `self`. Values that only one of them has are left out, and so are values reset
    /// in between. If `earlier` is not earlier, all rates are missing. RAPL counters wrap after 262 kJ, say: an
    /// interval of more than one wrap (20 minutes at 200 W) gives too little power.
    pub fn since(&self, earlier: &SystemCounters) -> SystemSample {
        // Every source has its own two times. The thread may have been interrupted between two sources, and
        // one common interval would give wrong rates for both.
        let stat = Span::of(&earlier.stat, &self.stat);
        let disks = Span::of(&earlier.disks, &self.disks);
        SystemSample {
            sequence: 0,
            monotonic_ns: self.monotonic_ns,
            unix_ns: self.unix_ns,
            interval_ns: self.monotonic_ns.saturating_sub(earlier.monotonic_ns),
            cpu: stat.as_ref().and_then(|s| fractions(s.ns, &s.before.cpu, &s.after.cpu)),
            cores: stat
                .as_ref()
                .map_or_else(BTreeMap::new, |stat| stat.each(|s| &s.cores, fractions)),
            activity: stat.as_ref().and_then(|stat| {
                let [a, b, c] = rates(stat.ns, &stat.before.events, &stat.after.events)?;
                let [running, blocked] = stat.after.processes.map(|number| number as f64);
                Some(KernelActivity::new(stat.ns, [a, b, c, running, blocked]))
            }),
            memory: Span::of(&earlier.memory, &self.memory)
                .map(|span| MemoryLevels::new(span.ns, span.after.map(|bytes| bytes as f64))),
            swap: Span::of(&earlier.swap, &self.swap)
                .and_then(|s| figures_of(s.ns, s.before, s.after)),
            interfaces: Span::of(&earlier.interfaces, &self.interfaces)
                .map_or_else(BTreeMap::new, |span| span.each(|all| all, figures_of)),
            disks: of_disks(&disks, disk_rates),
            discards: of_disks(&disks, |ns, before, after| {
                let ((counts, times), (later, later_times)) = (before.discards?, after.discards?);
                let [discards, sectors] = rates(ns, &counts, &later)?;
                let [seconds] = time_rates(ns, &times, &later_times)?;
                Some(DiscardRates::new(ns, [discards, sectors * SECTOR_BYTES, seconds]))
            }),
            flushes: of_disks(&disks, |ns, before, after| {
                let ((counts, times), (later, later_times)) = (before.flushes?, after.flushes?);
                let [flushes] = rates(ns, &counts, &later)?;
                let [seconds] = time_rates(ns, &times, &later_times)?;
                Some(FlushRates::new(ns, [flushes, seconds]))
            }),
            power: Span::of(&earlier.power, &self.power)
                .map_or_else(BTreeMap::new, |span| span.each(|all| all, power)),
            pressure: Span::of(&earlier.pressure, &self.pressure)
                .map_or_else(BTreeMap::new, |span| span.each(|all| all, stalled)),
        }
    }
}

/// A source at both ends of an interval.
struct Span<'a, T> {
    /// Greater than 0.
    ns: u64,
    before: &'a T,
    after: &'a T,
}

impl<'a, T> Span<'a, T> {
    fn of(earlier: &'a Option<Reading<T>>, later: &'a Option<Reading<T>>) -> Option<Span<'a, T>> {
        let (earlier, later) = (earlier.as_ref()?, later.as_ref()?);
        // Two readings in the same nanosecond, or in the wrong order, give no rate. A division by zero
        // would put infinity into a result that JSON cannot hold.
        let ns = later.monotonic_ns.checked_sub(earlier.monotonic_ns).filter(|ns| *ns > 0)?;
        Some(Span { ns, before: &earlier.value, after: &later.value })
    }

    /// The figures of all names that are in both.
    fn each<K: Ord + Clone + 'a, C: 'a, F>(
        &self,
        pick: impl Fn(&'a T) -> &'a BTreeMap<K, C>,
        figures: impl Fn(u64, &C, &C) -> Option<F>,
    ) -> BTreeMap<K, F> {
        // A name that only one reading has came or went in between. Its counter at the
        // other end is unknown, so it has no rate.
        let before = pick(self.before);
        let both = pick(self.after).iter().filter_map(|(name, after)| {
            Some((name.clone(), figures(self.ns, before.get(name)?, after)?))
        });
        both.collect()
    }
}

/// The disks that are the same device at both ends and were not reset.
fn of_disks<F>(
    span: &Option<Span<'_, BTreeMap<String, DiskCounters>>>,
    figures: impl Fn(u64, &DiskCounters, &DiskCounters) -> Option<F>,
) -> BTreeMap<String, F> {
    let Some(span) = span else { return BTreeMap::new() };
    span.each(
        |all| all,
        |ns, before, after| {
            // A device that was removed and replaced may have the same name. Its numbers differ, or its counters
            // went back, and both readings describe different drives.
            let same = before.device == after.device
                && before.counts.iter().zip(after.counts).all(|(before, after)| *before <= after);
            if same { figures(ns, before, after) } else { None }
        },
    )
}

fn figures_of<const N: usize, F: Figures<N>>(
    ns: u64,
    before: &[u64; N],
    after: &[u64; N],
) -> Option<F> {
    Some(F::new(ns, rates(ns, before, after)?))
}

/// Per second; `None` if one went back.
fn rates<const N: usize>(ns: u64, before: &[u64; N], after: &[u64; N]) -> Option<[f64; N]> {
    let mut rates = [0.0; N];
    for (rate, (before, after)) in rates.iter_mut().zip(before.iter().zip(after)) {
        // If one counter of a group went back, the whole group was reset. The others may be above their old values by
        // now, and their rates would be wrong without a sign of it.
        *rate = per_second(ns, after.checked_sub(*before)?);
    }
    Some(rates)
}

fn per_second(ns: u64, amount: u64) -> f64 {
    amount as f64 * 1e9 / ns as f64
}

/// Where counters of milliseconds begin again at 0.
const WRAP: u64 = 1 << 32;

/// Seconds per second, from counters of milliseconds that wrap.
fn time_rates<const N: usize>(ns: u64, before: &[u64; N], after: &[u64; N]) -> Option<[f64; N]> {
    let mut rates = [0.0; N];
    for (rate, (before, after)) in rates.iter_mut().zip(before.iter().zip(after)) {
        let ms = match after.checked_sub(*before) {
            Some(ms) => ms,
            // The counters have 32 bits and wrap. As with sequence numbers in TCP, a step of more than
            // half of the range is a step back, that is, a reset.
            None if *before < WRAP => Some(after + WRAP - before).filter(|ms| *ms < WRAP / 2)?,
            None => return None,
        };
        *rate = per_second(ns, ms) / 1e3;
    }
    Some(rates)
}

fn disk_rates(ns: u64, before: &DiskCounters, after: &DiskCounters) -> Option<DiskRates> {
    let [reads, sectors_read, writes, sectors_written] = rates(ns, &before.counts, &after.counts)?;
    let [read, write, busy, weighted] = time_rates(ns, &before.times_ms, &after.times_ms)?;
    let in_flight = after.in_flight as f64;
    // The kernel rounds to milliseconds at other moments than this program reads, so the quotient can be a
    // little above 1. A busy share above 1 means nothing.
    let busy = busy.min(1.0);
    let values = [
        reads,
        sectors_read * SECTOR_BYTES,
        read,
        writes,
        sectors_written * SECTOR_BYTES,
        write,
        in_flight,
        busy,
        weighted,
    ];
    Some(DiskRates::new(ns, values))
}

fn fractions(ns: u64, before: &CpuTicks, after: &CpuTicks) -> Option<CpuFractions> {
    let mut ticks = [0; CPU_KINDS];
    for (kind, ticks) in ticks.iter_mut().enumerate() {
        *ticks = match after[kind].checked_sub(before[kind]) {
            Some(ticks) => ticks,
            // The kernel estimates idle and iowait, and both may go back a little (proc_stat(5)). Ten ticks are
            // accepted; a core that was offline goes back by more.
            None if IDLE.contains(&kind) && before[kind] - after[kind] <= IDLE_TICKS_BACK_MOST => 0,
            None => return None,
        };
    }
    // The quotient of ticks needs no clock of this program. The ticks of all kinds together
    // are the time, so the fractions add up to 1.
    let all: f64 = ticks.iter().map(|ticks| *ticks as f64).sum();
    (all > 0.0).then(|| CpuFractions::new(ns, ticks.map(|ticks| ticks as f64 / all)))
}

fn power(ns: u64, before: &PowerReading, after: &PowerReading) -> Option<SensorLevel> {
    let watts = match (before, after) {
        (PowerReading::Meter { microwatts }, PowerReading::Meter { microwatts: later }) => {
            // A meter has no integral. The mean of both ends is the trapezoidal rule, and it
            // is exact for power that changes steadily.
            (*microwatts as f64 + *later as f64) / 2e6
        }
        (
            PowerReading::Counter { microjoules, .. },
            PowerReading::Counter { microjoules: later, wraps_at },
        ) => counted_watts(ns, *microjoules, *later, *wraps_at)?,
        _ => return None,
    };
    Some(SensorLevel::new(ns, [watts]))
}

fn counted_watts(ns: u64, before: u64, after: u64, wraps_at: Option<u64>) -> Option<f64> {
    let watts = |microjoules| per_second(ns, microjoules) / 1e6;
    match after.checked_sub(before) {
        Some(microjoules) => Some(watts(microjoules)),
        None => {
            // A wrap and a reset look the same. After a reset the difference would be up to 262 kJ; a power above
            // that of any zone shows it, and the figure is dropped.
            let wrapped = watts(wraps_at?.checked_sub(before)?.checked_add(after)?);
            (wrapped <= ZONE_WATTS_MOST).then_some(wrapped)
        }
    }
}

fn stalled(ns: u64, before: &[u64; 1], after: &[u64; 1]) -> Option<StalledTime> {
    let [microseconds] = rates(ns, before, after)?;
    // The kernel's clock for stalls is not the clock of this program. A stall over the whole
    // interval may be a little longer than the interval.
    Some(StalledTime::new(ns, [(microseconds / 1e6).min(1.0)]))
}
