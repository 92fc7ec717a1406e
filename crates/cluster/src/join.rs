//! The measurements of the hosts, as one result.

use serde_json::Value;
use ssdyno_block::units::Span;
use ssdyno_block::{Op, Time, counted};
use ssdyno_figures::{
    ByOp, Confidence, HostRun, Invariant, LoadWindow, OutsideWindow, RunResult, StopReason,
};
use ssdyno_record::{Apart, HostPart, Recording, Together};
use ssdyno_session::{Failure, Measured, RunSpec};

use crate::clocks::{ClockComparison, unix_less_monotonic_ns};
use crate::protocol::HostRecord;
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
    pub(crate) fetched: Result<HostRecord, Failure>,
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
            Ok(HostRecord { result, recording, failure, start_monotonic_ns }) => {
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
        return Err(lost.unwrap_or_else(|| Failure::failed("no host measured anything")));
    };
    // `earliest` is the minimum, so the difference is never negative. `u64::MAX` only stands
    // for clocks that differ by more than 584 years.
    let after =
        |host: &Present| Time::from_ns(u64::try_from(host.start_ns - earliest).unwrap_or(u64::MAX));
    let parts: Vec<(Time, Recording)> = present.iter().map(after).zip(recordings).collect();
    let mut together = Together::new(&parts).map_err(|apart| {
        let name = |at: usize| present.get(at).map_or("?", |one| one.host.name.as_str());
        not_at_once(apart, name)
    })?;
    let mut result = base(&present);
    // Host n runs with the seed of the spec plus n. The seed of the first host would be wrong as
    // the seed of the result if the first host was lost.
    result.seed = result.seed.map(|_| spec.seed);
    together.all.fill(&mut result);
    let results: Vec<(&str, &RunResult)> =
        present.iter().map(|one| (&*one.host.name, &one.result)).collect();
    whole::fill(&mut result, &results, &together.hosts);
    let failed = present.iter().zip(&together.hosts).filter_map(|(one, part)| {
        failed_outside(&one.host.name, part.errors_outside, part.unanswered_outside)
    });
    result.notes.extend(failed);
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
    let failed = present.iter().filter_map(|one| Some((&*one.host.name, one.failure.as_ref()?)));
    let rows = || present.iter().find_map(|one| one.rows.clone()?.err());
    lost.or_else(|| of_all(&failed.collect::<Vec<_>>())).or_else(rows)
}

/// One failure of all hosts that failed, with their names.
fn of_all(failed: &[(&str, &Failure)]) -> Option<Failure> {
    // A thousand hosts that cannot reach one server have the same message. It stands once, and a line of messages stays
    // readable.
    const MESSAGES: usize = 4;
    const NAMES: usize = 8;
    let (_, first) = *failed.first()?;
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for &(name, failure) in failed {
        match groups.iter_mut().find(|(message, _)| *message == failure.message) {
            Some((_, names)) => names.push(name),
            None => groups.push((failure.message.as_str(), vec![name])),
        }
    }
    let group = |(message, names): &(&str, Vec<&str>)| {
        let shown = names[..names.len().min(NAMES)].join(", ");
        match names.len().saturating_sub(NAMES) {
            0 => format!("{shown}: {message}"),
            more => format!("{shown} and {more} more: {message}"),
        }
    };
    let mut message = groups.iter().take(MESSAGES).map(group).collect::<Vec<_>>().join("; ");
    let others: usize = groups.iter().skip(MESSAGES).map(|(_, names)| names.len()).sum();
    if others > 0 {
        let others = counted(others as u64, "other host", "other hosts");
        message.push_str(&format!("; {others} failed as well"));
    }
    Some(Failure { message, ..first.clone() })
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

/// A note about failed requests of a host outside the window: the host's own notes count them, the figures do not.
fn failed_outside(name: &str, errors: u64, unanswered: u64) -> Option<String> {
    if errors == 0 && unanswered == 0 {
        return None;
    }
    Some(format!(
        "no figure includes the requests of {name} outside the window, of which {errors} ended in an error \
         and {unanswered} never completed"
    ))
}

/// Why there is no figure of all hosts, which `name` names by their numbers.
fn not_at_once<'a>(apart: Apart, name: impl Fn(usize) -> &'a str) -> Failure {
    let run_longer = "run longer, or set a time instead of a number of requests".to_owned();
    let (message, help) = match apart {
        Apart::Empty { host } => {
            let message = format!("{} recorded nothing: it ended during its ramp-up", name(host));
            (message, "run longer, or shorten the ramp-up".to_owned())
        }
        Apart::NeverTogether { last, first, gap: Time::ZERO } if last == first => {
            let message = format!("{} recorded for no time: there is no window", name(last));
            (message, run_longer)
        }
        Apart::NeverTogether { last, first, gap } => {
            let (last, first) = (name(last), name(first));
            let message = format!(
                "the hosts did not run at the same time: {last} began {gap} after {first} ended"
            );
            (message, format!("a sum over them would be meaningless; {run_longer}"))
        }
        Apart::Coarse { host, interval, common } => {
            let host = name(host);
            let message = format!(
                "all hosts ran together for {common}, but a point of the series of {host} is {interval} \
                 long: the figures cannot be cut to this window"
            );
            (message, format!("use `interval={}` or less, or {run_longer}", Span(common / 10)))
        }
    };
    Failure::failed(message).with_help(help)
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
    // Hosts simulate at the same time, so their speeds add up. A real target has none.
    let speeds: Vec<f64> =
        all().filter_map(|result| result.simulated_requests_per_wall_second).collect();
    let speed = (!speeds.is_empty()).then(|| speeds.iter().sum());
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
        simulated_requests_per_wall_second: speed,
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
        errors: part.errors_outside,
        unanswered: part.unanswered_outside,
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
    let specs = host_specs(present.iter().map(|one| one.result.spec.as_ref()));
    let run = |((one, part), spec): ((&Present, &mut HostPart), Option<Value>)| {
        let Present { host, rows, result, start_ns, .. } = one;
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
            spec,
            series: part.recording.series_of(points),
            whole_run: whole::of_host(result),
        }
    };
    present.iter().zip(parts).zip(specs).map(run).collect()
}

