//! Which designs there are: all of a grid, or some that are drawn.

use std::collections::HashSet;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ssdyno_session::Failure;

use crate::axis::Axis;
use crate::search::space;

/// Designs of a sweep at the most. More are a mistake, or a matter for drawing some of them.
pub const DESIGNS_MAX: u64 = 1_000_000;

/// Selection of the designs to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Every combination of the values of all axes; the last axis varies fastest.
    #[default]
    Grid,
    /// `designs` designs, drawn independently; if all axes are lists, no design is drawn twice.
    Random,
    /// `designs` designs in a Latin hypercube: each axis is cut into as many parts, and each part has one design
    /// (McKay, Beckman and Conover 1979).
    LatinHypercube,
    /// Designs chosen from the results of earlier designs, at most `designs` or until `time` is over: NSGA-II (Deb et
    /// al. 2002).
    Search,
    /// Rates of arrivals until the highest rate within the bound of `require` is known to 5 %. `vary` is
    /// `workload.arrivals.rate` alone, over a range without steps.
    Bisection,
}

/// The designs of a sweep, in their order.
#[derive(Clone, Debug)]
pub struct Designs {
    axes: Vec<Axis>,
    drawn: Drawn,
    count: u64,
}

#[derive(Clone, Debug)]
enum Drawn {
    /// All of the grid.
    All,
    /// These of the grid.
    Some(Vec<u64>),
    /// Of each design its share of each axis.
    Shares(Vec<Vec<f64>>),
    /// By the results: they have no values beforehand.
    ByResults,
}

impl Designs {
    /// The designs over `axes`; `designs` of them where they are drawn, with `seed`.
    ///
    /// # Errors
    /// There are too many, or their number is not said; a range has no steps.
    pub fn new(
        axes: &[Axis],
        sampling: Sampling,
        designs: Option<u64>,
        seed: u64,
    ) -> Result<Designs, Failure> {
        if let Some(twice) =
            (1..axes.len()).find(|at| axes[..*at].iter().any(|a| a.key() == axes[*at].key()))
        {
            // The second axis would overwrite the values of the first. The table would show
            // two columns, of which one had no effect.
            let key = axes[twice].key();
            return Err(Failure::usage(format!("`{key}` is varied twice"))
                .with_help("name all its values in one axis")
                .with_key("vary"));
        }
        let grid = grid_size(axes);
        let (drawn, count) = match (sampling, designs) {
            (Sampling::Grid, Some(_)) => {
                return Err(Failure::usage("`designs` is not possible with a grid, which runs all designs")
                    .with_help("remove `designs`, or draw designs with `sampling=random` or `sampling=latin-hypercube`")
                    .with_key("designs"));
            }
            (Sampling::Bisection, Some(_)) => {
                return Err(Failure::usage(
                    "`designs` is not possible with a bisection, which decides how many rates it tries",
                )
                .with_help("remove `designs`")
                .with_key("designs"));
            }
            (Sampling::Grid, None) => (Drawn::All, whole(axes, grid)?),
            (Sampling::Search | Sampling::Bisection, None) => {
                // The size of the space is a `f64`, because it may exceed every integer. The minimum
                // brings it back into range before the cast.
                (Drawn::ByResults, space(axes).min(DESIGNS_MAX as f64) as u64)
            }
            (_, None) => {
                return Err(Failure::usage("the number of designs to draw is missing")
                    .with_help("give `designs=200`, for example")
                    .with_key("designs"));
            }
            (_, Some(count)) if count == 0 || count > DESIGNS_MAX => {
                return Err(Failure::usage(format!(
                    "`designs` must be 1 to {DESIGNS_MAX}, not {count}"
                ))
                .with_help("run several sweeps to get more designs")
                .with_key("designs"));
            }
            (Sampling::Random, Some(count)) => random(axes, grid, count, seed),
            (Sampling::LatinHypercube, Some(count)) => (latin(axes.len(), count, seed), count),
            (Sampling::Search, Some(count)) => {
                (Drawn::ByResults, space(axes).min(count as f64) as u64)
            }
        };
        Ok(Designs { axes: axes.to_vec(), drawn, count })
    }

