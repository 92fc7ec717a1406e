//! The options of real targets.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use ssdyno_bench::{EngineKind, Method, ReapWait};
use ssdyno_block::units::Span;
use ssdyno_session::{Batch, Pin, RealSpec, WriteSpec};

use crate::args::positive_span;
#[cfg(target_os = "linux")]
use crate::consent::WriteArgs;
use crate::words::read_word;

/// How a real target is loaded, and permissions to write to it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Real targets")]
pub(crate) struct RealArgs {
    /// I/O engine (fio: ioengine): io_uring, threads (pread and pwrite, one thread per outstanding request)
    /// or auto (io_uring if the kernel needs no worker threads for it) [default: auto].
    #[arg(long, value_name = "ENGINE",
          value_parser = PossibleValuesParser::new(["auto", "io_uring", "threads"]).try_map(read_word::<EngineKind>))]
    pub(crate) engine: Option<EngineKind>,
    /// Poll the device for completions instead of waiting for interrupts (fio: hipri). The device must have
    /// poll queues.
    #[arg(long)]
    pub(crate) iopoll: bool,
    /// Let a kernel thread submit requests (fio: sqthread_poll). The thread uses a whole core.
    #[arg(long)]
    pub(crate) sqpoll: bool,
    /// Use the page cache (fio: direct=0). The cached pages of the target are dropped first. Reads may be
    /// served from the cache, and a write completes when its data is in memory.
    #[arg(long, conflicts_with = "iopoll")]
    pub(crate) buffered: bool,
    /// Threads that share the load (fio: numjobs) [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) jobs: Option<u32>,
    /// Bind jobs to these cores in turn, such as 0,2 (fio: cpus_allowed), or none to let the scheduler
    /// choose [default: none; on a loop device, a single job that sleeps and has a depth above 1 stays on
    /// the core where it starts].
    #[arg(long, value_name = "CORES")]
    pub(crate) pin: Option<Pin>,
    /// How requests are submitted and reaped: default (sleep; submit up to two requests in a call, reap all
    /// available completions), efficient (sleep until all outstanding requests have completed: least CPU
    /// time), latency (one at a time, spinning: no wake-up latency, but uses a whole core) [default:
    /// default].
    #[arg(long, value_name = "METHOD", 
          value_parser = PossibleValuesParser::new(Method::ALL.map(Method::name)).try_map(read_word::<Method>))]
    pub(crate) method: Option<Method>,
    /// Completions to wait for in one call, or all (fio: iodepth_batch_complete_min) [default: set by
    /// --method].
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<Batch>,
    /// Maximum requests in one submit call, or all (fio: iodepth_batch) [default: set by --method].
    #[arg(long, value_name = "N")]
    pub(crate) submit: Option<Batch>,
    /// How jobs wait for completions: sleep (every latency includes the wake-up) or spin (uses a whole
    /// core) [default: set by --method].
    #[arg(long, value_name = "HOW", conflicts_with = "iopoll",
          value_parser = PossibleValuesParser::new(["sleep", "spin"]).try_map(read_word::<ReapWait>))]
    pub(crate) wait: Option<ReapWait>,
    /// Treat the target as hung when no request completes for this long [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = positive_span)]
    pub(crate) timeout: Option<Span>,
    /// Do not sample the machine during the run (CPU, interrupts, memory, network, the device's own
    /// counters, power).
    #[arg(long, conflicts_with = "probe_interval")]
    pub(crate) no_probes: bool,
    /// Interval between samples of the machine [default: 100ms, or longer if the samples would use more
    /// than 0.1 % of a CPU].
    #[arg(long, value_name = "TIME", value_parser = positive_span)]
    pub(crate) probe_interval: Option<Span>,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    pub(crate) write: WriteArgs,
}

impl RealArgs {
    /// As a spec has it.
    pub(crate) fn spec(&self) -> RealSpec {
        RealSpec {
            engine: self.engine,
            iopoll: self.iopoll,
            sqpoll: self.sqpoll,
            buffered: self.buffered,
            jobs: self.jobs,
            pin: self.pin.clone(),
            method: self.method,
            batch: self.batch,
            submit: self.submit,
            wait: self.wait,
            timeout: self.timeout,
            no_probes: self.no_probes,
            probe_interval: self.probe_interval,
            tune: false,
        }
    }

    /// What allows writing, as a spec has it.
    pub(crate) fn write_spec(&self) -> WriteSpec {
        #[cfg(target_os = "linux")]
        return self.write.spec();
        #[cfg(not(target_os = "linux"))]
        WriteSpec::default()
    }
}
