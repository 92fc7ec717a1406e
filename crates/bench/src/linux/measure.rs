//! One load of a target that is open: planned, carried out by jobs, made into figures.

use std::sync::Arc;
use std::time::Duration;

use ssdyno_block::counted;
use ssdyno_figures::{RunProgress, Supervisor};
use ssdyno_record::RequestLoop;

use crate::cost::{Usage, kernel_workers};
use crate::error::BenchError;
use crate::extents::Data;
use crate::is_network;
use crate::job_set::{JobSet, Recorded};
use crate::plan::LoadPlan;
use crate::probe::RunProbe;
use crate::report::{self, Parts};
use crate::reread::Reread;
use crate::run::{BenchMeasured, BenchRun};
use crate::spool::{self, Known};
use crate::start::{self, Began};
use crate::target::RealTarget;
use crate::{machine, overhead, ranges};

/// Loads `target`, which is open as `run` wants it, and works out the figures.
pub(crate) fn measure(
    run: &BenchRun,
    target: &Arc<RealTarget>,
    supervisor: &mut dyn Supervisor,
) -> Result<BenchMeasured, BenchError> {
    let plan = LoadPlan::new(run, target)?;
    let (mut notes, entries) = (plan.notes.clone(), plan.entries.clone());
    let (means, closed) = (plan.means, plan.closed);
    let members = plan.jobs.len();
    let method = report::method(run, &plan);
    let names = spool::row_names(&plan, target);
    let streams = plan.streams();
    let reads = ranges::of_reads(run, target, streams);
    // Before the run: its writes may fill holes.
    let data = Data::of(target, &reads);
    let no_media = data.warnings(&reads);
    let known = Known { method: &method, names: &names, no_media: &no_media };
    let spool = spool::begin(run, &plan, target, known, &mut notes);
    // The overhead is measured before the load, in the same process. Afterwards caches and
    // memory would be in another state.
    let floor = overhead::ns_by_request(&run.source, run.keep, spool.is_some())?;
    let progress = &mut |progress: &RunProgress| supervisor.report(progress);
    // Threads, rings and memory are made before the start is asked for. With several hosts the
    // moment of the start is common to all, and setting up takes unequal time.
    let mut crew = JobSet::set_up(run, plan, target, spool, progress)?;
    let start = start::wait_for(supervisor)?;
    let (prober, mut more_notes) = machine::start(run.options.probing, target);
    // The prober and all jobs exist by now. The cost of their start does not belong to the load.
    let before = Usage::of_process();
    let clock = crew.start(start);
    let began = Began::new(start, clock);
    crew.watch(clock, run.options.timeout, &mut |progress| supervisor.report(progress));
    let usage = Usage::of_process() - before;
    let wall = Duration::from_nanos(clock.now_ns());
    let probed = prober.map(RunProbe::finish);
    // The workers of the kernel are counted while they still exist: the kernel ends idle ones
    // after some seconds.
    let workers = kernel_workers();
    let failure = crew.failure(run, target);
    let precision = crew.precision();
    let interrupted = crew.stopped;
    let hung = crew.hung;
    let Recorded { mut recording, jobs, overloads, by_stream, reports, writer_ns } =
        crew.recording(clock, &entries, streams)?;
    let covered: Vec<_> = reads.iter().map(|read| read.covered(&by_stream)).collect();
    let (no_media, rereads) =
        (data.warnings(&covered), Reread::find(&reads, &by_stream, &data, target));
    recording.name_rows(names);
    recording.set_request_loop(RequestLoop::new(closed, run.source.outstanding_limit()));
    notes.append(&mut more_notes);
    // A job that was given up has no report. Sums over the others would look like those of all
    // jobs.
    let complete = reports.len() == members;
    let machine = probed
        .map(|probed| machine::result(probed, target, &recording, complete.then_some(&reports)));
    match hung {
        // Reading a file whose device hangs would hang, too.
        1.. => notes.push(unanswered(hung, is_network(&run.name()))),
        0 => target.remember_scratch(),
    }
    let parts = Parts {
        run,
        means,
        method,
        closed,
        page_cache: !target.direct,
        notes,
        warnings: report::warnings(run, target).into_iter().chain(overloads).collect(),
        no_media: &no_media,
        rereads: &rereads,
        files: target.files(),
        jobs,
        reports: &reports,
        began,
        usage,
        wall,
        floor: floor + writer_ns,
        workers,
        failure: failure.as_ref(),
        machine,
        precision,
        interrupted,
    };
    let result = parts.result(&mut recording);
    Ok(BenchMeasured { result, recording, failure })
}

/// The note about requests that were still outstanding. Those of a network target end with their connection.
fn unanswered(hung: u64, is_network: bool) -> String {
    let requests = counted(hung, "request", "requests");
    match is_network {
        true => format!(
            "{requests} had not completed when the run ended: the server did not answer, and the connection was closed"
        ),
        false => format!(
            "{requests} had not completed when the run ended; this program cannot exit before the kernel completes or aborts them"
        ),
    }
}
