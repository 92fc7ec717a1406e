//! Whether an open loop ran long enough for the length of its queue.

use ssdyno_figures::{Confidence, Interval, LatencyIntervals, Warning, WarningKind, significant};

use crate::count_over_time::CountOverTime;
use crate::overload::{backlogs, catches_up};
use crate::statistics::mean;

/// A run must last for so many relaxation times of its queue. Of 80 runs of 20 000 requests (M/D/1), 1 is warned at load 0.95, 12
/// at 0.97, 45 at 0.98 and 69 at 0.99. With 12 it is 4 at 0.95, where the mean is right; with 5 it is 11 at 0.98, where every
/// third mean is 30 % too low.
const RELAXATIONS_LEAST: f64 = 8.0;
/// The mean queue, in requests, from which the approximation of heavy traffic holds.
const QUEUE_LEAST: f64 = 8.0;
/// A queue at its limit varies as much as its mean, and a third as much in a short run. Requests that do not wait for each other vary
/// by the root of their mean.
const VARIES_LEAST: f64 = 0.3;

/// The warning about an open loop whose queue is so long that the run contains few of its busy periods.
///
/// Near its limit, a queue is a Brownian motion that is reflected at 0 (Abate and Whitt, *Transient behavior of regulated
/// Brownian motion*, 1987). With the drift `d` and the variance `v` per second, its mean is `v / 2 d` and its relaxation time is
/// `v / d^2`, which is `4 mean^2 / v`. The run shows the mean and the variance, so the service time need not be known. In a
/// run that is too short the mean is too small, and so is this relaxation time.
///
/// The queue of a burst, or of a stall that the target makes up for, is no such motion.
pub(crate) fn warning((arrivals, departures): (&CountOverTime, &CountOverTime)) -> Option<Warning> {
    let backlogs = backlogs(arrivals, departures)?;
    let level = mean(&backlogs);
    let (_, at_once) = arrivals.at_first()?;
    if level <= at_once as f64 || catches_up((arrivals, departures), &backlogs)? {
        return None;
    }
    // A queue that the second half does not have any more came from a warm-up.
    let second_half = &backlogs[backlogs.len() / 2..];
    if spread(&backlogs) < VARIES_LEAST * level || !is_queue(&backlogs) || !is_queue(second_half) {
        return None;
    }
    let steps: f64 = backlogs.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    // Of the whole run: its square root is the wander of the queue from the start to the end.
    let variance = steps * backlogs.len() as f64 / (backlogs.len() - 1) as f64;
    let relaxations = variance / (4.0 * level * level);
    (relaxations < RELAXATIONS_LEAST).then(|| {
        let message = format!(
            "too near the limit of the target for the length of the run: the queue has {} requests on average and changes \
             slowly, so mean latency and percentiles of a longer run may be far higher",
            significant(level, 2)
        );
        Warning::new(WarningKind::NotSteady, message)
            .with_help("run longer, or lower the arrival rate")
    })
}

fn spread(backlogs: &[f64]) -> f64 {
    let level = mean(backlogs);
    let distance = |one: &f64| (one - level).powi(2);
    (backlogs.iter().map(distance).sum::<f64>() / backlogs.len() as f64).sqrt()
}

/// Whether `backlogs` are long and vary more than requests that do not wait for each other.
fn is_queue(backlogs: &[f64]) -> bool {
    let level = mean(backlogs);
    level >= QUEUE_LEAST && spread(backlogs) >= 2.0 * level.sqrt()
}

/// Removes the upper ends of the intervals of latencies: the run does not show how long the queue becomes.
pub(crate) fn open(confidence: &mut Confidence) {
    let by_op = &mut confidence.latency_ns;
    let all = [&mut by_op.read, &mut by_op.write, &mut by_op.trim, &mut by_op.flush];
    for intervals in all.into_iter().flatten().chain([&mut by_op.all]) {
        let LatencyIntervals { mean, p50, p95, p99, p99_9 } = intervals;
        for interval in [mean, p50, p95, p99, p99_9].into_iter().flatten() {
            *interval = Interval { high: f64::INFINITY, ..*interval };
        }
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::Time;

    use super::*;
    use crate::draw::Draw;

    /// How many of 40 runs (seeds 1 to 40) of 20 000 requests get the warning. Requests have Poisson arrivals at `load` per second,
    /// and take 1 s each of one server.
    fn warned(load: f64) -> usize {
        let is_warned = |seed: &u64| {
            let mut draw = Draw(*seed);
            let (mut arrivals, mut departures) =
                (CountOverTime::default(), CountOverTime::default());
            arrivals.restart(Time::ZERO, 0);
            departures.restart(Time::ZERO, 0);
            let at = |seconds: f64| Time::from_ns((seconds * 1e9) as u64);
            let (mut arrival, mut free) = (0.0, 0.0f64);
            for _ in 0..20_000 {
                arrival += draw.exponential() / load;
                free = free.max(arrival) + 1.0;
                arrivals.add(at(arrival), 1);
                departures.add(at(free), 1);
            }
            warning((&arrivals, &departures)).is_some()
        };
        (1..=40).filter(is_warned).count()
    }

    /// The mean of 20 000 requests at load 0.999 is off by a factor of about ten. At load 0.95 it is right.
    #[test]
    fn a_run_that_is_too_short_for_its_queue_is_told() {
        for load in [0.5, 0.8] {
            assert_eq!(warned(load), 0, "{load}");
        }
        let [near, nearer] = [0.95, 0.999].map(warned);
        assert!(near <= 3 && nearer >= 28, "{near} and {nearer} of 40");
    }

    /// Requests arrive each millisecond for 16 s and take 800 µs each of one server, which hangs from 12 s to 13 s: the
    /// target empties the queue at 250 requests per second.
    #[test]
    fn a_stall_is_no_limit() {
        let (mut arrivals, mut departures) = (CountOverTime::default(), CountOverTime::default());
        arrivals.restart(Time::ZERO, 0);
        departures.restart(Time::ZERO, 0);
        let mut free = Time::ZERO;
        for at in 1..=16_000 {
            let arrival = Time::from_ms(at);
            let start = free.max(arrival);
            let stalls = (12_000..13_000).contains(&(start.as_ps() / 1_000_000_000));
            free = if stalls { Time::from_ms(13_000) } else { start } + Time::from_us(800);
            arrivals.add(arrival, 1);
            departures.add(free, 1);
        }
        assert_eq!(warning((&arrivals, &departures)), None);
    }

    #[test]
    fn the_upper_ends_are_removed() {
        let interval = Some(Interval { estimate: 2.0, low: 1.0, high: 3.0, level: 0.95 });
        let mut confidence = Confidence::default();
        confidence.latency_ns.all.mean = interval;
        confidence.latency_ns.read = Some(LatencyIntervals { p99: interval, ..Default::default() });
        open(&mut confidence);
        let found = [confidence.latency_ns.all.mean, confidence.latency_ns.read.unwrap().p99];
        for interval in found.map(Option::unwrap) {
            assert_eq!((interval.low, interval.high), (1.0, f64::INFINITY));
        }
    }
}
