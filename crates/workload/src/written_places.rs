//! How unequally a load writes: the places of its range by how likely a write goes to each.
//!
//! The share of the places that were overwritten shows how far a drive is from the state that a load leads to. It follows
//! from the probabilities alone: a run need not remember which places it wrote.

use crate::hot::HotPart;

/// The places that a load writes.
#[derive(Clone, PartialEq, Debug)]
pub struct WrittenPlaces {
    /// Number of places.
    places: f64,
    /// Mean size of a write in bytes.
    write_bytes: f64,
    classes: Vec<HotPart>,
}

impl WrittenPlaces {
    /// Places of a range of `range_bytes`: each is one write of `write_bytes`, or a page of `page_bytes` where writes are
    /// smaller. `classes` makes the classes of this number of places; `None` where that does.
    pub(crate) fn new(
        range_bytes: f64,
        [write_bytes, page_bytes]: [f64; 2],
        classes: impl FnOnce(u64) -> Option<Vec<HotPart>>,
    ) -> Option<WrittenPlaces> {
        // A small write invalidates the rest of its page as well.
        let places = (range_bytes / write_bytes.max(page_bytes)) as u64;
        let classes = classes(places.max(1))?;
        Some(WrittenPlaces { places: places.max(1) as f64, write_bytes, classes })
    }

    /// Expected share of the places that were written at least once when the load has written `bytes`, 0 to 1. Places that
    /// the load never writes do not count.
    pub fn overwritten(&self, bytes: f64) -> f64 {
        let writes = bytes / self.write_bytes;
        let (mut overwritten, mut all) = (0.0, 0.0);
        for class in self.classes.iter().filter(|class| class.access > 0.0) {
            // Writes to one of many places are rare and independent, so their number has a Poisson
            // distribution. It is 0 with the probability e^-mean.
            let mean = writes * class.access / (class.space * self.places);
            overwritten += class.space * -(-mean).exp_m1();
            all += class.space;
        }
        if all > 0.0 { overwritten / all } else { 0.0 }
    }

    /// The bytes that the load writes until `share` of the places were overwritten, to 0.1 %; infinite where that takes too
    /// many for any run.
    pub fn bytes_until(&self, share: f64) -> f64 {
        // The share only grows, so the bounds enclose the answer.
        let (mut low, mut high) = (0.0, self.write_bytes);
        while self.overwritten(high) < share {
            (low, high) = (high, high * 2.0);
            if high > f64::from(f32::MAX) {
                return f64::INFINITY;
            }
        }
        while high - low > 1e-3 * high {
            let middle = (low + high) / 2.0;
            if self.overwritten(middle) < share {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// All places, equally likely.
pub(crate) fn uniform() -> Vec<HotPart> {
    vec![HotPart { space: 1.0, access: 1.0 }]
}

/// Places whose rank k from 1 has the weight k^-`theta`.
pub(crate) fn zipf(places: u64, theta: f64) -> Vec<HotPart> {
    by_rank(places, |first, end| (end - first) * ((first + 1.0 + end) / 2.0).powf(-theta))
}

/// Places of which a share `h` receives a share 1 - `h` of the writes, and a share of this share again.
pub(crate) fn self_similar(places: u64, h: f64) -> Vec<HotPart> {
    let power = (1.0 - h).ln() / h.ln();
    let below = |rank: f64| (rank / places as f64).powf(power);
    by_rank(places, |first, end| below(end) - below(first))
}

/// Places whose share of the range is normally distributed around the middle with the `variance`.
pub(crate) fn normal(variance: f64) -> Vec<HotPart> {
    const PARTS: u64 = 1_000;
    by_parts((0..PARTS).map(|part| {
        let off = (part as f64 + 0.5) / PARTS as f64 - 0.5;
        (1, (-off * off / (2.0 * variance)).exp())
    }))
}

/// Classes of neighbouring ranks; `weight` is that of the ranks from the first one up to the end, counted from 0.
fn by_rank(places: u64, weight: impl Fn(f64, f64) -> f64) -> Vec<HotPart> {
    // Groups of 2 % of their ranks: popularity changes little within one, and a range of any size
    // has a thousand of them.
    let mut first = 0u64;
    by_parts(std::iter::from_fn(|| {
        let end = (first + 1 + first / 50).min(places);
        let part = (end - first, weight(first as f64, end as f64));
        first = end;
        (part.0 > 0).then_some(part)
    }))
}

/// The classes of parts of so many places and such a weight.
fn by_parts(parts: impl Iterator<Item = (u64, f64)>) -> Vec<HotPart> {
    let parts: Vec<(u64, f64)> = parts.collect();
    let places: u64 = parts.iter().map(|(places, _)| places).sum();
    let weights: f64 = parts.iter().map(|(_, weight)| weight).sum();
    let class = |(own, weight): (u64, f64)| HotPart {
        space: own as f64 / places as f64,
        access: weight / weights,
    };
    parts.into_iter().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(places: u64, classes: Vec<HotPart>) -> WrittenPlaces {
        WrittenPlaces::new(places as f64 * 4096.0, [4096.0; 2], |_| Some(classes)).unwrap()
    }

    fn share(of: &WrittenPlaces, writes: f64) -> f64 {
        of.overwritten(writes * 4096.0)
    }

    /// Three places have 6, 3 and 2 of 11 writes. Of a million places with the weights k^-2, each has 10^6 / k^2 of
    /// 1 644 934 (10^6 zeta(2)) writes: the sum of 1 - e^(-10^6 / k^2) is 1000 sqrt(pi) - 1.5 (Euler-Maclaurin, and
    /// the tail beyond the range).
    #[test]
    fn ranks_are_overwritten_by_their_weight() {
        let of = places(3, zipf(3, 1.0));
        let by_hand = (3.0 - (-6f64).exp() - (-3f64).exp() - (-2f64).exp()) / 3.0;
        assert!((share(&of, 11.0) - by_hand).abs() < 1e-9, "{by_hand}");
        let of = places(1_000_000, zipf(1_000_000, 2.0));
        let by_hand = (1_000.0 * std::f64::consts::PI.sqrt() - 1.5) / 1e6;
        let found = share(&of, 1_644_934.0);
        assert!((found / by_hand - 1.0).abs() < 2e-3, "{found} {by_hand}");
    }

    /// 80 % of the writes go to 20 % of the places, and 64 % to 4 %.
    #[test]
    fn self_similar_places_have_their_shares() {
        let classes = self_similar(1_000_000, 0.2);
        let writes = |upto: f64| {
            let (mut space, mut writes) = (0.0, 0.0);
            for class in &classes {
                space += class.space;
                writes += class.access;
                if space >= upto {
                    break;
                }
            }
            writes
        };
        assert!((writes(0.2) - 0.8).abs() < 0.01 && (writes(0.04) - 0.64).abs() < 0.01);
        assert!(classes.len() < 1_000, "{}", classes.len());
    }
}
