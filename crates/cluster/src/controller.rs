//! The controller of one run on several hosts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use ssdyno_block::Time;
use ssdyno_figures::{Keep, KeepGoing};
use ssdyno_prober::monotonic_ns;
use ssdyno_session::{Failure, FailureKind, Measured, RunPhase, RunSpec};
use tokio::sync::Notify;

use crate::asking::ask_all;
use crate::comparing::compare_all;
use crate::connection::Connection;
use crate::join::{HostOutcome, Meanwhile, join};
use crate::load::{ClusterLoad, HostLoad, Hosts};
use crate::member::{GONE_AFTER_STOP, Member, fetch, tell_every};
use crate::progress::ClusterProgress;
use crate::protocol::TRY_EVERY;
use crate::rows::places;
use crate::scraped::{ProberAddress, Scraped};
use crate::watched::{Watched, watch_systems};

/// The interval of the calls of the watcher.
const WATCH_EVERY: Duration = Duration::from_millis(25);

/// From the command to begin to the first request at least: a few answers of a slow host.
const BEGIN_AFTER: Duration = Duration::from_millis(60);

/// The time limit of records after all hosts were told to stop.
const FETCH_AFTER_STOP: Duration = Duration::from_secs(5);

/// Runs `spec` on all `hosts` at once, each on a target of its own by that name and with a seed of its own, and joins
/// what they measured. `watch` is called some 40 times a second and may stop all hosts: what was measured is kept.
///
/// # Errors
/// A host cannot be reached, has another version, or refuses the spec: nothing is loaded then. Or the hosts did not run
/// at the same time. A later error is in [`Measured::failure`], with the measured figures.
pub fn run_on_hosts(
    hosts: &Hosts,
    spec: &RunSpec,
    watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
) -> Result<Measured, Failure> {
    let load = ClusterLoad::of(spec, hosts.addresses.len());
    ReachedHosts::open(hosts, watch)?.run(&load, watch)
}

/// Hosts that are connected to, for one run or several, one after the other.
#[derive(Debug)]
pub struct ReachedHosts {
    hosts: Hosts,
    /// In the order of the addresses.
    connections: Vec<Connection>,
    /// Carries the connections. It only moves while a run goes on: nobody waits for a host between runs.
    runtime: tokio::runtime::Runtime,
}

impl ReachedHosts {
    /// Connects to all `hosts` and compares versions. `watch` may stop that.
    ///
    /// # Errors
    /// A host cannot be reached, or has another version; or one is named twice.
    pub fn open(
        hosts: &Hosts,
        watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
    ) -> Result<ReachedHosts, Failure> {
        check(hosts)?;
        // One thread is enough: 32 workers that report ten times a second take 1.9 % of a core (docs/many_hosts.md).
        // A second thread would compete with workers on the same machine.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Failure::failed(format!("cannot start the controller: {error}")))?;
        let connections = runtime.block_on(unless_stopped(connect(hosts), watch))?;
        Ok(ReachedHosts { hosts: hosts.clone(), connections, runtime })
    }

