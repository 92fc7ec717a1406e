//! Warnings that a reader must see before the figures: reasons why the figures may mislead.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why figures are misleading. Later versions may add kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// Requests arrive faster than the target completes them: the queue grows, and latencies with it.
    Overloaded,
    /// Figures include a warm-up that differs from the rest of the run.
    WarmUp,
    /// Rate or latency changes over the run: the figures depend on the length of the run.
    NotSteady,
    /// The rate falls, or latency rises, over the run: a longer run is slower than the figures.
    Slowing,
    /// Garbage collection has not reached the level of this load: write amplification still changes after the run.
    Unsettled,
    /// The run has too few requests for a figure.
    FewRequests,
    /// A write buffer, a cache or a fresh drive absorbed the load: figures of a longer load differ.
    NotExhausted,
    /// Burst credits set the rate, of the whole run or until they ran out: a longer run falls to the baseline.
    BurstCredits,
    /// Reads were served without the media: from holes, unwritten or trimmed blocks.
    NoMedia,
    /// The target is memory, or a cache in memory served it (page cache).
    Memory,
    /// The load differs from its author's description.
    OtherLoad,
    /// Other programs, or the tool itself, affected the figures.
    Machine,
}

impl WarningKind {
    /// Whether figures can look better than those of a longer run, or of the media: the target did less work for the
    /// load than it usually does. A limit that such figures meet is not known to hold.
    pub fn flatters(self) -> bool {
        match self {
            WarningKind::NotExhausted
            | WarningKind::BurstCredits
            | WarningKind::NoMedia
            | WarningKind::Memory
            | WarningKind::Slowing
            | WarningKind::Unsettled => true,
            // These can make figures worse, or leave them uncertain; the interval covers the latter.
            WarningKind::Overloaded
            | WarningKind::WarmUp
            | WarningKind::NotSteady
            | WarningKind::FewRequests
            | WarningKind::OtherLoad
            | WarningKind::Machine => false,
        }
    }

    /// Whether a constant rate comes from a stock that a longer run uses up: buffer, free blocks, credits.
    pub fn lives_on_stock(self) -> bool {
        matches!(self, WarningKind::NotExhausted | WarningKind::BurstCredits)
    }

    /// Whether the run has no steady state.
    pub fn is_unsteady(self) -> bool {
        matches!(self, WarningKind::NotSteady | WarningKind::Slowing)
    }
}

/// A warning of a run. Front ends show warnings above the figures.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Kind of the warning, for programs.
    pub kind: WarningKind,
    /// The problem, with its numbers.
    pub message: String,
    /// The remedy; `null` without a remedy.
    #[serde(default)]
    pub help: Option<String>,
    /// Bytes that a load must write to be free of the warning; `null` if that is unknown, or if more writes do not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_least_bytes: Option<u64>,
}

/// More outstanding requests than this keep any target busy: the target is the limit, and no help advises a greater depth.
pub const DEPTH_ENOUGH: u64 = 128;

/// How help begins that advises more requests.
pub const MORE_REQUESTS: &str = "give the run at least";

impl Warning {
    /// A warning without help.
    pub fn new(kind: WarningKind, message: impl Into<String>) -> Warning {
        Warning { kind, message: message.into(), help: None, writes_least_bytes: None }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Warning {
        Warning { help: Some(help.into()), ..self }
    }

    /// An overload of a load that `pauses` between its requests (`thinktime` in fio) need not be the fault of the target.
    #[must_use]
    pub fn with_pauses(mut self, pauses: bool) -> Warning {
        if pauses {
            self.message.push_str(
                "; the load pauses between its requests (`thinktime`), and this may be the limit instead of the target",
            );
        }
        self
    }

    /// Makes the help that of a load with the ramp-up `key`, whose name replaces `workload.ramp_up`. `None`: a trace, which
    /// has no ramp-up and no more requests than it has. Help that it cannot follow is removed.
    pub fn fit_to(&mut self, key: Option<&str>) {
        const OF_GENERATORS: &str = "workload.ramp_up";
        // A job file has no number of requests of its own, and a number for all jobs would not say which.
        if key != Some(OF_GENERATORS)
            && self.help.take_if(|help| help.starts_with(MORE_REQUESTS)).is_some()
            && key.is_some()
        {
            let longer =
                "let the jobs issue more requests: raise `runtime`, `size` or `number_ios`";
            self.help = Some(longer.to_owned());
        }
        let Some(help) = self.help.take_if(|help| help.contains(OF_GENERATORS)) else { return };
        // What stands in backticks is an option with its value in requests.
        let named = |key: &str| {
            let parts = help.split('`');
            let parts = parts.map(|part| if part.contains(OF_GENERATORS) { key } else { part });
            parts.collect::<Vec<_>>().join("`").replace("` (requests)", "`")
        };
        self.help = match key {
            Some(OF_GENERATORS) => Some(help),
            other => other.map(named),
        };
    }

    /// The same of one of several runs or hosts.
    #[must_use]
    pub fn of(self, whose: &str) -> Warning {
        Warning { message: format!("{whose}: {}", self.message), ..self }
    }

    /// Message and help as the terminal shows them, each in a line.
    pub fn lines(&self) -> String {
        match &self.help {
            Some(help) => format!("warning: {}\n  = help: {help}\n", self.message),
            None => format!("warning: {}\n", self.message),
        }
    }

    /// Message and help in one line.
    pub fn line(&self) -> String {
        match &self.help {
            Some(help) => format!("{}; {help}", self.message),
            None => self.message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_spare_the_media_flatter_and_uncertain_ones_do_not() {
        use WarningKind::{FewRequests, NoMedia, NotExhausted, NotSteady, Slowing, Unsettled};
        assert!([NoMedia, NotExhausted, Slowing, Unsettled].into_iter().all(WarningKind::flatters));
        assert!(!FewRequests.flatters() && !NotSteady.flatters());
        assert!(Slowing.is_unsteady() && NotSteady.is_unsteady() && !Unsettled.is_unsteady());
    }

    #[test]
    fn a_ramp_up_has_the_name_that_its_load_knows() {
        let named = |help: &str, key| {
            let mut warning = Warning::new(WarningKind::WarmUp, "").with_help(help);
            warning.fit_to(key);
            warning.help
        };
        let help = "leave it out with `--set workload.ramp_up=300`; see `docs`";
        assert_eq!(named(help, Some("workload.ramp_up")).unwrap(), help);
        let of_job = named(help, Some("ramp_time")).unwrap();
        assert_eq!(of_job, "leave it out with `ramp_time`; see `docs`");
        let help = "run longer, and leave the beginning out with `workload.ramp_up=N` (requests)";
        let of_job = named(help, Some("ramp_time")).unwrap();
        assert_eq!(of_job, "run longer, and leave the beginning out with `ramp_time`");
        assert_eq!(named(help, None), None);
        assert_eq!(named("run longer", None).unwrap(), "run longer");
        let more = format!("{MORE_REQUESTS} 61957500 requests");
        assert_eq!(named(&more, None), None);
        assert_eq!(named(&more, Some("workload.ramp_up")).unwrap(), more);
        assert!(named(&more, Some("ramp_time")).unwrap().contains("raise `runtime`"));
    }
}
