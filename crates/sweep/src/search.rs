//! Which designs a search runs next: NSGA-II (Deb, Pratap, Agarwal and Meyarivan 2002) on the values of the axes.
//!
//! `heuropt` sorts by dominance, feasible designs first, and measures crowding. Its own loop calls back for one design at a
//! time and may ask for the same design twice; here a generation is asked for as a whole, so that its runs go on side by
//! side, and no design is asked for twice. Everything follows from the seed and from what is told.

use std::collections::HashSet;

use heuropt::core::{Candidate, Objective, ObjectiveSpace};
use heuropt::pareto::{crowding_distance, non_dominated_sort};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::axis::Axis;

/// Steps from a design that is known to one that is not, before any other design is taken.
const STEPS_MAX: usize = 64;

/// Designs of a generation, at the least and at the most. With fewer than eight, crossing has nothing to cross.
const WIDTH: (u64, u64) = (8, 64);

/// Generations that the designs of a search are spread over, where their number is known.
const GENERATIONS: u64 = 16;

/// The position on each axis.
pub(crate) type Point = Vec<u32>;

/// A design and what it is judged by; all objectives are losses.
pub(crate) type Judged = Candidate<Point>;

/// The state of a search.
pub(crate) struct Search {
    /// How many positions each axis has, and whether neighbours are alike.
    axes: Vec<(u32, bool)>,
    objectives: ObjectiveSpace,
    rng: Pcg64,
    width: usize,
    seen: HashSet<Point>,
    /// The best so far, with rank and crowding distance.
    parents: Vec<(Judged, usize, f64)>,
}

/// How many designs the axes give together: far more than anybody runs, perhaps.
pub(crate) fn space(axes: &[Axis]) -> f64 {
    axes.iter().map(|axis| f64::from(axis.positions())).product()
}

impl Search {
    /// A search over `axes` for the least of `objectives` losses. `runs` is its budget, where it has one.
    pub(crate) fn new(axes: &[Axis], objectives: usize, runs: Option<u64>, seed: u64) -> Search {
        // If the budget covers the space, one generation is the whole grid. Crossing
        // known designs would then only cost time.
        let by_budget = |runs: u64| match runs as f64 >= space(axes) {
            true => runs,
            false => (runs / GENERATIONS).clamp(WIDTH.0, WIDTH.1),
        };
        let width = runs.map_or(WIDTH.1 / 2, by_budget);
        Search {
            axes: axes.iter().map(|axis| (axis.positions(), axis.is_ordered())).collect(),
            objectives: losses(objectives),
            rng: Pcg64::seed_from_u64(seed),
            width: width as usize,
            seen: HashSet::new(),
            parents: Vec::new(),
        }
    }

