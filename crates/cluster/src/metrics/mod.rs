//! The state of a run and of its machines as OpenMetrics text.

mod server;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ssdyno_figures::{ByOp, Histogram, LiveSnapshot};
use ssdyno_prober::{MetricKind, MetricLabels, OpenMetricsError, OpenMetricsWriter, SystemSample};
use ssdyno_session::RunPhase;

use crate::progress::ClusterProgress;

pub use server::MetricsListener;

/// The content type of what [`metrics_text`] writes.
pub const OPEN_METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How often a text is made at most, however many ask for it.
const MAKE_EVERY: Duration = Duration::from_millis(100);

/// Buckets of an octave of latency: linear interpolation within one is wrong by 25 % at most.
const PER_OCTAVE: u64 = 4;

/// Octaves of the buckets, as powers of two in ns: 128 ns to 34 s. Two bounds are below.
const OCTAVES: std::ops::Range<u32> = 7..35;

/// Phases and what they are called.
const PHASES: [(RunPhase, &str); 4] = [
    (RunPhase::Preparing, "preparing"),
    (RunPhase::Ready, "ready"),
    (RunPhase::Loaded, "loaded"),
    (RunPhase::Ended, "ended"),
];

/// The description of a run, besides its progress.
#[derive(Clone, Copy, Debug)]
pub struct RunOutline<'a> {
    /// Number of the run, as this program counts from 1.
    pub number: u64,
    /// The user's name for it; may be empty.
    pub name: &'a str,
    /// What is loaded.
    pub target: &'a str,
    /// The name of the load.
    pub load: &'a str,
    /// How far it is.
    pub phase: RunPhase,
}

/// The metrics of a program of `version`: the state of `run`, if there is one, with the progress of its hosts, and the
/// newest sample of each machine. Counters begin again at 0 with each run. They are those of the last snapshot; on a real
/// target figures by operation, errors and latencies are up to 0.1 s older than the number of requests.
pub fn metrics_text(
    version: &str,
    run: Option<RunOutline<'_>>,
    progress: &ClusterProgress,
) -> String {
    let mut writer = OpenMetricsWriter::new();
    let written = write(&mut writer, version, run, progress);
    // Names are constants; a test writes each of them.
    debug_assert_eq!(written, Ok(()));
    writer.finish()
}

fn write(
    to: &mut OpenMetricsWriter,
    version: &str,
    run: Option<RunOutline<'_>>,
    progress: &ClusterProgress,
) -> Result<(), OpenMetricsError> {
    to.family(MetricKind::Info, "ssdyno_build", "", "Version of the program.")?;
    to.value(&labels(&[("version", version)])?, None, 1.0)?;
    if let Some(run) = run {
        write_run(to, run, progress)?;
        write_hosts(to, progress)?;
    }
    let systems: Vec<(&SystemSample, MetricLabels)> = progress
        .systems
        .iter()
        .filter_map(|(name, sample)| Some((sample.as_ref()?, labels(&[("host", name)]).ok()?)))
        .collect();
    // Two steps, because `samples` borrows the labels: the first vector owns
    // them, and the second one refers to it.
    let systems: Vec<_> = systems.iter().map(|(sample, labels)| (*sample, labels)).collect();
    to.samples(&systems)
}

fn labels(all: &[(&str, &str)]) -> Result<MetricLabels, OpenMetricsError> {
    MetricLabels::new(all.iter().copied())
}

fn write_run(
    to: &mut OpenMetricsWriter,
    run: RunOutline<'_>,
    progress: &ClusterProgress,
) -> Result<(), OpenMetricsError> {
    let none = MetricLabels::default();
    // The sum of all hosts has its own families. A query over `ssdyno_host_*` must
    // not count the whole run as one more host.
    let merged = progress.merged();
    let told = merged.glance.as_deref().cloned().unwrap_or_default();
    to.family(MetricKind::Info, "ssdyno_run", "", "The run that these metrics describe.")?;
    let number = run.number.to_string();
    let facts =
        [("number", &*number), ("name", run.name), ("target", run.target), ("load", run.load)];
    to.value(&labels(&facts)?, None, 1.0)?;
    to.family(
        MetricKind::StateSet,
        "ssdyno_run_phase",
        "",
        "Phase of the run: the phase of the slowest host.",
    )?;
    to.states(&none, &PHASES.map(|(phase, name)| (name, phase == run.phase)))?;
    // The gauge is absent when no host prepares. A value of 1 would look like a preparation that has
    // just ended, and a value of 0 like one that hangs.
    if let Some(share) = merged.preparing {
        let help = "Fraction of the preparation of the target that is done, 0 to 1.";
        to.family(MetricKind::Gauge, "ssdyno_run_prepared_fraction", "fraction", help)?;
        to.value(&none, None, share)?;
    }
    let help = "Time since the start of the load on the clock of the run; for a simulated target its virtual time.";
    to.family(MetricKind::Gauge, "ssdyno_run_elapsed_seconds", "seconds", help)?;
    to.value(&none, None, merged.now.as_s_f64())?;
    to.family(MetricKind::Gauge, "ssdyno_run_hosts", "", "Hosts of the run.")?;
    to.value(&none, None, progress.hosts.len() as f64)?;
    let cut_off = progress.hosts.iter().filter(|(.., silent)| silent.is_some()).count();
    to.family(
        MetricKind::Gauge,
        "ssdyno_run_hosts_cut_off",
        "",
        "Hosts of the run that cannot be reached now.",
    )?;
    to.value(&none, None, cut_off as f64)?;
    write_counts(to, "run", &[(&none, &told)])?;
    let help =
        "Latencies of the requests without error after the ramp-up, in whole ns, rounded down.";
    to.family(MetricKind::Histogram, "ssdyno_run_latency_seconds", "seconds", help)?;
    // The exact sum of nanoseconds is divided once. Prometheus computes a mean from `_sum` and `_count`,
    // and a sum of rounded seconds would drift away from it.
    let sum = told.latency_ns_sum as f64 / 1e9;
    to.buckets(&none, &up_to(&told.histogram), told.histogram.total(), sum)
}

