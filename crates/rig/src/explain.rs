//! The parts of the latency of requests, if a run requests them.

use std::collections::{BTreeMap, VecDeque};

use ssdyno_block::{Op, Request, Time};
use ssdyno_device::faults::FaultConfig;
use ssdyno_device::{Device, ExplainedRequest, LatencyPart, LatencyParts};
use ssdyno_figures::{Invariant, LatencyPartsByOp, MeanParts, OpLatencyParts, RunResult};

/// Requests of about the same latency.
#[derive(Clone, Copy, Default)]
struct Bucket {
    count: u64,
    parts: [u128; PARTS],
}

const PARTS: usize = LatencyPart::ALL.len();

/// Buckets of an octave are 2 to this power.
const BUCKET_BITS: u32 = 5;

/// The smallest number of requests of which 1 % is worth a mean.
const REQUESTS_WITH_A_TAIL: u64 = 1000;

/// Joins the device's records of its requests with the requests of the run, which a driver may have split, and adds
/// them up.
pub struct Explain {
    /// The device's completions that the run has not received yet, by operation and first byte.
    open: BTreeMap<(Op, u64), VecDeque<ExplainedRequest>>,
    /// By operation, and by latency.
    sums: [BTreeMap<u32, Bucket>; 4],
    /// The time outside the device.
    outside: LatencyPart,
    taken: Vec<ExplainedRequest>,
    /// Some request of the run was one of the device.
    known: bool,
}

/// The number of the bucket of a latency: they rise with it.
fn bucket(latency: Time) -> u32 {
    // The buckets are logarithmic with 32 per octave, so the width is at most 3 % of the latency.
    // Exact percentiles would need every request in memory.
    let ps = latency.as_ps().max(1 << BUCKET_BITS);
    let octave = ps.ilog2();
    octave << BUCKET_BITS | (ps >> (octave - BUCKET_BITS)) as u32 & ((1 << BUCKET_BITS) - 1)
}

impl Explain {
    /// Asks `device` for it; `None` where it cannot say. `host`: there is one before the device.
    pub(crate) fn ask(device: &mut dyn Device, host: bool) -> Option<Explain> {
        device.explain().then(|| Explain {
            open: BTreeMap::new(),
            sums: Default::default(),
            outside: if host { LatencyPart::Host } else { LatencyPart::Queue },
            taken: Vec::new(),
            known: false,
        })
    }

    /// `request` has completed after `latency`, of which it `waited` for the depth of its own load;
    /// `counts`: it is in the figures.
    pub(crate) fn completed(
        &mut self,
        device: &mut dyn Device,
        (request, latency, waited): (&Request, Time, Time),
        counts: bool,
    ) {
        device.explained(&mut self.taken);
        for one in self.taken.drain(..) {
            let key = (one.request.op, one.request.offset_bytes);
            self.open.entry(key).or_default().push_back(one);
        }
        // The record is taken even if the request does not count. A record that stayed in the map
        // would be joined with a later request to the same address.
        let inside = self.take(request);
        self.known |= inside.is_some();
        if !counts {
            return;
        }
        let mut parts = inside.map(|one| one.parts).unwrap_or_default();
        // Commands that a driver repeats, or sends one after another, may have taken longer together.
        let taken = latency.saturating_sub(waited);
        if parts.total() > taken {
            parts = parts.scaled_to(taken);
        }
        // The load waits for one of its own requests, and not for the work of a processor: as the time
        // of the host, an overload of the device would look like a slow driver.
        parts.add(LatencyPart::Queue, waited.min(latency));
        // The remainder is the time outside of the device. The parts therefore sum to the latency
        // by construction, which the invariant below checks on the means.
        parts.add(self.outside, latency.saturating_sub(parts.total()));
        self.add(request.op, latency, &parts);
    }

    /// The device's record of `request`: of the commands that it was split into, the slowest.
    fn take(&mut self, request: &Request) -> Option<ExplainedRequest> {
        let first = request.offset_bytes;
        let end = first + u64::from(request.length_bytes.max(1));
        let keys: Vec<_> =
            self.open.range((request.op, first)..(request.op, end)).map(|(key, _)| *key).collect();
        let mut slowest: Option<ExplainedRequest> = None;
        for key in keys {
            let Some(waiting) = self.open.get_mut(&key) else { continue };
            // A command that reaches beyond the end belongs to another request.
            let mine = |one: &ExplainedRequest| {
                one.request.offset_bytes + u64::from(one.request.length_bytes) <= end
            };
            let Some(at) = waiting.iter().position(mine) else { continue };
            let one = waiting.remove(at);
            if waiting.is_empty() {
                self.open.remove(&key);
            }
            // The pieces of a split request run at the same time (S0-4: the request completes with
            // its last bio). The slowest one decides the latency; a sum would exceed it.
            slowest = slowest.into_iter().chain(one).max_by_key(|one| one.latency);
        }
        slowest
    }

