//! The options of real targets.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use ssdyno_bench::{EngineKind, Method, Waiting};
use ssdyno_block::units::Span;
use ssdyno_session::{Batch, RealSpec, WriteSpec};

use crate::args::positive_span;
#[cfg(target_os = "linux")]
use crate::consent::WriteArgs;

/// How a real target is loaded, and what allows writing to it: what verbs take that load one.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Real targets")]
pub(crate) struct RealArgs {
    /// What carries requests out: io_uring, threads (pread and pwrite, a thread for each request
    /// outstanding) or auto (io_uring where the kernel needs no workers for it) [default: auto].
    #[arg(long, value_name = "ENGINE",
          value_parser = PossibleValuesParser::new(["auto", "io_uring", "threads"]).try_map(|name| name.parse::<EngineKind>()))]
    pub(crate) engine: Option<EngineKind>,
    /// Poll the device for completions instead of waiting for interrupts; the device needs queues
    /// for it.
    #[arg(long)]
    pub(crate) iopoll: bool,
    /// Let a thread of the kernel take submissions, at the price of a core.
    #[arg(long)]
    pub(crate) sqpoll: bool,
    /// Go through this machine's page cache, which is emptied of the target before (direct=0 of fio): reads
    /// may never reach the target, and a write ends when it is in memory.
    #[arg(long, conflicts_with = "iopoll")]
    pub(crate) buffered: bool,
    /// Threads that share the load [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) jobs: Option<u32>,
    /// Cores that jobs are bound to, in turn, such as 0,2 [default: any; the only job of a closed
    /// loop that sleeps stays where it starts on a loop device].
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pub(crate) pin: Vec<usize>,
    /// How requests go to the kernel and come back: default (sleep; submit what is ready, two in a
    /// call, reap what is there), efficient (sleep until all that is outstanding has completed: least CPU time), latency
    /// (one at a time, spinning: no wake-up in the latencies, at the price of a core) [default: default].
    #[arg(long, value_name = "METHOD", 
          value_parser = PossibleValuesParser::new(Method::ALL.map(Method::name)).try_map(|name| name.parse::<Method>()))]
    pub(crate) method: Option<Method>,
    /// Completions that a closed loop waits for at a time, or all [default: the method's].
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<Batch>,
    /// Requests that go to the kernel with one call at most, or all (fio: iodepth_batch) [default: the
    /// method's].
    #[arg(long, value_name = "N")]
    pub(crate) submit: Option<Batch>,
    /// How jobs wait for completions: sleep until the kernel wakes them, which is in every latency, or
    /// spin, which takes a core [default: the method's].
    #[arg(long, value_name = "HOW", conflicts_with = "iopoll",
          value_parser = PossibleValuesParser::new(["sleep", "spin"]).try_map(|how| how.parse::<Waiting>()))]
    pub(crate) wait: Option<Waiting>,
    /// Without an answer for so long the target is taken to hang [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = positive_span)]
    pub(crate) timeout: Option<Span>,
    /// Do not sample the machine (processors, interrupts, memory, network, the device's own
    /// counters, power) while the target is loaded.
    #[arg(long, conflicts_with = "probe_interval")]
    pub(crate) no_probes: bool,
    /// Sample the machine this often [default: 100ms, or longer where that would take more than a
    /// thousandth of a processor].
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
