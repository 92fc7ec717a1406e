//! Turns the requested load of a run into a workload that is ready to run.

use ssdyno_block::Time;
use ssdyno_workload::{
    FioFiles, Source, TargetFacts, Workload, WorkloadError, fio_entries, fio_streams,
    first_recorded, open_trace, run_together,
};

use crate::streams::Streams;

/// The workload of `source` for a device of `facts`.
///
/// # Errors
/// It is impossible on that device, or its trace cannot be read.
pub(crate) fn load(source: &Source, facts: &TargetFacts, seed: u64) -> Result<Load, WorkloadError> {
    let plain =
        |workload, ramp_up| Load { workload, ramp_up, begin: Some(Time::ZERO), streams: None };
    match source {
        // A search decides when the recording begins. Its ramp-up is part of the search, so the
        // recorder has none of its own.
        Source::Generator(config) if config.searches() => {
            Ok(Load { begin: None, ..plain(config.build(facts, seed)?, 0) })
        }
        Source::Generator(config) => Ok(plain(config.build(facts, seed)?, config.ramp_up)),
        Source::Trace { path, options } => Ok(plain(open_trace(path, options, facts)?, 0)),
        Source::Jobs { jobs, .. } => {
            let streams = fio_streams(jobs, &FioFiles::one(facts.capacity_bytes), seed);
            let entry_of = streams.iter().map(|stream| stream.entry).collect();
            Ok(Load {
                ramp_up: 0,
                // The run as a whole is recorded from the first stream on that ends its ramp. Each
                // stream has its own beginning besides this one.
                begin: first_recorded(&streams),
                workload: run_together(streams, facts)?,
                streams: Some(Streams::new(fio_entries(jobs), entry_of)),
            })
        }
    }
}

/// A workload that is ready to run.
pub(crate) struct Load {
    pub(crate) workload: Box<dyn Workload + Send>,
    /// Completions before recording starts.
    pub(crate) ramp_up: u64,
    /// When recording begins; `None` where the workload says it, when it has found its depth.
    pub(crate) begin: Option<Time>,
    /// Where the workload has several.
    pub(crate) streams: Option<Streams>,
}
