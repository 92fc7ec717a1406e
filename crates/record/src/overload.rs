//! Whether requests arrive faster than the target completes them.

use ssdyno_block::Time;
use ssdyno_figures::{DEPTH_ENOUGH, Warning, WarningKind, rate, seconds, significant};

use crate::count_over_time::CountOverTime;
use crate::statistics::mean;

/// Parts of the run whose backlogs are compared; the second half of them must rise.
const PARTS: usize = 8;
/// Moments at which the backlog is looked at, the last of them before the last arrival.
pub(crate) const POINTS: usize = 8 * PARTS;
/// The relative amount by which arrivals must exceed completions.
const LEAST: f64 = 1.01;
/// The growth of the backlog, in standard deviations of a Poisson process, that counts: a queue near its limit wanders.
const DEVIATIONS: f64 = 4.0;
/// The backlog at the end by its smallest: a queue that only wanders about its level grows less.
const GROWTH: f64 = 1.5;

/// The ratio of the backlog of the last part to that of the first, at the limit.
const AT_LIMIT: f64 = 2.0;

/// An open loop that the target does not keep up with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Overload {
    /// Requests that arrive per second; `None` where they are too near to the completions to tell.
    arriving: Option<f64>,
    /// Requests that complete per second.
    completing: f64,
    /// Requests in the system in the last part of the run.
    backlog: f64,
    /// The lengths of time from the first arrival to the last arrival, and to the last completion.
    lasted: [Time; 2],
}

impl Overload {
    /// Compares the arrivals and the departures of an open loop. Their difference is the number of requests that have arrived and
    /// not completed. Where the depth is limited, an arrival counts from when it was due, so that this includes those that
    /// had no free slot.
    pub(crate) fn find(
        (arrivals, departures): (&CountOverTime, &CountOverTime),
    ) -> Option<Overload> {
        let (first, _) = arrivals.at_first()?;
        let length = arrivals.last().saturating_sub(first);
        let backlogs = backlogs(arrivals, departures)?;
        let parts: Vec<f64> = backlogs.chunks(POINTS / PARTS).map(mean).collect();
        // Only the second half must rise. A buffer that takes the first requests at once keeps
        // the backlog low until it is full.
        let rises = parts[PARTS / 2..].windows(2).all(|pair| pair[0] < pair[1]);
        // Between two bursts the backlog falls. It is then never again as small as it was at first.
        let smallest = |backlogs: &[f64]| backlogs.iter().copied().fold(f64::INFINITY, f64::min);
        let early = backlogs[..POINTS / 4].iter().copied().fold(1.0, f64::max);
        let rises = rises || smallest(&backlogs[POINTS / 2..]) > GROWTH * early;
        let least = smallest(&parts).max(1.0);
        let last = parts[PARTS - 1];
        let arriving = arrivals_per_second(arrivals)?;
        if catches_up((arrivals, departures), &backlogs)? {
            return None;
        }
        let completing = completions_per_second(departures)?;
        let second_half =
            arrivals.count() as f64 - arrivals.before(moment(first, length, POINTS / 2));
        let grown = (last - parts[PARTS / 2]).max(last - early);
        let found = rises
            && last > GROWTH * least
            && arriving > LEAST * completing
            && grown > DEVIATIONS * second_half.sqrt();
        // Arrivals and completions without noise: an excess of a thousandth of them is certain. The relative amount that
        // arrivals must exceed completions by is for noisy ones.
        let found = found || arriving > completing && grows_steadily(&backlogs, &parts);
        // A queue at its limit (load 1) grows by the root of the requests; one with room stays far below that.
        let most = parts[..PARTS - 2].iter().copied().fold(0.0, f64::max);
        let at_limit = last.min(parts[PARTS - 2]) > most
            && last > AT_LIMIT * parts[0]
            && last > (arrivals.count() as f64).sqrt();
        let arriving = found.then_some(arriving);
        let lasted = [length, departures.last().saturating_sub(first)];
        (found || at_limit).then_some(Overload { arriving, completing, backlog: last, lasted })
    }

    /// The warning about a load with at most `limit` outstanding requests.
    pub(crate) fn warning(self, limit: Option<u64>) -> Warning {
        let Overload { arriving, completing, backlog, .. } = self;
        let Some(arriving) = arriving else {
            let message = format!(
                "at the limit of the target ({} requests per second): the queue grew to {} \
                 requests and has no steady length, so latencies depend on the length of the run",
                rate(completing),
                significant(backlog, 2)
            );
            return Warning::new(WarningKind::Overloaded, message)
                .with_help(format!("lower the arrival rate{}", or_raise(limit)));
        };
        let factor = arriving / completing;
        let message = format!(
            "overloaded {}x: {} requests arrive per second, the target completes {}; the queue grows during the whole run, so latencies depend on the length of the run{}",
            significant(
                factor,
                if factor < 1.01 {
                    5
                } else if factor < 1.1 {
                    3
                } else {
                    2
                }
            ),
            rate(arriving),
            rate(completing),
            self.drained()
        );
        Warning::new(WarningKind::Overloaded, message).with_help(format!(
            "lower the arrival rate below {} requests per second{}",
            rate(completing),
            or_raise(limit)
        ))
    }
}

