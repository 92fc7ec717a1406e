//! The jobs of a fio job file, each a thread of its own (or several).

use ssdyno_block::Time;
use ssdyno_workload::{
    FioBatch, FioEngine, FioEntry, FioJob, FioStream, FioSync, TargetFacts, Workload,
    WorkloadError, fio_entries, fio_streams, first_recorded,
};

use super::{JobPlan, LoadPlan, Means, ONE_AT_A_TIME, THREADS_MAX};
use crate::engine::uring::SLOTS_MAX;
use crate::error::BenchError;
use crate::options::{BenchOptions, PageCache};
use crate::run::BenchRun;
use crate::target::Opening;
use crate::target::RealTarget;

/// Most threads of a run.
const JOBS_MAX: usize = 1_024;

/// `options` with the polling settings of the jobs.
pub(super) fn options(options: &BenchOptions, jobs: &[FioJob]) -> Result<BenchOptions, BenchError> {
    let refusal = |option, why: &str| BenchError::option(option, why);
    let refuse = |option, why| Err(refusal(option, why));
    if options.jobs > 1 {
        return refuse("jobs", "the job file sets the number of jobs (numjobs)");
    }
    let asked = |option, pick: fn(&FioJob) -> bool, why| {
        let asking = jobs.iter().filter(|job| pick(job)).count();
        let mixed = asking > 0 && asking < jobs.len();
        if mixed { Err(refusal(option, why)) } else { Ok(asking > 0) }
    };
    // A ring polls or it does not, and the options of a ring hold for all its requests. Jobs
    // that want both would need two runs.
    let why = "either all jobs of a file poll for completions (hipri) or none";
    let iopoll = asked("iopoll", |job| job.iopoll, why)?;
    let why = "either all jobs of a file have sqthread_poll or none";
    let sqpoll = asked("sqpoll", |job| job.sqpoll, why)?;
    let why = "either all jobs of a file have nowait or none";
    let nowait = asked("nowait", |job| job.nowait, why)?;
    let mut batches = jobs.iter().map(|job| job.batch);
    let batch = batches.next().flatten();
    if batches.any(|other| other != batch) {
        return refuse("batch", "all jobs of a file must have the same values of iodepth_batch …");
    }
    let given = options.batch.is_some() || options.submit.is_some();
    if let Some(FioBatch { complete, submit }) = batch
        && given
        && (options.batch, options.submit) != (Some(complete), Some(submit))
    {
        return refuse("batch", "the job file sets its own batches (iodepth_batch …)");
    }
    let mut all = options.clone();
    all.iopoll |= iopoll;
    all.sqpoll |= sqpoll;
    all.nowait |= nowait;
    all.batch = all.batch.or(batch.map(|batch| batch.complete));
    all.submit = all.submit.or(batch.map(|batch| batch.submit));
    Ok(all)
}

/// How the target is opened, once for all jobs. `page_cache` comes from the command line.
pub(super) fn opening(jobs: &[FioJob], page_cache: PageCache) -> Result<Opening, BenchError> {
    let caches = |job: &FioJob| match (job.buffered, job.invalidate) {
        (false, _) => PageCache::Bypassed,
        (true, true) => PageCache::Emptied,
        (true, false) => PageCache::Kept,
    };
    let first = jobs.first().map(caches).unwrap_or_default();
    // The target is opened once for all jobs, with or without O_DIRECT. Jobs that differ in it
    // would need two open files of one target.
    if jobs.iter().map(caches).any(|other| other != first) {
        let why = "all jobs of a file must have the same values of direct and invalidate";
        return Err(BenchError::option("direct", why));
    }
    let page_cache = if first == PageCache::Bypassed { page_cache } else { first };
    Ok(Opening { sync_writes: sync_writes(jobs)?, page_cache, ..Opening::default() })
}

/// The part of a write that is durable when it completes: the target is opened once for all jobs.
fn sync_writes(jobs: &[FioJob]) -> Result<FioSync, BenchError> {
    let mut writing = jobs.iter().filter(|job| job.changes_data()).map(|job| job.sync);
    let first = writing.next().unwrap_or_default();
    if writing.any(|other| other != first) {
        let why = "all jobs of a file that write must have the same value of sync";
        return Err(BenchError::option("sync", why));
    }
    Ok(first)
}

