//! One workload for several jobs.
//!
//! A workload defines the total load of the target; the number of threads that carry it is an
//! internal matter. So jobs *share* outstanding requests, limits and rate, and the figures of a run
//! mean the same for any number of jobs, and for a simulated target.

use ssdyno_block::units::{Bytes, Span};
use ssdyno_workload::{
    AddressPattern, ArrivalKind, Pattern, TargetFacts, WorkloadConfig, WorkloadError, WorkloadKind,
};

use crate::error::BenchError;

/// The part of `config` for each of `jobs`. The ramp-up is part of the requests: the jobs count it
/// together.
///
/// # Errors
/// It cannot be shared: more jobs than requests outstanding, or arrivals at fixed moments.
pub(crate) fn shares(
    config: &WorkloadConfig,
    jobs: u32,
    facts: &TargetFacts,
) -> Result<Vec<WorkloadConfig>, BenchError> {
    if jobs == 1 {
        return Ok(vec![config.clone()]);
    }
    let refuse = |why: &str| Err(BenchError::option("jobs", why));
    if config.kind == WorkloadKind::DiskSimSynthetic {
        return refuse("DiskSim's generator is one stream, so it needs exactly one job");
    }
    let poisson = |config: &WorkloadConfig| {
        config.arrivals.as_ref().is_none_or(|arrivals| arrivals.kind == ArrivalKind::Poisson)
    };
    if !poisson(config) {
        return refuse(
            "only Poisson arrivals can be shared among jobs; other arrivals need exactly one job",
        );
    }
    let depth = config.outstanding_limit();
    // A job with no request outstanding would do nothing, and the run would have fewer jobs than
    // it says.
    if depth.is_some_and(|depth| depth < u64::from(jobs)) {
        return refuse("there are more jobs than requests outstanding; raise the depth");
    }
    check_parts(config, jobs, facts)?;
    (0..jobs).map(|job| share(config, job, jobs, depth, facts)).collect()
}

/// Each job of a sequential workload must have a part of the range that holds a block.
fn check_parts(config: &WorkloadConfig, jobs: u32, facts: &TargetFacts) -> Result<(), BenchError> {
    let Some(each) = part_of_range(config, jobs, facts) else { return Ok(()) };
    let largest = config.sizes().iter().map(|size| size.size.0).max().unwrap_or(0);
    if each >= largest || largest == 0 {
        return Ok(());
    }
    let length = length_of(&config.address, facts);
    let what = format!(
        "{jobs} sequential streams of {largest} B do not fit in a range of {length} B: each would have {} B",
        length / u64::from(jobs)
    );
    let help = match length / largest {
        0 => "smaller blocks or a longer range are needed".to_owned(),
        fit => format!("at most {fit} fit: lower the depth, or use smaller blocks"),
    };
    Err(WorkloadError::of_key("depth", what, help).into())
}

fn share(
    config: &WorkloadConfig,
    job: u32,
    jobs: u32,
    depth: Option<u64>,
    facts: &TargetFacts,
) -> Result<WorkloadConfig, BenchError> {
    let mut mine = config.clone();
    mine.depth = depth.map(|depth| part(depth, job, jobs) as u32);
    mine.threads = None;
    mine.requests = config.total_requests().map(|requests| part(requests, job, jobs));
    // The ramp-up is counted over all jobs together. A share of each would end at different
    // moments.
    mine.ramp_up = 0;
    if let Some(arrivals) = &mut mine.arrivals {
        // Poisson processes add up: n independent ones of rate r/n are one of rate r. That is
        // why only Poisson arrivals can be shared.
        arrivals.rate = arrivals.rate.map(|rate| rate / f64::from(jobs));
        arrivals.mean_gap = arrivals.mean_gap.map(|gap| Span(gap.0 * u64::from(jobs)));
    }
    if let Some(each) = part_of_range(config, jobs, facts) {
        // Otherwise all would read the same blocks one after the other.
        mine.address.start = Bytes(config.address.start.0 + u64::from(job) * each);
        mine.address.length = Some(Bytes(each));
        mine.address.length_percent = None;
    }
    if let Some(writes) = &mut mine.writes
        && writes.address.pattern == Pattern::Sequential
    {
        let (block, from) = (writes.block_size.0.max(1), writes.address.start.0);
        let each = length_of(&writes.address, facts) / u64::from(jobs) / block * block;
        if each < block {
            let what = format!("{jobs} streams of sequential writes do not fit in their range");
            let help = "make writes.address.length longer, or use fewer `real.jobs`";
            return Err(WorkloadError::of_key("writes.address.length", what, help).into());
        }
        writes.address.start = Bytes(from + u64::from(job) * each);
        writes.address.length = Some(Bytes(each));
        writes.address.length_percent = None;
    }
    Ok(mine)
}

/// Bytes from the start of the range of `address` to its end.
pub(crate) fn length_of(address: &AddressPattern, facts: &TargetFacts) -> u64 {
    let (start, capacity) = (address.start.0, facts.capacity_bytes);
    match (address.length, address.length_percent) {
        (Some(length), _) => length.0,
        (None, Some(percent)) => (capacity as f64 * percent / 100.0) as u64,
        (None, None) => capacity.saturating_sub(start),
    }
}