    /// Whether all designs are known.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.seen.len() as f64 >= self.axes.iter().map(|(len, _)| f64::from(*len)).product()
    }

    /// The designs of the next generation, `most` at the most; none where all are known. `is_new` says of a design whether
    /// it differs from all before: different values may mean the same.
    pub(crate) fn ask(&mut self, most: u64, is_new: &mut dyn FnMut(&Point) -> bool) -> Vec<Point> {
        let width = self.width.min(most as usize);
        // The first generation covers every part of every axis. Later ones depend on results, so
        // a part that was never met could stay unknown.
        let wanted = match self.parents.is_empty() {
            true => self.spread(width),
            false => (0..width).map(|_| self.child()).collect(),
        };
        let mut asked = Vec::new();
        for point in wanted {
            let mut next = Some(point);
            while let Some(point) = next {
                next = self.unseen(point).and_then(|point| match is_new(&point) {
                    true => {
                        asked.push(point);
                        None
                    }
                    false => Some(point),
                });
            }
        }
        asked
    }

    /// Designs so that each part of each axis is met once (a Latin hypercube).
    fn spread(&mut self, count: usize) -> Vec<Point> {
        let mut points = vec![Vec::with_capacity(self.axes.len()); count];
        for (len, _) in &self.axes {
            let mut parts: Vec<usize> = (0..count).collect();
            parts.shuffle(&mut self.rng);
            for (point, part) in points.iter_mut().zip(parts) {
                let share = (part as f64 + self.rng.random::<f64>()) / count as f64;
                point.push(((share * f64::from(*len)) as u32).min(len - 1));
            }
        }
        points
    }

    /// Of two parents that won a tournament each: each axis from either, and one axis on average a step away.
    fn child(&mut self) -> Point {
        let (mother, father) = (self.winner(), self.winner());
        let mut child = self.parents[mother].0.decision.clone();
        for (at, own) in child.iter_mut().enumerate() {
            if self.rng.random_bool(0.5) {
                *own = self.parents[father].0.decision[at];
            }
        }
        // One axis changes on average. With a fixed chance for each axis, a plan with many axes would change
        // nearly all of them, and nothing would be inherited.
        for at in 0..child.len() {
            if self.rng.random_bool(1.0 / child.len() as f64) {
                self.step(&mut child, at);
            }
        }
        child
    }

    fn winner(&mut self) -> usize {
        let [one, other] = [(); 2].map(|()| self.rng.random_range(0..self.parents.len()));
        let ((_, rank, distance), (_, than, least)) = (&self.parents[one], &self.parents[other]);
        // A lower rank wins, and of equal ranks the less crowded one. This order pulls the front
        // apart instead of collecting designs in its middle.
        if (rank, -distance) <= (than, -least) { one } else { other }
    }

    /// Moves axis `at` of `point`: to near values more often than to far ones where the axis has an order.
    fn step(&mut self, point: &mut Point, at: usize) {
        let (len, is_ordered) = self.axes[at];
        if len < 2 {
            return;
        }
        if !is_ordered {
            // Names have no neighbours, so every other name is equally near. The random distance is
            // never 0 or `len`, so the value does change.
            point[at] = (point[at] + self.rng.random_range(1..len)) % len;
            return;
        }
        // The distances of half the axis, a quarter, an eighth and so on are equally frequent, down to a single step.
        // Small steps refine a good design, and large ones leave a local optimum.
        let mut far = len - 1;
        while far > 1 && self.rng.random_bool(0.5) {
            far = far.div_ceil(2);
        }
        let by = i64::from(self.rng.random_range(1..=far));
        let by = if self.rng.random_bool(0.5) { by } else { -by };
        let to = (i64::from(point[at]) + by).rem_euclid(2 * i64::from(len));
        // A step beyond an end is reflected. Clamping would collect
        // designs at the ends of every axis.
        let to = to.min(2 * i64::from(len) - 1 - to);
        point[at] = u32::try_from(to).unwrap_or(0);
    }

    /// `point`, or the first design that is not known on a walk from it; else any. `None` where all are known.
    fn unseen(&mut self, mut point: Point) -> Option<Point> {
        // A short walk keeps the new design near the wanted one. After 64
        // steps the neighbourhood counts as known.
        for _ in 0..STEPS_MAX {
            if self.seen.insert(point.clone()) {
                return Some(point);
            }
            if !point.is_empty() {
                let at = self.rng.random_range(0..point.len());
                self.step(&mut point, at);
            }
        }
        if self.is_exhausted() {
            return None;
        }
        // The search then counts through the designs from a random one on, as through numbers whose digits are the
        // axes. It ends after at most as many steps as designs are known.
        let mut point: Point =
            self.axes.iter().map(|(len, _)| self.rng.random_range(0..*len)).collect();
        while !self.seen.insert(point.clone()) {
            for (digit, (len, _)) in point.iter_mut().zip(&self.axes).rev() {
                *digit = (*digit + 1) % len;
                if *digit > 0 {
                    break;
                }
            }
        }
        Some(point)
    }

    /// Takes what the designs of a generation gave. The best of them and of those before are parents from now on.
    pub(crate) fn tell(&mut self, judged: Vec<Judged>) {
        let before = self.parents.drain(..).map(|(one, ..)| one);
        let all: Vec<Judged> = before.chain(judged).collect();
        for (rank, front) in non_dominated_sort(&all, &self.objectives).into_iter().enumerate() {
            let distances = crowding_distance(&all, &front, &self.objectives);
            let mut order: Vec<usize> = (0..front.len()).collect();
            // Within a front the least crowded designs come first. If the last front does not fit as
            // a whole, its most crowded designs are dropped.
            order.sort_by(|a, b| distances[*b].total_cmp(&distances[*a]));
            let left = self.width.saturating_sub(self.parents.len());
            for at in order.into_iter().take(left) {
                self.parents.push((all[front[at]].clone(), rank, distances[at]));
            }
        }
    }
}

/// `count` objectives of which less is better.
pub(crate) fn losses(count: usize) -> ObjectiveSpace {
    ObjectiveSpace::new((0..count).map(|at| Objective::minimize(at.to_string())).collect())
}

#[cfg(test)]
mod tests {
    use heuropt::core::Evaluation;

    use super::*;
    use crate::generations::{Fronts, volume};

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// Runs a search over `axes` for the front of `losses`; gives the designs in their order.
    fn run(
        axes: &[Axis],
        runs: u64,
        seed: u64,
        losses: &dyn Fn(&[f64]) -> Evaluation,
    ) -> Vec<(Point, Evaluation)> {
        let mut search = Search::new(
            axes,
            losses(&shares(axes, &vec![0; axes.len()])).objectives.len(),
            Some(runs),
            seed,
        );
        let mut all = Vec::new();
        while (all.len() as u64) < runs {
            let asked = search.ask(runs - all.len() as u64, &mut |_| true);
            if asked.is_empty() {
                break;
            }
            let judged = asked.into_iter().map(|point| (losses(&shares(axes, &point)), point));
            let judged: Vec<Judged> =
                judged.map(|(evaluation, point)| Candidate::new(point, evaluation)).collect();
            all.extend(judged.iter().map(|one| (one.decision.clone(), one.evaluation.clone())));
            search.tell(judged);
        }
        all
    }