/// A plan for `jobs`; `notes` says how they are carried out.
pub(super) fn plan(
    run: &BenchRun,
    options: &BenchOptions,
    jobs: &[FioJob],
    target: &RealTarget,
    means: Means,
    mut notes: Vec<String>,
) -> Result<LoadPlan, BenchError> {
    let commands = |job: &&FioJob| job.engine == FioEngine::Passthrough;
    if let Some(job) = jobs.iter().find(commands).filter(|_| target.generic.is_none()) {
        return Err(BenchError::option(
            "ioengine",
            format!(
                "[{}] is for io_uring_cmd: name a generic NVMe device, such as /dev/ng0n1",
                job.name
            ),
        ));
    }
    let (facts, files) = (&target.facts(), target.files());
    notes.extend(files.note());
    let streams = fio_streams(jobs, &files, run.seed);
    let mut plans = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        let closed = stream.arrivals.is_none();
        if closed && stream.depth > SLOTS_MAX {
            let what =
                format!("{} requests outstanding; the limit per job is {SLOTS_MAX}", stream.depth);
            let help = "lower it, or share it among several jobs (numjobs)";
            return Err(BenchError::Workload(WorkloadError::of_key("iodepth", what, help)));
        }
        let slots = match means {
            Means::Threads => 1,
            _ => stream.depth.min(SLOTS_MAX),
        };
        for workload in workloads(stream, facts, means, &mut notes)? {
            let number = plans.len();
            if number == JOBS_MAX {
                return Err(BenchError::option(
                    "fio",
                    format!("the job file needs more than {JOBS_MAX} threads"),
                ));
            }
            let cores = match stream.cores.is_empty() {
                true => super::core(&run.options, number).into_iter().collect(),
                false => super::allowed(&stream.cores)?,
            };
            plans.push(JobPlan {
                workload,
                slots,
                requests_max: u64::MAX,
                seed: stream.seed,
                buffer: jobs[stream.job].buffer,
                cores,
                closed,
                strategy: super::strategy(options, means, slots, closed),
                entry: stream.entry,
                stream: index,
                group: stream.group,
                exit: stream.exit,
                delay_ns: stream.start_delay.as_ns(),
                ramp_ns: Some(stream.ramp.as_ns()),
            });
        }
    }
    // For jobs that set the start of their own recording: from there, if it is the only job.
    let own = if plans.len() == 1 { u64::MAX } else { 0 };
    Ok(LoadPlan {
        means,
        closed: plans.iter().all(|plan| plan.closed),
        jobs: plans,
        ramp_up: 0,
        block_bytes: streams.iter().map(FioStream::block_bytes_max).max().unwrap_or(0) as u32,
        notes,
        entries: entries(jobs, means),
        origin_ns: first_recorded(&streams).map_or(own, Time::as_ns),
    })
}

/// What is reported separately. A thread carries one request at a time: there, a greater depth helps no job with a rate.
fn entries(jobs: &[FioJob], means: Means) -> Vec<FioEntry> {
    let mut entries = fio_entries(jobs);
    if means == Means::Threads {
        entries.iter_mut().filter_map(|e| e.rated_depth.as_mut()).for_each(|d| *d = u64::MAX);
    }
    entries
}

/// The threads that carry `stream`: one, or one for each outstanding request if a thread carries
/// one at a time.
fn workloads(
    stream: &FioStream,
    facts: &TargetFacts,
    means: Means,
    notes: &mut Vec<String>,
) -> Result<Vec<Box<dyn Workload + Send>>, BenchError> {
    let depth = u64::from(stream.depth);
    if means != Means::Threads || depth == 1 {
        return Ok(vec![stream.build(facts)?]);
    }
    if stream.arrivals.is_some() {
        if !notes.iter().any(|note| note == ONE_AT_A_TIME) {
            notes.push(ONE_AT_A_TIME.to_owned());
        }
        return Ok(vec![stream.build(facts)?]);
    }
    if depth > THREADS_MAX {
        return Err(BenchError::option(
            "engine",
            format!("an iodepth of {depth} needs as many threads; the limit is {THREADS_MAX}"),
        ));
    }
    Ok(stream.build_shared(facts, depth)?)
}

#[cfg(test)]
mod tests {
    use ssdyno_workload::read_fio_jobs;

    use super::*;

    #[test]
    fn all_who_write_agree_about_what_is_durable() {
        let of = |text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            sync_writes(&read_fio_jobs(file.path()).unwrap())
        };
        assert_eq!(of("[a]\nrw=write\n").ok(), Some(FioSync::None));
        assert_eq!(of("[a]\nrw=write\nsync=1\n[b]\nrw=read\n").ok(), Some(FioSync::Whole));
        assert_eq!(of("[global]\nsync=dsync\nrw=rw\n[a]\n[b]\n").ok(), Some(FioSync::Data));
        assert_eq!(of("[a]\nrw=read\nsync=1\n").ok(), Some(FioSync::None));
        let mixed = of("[a]\nrw=write\nsync=1\n[b]\nrw=write\n").unwrap_err();
        assert!(mixed.to_string().contains("sync"), "{mixed}");
    }
}
