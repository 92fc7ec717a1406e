//! Which point is measured next: triangles that are halved where interpolation and measurement differ most.
//!
//! The plane is the square of both rates, each as a share of its greatest. It begins as a coarse frame of squares, each
//! of two right triangles. The point that tests a triangle is the middle of its longest side: what interpolation says
//! there is the mean of both ends, and was said before the point was measured (a held-out point). A triangle whose
//! point differs by more than the error is halved there (newest vertex bisection). Its neighbour across that side has
//! the same point and is halved, too.

use std::collections::BTreeMap;

/// Squares of the frame along each side.
pub(crate) const FRAME: u32 = 4;
/// Parts of a side of a square of the frame: the finest point is at 1 / (FRAME * PARTS) of a side.
const PARTS: u32 = 64;
/// Parts of a whole side.
pub(crate) const WHOLE: u32 = FRAME * PARTS;

/// A point: shares of both rates in 1 / [`WHOLE`].
pub(crate) type Node = (u32, u32);

/// What a point gave.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Value {
    /// The logarithm of the latency, and half the width of its 95 % interval.
    Latency(f64, f64),
    /// The rates were not reached.
    Overloaded,
}

impl Value {
    pub(crate) fn latency(self) -> Option<f64> {
        match self {
            Value::Latency(log, _) => Some(log),
            Value::Overloaded => None,
        }
    }
}

/// Corners: the right angle first, then the ends of the longest side.
type Triangle = [Node; 3];

/// The points and triangles so far.
#[derive(Clone, Debug)]
pub(crate) struct Mesh {
    error: f64,
    values: BTreeMap<Node, Value>,
    leaves: Vec<Triangle>,
    /// Differences of the logarithms of all held-out points from the means of their sides, and the same beyond noise; `None`
    /// where one of the three is overloaded.
    held_out: BTreeMap<Node, Option<Difference>>,
}

/// How far a point lies from its prediction.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Difference {
    /// Of the logarithms.
    all: f64,
    /// The part that noise does not explain. It decides whether a triangle is halved. It does not show how good the map is.
    beyond_noise: f64,
}

fn middle(triangle: &Triangle) -> Node {
    let [_, a, b] = triangle;
    (a.0.midpoint(b.0), a.1.midpoint(b.1))
}

fn side(triangle: &Triangle) -> f64 {
    let [_, a, b] = triangle;
    f64::from(a.0.abs_diff(b.0).max(a.1.abs_diff(b.1))) / f64::from(WHOLE)
}

impl Mesh {
    /// `error`: the relative difference of latencies, and the share of the greatest rates, that is small enough.
    pub(crate) fn new(error: f64) -> Mesh {
        let mut leaves = Vec::new();
        for x in 0..FRAME {
            for y in 0..FRAME {
                let at = |dx: u32, dy: u32| ((x + dx) * PARTS, (y + dy) * PARTS);
                // The longest sides fall from left to right, as the border of overload does.
                // Sides along the border cross it less often than sides across it.
                leaves.push([at(0, 0), at(0, 1), at(1, 0)]);
                leaves.push([at(1, 1), at(0, 1), at(1, 0)]);
            }
        }
        Mesh { error, values: BTreeMap::new(), leaves, held_out: BTreeMap::new() }
    }

    pub(crate) fn error(&self) -> f64 {
        self.error
    }

    /// Whether the coarse frame is known.
    pub(crate) fn has_frame(&self) -> bool {
        self.frame().is_none()
    }

    /// The triangles of which all corners are known. Triangles whose middle is known are halved there, too: every
    /// measured point is a corner.
    pub(crate) fn triangles(&self) -> Vec<Triangle> {
        let known = |one: &&Triangle| self.corners(one).is_some();
        let parts = self.leaves.iter().filter(known).flat_map(|one| {
            let ([apex, a, b], new) = (*one, middle(one));
            match self.value(new) {
                Some(_) => vec![[new, apex, a], [new, apex, b]],
                None => vec![*one],
            }
        });
        parts.collect()
    }

    /// Differences of the points that were predicted and not overloaded, as logarithms.
    pub(crate) fn held_out(&self) -> impl Iterator<Item = Option<f64>> {
        self.held_out.values().map(|one| Some((*one)?.all))
    }

    /// The value at `node`: measured, or overloaded because a lower load already was.
    pub(crate) fn value(&self, node: Node) -> Option<Value> {
        self.values
            .get(&node)
            .copied()
            // A device that does not reach a pair of rates does not reach greater ones either.
            // Such points get no load, which would take the time of others.
            .or_else(|| self.is_beyond(node).then_some(Value::Overloaded))
    }

    /// Whether a point with no more of either rate was overloaded.
    fn is_beyond(&self, (x, y): Node) -> bool {
        let overloaded =
            |(at, value): (&Node, &Value)| *value == Value::Overloaded && at.0 <= x && at.1 <= y;
        self.values.iter().any(overloaded)
    }

    fn corners(&self, triangle: &Triangle) -> Option<[Value; 3]> {
        let [a, b, c] = triangle.map(|node| self.value(node));
        Some([a?, b?, c?])
    }

    /// How urgent the test of a triangle is; `None` where it needs none.
    fn urgency(&self, triangle: &Triangle) -> Option<f64> {
        let corners = self.corners(triangle)?;
        let logs: Vec<f64> = corners.iter().filter_map(|value| value.latency()).collect();
        if logs.is_empty() || side(triangle) <= self.error {
            return None;
        }
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        // A triangle across the border of overload has no difference of latencies there. It
        // counts as a change by a factor e, so that the border is refined with the rest.
        let border = if logs.len() < 3 { 1.0 } else { 0.0 };
        Some(side(triangle) * (most - least + border + self.error))
    }

