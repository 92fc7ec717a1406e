//! The measurements of the hosts, as one result.

use ssdyno_block::{Op, Time};
use ssdyno_figures::{
    ByOp, Confidence, HostRun, Invariant, LoadWindow, OutsideWindow, RunResult, StopReason,
};
use ssdyno_record::{HostPart, Recording, Together};
use ssdyno_session::{Failure, FailureKind, Measured, RunSpec};

use crate::clocks::{ClockComparison, unix_less_monotonic_ns};
use crate::connection::Fetched;
use crate::scraped::Scraped;
use crate::watched::EndedProbe;
use crate::whole;

/// Who a host is.
#[derive(Debug)]
pub(crate) struct HostIdentity {
    pub(crate) name: String,
    pub(crate) machine: String,
    pub(crate) seed: u64,
    pub(crate) clock: ClockComparison,
}

/// The outcome of one host.
#[derive(Debug)]
pub(crate) struct HostOutcome {
    pub(crate) host: HostIdentity,
    /// Where its rows lie below the directory of the result, if they came; `None` where they are not kept.
    pub(crate) rows: Option<Result<String, Failure>>,
    pub(crate) fetched: Result<Fetched, Failure>,
}

/// A host whose record is there.
struct Present {
    host: HostIdentity,
    rows: Option<Result<String, Failure>>,
    result: RunResult,
    failure: Option<Failure>,
    /// When its recorded window began, on the controller's clock; zero where time is virtual.
    start_ns: i128,
}

/// The machines and programs sampled beside the load.
pub(crate) struct Meanwhile {
    pub(crate) probed: Vec<EndedProbe>,
    pub(crate) scraped: Vec<Scraped>,
}

/// Joins `outcomes` of a run of `spec`.
pub(crate) fn join(
    outcomes: Vec<HostOutcome>,
    meanwhile: Meanwhile,
    spec: &RunSpec,
) -> Result<Measured, Failure> {
    let (mut present, mut recordings, mut absent) = (Vec::new(), Vec::new(), Vec::new());
    for HostOutcome { host, rows, fetched } in outcomes {
        match fetched {
            Ok(Fetched { result, recording, failure, start_monotonic_ns }) => {
                // Without a window the time of a host is virtual: each simulation begins at its own zero,
                // and all hosts count as having begun together.
                let start_ns =
                    start_monotonic_ns.map_or(0, |start| host.clock.to_controller(start));
                recordings.push(recording);
                present.push(Present { host, rows, result, failure, start_ns });
            }
            Err(failure) => absent.push((host, failure)),
        }
    }
    let Some(earliest) = present.iter().map(|host| host.start_ns).min() else {
        let lost = absent.into_iter().map(|(_, failure)| failure).next();
        return Err(
            lost.unwrap_or_else(|| Failure::new(FailureKind::Failed, "no host measured anything"))
        );
    };
    // `earliest` is the minimum, so the difference is never negative. `u64::MAX` only stands
    // for clocks that differ by more than 584 years.
    let after =
        |host: &Present| Time::from_ns(u64::try_from(host.start_ns - earliest).unwrap_or(u64::MAX));
    let parts: Vec<(Time, Recording)> = present.iter().map(after).zip(recordings).collect();
    let mut together = Together::new(&parts).map_err(|apart| {
        let name = |at: usize| present.get(at).map_or("?", |one| one.host.name.as_str());
        not_at_once(name(apart.first), name(apart.last), apart.gap)
    })?;
    let mut result = base(&present);
    // Host n runs with the seed of the spec plus n. The seed of the first host would be wrong as
    // the seed of the result if the first host was lost.
    result.seed = result.seed.map(|_| spec.seed);
    together.all.fill(&mut result);
    let results: Vec<(&str, &RunResult)> =
        present.iter().map(|one| (&*one.host.name, &one.result)).collect();
    whole::fill(&mut result, &results, &together.hosts);
    result.window = Some(window(&present, &together, earliest));
    result.hosts = host_runs(&present, &mut together.hosts, earliest);
    // Lost hosts stay in the list of hosts. A reader of the result must see that a host is missing,
    // and why, without comparing the spec with the list.
    result.hosts.extend(absent.iter().map(|(host, failure)| lost_host(host, failure)));
    result.partial |= !absent.is_empty();
    let missing =
        absent.iter().map(|(host, why)| format!("no figure includes {}: {why}", host.name));
    let without_rows = present.iter().filter_map(|one| {
        let why = one.rows.as_ref()?.as_ref().err()?;
        Some(format!("the rows of {} are missing: {why}", one.host.name))
    });
    // Lost hosts and missing rows come first in the notes: they change what the figures
    // mean, while the other notes only explain them.
    result.notes.splice(0..0, missing.chain(without_rows));
    // In a simulation the samples describe the machine that simulates, on its own clock. There is no
    // common origin, so the samples count from their first one.
    let is_real = present.iter().all(|host| host.result.window.is_some());
    let origin = is_real.then(|| earliest + i128::from(together.start.as_ns()));
    let Meanwhile { probed, scraped } = meanwhile;
    result.systems = probed.into_iter().map(|probe| probe.system(origin)).collect();
    result.metrics = scraped.into_iter().map(|source| source.metrics(origin)).collect();
    result.spec = serde_json::to_value(spec).ok();
    let failure = first_failure(&present, absent);
    Ok(Measured { result, recording: together.all, by_name: spec.clone(), failure, broken: None })
}

