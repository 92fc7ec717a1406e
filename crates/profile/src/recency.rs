//! Where slices go: to records that were not accessed lately.
//!
//! A whole test accesses each record once (S2-7). Slices of several tests share one span, so without care a random read
//! finds what a sequential slice left in the cache of the device: with a disk of 128 MiB of cache and a span of 1200 MiB
//! random reads came out 2.5 % too fast.

use std::ops::Range;

use ssdyno_block::{Request, Time};
use ssdyno_workload::{Finished, Pattern, TargetFacts, WorkloadConfig, WorkloadStep};

/// The number of distinguished parts of the span. A sequential slice of a disk covers about 2 % of the usual span.
const PARTS: u64 = 4096;

/// Places that are compared for each slice. A random slice of 30 records, of which one in ten would be in a cache, hits
/// it less than once in the best of 16.
pub(crate) const PLACES: u64 = 16;

/// How recently each part of the span was accessed.
#[derive(Clone, Debug)]
pub(crate) struct Recency {
    span: u64,
    part: u64,
    /// Bytes accessed so far, and their number at the last access to each part.
    now: u64,
    last: Vec<Option<u64>>,
}

/// Requests of a place that are looked at one by one: more than every slice has that does not search for the end of a
/// burst. A search has as many requests as fit into 12 s, which are hundreds of millions with a device in memory. Their
/// lists took 8 GB, and no interrupt was seen while they were made.
const LOOKED_AT: u64 = 16_384;

/// What a place accesses.
#[derive(Clone, Debug)]
enum Access {
    Requests(Vec<Request>),
    /// Every part of this range: more than [`LOOKED_AT`] requests in order, or at random. So many random requests
    /// leave out one part in fifty at most.
    Range {
        bytes: Range<u64>,
        requests: u64,
        accessed: u64,
        in_order: bool,
    },
}

/// A load and its seed.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub load: WorkloadConfig,
    pub seed: u64,
    access: Access,
}

impl Place {
    /// `None` if a load cannot be built; its execution reports the reason.
    pub(crate) fn new(load: WorkloadConfig, seed: u64, facts: &TargetFacts) -> Option<Place> {
        let mut workload = load.build(facts, seed).ok()?;
        if let Some(access) = range(&load) {
            return Some(Place { load, seed, access });
        }
        let mut requests = Vec::new();
        // The workload itself says which records it accesses. A second copy of its address
        // rules could differ from the load that runs.
        while let WorkloadStep::Issue { request, .. } = workload.next(Time::ZERO) {
            requests.push(request);
            // A closed loop issues its next request only after a completion. Each request
            // completes at once here, so that the workload names all of them.
            workload.completed(Finished::UNKNOWN, Time::ZERO);
        }
        Some(Place { load, seed, access: Access::Requests(requests) })
    }
}

/// The accesses of a load of more than [`LOOKED_AT`] requests; `None` of a shorter one.
fn range(load: &WorkloadConfig) -> Option<Access> {
    let requests = load.requests.filter(|requests| *requests > LOOKED_AT)?;
    let (size, start) = (load.block_size?.0, load.address.start.0);
    let bytes = start..start + load.address.length?.0;
    let in_order = load.address.pattern == Pattern::Sequential;
    Some(Access::Range { bytes, requests, accessed: requests * size, in_order })
}

impl Recency {
    /// For a span of `span` bytes that was never accessed.
    pub(crate) fn new(span: u64) -> Recency {
        let part = span.div_ceil(PARTS).max(1);
        Recency { span, part, now: 0, last: vec![None; span.div_ceil(part) as usize] }
    }

    fn parts(&self, bytes: Range<u64>) -> Range<usize> {
        let all = self.last.len();
        let first = (bytes.start / self.part) as usize;
        first.min(all)..(bytes.end.div_ceil(self.part) as usize).min(all)
    }

    /// How much of what a place accesses was accessed lately: the fourth power weighs what a cache still holds.
    fn heat(&self, place: &Place) -> f64 {
        let of_part = |part: usize| {
            let Some(last) = self.last[part] else { return 0.0 };
            // The age is counted in bytes and not in time. A cache forgets a record because of
            // the bytes that were accessed after it.
            let age = (self.now - last) as f64 / self.span as f64;
            (1.0 - age).max(0.0).powi(4)
        };
        let mean = |bytes: Range<u64>| {
            let parts = self.parts(bytes);
            let count = parts.len().max(1) as f64;
            parts.map(of_part).sum::<f64>() / count
        };
        match &place.access {
            Access::Requests(requests) => requests.iter().map(|one| mean(bytes_of(one))).sum(),
            Access::Range { bytes, requests, .. } => mean(bytes.clone()) * *requests as f64,
        }
    }

    /// The place that was accessed least lately; the first of equals.
    pub(crate) fn coldest(&self, places: impl Iterator<Item = Place>) -> Option<Place> {
        let heats = places.map(|place| (self.heat(&place), place));
        heats.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, place)| place)
    }

    /// Takes note of what a load accesses.
    pub(crate) fn accessed(&mut self, place: &Place) {
        match &place.access {
            Access::Requests(requests) => {
                for request in requests {
                    self.now += u64::from(request.length_bytes);
                    let parts = self.parts(bytes_of(request));
                    self.last[parts].fill(Some(self.now));
                }
            }
            Access::Range { bytes, accessed, in_order, .. } => {
                let parts = self.parts(bytes.clone());
                let before = self.now;
                self.now += accessed;
                for part in parts {
                    // A sequential load leaves its first part long before its last one. Random
                    // requests return to every part until the load ends.
                    let end = (part as u64 + 1) * self.part;
                    let at = before + end.saturating_sub(bytes.start).min(*accessed);
                    self.last[part] = Some(if *in_order { at } else { self.now });
                }
            }
        }
    }
}