    fn add(&mut self, op: Op, latency: Time, parts: &LatencyParts) {
        let bucket = self.sums[op as usize].entry(bucket(latency)).or_default();
        bucket.count += 1;
        for (sum, part) in bucket.parts.iter_mut().zip(LatencyPart::ALL) {
            *sum += u128::from(parts.get(part).as_ps());
        }
    }

    /// The findings of the run.
    pub(crate) fn result(&self) -> LatencyPartsByOp {
        let of = |op: Op| op_parts(&self.sums[op as usize]);
        LatencyPartsByOp {
            read: of(Op::Read),
            write: of(Op::Write),
            trim: of(Op::Trim),
            flush: of(Op::Flush),
        }
    }
}

/// The mean of `count` requests with these sums.
fn mean(sums: &[f64; PARTS], count: f64) -> MeanParts {
    let of = |part: LatencyPart| sums[part as usize] / 1e3 / count;
    MeanParts {
        total: sums.iter().sum::<f64>() / 1e3 / count,
        host: of(LatencyPart::Host),
        queue: of(LatencyPart::Queue),
        power: of(LatencyPart::Power),
        firmware: of(LatencyPart::Firmware),
        link: of(LatencyPart::Link),
        dram: of(LatencyPart::Dram),
        channel: of(LatencyPart::Channel),
        flash: of(LatencyPart::Flash),
        reads: of(LatencyPart::Reads),
        programs: of(LatencyPart::Programs),
        erases: of(LatencyPart::Erases),
        cleaning: of(LatencyPart::Cleaning),
        mapping: of(LatencyPart::Mapping),
    }
}

/// The sums over the slowest `count` requests; of the bucket at their edge the share that is needed.
fn slowest(buckets: &BTreeMap<u32, Bucket>, count: u64) -> [f64; PARTS] {
    let mut sums = [0.0; PARTS];
    let mut left = count;
    for bucket in buckets.values().rev() {
        let taken = left.min(bucket.count);
        // The bucket at the edge contains requests on both sides of it. Its share is taken, so the
        // slowest 1 % is exactly 1 % and does not depend on the borders of the buckets.
        let share = taken as f64 / bucket.count as f64;
        for (sum, part) in sums.iter_mut().zip(bucket.parts) {
            *sum += share * part as f64;
        }
        left -= taken;
        if left == 0 {
            break;
        }
    }
    sums
}

fn op_parts(buckets: &BTreeMap<u32, Bucket>) -> Option<OpLatencyParts> {
    let requests = buckets.values().map(|bucket| bucket.count).sum::<u64>();
    let of = |count: u64| mean(&slowest(buckets, count), count as f64);
    (requests > 0).then(|| OpLatencyParts {
        requests,
        mean: of(requests),
        slowest_1_percent: (requests >= REQUESTS_WITH_A_TAIL).then(|| of(requests.div_ceil(100))),
    })
}

/// Enters the findings of the run if they were `asked` for, and checks that they match the
/// latencies. `faults` are those of the device.
pub(crate) fn fill(
    result: &mut RunResult,
    asked: bool,
    explain: Option<&Explain>,
    faults: &FaultConfig,
) {
    if !asked {
        return;
    }
    // Where nothing is known of any request, all would be outside the device.
    let Some(explain) = explain.filter(|explain| explain.known || result.requests == 0) else {
        result.notes.push(
            "The parts of the latency are unknown. They are measured for a single simulated SSD only, alone or behind the NVMe driver, an adapter or a network, without `host.namespaces`"
                .into(),
        );
        return;
    };
    let parts = explain.result();
    // The device explains its own work. It does not know of its faults, which are injected around it.
    if !faults.is_none() {
        result.notes.push(format!(
            "In the parts of the latency, `{}` contains the time that the injected faults add: the device has no record of it.",
            explain.outside.name()
        ));
    }
    // For requests without a completion, only their wait is known.
    if result.unanswered == 0
        && let Some(latency) = &result.latency_ns
    {
        let means = [latency.read, latency.write, latency.trim, latency.flush];
        let found = [parts.read, parts.write, parts.trim, parts.flush];
        let off = |(latency, parts): (Option<_>, Option<OpLatencyParts>)| {
            let mean = latency.map_or(0.0, |latency: ssdyno_figures::Latency| latency.mean);
            let all = parts.map_or(0.0, |parts| {
                parts.mean.list().iter().map(|(_, _, time)| time).sum::<f64>()
            });
            (all - mean).abs() / mean.max(1.0)
        };
        let most = means.into_iter().zip(found).map(off).fold(0.0, f64::max);
        result.invariants.push(Invariant {
            name: "latency_parts".into(),
            holds: most < 1e-9,
            detail: format!("parts sum to the mean latency of each operation within {most:.1e}"),
        });
    }
    result.latency_parts_ns = Some(parts);
}