    /// How many there are; of a search, at the most.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The value of each axis in the design `number`, from 0; none where results decide about them.
    pub fn values(&self, number: u64) -> Vec<Value> {
        match &self.drawn {
            Drawn::All => self.of_grid(number),
            Drawn::Some(numbers) => self.of_grid(numbers[number as usize]),
            Drawn::Shares(shares) => self
                .axes
                .iter()
                .zip(&shares[number as usize])
                .map(|(axis, share)| axis.at(*share))
                .collect(),
            Drawn::ByResults => Vec::new(),
        }
    }

    /// As of a number whose digits are the axes: the last varies fastest.
    fn of_grid(&self, number: u64) -> Vec<Value> {
        let mut rest = number;
        let mut values: Vec<Value> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let len = axis.count().unwrap_or(1) as u64;
                let at = rest % len;
                rest /= len;
                axis.value(at as usize).cloned().unwrap_or_default()
            })
            .collect();
        values.reverse();
        values
    }
}

/// How many designs the grid has; `None` where an axis is a range without steps. It may be far more than anybody runs.
fn grid_size(axes: &[Axis]) -> Option<f64> {
    axes.iter().map(|axis| axis.count().map(|len| len as f64)).product()
}

fn whole(axes: &[Axis], grid: Option<f64>) -> Result<u64, Failure> {
    // The product is computed in floating point: ten axes with 100 values are
    // 1e20 designs, which overflow 64 bits.
    let Some(size) = grid else {
        let range = axes.iter().find(|axis| axis.count().is_none()).map(Axis::to_string);
        let range = range.unwrap_or_default();
        return Err(Failure::usage(format!("`{range}` has no steps; a grid needs them"))
            .with_help(format!(
                "add the number of values (`{range}/5`), or draw designs with `sampling=random`"
            ))
            .with_key("vary"));
    };
    if size > DESIGNS_MAX as f64 {
        let size = match size < 1e15 {
            true => ssdyno_figures::count(size as u64),
            false => format!("{size:.1e}"),
        };
        return Err(Failure::usage(format!(
            "the grid has {size} designs; the limit is {DESIGNS_MAX}"
        ))
        .with_help(
            "use fewer values, or draw designs: `sampling=latin-hypercube` with `designs=1000`",
        )
        .with_key("vary"));
    }
    Ok(size as u64)
}

fn random(axes: &[Axis], grid: Option<f64>, count: u64, seed: u64) -> (Drawn, u64) {
    let mut rng = Pcg64::seed_from_u64(seed);
    // Numbers above 2^53 lose their last digits in `f64`, and two designs would have one
    // number. Such grids are drawn by shares instead.
    let grid = grid.filter(|size| *size < 9e15).map(|size| size as u64);
    match grid {
        // If as many designs are wanted as there are, each is run once. Drawing would look
        // for the last missing one for a long time.
        Some(size) if count >= size => (Drawn::All, size),
        // For more than half of the grid, shuffling is cheaper: drawing would meet
        // known numbers more often than new ones.
        Some(size) if count > size / 2 => {
            let mut all: Vec<u64> = (0..size).collect();
            all.shuffle(&mut rng);
            all.truncate(count as usize);
            (Drawn::Some(all), count)
        }
        Some(size) => {
            let (mut seen, mut numbers) = (HashSet::new(), Vec::new());
            while (numbers.len() as u64) < count {
                let number = rng.random_range(0..size);
                if seen.insert(number) {
                    numbers.push(number);
                }
            }
            (Drawn::Some(numbers), count)
        }
        None => {
            let design = |_| axes.iter().map(|_| rng.random::<f64>()).collect();
            (Drawn::Shares((0..count).map(design).collect()), count)
        }
    }
}

