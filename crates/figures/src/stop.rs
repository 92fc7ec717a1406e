//! Why a run stopped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::Time;

/// Reason why a run stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The workload ended.
    Done,
    /// The number of requests was reached.
    Requests,
    /// The duration was reached.
    Duration,
    /// The interval was as narrow as requested.
    Precision,
    /// The user interrupted the run.
    Interrupted,
    /// Memory had no room for more rows.
    Memory,
    /// The target failed, or the load could not continue.
    Error,
    /// The program was killed; the result was recovered from the rows.
    Killed,
}

/// How a run ended, as far as that says why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ending {
    /// The user told it to stop.
    pub interrupted: bool,
    /// Memory had no room for more rows.
    pub out_of_memory: bool,
    /// The target or the load met an error.
    pub failed: bool,
    /// The figures were as precise as asked.
    pub precise: bool,
    /// Requests issued.
    pub issued: u64,
    /// Most requests, if that was limited.
    pub issued_max: Option<u64>,
    /// When it was over, from its start.
    pub end: Time,
    /// The latest end, if that was limited.
    pub end_max: Option<Time>,
}

impl Ending {
    /// What decided. The cause that stopped the run explains more than its consequences.
    pub fn reason(&self) -> StopReason {
        match () {
            () if self.interrupted => StopReason::Interrupted,
            () if self.out_of_memory => StopReason::Memory,
            () if self.failed => StopReason::Error,
            () if self.precise => StopReason::Precision,
            () if self.issued_max.is_some_and(|most| self.issued >= most) => StopReason::Requests,
            () if self.end_max.is_some_and(|most| self.end >= most) => StopReason::Duration,
            () => StopReason::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_place() {
        let done = Ending { issued: 10, end: Time::from_s(1), ..Ending::default() };
        assert_eq!(done.reason(), StopReason::Done);
        let far = Ending { issued_max: Some(11), end_max: Some(Time::from_s(2)), ..done };
        assert_eq!(far.reason(), StopReason::Done);
        let late = Ending { end_max: Some(Time::from_s(1)), ..far };
        assert_eq!(late.reason(), StopReason::Duration);
        let full = Ending { issued_max: Some(10), ..late };
        assert_eq!(full.reason(), StopReason::Requests);
        let precise = Ending { precise: true, ..full };
        assert_eq!(precise.reason(), StopReason::Precision);
        let failed = Ending { failed: true, ..precise };
        assert_eq!(failed.reason(), StopReason::Error);
        assert_eq!(Ending { out_of_memory: true, ..failed }.reason(), StopReason::Memory);
        assert_eq!(Ending { interrupted: true, ..failed }.reason(), StopReason::Interrupted);
    }
}