/// The reason why the run is not a success: a lost host comes before a host with a failure, and missing rows come last.
fn first_failure(present: &[Present], absent: Vec<(HostIdentity, Failure)>) -> Option<Failure> {
    let lost = absent.into_iter().map(|(_, failure)| failure).next();
    let of_hosts = || {
        present.iter().find_map(|one| {
            let failure = one.failure.clone()?;
            Some(Failure { message: format!("{}: {}", one.host.name, failure.message), ..failure })
        })
    };
    let rows = || present.iter().find_map(|one| one.rows.clone()?.err());
    lost.or_else(of_hosts).or_else(rows)
}

/// A host of which nothing is known but why.
fn lost_host(host: &HostIdentity, failure: &Failure) -> HostRun {
    HostRun {
        name: host.name.clone(),
        machine: host.machine.clone(),
        seed: host.seed,
        partial: true,
        lost: Some(failure.message.clone()),
        clock_offset_ns: host.clock.unix_offset_ns(),
        clock_uncertainty_ns: host.clock.uncertainty_ns,
        ..HostRun::default()
    }
}

fn not_at_once(first: &str, last: &str, gap: Time) -> Failure {
    let message = match gap {
        Time::ZERO if first == last => {
            format!("{last} recorded nothing: it ended during its ramp-up")
        }
        Time::ZERO => format!(
            "{first} and {last} ran at the same time too briefly for a common \
                               window"
        ),
        gap => format!(
            "the hosts did not run at the same time: {last} began {gap} after {first} ended"
        ),
    };
    let help = "a sum over them would be meaningless; run longer, or set a time instead of a number of requests";
    Failure::new(FailureKind::Failed, message).with_help(help)
}