fn latin(axes: usize, count: u64, seed: u64) -> Drawn {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut shares = vec![Vec::with_capacity(axes); count as usize];
    for _ in 0..axes {
        // The parts of each axis are shuffled independently. Every part of every axis then has
        // exactly one design, whatever the other axes do.
        let mut parts: Vec<u64> = (0..count).collect();
        parts.shuffle(&mut rng);
        for (design, part) in shares.iter_mut().zip(parts) {
            design.push((part as f64 + rng.random::<f64>()) / count as f64);
        }
    }
    Drawn::Shares(shares)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn all(designs: &Designs) -> Vec<Vec<Value>> {
        (0..designs.count()).map(|number| designs.values(number)).collect()
    }

    #[test]
    fn each_value_meets_each_other_and_the_last_axis_varies_fastest() {
        let axes = axes(&["a=1,2", "b=x,y,z"]);
        let designs = Designs::new(&axes, Sampling::Grid, None, 1).unwrap();
        let wanted = json!([[1, "x"], [1, "y"], [1, "z"], [2, "x"], [2, "y"], [2, "z"]]);
        assert_eq!(json!(all(&designs)), wanted);
        // Without an axis there is one design: that of the spec.
        let one = Designs::new(&[], Sampling::Grid, None, 1).unwrap();
        assert_eq!(all(&one), [Vec::<Value>::new()]);
    }

    #[test]
    fn none_of_a_grid_is_drawn_twice() {
        let axes = axes(&["a=1..40/40", "b=1..50/50"]);
        for count in [10, 1500, 2000, 5000] {
            let designs = Designs::new(&axes, Sampling::Random, Some(count), 7).unwrap();
            let drawn = all(&designs);
            assert_eq!(drawn.len() as u64, count.min(2000));
            let different: BTreeSet<String> = drawn.iter().map(|d| json!(d).to_string()).collect();
            assert_eq!(different.len(), drawn.len());
            let again = Designs::new(&axes, Sampling::Random, Some(count), 7).unwrap();
            assert_eq!(all(&again), drawn);
            if count < 2000 {
                let other = Designs::new(&axes, Sampling::Random, Some(count), 8).unwrap();
                assert_ne!(all(&other), drawn);
            }
        }
    }

    /// Every one of 64 parts of each axis is met once.
    #[test]
    fn a_latin_hypercube_meets_each_part_once() {
        let axes = axes(&["a=0.0..64.0", "b=0..63", "c=0.0..1.0"]);
        let designs = Designs::new(&axes, Sampling::LatinHypercube, Some(64), 3).unwrap();
        let drawn = all(&designs);
        for (axis, scale) in [(0, 1.0), (2, 64.0)] {
            let parts: BTreeSet<u64> =
                drawn.iter().map(|d| (d[axis].as_f64().unwrap() * scale) as u64).collect();
            assert_eq!(parts.len(), 64);
        }
        let whole: BTreeSet<i64> = drawn.iter().map(|d| d[1].as_i64().unwrap()).collect();
        assert_eq!(whole.len(), 64);
    }

    #[test]
    fn what_is_wrong_has_its_key() {
        let refused = |texts: &[&str], sampling, designs| {
            let failure = Designs::new(&axes(texts), sampling, designs, 1).unwrap_err();
            (failure.key.unwrap(), failure.message)
        };
        let (key, message) =
            refused(&["a=1..1000/1000", "b=1..1000/1000", "c=1..1000/1000"], Sampling::Grid, None);
        assert!(key == "vary" && message.contains("1 000 000 000 designs"), "{message}");
        let many: Vec<String> = (0..40).map(|at| format!("a{at}=1..9/9")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(refused(&many, Sampling::Grid, None).1.contains("e38"));
        assert!(refused(&["a=1..2"], Sampling::Grid, None).1.contains("`a=1..2` has no steps"));
        assert!(refused(&["a=1", "a=2"], Sampling::Grid, None).1.contains("varied twice"));
        assert_eq!(refused(&["a=1"], Sampling::Random, None).0, "designs");
        assert_eq!(refused(&["a=1"], Sampling::Random, Some(0)).0, "designs");
        assert_eq!(refused(&["a=1"], Sampling::Grid, Some(5)).0, "designs");
    }
}
