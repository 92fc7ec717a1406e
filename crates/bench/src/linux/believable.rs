//! Whether the p99 of a run is that of the target: one verdict from the warnings and from the load of the machine.

use std::iter;

use ssdyno_figures::{RunResult, TailVerdict, Warning, WarningKind, nanoseconds, significant};

use crate::reread::Reread;

/// Requests that p99 needs: ten lie beyond it.
const REQUESTS_LEAST: u64 = 1_000;
/// Other programs that keep more than this part of one CPU busy may stand before more than a hundredth of the requests.
// p99 leaves a hundredth of the requests beyond it. Another program that delays that many
// decides about it alone.
const OTHERS_CPUS: f64 = 0.2;
/// More than half of the requests beyond p99 would be enough to move it.
const STOLEN: f64 = 0.005;
/// Share of the run that must be steady. Noise alone ends a steady period now and then, shortly before the end of the run.
const STEADY_LEAST: f64 = 0.8;
/// Part of p99 that may be ours: more is no measurement of the target.
const OURS: f64 = 0.1;

/// Other programs that take more than this share of the processors are felt.
const CROWDED: f64 = 0.1;

/// The use of the processors by other programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Others {
    /// Of all processors, 0 to 1.
    pub(crate) share: f64,
    /// Processors of the machine.
    pub(crate) processors: f64,
    /// Of one CPU, 0 to 1, taken by the hypervisor for others.
    pub(crate) stolen: Option<f64>,
}

impl Others {
    /// Whether they took enough to be felt, of which [`crowded`] warns.
    fn crowd(self) -> bool {
        self.share > CROWDED
    }
}

/// That `others` took enough to move the figures of jobs that spin or sleep.
pub(crate) fn crowded(spins: bool, others: Others) -> Option<Warning> {
    if !others.crowd() {
        return None;
    }
    let taken = format!(
        "other programs used {:.0} % of this machine's CPU time during the run: the figures include \
         its effect",
        100.0 * others.share
    );
    // The kernel takes the CPU of a job that spins away for whole time slices; a job that sleeps is woken before others.
    let (message, help) = match spins {
        true => (
            format!(
                "{taken}, so p99 is not reliable: spinning jobs wait while another program uses \
                 their CPU"
            ),
            "stop them and run again, or choose a method that sleeps",
        ),
        false => (taken, "stop them and run again"),
    };
    Some(Warning::new(WarningKind::Machine, message).with_help(help))
}

/// The verdict over `result`, which is complete; `others` is `None` where the machine was not observed long enough.
/// `rereads` are the small ranges that were read several times.
pub(crate) fn verdict(
    result: &RunResult,
    others: Option<Others>,
    rereads: &[Reread],
) -> Option<TailVerdict> {
    let p99 = result.latency_ns.as_ref()?.all.p99;
    let mut against: Vec<String> = Vec::new();
    // Of 1000 requests ten lie beyond p99. With fewer, one slow request more or less moves the
    // figure visibly.
    if result.requests < REQUESTS_LEAST {
        against.push(format!(
            "the run has {} requests, but p99 needs {REQUESTS_LEAST}",
            result.requests
        ));
    }
    for warning in &result.warnings {
        let why = match warning.kind {
            WarningKind::Overloaded => "requests arrive faster than the target completes them",
            WarningKind::NotSteady | WarningKind::Slowing => "the run is not steady",
            WarningKind::Unsettled => "garbage collection has not settled",
            WarningKind::WarmUp => "the figures contain a warm-up",
            WarningKind::NoMedia => "reads were served without the media",
            WarningKind::NotExhausted => "a buffer or free space absorbed the writes",
            WarningKind::BurstCredits => "burst credits set the rate",
            WarningKind::Memory if result.page_cache == Some(true) => {
                "requests went through the page cache"
            }
            WarningKind::Memory => "the target is in memory",
            // Its first clause says it all.
            WarningKind::Machine => warning.message.split([':', '(']).next().unwrap_or_default(),
            WarningKind::FewRequests | WarningKind::OtherLoad => continue,
        };
        against.push(why.trim().to_owned());
    }
    against.extend(unsteady(result));
    // The host of a virtual disk usually has a cache that is larger than the range. Of another drive nothing is known, so
    // the verdict only names the doubt.
    against.extend(rereads.iter().filter(|reread| reread.is_virtual).map(|reread| {
        format!("{} on a virtual disk, whose host may have served it from its cache", reread.text())
    }));
    against.extend(busy(others));
    let floor = result.own_cost.and_then(|cost| cost.floor_cpu_ns_per_request);
    let late = result.issue_delay_ns.map(|delay| delay.p99);
    // Up to a tenth of p99 may be this program's own time. The figure then still describes the
    // target to about 10 %.
    let all = nanoseconds(p99);
    if let Some(ours) = floor.filter(|ours| *ours > OURS * p99) {
        against.push(format!(
            "the tool itself accounts for {} of the p99 of {all}",
            nanoseconds(ours)
        ));
    }
    if let Some(late) = late.filter(|late| *late > OURS * p99) {
        let late = nanoseconds(late);
        against.push(format!("1 % of the requests were issued at least {late} late (p99: {all})"));
    }
    against.dedup();
    Some(match against.is_empty() {
        false => TailVerdict { believable: false, reasons: against },
        true => TailVerdict {
            believable: true,
            reasons: iter::once(format!(
                "the run is steady and has {} requests, other programs took less than {OTHERS_CPUS} CPUs, and the target was not in memory or behind the page cache",
                result.requests
            ))
            .chain(rereads.iter().map(|reread| {
                format!("but {}, and a cache below may have served it", reread.text())
            }))
            .collect(),
        },
    })
}

