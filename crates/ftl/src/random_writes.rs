//! The random writes that bring a device into its steady state.

use ssdyno_engine::Rng;

/// Uniform random writes of a host to a device, as they reach one part of it.
///
/// A write buffer may write back several pages that follow one another together (BPLRU: a whole logical
/// block). They lie next to one another in flash then, and become stale together, so that cleaning costs less
/// than with pages that were written one by one.
pub(crate) struct RandomWrites {
    rng: Rng,
    /// Pages of the part, numbered from 0.
    pages: u32,
    /// A page of the device out of so many is one of the part: those whose number it divides.
    one_in: u32,
    /// Pages of the device that are written together, beginning with a multiple of that.
    together: u32,
    /// The rest of the pages that are written together now.
    next: u32,
    end: u32,
}

impl RandomWrites {
    /// Writes to a part with `pages` pages, at least one: one page out of `one_in` of a device to which
    /// `together` are written at a time.
    pub(crate) fn new(rng: Rng, pages: u32, (one_in, together): (u32, u32)) -> RandomWrites {
        // Of fewer the part gets one at most.
        let together = if together > one_in { together } else { 1 };
        RandomWrites { rng, pages, one_in, together, next: 0, end: 0 }
    }

    /// Pages of the part that are written together, rounded up.
    pub(crate) fn at_a_time(&self) -> u32 {
        if self.together == 1 { 1 } else { self.together.div_ceil(self.one_in) }
    }

    /// The page of the part that is written next.
    #[inline]
    pub(crate) fn next(&mut self) -> u32 {
        if self.together == 1 {
            return self.rng.below(u64::from(self.pages)) as u32;
        }
        if self.next == self.end {
            self.choose();
        }
        self.next += 1;
        self.next - 1
    }

    /// Chooses what is written together next. As more pages than [`one_in`](RandomWrites::one_in) are, one
    /// of them at least is in the part.
    fn choose(&mut self) {
        let (together, one_in) = (u64::from(self.together), u64::from(self.one_in));
        // The draw is over groups of the device, not over pages of the part. A group that begins
        // at a multiple of `together` may hold one page of the part more than its neighbour, as
        // on the device.
        let last = u64::from(self.pages - 1) * one_in;
        let first = self.rng.below(last / together + 1) * together;
        let of_part = |page: u64| page.div_ceil(one_in).min(u64::from(self.pages)) as u32;
        (self.next, self.end) = (of_part(first), of_part(first + together));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(pages: u32, part: (u32, u32)) -> RandomWrites {
        RandomWrites::new(Rng::new(1, "random writes"), pages, part)
    }

    /// Every page is as likely as any other, but for the last where few of its group are in the device.
    #[test]
    fn pages_are_equally_likely() {
        for (pages, part) in [(96, (1, 1)), (96, (4, 1)), (96, (1, 8)), (96, (4, 64)), (96, (3, 8))]
        {
            let mut writes = writes(pages, part);
            let mut counts = vec![0_u32; pages as usize];
            for _ in 0..960_000 {
                counts[writes.next() as usize] += 1;
            }
            // Five standard deviations of the 10 000 of a page are 5 %.
            let near = |count: &u32| (9_500..=10_500).contains(count);
            assert!(counts.iter().all(near), "{part:?}: {counts:?}");
        }
    }

    /// 64 pages over 4 planes are 16 in each, and 8 over 3 two or three.
    #[test]
    fn a_part_gets_its_share_of_what_is_written_together() {
        for (part, at_a_time) in
            [((4, 64), 16), ((3, 8), 3), ((32, 64), 2), ((64, 64), 1), ((1, 5), 5)]
        {
            let mut writes = writes(4_800, part);
            assert_eq!(writes.at_a_time(), at_a_time);
            let (one_in, together) = part;
            let group = |page: u32| page * one_in / together;
            let all: Vec<u32> = (0..100_000).map(|_| writes.next()).collect();
            let runs = all.chunk_by(|a, b| *b == *a + 1 && group(*a) == group(*b));
            let longest = runs.map(<[u32]>::len).max();
            assert_eq!(longest, Some(at_a_time as usize), "{part:?}");
        }
    }
}
