//! Requests in the system over time, from arrivals and departures alone.

use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_figures::{Invariant, picoseconds};

use crate::count_over_time::CountOverTime;

/// Integrates the number of requests in the system over time.
///
/// Little's law says that it equals the sum of the times the requests spent there. The integral
/// depends only on when *some* request came or went, the sum only on how long *each* took; so a
/// request that is counted twice, lost or given a wrong start makes them differ.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Little {
    #[serde(with = "picoseconds")]
    last: Time,
    /// The latest arrival: the load has ended by then, and what follows is the rest of its requests.
    #[serde(with = "picoseconds", default)]
    last_arrival: Time,
    outstanding: i64,
    outstanding_max: i64,
    integral_ps: i128,
    /// Sum over departed requests of the part of their stay inside the window.
    stays_ps: u128,
    stays: u64,
    /// Arrivals and departures over time, of an open loop.
    #[serde(default)]
    arrivals: CountOverTime,
    #[serde(default)]
    departures: CountOverTime,
}

impl Little {
    /// Begins the window at `start`, keeping the requests that are in the system. No event may
    /// have been later than `start`.
    pub(crate) fn restart(&mut self, start: Time) {
        self.move_to(start);
        self.integral_ps = 0;
        self.outstanding_max = self.outstanding;
        self.stays_ps = 0;
        self.stays = 0;
        self.arrivals.restart(start, self.outstanding.max(0) as u64);
        self.departures.restart(start, 0);
    }

    #[inline]
    fn move_to(&mut self, at: Time) {
        if at > self.last {
            self.integral_ps += i128::from(self.outstanding) * ahead(at, self.last);
            self.last = at;
        }
    }

    #[inline]
    pub(crate) fn arrived(&mut self, at: Time, start: Time) {
        self.move_to(at);
        // An arrival before the last event (an intended start that is reported late) has been in
        // the system since `at`, but counts only inside the window.
        self.integral_ps += ahead(self.last, at.max(start).min(self.last));
        self.outstanding += 1;
        self.arrivals.add(at, 1);
        self.last_arrival = self.last_arrival.max(at);
        self.outstanding_max = self.outstanding_max.max(self.outstanding);
    }

    /// `count` requests arrived at `at`, which is not before any other event.
    #[inline]
    pub(crate) fn arrived_many(&mut self, at: Time, count: u64) {
        self.move_to(at);
        self.outstanding += count as i64;
        self.last_arrival = self.last_arrival.max(at);
        self.outstanding_max = self.outstanding_max.max(self.outstanding);
    }

    /// `count` requests departed at `at`, which is not before any other event.
    #[inline]
    pub(crate) fn departed_many(&mut self, at: Time, count: u64) {
        self.move_to(at);
        self.outstanding -= count as i64;
        self.departures.add(at, count);
    }

    /// `count` requests stayed for `stays_ps` in all inside the window.
    #[inline]
    pub(crate) fn stayed_many(&mut self, count: u64, stays_ps: u128) {
        self.stays += count;
        self.stays_ps += stays_ps;
    }

    /// Nothing more happens before `at`.
    pub(crate) fn advance(&mut self, at: Time) {
        self.move_to(at);
    }

    /// Adds the requests of another job, which has the same window and was advanced to the same
    /// end. The largest number outstanding becomes an upper bound: the sum of both.
    pub(crate) fn merge(&mut self, other: &Little) {
        self.outstanding += other.outstanding;
        self.outstanding_max += other.outstanding_max;
        self.last_arrival = self.last_arrival.max(other.last_arrival);
        self.arrivals.merge(&other.arrivals);
        self.departures.merge(&other.departures);
        self.integral_ps += other.integral_ps;
        self.stays_ps += other.stays_ps;
        self.stays += other.stays;
    }

    #[inline]
    pub(crate) fn departed(&mut self, at: Time, start: Time) {
        self.move_to(at);
        // A completion may be reported after later events. The integral has counted the request
        // for too long by then, and the surplus is taken back.
        self.integral_ps -= ahead(self.last, at.max(start).min(self.last));
        self.outstanding -= 1;
        self.departures.add(at, 1);
    }

    #[inline]
    pub(crate) fn stayed(&mut self, from: Time, to: Time, start: Time) {
        self.stays_ps += u128::from(to.saturating_sub(from.max(start)).as_ps());
        self.stays += 1;
    }

    /// The latest event.
    pub(crate) fn now(&self) -> Time {
        self.last
    }

    /// Moves the arrivals and departures over time; the sums stay as they are.
    pub(crate) fn shift(&mut self, by: impl Fn(Time) -> Time) {
        self.arrivals.shift(&by);
        self.departures.shift(&by);
    }

