//! Request sizes: intervals, and which of their sizes are drawn (S2-2, S2-3, S2-8).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use ssdyno_block::units::Bytes;
use ssdyno_engine::Rng;

/// More sizes than that are a mistake in a gap.
const SIZES_MAX: u64 = 65_536;

/// Request sizes from a smallest to a largest, a gap apart. The largest belongs to it even where the last gap is
/// shorter. Written as text: `8KiB..64KiB/8KiB`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SizeInterval {
    smallest: u64,
    largest: u64,
    gap: u64,
}

impl TryFrom<String> for SizeInterval {
    type Error = String;

    fn try_from(text: String) -> Result<SizeInterval, String> {
        text.parse()
    }
}

impl From<SizeInterval> for String {
    fn from(interval: SizeInterval) -> String {
        interval.to_string()
    }
}

impl SizeInterval {
    /// An interval in bytes.
    ///
    /// # Errors
    /// It is empty or reversed, has no gap, or has more than 65536 sizes.
    pub fn new(smallest: Bytes, largest: Bytes, gap: Bytes) -> Result<SizeInterval, String> {
        let (smallest, largest, gap) = (smallest.0, largest.0, gap.0);
        if gap == 0 {
            return Err("the gap is 0; use the distance between two sizes, such as 8KiB".to_owned());
        }
        if smallest == 0 {
            return Err("a request of 0 bytes measures nothing; begin with a size above 0".into());
        }
        if largest < smallest {
            return Err("the interval is reversed; give the smaller size first".to_owned());
        }
        if largest == smallest {
            return Err("the interval is empty; give two different sizes".to_owned());
        }
        // The number is checked before the list is made. A gap of one byte up to 4 MiB would
        // make a list of four million sizes.
        if (largest - smallest).div_ceil(gap) > SIZES_MAX - 1 {
            return Err(format!("more than {SIZES_MAX} sizes; make the gap larger"));
        }
        Ok(SizeInterval { smallest, largest, gap })
    }

    /// All its sizes in bytes, ascending.
    pub fn sizes(&self) -> Vec<u64> {
        // Both extremes belong to the interval (S2-2). The steps alone would leave out the
        // largest size, and the last gap may be shorter.
        let steps = (self.smallest..self.largest).step_by(self.gap as usize);
        steps.chain([self.largest]).collect()
    }

    /// `points` of its sizes at random, ascending: always both extremes (S2-2), and all where it has no more.
    pub fn draw(&self, points: u32, rng: &mut Rng) -> Vec<u64> {
        let mut inner = self.sizes();
        let largest = inner.pop();
        let mut drawn = vec![inner.remove(0)];
        for _ in 2..points {
            if inner.is_empty() {
                break;
            }
            // Sizes are drawn without replacement. A size that is drawn twice would leave the
            // line with one point less than the user asked for.
            drawn.push(inner.swap_remove(rng.below(inner.len() as u64) as usize));
        }
        drawn.extend(largest);
        drawn.sort_unstable();
        drawn
    }
}

impl FromStr for SizeInterval {
    type Err = String;
    fn from_str(text: &str) -> Result<SizeInterval, String> {
        let form = || "use SMALLEST..LARGEST/GAP, such as 8KiB..64KiB/8KiB".to_owned();
        let (range, gap) = text.split_once('/').ok_or_else(form)?;
        let (smallest, largest) = range.split_once("..").ok_or_else(form)?;
        let bytes = |text: &str| {
            let error = |error: ssdyno_block::units::UnitError| error.to_string();
            text.trim().parse::<Bytes>().map_err(error)
        };
        SizeInterval::new(bytes(smallest)?, bytes(largest)?, bytes(gap)?)
    }
}

impl fmt::Display for SizeInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}/{}", Bytes(self.smallest), Bytes(self.largest), Bytes(self.gap))
    }
}

/// The intervals of the paper: 8 KiB to 64 KiB every 8 KiB, 64 KiB to 4 MiB every 32 KiB (S2-8).
pub fn default_sizes() -> Vec<SizeInterval> {
    let kib = |kib: u64| kib << 10;
    vec![
        SizeInterval { smallest: kib(8), largest: kib(64), gap: kib(8) },
        SizeInterval { smallest: kib(64), largest: kib(4096), gap: kib(32) },
    ]
}

/// The sizes of some intervals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sizes {
    intervals: Vec<SizeInterval>,
    distinct: Vec<u64>,
}

impl Sizes {
    /// The sizes of `intervals`, each once (S2-9).
    pub fn new(intervals: &[SizeInterval]) -> Sizes {
        let distinct: BTreeSet<u64> = intervals.iter().flat_map(SizeInterval::sizes).collect();
        Sizes { intervals: intervals.to_vec(), distinct: distinct.into_iter().collect() }
    }

