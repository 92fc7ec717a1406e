//! The highest rate of arrivals at which a latency stays within a bound, and how it is found.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::counted;
use ssdyno_figures::DEPTH_ENOUGH;
use ssdyno_report::figure_format;
use ssdyno_session::Failure;

use crate::objective::Requirement;

/// The bracket is narrow enough where its ends differ by this factor.
const NARROW: f64 = 1.05;

/// Below this share of the rate of the pilot nothing is tried.
const LEAST: f64 = 0.01;

/// Rates that are tried at the most: a guard, because doubling ends with an overload and a bracket of a factor of two takes four.
const STEPS_MAX: usize = 60;

/// What the runs at one rate say about the bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Within,
    Beyond,
    /// More requests arrive than the target completes: beyond, whatever the latency of those that ended.
    Overloaded,
    /// Requests failed: beyond, whatever the latency of the others.
    Failing(FailedRequests),
    /// The bound lies within the interval of the figure.
    Undecided,
}

/// Requests of a run that ended in an error or never completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FailedRequests {
    /// Number of requests that failed.
    pub failed: u64,
    /// Number of all requests.
    pub requests: u64,
}

impl fmt::Display for FailedRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = counted(self.requests, "request", "requests");
        write!(f, "{} of {requests} failed", self.failed)
    }
}

/// The highest rate of arrivals at which a latency stays within its bound and no request fails. Rates are requests per
/// second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// The bounded figure, such as `latency_ns.p99`.
    pub figure: String,
    /// The bound in nanoseconds.
    pub bound: f64,
    /// Rate of a closed loop with one request at a time: the start of the search.
    pub pilot: f64,
    /// The highest rate within the bound, with 95 %; left out if no rate was within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// The lowest rate beyond the bound, with 95 %; left out if no rate was beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<f64>,
    /// Whether `beyond` is the saturation of the target: requests arrive faster than the target completes them.
    #[serde(default)]
    pub overloaded: bool,
    /// Requests that failed at `beyond`; left out if none failed. A rate at which requests fail is never within the
    /// bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedRequests>,
    /// Greatest number of outstanding requests of the load with which `beyond` is saturated; left out without such a
    /// limit. The target may complete more requests per second with more outstanding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding_limit: Option<u64>,
    /// Rates between the two for which even the longest run was undecided, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<f64>,
    /// Number of rates that were tried.
    pub steps: u64,
}

impl Ceiling {
    pub(crate) fn new(bound: &Requirement, pilot: f64) -> Ceiling {
        Ceiling {
            figure: bound.figure().to_owned(),
            bound: bound.bound(),
            pilot,
            within: None,
            beyond: None,
            overloaded: false,
            failed: None,
            outstanding_limit: None,
            undecided: Vec::new(),
            steps: 0,
        }
    }

    /// The next rate to try, between `least` and `most`, with four digits; `None` where the search is over.
    pub(crate) fn next(&self, least: f64, most: f64) -> Option<f64> {
        // An end of the range that was rounded up is tried again as the rate below itself, without an end.
        let known = [self.within, self.beyond];
        let is_new = |rate: &f64| !known.contains(&Some(*rate)) && !self.undecided.contains(rate);
        self.proposed(least, most).map(rounded).filter(is_new)
    }

    fn proposed(&self, least: f64, most: f64) -> Option<f64> {
        // Doubling ends with an overload, and halving a bracket takes four steps. The guard is for a
        // target that does not get slower with more load.
        if self.steps >= STEPS_MAX as u64 {
            return None;
        }
        let (low, high) = (self.undecided.first(), self.undecided.last());
        // Below a hundredth of the pilot's rate the target is idle nearly all the time. A
        // lower rate does not lower the latency further.
        let least = least.max(LEAST * self.pilot);
        // The middle is geometric: rates span decades, and the arithmetic middle of 100
        // and 100000 would skip the lower two of them.
        let between = |from: f64, to: f64| (to / from > NARROW).then(|| (from * to).sqrt());
        match (self.within, self.beyond) {
            // Nothing is decided yet, so the pilot comes first. From rates that do not decide the search goes
            // down, because the bound may lie below all of them.
            (None, beyond) => match low.copied().or(beyond) {
                None => Some(self.pilot.clamp(least, most)),
                Some(at) if at > least => Some((at / 2.0).max(least)),
                Some(_) => None,
            },
            (Some(within), None) => {
                let at = high.copied().unwrap_or(within);
                (at < most).then(|| (at * 2.0).min(most))
            }
            (Some(within), Some(beyond)) => match low.zip(high) {
                None => between(within, beyond),
                Some((low, high)) => between(within, *low).or_else(|| between(*high, beyond)),
            },
        }
    }