/// The parts that do not follow from requests alone.
fn base(hosts: &[Present]) -> RunResult {
    let all = || hosts.iter().map(|host| &host.result);
    let first = all().next().cloned().unwrap_or_default();
    let named = |one: &Present, text: &str| format!("{}: {text}", one.host.name);
    let notes =
        hosts.iter().flat_map(|host| host.result.notes.iter().map(move |note| named(host, note)));
    let warnings = hosts.iter().flat_map(|host| {
        host.result.warnings.iter().map(|warning| warning.clone().of(&host.host.name))
    });
    let invariants = hosts.iter().flat_map(|host| {
        let of = |one: &Invariant| Invariant { detail: named(host, &one.detail), ..one.clone() };
        host.result.invariants.iter().map(of)
    });
    let partial = |result: &RunResult| result.partial;
    let reasons: Vec<Option<StopReason>> = all().map(|result| result.stopped_because).collect();
    RunResult {
        target: first.target,
        workload: first.workload,
        seed: first.seed,
        page_cache: first.page_cache,
        partial: all().any(partial),
        // A host that ended early has the reason that matters. The others stopped because they had done all
        // requests or all time, and that reason would hide it.
        stopped_because: all()
            .find(|one| one.partial)
            .map_or(reasons[0], |one| one.stopped_because),
        // The hosts run at the same time, so their wall times overlap. The longest one is the
        // wall time of the run; the sum would be wrong.
        wall_seconds: all().map(|result| result.wall_seconds).fold(0.0, f64::max),
        configuration: first.configuration,
        notes: notes.collect(),
        warnings: warnings.collect(),
        invariants: invariants.collect(),
        ..RunResult::default()
    }
}

/// The common window by the controller's clock.
fn window(hosts: &[Present], together: &Together, earliest: i128) -> LoadWindow {
    let outside = hosts.iter().zip(&together.hosts).map(|(one, part)| OutsideWindow {
        name: one.host.name.clone(),
        before_seconds: part.before.as_s_f64(),
        after_seconds: part.after.as_s_f64(),
        requests: part.requests_outside,
    });
    let is_real = hosts.iter().all(|host| host.result.window.is_some());
    // The wall clock of the controller is read now and not at the start: a clock that was set during the run
    // then agrees with the other timestamps of this machine.
    let start = earliest + i128::from(together.start.as_ns()) + unix_less_monotonic_ns();
    let start_unix_ns = if is_real { u64::try_from(start.max(0)).unwrap_or(u64::MAX) } else { 0 };
    let late_ns = hosts.iter().filter_map(|host| Some(host.result.window.as_ref()?.late_ns)).max();
    LoadWindow {
        start_unix_ns,
        late_ns: late_ns.unwrap_or(0),
        end_unix_ns: is_real.then(|| start_unix_ns + together.all.window().as_ns()),
        outside: outside.collect(),
    }
}

/// The meaning of intervals is in the result once: a thousand hosts would add a megabyte of it.
fn brief(confidence: Confidence) -> Confidence {
    Confidence { meaning: "as `confidence` of the run".to_owned(), ..confidence }
}

fn host_runs(present: &[Present], parts: &mut [HostPart], earliest: i128) -> Vec<HostRun> {
    // All hosts share the limit. 1000 hosts with 4096 points each would make a `result.json`
    // of hundreds of megabytes that no browser opens.
    let points = HostRun::POINTS_MOST / parts.len().max(1);
    let run = |(Present { host, rows, result, start_ns, .. }, part): (&Present, &mut HostPart)| {
        let figures = part.recording.job_result(part.recording.start());
        let skew_ns = i64::try_from(start_ns - earliest).unwrap_or(i64::MAX);
        HostRun {
            name: host.name.clone(),
            machine: host.machine.clone(),
            seed: host.seed,
            partial: result.partial,
            lost: None,
            requests: figures.requests,
            errors: figures.errors,
            unanswered: figures.unanswered,
            iops: figures.iops,
            throughput_bytes_per_second: figures.throughput_bytes_per_second,
            requests_by_op: ByOp::from_fn(|op: Op| part.recording.count(op)),
            confidence: part.recording.confidence_of(&figures).map(brief),
            latency_ns: figures.latency_ns,
            clock_offset_ns: host.clock.unix_offset_ns(),
            clock_uncertainty_ns: host.clock.uncertainty_ns,
            rows: rows.as_ref().and_then(|rows| rows.as_ref().ok()).cloned(),
            start_skew_ns: result.window.as_ref().map(|_| skew_ns),
            provenance: result.provenance.clone(),
            series: part.recording.series_of(points),
            whole_run: whole::of_host(result),
        }
    };
    present.iter().zip(parts).map(run).collect()
}