    /// Every size in bytes once, ascending.
    pub fn distinct(&self) -> &[u64] {
        &self.distinct
    }

    /// The intervals, in the order that was given.
    pub fn intervals(&self) -> &[SizeInterval] {
        &self.intervals
    }

    /// The sizes to be measured, each once, ascending: `points` of each interval, drawn with `seed`. The draw of
    /// an interval does not depend on the others.
    pub fn draw(&self, points: u32, seed: u64) -> Vec<u64> {
        let drawn = self.intervals.iter().flat_map(|interval| {
            // The interval is part of the name of the random stream. An interval that the user
            // adds therefore does not change the sizes of the others.
            let mut rng = Rng::new(seed, &format!("profile sizes {interval}"));
            interval.draw(points, &mut rng)
        });
        drawn.collect::<BTreeSet<u64>>().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KIB: u64 = 1 << 10;

    #[test]
    fn the_example_of_the_paper() {
        let interval: SizeInterval = "8KiB..40KiB/8KiB".parse().unwrap();
        assert_eq!(interval.sizes(), [8, 16, 24, 32, 40].map(|size| size * KIB));
        assert_eq!(interval.to_string(), "8KiB..40KiB/8KiB");
        let draw = |points, seed| Sizes::new(&[interval]).draw(points, seed);
        assert_eq!(draw(2, 1), [8 * KIB, 40 * KIB]);
        assert_eq!(draw(9, 1), interval.sizes());
        assert_eq!(draw(3, 7), draw(3, 7));
        // The one in the middle is drawn: over some seeds it is each of the three.
        let middles: BTreeSet<u64> = (0..40).map(|seed| draw(3, seed)[1] / KIB).collect();
        assert_eq!(middles.into_iter().collect::<Vec<_>>(), [16, 24, 32]);
    }

    #[test]
    fn the_sizes_of_the_paper_are_134() {
        let intervals = default_sizes();
        assert_eq!(intervals[0].sizes().len(), 8);
        assert_eq!(intervals[1].sizes().len(), 127);
        let sizes = Sizes::new(&intervals);
        assert_eq!(sizes.distinct().len(), 134);
        assert_eq!(sizes.draw(2, 1), [8 * KIB, 64 * KIB, 4096 * KIB]);
        let written: Vec<SizeInterval> = "8KiB..64KiB/8KiB,64KiB..4MiB/32KiB"
            .split(',')
            .map(|interval| interval.parse().unwrap())
            .collect();
        assert_eq!(written, intervals);
    }

    #[test]
    fn impossible_intervals_are_refused() {
        for (text, said) in [
            ("8KiB..64KiB/0B", "gap is 0"),
            ("64KiB..8KiB/8KiB", "reversed"),
            ("8KiB..8KiB/8KiB", "empty"),
            ("0B..8KiB/4KiB", "0 bytes"),
            ("8KiB..64KiB", "SMALLEST..LARGEST/GAP"),
            ("8KiB/8KiB", "SMALLEST..LARGEST/GAP"),
            ("", "SMALLEST..LARGEST/GAP"),
            ("x..8KiB/1KiB", "size with its unit"),
            ("1B..1TiB/1B", "more than 65536"),
        ] {
            let error = text.parse::<SizeInterval>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    /// The limit itself is allowed: 65536 sizes, with and without a shorter last gap. One more is refused.
    #[test]
    fn as_many_sizes_as_the_limit_are_allowed() {
        let interval =
            |largest: u64, gap: u64| SizeInterval::new(Bytes(1), Bytes(largest), Bytes(gap));
        for (largest, gap) in [(65_536, 1), (131_071, 2), (131_070, 2)] {
            assert_eq!(interval(largest, gap).unwrap().sizes().len(), 65_536, "{largest}/{gap}");
        }
        for (largest, gap) in [(65_537, 1), (131_072, 2), (131_073, 2)] {
            assert!(interval(largest, gap).is_err(), "{largest}/{gap}");
        }
    }

    proptest! {
        #[test]
        fn draws_are_distinct_sizes_with_both_extremes(
            smallest in 1u64..50, more in 1u64..300, gap in 1u64..40, points in 2u32..12, seed: u64,
        ) {
            let bytes = |sectors: u64| Bytes(sectors * 512);
            let interval =
                SizeInterval::new(bytes(smallest), bytes(smallest + more), bytes(gap)).unwrap();
            let all = interval.sizes();
            let drawn = interval.draw(points, &mut ssdyno_engine::Rng::new(seed, "test"));
            prop_assert_eq!(drawn.len(), all.len().min(points as usize));
            prop_assert!(drawn.windows(2).all(|two| two[0] < two[1]));
            prop_assert!(drawn.iter().all(|size| all.contains(size)));
            prop_assert_eq!((drawn.first(), drawn.last()), (all.first(), all.last()));
        }
    }
}
