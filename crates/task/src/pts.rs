//! The SNIA test as a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_pts::{PtsPlan, Test};
use ssdyno_session::{Failure, HostSpec, Prepared, Prompt, RealSpec, RunSpec, WriteSpec, named};

use crate::runner::{PreparedTask, TaskControl, TaskOutcome, TaskResult, Watch};

/// Length of a load: the specification's on a real target; on a simulated one what a person waits
/// for.
const ROUND_REAL: Time = Time::from_s(60);
const ROUND_SIMULATED: Time = Time::from_ms(100);
/// Of a quick test.
const ROUND_REAL_QUICK: Time = Time::from_s(1);
const ROUND_SIMULATED_QUICK: Time = Time::from_ms(10);

/// How many rounds the histogram of the latency test is long: the specification's 20 minutes where a round is one
/// minute.
const HISTOGRAM_ROUNDS: u64 = 20;

/// A test of the SNIA specification, and its target.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PtsTask {
    /// The target: `sim:NAME`, `FILE.toml`, a block device or a file. The test overwrites a real target and needs
    /// `write.allowed`.
    pub target: String,
    /// The test.
    pub test: Test,
    /// Length of each load of a round, on the clock of the device. Default: 1 min on a real target, as in the
    /// specification, 100 ms on a simulated target; 1 s and 10 ms with `quick`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<Span>,
    /// Short loads if `round` is not set.
    pub quick: bool,
    /// Length of the repetition of the tracked load at the end of the latency test, for the histogram of all response
    /// times; 0: no repetition. Default: 20 times `round`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Span>,
    /// Maximum number of rounds, 5 or more.
    pub rounds_max: u32,
    /// Number of times the device is overwritten sequentially first; 0: not at all.
    pub precondition: f64,
    /// Percentage of the device, from its start, that the rounds use: greater than 0, at most 100.
    pub active_range_percent: f64,
    /// Requests outstanding, 1 or more; always 1 in the latency test.
    pub depth: u32,
    /// Discard or format the target first.
    pub purge: bool,
    /// Random seed.
    pub seed: u64,
    /// Keys of the device, as `KEY=VALUE`. A later entry overrides an earlier entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The host between the test and a simulated device.
    pub host: HostSpec,
    /// How the run loads a real target.
    pub real: RealSpec,
    /// Permissions to write to a real target.
    pub write: WriteSpec,
}

impl Default for PtsTask {
    /// The IOPS test as the specification describes it, without a target.
    fn default() -> PtsTask {
        PtsTask {
            target: String::new(),
            test: Test::default(),
            round: None,
            quick: false,
            histogram: None,
            rounds_max: 25,
            precondition: 2.0,
            active_range_percent: 100.0,
            depth: 32,
            purge: true,
            seed: 1,
            set: Vec::new(),
            host: HostSpec::default(),
            real: RealSpec::default(),
            write: WriteSpec::default(),
        }
    }
}

impl PtsTask {
    pub(crate) fn prepare(&self, prompt: &mut dyn Prompt) -> Result<PreparedTask, Failure> {
        let plan = self.plan();
        let prepared = plan.resolve(&self.spec(), prompt)?;
        let writes_to = match prepared.is_real() && self.write.allowed {
            true => vec![self.target.clone()],
            false => Vec::new(),
        };
        let name = format!("{} test of {}", self.test, self.target);
        let carry_out = move |control: &TaskControl| carry_out(&plan, prepared, control);
        Ok(PreparedTask::new(name, writes_to, carry_out))
    }

    fn plan(&self) -> PtsPlan {
        // The specification wants one minute for each load. A simulation of one minute may take far
        // longer than a person waits, so its default is short.
        let round = match (self.round, self.quick, named::is_real(&self.target)) {
            (Some(round), ..) => round.0,
            (None, true, true) => ROUND_REAL_QUICK,
            (None, true, false) => ROUND_SIMULATED_QUICK,
            (None, false, true) => ROUND_REAL,
            (None, false, false) => ROUND_SIMULATED,
        };
        PtsPlan {
            target: self.target.clone(),
            test: self.test,
            round,
            rounds_max: self.rounds_max,
            // The specification wants 20 minutes for the histogram when a round is one minute. The
            // default keeps this ratio for every length of a round.
            histogram: self.histogram.map_or_else(
                || round.checked_mul(HISTOGRAM_ROUNDS).unwrap_or(Time::MAX),
                |length| length.0,
            ),
            precondition: self.precondition,
            active_range_percent: self.active_range_percent,
            depth: self.depth,
            purge: self.purge,
            seed: self.seed,
        }
    }

    /// The path before the target, the way it is loaded, and the permissions for that.
    fn spec(&self) -> RunSpec {
        RunSpec {
            set: self.set.clone(),
            host: self.host.clone(),
            real: self.real.clone(),
            write: self.write.clone(),
            ..RunSpec::default()
        }
    }
}

fn carry_out(
    plan: &PtsPlan,
    prepared: Prepared,
    control: &TaskControl,
) -> Result<TaskOutcome, Failure> {
    let mut target = prepared.keep()?;
    let mut watch = Watch { control, kept: TaskResult::Pts };
    let (mut result, failure) = plan.execute(&mut target, &mut watch)?;
    // The notes of the target come first: they say under which
    // conditions everything else was measured.
    result.notes.splice(0..0, target.notes().iter().cloned());
    Ok(TaskOutcome { result: TaskResult::Pts(Box::new(result)), failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty times as long is more picoseconds than there are.
    #[test]
    fn a_very_long_round_has_a_plan_that_can_be_refused() {
        let round = Some(Span(Time::from_s(480 * 3_600)));
        let plan = PtsTask { round, ..PtsTask::default() }.plan();
        assert_eq!(plan.histogram, Time::MAX);
    }
}
