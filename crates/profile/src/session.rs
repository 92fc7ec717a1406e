//! What a result says of how it was measured, so that another session can go on with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_session::{HostSpec, RealSpec, RunSpec};

use crate::measure::ProfileOp;
#[cfg(doc)]
use crate::plan::ProfilePlan;
use crate::stopped::StoppedBecause;

/// What decides a profile besides the fields of the result itself. [`ProfilePlan::resume`] compares it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanRecord {
    /// Operations whose ratios are wanted.
    pub ops: Vec<ProfileOp>,
    /// Intervals of request sizes, as `--sizes` takes them.
    pub sizes: Vec<String>,
    /// `--error` of the method, as a share of 1; `null` with `serra`.
    pub error: Option<f64>,
    /// `--points` of `serra`.
    pub points: Option<u32>,
    /// `--repeat` of `serra`.
    pub repeat: Option<u32>,
    /// `--threshold`, if it was given.
    pub threshold: Option<f64>,
    /// Which device it was.
    pub device: DeviceRecord,
    /// What was set of it and of its host.
    pub setup: Setup,
}

/// How a device is told from another one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeviceRecord {
    /// Its capacity.
    pub capacity_bytes: u64,
    /// Its sector.
    pub sector_bytes: u32,
    /// Its serial number; `null` for a simulated device, a file, and a device that has none.
    pub serial: Option<String>,
}

/// The device keys and the host of a simulated target; how a real one is loaded.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Setup {
    /// `KEY=VALUE` of `--set`, in the order that was given.
    pub set: Vec<String>,
    /// The host of a simulated target.
    pub host: HostSpec,
    /// How a real target is loaded.
    pub real: RealSpec,
}

impl Setup {
    /// That of `spec`, without what does not change a figure.
    pub fn of(spec: &RunSpec) -> Setup {
        let real =
            RealSpec { timeout: None, no_probes: false, probe_interval: None, ..spec.real.clone() };
        Setup { set: spec.set.clone(), host: spec.host.clone(), real }
    }
}

/// One stretch of measurements, without a break.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProfileSession {
    /// How many of `measurements` are from this session; they follow those of the session before.
    pub measurements: u64,
    /// Tests begun, with those that do not count.
    pub tests: u64,
    /// Time that its tests took together, on the clock of the device. A simulated device begins each session new.
    pub seconds_spent: f64,
    /// Time of the write over the span that came before the tests of a resumed `serra` or `full`; part of
    /// `seconds_spent`.
    pub settling_seconds: f64,
    /// Why it ended.
    pub stopped_because: StoppedBecause,
    /// Tests that the time limit ended: those that count, and those with too few requests.
    pub cut: u64,
    /// See `cut`.
    pub dropped: u64,
    /// Slices with failed requests, which do not count.
    pub failed_slices: u64,
    /// Failed requests in them.
    pub failed_requests: u64,
}
