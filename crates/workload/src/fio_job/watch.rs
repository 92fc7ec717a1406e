//! Ends of a job that depend on how fast it gets on: a rate that it must keep (`rate_min`), a rate that
//! has become steady (`steadystate`).

use std::collections::VecDeque;

use ssdyno_block::{Op, Time};

use super::load::Load;
use super::reader::{Answer, Reader};
use super::values::{self, directions, percent};
use crate::{Finished, TraceLine, Workload, WorkloadError, WorkloadStep};

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counted {
    Requests,
    Bytes,
}

/// Least rate of a job.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Floor {
    pub(super) counted: Counted,
    /// By second.
    pub(super) least: u64,
    /// Over which it is judged (`ratecycle`).
    pub(super) cycle: Time,
}

/// When a job counts as steady (fio: steadystate.c).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Steady {
    pub(super) counted: Counted,
    /// The slope of the best line decides, not the largest deviation from the mean.
    pub(super) by_slope: bool,
    pub(super) limit: f64,
    /// The limit is in percent of the mean.
    pub(super) in_percent: bool,
    /// Seconds that are looked at.
    pub(super) window_s: u32,
    /// Seconds that are left out at the start.
    pub(super) ramp: Time,
}

/// A job that is watched.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Watch {
    pub(super) floor: Option<Floor>,
    pub(super) steady: Option<Steady>,
}

/// fio judges no rate before: backend.c, `__check_min_rate`.
const SETTLE: Time = Time::from_s(2);

/// Steadiness is judged by the rates of seconds.
const SAMPLE: Time = Time::from_s(1);

/// `inner` under `watch`; `at` is the job, for messages.
pub(super) fn watched(
    inner: Box<dyn Workload + Send>,
    watch: Watch,
    at: TraceLine,
) -> Box<dyn Workload + Send> {
    if watch == Watch::default() {
        return inner;
    }
    let samples =
        VecDeque::with_capacity(watch.steady.map_or(0, |steady| steady.window_s as usize));
    Box::new(Watched {
        inner,
        watch,
        at,
        lengths: VecDeque::new(),
        moved: [0, 0],
        cycle: None,
        sample: None,
        samples,
        ended: None,
        error: None,
    })
}

struct Watched {
    inner: Box<dyn Workload + Send>,
    watch: Watch,
    at: TraceLine,
    /// Of what is outstanding, in the order of issue: the oldest is taken to complete first.
    lengths: VecDeque<u32>,
    /// Requests and bytes completed, as [`Counted`] has them.
    moved: [u64; 2],
    /// The beginning of the present cycle of the minimum rate, and the bytes moved until then.
    cycle: Option<(Time, u64)>,
    /// The same for the samples of steadiness.
    sample: Option<(Time, u64)>,
    /// Rates by second, the latest last.
    samples: VecDeque<f64>,
    /// Why it ended, where it did so in good order.
    ended: Option<String>,
    error: Option<WorkloadError>,
}

impl Watched {
    /// Judges the cycle that is over at `now`, if one is.
    fn look_at_floor(&mut self, now: Time) {
        let Some(floor) = self.watch.floor else { return };
        if now < SETTLE {
            return;
        }
        let moved = self.moved[floor.counted as usize];
        // The cycle begins at the first look after the settling time. The start of the job would
        // include the slow first requests, which fio excludes for 2 s.
        let (since, before) = *self.cycle.get_or_insert((now, moved));
        let spent = now.saturating_sub(since);
        if spent < floor.cycle {
            return;
        }
        let rate = (moved - before) as f64 / spent.as_s_f64();
        self.cycle = Some((now, moved));
        if rate < floor.least as f64 {
            let (option, unit) = match floor.counted {
                Counted::Requests => ("rate_iops_min", "requests"),
                Counted::Bytes => ("rate_min", "bytes"),
            };
            self.error = Some(WorkloadError {
                key: None,
                what: format!(
                    "{option} - {rate:.0} {unit} a second from {:.1} s to {:.1} s, below the {} that \
                     the job must keep",
                    since.as_s_f64(),
                    now.as_s_f64(),
                    floor.least
                ),
                help: Some("the figures are those until then".to_owned()),
                at: Some(Box::new(self.at.clone())),
            });
        }
    }