/// The counts of a run or of its hosts (`of`), each with its labels.
fn write_counts(
    to: &mut OpenMetricsWriter,
    of: &str,
    all: &[(&MetricLabels, &LiveSnapshot)],
) -> Result<(), OpenMetricsError> {
    let help = "Requests completed since the start of the load, with ramp-up and errors.";
    to.family(MetricKind::Counter, &format!("ssdyno_{of}_requests"), "", help)?;
    for (labels, told) in all {
        to.value(labels, None, told.completed as f64)?;
    }
    let help = "Requests that ended in an error, after the ramp-up.";
    to.family(MetricKind::Counter, &format!("ssdyno_{of}_errors"), "", help)?;
    for (labels, told) in all {
        to.value(labels, None, told.errors as f64)?;
    }
    let help = "Requests completed without error after the ramp-up, by operation.";
    to.family(MetricKind::Counter, &format!("ssdyno_{of}_operations"), "", help)?;
    for (labels, told) in all {
        write_by_op(to, labels, &told.requests_by_op)?;
    }
    let help = "Bytes of the requests completed without error after the ramp-up, by operation.";
    to.family(MetricKind::Counter, &format!("ssdyno_{of}_bytes"), "bytes", help)?;
    for (labels, told) in all {
        write_by_op(to, labels, &told.bytes_by_op)?;
    }
    Ok(())
}

fn write_by_op(
    to: &mut OpenMetricsWriter,
    labels: &MetricLabels,
    by_op: &ByOp<u64>,
) -> Result<(), OpenMetricsError> {
    by_op.iter().try_for_each(|(op, value)| to.value(labels, Some(("op", op)), *value as f64))
}

fn write_hosts(
    to: &mut OpenMetricsWriter,
    progress: &ClusterProgress,
) -> Result<(), OpenMetricsError> {
    let nothing = LiveSnapshot::default();
    let hosts = progress.hosts.iter().map(|(name, snapshot, silent)| {
        let told = snapshot.progress.glance.as_deref().unwrap_or(&nothing);
        Ok((labels(&[("host", name)])?, snapshot.phase, *silent, told))
    });
    let hosts = hosts.collect::<Result<Vec<_>, OpenMetricsError>>()?;
    // OpenMetrics wants all lines of a family in one place, so each
    // family has its own loop over the hosts.
    to.family(MetricKind::StateSet, "ssdyno_host_phase", "", "Phase of the run on this host.")?;
    for (labels, now, ..) in &hosts {
        to.states(labels, &PHASES.map(|(phase, name)| (name, phase == *now)))?;
    }
    let help = "Time since this host became unreachable; 0 if it is reachable.";
    to.family(MetricKind::Gauge, "ssdyno_host_cut_off_seconds", "seconds", help)?;
    for (labels, _, silent, _) in &hosts {
        to.value(labels, None, silent.unwrap_or_default().as_secs_f64())?;
    }
    let told: Vec<_> = hosts.iter().map(|(labels, .., told)| (labels, *told)).collect();
    write_counts(to, "host", &told)
}

/// Bounds in seconds, and the latencies up to each. Only bounds between two buckets of the histogram have an exact count,
/// and latencies are whole ns: so each bound is 1 ns below a round number.
fn up_to(histogram: &Histogram) -> Vec<(f64, u64)> {
    let quarters = OCTAVES.flat_map(|octave| {
        (0..PER_OCTAVE).map(move |quarter| (1u64 << octave) + (quarter << octave) / PER_OCTAVE)
    });
    // The histogram joins its bins to four in each octave. Finer bounds would multiply the size of each scrape, and
    // interpolation within a bucket is already right within 25 %.
    let bins = histogram.bins(PER_OCTAVE as usize);
    let mut bins = bins.iter().peekable();
    let mut below = 0;
    let bound = |past: u64| {
        while let Some((_, _, count)) = bins.next_if(|(_, bin_past, _)| *bin_past <= past) {
            below += count;
        }
        ((past - 1) as f64 / 1e9, below)
    };
    [32, 64].into_iter().chain(quarters).map(bound).collect()
}

/// Keeps a text for a moment: more frequent requests get the same text again, and cost nothing.
#[derive(Debug, Default)]
pub struct MetricsCache(Mutex<Option<(Instant, Arc<str>)>>);

impl MetricsCache {
    /// The text that was made within the last 0.1 s, or that which `make` makes now.
    pub fn text(&self, make: impl FnOnce() -> String) -> Arc<str> {
        // The lock is held while a text is made: of many clients at the same moment, one
        // makes the text, and the others receive it.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = kept.as_ref().filter(|(at, _)| at.elapsed() < MAKE_EVERY) {
            return Arc::clone(text);
        }
        let text: Arc<str> = make().into();
        *kept = Some((Instant::now(), Arc::clone(&text)));
        text
    }
}