fn bytes_of(request: &Request) -> Range<u64> {
    request.offset_bytes..request.offset_bytes + u64::from(request.length_bytes)
}

#[cfg(test)]
mod tests {
    use ssdyno_block::units::Bytes;
    use ssdyno_workload::AddressPattern;

    use super::*;

    const FACTS: TargetFacts = TargetFacts { capacity_bytes: 64 << 20, sector_bytes: 512 };
    const SPAN: u64 = 64 << 20;

    fn place(pattern: Pattern, start: u64, requests: u64, seed: u64) -> Place {
        let random = pattern == Pattern::RandomOnce;
        let length = if random { SPAN } else { requests << 16 };
        let load = WorkloadConfig {
            block_size: Some(Bytes(64 << 10)),
            address: AddressPattern {
                pattern,
                start: Bytes(start),
                length: Some(Bytes(length)),
                ..AddressPattern::default()
            },
            requests: Some(requests),
            ..WorkloadConfig::default()
        };
        Place::new(load, seed, &FACTS).unwrap()
    }

    #[test]
    fn a_sequential_slice_goes_where_nobody_was() {
        let mut recency = Recency::new(SPAN);
        // The first half was read; of places in both halves the second one is chosen, and then the older one.
        recency.accessed(&place(Pattern::Sequential, 0, 512, 1));
        let at = |start: u64| place(Pattern::Sequential, start << 20, 64, 1);
        let coldest = |recency: &Recency, starts: &[u64]| {
            recency.coldest(starts.iter().map(|start| at(*start))).unwrap().load.address.start.0
                >> 20
        };
        assert_eq!(coldest(&recency, &[4, 28, 40]), 40);
        recency.accessed(&at(40));
        assert_eq!(coldest(&recency, &[40, 28, 4]), 4);
    }

    /// A tenth of the span was read just now. Of 30 random records 3 lie there on average, and in the best of 16 orders
    /// 0.6 by the binomial law. The oldest of the tenth weighs less than the newest, so that the best is not the one with
    /// the fewest.
    #[test]
    fn a_random_slice_avoids_what_was_just_read() {
        let mut recency = Recency::new(SPAN);
        let tenth = SPAN / 10;
        recency.accessed(&place(Pattern::Sequential, 0, tenth >> 16, 1));
        let inside = |place: &Place| {
            let Access::Requests(all) = &place.access else { panic!("30 requests are a list") };
            all.iter().filter(|request| request.offset_bytes < tenth).count()
        };
        let (mut chosen, mut first) = (0, 0);
        for seed in 0..50 {
            let of = |place_seed| place(Pattern::RandomOnce, 0, 30, seed * 100 + place_seed);
            let best = recency.coldest((0..PLACES).map(of)).unwrap();
            (chosen, first) = (chosen + inside(&best), first + inside(&of(0)));
        }
        assert!(first > 100 && chosen * 3 < first, "{first} {chosen}");
    }
    const LARGE: TargetFacts = TargetFacts { capacity_bytes: 1 << 40, sector_bytes: 512 };

    /// Requests of 4 KiB on a drive of 1 TiB.
    fn long(pattern: Pattern, start: u64, requests: u64) -> Place {
        let all = pattern == Pattern::RandomOnce;
        let load = WorkloadConfig {
            block_size: Some(Bytes(4 << 10)),
            address: AddressPattern {
                pattern,
                start: Bytes(start),
                length: Some(Bytes(if all { 1 << 40 } else { requests << 12 })),
                ..AddressPattern::default()
            },
            requests: Some(requests),
            ..WorkloadConfig::default()
        };
        Place::new(load, 1, &LARGE).unwrap()
    }

    fn held(place: &Place) -> usize {
        match &place.access {
            Access::Requests(requests) => requests.capacity(),
            Access::Range { .. } => 0,
        }
    }

    /// A search for the end of a burst in memory: 4 million requests. Their list had 4 million entries for each of 16
    /// places.
    #[test]
    fn a_place_does_not_list_millions_of_requests() {
        for pattern in [Pattern::Sequential, Pattern::RandomOnce] {
            assert!(held(&long(pattern, 0, 1 << 22)) <= 2 * LOOKED_AT as usize, "{pattern:?}");
            assert!(held(&long(pattern, 0, LOOKED_AT)) >= LOOKED_AT as usize, "{pattern:?}");
        }
    }

    /// A long sequential load of the first quarter: a later one goes elsewhere. If both are in it, the later one goes
    /// to the end that was left first. After a long random load every place is equally recent.
    #[test]
    fn long_places_are_told_apart_by_their_range() {
        let mut recency = Recency::new(1 << 40);
        recency.accessed(&long(Pattern::Sequential, 0, 1 << 26));
        let coldest = |recency: &Recency, starts: [u64; 2]| {
            let places = starts.map(|start| long(Pattern::Sequential, start << 30, 1 << 20));
            recency.coldest(places.into_iter()).unwrap().load.address.start.0 >> 30
        };
        assert_eq!(coldest(&recency, [16, 512]), 512);
        assert_eq!(coldest(&recency, [200, 16]), 16);
        recency.accessed(&long(Pattern::RandomOnce, 0, 1 << 26));
        assert_eq!(coldest(&recency, [200, 16]), 200);
        assert_eq!(recency.now, 2 << 38);
    }
}