    /// Takes the samples that are over at `now`, and judges them.
    fn look_at_steadiness(&mut self, now: Time) {
        let Some(steady) = self.watch.steady else { return };
        if now < steady.ramp {
            return;
        }
        let moved = self.moved[steady.counted as usize];
        let (mut since, mut before) = *self.sample.get_or_insert((now, moved));
        if now.saturating_sub(since) < SAMPLE {
            return;
        }
        // There are no calls in a pause: its seconds follow.
        // Samples begin at exact multiples of a second after the first one. If each began at the
        // moment of its call, the windows would become longer by the time between two calls.
        while now.saturating_sub(since) >= SAMPLE {
            if self.samples.len() == steady.window_s as usize {
                self.samples.pop_front();
            }
            self.samples.push_back((moved - before) as f64);
            (since, before) = (since.saturating_add(SAMPLE), moved);
        }
        self.sample = Some((since, before));
        if self.samples.len() < steady.window_s as usize {
            return;
        }
        let found = criterion(&steady, &self.samples);
        // The job ends only when the window is full. With fewer samples the slope of two close
        // values would end the job after 2 s.
        if found < steady.limit {
            let unit = if steady.in_percent { " %" } else { "" };
            self.ended = Some(format!(
                "[{}]: steady at {:.1} s by fio's rule: {} of the last {} s is {found:.3}{unit}, below \
                 {}{unit}",
                self.at.text.trim_matches(['[', ']']),
                now.as_s_f64(),
                if steady.by_slope { "the slope" } else { "the largest deviation" },
                steady.window_s,
                steady.limit,
            ));
        }
    }

    fn look(&mut self, now: Time) {
        if self.error.is_none() && self.ended.is_none() {
            self.look_at_floor(now);
            self.look_at_steadiness(now);
        }
    }
}

/// The value compared with the limit: fio's `steadystate_slope` and `steadystate_deviation`.
fn criterion(steady: &Steady, samples: &VecDeque<f64>) -> f64 {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let found = if steady.by_slope {
        // Least squares: the slope is sum(x * (y - mean)) / sum(x^2) for x centred on the middle.
        // Centring makes the two sums independent and avoids the loss of digits.
        let middle = (count - 1.0) / 2.0;
        let (mut above, mut below) = (0.0, 0.0);
        for (at, value) in samples.iter().enumerate() {
            let x = at as f64 - middle;
            above += x * (value - mean);
            below += x * x;
        }
        if below > 0.0 { (above / below).abs() } else { 0.0 }
    } else {
        samples.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max)
    };
    match steady.in_percent {
        // Without any transfers there is no steady state.
        true if mean <= 0.0 => f64::INFINITY,
        true => 100.0 * found / mean,
        false => found,
    }
}

impl Workload for Watched {
    fn next(&mut self, now: Time) -> WorkloadStep {
        self.look(now);
        if self.error.is_some() || self.ended.is_some() {
            return WorkloadStep::Done;
        }
        let step = self.inner.next(now);
        if let WorkloadStep::Issue { request, .. } = &step {
            let counts = request.op != Op::Flush;
            // A completion does not name its length, and the order of completion is unknown. The
            // oldest length is taken instead; over a second the sum is right up to the requests
            // outstanding.
            self.lengths.push_back(if counts { request.length_bytes } else { 0 });
        }
        step
    }

    crate::wraps_inner!();

    fn completed(&mut self, finished: Finished, now: Time) {
        // A second that is over at `now` excludes this completion.
        self.look(now);
        let length = self.lengths.pop_front().unwrap_or(0);
        self.moved[Counted::Requests as usize] += u64::from(length > 0);
        self.moved[Counted::Bytes as usize] += u64::from(length);
        self.inner.completed(finished, now);
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes().into_iter().chain(self.ended.clone()).collect()
    }

    fn error(&mut self) -> Option<WorkloadError> {
        self.error.take().or_else(|| self.inner.error())
    }
}

