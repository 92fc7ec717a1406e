//! The controller of one run on several hosts.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use ssdyno_block::Time;
use ssdyno_prober::{SystemSample, monotonic_ns};
use ssdyno_result::{Keep, KeepGoing, LiveSnapshot, RunProgress};
use ssdyno_session::{Failure, FailureKind, Measured, RunPhase, RunSnapshot, RunSpec};
use tokio::sync::Notify;

use crate::clocks::ClockComparison;
use crate::connection::{Connection, Fetched};
use crate::hosts::HostAddress;
use crate::join::{HostOutcome, join};
use crate::protocol::NO_ANSWER;
use crate::ssh::RemoteStart;
use crate::watched::{Watched, watch_systems};
use crate::worker::NO_RUN;

/// How often workers tell how far they are.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// How often who watches is called.
const WATCH_EVERY: Duration = Duration::from_millis(25);

/// From the command to begin to the first request at least: a few answers of a slow host.
const BEGIN_AFTER: Duration = Duration::from_millis(60);

/// A host that is not heard of for so long after it was cut off is given up.
const GONE_AFTER: Duration = Duration::from_secs(30);

/// The same after everybody was told to stop: nobody waits longer than that for a host that may never have heard of it.
const GONE_AFTER_STOP: Duration = Duration::from_secs(1);

/// How long records may take to come after everybody was told to stop.
const FETCH_AFTER_STOP: Duration = Duration::from_secs(5);

/// How often a host that was cut off is tried again.
const TRY_EVERY: Duration = Duration::from_millis(500);

/// How far all hosts are.
#[derive(Clone, Debug, Default)]
pub struct ClusterProgress {
    /// Each host: its name, its last snapshot, and since when it was not heard of, if it is cut off.
    pub hosts: Vec<(String, RunSnapshot, Option<Duration>)>,
    /// Each machine that is sampled: its name and its newest sample.
    pub systems: Vec<(String, Option<SystemSample>)>,
}

impl ClusterProgress {
    /// All hosts as one run: requests are summed, and it is as far as the slowest.
    pub fn merged(&self) -> RunProgress {
        let all = || self.hosts.iter().map(|(_, snapshot, _)| &snapshot.progress);
        let completed: u64 = all().map(|progress| progress.completed).sum();
        let latency: f64 = all().map(|one| one.latency_ns_mean * one.completed as f64).sum();
        let preparing = all().filter_map(|progress| progress.preparing);
        let mut glance: Option<LiveSnapshot> = None;
        for one in all().filter_map(|progress| progress.glance.as_deref()) {
            match &mut glance {
                Some(sum) => sum.merge(one),
                None => glance = Some(one.clone()),
            }
        }
        RunProgress {
            preparing: preparing.min_by(f64::total_cmp),
            now: all().map(|progress| progress.now).min().unwrap_or(Time::ZERO),
            issued: all().map(|progress| progress.issued).sum(),
            completed,
            latency_ns_mean: latency / completed.max(1) as f64,
            glance: glance.map(Arc::new),
        }
    }
}

/// What is known of a host while its run goes on.
#[derive(Debug)]
struct Seen {
    snapshot: RunSnapshot,
    /// When it told something last.
    heard: Instant,
    /// Since when it is cut off.
    lost: Option<Instant>,
    /// Why it is given up, or why its worker has no such run.
    gone: Option<Failure>,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { snapshot: RunSnapshot::default(), heard: Instant::now(), lost: None, gone: None }
    }
}

/// A host with its run.
struct Member {
    connection: Connection,
    run: u64,
    clock: ClockComparison,
    seen: Arc<Mutex<Seen>>,
}

impl Member {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn phase(&self) -> RunPhase {
        self.seen().snapshot.phase
    }

    /// Gives it up if it is silent: it is cut off, whether its connection was found dead yet or not.
    fn give_up_if_silent(&self) {
        let mut seen = self.seen();
        if seen.heard.elapsed() > GONE_AFTER_STOP {
            let message = format!("{} was cut off when the run was stopped", self.connection.name);
            seen.gone.get_or_insert_with(|| Failure::new(FailureKind::Failed, message));
        }
    }

