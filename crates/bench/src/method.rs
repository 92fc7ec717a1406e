//! How requests go to the target and come back: fixed, named, and the same in every run.
//!
//! A method has three parts: how many completions a closed loop waits for, how many requests one call hands over, and
//! whether the job sleeps or spins meanwhile. No part is found by trial unless requested (see `tuning`): figures of two
//! runs can be compared only if both used the same method.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_figures::MethodSettings;

ssdyno_block::named! {
    /// A documented method of issuing requests to a target.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Method: name {
        /// Sleeps for completions; submits the ready requests in pairs, and reaps the available
        /// completions. Applications with asynchronous requests and fio with its defaults work this
        /// way.
        #[default]
        Default = "default",
        /// Sleeps until all outstanding requests have completed, then submits the same number
        /// together. Uses the least CPU time per request, but the device is idle between two
        /// batches.
        Efficient = "efficient",
        /// Submits each request separately and spins for its completion: latencies include no
        /// wake-up, but the job uses a whole core.
        Latency = "latency",
    }
}

impl Method {
    /// Its parts.
    pub fn strategy(self) -> SubmitStrategy {
        let sleeping =
            |complete| SubmitStrategy { complete, submit: ALL, waiting: ReapWait::Sleep };
        match self {
            // If all requests were submitted at once, the device would be idle until the last one
            // is prepared.
            Method::Default => SubmitStrategy { submit: PAIR, ..sleeping(1) },
            Method::Efficient => sleeping(ALL),
            Method::Latency => SubmitStrategy { complete: 1, submit: 1, waiting: ReapWait::Spin },
        }
    }
}

ssdyno_block::named! {
    /// How a job waits for completions.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ReapWait: name {
        /// Sleeps until the kernel wakes the job: every latency includes the wake-up.
        #[default]
        Sleep = "sleep",
        /// Polls for completions all the time (io_uring without IOPOLL). Uses a whole core.
        Spin = "spin",
    }
}

/// All available requests.
pub const ALL: u32 = u32::MAX;

/// The number of requests that reach the device at once: if one call submits more than two, the kernel holds all back
/// until it has the last (it plugs the device's queue, `IO_PLUG_THRESHOLD` of io_uring).
pub(crate) const PAIR: u32 = 2;

/// The parts of a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubmitStrategy {
    /// Completions that a closed loop waits for: 1 has the truest latencies of single requests, more
    /// cost less (fewer system calls and switches). [`ALL`]: all that is outstanding.
    pub complete: u32,
    /// Requests that one call hands over, at most: with fewer the first one begins while the others are
    /// prepared, and each costs more. [`ALL`]: all that are ready.
    pub submit: u32,
    /// How the job waits.
    pub waiting: ReapWait,
}

impl SubmitStrategy {
    /// For a job that may have `depth` requests outstanding: more than these never complete together.
    /// In an open loop (`closed` is false) nothing waits for the rest of a batch.
    #[must_use]
    pub fn of_job(self, depth: u32, closed: bool) -> SubmitStrategy {
        // No more than `depth` requests are outstanding: a job that waits for more of them would
        // wait forever. Arrivals of an open loop do not wait either, so it takes what is there.
        let complete = if closed { self.complete.min(depth) } else { 1 };
        // A limit that can never be reached is no limit. Two runs which do the same then have
        // the same settings in their results.
        let submit = if self.submit >= depth { ALL } else { self.submit };
        SubmitStrategy { complete, submit, ..self }
    }

    /// Whether the job spins.
    pub fn spins(self) -> bool {
        self.waiting == ReapWait::Spin
    }

    /// The settings that ask for it, whatever the default is.
    pub fn settings(self) -> MethodSettings {
        let batch =
            |number: u32| Some(if number == ALL { "all".to_owned() } else { number.to_string() });
        MethodSettings {
            batch: batch(self.complete),
            submit: batch(self.submit),
            wait: Some(self.waiting.name().to_owned()),
            ..MethodSettings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_what_they_are_documented_to_be() {
        let of = |method: Method| method.strategy().settings().to_string();
        assert_eq!(of(Method::Default), "batch 1, submit 2, wait sleep");
        assert_eq!(of(Method::Efficient), "batch all, submit all, wait sleep");
        assert_eq!(of(Method::Latency), "batch 1, submit 1, wait spin");
        assert_eq!(Method::default().name(), "default");
    }

    #[test]
    fn a_batch_is_no_larger_than_what_is_outstanding() {
        let efficient = Method::Efficient.strategy();
        let settings = efficient.of_job(8, true).settings();
        assert_eq!(settings.to_string(), "batch 8, submit all, wait sleep");
        assert_eq!(efficient.of_job(8, false).complete, 1, "an open loop waits for nothing else");
        let pairs = SubmitStrategy { submit: 2, ..efficient };
        assert_eq!([pairs.of_job(2, true).submit, pairs.of_job(4, true).submit], [ALL, 2]);
    }
}
