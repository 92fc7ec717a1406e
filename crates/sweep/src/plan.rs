//! What a sweep is made from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ssdyno_block::units::Span;
use ssdyno_figures::Keep;
use ssdyno_session::{Document, Failure, RunSpec, files};

use crate::axis::Axis;
use crate::cost::CostModel;
use crate::designs::Sampling;
use crate::objective::{Objective, Requirement};

/// Many designs, with objectives and bounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SweepPlan {
    /// The common settings of all designs, with the keys of a spec. All designs have the same seed, so that they get
    /// the same requests; vary `seed` to see the spread.
    pub run: RunSpec,
    /// The varied keys with their values: `flash.channels=4,8,16`, `ftl.over_provisioning=0.07..0.28/5` (five values),
    /// `workload.depth=1..256*2` (each value is twice the last), and for drawn designs
    /// `ftl.over_provisioning=0.07..0.28`. A key is a key of a spec (`target`, `host.queues`) or a key for `set`.
    pub vary: Vec<Axis>,
    /// Selection of the designs to run.
    pub sampling: Sampling,
    /// Number of designs to draw, 1 to 1 000 000; not for a grid, which runs all designs. Upper limit for a search.
    /// Impossible designs, and designs ruled out by their cost, do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub designs: Option<u64>,
    /// Random seed of the drawing of designs and of the search.
    pub draw_seed: u64,
    /// Figures by which designs are compared: `iops`, `throughput`, `mean`, `p50`, `p95`, `p99`, `p99.9`,
    /// `energy_per_request`, `energy_delay`, `wa`, `host_cpu`, `cost`, `cost_per_gib`.
    pub objectives: Vec<Objective>,
    /// Bounds that a design must meet to be on the front, such as `p99<2ms` or `cost<60`. A design
    /// whose cost breaks a bound is not run, and a simulation that certainly breaks a bound ends
    /// early.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<Requirement>,
    /// Run designs to their end even if they certainly break a bound of `require`. A bisection always does.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub run_hopeless: bool,
    /// Begin no design after this wall time. Default: run all. A search needs `designs`, `time` or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// Prices of the parts of a device.
    pub cost: CostModel,
}

impl Default for SweepPlan {
    /// The default run alone, judged by its mean latency.
    fn default() -> SweepPlan {
        SweepPlan {
            run: RunSpec::default(),
            vary: Vec::new(),
            sampling: Sampling::default(),
            designs: None,
            draw_seed: 1,
            objectives: vec![Objective { figure: "latency_ns.mean", more_is_better: false }],
            require: Vec::new(),
            run_hopeless: false,
            time: None,
            cost: CostModel::default(),
        }
    }
}

impl SweepPlan {
    /// Reads a plan from a TOML file.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or a key is wrong; the failure has its line.
    pub fn read(path: &str) -> Result<SweepPlan, Failure> {
        SweepPlan::from_toml(path, &files::read_text(path)?)
    }

    /// The plan in a text of TOML, which messages call `name`.
    ///
    /// # Errors
    /// It is not TOML, or a key is wrong; the failure has its line.
    pub fn from_toml(name: &str, text: &str) -> Result<SweepPlan, Failure> {
        Document::parse_edited(name, text, |text| toml::from_str(text))
    }

    /// What all designs have in common, as it is run: no rows are written, and percentiles are exact.
    pub(crate) fn base(&self) -> RunSpec {
        // The rows of a thousand designs would fill a disk, and the table needs none of them.
        // `Keep::None` still gives exact percentiles.
        let keep = if self.run.keep == Keep::All { Keep::None } else { self.run.keep };
        RunSpec { keep, ..self.run.clone() }
    }

    /// Whether designs that surely break a bound of `require` are given up.
    pub(crate) fn stops_hopeless(&self) -> bool {
        !self.run_hopeless && self.sampling != Sampling::Bisection
    }

    /// The spec of a design with these values of its axes.
    ///
    /// # Errors
    /// A value does not fit its key.
    pub fn spec(&self, values: &[Value]) -> Result<RunSpec, Failure> {
        // The axes are applied one after the other to the same base. A design is therefore
        // exactly the spec that the command for it would run.
        let mut axes = self.vary.iter().zip(values);
        axes.try_fold(self.base(), |spec, (axis, value)| spec.with(axis.key(), value))
    }
}
