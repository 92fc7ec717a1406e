//! How a profile goes about it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the sizes that are tested are chosen, and the others found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Method {
    /// Slices where they narrow the ratios most, a line in pieces for each test.
    Adaptive {
        /// Half the width of the 90 % interval of a ratio divided by the ratio, above 0 and below 1.
        error: f64,
    },
    /// The paper's tool: some sizes of each interval, a line for the others.
    Serra {
        /// Sizes that are measured in each interval, 2 or more.
        points: u32,
        /// How many times each is measured, 1 or more.
        repeat: u32,
    },
    /// The paper's complete profile: every size, repeated until its mean is known.
    Full {
        /// Half the width of the 90 % interval divided by the mean, above 0 and below 1.
        error: f64,
    },
    /// Rates at saturation, for the configuration of I/O schedulers.
    Capacity {
        /// Half the width of the 90 % interval of a figure divided by the figure, above 0 and below 1.
        error: f64,
    },
    /// The latency of reads over the rates of reads and writes.
    Map {
        /// Relative difference of interpolated and measured latency, and share of the greatest rates; 0.01 to 0.5.
        error: f64,
    },
}

impl Method {
    /// Its name in results.
    pub fn name(&self) -> MethodName {
        match self {
            Method::Adaptive { .. } => MethodName::Adaptive,
            Method::Serra { .. } => MethodName::Serra,
            Method::Full { .. } => MethodName::Full,
            Method::Capacity { .. } => MethodName::Capacity,
            Method::Map { .. } => MethodName::Map,
        }
    }

    /// The width at which it stops; `None` with a method that has none.
    pub(crate) fn error(&self) -> Option<f64> {
        match *self {
            Method::Adaptive { error }
            | Method::Full { error }
            | Method::Capacity { error }
            | Method::Map { error } => Some(error),
            Method::Serra { .. } => None,
        }
    }
}

ssdyno_block::named! {
    /// The name of a method.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum MethodName: name {
        /// Measures in short time slices; further slices go to the sizes whose intervals they narrow most.
        #[default]
        Adaptive = "adaptive",
        /// Measures some sizes, and estimates the others from a fitted line.
        Serra = "serra",
        /// Measures every size.
        Full = "full",
        /// Measures rates at saturation.
        Capacity = "capacity",
        /// Measures the latency of reads over the rates of reads and writes.
        Map = "map",
    }
}

impl MethodName {
    /// Whether `resume` continues a profile of this method that ended early.
    pub fn resumes(self) -> bool {
        !matches!(self, MethodName::Capacity | MethodName::Map)
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