    fn is_over(&self) -> bool {
        let seen = self.seen();
        seen.gone.is_some() || seen.snapshot.phase == RunPhase::Ended
    }
}

/// The hosts of a run, and how they are reached.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hosts {
    /// Each is named once.
    pub addresses: Vec<HostAddress>,
    /// How ssh starts workers on those that are reached by it.
    pub remote: RemoteStart,
    /// The directory with the certificate of this controller, for hosts that are reached by TLS.
    pub identity: Option<PathBuf>,
    /// Version of this program, which all workers must have.
    pub version: String,
    /// Machines that are sampled and carry no load, such as the servers of the targets.
    pub probers: Vec<HostAddress>,
    /// How often these and the hosts are sampled; `None`: not at all.
    pub probe_every: Option<Duration>,
}

/// Runs `spec` on all `hosts` at once, each on a target of its own by that name, and joins what they measured.
/// `watch` is called some 40 times a second and may stop all hosts: what was measured is kept.
///
/// # Errors
/// A host cannot be reached, has another version, or refuses the spec: nothing is loaded then. Or the hosts did not run
/// at the same time. What went wrong later is in [`Measured::failure`], with what was measured.
pub fn run_on_hosts(
    hosts: &Hosts,
    spec: &RunSpec,
    watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
) -> Result<Measured, Failure> {
    check(hosts)?;
    let keep = spec.keep;
    // Rows stay where they are recorded, and nobody fetches them yet; a series of one point could not be cut.
    let spec = RunSpec {
        keep: Keep::Summary,
        interval: spec.interval.filter(|interval| interval.0 > Time::ZERO),
        ..spec.clone()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(FailureKind::Failed, format!("cannot start the controller: {error}"))
    })?;
    let kept_rows = keep != Keep::Summary;
    let mut measured = runtime.block_on(carry_out(hosts, &spec, watch))?;
    if kept_rows {
        let note =
            "rows of requests are not kept in a run on several hosts: percentiles are within 0.4 %";
        measured.result.notes.insert(0, note.to_owned());
    }
    Ok(measured)
}

pub(crate) fn check(hosts: &Hosts) -> Result<(), Failure> {
    let all: Vec<&HostAddress> = hosts.addresses.iter().chain(&hosts.probers).collect();
    let twice = all.iter().enumerate().find(|(at, host)| all[..*at].contains(host));
    match (&hosts.addresses[..], twice) {
        ([], _) => Err(Failure::usage("no host is named")),
        (_, Some((_, host))) => Err(Failure::usage(format!("{host} is named twice"))
            .with_help("a worker has one run at a time, and its machine is sampled with it")),
        _ => Ok(()),
    }
}

