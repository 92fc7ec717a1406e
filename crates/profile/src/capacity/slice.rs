//! One load, and its rate.

use ssdyno_figures::{RunResult, SeriesPoint, Warning};

use crate::credits::credits_of;

/// The smallest number of stretches of a load: with fewer, levels cannot be distinguished.
const BINS_MIN: usize = 6;

/// CPU time of a load on a real target that did not spin.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct CpuUse {
    /// Share of the jobs' cores.
    pub(crate) share: f64,
    pub(crate) jobs: u32,
    pub(crate) cores: Vec<u32>,
}

/// The result of a load of a fixed time.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Slice {
    /// Seconds for which requests were issued.
    pub(crate) length: f64,
    /// Start, length and requests of its parts.
    parts: Vec<(f64, f64, u64)>,
    /// Requests, and the time until the last one completed.
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu: Option<CpuUse>,
    /// 99th percentiles of reads and writes in microseconds.
    pub(crate) p99_us: (Option<f64>, Option<f64>),
    /// What it says of burst credits.
    pub(crate) credits: Option<Warning>,
}

impl Slice {
    pub(crate) fn new(length: f64, result: &RunResult) -> Slice {
        let count = |p: &SeriesPoint| p.reads + p.writes;
        let parts = result.series.iter().map(|p| (p.start_seconds, p.length_seconds, count(p)));
        let latency = result.latency_ns.as_ref();
        let p99 = |one: Option<&ssdyno_figures::Latency>| one.map(|l| l.p99 / 1e3);
        Slice {
            length,
            parts: parts.collect(),
            requests: result.requests,
            seconds: result.simulated_seconds,
            credits: credits_of(result),
            cpu: cpu(result),
            p99_us: (
                p99(latency.and_then(|l| l.read.as_ref())),
                p99(latency.and_then(|l| l.write.as_ref())),
            ),
        }
    }

    /// Requests per second that completed from `from` seconds on, until no more were issued: neither the way to the
    /// first completion nor the end, where fewer and fewer are outstanding, count. All where hardly any are left.
    pub(crate) fn rate(&self, from: f64) -> f64 {
        self.rate_between(from, self.length)
            .unwrap_or(self.requests as f64 / self.seconds.max(f64::MIN_POSITIVE))
    }

    fn rate_between(&self, from: f64, to: f64) -> Option<f64> {
        let inside = |part: &&(f64, f64, u64)| part.0 >= from && part.0 + part.1 <= to * 1.000_001;
        let inside = self.parts.iter().filter(inside);
        let (mut seconds, mut requests) = (0.0, 0);
        for (_, length, count) in inside {
            seconds += length;
            requests += count;
        }
        // A rate from fewer than eight requests is off by a third or more (Poisson). The caller
        // then takes all requests of the load.
        (requests >= 8 && seconds > 0.0).then(|| requests as f64 / seconds)
    }

    /// Whether the second half from `from` on is slower than the first by more than `share`.
    pub(crate) fn slows_down(&self, from: f64, share: f64) -> bool {
        let middle = (from + self.length) / 2.0;
        let halves = self.rate_between(from, middle).zip(self.rate_between(middle, self.length));
        halves.is_some_and(|(first, second)| second < first * (1.0 - share))
    }

    /// Rates of `bins` equal stretches, or of fewer where they would have less than eight requests on average. After a
    /// burst one may have hardly any: it counts all the same.
    pub(crate) fn rates(&self, bins: usize) -> Vec<f64> {
        // With fewer than eight requests in a stretch its rate is noise. The levels could not be
        // distinguished.
        let bins = bins.min((self.requests / 8) as usize).max(BINS_MIN);
        let width = self.length / bins as f64;
        let mut sums = vec![(0, 0.0); bins];
        for (start, length, requests) in &self.parts {
            // Stretches need not end where parts end. A part belongs to the stretch in which
            // its middle lies, so each part counts once.
            let bin = ((start + length / 2.0) / width) as usize;
            if let Some(sum) = sums.get_mut(bin) {
                *sum = (sum.0 + requests, sum.1 + length);
            }
        }
        let sums = sums.into_iter().filter(|sum| sum.1 > 0.0);
        sums.map(|(requests, seconds)| requests as f64 / seconds).collect()
    }
}

fn cpu(result: &RunResult) -> Option<CpuUse> {
    // A job that spins uses all of its core, whatever the device does. Its CPU time does not
    // show whether the core limits the load.
    let method = result.method.as_ref().filter(|method| method.wait == "sleep")?;
    let cost = result.own_cost?;
    let jobs = method.jobs.max(1);
    let busy = cost.cpu_ns_per_request * result.requests as f64 / 1e9;
    let share = busy / result.simulated_seconds.max(f64::MIN_POSITIVE) / f64::from(jobs);
    Some(CpuUse { share: share.min(1.0), jobs, cores: method.cores.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(counts: &[u64]) -> Slice {
        let point = |(at, count): (usize, &u64)| SeriesPoint {
            start_seconds: at as f64 * 0.1,
            length_seconds: 0.1,
            reads: *count,
            ..SeriesPoint::default()
        };
        let result = RunResult {
            series: counts.iter().enumerate().map(point).collect(),
            requests: counts.iter().sum(),
            simulated_seconds: counts.len() as f64 * 0.1,
            ..RunResult::default()
        };
        Slice::new(1.0, &result)
    }

    /// Ten parts of 0.1 s, and two of the end, after the last request was issued.
    #[test]
    fn neither_start_nor_end_count() {
        let one = slice(&[0, 5, 100, 100, 100, 100, 100, 100, 100, 100, 40, 3]);
        assert!((one.rate(0.2) - 1000.0).abs() < 1e-9);
        assert!(!one.slows_down(0.2, 0.05));
        assert_eq!(one.rates(10).len(), 10);
        let slower = slice(&[0, 5, 100, 100, 100, 100, 80, 80, 80, 80]);
        assert!(slower.slows_down(0.2, 0.05) && !slower.slows_down(0.2, 0.3));
        // A burst, and then fewer than eight in each part.
        let burst = slice(&[60, 1, 2, 1, 2, 1, 2, 1, 2, 1]).rates(10);
        assert!(burst.len() >= BINS_MIN && burst[0] > 10.0 * burst[5], "{burst:?}");
        // Too few for a rate of the middle.
        let few = slice(&[0, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
        assert!((few.rate(0.2) - 4.0).abs() < 1e-9);
    }
}