    /// Carries out `load`, all hosts at once, and joins what they measured. `watch` is called some 40 times a second
    /// and may stop all hosts: what was measured is kept.
    ///
    /// # Errors
    /// A host is not reached any more, or refuses its spec: nothing is loaded then. Or the hosts did not run at the
    /// same time. A later error is in [`Measured::failure`], with the measured figures.
    pub fn run(
        &mut self,
        load: &ClusterLoad,
        watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
    ) -> Result<Measured, Failure> {
        let mut clients = Vec::with_capacity(load.hosts.len());
        let name_of = |one: &HostLoad| {
            let connection = self.connections.get(one.host).map(|one| one.name.clone());
            one.name.clone().or(connection).unwrap_or_default()
        };
        let names: Vec<String> = load.hosts.iter().map(name_of).collect();
        let places = places(names.iter().map(String::as_str));
        for (HostLoad { host, name, spec }, place) in load.hosts.iter().zip(places) {
            let Some(connection) = self.connections.get(*host) else {
                let message = format!(
                    "there is no host {host}; the number of hosts is {}",
                    self.connections.len()
                );
                return Err(Failure::failed(message));
            };
            let rows_to = (self.hosts.rows_in.as_ref()).filter(|_| load.common.keep == Keep::All);
            let connection = connection.called(name.as_deref());
            let rows_to = rows_to.map(|directory| (directory.clone(), place));
            // Each client asks for an interval above zero. Without one the series of a host is a single point, and
            // the join could not cut it to the window that all hosts share.
            let spec = RunSpec {
                // Rows without a directory would be kept and fetched for nothing, so `Keep::Summary` is the rule. A
                // worker writes its rows to its own disk, which the target may share.
                keep: if rows_to.is_some() { Keep::All } else { Keep::Summary },
                interval: spec.interval.filter(|interval| interval.0 > Time::ZERO),
                ..spec.clone()
            };
            clients.push(Client { connection, spec, rows_to });
        }
        self.runtime.block_on(carry_out(&self.hosts, clients, &load.common, watch))
    }
}

/// A host, and its load.
struct Client {
    connection: Connection,
    spec: RunSpec,
    /// A directory, and a place below it.
    rows_to: Option<(PathBuf, String)>,
}

pub(crate) fn check(hosts: &Hosts) -> Result<(), Failure> {
    let machines = hosts.addresses.iter().cloned().map(ProberAddress::Machine);
    let all: Vec<ProberAddress> = machines.chain(hosts.probers.iter().cloned()).collect();
    // The search is quadratic: 1000 hosts need half a million comparisons of short texts. That is less work
    // than connecting to them, and `HostAddress` needs no hash.
    let twice = all.iter().enumerate().find(|(at, host)| all[..*at].contains(host));
    match (&hosts.addresses[..], twice) {
        ([], _) => Err(Failure::usage("no host is given")),
        (_, Some((_, host))) => Err(Failure::usage(format!("{host} is named twice"))
            .with_help("a worker has one run at a time, and its machine is sampled with it")),
        _ => Ok(()),
    }
}