async fn carry_out(
    hosts: &Hosts,
    spec: &RunSpec,
    watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
) -> Result<Measured, Failure> {
    let assembled = assemble(hosts, spec);
    let mut members = unless_stopped(assembled, watch).await?;
    let workers = members.iter().map(|member| (member.connection.clone(), member.clock));
    let watched = unless_stopped(watch_systems(hosts, workers), watch).await;
    let systems = match watched {
        Ok(systems) => systems,
        Err(failure) => {
            release(&mut members).await;
            return Err(failure);
        }
    };
    members.iter().for_each(follow);
    let watch = &mut |progress: &ClusterProgress| {
        let systems = systems.iter().map(Watched::latest).collect();
        watch(&ClusterProgress { systems, ..progress.clone() })
    };
    let begun = match wait_until_ready(&members, watch).await {
        Ok(()) => begin(&mut members).await,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = begun {
        // A run that could not start says why in its result.
        let why = first_refusal(&mut members).await.unwrap_or(failure);
        release(&mut members).await;
        return Err(why);
    }
    let stopped = wait_until_over(&mut members, watch).await;
    let outcomes = fetch_all(&mut members, stopped, watch).await;
    let probed = join_all(systems.into_iter().map(Watched::end)).await;
    release(&mut members).await;
    join(outcomes, probed, spec)
}

/// Connects to all hosts, compares clocks and lets them prepare; none if one refuses.
async fn assemble(hosts: &Hosts, spec: &RunSpec) -> Result<Vec<Member>, Failure> {
    let Hosts { addresses, remote, identity, version, .. } = hosts;
    let open = |host| Connection::open(host, remote, identity.as_deref(), version);
    let connections = join_all(addresses.iter().map(open)).await;
    let mut connections = connections.into_iter().collect::<Result<Vec<_>, _>>()?;
    let clocks = join_all(connections.iter_mut().map(Connection::compare_clocks)).await;
    let clocks = clocks.into_iter().collect::<Result<Vec<_>, _>>()?;
    let controller = format!("a controller (process {})", std::process::id());
    let runs = join_all(connections.iter_mut().map(|one| one.prepare(spec, &controller))).await;
    if let Some(failure) = runs.iter().find_map(|run| run.as_ref().err()).cloned() {
        for (connection, run) in connections.iter_mut().zip(runs) {
            if let Ok(run) = run {
                connection.release(run).await;
            }
        }
        return Err(failure);
    }
    let member =
        |((connection, clock), run)| Member { connection, run, clock, seen: Arc::default() };
    Ok(connections.into_iter().zip(clocks).zip(runs.into_iter().flatten()).map(member).collect())
}

/// What `work` gives, unless who watches stops it before. A worker that was told to prepare, and is not heard of again,
/// forgets it.
async fn unless_stopped<T>(
    work: impl Future<Output = Result<T, Failure>>,
    watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
) -> Result<T, Failure> {
    let mut work = std::pin::pin!(work);
    loop {
        if let Ok(done) = tokio::time::timeout(WATCH_EVERY, &mut work).await {
            return done;
        }
        if watch(&ClusterProgress::default()) == KeepGoing::Stop {
            return Err(stopped_before());
        }
    }
}

fn stopped_before() -> Failure {
    Failure::new(FailureKind::Interrupted, "interrupted before the load began")
}

/// Follows the run of a member in the background; it connects again after a cut.
fn follow(member: &Member) {
    let (mut connection, run, seen) =
        (member.connection.clone(), member.run, Arc::clone(&member.seen));
    tokio::spawn(async move {
        let state = || seen.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match connection.watch(run, TELL_EVERY).await {
                Ok(mut stream) => {
                    while let Ok(Some(told)) = stream.message().await {
                        let mut seen = state();
                        (seen.snapshot, seen.lost) = (told.snapshot, None);
                        seen.heard = Instant::now();
                        if seen.snapshot.phase == RunPhase::Ended {
                            return;
                        }
                    }
                }
                // It answers, and has no such run.
                Err(failure) if failure.key.as_deref() == Some(NO_RUN) => {
                    state().gone = Some(failure);
                    return;
                }
                Err(_) => {}
            }
            let since = *state().lost.get_or_insert_with(Instant::now);
            if since.elapsed() > GONE_AFTER {
                let message = format!(
                    "{} was cut off and did not come back within {} s",
                    connection.name,
                    GONE_AFTER.as_secs()
                );
                state().gone = Some(Failure::new(FailureKind::Failed, message));
                return;
            }
            tokio::time::sleep(TRY_EVERY).await;
        }
    });
}

fn progress(members: &[Member]) -> ClusterProgress {
    let host = |member: &Member| {
        let seen = member.seen();
        let lost = seen.lost.map(|since| since.elapsed());
        (member.connection.name.clone(), seen.snapshot.clone(), lost)
    };
    ClusterProgress { hosts: members.iter().map(host).collect(), systems: Vec::new() }
}

async fn wait_until_ready(
    members: &[Member],
    watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
) -> Result<(), Failure> {
    loop {
        if watch(&progress(members)) == KeepGoing::Stop {
            return Err(stopped_before());
        }
        if let Some(member) = members.iter().find(|member| member.is_over()) {
            let gone = member.seen().gone.clone();
            let message = format!("{} ended before the load began", member.connection.name);
            return Err(gone.unwrap_or_else(|| Failure::new(FailureKind::Failed, message)));
        }
        if members.iter().all(|member| member.phase() >= RunPhase::Ready) {
            return Ok(());
        }
        tokio::time::sleep(WATCH_EVERY).await;
    }
}

