//! How the load reached a real target.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How requests were passed to a real target and reaped. Figures of two runs can be compared only if both used the same
/// method.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MethodResult {
    /// `default`, `efficient`, `latency`, or `custom` for other parts.
    pub name: String,
    /// The engine that issued requests: `io_uring`, `threads`, `nbd`, `iscsi`, `null`.
    pub engine: String,
    /// How jobs waited for completions: `sleep`, `spin`, or `poll` if the kernel polled the device.
    pub wait: String,
    /// Number of completions that a job waited for at a time; the largest value of all jobs.
    pub batch: u32,
    /// Maximum number of requests per submit call; `null` for all that were ready.
    pub submit: Option<u32>,
    /// Number of threads that issued requests.
    pub jobs: u32,
    /// Cores that the threads were bound to or stayed on; empty if the scheduler chose.
    pub cores: Vec<u32>,
    /// The threads were bound because the user asked for it, or because the search found it to be faster.
    pub pinned: bool,
    /// A kernel thread took submissions.
    pub sqpoll: bool,
    /// Buffers were registered with the kernel; `null` if the engine cannot register buffers.
    pub registered_buffers: Option<bool>,
    /// The settings that select this method.
    #[serde(default)]
    pub settings: MethodSettings,
    /// Methods that the search for the fastest method tried; empty without a search.
    #[serde(default)]
    pub tuning: Vec<TunedMethod>,
}

/// The settings that select a method, as values of the keys of a spec (`real.method` and so on).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MethodSettings {
    /// A named method without changed parts; `null` if the parts define the method.
    pub method: Option<String>,
    /// Number of completions that a job waits for at a time: a number or `all`.
    pub batch: Option<String>,
    /// Maximum number of requests per submit call: a number or `all`.
    pub submit: Option<String>,
    /// `sleep` or `spin`.
    pub wait: Option<String>,
    /// The core to which the only job is bound.
    pub pin: Option<u32>,
}

impl fmt::Display for MethodSettings {
    /// `batch 16, submit all, wait spin, pin 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MethodSettings { method, batch, submit, wait, pin } = self;
        let pin = pin.map(|core| core.to_string());
        let parts = [
            ("method", method),
            ("batch", batch),
            ("submit", submit),
            ("wait", wait),
            ("pin", &pin),
        ];
        let set = parts.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
        for (index, (key, value)) in set.enumerate() {
            write!(f, "{}{key} {value}", if index > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// A method that the search tried before the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TunedMethod {
    /// The settings that select the method.
    #[serde(default)]
    pub settings: MethodSettings,
    /// Requests per second, median of the rounds.
    pub iops: f64,
    /// Half of the distance between the quartiles of the rounds.
    pub iops_spread: f64,
    /// Number of rounds with this method.
    pub rounds: u64,
}

impl MethodResult {
    /// In what it differs from `other`, in words; `None` where it does not.
    pub fn differences(&self, other: &MethodResult) -> Option<String> {
        let submit = |method: &MethodResult| {
            method.submit.map_or_else(|| "all".to_owned(), |submit| submit.to_string())
        };
        let bound = |method: &MethodResult| {
            if method.cores.is_empty() { "free" } else { "bound" }.to_owned()
        };
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        let parts = [
            ("engine", self.engine.clone(), other.engine.clone()),
            ("wait", self.wait.clone(), other.wait.clone()),
            ("batch", self.batch.to_string(), other.batch.to_string()),
            ("submit", submit(self), submit(other)),
            ("jobs", self.jobs.to_string(), other.jobs.to_string()),
            ("cores", bound(self), bound(other)),
            ("sqpoll", switch(self.sqpoll), switch(other.sqpoll)),
        ];
        let differing = parts.into_iter().filter(|(_, one, other)| one != other);
        let words: Vec<String> =
            differing.map(|(part, one, other)| format!("{part} {one} and {other}")).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        let one = MethodResult {
            name: "default".to_owned(),
            engine: "io_uring".to_owned(),
            wait: "sleep".to_owned(),
            batch: 1,
            jobs: 1,
            cores: vec![0],
            ..MethodResult::default()
        };
        // Which core it was is chance.
        assert_eq!(one.differences(&MethodResult { cores: vec![1], ..one.clone() }), None);
        let other = MethodResult {
            wait: "spin".to_owned(),
            submit: Some(2),
            cores: Vec::new(),
            ..one.clone()
        };
        let told = one.differences(&other).unwrap();
        assert_eq!(told, "wait sleep and spin, submit all and 2, cores bound and free");
    }
}