    /// Takes what the runs at `rate` say. Latency rises with the rate: rates that did not decide below one within, or above
    /// one beyond, are decided by it.
    pub(crate) fn take(&mut self, rate: f64, side: Side, limit: Option<u64>) {
        // Undecided rates count as well: they took a run, and without them the
        // guard above could not end the search.
        self.steps += 1;
        match side {
            Side::Within => {
                self.within = Some(self.within.map_or(rate, |before| before.max(rate)));
                // Latency rises with the rate. A rate within the bound therefore decides all rates
                // below it, and one beyond decides all rates above.
                self.undecided.retain(|at| *at > rate);
            }
            Side::Beyond | Side::Overloaded | Side::Failing(_) => {
                if self.beyond.is_none_or(|before| rate < before) {
                    (self.beyond, self.overloaded) = (Some(rate), side == Side::Overloaded);
                    self.failed = match side {
                        Side::Failing(failed) => Some(failed),
                        _ => None,
                    };
                    self.outstanding_limit = limit;
                }
                self.undecided.retain(|at| *at < rate);
            }
            Side::Undecided => {
                self.undecided.push(rate);
                self.undecided.sort_by(f64::total_cmp);
            }
        }
    }

    /// Why the bound is not kept anywhere; `None` where it is.
    pub(crate) fn failure(&self, bound: &Requirement) -> Option<Failure> {
        if self.within.is_some() {
            return None;
        }
        if let (Some(failed), Some(rate), true) =
            (self.failed, self.beyond, self.undecided.is_empty())
        {
            let what = format!("no rate meets {}: {failed} at {}", bound.latency(), iops(rate));
            return Some(Failure::failed(what).with_help(
                "`run --rate` shows why requests fail at that rate; remove the cause, such as `faults`",
            ));
        }
        let tried = self.undecided.first().copied().or(self.beyond)?;
        let above = bound.latency_above(self.undecided.is_empty());
        let what = format!("{above} at every rate, down to {}", iops(tried));
        Some(Failure::failed(what).with_help(
            "raise the bound, or make the requests smaller; `--depth 1` shows the latency without a queue",
        ))
    }

    /// The result in a line.
    pub(crate) fn line(&self, bound: &Requirement) -> String {
        let bound = bound.latency();
        let beyond = self.beyond.map(|rate| match (self.failed, self.overloaded) {
            (Some(failed), _) => format!("{failed} at {}", iops(rate)),
            (None, true) => format!("saturated at {}", iops(rate)),
            (None, false) => format!("beyond at {}", iops(rate)),
        });
        let mut rest: Vec<String> = beyond.into_iter().collect();
        if let (Some(low), Some(high)) = (self.undecided.first(), self.undecided.last()) {
            rest.push(match low == high {
                true => format!("undecided at {}", iops(*low)),
                false => format!("undecided from {} to {}", iops(*low), iops(*high)),
            });
        }
        if self.beyond.is_none() {
            rest.push("bound not exceeded at any tried rate".to_owned());
        }
        let rest = rest.join(", ") + &of_depth(self.outstanding_limit);
        match self.within {
            Some(within) => format!("{bound} up to {} ({rest})", iops(within)),
            None => format!("no tried rate meets {bound} ({rest})"),
        }
    }
}

/// A load whose depth is limited saturates where its requests wait for each other, which may be far below the target.
fn of_depth(limit: Option<u64>) -> String {
    limit.filter(|limit| *limit < DEPTH_ENOUGH).map_or_else(String::new, |limit| {
        let requests = counted(limit, "request was", "requests were");
        format!("; at most {requests} outstanding, a greater depth (`-d`) may raise the rates")
    })
}

fn iops(rate: f64) -> String {
    let number = figure_format("iops")(rate);
    let has_unit = number.ends_with(char::is_alphabetic);
    number + if has_unit { "IOPS" } else { " IOPS" }
}