impl Overload {
    /// The end of the warning of a run that took much longer than its arrivals. A run that stopped with them would leave the
    /// requests out that waited longest.
    fn drained(self) -> String {
        let [arrivals, all] = self.lasted;
        if all.as_ps() / 5 < arrivals.as_ps() / 4 {
            return String::new();
        }
        let [arrivals, all] = [arrivals, all].map(|time| seconds(time.as_s_f64()));
        format!("; the run completed the requests that had arrived in {arrivals}, and lasted {all}")
    }
}

/// The requests that have arrived and not completed at [`POINTS`] moments from the first arrival to the last one.
pub(crate) fn backlogs(arrivals: &CountOverTime, departures: &CountOverTime) -> Option<Vec<f64>> {
    let (first, _) = arrivals.at_first()?;
    let length = arrivals.last().saturating_sub(first);
    // One burst has no rate, and few arrivals show nothing.
    if length == Time::ZERO || arrivals.len() < POINTS {
        return None;
    }
    let moments = (1..=POINTS).map(|at| moment(first, length, at));
    Some(moments.map(|at| arrivals.before(at) - departures.before(at)).collect())
}

/// Whether the target empties the longest of `backlogs` faster than requests arrive, as after a stall.
pub(crate) fn catches_up(
    (arrivals, departures): (&CountOverTime, &CountOverTime),
    backlogs: &[f64],
) -> Option<bool> {
    let (first, _) = arrivals.at_first()?;
    let length = arrivals.last().saturating_sub(first);
    let longest = (0..backlogs.len()).max_by(|a, b| backlogs[*a].total_cmp(&backlogs[*b]))?;
    Some(recovers(departures, moment(first, length, longest + 1), arrivals_per_second(arrivals)?))
}

/// The rate from the first to the last arrival. The arrivals of the first moment are of no stretch of time: a burst comes as a
/// whole.
fn arrivals_per_second(arrivals: &CountOverTime) -> Option<f64> {
    let (first, at_once) = arrivals.at_first()?;
    let all = arrivals.count().saturating_sub(at_once) as f64 - arrivals.before(first);
    Some(all / arrivals.last().saturating_sub(first).as_s_f64())
}

/// Moment `at` of [`POINTS`] between the first and the last arrival.
fn moment(first: Time, length: Time, at: usize) -> Time {
    first + Time::from_ps((length.as_ps() as f64 * share(at)) as u64)
}

/// Whether the backlog grows all the time by about as much: by [`DEVIATIONS`] standard errors of its own growth from moment to
/// moment (a queue without a drift grows so in one of 30 000 runs), in each of the parts, and in the second half of the run by
/// at least half as much as in the first. A queue that grows to its level does so less and less.
fn grows_steadily(backlogs: &[f64], parts: &[f64]) -> bool {
    let steps: Vec<f64> = backlogs.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (n, step) = (steps.len() as f64, mean(&steps));
    let squares: f64 = steps.iter().map(|one| (one - step).powi(2)).sum();
    let certain = step > DEVIATIONS * (squares / (n - 1.0) / n).sqrt();
    let halves = [parts[PARTS / 2 - 1] - parts[0], parts[PARTS - 1] - parts[PARTS / 2]];
    certain
        && parts.windows(2).all(|pair| pair[0] < pair[1])
        && parts[PARTS - 1] > AT_LIMIT * parts[0].max(1.0)
        && halves[1] > halves[0] / 2.0
}

/// Whether the target completes more requests per second than the `arriving` ones since `longest`, the moment of its longest
/// backlog.
///
/// With a backlog, a target completes as many requests as it can. If it can do more than arrives, the backlog did not
/// come from the arrival rate: the target stalled (a device reset), or the load paused. The backlog is then emptied, during the
/// arrivals or after them. Below the arrival rate, the target completes fewer requests than arrive in any stretch of time
/// with a backlog. Of `n` completions, `n - DEVIATIONS * sqrt(n)` are beyond chance.
fn recovers(departures: &CountOverTime, longest: Time, arriving: f64) -> bool {
    let completed = (departures.count() as f64 - departures.before(longest)).max(0.0);
    let seconds = departures.last().saturating_sub(longest).as_s_f64();
    completed - DEVIATIONS * completed.sqrt() > LEAST * arriving * seconds
}