impl Reader<'_> {
    /// The rate limits that end the job.
    pub(super) fn watch(&mut self, load: &Load) -> Answer<Watch> {
        Ok(Watch { floor: self.floor(load)?, steady: self.steady()? })
    }

    fn floor(&mut self, load: &Load) -> Answer<Option<Floor>> {
        let cycle = self.value(&["rate_cycle", "ratecycle"], "a time in ms", |text| {
            values::time(text, "ms").filter(|cycle| *cycle > Time::ZERO)
        })?;
        let cycle = cycle.unwrap_or(SAMPLE);
        let each = |text: &str| directions(text, values::bytes);
        let by_count = self.value(&["rate_iops_min"], "requests per second", each)?;
        let by_bytes = self.value(&["rate_min", "ratemin"], "a rate such as 10m", each)?;
        let (counted, least) = match (by_count, by_bytes) {
            (Some(_), Some(_)) => {
                let what = "rate_min and rate_iops_min exclude each other, as in fio";
                return self.wrong(what, "leave one of the two out");
            }
            (Some(least), None) => (Counted::Requests, least),
            (None, Some(least)) => (Counted::Bytes, least),
            (None, None) => return Ok(None),
        };
        let used: Vec<usize> = load.used().collect();
        // fio keeps one rate per direction. The counters here are sums over all directions, so a
        // mixed job could hide a slow direction behind a fast one.
        let [direction] = used[..] else {
            let what = "a minimum rate applies to each direction, but the completions here are not split by direction";
            return self.wrong(what, "use a job for each direction");
        };
        let least = least[direction].filter(|least| *least > 0);
        Ok(least.map(|least| Floor { counted, least, cycle }))
    }

    fn steady(&mut self) -> Answer<Option<Steady>> {
        let time = |text: &str| values::seconds(text);
        let window = self.value(&["steadystate_duration", "ss_dur"], "a time such as 30s", time)?;
        let ramp = self.value(&["steadystate_ramp_time", "ss_ramp"], "a time such as 10s", time)?;
        let each = self.value(
            &["steadystate_check_interval", "ss_interval"],
            "1s: samples last a second",
            |text| values::seconds(text).filter(|each| *each == SAMPLE),
        )?;
        let criterion = self.value(
            &["steadystate", "ss"],
            "a rule such as iops:0.3%, iops_slope:0.1%, bw:5% or bw_slope:1m",
            rule,
        )?;
        let _ = each;
        let Some((counted, by_slope, limit, in_percent)) = criterion else { return Ok(None) };
        let window_s = window.map_or(0, |window| window.as_ns() / 1_000_000_000);
        if !(2..=100_000).contains(&window_s) {
            let what = "steadystate needs its period in seconds";
            return self.wrong(what, "add steadystate_duration=30s");
        }
        if self.value(&["numjobs"], "a number", values::whole)?.is_some_and(|jobs| jobs > 1) {
            let what = "steadystate of several copies: fio judges them together";
            return self.wrong(what, "use one job, with a larger iodepth");
        }
        let ramp = ramp.unwrap_or(Time::ZERO);
        let window_s = window_s as u32;
        Ok(Some(Steady { counted, by_slope, limit, in_percent, window_s, ramp }))
    }
}

/// `iops:0.3%`: what is counted, whether the slope decides, the limit, whether it is in percent.
fn rule(text: &str) -> Option<(Counted, bool, f64, bool)> {
    let (name, limit) = text.split_once(':')?;
    let (counted, by_slope) = match name.trim() {
        "iops" => (Counted::Requests, false),
        "iops_slope" => (Counted::Requests, true),
        "bw" => (Counted::Bytes, false),
        "bw_slope" => (Counted::Bytes, true),
        _ => return None,
    };
    let limit = limit.trim();
    let (limit, in_percent) = match limit.strip_suffix('%') {
        Some(_) => (percent(limit)?, true),
        None if counted == Counted::Bytes => (values::bytes(limit)? as f64, false),
        None => (limit.parse().ok()?, false),
    };
    (limit > 0.0 && limit.is_finite()).then_some((counted, by_slope, limit, in_percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(by_slope: bool, in_percent: bool) -> Steady {
        let (counted, ramp) = (Counted::Requests, Time::ZERO);
        Steady { counted, by_slope, limit: 1.0, in_percent, window_s: 4, ramp }
    }

    #[test]
    fn rules_are_read() {
        assert_eq!(rule("iops:0.3%"), Some((Counted::Requests, false, 0.3, true)));
        assert_eq!(rule("bw_slope:1m"), Some((Counted::Bytes, true, 1_048_576.0, false)));
        for wrong in ["iops", "lat:5%", "iops:", "iops:0", "iops:-1", "iops:nan", "bw:101%"] {
            assert_eq!(rule(wrong), None, "{wrong}");
        }
    }

    /// By hand: 100, 110, 90, 100 has a mean of 100, deviates by 10 and falls by 2 a second.
    #[test]
    fn criteria_are_fios() {
        let samples = VecDeque::from([100.0, 110.0, 90.0, 100.0]);
        assert_eq!(criterion(&steady(false, false), &samples), 10.0);
        assert_eq!(criterion(&steady(false, true), &samples), 10.0);
        assert_eq!(criterion(&steady(true, false), &samples), 2.0);
        assert_eq!(criterion(&steady(true, true), &samples), 2.0);
        let still = VecDeque::from([0.0; 4]);
        assert_eq!(criterion(&steady(false, true), &still), f64::INFINITY);
    }
}