/// The equal part of the range that each job of a sequential workload has for itself, as threads of a workload have, in
/// whole alignments; `None` if all jobs have the whole range.
fn part_of_range(config: &WorkloadConfig, jobs: u32, facts: &TargetFacts) -> Option<u64> {
    // Random jobs may share the whole range. Sequential ones would read the same blocks one
    // after the other, and a cache would serve all but the first.
    let sequential = config.address.pattern == Pattern::Sequential
        || config.sequential_percent.is_some_and(|percent| percent > 0.0);
    let alignment = config.resolved().alignment.map_or(1, |alignment| alignment.0).max(1);
    sequential.then(|| length_of(&config.address, facts) / u64::from(jobs) / alignment * alignment)
}

/// The part of `whole` of one job: parts differ by one at most and sum to it.
pub(crate) fn part(whole: u64, job: u32, jobs: u32) -> u64 {
    let (job, jobs) = (u64::from(job), u64::from(jobs));
    whole / jobs + u64::from(job < whole % jobs)
}

/// The seed of a job: the first job has the seed of the run, so that one job draws the same numbers
/// as a simulated run.
pub(crate) fn seed(run: u64, job: u32) -> u64 {
    // The factor is 2^64 divided by the golden ratio. Seeds of neighbouring jobs differ in many
    // bits, and job 0 keeps the seed of the run.
    run.wrapping_add(u64::from(job).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: TargetFacts = TargetFacts { capacity_bytes: 1 << 30, sector_bytes: 512 };

    fn config(text: &str) -> WorkloadConfig {
        WorkloadConfig::from_toml(text).unwrap()
    }

    #[test]
    fn parts_sum_to_the_whole() {
        let whole = config("depth = 5\nthreads = 2\nrequests = 1001\nramp_up = 10\n");
        for jobs in 1..=10 {
            let shares = shares(&whole, jobs, &FACTS).unwrap();
            let depth: u64 = shares.iter().filter_map(WorkloadConfig::outstanding_limit).sum();
            let requests: u64 = shares.iter().filter_map(WorkloadConfig::total_requests).sum();
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

    /// A depth that needs a thread for each request, in a range that is too short for that many.
    #[test]
    fn what_does_not_fit_in_the_range_is_told_with_what_would() {
        let whole = config(
            "depth = 64\nblock_size = \"4KiB\"\naddress = { pattern = \"sequential\", length = \"128KiB\" }",
        );
        assert_eq!(shares(&whole, 32, &FACTS).unwrap().len(), 32);
        for (jobs, bytes) in [(33, 3971), (64, 2048), (40, 3276)] {
            let error = shares(&whole, jobs, &FACTS).unwrap_err().to_string();
            let told = format!(
                "`depth`: {jobs} sequential streams of 4096 B do not fit in a range of 131072 B: each would \
                 have {bytes} B; at most 32 fit"
            );
            assert!(error.contains(&told), "{error}");
        }
        // Without a range of its own to each, all have all of it.
        let random = config("depth = 64\naddress = { pattern = \"random\", length = \"128KiB\" }");
        assert!(shares(&random, 64, &FACTS).is_ok());
        let small = TargetFacts { capacity_bytes: 2048, sector_bytes: 512 };
        let none = shares(&config("depth = 2\naddress = { pattern = \"sequential\" }"), 2, &small);
        assert!(none.unwrap_err().to_string().contains("smaller blocks or a longer range"));
    }

    /// Sequential writes of a table `writes` split their range into consecutive parts of equally many whole blocks; the
    /// blocks left are fewer than the jobs. Random writes, and the reads beside them, keep all of theirs.
    #[test]
    fn jobs_of_sequential_writes_have_parts_of_their_own() {
        let text = |pattern: &str, block: u64, start: u64, length: u64| {
            format!(
                "depth = 16\nread_percent = 50\naddress = {{ length = \"1MiB\" }}\n[writes]\nblock_size = \
                 \"{block}B\"\naddress = {{ pattern = \"{pattern}\", start = \"{start}B\", length = \"{length}B\" }}\n"
            )
        };
        for (block, start, length) in [
            (4096, 0, 1 << 20),
            (131_072, 131_072, 16 << 17),
            (3072, 9216, 100_000),
            (512, 0, 8704),
        ] {
            for jobs in 2..=16_u64 {
                let whole = config(&text("sequential", block, start, length));
                let all = shares(&whole, jobs as u32, &FACTS).unwrap();
                let each = length / block / jobs * block;
                for (job, share) in all.iter().enumerate() {
                    let address = &share.writes.as_ref().unwrap().address;
                    let expected = (Bytes(start + job as u64 * each), Some(Bytes(each)));
                    assert_eq!((address.start, address.length), expected, "{jobs} jobs, {block} B");
                    assert_eq!(share.address, whole.address);
                    assert!(share.build(&FACTS, 1).is_ok(), "{jobs} jobs, {block} B");
                }
                assert!(each >= block && jobs * each <= length);
                assert!(length / block - jobs * (each / block) < jobs);
                let random = config(&text("random", block, start, length));
                let all = shares(&random, jobs as u32, &FACTS).unwrap();
                assert!(all.iter().all(|share| share.writes == random.writes));
            }
        }
        let short = config(&text("sequential", 4096, 0, 5 * 4096 + 512));
        assert!(shares(&short, 5, &FACTS).is_ok());
        let error = shares(&short, 6, &FACTS).unwrap_err().to_string();
        assert!(error.contains("writes.address.length") && error.contains("6 streams"), "{error}");
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
