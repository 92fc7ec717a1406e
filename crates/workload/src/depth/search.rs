//! Which depth comes next.

/// The consequence of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// At the depth that there is now.
    GoOn,
    /// At the depth that there is now, which is lower: what is outstanding drains first.
    Lower,
    /// The present depth may be the result: what is outstanding drains, and one more window at this depth confirms it.
    Found,
    /// The present depth passed again and is the result: what is outstanding drains, and the recorded window follows.
    Settled,
    /// It is the lowest already.
    LowestFails,
}

/// A depth between one that passed and one that failed.
#[derive(Clone, Debug)]
pub(super) struct Search {
    depth: u64,
    /// The greatest that passed last; at first 1.
    low: u64,
    /// The least that failed last; at first the most that may be.
    high: u64,
    most: u64,
    has_failed: bool,
    keeps_adapting: bool,
    /// The window before this one passed at the same depth.
    is_found: bool,
    /// Windows in a row that passed next to one that failed.
    steady: u32,
}

/// So many windows pass before the depth that failed last is tried again: it may have failed by chance (io_u.c,
/// `lat_target_success`).
const STEADY: u32 = 3;

impl Search {
    /// Among depths of 1 to `most`; where it `keeps_adapting` it never ends.
    pub(super) fn new(most: u64, keeps_adapting: bool) -> Search {
        // The search begins at depth 1 and doubles, as fio does. A start at the greatest depth
        // would fill the queue first, and its drain can take longer than all the small windows.
        let most = most.max(1);
        Search {
            depth: 1,
            low: 1,
            high: most,
            most,
            has_failed: false,
            keeps_adapting,
            is_found: false,
            steady: 0,
        }
    }

    /// The depth to try.
    pub(super) fn depth(&self) -> u64 {
        self.depth
    }

    /// Enough requests were in time.
    pub(super) fn passed(&mut self) -> Verdict {
        let before = self.depth;
        self.low = before;
        // The depth above failed once, perhaps by chance. After three passes the upper end moves up
        // by one, so an adapting job can rise again when the device becomes faster.
        if self.has_failed && before + 1 == self.high {
            self.steady += 1;
            if self.steady >= STEADY {
                (self.high, self.steady) = (self.high + 1, 0);
            }
        }
        let next =
            // Doubling finds the range in log2(depth) windows and halving finds the depth within it
            // in as many again. The property test below bounds the sum by 2 * (log2 + 2).
            if self.has_failed { (before + self.high) / 2 } else { before.saturating_mul(2) };
        self.depth = next.min(self.most);
        if self.keeps_adapting || self.depth != before {
            return Verdict::GoOn;
        }
        // The first window at this depth follows other depths, whose requests may still influence
        // the device. Only a second one shows that the depth meets the target by itself.
        if self.is_found {
            return Verdict::Settled;
        }
        self.is_found = true;
        Verdict::Found
    }

    /// Too many took too long.
    pub(super) fn failed(&mut self) -> Verdict {
        (self.steady, self.is_found) = (0, false);
        if self.depth == 1 {
            return Verdict::LowestFails;
        }
        self.has_failed = true;
        self.high = self.depth;
        // A depth that passed before and fails now moves the lower end, too. Otherwise the range
        // would have no width, and the search would try this depth for ever.
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = (self.depth + self.low) / 2;
        Verdict::Lower
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Depths that are tried until one is found, where those up to `fits` pass.
    fn tried(most: u64, fits: u64) -> Vec<u64> {
        let mut search = Search::new(most, false);
        let mut all = Vec::new();
        loop {
            all.push(search.depth());
            assert!(all.len() < 200, "{all:?}");
            let passes = search.depth() <= fits;
            match if passes { search.passed() } else { search.failed() } {
                Verdict::Found => return all,
                Verdict::LowestFails => return Vec::new(),
                _ => {}
            }
        }
    }

    /// By hand, after io_u.c of fio 3.42.
    #[test]
    fn depths_double_and_then_halve_as_in_fio() {
        assert_eq!(tried(64, 5), [1, 2, 4, 8, 6, 5]);
        assert_eq!(tried(64, 20), [1, 2, 4, 8, 16, 32, 24, 20, 22, 21, 20]);
        assert_eq!(tried(8, 8), [1, 2, 4, 8]);
        assert_eq!(tried(8, 100), [1, 2, 4, 8]);
        assert_eq!(tried(1, 1), [1]);
        assert_eq!(tried(12, 12), [1, 2, 4, 8, 12]);
        assert_eq!(tried(64, 0), [] as [u64; 0]);
        // Here fio never ends: 64 fails, 63 passes, and it doubles to 64 again.
        assert_eq!(tried(64, 63).last(), Some(&63));
    }

    proptest! {
        /// The search finds any result, and in few windows.
        #[test]
        fn the_greatest_depth_that_passes_is_found(most in 1u64..5_000, fits in 1u64..6_000) {
            let all = tried(most, fits);
            prop_assert_eq!(*all.last().unwrap(), fits.min(most));
            prop_assert!(all.len() <= 2 * (most.ilog2() as usize + 2), "{:?}", all);
        }
    }

    /// A depth that passes once and fails in the next window is not the result, and a lower one is confirmed in the same way.
    #[test]
    fn a_depth_that_fails_when_it_is_confirmed_is_given_up() {
        let mut search = Search::new(4, false);
        let verdicts: Vec<_> = [true, true, true, false, true, false, true, true]
            .map(|passes| (search.depth(), if passes { search.passed() } else { search.failed() }))
            .into();
        let expected = [
            (1, Verdict::GoOn),
            (2, Verdict::GoOn),
            (4, Verdict::Found),
            (4, Verdict::Lower),
            (3, Verdict::Found),
            (3, Verdict::Lower),
            (2, Verdict::Found),
            (2, Verdict::Settled),
        ];
        assert_eq!(verdicts, expected);
        assert_eq!(search.depth(), 2);
    }

    /// With `latency_run` the depth that failed is tried again after three windows, and a target that became
    /// slower or faster is followed.
    #[test]
    fn a_search_that_keeps_adapting_follows() {
        let mut search = Search::new(64, true);
        let mut depths = Vec::new();
        for window in 0..200 {
            let fits = if window < 100 { 10 } else { 30 };
            depths.push(search.depth());
            let _ = if search.depth() <= fits { search.passed() } else { search.failed() };
        }
        assert!(depths[20..100].iter().all(|depth| (10..=11).contains(depth)), "{depths:?}");
        assert!(depths[20..100].contains(&11), "{depths:?}");
        assert!(depths[195..].iter().all(|depth| (29..=31).contains(depth)), "{depths:?}");
    }
}