async fn carry_out(
    hosts: &Hosts,
    clients: Vec<Client>,
    common: &RunSpec,
    watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
) -> Result<Measured, Failure> {
    // An interrupt inside `assemble` leaves prepared runs to their lease of 45 s. From here on every exit must
    // release the members; otherwise each worker stays busy for that time after every failed start.
    let mut members = unless_stopped(assemble(clients), watch).await?;
    let workers = members.iter().map(|member| (member.connection.clone(), member.clock));
    let watched = unless_stopped(watch_systems(hosts, workers), watch).await;
    let (systems, scraped) = match watched {
        Ok(watched) => watched,
        Err(failure) => {
            release(&mut members).await;
            return Err(failure);
        }
    };
    // Following starts before the hosts are ready: a worker may fail in its preparation, and only
    // the stream of snapshots tells the controller so.
    let every = tell_every(members.len());
    members.iter().for_each(|member| member.follow(every));
    let watch = &mut |progress: &ClusterProgress| {
        let systems = systems.iter().map(Watched::latest).collect();
        let metrics = scraped.iter().map(Scraped::latest).collect();
        watch(&ClusterProgress { systems, metrics, ..progress.clone() })
    };
    let begun = match wait_until_ready(&members, watch).await {
        Ok(()) => begin(&mut members).await,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = begun {
        // A run that could not start gives its reason in its result. That reason replaces the one
        // found here, which often says only that a host ended.
        let why = first_refusal(&mut members).await.unwrap_or(failure);
        // An abandoned probe ends after 45 s, and a machine takes eight probes. A run that is tried again and again
        // would soon find no free place, so the probes are ended here.
        ask_all(systems.into_iter().map(Watched::end)).await;
        release(&mut members).await;
        return Err(why);
    }
    // The order matters: the clocks are compared again before the probes and the runs are released, because drift
    // during the run must enter the bounds of the recordings and of the samples.
    let stopped = wait_until_over(&mut members, watch).await;
    let mut outcomes = fetch_all(&mut members, stopped, watch).await;
    compare_again(&mut members, &mut outcomes).await;
    let probed = ask_all(systems.into_iter().map(Watched::end)).await;
    release(&mut members).await;
    join(outcomes, Meanwhile { probed, scraped }, common)
}

/// Connects to all hosts; none if one cannot be reached.
async fn connect(hosts: &Hosts) -> Result<Vec<Connection>, Failure> {
    let Hosts { addresses, remote, identity, version, .. } = hosts;
    let open = |host| Connection::open(host, remote, identity.as_deref(), version);
    ask_all(addresses.iter().map(open)).await.into_iter().collect()
}

/// Compares clocks and lets all prepare; none if one refuses.
async fn assemble(mut clients: Vec<Client>) -> Result<Vec<Member>, Failure> {
    let clocks = compare_all(clients.iter_mut().map(|one| &mut one.connection)).await;
    let clocks = clocks.into_iter().collect::<Result<Vec<_>, _>>()?;
    let controller = format!("a controller (process {})", std::process::id());
    let prepare = |Client { connection, spec, .. }: &mut Client| {
        let (mut connection, spec) = (connection.clone(), spec.clone());
        let controller = controller.clone();
        async move { connection.prepare(&spec, &controller).await }
    };
    let runs = ask_all(clients.iter_mut().map(prepare)).await;
    // If one worker refuses, no host may begin: a result of some of the hosts would look like a result of the whole
    // load. The others are released, so that the next run finds them free.
    if let Some(failure) = runs.iter().find_map(|run| run.as_ref().err()).cloned() {
        for (client, run) in clients.iter_mut().zip(runs) {
            if let Ok(run) = run {
                client.connection.release(run).await;
            }
        }
        return Err(failure);
    }
    let member = |((client, clock), run): ((Client, _), _)| {
        let Client { connection, spec, rows_to } = client;
        Member {
            connection,
            run,
            clock,
            seed: spec.seed,
            rows_to,
            seen: Arc::default(),
            stop_heard: false,
        }
    };
    Ok(clients.into_iter().zip(clocks).zip(runs.into_iter().flatten()).map(member).collect())
}

/// The result of `work`, unless the watcher stops it first. A worker that was told to prepare, and is not heard of
/// again, forgets it.
async fn unless_stopped<T>(
    work: impl Future<Output = Result<T, Failure>>,
    watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
) -> Result<T, Failure> {
    let mut work = std::pin::pin!(work);
    loop {
        // `watch` runs between two polls of the work, never during one. The front end may therefore block for some
        // milliseconds without a second thread and without a lock.
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

fn progress(members: &[Member]) -> ClusterProgress {
    let host = |member: &Member| {
        let seen = member.seen();
        let lost = seen.lost.map(|since| since.elapsed());
        (member.connection.name.clone(), seen.snapshot.clone(), lost)
    };
    ClusterProgress { hosts: members.iter().map(host).collect(), ..ClusterProgress::default() }
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
            // The failure that the stream recorded comes first. The general message is right
            // only for a worker that ended without one.
            let gone = member.seen().gone.clone();
            let message = format!("{} ended before the load began", member.connection.name);
            return Err(gone.unwrap_or_else(|| Failure::failed(message)));
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
    // The message must arrive before the moment that it names. The bound of the clock is half a round trip, so 20
    // times the bound is ten round trips; 5 s limit a host with a very slow link.
    let lead =
        BEGIN_AFTER + Duration::from_nanos(slowest.saturating_mul(20)).min(Duration::from_secs(5));
    // One thread sends all messages, one after the other. A millisecond for each host keeps the last message
    // before the moment, even if a worker needs a new stream.
    let lead = lead + Duration::from_millis(members.len() as u64);
    let moment = monotonic_ns() + lead.as_nanos() as u64;
    let told = members.iter_mut().map(|member| {
        let at = member.clock.to_worker(moment);
        member.connection.begin(member.run, at)
    });
    // `join_all`, not `ask_all`: all messages must leave before the common moment. A limit of 64 at a
    // time would delay the last hosts by whole round trips.
    join_all(told).await.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(())
}

async fn wait_until_over(
    members: &mut [Member],
    watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
) -> bool {
    let mut stopped = false;
    let mut told: Option<Instant> = None;
    while !members.iter().all(Member::is_over) {
        stopped |= watch(&progress(members)) == KeepGoing::Stop;
        if stopped {
            // A host that did not reply is told again. Its connection may be back before the host counts as cut off,
            // and its run would otherwise go on to its end.
            if told.is_none_or(|told| told.elapsed() >= TRY_EVERY) {
                join_all(members.iter_mut().map(Member::stop)).await;
                told = Some(Instant::now());
            }
            // With more than 64 workers each worker reports less often. A limit of one second alone
            // would give up healthy hosts between two reports.
            let silent = GONE_AFTER_STOP.max(tell_every(members.len()) * 2);
            members.iter().for_each(|member| member.give_up_if_silent(silent));
        }
        tokio::time::sleep(WATCH_EVERY).await;
    }
    // The front end is asked once more. An interrupt during the last sleep would otherwise be lost, and
    // fetching the records would then have no time limit.
    watch(&progress(members)) == KeepGoing::Stop || stopped
}

/// Compares the clocks of hosts whose records came again: drift during the run is in their bounds then.
async fn compare_again(members: &mut [Member], outcomes: &mut [HostOutcome]) {
    let present = members.iter_mut().zip(outcomes).filter(|(_, outcome)| outcome.fetched.is_ok());
    let (connections, outcomes): (Vec<_>, Vec<_>) =
        present.map(|(member, outcome)| (&mut member.connection, outcome)).unzip();
    // A clock that cannot be compared again keeps its first bound. The recording is there, and a
    // wider bound is not a reason to drop what was measured.
    let compared = compare_all(connections.into_iter()).await;
    for (outcome, later) in outcomes.into_iter().zip(compared) {
        if let Ok(later) = later {
            outcome.host.clock = outcome.host.clock.and(later);
        }
    }
}

/// Fetches what each host measured. Whether before or now, from the moment on at which
/// everybody was told to stop a record has a few seconds to come.
async fn fetch_all(
    members: &mut [Member],
    stopped: bool,
    watch: &mut dyn FnMut(&ClusterProgress) -> KeepGoing,
) -> Vec<HostOutcome> {
    let told = progress(members);
    let hurry = Notify::new();
    // `join_all` without a limit: a worker on a slow link must not delay the records of the hosts behind it.
    // After a stop all of them share the same five seconds.
    let mut since = stopped.then(Instant::now);
    let mut fetched = std::pin::pin!(join_all(members.iter_mut().map(|one| fetch(one, &hurry))));
    loop {
        if let Ok(outcomes) = tokio::time::timeout(WATCH_EVERY, &mut fetched).await {
            return outcomes;
        }
        if watch(&told) == KeepGoing::Stop {
            since.get_or_insert_with(Instant::now);
        }
        // `notify_waiters` wakes only the tasks that wait now. It is repeated on each pass, so a host that has
        // just moved from its record to its rows receives it, too.
        if since.is_some_and(|since| since.elapsed() > FETCH_AFTER_STOP) {
            hurry.notify_waiters();
        }
    }
}

/// Why a run that ended before it began did.
async fn first_refusal(members: &mut [Member]) -> Option<Failure> {
    for member in members.iter_mut() {
        // `collect` waits for the end of a run. It is called only for hosts that have ended: a healthy host is still
        // waiting for its `begin`, and its record would never come.
        if member.phase() == RunPhase::Ended
            && let Err(failure) = member.connection.collect(member.run).await
        {
            return Some(failure);
        }
    }
    None
}

async fn release(members: &mut [Member]) {
    ask_all(members.iter_mut().map(|member| member.connection.release(member.run))).await;
}