/// A rate with four digits, which are far below the 5 % at which the search ends. More would make the command that repeats a
/// run longer.
fn rounded(rate: f64) -> f64 {
    let scale = 10f64.powi(3 - rate.log10().floor() as i32);
    (rate * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(limit: f64, pilot: f64, side: impl Fn(f64) -> Side) -> (Ceiling, Vec<f64>) {
        let bound = Requirement::latency_target("p99=1ms").unwrap();
        let (mut ceiling, mut tried) = (Ceiling::new(&bound, pilot), Vec::new());
        while let Some(rate) = ceiling.next(1.0, limit) {
            tried.push(rate);
            ceiling.take(rate, side(rate), Some(32));
        }
        (ceiling, tried)
    }

    #[test]
    fn the_bracket_closes_around_the_bound_from_both_sides() {
        for (truth, pilot) in [(700.0, 1e5), (1e5, 1e5), (3.3e6, 1e5), (99.0, 100.0)] {
            let side = |rate| if rate <= truth { Side::Within } else { Side::Beyond };
            let (found, tried) = search(1e9, pilot, side);
            if truth < LEAST * pilot {
                assert_eq!(found.within, None);
                continue;
            }
            let (within, beyond) = (found.within.unwrap(), found.beyond.unwrap());
            assert!(within <= truth && truth < beyond && beyond / within <= NARROW, "{found:?}");
            assert!(tried.len() < 20, "{tried:?}");
        }
    }

    #[test]
    fn a_depth_of_1_is_one_request() {
        assert!(of_depth(Some(1)).contains("at most 1 request was outstanding"));
        assert!(of_depth(Some(2)).contains("at most 2 requests were outstanding"));
    }

    #[test]
    fn no_rate_is_tried_twice() {
        for pilot in [14_187.0, 14_187.4, 14_187.6, 99_996.0, 3.3333] {
            for side in [Side::Within, Side::Undecided, Side::Beyond] {
                let (found, mut tried) = search(pilot * 7.77, pilot, |_| side);
                assert!(tried.len() < 16, "{found:?}");
                tried.sort_by(f64::total_cmp);
                tried.dedup();
                assert_eq!(tried.len() as u64, found.steps, "{side:?} from {pilot}");
            }
        }
    }

    #[test]
    fn rates_that_do_not_decide_are_closed_in_from_both_sides() {
        let (found, _) = search(1e9, 1e3, |rate| match rate {
            rate if rate < 7_000.0 => Side::Within,
            rate if rate < 8_500.0 => Side::Undecided,
            _ => Side::Beyond,
        });
        let (low, high) = (found.undecided[0], *found.undecided.last().unwrap());
        assert!(low / found.within.unwrap() <= NARROW && found.beyond.unwrap() / high <= NARROW);
        assert!(found.within.unwrap() < 7_000.0 && found.beyond.unwrap() >= 8_500.0, "{found:?}");
    }

    #[test]
    fn a_bound_that_is_never_kept_and_one_that_is_never_broken_both_end() {
        let bound = Requirement::latency_target("p99=1ms").unwrap();
        let (found, tried) = search(1e9, 1e5, |_| Side::Beyond);
        assert_eq!((found.within, tried.last()), (None, Some(&1e3)));
        assert!(found.failure(&bound).unwrap().message.starts_with("p99 was above 1ms at every"));
        let (found, _) = search(1e6, 1e5, |_| Side::Within);
        assert_eq!((found.within, found.beyond), (Some(1e6), None));
        assert!(found.line(&bound).ends_with("(bound not exceeded at any tried rate)"));
        let (found, _) = search(1e9, 1e5, |_| Side::Undecided);
        assert!(found.within.is_none());
        assert!(
            found.failure(&bound).unwrap().message.starts_with("p99 may be above 1ms at every")
        );
        let side = |rate| if rate < 2e5 { Side::Within } else { Side::Overloaded };
        let (found, _) = search(1e9, 1e5, side);
        assert!(found.overloaded && found.line(&bound).contains("saturated at"));
    }

    /// The requests that do not fail may be as fast as ever.
    #[test]
    fn a_rate_at_which_requests_fail_is_not_within_the_bound() {
        let bound = Requirement::latency_target("p99=1ms").unwrap();
        let failing = Side::Failing(FailedRequests { failed: 1800, requests: 2000 });
        let (found, _) = search(1e9, 1e5, |_| failing);
        assert_eq!(found.within, None);
        let failure = found.failure(&bound).unwrap();
        assert!(failure.message.contains("1800 of 2000 requests failed at 1"), "{failure:?}");
        assert!(found.line(&bound).starts_with("no tried rate meets p99 <= 1"), "{found:?}");
        let (found, _) = search(1e9, 1e5, |rate| if rate < 2e5 { Side::Within } else { failing });
        assert!(found.failure(&bound).is_none());
        assert!(found.line(&bound).contains("requests failed at 2"), "{}", found.line(&bound));
    }
}
