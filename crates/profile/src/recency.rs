//! Where slices go: to records that were not accessed lately.
//!
//! A whole test accesses each record once (S2-7). Slices of several tests share one span, so without care a random read
//! finds what a sequential slice left in the cache of the device: with a disk of 128 MiB of cache and a span of 1200 MiB
//! random reads came out 2.5 % too fast.

use ssdyno_block::{Request, Time};
use ssdyno_workload::{Finished, TargetFacts, WorkloadConfig, WorkloadStep};

/// Parts of the span that are told apart. A sequential slice of a disk covers about 2 % of the usual span.
const PARTS: u64 = 4096;

/// Places that are compared for each slice. A random slice of 30 records, of which one in ten would be in a cache, hits
/// it less than once in the best of 16.
pub(crate) const PLACES: u64 = 16;

/// How recently each part of the span was accessed.
#[derive(Clone, Debug)]
pub(crate) struct Recency {
    span: u64,
    part: u64,
    /// Bytes accessed so far, and what they were when each part was accessed last.
    now: u64,
    last: Vec<Option<u64>>,
}

/// A load and its seed.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub load: WorkloadConfig,
    pub seed: u64,
    requests: Vec<Request>,
}

impl Place {
    /// `None` where a load cannot be built; whoever carries it out says why.
    pub(crate) fn new(load: WorkloadConfig, seed: u64, facts: &TargetFacts) -> Option<Place> {
        let mut workload = load.build(facts, seed).ok()?;
        let mut requests = Vec::new();
        // The workload itself says which records it accesses. A second copy of its address
        // rules could differ from the load that runs.
        while let WorkloadStep::Issue { request, .. } = workload.next(Time::ZERO) {
            requests.push(request);
            // A closed loop issues its next request only after a completion. Each request
            // completes at once here, so that the workload names all of them.
            workload.completed(Finished::UNKNOWN, Time::ZERO);
        }
        Some(Place { load, seed, requests })
    }
}

impl Recency {
    /// Of a span of `span` bytes that nobody has accessed.
    pub(crate) fn new(span: u64) -> Recency {
        let part = span.div_ceil(PARTS).max(1);
        Recency { span, part, now: 0, last: vec![None; span.div_ceil(part) as usize] }
    }

    fn parts(&self, request: &Request) -> std::ops::Range<usize> {
        let end = request.offset_bytes + u64::from(request.length_bytes);
        let all = self.last.len();
        let first = (request.offset_bytes / self.part) as usize;
        first.min(all)..(end.div_ceil(self.part) as usize).min(all)
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
        let of_request = |request: &Request| {
            let parts = self.parts(request);
            let count = parts.len().max(1) as f64;
            parts.map(of_part).sum::<f64>() / count
        };
        place.requests.iter().map(of_request).sum()
    }

    /// The place that was accessed least lately; the first of equals.
    pub(crate) fn coldest(&self, places: impl Iterator<Item = Place>) -> Option<Place> {
        let heats = places.map(|place| (self.heat(&place), place));
        heats.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, place)| place)
    }

    /// Takes note of what a load accesses.
    pub(crate) fn accessed(&mut self, place: &Place) {
        for request in &place.requests {
            self.now += u64::from(request.length_bytes);
            let parts = self.parts(request);
            self.last[parts].fill(Some(self.now));
        }
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::units::Bytes;
    use ssdyno_workload::{AddressPattern, Pattern};

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
            place.requests.iter().filter(|request| request.offset_bytes < tenth).count()
        };
        let (mut chosen, mut first) = (0, 0);
        for seed in 0..50 {
            let of = |place_seed| place(Pattern::RandomOnce, 0, 30, seed * 100 + place_seed);
            let best = recency.coldest((0..PLACES).map(of)).unwrap();
            (chosen, first) = (chosen + inside(&best), first + inside(&of(0)));
        }
        assert!(first > 100 && chosen * 3 < first, "{first} {chosen}");
    }
}
