//! The description in a result of how it was measured, so that another session can continue it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_session::{HostSpec, RealSpec, RunSpec};

use crate::measure::ProfileOp;
#[cfg(doc)]
use crate::plan::ProfilePlan;
use crate::stopped::StoppedBecause;

/// The parameters of a profile that are not fields of the result itself. [`ProfilePlan::resume`] compares them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanRecord {
    /// Operations whose ratios are measured.
    pub ops: Vec<ProfileOp>,
    /// Intervals of request sizes, in the syntax of `--sizes`.
    pub sizes: Vec<String>,
    /// `--error` of the method, as a share of 1; `null` with `serra`.
    pub error: Option<f64>,
    /// `--points` of `serra`.
    pub points: Option<u32>,
    /// `--repeat` of `serra`.
    pub repeat: Option<u32>,
    /// `--threshold`, if it was given.
    pub threshold: Option<f64>,
    /// Identity of the device.
    pub device: DeviceRecord,
    /// Settings of the device and of its host.
    pub setup: Setup,
}

/// Identity of a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeviceRecord {
    /// Capacity of the device.
    pub capacity_bytes: u64,
    /// Sector size of the device.
    pub sector_bytes: u32,
    /// Serial number; `null` for a simulated device, a file, and a device without a serial number.
    pub serial: Option<String>,
}

/// The device keys and the host of a simulated target; the load settings of a real target.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Setup {
    /// `KEY=VALUE` of `--set`, in the given order.
    pub set: Vec<String>,
    /// The host of a simulated target.
    pub host: HostSpec,
    /// How the run loads a real target.
    pub real: RealSpec,
}

impl Setup {
    /// That of `spec`, without what does not change a figure.
    pub fn of(spec: &RunSpec) -> Setup {
        // The timeout of a request and the probes change no figure. A later session may have
        // other values of them.
        let real =
            RealSpec { timeout: None, no_probes: false, probe_interval: None, ..spec.real.clone() };
        Setup { set: spec.set.clone(), host: spec.host.clone(), real }
    }
}

/// One uninterrupted session of measurements.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProfileSession {
    /// Number of `measurements` from this session; they follow the measurements of the session before.
    pub measurements: u64,
    /// Number of tests begun, including tests that do not count.
    pub tests: u64,
    /// Total time of its tests, on the clock of the device. A simulated device starts fresh in each session.
    pub seconds_spent: f64,
    /// Time of the write over the span before the tests of a resumed `serra` or `full`; part of `seconds_spent`.
    pub settling_seconds: f64,
    /// Reason for the end of the session.
    pub stopped_because: StoppedBecause,
    /// Number of tests that the time limit ended and that count.
    pub cut: u64,
    /// Number of tests that the time limit ended with too few requests to count.
    pub dropped: u64,
    /// Slices with failed requests, which do not count.
    pub failed_slices: u64,
    /// Failed requests in these slices.
    pub failed_requests: u64,
}
