//! How long requests are (fio: `bs`, `bsrange`, `bssplit`), for each direction.

use ssdyno_engine::Rng;

use super::reader::{Answer, Reader};
use super::values::{self, directions, percent};
use crate::config::SIZE_MAX;

/// Most sizes of a split, as in fio.
const SIZES_MAX: usize = 64;
/// Sizes are drawn so often until one fits; then the longest that does is taken.
const DRAWS_MAX: usize = 64;

/// The sizes of one direction.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Sizes {
    /// Bytes and weights; one or more.
    Split(Vec<(u64, f64)>),
    /// Multiples of the first up to the second, as fio draws them.
    Range(u64, u64),
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes::Split(vec![(4096, 1.0)])
    }
}

impl Sizes {
    pub(super) fn min(&self) -> u64 {
        match self {
            Sizes::Split(all) => all.iter().map(|(size, _)| *size).min().unwrap_or(1),
            Sizes::Range(min, _) => *min,
        }
    }

    pub(super) fn max(&self) -> u64 {
        match self {
            Sizes::Split(all) => all.iter().map(|(size, _)| *size).max().unwrap_or(1),
            Sizes::Range(_, max) => *max,
        }
    }

    /// Whether all requests are as long.
    pub(super) fn is_fixed(&self) -> bool {
        self.min() == self.max()
    }

    /// The mean size of a request, where all fit.
    pub(super) fn mean(&self) -> f64 {
        match self {
            Sizes::Split(all) => {
                let weights: f64 = all.iter().map(|(_, weight)| weight).sum();
                all.iter().map(|(size, weight)| *size as f64 * weight).sum::<f64>() / weights
            }
            Sizes::Range(min, max) => {
                // The mean is a sum over the midpoints of 1000 equal draws. A closed form would
                // need the same case distinction as `in_range` for the part that is cut at `max`.
                let steps = 1_000;
                let at = |step: u64| in_range(*min, *max, (step as f64 + 0.5) / steps as f64);
                (0..steps).map(|step| at(step) as f64).sum::<f64>() / steps as f64
            }
        }
    }

    /// A size of up to `room`, `None` where none fits.
    pub(super) fn draw(&self, room: u64, rng: &mut Rng) -> Option<u64> {
        // A fixed size consumes no random number. The places of a job with one size then do not
        // depend on whether the size is given by `bs` or `bssplit`.
        if self.is_fixed() {
            return Some(self.min()).filter(|size| *size <= room);
        }
        if self.min() > room {
            return None;
        }
        let once = |rng: &mut Rng| match self {
            Sizes::Split(all) => {
                let mut left = rng.unit() * all.iter().map(|(_, weight)| weight).sum::<f64>();
                let drawn = all.iter().find(|(_, weight)| {
                    left -= weight;
                    left < 0.0
                });
                drawn.or(all.last()).map_or(0, |(size, _)| *size)
            }
            Sizes::Range(min, max) => in_range(*min, *max, rng.unit()),
        };
        // Draws that do not fit are repeated, which keeps the proportions of the sizes that do. The
        // limit ends the loop for a size whose share is nearly zero.
        let drawn = (0..DRAWS_MAX).map(|_| once(rng)).find(|size| *size <= room);
        drawn.or_else(|| match self {
            Sizes::Split(all) => {
                all.iter().map(|(size, _)| *size).filter(|size| *size <= room).max()
            }
            Sizes::Range(min, _) => Some(room / min * min),
        })
    }
}

/// fio's own way (`get_next_buflen`): all multiples of `min` are equally likely up to `max`.
fn in_range(min: u64, max: u64, draw: f64) -> u64 {
    let size = min + (max as f64 * draw) as u64;
    (size / min * min).min(max)
}

