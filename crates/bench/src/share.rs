//! One workload for several jobs.
//!
//! A workload says what the target gets in all; how many threads of ours carry it is our affair.
//! So jobs *share* outstanding requests, limits and rate, and the figures of a run mean the same
//! for any number of jobs, and for a simulated target.

use ssdyno_block::units::{Bytes, Span};
use ssdyno_workload::{ArrivalKind, Config, DeviceFacts, Kind, Pattern};

use crate::error::BenchError;

/// Requests outstanding in all; `None` for an open loop without a bound.
pub(crate) fn outstanding(config: &Config) -> Option<u64> {
    let threads = u64::from(config.threads.unwrap_or(1));
    match (config.depth, &config.arrivals) {
        (Some(depth), _) => Some(u64::from(depth) * threads),
        (None, None) => Some(threads),
        (None, Some(_)) => None,
    }
}

/// Whether requests are meant to start whenever another completes.
pub(crate) fn is_closed(config: &Config) -> bool {
    config.kind == Kind::Mix && config.arrivals.is_none()
}

/// What each of `jobs` does of `config`. The ramp-up is part of the requests: the jobs count it
/// together.
///
/// # Errors
/// It cannot be shared: more jobs than requests outstanding, or arrivals at fixed moments.
pub(crate) fn shares(
    config: &Config,
    jobs: u32,
    facts: &DeviceFacts,
) -> Result<Vec<Config>, BenchError> {
    if jobs == 1 {
        return Ok(vec![config.clone()]);
    }
    let refuse = |why: &str| Err(BenchError::Option { option: "jobs", why: why.to_owned() });
    if config.kind == Kind::DiskSimSynthetic {
        return refuse("DiskSim's generator is one stream, which one job must carry");
    }
    let poisson = |config: &Config| {
        config.arrivals.as_ref().is_none_or(|arrivals| arrivals.kind == ArrivalKind::Poisson)
    };
    if !poisson(config) {
        return refuse("only Poisson arrivals can be shared; others are one stream for one job");
    }
    let depth = outstanding(config);
    if depth.is_some_and(|depth| depth < u64::from(jobs)) {
        return refuse("there are more jobs than requests outstanding; raise the depth");
    }
    (0..jobs).map(|job| share(config, job, jobs, depth, facts)).collect()
}

fn share(
    config: &Config,
    job: u32,
    jobs: u32,
    depth: Option<u64>,
    facts: &DeviceFacts,
) -> Result<Config, BenchError> {
    let mut mine = config.clone();
    mine.depth = depth.map(|depth| part(depth, job, jobs) as u32);
    mine.threads = None;
    mine.requests = config.total_requests().map(|requests| part(requests, job, jobs));
    mine.ramp_up = 0;
    if let Some(arrivals) = &mut mine.arrivals {
        arrivals.rate = arrivals.rate.map(|rate| rate / f64::from(jobs));
        arrivals.mean_gap = arrivals.mean_gap.map(|gap| Span(gap.0 * u64::from(jobs)));
    }
    let sequential = config.address.pattern == Pattern::Sequential
        || config.sequential_percent.is_some_and(|percent| percent > 0.0);
    if sequential {
        share_range(&mut mine, job, jobs, facts);
    }
    Ok(mine)
}

/// Gives each job its own equal part of the range, as threads of a workload have: otherwise all
/// would read the same blocks one after the other.
fn share_range(mine: &mut Config, job: u32, jobs: u32, facts: &DeviceFacts) {
    let alignment = mine.resolved().alignment.map_or(1, |alignment| alignment.0).max(1);
    let (start, capacity) = (mine.address.start.0, facts.capacity_bytes);
    let share_of = |percent: f64| (capacity as f64 * percent / 100.0) as u64;
    let length = match (mine.address.length, mine.address.length_percent) {
        (Some(length), _) => length.0,
        (None, Some(percent)) => share_of(percent),
        (None, None) => capacity.saturating_sub(start),
    };
    let each = length / u64::from(jobs) / alignment * alignment;
    mine.address.start = Bytes(start + u64::from(job) * each);
    mine.address.length = Some(Bytes(each));
    mine.address.length_percent = None;
}

/// The part of `whole` of one job: parts differ by one at most and sum to it.
pub(crate) fn part(whole: u64, job: u32, jobs: u32) -> u64 {
    let (job, jobs) = (u64::from(job), u64::from(jobs));
    whole / jobs + u64::from(job < whole % jobs)
}

/// The seed of a job: that of the run for the first, so that one job draws what a simulated run
/// draws.
pub(crate) fn seed(run: u64, job: u32) -> u64 {
    run.wrapping_add(u64::from(job).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: DeviceFacts = DeviceFacts { capacity_bytes: 1 << 30, sector_bytes: 512 };

    fn config(text: &str) -> Config {
        Config::from_toml(text).unwrap()
    }

    #[test]
    fn parts_sum_to_the_whole() {
        let whole = config("depth = 5\nthreads = 2\nrequests = 1001\nramp_up = 10\n");
        for jobs in 1..=10 {
            let shares = shares(&whole, jobs, &FACTS).unwrap();
            let depth: u64 = shares.iter().filter_map(outstanding).sum();
            let requests: u64 = shares.iter().filter_map(Config::total_requests).sum();
            assert_eq!((depth, requests), (10, 1011), "{jobs} jobs");
            assert!(shares.iter().all(|share| share.build(&FACTS, 1).is_ok()));
        }
        assert!(shares(&whole, 11, &FACTS).is_err());
    }

    #[test]
    fn sequential_jobs_have_ranges_of_their_own() {
        let whole = config(
            "depth = 4\nblock_size = \"3KiB\"\naddress = { pattern = \"sequential\", start = \"3KiB\" }",
        );
        let shares = shares(&whole, 4, &FACTS).unwrap();
        let ranges: Vec<(u64, u64)> =
            shares.iter().map(|s| (s.address.start.0, s.address.length.unwrap().0)).collect();
        assert!(ranges.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0), "{ranges:?}");
        let (start, length) = ranges[3];
        assert!(start + length <= FACTS.capacity_bytes && ranges[0].0 == 3072);
    }

    #[test]
    fn only_poisson_arrivals_are_shared() {
        let fixed = config("arrivals = { kind = \"fixed\", rate = 100.0 }");
        assert!(matches!(shares(&fixed, 2, &FACTS), Err(BenchError::Option { .. })));
        let poisson = config("arrivals = { kind = \"poisson\", rate = 100.0 }");
        let rates: f64 = shares(&poisson, 4, &FACTS)
            .unwrap()
            .iter()
            .map(|s| s.arrivals.as_ref().unwrap().rate.unwrap())
            .sum();
        assert_eq!(rates, 100.0);
    }
}
