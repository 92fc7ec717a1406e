//! Busy time over time: a fixed number of buckets whose length doubles as the run goes on.

/// Most buckets of a series.
pub(crate) const BUCKETS: usize = 512;

/// Length of a bucket at first, in ps.
const FIRST_LENGTH: u64 = 1_000_000_000;

/// Busy picoseconds per bucket and class. Integers, so that nothing is lost in rounding however
/// many events there are; a bucket holds 2^64 ps, 281 s of 65 536 parts at once.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// `BUCKETS` rows of `classes`.
    cells: Vec<u64>,
    classes: usize,
    /// Where bucket 0 begins.
    start: u64,
    length: u64,
    /// The bucket used last: most events fall into the same one as the event before.
    low: u64,
    high: u64,
    row: usize,
}

impl Series {
    pub(crate) fn new(classes: usize) -> Series {
        let mut series = Series {
            cells: vec![0; BUCKETS * classes],
            classes,
            start: 0,
            length: FIRST_LENGTH,
            low: 0,
            high: 0,
            row: 0,
        };
        series.reset(0);
        series
    }

    /// Empties all buckets; the first one begins at `start` ps.
    pub(crate) fn reset(&mut self, start: u64) {
        self.cells.fill(0);
        self.start = start;
        self.length = FIRST_LENGTH;
        self.stay_at(0);
    }

    fn stay_at(&mut self, bucket: usize) {
        self.row = bucket * self.classes;
        self.low = self.start.saturating_add((bucket as u64).saturating_mul(self.length));
        self.high = self.low.saturating_add(self.length);
    }

    /// Busy from `from` to `to` ps, both at or after the start.
    #[inline]
    pub(crate) fn add(&mut self, class: usize, from: u64, to: u64) {
        if from >= self.low && to <= self.high {
            self.cells[self.row + class] += to - from;
        } else if from < to {
            self.add_across(class, from, to);
        }
    }

    #[cold]
    fn add_across(&mut self, class: usize, from: u64, to: u64) {
        while to - self.start > self.length.saturating_mul(BUCKETS as u64) {
            self.double();
        }
        let mut from = from;
        while from < to {
            self.stay_at(((from - self.start) / self.length) as usize);
            let until = to.min(self.high);
            self.cells[self.row + class] += until - from;
            from = until;
        }
    }

    fn double(&mut self) {
        for bucket in 0..BUCKETS {
            for class in 0..self.classes {
                let from = bucket * self.classes + class;
                let ps = std::mem::take(&mut self.cells[from]);
                self.cells[bucket / 2 * self.classes + class] += ps;
            }
        }
        self.length = self.length.saturating_mul(2);
        self.stay_at(0);
    }

    /// Makes the buckets reach to `end` ps.
    pub(crate) fn cover(&mut self, end: u64) {
        while end - self.start > self.length.saturating_mul(BUCKETS as u64) {
            self.double();
        }
        self.stay_at(0);
    }

    /// Length of a bucket in ps.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The rows of busy ps by class, from the first bucket on.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u64]> {
        // A device that only joins others has no parts, and no rows.
        self.cells.chunks_exact(self.classes.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// For any order and lengths, nothing is lost, and every bucket equals a bucket-by-bucket
        /// intersection.
        #[test]
        fn every_picosecond_lands_in_its_bucket(
            start in 0u64..1 << 40,
            spans in prop::collection::vec((0u64..1 << 42, 0u64..1 << 41, 0usize..3), 1..40),
        ) {
            let mut series = Series::new(3);
            series.reset(start);
            for (from, length, class) in &spans {
                series.add(*class, start + from, start + from + length);
            }
            let length = series.length();
            for (bucket, row) in series.rows().enumerate() {
                let low = bucket as u64 * length;
                let mut want = [0; 3];
                for (from, span, class) in &spans {
                    let overlap = (from + span).min(low + length).saturating_sub(*from.max(&low));
                    want[*class] += overlap;
                }
                prop_assert_eq!(row, &want[..]);
            }
        }
    }
}