    /// The positions as shares of their axes, 0 to 1.
    fn shares(axes: &[Axis], point: &[u32]) -> Vec<f64> {
        let share =
            |(axis, at): (&Axis, &u32)| f64::from(*at) / f64::from(axis.positions() - 1).max(1.0);
        axes.iter().zip(point).map(share).collect()
    }

    fn covered(all: &[(Point, Evaluation)], reference: &[f64]) -> f64 {
        let mut fronts = Fronts::default();
        let evaluations: Vec<Evaluation> = all.iter().map(|(_, one)| one.clone()).collect();
        fronts.add(&evaluations, 0);
        volume(&fronts.losses(), reference).unwrap()
    }

    /// ZDT1 (Zitzler, Deb and Thiele 2000) with 8 axes: the front is `1 - sqrt(x)` where all other axes are at 0.
    fn zdt1(x: &[f64]) -> Evaluation {
        let g = 1.0 + 9.0 * x[1..].iter().sum::<f64>() / (x.len() - 1) as f64;
        Evaluation::new(vec![x[0], g * (1.0 - (x[0] / g).sqrt())])
    }

    #[test]
    fn a_front_in_closed_form_is_found_with_a_twentieth_of_the_designs() {
        let axes = axes(&[
            "a=1..5/5", "b=1,2,3", "c=1,2,3", "d=1,2,3", "e=1,2,3", "f=1,2,3", "g=1,2,3", "h=1..4",
        ]);
        let size = space(&axes);
        assert_eq!(size, 14_580.0);
        let front: Vec<Vec<f64>> =
            (0..5).map(|at| f64::from(at) / 4.0).map(|x| vec![x, 1.0 - x.sqrt()]).collect();
        let reference = [1.1, 1.1];
        let whole = volume(&front, &reference).unwrap();
        for seed in 1..=8 {
            let all = run(&axes, 500, seed, &zdt1);
            assert_eq!(all.len(), 500);
            let share = covered(&all, &reference) / whole;
            assert!(share >= 0.98, "seed {seed}: {share}");
            // The first generation alone, which is drawn, is far from that.
            assert!(covered(&all[..31], &reference) < 0.9 * whole, "seed {seed}");
            let different: HashSet<&Point> = all.iter().map(|(point, _)| point).collect();
            assert_eq!(different.len(), all.len(), "seed {seed}");
            assert_eq!(run(&axes, 500, seed, &zdt1), all, "seed {seed}");
        }
    }

    /// A bound that most designs break, and one objective.
    #[test]
    fn designs_that_keep_bounds_come_first() {
        let axes = axes(&["a=0..99", "b=0..99", "c=0..99"]);
        let losses = |x: &[f64]| {
            let sum: f64 = x.iter().sum();
            Evaluation::constrained(vec![sum], (2.9 - sum).max(0.0))
        };
        let all = run(&axes, 600, 1, &losses);
        let best =
            all.iter().filter(|(_, one)| one.is_feasible()).map(|(_, one)| one.objectives[0]);
        let best = best.fold(f64::INFINITY, f64::min);
        assert!((2.9..2.92).contains(&best), "{best}");
    }

    #[test]
    fn a_budget_as_large_as_the_space_meets_each_design_once() {
        let axes = axes(&["a=1,2,3", "b=x,y", "c=1..3"]);
        for runs in [17, 18, 40] {
            let all = run(&axes, runs, 1, &zdt1);
            assert_eq!(all.len() as u64, runs.min(18));
            let different: HashSet<&Point> = all.iter().map(|(point, _)| point).collect();
            assert_eq!(different.len(), all.len());
        }
    }

    /// Of a space that nobody could write down.
    #[test]
    fn a_huge_space_is_searched_without_being_enumerated() {
        let texts: Vec<String> = (0..20).map(|at| format!("a{at}=0.0..1.0")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let axes = axes(&texts);
        assert!(space(&axes) > 1e59);
        assert_eq!(run(&axes, 200, 1, &zdt1).len(), 200);
    }

    proptest::proptest! {
        /// A step stays on its axis, and moves where there is anywhere to go but for reflections.
        #[test]
        fn steps_stay_on_their_axis(len in 1u32..40, seed in 0u64..1000) {
            for axis in [format!("a=1..{}", len + 1), "a=x,y,z".to_owned()] {
                let axes = axes(&[&axis]);
                let mut search = Search::new(&axes, 1, Some(10), seed);
                let mut point = vec![0];
                for _ in 0..50 {
                    search.step(&mut point, 0);
                    proptest::prop_assert!(point[0] < axes[0].positions());
                    axes[0].at_position(point[0]);
                }
            }
        }
    }
}