impl Reader<'_> {
    /// Sizes for reads, writes and trims.
    pub(super) fn sizes(&mut self) -> Answer<[Sizes; 3]> {
        let sizes = self.sizes_as_written()?;
        if let Some(size) = sizes.iter().map(Sizes::max).find(|size| *size > SIZE_MAX) {
            return self.wrong(format!("a block of {size} B"), "use at most 2g");
        }
        Ok(sizes)
    }

    fn sizes_as_written(&mut self) -> Answer<[Sizes; 3]> {
        if let Some(entry) = self.find(&["bssplit"]) {
            let text = entry.value.unwrap_or_default();
            let all = text.split(',').map(|part| self.split(part)).collect::<Answer<Vec<_>>>()?;
            // An omitted direction takes the last one that is given: `bssplit=4k/100` holds for
            // reads, writes and trims alike.
            let of = |direction: usize| all[direction.min(all.len() - 1)].clone();
            return Ok([of(0), of(1), of(2)]);
        }
        if self.find(&["bsrange", "blocksize_range"]).is_some() {
            let range = |text: &str| {
                let (low, high) = text.split_once(['-', ':']).unwrap_or((text, text));
                let (low, high) = (values::bytes(low)?, values::bytes(high)?);
                (0 < low && low <= high).then_some(Sizes::Range(low, high))
            };
            let all = self.value(
                &["bsrange", "blocksize_range"],
                "a range such as 4k-16k, or one for reads, writes and trims",
                |text| directions(text, range),
            )?;
            return Ok(all.unwrap_or_default().map(Option::unwrap_or_default));
        }
        let size = |text: &str| values::bytes(text).filter(|size| *size > 0);
        let all = self.value(
            &["bs", "blocksize"],
            "a size such as 4k, or one for reads, writes and trims",
            |text| directions(text, size),
        )?;
        let one =
            |size: Option<u64>| size.map_or_else(Sizes::default, |s| Sizes::Split(vec![(s, 1.0)]));
        Ok(all.unwrap_or_default().map(one))
    }

    /// `4k/10:64k/50:32k/`: sizes without a share have what is left, equally.
    fn split(&mut self, text: &str) -> Answer<Sizes> {
        let mut sizes = Vec::new();
        let mut open = Vec::new();
        for part in text.split(':') {
            let (size, share) = part.split_once('/').unwrap_or((part, ""));
            let weight = if share.is_empty() { None } else { percent(share) };
            let Some(size) = values::bytes(size).filter(|size| *size > 0) else {
                return self.wrong(
                    format!("`{part}` is not a size and a share"),
                    "use the form 4k/60:16k/40",
                );
            };
            if weight.is_none() {
                if !share.is_empty() {
                    return self.wrong(format!("`{share}` is not a share"), "use 0 to 100");
                }
                open.push(sizes.len());
            }
            sizes.push((size, weight.unwrap_or(0.0)));
        }
        let given: f64 = sizes.iter().map(|(_, weight)| weight).sum();
        // The tolerance covers decimal shares, whose sum as binary numbers can be slightly above
        // 100. A real mistake exceeds it by far.
        if given > 100.001 {
            return self.wrong(format!("the shares sum to {given} %"), "make them sum to 100");
        }
        for at in &open {
            sizes[*at].1 = (100.0 - given).max(0.0) / open.len() as f64;
        }
        sizes.retain(|(_, weight)| *weight > 0.0);
        if sizes.is_empty() || sizes.len() > SIZES_MAX {
            let what = format!(
                "`bssplit` has {} sizes with a share; 1 to {SIZES_MAX} can be mixed",
                sizes.len()
            );
            return self.wrong(what, "leave out the rarest");
        }
        Ok(Sizes::Split(sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_drawn_as_in_fio() {
        // 4k + [0, 16k) cut to multiples of 4k and to 16k: a quarter each, the last two together.
        let (sizes, mut rng) = (Sizes::Range(4096, 16_384), Rng::new(1, "sizes"));
        let mut seen = [0u32; 5];
        for _ in 0..40_000 {
            seen[(sizes.draw(u64::MAX, &mut rng).unwrap() / 4096) as usize] += 1;
        }
        for (times, share) in [(1, 0.25), (2, 0.25), (3, 0.25), (4, 0.25)] {
            assert!((f64::from(seen[times]) / 40_000.0 - share).abs() < 0.01, "{seen:?}");
        }
        assert!((sizes.mean() - 10_240.0).abs() < 20.0);
        assert_eq!(Sizes::Range(4096, 10_000).max(), 10_000);
    }

    #[test]
    fn what_does_not_fit_is_drawn_again() {
        let sizes = Sizes::Split(vec![(4096, 1.0), (65_536, 1e6)]);
        let mut rng = Rng::new(1, "sizes");
        assert_eq!(sizes.draw(65_535, &mut rng), Some(4096));
        assert_eq!(sizes.draw(4095, &mut rng), None);
        assert_eq!(Sizes::Range(512, 1 << 20).draw(700, &mut rng), Some(512));
    }
}