/// Lets all begin at one moment, each by its own clock.
async fn begin(members: &mut [Member]) -> Result<(), Failure> {
    let slowest = members.iter().map(|member| member.clock.uncertainty_ns).max().unwrap_or(0);
    let lead =
        BEGIN_AFTER + Duration::from_nanos(slowest.saturating_mul(20)).min(Duration::from_secs(5));
    let moment = monotonic_ns() + lead.as_nanos() as u64;
    let told = members.iter_mut().map(|member| {
        let at = member.clock.to_worker(moment);
        member.connection.begin(member.run, at)
    });
    join_all(told).await.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(())
}

async fn wait_until_over(
    members: &mut [Member],
    watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
) -> bool {
    let mut stopped = false;
    while !members.iter().all(Member::is_over) {
        if watch(&progress(members)) == KeepGoing::Stop && !stopped {
            stopped = true;
            let stop = members.iter_mut().map(|member| member.connection.stop(member.run));
            // One that does not hear of it is cut off.
            let _ = tokio::time::timeout(GONE_AFTER_STOP, join_all(stop)).await;
        }
        if stopped {
            members.iter().for_each(Member::give_up_if_silent);
        }
        tokio::time::sleep(WATCH_EVERY).await;
    }
    watch(&progress(members)) == KeepGoing::Stop || stopped
}

/// Compares the clocks again and fetches what each host measured. Whether before or now, from the moment on at which
/// everybody was told to stop a record has a few seconds to come.
async fn fetch_all(
    members: &mut [Member],
    stopped: bool,
    watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
) -> Vec<HostOutcome> {
    let told = progress(members);
    let hurry = Notify::new();
    let mut since = stopped.then(Instant::now);
    let mut fetched = std::pin::pin!(join_all(members.iter_mut().map(|one| fetch(one, &hurry))));
    loop {
        if let Ok(outcomes) = tokio::time::timeout(WATCH_EVERY, &mut fetched).await {
            return outcomes;
        }
        if watch(&told) == KeepGoing::Stop {
            since.get_or_insert_with(Instant::now);
        }
        if since.is_some_and(|since| since.elapsed() > FETCH_AFTER_STOP) {
            hurry.notify_waiters();
        }
    }
}

/// Fetches a record. A cut of the network in that moment is survived: the worker keeps the record until it is released.
async fn collect(connection: &mut Connection, run: u64) -> Result<Fetched, Failure> {
    let began = Instant::now();
    loop {
        match connection.collect(run).await {
            Err(failure)
                if failure.key.as_deref() == Some(NO_ANSWER) && began.elapsed() < GONE_AFTER =>
            {
                tokio::time::sleep(TRY_EVERY).await;
            }
            fetched => return fetched,
        }
    }
}

/// The same of one host; until `hurry` rings.
async fn fetch(member: &mut Member, hurry: &Notify) -> HostOutcome {
    let Member { connection, run, clock, seen } = member;
    let gone = seen.lock().unwrap_or_else(PoisonError::into_inner).gone.clone();
    let name = connection.name.clone();
    let (fetched, later): (Result<Fetched, Failure>, _) = match gone {
        Some(failure) => (Err(failure), None),
        None => {
            let collect = async {
                let fetched = collect(connection, *run).await;
                let later =
                    if fetched.is_ok() { connection.compare_clocks().await.ok() } else { None };
                (fetched, later)
            };
            tokio::select! {
                done = collect => done,
                () = hurry.notified() => {
                    let message = format!("{name} did not send its record in time after the run was stopped");
                    (Err(Failure::new(FailureKind::Failed, message)), None)
                }
            }
        }
    };
    let clock = later.map_or(*clock, |later| clock.and(later));
    HostOutcome {
        name: connection.name.clone(),
        machine: connection.machine.clone(),
        clock,
        fetched,
    }
}

/// Why a run that ended before it began did.
async fn first_refusal(members: &mut [Member]) -> Option<Failure> {
    for member in members.iter_mut() {
        if member.phase() == RunPhase::Ended
            && let Err(failure) = member.connection.collect(member.run).await
        {
            return Some(failure);
        }
    }
    None
}

async fn release(members: &mut [Member]) {
    join_all(members.iter_mut().map(|member| member.connection.release(member.run))).await;
}
