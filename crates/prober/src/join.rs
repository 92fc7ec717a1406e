//! Two samples that follow each other as one.

use std::collections::BTreeMap;

use crate::figures::{Figures, Joining};
use crate::sample::SystemSample;

/// Most names in a map of a joined sample. A host of containers makes a network interface for each of them; without
/// a limit a long series would collect all that ever were.
pub(crate) const NAMES_MOST: usize = 512;

impl Joining {
    /// `later` ends after `earlier`. Figures that only one of them has keep the time that they cover, so that no
    /// integral is lost.
    pub(crate) fn samples(self, earlier: &SystemSample, later: &SystemSample) -> SystemSample {
        SystemSample {
            sequence: later.sequence,
            monotonic_ns: later.monotonic_ns,
            unix_ns: later.unix_ns,
            // The joined sample ends where the later one ends. Its interval is the sum, so the start
            // follows from both, and joined points have no gaps.
            interval_ns: earlier.interval_ns.saturating_add(later.interval_ns),
            cpu: self.options(earlier.cpu, later.cpu),
            cores: self.maps(&earlier.cores, &later.cores),
            activity: self.options(earlier.activity, later.activity),
            memory: self.options(earlier.memory, later.memory),
            swap: self.options(earlier.swap, later.swap),
            interfaces: self.maps(&earlier.interfaces, &later.interfaces),
            disks: self.maps(&earlier.disks, &later.disks),
            discards: self.maps(&earlier.discards, &later.discards),
            flushes: self.maps(&earlier.flushes, &later.flushes),
            power: self.maps(&earlier.power, &later.power),
            pressure: self.maps(&earlier.pressure, &later.pressure),
        }
    }

    fn options<const N: usize, F: Figures<N>>(self, a: Option<F>, b: Option<F>) -> Option<F> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.join(a, b)),
            // A source that was unreadable in one of the samples keeps its figures with the time that they cover.
            // Dropping them would lose the integral of the other sample.
            (a, b) => a.or(b),
        }
    }

    fn maps<const N: usize, K: Ord + Clone, F: Figures<N>>(
        self,
        earlier: &BTreeMap<K, F>,
        later: &BTreeMap<K, F>,
    ) -> BTreeMap<K, F> {
        // The names of the later sample come first, so that at the limit the interfaces that exist now
        // are kept, and those of removed containers are not.
        let mut all = later.clone();
        for (name, &figures) in earlier {
            if let Some(other) = all.get_mut(name) {
                *other = self.join(figures, *other);
            } else if all.len() < NAMES_MOST {
                all.insert(name.clone(), figures);
            }
        }
        all
    }
}