/// The specs of hosts as their result has them: the first, and those that differ from it in more than the seed. The same spec
/// from a thousand hosts would add megabytes.
fn host_specs<'a>(specs: impl Iterator<Item = Option<&'a Value>>) -> Vec<Option<Value>> {
    let with_seed = |mut spec: Value, seed: Option<&Value>| {
        if let (Some(keys), Some(seed)) = (spec.as_object_mut(), seed) {
            keys.insert("seed".to_owned(), seed.clone());
        }
        spec
    };
    let mut first: Option<&Value> = None;
    let kept = specs.map(|spec| match (first, spec) {
        (None, spec) => {
            first = spec;
            spec.cloned()
        }
        (Some(first), Some(spec)) => {
            let same_seed = with_seed(spec.clone(), first.get("seed"));
            (same_seed != *first).then(|| spec.clone())
        }
        (Some(_), None) => None,
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_that_differs_in_its_seed_alone_is_kept_once() {
        let spec = |seed: u64, depth: u64| {
            let workload = serde_json::json!({ "depth": depth });
            serde_json::json!({ "seed": seed, "contents": { "workload": workload } })
        };
        let [one, two, other] = [spec(1, 4), spec(2, 4), spec(3, 8)];
        let kept = host_specs([Some(&one), Some(&two), None, Some(&other)].into_iter());
        assert_eq!(kept, [Some(one.clone()), None, None, Some(other.clone())]);
    }

    #[test]
    fn failed_requests_outside_the_window_have_a_note() {
        assert_eq!(failed_outside("a", 0, 0), None);
        let note = failed_outside("a", 1, 2).unwrap();
        assert!(note.ends_with("1 ended in an error and 2 never completed"), "{note}");
    }

    /// Each host that failed has its name in the message, and equal messages stand once.
    #[test]
    fn a_failure_names_all_hosts() {
        let failure = |text: &str| Failure::failed(text).with_help("help");
        let (one, two) = (failure("1 request failed"), failure("2 requests failed"));
        let told = of_all(&[("a", &one), ("b", &two), ("c", &one)]).unwrap();
        assert_eq!(told.message, "a, c: 1 request failed; b: 2 requests failed");
        assert_eq!(told.help.as_deref(), Some("help"));
        assert_eq!(of_all(&[("a", &one)]).unwrap().message, "a: 1 request failed");
        assert!(of_all(&[]).is_none());
        let names: Vec<String> = (0..12).map(|at| format!("h{at}")).collect();
        let many: Vec<(&str, &Failure)> = names.iter().map(|name| (&**name, &one)).collect();
        let message = of_all(&many).unwrap().message;
        assert!(message.ends_with("h7 and 4 more: 1 request failed"), "{message}");
    }

    /// The message names the host and the cause, and the help is one that helps.
    #[test]
    fn hosts_without_a_common_window_have_a_reason_and_a_remedy() {
        let told = |apart| {
            let failure = not_at_once(apart, |at| ["a", "b"][at]);
            (failure.message, failure.help.unwrap_or_default())
        };
        let common = Time::from_ms(20);
        let coarse = Apart::Coarse { host: 0, interval: Time::from_ms(64), common };
        let (message, help) = told(coarse);
        assert!(
            message.contains("series of a is 64 ms long") && message.contains("20 ms"),
            "{message}"
        );
        assert!(help.contains("`interval=2ms` or less"), "{help}");
        let (message, help) = told(Apart::Empty { host: 1 });
        assert!(message.contains("b recorded nothing") && help.contains("ramp-up"), "{message}");
        let gap = Time::from_s(2);
        let (message, _) = told(Apart::NeverTogether { last: 1, first: 0, gap });
        assert!(message.contains("b began 2 s after a ended"), "{message}");
        let none = Apart::NeverTogether { last: 1, first: 1, gap: Time::ZERO };
        assert_eq!(told(none).0, "b recorded for no time: there is no window");
    }
}