/// The part of the time from the first to the last arrival at which moment `at` of [`POINTS`] lies.
fn share(at: usize) -> f64 {
    at as f64 / POINTS as f64
}

/// The rate of the second half of the completions, when buffers are full.
fn completions_per_second(departures: &CountOverTime) -> Option<f64> {
    let [from, to] = departures.second_half()?;
    let seconds = to.0.saturating_sub(from.0).as_s_f64();
    (seconds > 0.0).then(|| to.1.saturating_sub(from.1) as f64 / seconds)
}

/// With few requests outstanding it may be the limit that does not keep up, and not the target. One run cannot tell
/// them apart: by Little's law, a target that serves one request at a time has the same figures.
fn or_raise(limit: Option<u64>) -> String {
    limit.filter(|limit| *limit < DEPTH_ENOUGH).map_or_else(String::new, |limit| {
        format!(
            "; a greater depth (now {limit}) helps only if the target serves more requests at once"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;

    /// A queue with one server (Lindley's recursion) that serves 1 request per second and is offered `load`; `busy`
    /// arrivals at the start are served ten times as fast (a buffer).
    fn queue(load: f64, requests: usize, busy: usize, seed: u64) -> Option<Overload> {
        let mut draw = Draw(seed);
        let (mut arrival, mut free) = (0.0, 0.0f64);
        let (mut arrivals, mut departures) = started();
        for at in 0..requests {
            arrival += draw.exponential() / load;
            free = free.max(arrival) + draw.exponential() * if at < busy { 0.1 } else { 1.0 };
            arrivals.add(seconds(arrival), 1);
            departures.add(seconds(free), 1);
        }
        Overload::find((&arrivals, &departures))
    }

    fn seconds(seconds: f64) -> Time {
        Time::from_ns((seconds * 1e9) as u64)
    }

    fn started() -> (CountOverTime, CountOverTime) {
        let (mut arrivals, mut departures) = (CountOverTime::default(), CountOverTime::default());
        arrivals.restart(Time::ZERO, 0);
        departures.restart(Time::ZERO, 0);
        (arrivals, departures)
    }

    /// Requests that arrive each millisecond for 16 s. Each takes `service_us` of the one server, which hangs from
    /// `from` to `to` (seconds).
    fn stalled(service_us: f64, from: f64, to: f64) -> Option<Overload> {
        let (mut arrivals, mut departures) = started();
        let mut free = 0.0f64;
        for at in 1..=16_000 {
            let arrival = f64::from(at) * 1e-3;
            let start = free.max(arrival);
            let start = if (from..to).contains(&start) { to } else { start };
            free = start + service_us * 1e-6;
            arrivals.add(seconds(arrival), 1);
            departures.add(seconds(free), 1);
        }
        Overload::find((&arrivals, &departures))
    }

    /// A reset of one second makes a queue of 1000 requests. At 500 µs each, the target empties it within 1 s, before the
    /// last arrival; at 800 µs it completes 1250 requests per second, and empties the queue in 1000 / 250 s = 4 s, partly
    /// after the last arrival. Neither is the limit of the target. At 1.25 ms it completes 800 of 1000 per second.
    #[test]
    fn a_stall_that_the_target_makes_up_for_is_no_limit() {
        for (service_us, from) in [(500.0, 13.0), (500.0, 14.0), (800.0, 12.0), (800.0, 14.0)] {
            assert_eq!(stalled(service_us, from, from + 1.0), None, "{service_us} us, {from} s");
        }
        let found = factor(stalled(1_250.0, 12.0, 13.0));
        assert!((1.25..1.4).contains(&found), "{found}");
    }

    /// Bursts of `length` requests each `interval` seconds; the target serves 1 request per second.
    fn bursts(many: u64, length: u64, interval: f64) -> Option<Overload> {
        let (mut arrivals, mut departures) = started();
        let mut free = 0.0f64;
        for burst in 0..many {
            let at = burst as f64 * interval;
            for _ in 0..length {
                free = free.max(at) + 1.0;
                arrivals.add(seconds(at), 1);
                departures.add(seconds(free), 1);
            }
        }
        Overload::find((&arrivals, &departures))
    }

    #[test]
    fn bursts_have_the_rate_of_their_interval() {
        for many in [4, 10, 100] {
            let found = factor(bursts(many, 10_000, 2_500.0));
            assert!((found / 4.0 - 1.0).abs() < 0.03, "{many}: {found}");
        }
        // The target serves each burst before the next one.
        for many in [1, 2, 3, 4, 7, 20, 200] {
            assert_eq!(bursts(many, 100, 110.0), None, "{many} bursts");
            assert_eq!(bursts(many, 100, 5_000.0), None, "{many} bursts with long pauses");
        }
    }

    /// Flushes take 20 000 times as long as the other requests, and complete many at a time.
    #[test]
    fn a_few_slow_requests_are_no_queue_of_millions() {
        let (mut arrivals, mut departures) = started();
        let mut ends = Vec::new();
        for at in 0..5_000u32 {
            let now = f64::from(at) * 87e-6;
            arrivals.add(seconds(now), 1);
            ends.push(if at % 5 == 0 { (now / 0.18).floor() * 0.18 + 0.36 } else { now + 9e-6 });
        }
        ends.sort_by(f64::total_cmp);
        ends.iter().for_each(|end| departures.add(seconds(*end), 1));
        let backlog = Overload::find((&arrivals, &departures)).map_or(0.0, |found| found.backlog);
        assert!(backlog <= 1_000.0, "{backlog}");
    }

    fn factor(found: Option<Overload>) -> f64 {
        found.map_or(0.0, |found| found.arriving.unwrap_or(0.0) / found.completing)
    }

    #[test]
    fn an_overload_is_found_with_its_factor() {
        for load in [1.1, 1.7, 5.0] {
            for seed in 0..50 {
                let found = factor(queue(load, 20_000, 0, seed));
                assert!((found / load - 1.0).abs() < 0.08, "{load}, seed {seed}: {found}");
                let found = factor(queue(load, 20_000, 5_000, seed));
                assert!((found / load - 1.0).abs() < 0.08, "{load}, buffer, seed {seed}: {found}");
            }
        }
    }

    /// Requests arrive each 99.9 µs and take 100 µs each: of 1.001 requests, one completes. 400 requests more than completed have
    /// arrived at the end of 400 000, and 40 at that of 40 000. At 100.1 µs the queue is never longer than one request.
    #[test]
    fn an_excess_of_a_thousandth_without_noise_is_an_overload() {
        let regular = |gap_ns: u64, requests: u64| {
            let (mut arrivals, mut departures) = started();
            let mut free = Time::ZERO;
            for at in 0..requests {
                let arrival = Time::from_ns(at * gap_ns);
                free = free.max(arrival) + Time::from_us(100);
                arrivals.add(arrival, 1);
                departures.add(free, 1);
            }
            Overload::find((&arrivals, &departures))
        };
        for requests in [40_000, 400_000] {
            let found = regular(99_900, requests);
            assert!((factor(found) / 1.001 - 1.0).abs() < 1e-5, "{requests}: {found:?}");
            let told = found.unwrap().warning(None);
            assert!(told.message.starts_with("overloaded 1.0010x: 10.01 k requests"), "{told:?}");
            let help = "lower the arrival rate below 10.00 k requests per second";
            assert_eq!(told.help.as_deref(), Some(help));
            assert_eq!(regular(100_100, requests), None);
        }
    }

    /// The arrivals of 1.1 times the rate end shortly before the run; those of five times the rate end after a fifth of it.
    #[test]
    fn a_run_that_is_much_longer_than_its_arrivals_says_so() {
        let text = |load| queue(load, 20_000, 0, 1).unwrap().warning(None).message;
        let told = text(5.0);
        assert!(
            told.contains("; the run completed the requests that had arrived in 67.54 min"),
            "{told}"
        );
        assert!(told.ends_with(", and lasted 334.3 min"), "{told}");
        assert!(!text(1.1).contains("the run completed"), "{}", text(1.1));
    }

    /// Of 4000 runs below the limit, none is reported as overloaded; near it (0.97), fewer than one in a hundred.
    #[test]
    fn a_queue_that_keeps_up_is_not_overloaded() {
        for (load, most) in [(0.3, 0), (0.8, 0), (0.9, 0), (0.97, 10)] {
            let found = |seed| queue(load, 4_000, 0, seed);
            let told = (0..1_000).filter(|seed| factor(found(*seed)) > 0.0).count();
            assert!(told <= most, "{load}: {told}");
            let at_limit = (0..1_000).filter(|seed| found(*seed).is_some()).count();
            assert!(load > 0.9 || at_limit <= 10, "{load}: {at_limit} at the limit");
        }
    }

    /// So near that a longer run may or may not grow; never without a warning where the queue is long.
    #[test]
    fn a_queue_at_its_limit_is_told() {
        let told = (0..100).filter(|seed| queue(1.03, 20_000, 0, *seed).is_some()).count();
        assert!(told >= 80, "{told}");
    }
}