    /// Arrivals and departures over time since the window began.
    pub(crate) fn courses(&self) -> (&CountOverTime, &CountOverTime) {
        (&self.arrivals, &self.departures)
    }

    /// The latest arrival.
    pub(crate) fn last_arrival(&self) -> Time {
        self.last_arrival
    }

    pub(crate) fn outstanding_max(&self) -> u64 {
        self.outstanding_max.max(0) as u64
    }

    /// Mean number of requests in the system over `[start, end)`; `None` for an empty window.
    pub(crate) fn mean_outstanding(&mut self, start: Time, end: Time) -> Option<f64> {
        self.move_to(end);
        let window = end.saturating_sub(start).as_ps();
        (window > 0).then(|| self.integral_ps as f64 / window as f64)
    }

    /// Whether mean number = rate times mean stay. Exact where the system is empty at the end;
    /// otherwise the requests still in it may account for as much as the whole window each.
    pub(crate) fn check(&mut self, start: Time, end: Time) -> Option<Invariant> {
        let measured = self.mean_outstanding(start, end)?;
        let window_s = end.saturating_sub(start).as_s_f64();
        let rate = self.stays as f64 / window_s;
        let stay_s = self.stays_ps as f64 / 1e12 / self.stays.max(1) as f64;
        // Both sums are whole picoseconds, so the law is checked without a tolerance. Each
        // request that is still in the system may miss in the sum of stays with anything up to
        // the whole window.
        let missing = self.integral_ps - self.stays_ps as i128;
        let most = i128::from(self.outstanding.max(0)) * ahead(end, start);
        let holds = self.outstanding >= 0 && (0..=most).contains(&missing);
        let mut detail = format!(
            "mean outstanding {measured:.6} = {rate:.3}/s x {:.3} us = {:.6}",
            stay_s * 1e6,
            rate * stay_s
        );
        if self.outstanding != 0 {
            detail.push_str(&format!(" ({} never completed)", self.outstanding));
        }
        Some(Invariant { name: "littles_law".into(), holds, detail })
    }
}

#[inline]
fn ahead(later: Time, earlier: Time) -> i128 {
    i128::from(later.as_ps()) - i128::from(earlier.as_ps())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn feed(stays: &[(u64, u64)], start: u64) -> Little {
        let mut events: Vec<(u64, bool, usize)> = Vec::new();
        for (i, (from, length)) in stays.iter().enumerate() {
            events.push((*from, true, i));
            events.push((from + length, false, i));
        }
        events.sort_by_key(|(at, arrival, i)| (*at, !arrival, *i));
        let mut little = Little::default();
        let (start_t, mut started) = (Time::from_ps(start), false);
        for (at, arrival, i) in events {
            if at >= start && !started {
                little.restart(start_t);
                started = true;
            }
            let window = if started { start_t } else { Time::ZERO };
            let at_t = Time::from_ps(at);
            if arrival {
                little.arrived(at_t, window);
            } else {
                little.departed(at_t, window);
                little.stayed(Time::from_ps(stays[i].0), at_t, window);
            }
        }
        little
    }

    proptest! {
        #[test]
        fn holds_for_any_stays(
            stays in prop::collection::vec((0u64..1_000, 0u64..500), 1..80),
            start in 0u64..400,
        ) {
            let end = stays.iter().map(|(f, l)| f + l).max().unwrap_or(0);
            let mut little = feed(&stays, start);
            if end > start {
                let (start, end) = (Time::from_ps(start), Time::from_ps(end));
                let check = little.check(start, end).unwrap();
                prop_assert!(check.holds, "{}", check.detail);
                prop_assert_eq!(little.integral_ps, little.stays_ps as i128);
            }
        }
    }

    #[test]
    fn fails_when_a_request_is_lost_or_its_start_is_wrong() {
        let (start, end) = (Time::ZERO, Time::from_ps(100));
        let mut wrong_start = feed(&[(0, 50), (20, 80)], 0);
        wrong_start.stays_ps += 1;
        assert!(!wrong_start.check(start, end).unwrap().holds);
        let mut twice = feed(&[(0, 50), (20, 80)], 0);
        twice.departed(end, start);
        twice.stayed(Time::from_ps(20), end, start);
        assert!(!twice.check(start, end).unwrap().holds);
    }

    #[test]
    fn late_reports_count_from_when_they_happened() {
        let mut little = Little::default();
        little.arrived(Time::from_ps(10), Time::ZERO);
        little.departed(Time::from_ps(50), Time::ZERO);
        little.arrived(Time::from_ps(20), Time::ZERO);
        little.departed(Time::from_ps(40), Time::ZERO);
        assert_eq!(little.mean_outstanding(Time::ZERO, Time::from_ps(60)), Some(1.0));
        assert_eq!(little.check(Time::ZERO, Time::ZERO).map(|c| c.holds), None);
    }
}