/// What the use of the processors by other programs says against it.
fn busy(others: Option<Others>) -> Vec<String> {
    let Some(all @ Others { share, processors, stolen }) = others else {
        return vec![
            "the machine was not sampled for half a second and may have been busy".to_owned(),
        ];
    };
    let mut against = Vec::new();
    // The warning of a crowded machine is among the reasons already.
    if share * processors > OTHERS_CPUS && !all.crowd() {
        let [busy, of] = [share * processors, processors].map(|n| significant(n, 2));
        against.push(format!("other programs kept {busy} of {of} CPUs busy"));
    }
    if let Some(stolen) = stolen.filter(|stolen| *stolen > STOLEN) {
        let stolen = significant(100.0 * stolen, 2);
        against.push(format!("the hypervisor took {stolen} % of the CPU time"));
    }
    against
}

/// What the steady periods and the interval of p99 say against it: both stand beside this verdict.
fn unsteady(result: &RunResult) -> Vec<String> {
    let mut against = Vec::new();
    let steady = result.steady_state.as_ref().map(|steady| steady.steady_share);
    let warned = result.warns_of_unsteadiness() || result.warns_of(WarningKind::Overloaded);
    if let Some(share) = steady.filter(|share| *share < STEADY_LEAST && !warned) {
        let percent = significant(100.0 * share, 2);
        against.push(format!("the run was steady for only {percent} % of its time"));
    }
    let interval = result.confidence.as_ref().and_then(|all| all.latency_ns.all.p99);
    if interval.is_some_and(|interval| interval.upper().is_none()) {
        against.push("the interval of p99 has no upper end".to_owned());
    }
    against
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::{Interval, Latency, LatencyByOp, OwnCost, SteadyState};

    use super::*;

    const QUIET: Others = Others { share: 0.001, processors: 64.0, stolen: Some(0.0) };

    fn run(requests: u64) -> RunResult {
        let all = Latency { p99: 100_000.0, ..Latency::default() };
        let latency_ns = Some(LatencyByOp { all, ..LatencyByOp::default() });
        RunResult { requests, latency_ns, ..RunResult::default() }
    }

    fn text(result: &RunResult, others: Option<Others>) -> String {
        verdict(result, others, &[]).unwrap().text()
    }

    #[test]
    fn a_quiet_long_run_is_believed() {
        let told = text(&run(5_000), Some(QUIET));
        assert!(told.starts_with("yes, because the run is steady and has 5000 requests"), "{told}");
        assert_eq!(verdict(&RunResult::default(), Some(QUIET), &[]), None);
    }

    /// A small range that was read several times is a doubt, and on a virtual disk a reason against.
    #[test]
    fn a_range_that_a_cache_may_serve_is_told() {
        let told = |is_virtual| {
            let (job, hot) = (None, None);
            let reread = Reread { job, hot, bytes: 64 << 20, times: 25.0, is_virtual };
            verdict(&run(5_000), Some(QUIET), &[reread]).unwrap().text()
        };
        let doubt =
            "but the range of 64 MiB was read 25 times, and a cache below may have served it";
        assert!(told(false).starts_with("yes") && told(false).ends_with(doubt), "{}", told(false));
        let why = "no, because the range of 64 MiB was read 25 times on a virtual disk";
        assert!(told(true).starts_with(why), "{}", told(true));
    }

    /// The verdict agrees with the line of the steady periods and with the interval.
    #[test]
    fn a_run_that_left_its_steady_state_is_not_believed() {
        let steady = |steady_share| {
            let steady_state = Some(SteadyState { steady_share, ..SteadyState::default() });
            text(&RunResult { steady_state, ..run(5_000) }, Some(QUIET))
        };
        assert_eq!(steady(0.55), "no, because the run was steady for only 55 % of its time");
        assert!(steady(0.9).starts_with("yes"));
        let p99 = Interval { estimate: 1e5, low: 9e4, high: f64::INFINITY, level: 0.95 };
        let mut open = run(5_000);
        let confidence = open.confidence.get_or_insert_default();
        confidence.latency_ns.all.p99 = Some(p99);
        assert_eq!(text(&open, Some(QUIET)), "no, because the interval of p99 has no upper end");
    }

    /// One of 64 CPUs is far below the share that warns of a busy machine, and may still be ours.
    #[test]
    fn one_busy_cpu_of_many_is_a_reason() {
        let one = Others { share: 1.0 / 64.0, ..QUIET };
        let told = text(&run(5_000), Some(one));
        assert_eq!(told, "no, because other programs kept 1.0 of 64 CPUs busy");
        let stolen = Others { stolen: Some(0.02), ..QUIET };
        assert!(text(&run(5_000), Some(stolen)).contains("hypervisor took 2.0 %"));
        assert!(text(&run(5_000), None).contains("not sampled"));
    }

    /// Jobs that spin are told that their p99 is that of the scheduler, and the verdict names the cause once.
    #[test]
    fn spinning_jobs_on_a_busy_machine_have_no_p99() {
        let busy = Others { share: 0.5, processors: 2.0, stolen: None };
        let spinning = crowded(true, busy).unwrap();
        assert!(spinning.message.contains("used 50 %"), "{}", spinning.message);
        assert!(spinning.message.contains("p99 is not reliable"), "{}", spinning.message);
        assert!(spinning.help.as_deref().unwrap().ends_with("a method that sleeps"));
        let sleeping = crowded(false, busy).unwrap();
        assert!(!sleeping.message.contains("p99"), "{}", sleeping.message);
        assert_eq!(crowded(true, Others { share: 0.1, ..busy }), None);
        let mut result = run(5_000);
        result.warnings.push(spinning);
        let told = "no, because other programs used 50 % of this machine's CPU time during the run";
        assert_eq!(text(&result, Some(busy)), told);
    }

    #[test]
    fn warnings_and_own_cost_are_reasons() {
        let mut result = run(999);
        result.page_cache = Some(true);
        let others = "other programs used 50 % of this machine's CPU time during the run: more";
        result.warnings = vec![
            Warning::new(WarningKind::Memory, "buffered"),
            Warning::new(WarningKind::Machine, others),
        ];
        let cost = OwnCost { floor_cpu_ns_per_request: Some(20_000.0), ..OwnCost::default() };
        result.own_cost = Some(cost);
        let busy = Others { share: 0.5, processors: 2.0, stolen: None };
        assert_eq!(
            verdict(&result, Some(busy), &[]).unwrap().reasons,
            [
                "the run has 999 requests, but p99 needs 1000",
                "requests went through the page cache",
                "other programs used 50 % of this machine's CPU time during the run",
                "the tool itself accounts for 20.00 µs of the p99 of 100.0 µs",
            ]
        );
    }
}
