//! The loads of a map.

use ssdyno_block::units::Bytes;
use ssdyno_engine::Rng;
use ssdyno_figures::{Interval, RunResult, SeriesPoint};
use ssdyno_workload::{
    AddressPattern, ArrivalKind, Arrivals, Pattern, WorkloadConfig, WritesApart,
};

/// Size of reads, where the sector allows it.
pub(crate) const READ_BYTES: u64 = 4096;
/// Size of writes. diskplorer's are as large: those of a log or a compaction.
pub(crate) const WRITE_BYTES: u64 = 128 << 10;
/// Requests of a load without an end of its own.
const ENDLESS: u64 = 1 << 40;
/// Share of a load's time that its last requests may take after the last arrival.
const DRAIN: f64 = 0.03;
/// The same if latency does not show that a queue grows: a queue cannot drain in such a short time.
const DRAIN_MOST: f64 = 0.25;
/// The rates are not reached if this share of all arrivals is missing, or this number of standard deviations of their
/// number.
const SHORT: f64 = 0.03;
const SHORT_DEVIATIONS: f64 = 3.0;
/// A queue grows where latency in the second half is that of the first, times this or more.
const GROWTH: f64 = 1.3;

/// Sizes and span of all loads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapLoad {
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) span: u64,
}

impl MapLoad {
    fn reads(&self) -> AddressPattern {
        let length = Some(Bytes(self.span / self.read_bytes * self.read_bytes));
        AddressPattern { length, ..AddressPattern::default() }
    }

    /// Sequential writes from a random place on, which wrap.
    fn writes(&self, seed: u64) -> AddressPattern {
        let records = self.span / self.write_bytes;
        // The start is in the first half of the span. At least half of the span follows it, so
        // that a fast device does not write the same records again and again.
        let first = Rng::new(seed, "map start").below(records / 2 + 1);
        AddressPattern {
            pattern: Pattern::Sequential,
            start: Bytes(first * self.write_bytes),
            length: Some(Bytes((records - first) * self.write_bytes)),
            ..AddressPattern::default()
        }
    }

    /// The largest number of outstanding requests: a target without asynchronous requests carries sequential writes as
    /// this number of streams.
    pub(crate) fn depth_most(&self, writes: bool, most: u32) -> u32 {
        let records = self.span / self.write_bytes / 2;
        if writes { records.clamp(1, u64::from(most)) as u32 } else { most }
    }

    /// Reads or writes alone, as fast as the device takes them.
    pub(crate) fn closed(&self, writes: bool, depth: u32, seed: u64) -> WorkloadConfig {
        let share = if writes { 0.0 } else { 100.0 };
        WorkloadConfig {
            depth: Some(depth),
            read_percent: Some(share),
            write_percent: Some(100.0 - share),
            block_size: Some(Bytes(if writes { self.write_bytes } else { self.read_bytes })),
            address: if writes { self.writes(seed) } else { self.reads() },
            requests: Some(ENDLESS),
            ..WorkloadConfig::default()
        }
    }

    /// Reads and writes that arrive at random, at the given rates per second. Requests that complete in the first
    /// `lead` seconds are not recorded.
    pub(crate) fn open(&self, reads: f64, writes: f64, lead: f64, seed: u64) -> WorkloadConfig {
        let all = reads + writes;
        let writes_apart =
            WritesApart { block_size: Bytes(self.write_bytes), address: self.writes(seed) };
        WorkloadConfig {
            arrivals: Some(Arrivals {
                kind: ArrivalKind::Poisson,
                rate: Some(all),
                mean_gap: None,
                length: None,
                interval: None,
            }),
            read_percent: Some(100.0 * reads / all),
            write_percent: Some(100.0 * writes / all),
            block_size: Some(Bytes(self.read_bytes)),
            address: self.reads(),
            writes: Some(writes_apart),
            requests: Some(ENDLESS),
            ramp_up: (all * lead) as u64,
            ..WorkloadConfig::default()
        }
    }
}

/// The result of an open load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Reached {
    /// Reads and writes completed per second, until no more arrived.
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    /// A queue grew until then.
    pub(crate) overloaded: bool,
    /// 95th percentile of reads in microseconds, and the ends of its 95 % interval where the load can tell them.
    pub(crate) p95_us: Option<(f64, Option<f64>, Option<f64>)>,
    pub(crate) counted: u64,
}

impl Reached {
    /// Of a load of `offered` requests per second that was recorded for `length` seconds after `lead` seconds.
    pub(crate) fn new(result: &RunResult, offered: f64, lead: f64, length: f64) -> Reached {
        let before_end =
            |part: &&SeriesPoint| part.start_seconds + part.length_seconds <= length * 1.000_001;
        let parts: Vec<&SeriesPoint> = result.series.iter().filter(before_end).collect();
        let seconds: f64 = parts.iter().map(|part| part.length_seconds).sum();
        let rate = |count: fn(&SeriesPoint) -> u64, all: u64| {
            let done: u64 = parts.iter().map(|part| count(part)).sum();
            match seconds > 0.0 {
                true => done as f64 / seconds,
                false => all as f64 / result.simulated_seconds.max(f64::MIN_POSITIVE),
            }
        };
        // The recorded time reaches to the last completion. The time beyond `length` is the time in
        // which the queue emptied after the last arrival.
        let drain = (result.simulated_seconds - length).max(0.0) / (lead + length);
        // A single slow request prolongs the drain as a queue does. Only a queue makes the
        // second half slower than the first.
        let grows = mean_latency(&parts[parts.len() / 2..])
            > GROWTH * mean_latency(&parts[..parts.len() / 2]);
        let (reads, writes) = (
            rate(|part| part.reads, result.requests_by_op.read),
            rate(|part| part.writes, result.requests_by_op.write),
        );
        let missing = 1.0 - (reads + writes) / offered;
        // The number of Poisson arrivals varies by its square root. A short load must not seem
        // overloaded because fewer requests arrived.
        let is_short = missing > SHORT.max(SHORT_DEVIATIONS / (offered * length).sqrt());
        let read = result.latency_ns.as_ref().and_then(|all| all.read.as_ref());
        let interval = result.confidence.as_ref().and_then(|all| all.latency_ns.read?.p95);
        let p95_us = read.map(|read| {
            let end = |of: fn(&Interval) -> f64| {
                let end = interval.as_ref().map(of);
                // The upper end is infinite if too few requests lie beyond the percentile. JSON
                // has no infinity, so such an end is left out.
                end.filter(|end| *end > 0.0 && end.is_finite()).map(|end| end / 1e3)
            };
            (read.p95 / 1e3, end(|one| one.low), end(|one| one.high))
        });
        Reached {
            reads,
            writes,
            overloaded: is_short || drain > DRAIN_MOST || (drain > DRAIN && grows),
            p95_us,
            counted: result.requests_by_op.read,
        }
    }
}

/// Over all requests of `parts`; 0 without any.
fn mean_latency(parts: &[&SeriesPoint]) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for part in parts {
        let requests = part.reads + part.writes;
        sum += part.latency_ns_mean.unwrap_or(0.0) * requests as f64;
        count += requests;
    }
    if count == 0 { 0.0 } else { sum / count as f64 }
}
