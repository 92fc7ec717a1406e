//! Sizes that the curve does not describe.
//!
//! An array of two disks with stripes of 1 MiB reads 1 MiB at random in 20 % more time than its neighbours: a request that
//! is aligned to its own size stays on one disk, and all others are split. Such a size bends no curve. It is known from its
//! own slices alone, and the others are known without it.

use crate::kriging;
use crate::model::{Break, Model, Prediction, SHARED_FREEDOM, SizeMean, f_tail};

/// Probability that noise alone takes a size out, among all that were measured.
const CHANCE_MAX: f64 = 0.01;

/// A size is alone if its neighbours are off the curve in the same direction by less than this share of its distance.
/// Behind a step they are off by as much.
const NEIGHBOUR_SHARE_MAX: f64 = 0.5;

/// A measured size that is off the curve with less than this probability by chance is not as well known as the curve says.
const DOUBT_CHANCE: f64 = 0.05;

/// Of this number of sizes, at most one is apart. More would be no exceptions.
const OF_MANY: usize = 5;

/// A curve, and the sizes beside it.
#[derive(Clone, Debug)]
pub(crate) struct Apart {
    pub model: Model,
    pub sizes: Vec<SizeMean>,
}

impl Apart {
    /// The curve with `breaks` through `points` without those that are apart; `freedom` is that of their noise.
    pub(crate) fn fit(points: &[SizeMean], freedom: f64, breaks: &[Break]) -> Option<Apart> {
        let mut model = Model::narrowed(points, freedom, breaks)?;
        let mut sizes = Vec::new();
        // Sizes are taken out one at a time, the most lonely first. The curve that the first
        // one bent may have hidden the second.
        while sizes.len() < points.len() / OF_MANY {
            let Some(at) = loneliest(&model) else { break };
            let mut rest = model.points().to_vec();
            let one = rest.remove(at);
            let Some(without) = Model::narrowed(&rest, freedom, breaks) else { break };
            if !is_apart(one, at, &without) {
                break;
            }
            sizes.push(one);
            model = without;
        }
        Some(Apart { model, sizes })
    }

    /// The known values of each of `sizes`; a size at which the curve is not above zero has no prediction.
    pub(crate) fn predict(&self, sizes: &[u64]) -> Vec<Option<Prediction>> {
        let mut known = kriging::predict(&self.model, sizes);
        for one in self.model.points() {
            let at = sizes.binary_search(&one.size).ok();
            if let Some(known) = at.and_then(|at| known[at].as_mut()) {
                // The slices of a size may disagree with the curve by chance, or the curve may
                // be wrong there. Until more slices decide, the interval reaches to both.
                let off = (one.mean / known.time - 1.0).powi(2);
                let chance = f_tail(off / one.of_mean(), 1.0, self.model.freedom);
                known.variance += if chance < DOUBT_CHANCE { off } else { 0.0 };
            }
        }
        for one in &self.sizes {
            if let Ok(at) = sizes.binary_search(&one.size) {
                // This size is known from its own slices and from the noise that all sizes lend
                // it. The degrees of freedom are those of both parts.
                let freedom = self.model.freedom.clamp(1.0, SHARED_FREEDOM + one.slices - 1.0);
                known[at] = Some(Prediction { time: one.mean, variance: one.of_mean(), freedom });
            }
        }
        known
    }
}

/// The measured size that is furthest from the line between its neighbours, in units of its noise.
fn loneliest(model: &Model) -> Option<usize> {
    let points = model.points();
    let off: Vec<f64> = points.iter().map(|one| one.mean / model.line(one.size) - 1.0).collect();
    let distance = |at: &usize| {
        let log = |at: usize| (points[at].size as f64).log2();
        let [below, own, above] = [at - 1, *at, at + 1].map(log);
        let share = (own - below) / (above - below);
        let between = off[at - 1] * (1.0 - share) + off[at + 1] * share;
        (off[*at] - between).powi(2) / points[*at].of_mean()
    };
    (1..points.len().saturating_sub(1)).max_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// Whether `one`, which was at place `at`, is too far from the prediction of the others for chance, while its
/// neighbours are not.
fn is_apart(one: SizeMean, at: usize, others: &Model) -> bool {
    let points = others.points();
    let around = [Some(&one), points.get(at.wrapping_sub(1)), points.get(at)];
    let around: Vec<&SizeMean> = around.into_iter().flatten().collect();
    let off = |point: &&SizeMean| {
        let known = kriging::predict(others, &[point.size])[0]?;
        Some((point.mean / known.time - 1.0, known.variance))
    };
    let Some(off) = around.iter().map(off).collect::<Option<Vec<_>>>() else { return false };
    let ((own, variance), neighbours) = (off[0], &off[1..]);
    let chance = f_tail(own * own / (one.of_mean() + variance), 1.0, others.freedom);
    // A step moves a size and its neighbours to the same side. An exception leaves its
    // neighbours on the curve.
    let alone = neighbours.iter().all(|(other, _)| other / own < NEIGHBOUR_SHARE_MAX);
    alone && chance * (points.len() as f64) < CHANCE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::means;

    /// Sizes of 64 KiB to 4 MiB on a line with noise of 1 %, three slices each; `more` is what a size takes more.
    fn played(seed: u64, more: impl Fn(u64) -> f64) -> (Vec<SizeMean>, f64) {
        let mut rng = ssdyno_engine::Rng::new(seed, "apart");
        let noise = |rng: &mut ssdyno_engine::Rng| {
            let uniform = |rng: &mut ssdyno_engine::Rng| rng.below(1 << 32) as f64 / 2f64.powi(32);
            (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
        };
        let slices: Vec<(u64, Vec<f64>)> = (1..=24)
            .map(|at| {
                let size = at * (170 << 10);
                let time = (4e6 + 3.0 * size as f64) * more(size);
                (size, (0..3).map(|_| time * (1.0 + 0.01 * noise(&mut rng))).collect())
            })
            .collect();
        means(slices.iter().map(|(size, times)| (*size, &times[..])))
    }

    fn fit(seed: u64, more: impl Fn(u64) -> f64) -> Apart {
        let (points, freedom) = played(seed, more);
        Apart::fit(&points, freedom, &[]).unwrap()
    }

    /// 15 % more at one size of 24, 100 seeds: it is found in all, and its prediction is its own mean, which lies within
    /// three deviations of the mean of three slices (1.8 %).
    #[test]
    fn one_size_that_takes_longer_is_known_by_itself() {
        let odd = 12 * (170 << 10);
        for seed in 0..100 {
            let apart = fit(seed, |size| if size == odd { 1.15 } else { 1.0 });
            assert!(apart.sizes.iter().any(|one| one.size == odd), "seed {seed}");
            let truth = (4e6 + 3.0 * odd as f64) * 1.15;
            let known = apart.predict(&[odd])[0].unwrap();
            assert!((known.time / truth - 1.0).abs() < 0.018, "seed {seed}: {known:?}");
        }
    }

    /// Noise alone takes a size out in at most 1 % of 500 cases by its bound; three times that is allowed here, because
    /// the curve follows its points a little. A step takes none of the sizes behind it out.
    #[test]
    fn noise_and_steps_are_no_exceptions() {
        let out = (0..500).filter(|seed| !fit(*seed, |_| 1.0).sizes.is_empty()).count();
        assert!(out <= 15, "{out}");
        for seed in 0..100 {
            let apart = fit(seed, |size| if size > 14 * (170 << 10) { 1.3 } else { 1.0 });
            assert!(apart.sizes.len() <= 1, "seed {seed}: {:?}", apart.sizes);
        }
    }
}
