//! The parts of a target that the reads of a load can reach.

use std::ops::Range;

use ssdyno_workload::{Source, WorkloadKind, fio_streams};

use crate::run::BenchRun;
use crate::share::length_of;
use crate::target::RealTarget;

/// A part of a target that reads can reach.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReadRange {
    /// The job of a job file that reads it; `None` for another load.
    pub(crate) job: Option<String>,
    /// In bytes of the target; the end may be beyond the end of the target.
    pub(crate) bytes: Range<u64>,
}

/// The ranges that `run` reads on `target`, one for each file of each copy of a job. A trace counts as a load of the whole
/// target: its addresses are known only when it is played.
pub(crate) fn of_reads(run: &BenchRun, target: &RealTarget) -> Vec<ReadRange> {
    let facts = target.facts();
    let one = |start: u64, length: u64| {
        vec![ReadRange { job: None, bytes: start..start.saturating_add(length) }]
    };
    match &run.source {
        Source::Generator(config) if config.kind == WorkloadKind::DiskSimSynthetic => {
            one(0, config.disksim.clone().unwrap_or_default().space.0)
        }
        Source::Generator(config) => {
            one(config.address.start.0, length_of(&config.address, &facts))
        }
        Source::Trace { .. } => one(0, facts.capacity_bytes),
        Source::Jobs { jobs, .. } => {
            let streams = fio_streams(jobs, &target.files(), run.seed);
            let reading = streams.iter().filter(|stream| jobs[stream.job].reads());
            let ranges = reading.flat_map(|stream| {
                stream.ranges.iter().map(|range| ReadRange {
                    job: Some(jobs[stream.job].name.clone()),
                    bytes: range.start_bytes..range.start_bytes.saturating_add(range.length_bytes),
                })
            });
            ranges.collect()
        }
    }
}