    /// The point to measure next; `None` when every held-out point is within the error.
    pub(crate) fn next(&mut self) -> Option<Node> {
        if let Some(node) = self.frame() {
            return Some(node);
        }
        self.halve();
        let untested = |one: &&Triangle| self.value(middle(one)).is_none();
        let open = self.leaves.iter().filter(untested);
        let urgent = open.filter_map(|one| Some((self.urgency(one)?, middle(one))));
        // Among equals the first triangle wins. The order of triangles follows from their
        // making, so a map repeats exactly with its seed.
        let most = urgent.fold(None, |most: Option<(f64, Node)>, one| match most {
            Some(most) if most.0 >= one.0 => Some(most),
            _ => Some(one),
        });
        Some(most?.1)
    }

    /// The first point of the frame that is not known. Both rates rise, so that what must be overloaded is not loaded.
    fn frame(&self) -> Option<Node> {
        let ends = |at: u32| at * PARTS;
        let mut all: Vec<Node> =
            (0..=FRAME).flat_map(|x| (0..=FRAME).map(move |y| (ends(x), ends(y)))).collect();
        all.sort_by_key(|node| (node.0 + node.1, node.0));
        all.into_iter().find(|node| self.value(*node).is_none())
    }

    /// Halves what its point says to halve.
    fn halve(&mut self) {
        while let Some(at) = self.leaves.iter().position(|one| self.is_unlike(one)) {
            let [apex, a, b] = self.leaves[at];
            let new = middle(&self.leaves[at]);
            self.leaves.splice(at..=at, [[new, apex, a], [new, apex, b]]);
        }
    }

    /// Whether the point of a triangle differs from what its ends say.
    fn is_unlike(&self, triangle: &Triangle) -> bool {
        let node = middle(triangle);
        if side(triangle) <= self.error || self.corners(triangle).is_none() {
            return false;
        }
        let Some(value) = self.value(node) else { return false };
        let [apex, a, b] = triangle.map(|node| self.value(node).and_then(Value::latency));
        if apex.is_none() && a.is_none() && b.is_none() {
            return false;
        }
        match (value.latency(), a, b) {
            (Some(_), Some(_), Some(_)) => {
                let found = self.held_out.get(&node).copied().flatten();
                // If the apex is overloaded, the border passes through the triangle. Halving
                // makes its legs the longest sides, and their middles find the border.
                apex.is_none() || found.is_none_or(|one| one.beyond_noise > self.error.ln_1p())
            }
            _ => true,
        }
    }

    /// Takes what was measured at `node`.
    pub(crate) fn add(&mut self, node: Node, value: Value) {
        // Two triangles share a longest side and have the same ends. So the first triangle
        // found says what both predicted.
        if let Some(tested) = self.leaves.iter().find(|one| middle(one) == node) {
            self.held_out.insert(node, self.difference(tested, value));
        }
        self.values.insert(node, value);
    }

    fn difference(&self, triangle: &Triangle, value: Value) -> Option<Difference> {
        let [_, a, b] = triangle.map(|node| self.value(node));
        match (value, a, b) {
            (
                Value::Latency(log, half),
                Some(Value::Latency(a, half_a)),
                Some(Value::Latency(b, half_b)),
            ) => {
                // The prediction is the mean of two measured points, each with a quarter of its
                // variance. A difference that noise explains must not halve a triangle.
                let noise = (half.powi(2) + (half_a.powi(2) + half_b.powi(2)) / 4.0).sqrt();
                let all = (log - f64::midpoint(a, b)).abs();
                Some(Difference { all, beyond_noise: (all - noise).max(0.0) })
            }
            _ => None,
        }
    }
}

/// The logarithm of the latency at `at` in `triangles`, whose corners have `value`: linear in the triangle around it.
/// `None` where a corner is overloaded.
pub(crate) fn interpolate<N: Copy>(
    triangles: &[[N; 3]],
    place: impl Fn(N) -> (f64, f64),
    log: impl Fn(N) -> Option<f64>,
    at: (f64, f64),
) -> Option<f64> {
    // A place on a side belongs to two triangles. If a corner of one triangle is overloaded, the
    // other may still give the latency.
    triangles.iter().find_map(|triangle| {
        let weights = weights(triangle.map(&place), at)?;
        // A corner without weight is not asked. An overloaded corner would otherwise hide the
        // latency on the side opposite to it.
        let corners = triangle.iter().zip(weights).filter(|(_, weight)| *weight > 1e-9);
        corners.map(|(corner, weight)| Some(log(*corner)? * weight)).sum::<Option<f64>>()
    })
}

/// Barycentric coordinates of `at`; `None` outside.
fn weights([a, b, c]: [(f64, f64); 3], at: (f64, f64)) -> Option<[f64; 3]> {
    let cross = |o: (f64, f64), p: (f64, f64), q: (f64, f64)| {
        (p.0 - o.0) * (q.1 - o.1) - (p.1 - o.1) * (q.0 - o.0)
    };
    let area = cross(a, b, c);
    let all = [cross(at, b, c) / area, cross(at, c, a) / area, cross(at, a, b) / area];
    all.iter().all(|weight| *weight >= -1e-9).then_some(all)
}

#[cfg(test)]
mod tests;
