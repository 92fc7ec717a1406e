//! The machines that a controller samples while a run goes on: the hosts that carry load, and others that are only watched,
//! such as the servers of the targets (S4-5).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ssdyno_figures::ProbedSystem;
use ssdyno_prober::{SystemSample, SystemSeries};
use ssdyno_session::Failure;

use crate::asking::ask_all;
use crate::clocks::ClockComparison;
use crate::connection::Connection;
use crate::load::Hosts;
use crate::protocol::{GONE_AFTER, NO_RUN, TRY_EVERY};
use crate::scraped::{ProberAddress, Scraped};

/// A machine that is sampled.
pub(crate) struct Watched {
    connection: Connection,
    probe: u64,
    clock: ClockComparison,
    is_worker: bool,
    latest: Arc<Mutex<Option<SystemSample>>>,
}

/// Lets the machines of `workers` be sampled, and the probers of `hosts`, which are connected to for it; metrics of
/// programs are read from now on.
pub(crate) async fn watch_systems(
    hosts: &Hosts,
    workers: impl Iterator<Item = (Connection, ClockComparison)>,
) -> Result<(Vec<Watched>, Vec<Scraped>), Failure> {
    let Some(every) = hosts.probe_every else { return Ok((Vec::new(), Vec::new())) };
    let (mut machines, mut sources) = (Vec::new(), Vec::new());
    for prober in &hosts.probers {
        // Machines and programs are separated first, because connecting to machines needs the
        // runtime and may fail before any probe has started.
        match prober {
            ProberAddress::Machine(address) => machines.push(address),
            ProberAddress::Metrics(source) => sources.push(source),
        }
    }
    let open = |address| async move {
        let Hosts { remote, identity, version, .. } = hosts;
        let mut connection =
            Connection::open(address, remote, identity.as_deref(), version).await?;
        let clock = connection.compare_clocks().await?;
        Ok::<_, Failure>((connection, clock))
    };
    // All probers are reached before the first probe starts. If one of them cannot be reached, no
    // machine keeps a probe that would never end.
    let probers = ask_all(machines.into_iter().map(open)).await;
    let probers = probers.into_iter().collect::<Result<Vec<_>, _>>()?;
    let all = workers.map(|one| (one, true)).chain(probers.into_iter().map(|one| (one, false)));
    let start = |((mut connection, clock), is_worker): ((Connection, _), bool)| async move {
        let probe = connection.start_probe(every).await?;
        Ok::<_, Failure>(Watched { connection, probe, clock, is_worker, latest: Arc::default() })
    };
    let (mut watched, mut failure) = (Vec::new(), None);
    // Failures are collected and not returned at once: the probes that did start must be
    // ended, because each machine has only eight places.
    for started in ask_all(all.map(start)).await {
        match started {
            Ok(one) => watched.push(one),
            Err(refused) => failure = failure.or(Some(refused)),
        }
    }
    let scraped = match failure {
        None => {
            let start = |source| Scraped::start(source, every);
            let scraped = ask_all(sources.into_iter().map(start)).await;
            scraped.into_iter().collect::<Result<Vec<_>, _>>()
        }
        Some(refused) => Err(refused),
    };
    match scraped {
        Ok(scraped) => {
            watched.iter().for_each(Watched::follow);
            Ok((watched, scraped))
        }
        Err(failure) => {
            ask_all(watched.into_iter().map(Watched::end)).await;
            Err(failure)
        }
    }
}

impl Watched {
    /// Follows its samples in the background; it connects again after a cut.
    fn follow(&self) {
        let (mut connection, probe) = (self.connection.clone(), self.probe);
        // The task holds a weak reference. When the run drops its `Watched`, the upgrade
        // fails, and the task ends without a message.
        let latest = Arc::downgrade(&self.latest);
        tokio::spawn(async move {
            let mut heard = Instant::now();
            while heard.elapsed() < GONE_AFTER {
                match connection.watch_probe(probe).await {
                    Ok(mut stream) => {
                        while let Ok(Some(told)) = stream.message().await {
                            heard = Instant::now();
                            let Some(latest) = latest.upgrade() else { return };
                            let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
                            *latest = Some(told.sample);
                        }
                    }
                    Err(failure) if failure.key.as_deref() == Some(NO_RUN) => return,
                    Err(_) => {}
                }
                if latest.strong_count() == 0 {
                    return;
                }
                tokio::time::sleep(TRY_EVERY).await;
            }
        });
    }

    /// Its name and its newest sample.
    pub(crate) fn latest(&self) -> (String, Option<SystemSample>) {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        (self.connection.name.clone(), latest.clone())
    }

    /// Ends the probe. Times count from `origin_ns` of the controller's monotonic clock; from the first sample where
    /// that is `None`.
    pub(crate) async fn end(mut self) -> EndedProbe {
        // The probe ends before the clocks are compared, so that the
        // comparison does not delay its last sample.
        let ended = self.connection.end_probe(self.probe).await;
        let clock = match self.connection.compare_clocks().await {
            Ok(later) if ended.is_ok() => self.clock.and(later),
            _ => self.clock,
        };
        let (name, machine) = (self.connection.name.clone(), self.connection.machine.clone());
        EndedProbe { name, machine, is_worker: self.is_worker, clock, ended }
    }
}

/// The samples of a machine.
pub(crate) struct EndedProbe {
    name: String,
    machine: String,
    is_worker: bool,
    clock: ClockComparison,
    ended: Result<SystemSeries, Failure>,
}

impl EndedProbe {
    /// As the result has it; times count from `origin_ns` of the controller's monotonic clock, or from the first sample.
    pub(crate) fn system(self, origin_ns: Option<i128>) -> ProbedSystem {
        let lost = self.ended.as_ref().err().map(|failure| failure.message.clone());
        // Samples have the monotonic time of their own machine. The measured offset moves them to the clock
        // of the controller, where the window of the run is.
        let system = self.ended.unwrap_or_default();
        let first = self.clock.to_controller(system.start_monotonic_ns);
        let origin = origin_ns.unwrap_or(first);
        let end = |ns: u64| (self.clock.to_controller(ns) - origin) as f64 / 1e9;
        ProbedSystem {
            name: self.name,
            machine: self.machine,
            is_worker: self.is_worker,
            lost,
            clock_offset_ns: self.clock.unix_offset_ns(),
            clock_uncertainty_ns: self.clock.uncertainty_ns,
            ends_seconds: system.points.iter().map(|point| end(point.mean.monotonic_ns)).collect(),
            system,
        }
    }
}
