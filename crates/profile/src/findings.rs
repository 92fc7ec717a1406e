//! The findings of a profile besides its ratios.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::measure::ProfileTest;

/// Whether the device kept its speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// The slices did not drift, and writes had no burst.
    Steady,
    /// The device was faster at first (a write cache, credits), then steady.
    Burst,
    /// The device became slower throughout the test.
    Throttled,
    /// Too few slices, or the device became faster.
    #[default]
    Unknown,
}

/// Verdict on the device from the slices.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The state.
    pub state: DeviceState,
    /// Length of the burst: of the whole device, in seconds of device time from the first test; of a write cache, from
    /// the first request of a slice; `null` without a burst.
    pub burst_seconds: Option<f64>,
    /// Bytes that a write cache held at the end of the burst; `null` if no slice of writes had a burst.
    #[serde(default)]
    pub burst_bytes: Option<u64>,
    /// The verdict in words, with the figures.
    pub text: String,
}

/// A request size from which the access time follows a different line (stripe, cache, maximum transfer).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Breakpoint {
    /// The smallest size that is known to be beyond the breakpoint.
    pub size_bytes: u64,
    /// Whether measurements that were held out of the fit agree. The curve has a breakpoint only if they do.
    pub held_out_agrees: bool,
}

/// How well the curve of a test describes its sizes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LackOfFit {
    /// Standard deviation of sizes from the curve beyond noise, divided by the access time: 0 if noise explains all
    /// deviations.
    pub relative: f64,
    /// Probability of residuals this large from noise alone (F-test), 0 to 1.
    pub p_value: f64,
}

/// The findings of a strategy besides curves.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Findings {
    /// The state of the device.
    pub verdict: Verdict,
    /// Breakpoints by test, ascending.
    pub breakpoints: BTreeMap<ProfileTest, Vec<Breakpoint>>,
    /// Lack of fit by test.
    pub lack_of_fit: BTreeMap<ProfileTest, LackOfFit>,
}
