//! A figure with the bounds of the true value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Probability with which intervals cover the true figure.
pub const LEVEL: f64 = 0.95;

/// A figure and the bounds that cover the true value with probability `level`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The figure.
    pub estimate: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound; infinite (`null` in JSON) if the run does not determine one: the true figure is
    /// at least `low`.
    #[serde(serialize_with = "unbounded::serialize", deserialize_with = "unbounded::deserialize")]
    #[schemars(extend("type" = ["number", "null"]))]
    pub high: f64,
    /// Probability that the interval covers the true figure, 0 to 1.
    pub level: f64,
}

impl Interval {
    /// Half the width by the estimate; `None` around zero, and where there is no upper bound.
    pub fn relative_half_width(&self) -> Option<f64> {
        // Half the width and not the larger side: start-up makes intervals lopsided, and the
        // rule for `--until` counts what start-up moves by itself.
        let half = (self.high - self.low) / 2.0;
        (self.estimate != 0.0 && half.is_finite()).then(|| half / self.estimate.abs())
    }

    /// The upper bound, where there is one.
    pub fn upper(&self) -> Option<f64> {
        self.high.is_finite().then_some(self.high)
    }
}

/// JSON has no infinity.
mod unbounded {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(high: &f64, to: S) -> Result<S::Ok, S::Error> {
        // A value that is not a number stays an error.
        (*high != f64::INFINITY).then_some(*high).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}
