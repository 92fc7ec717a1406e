//! A host with its run, as the controller follows it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ssdyno_session::{Failure, RunPhase, RunSnapshot};
use tokio::sync::Notify;

use crate::clocks::ClockComparison;
use crate::connection::Connection;
use crate::join::{HostIdentity, HostOutcome};
use crate::protocol::{GONE_AFTER, HostRecord, NO_ANSWER, NO_RUN, TRY_EVERY};
use crate::rows::fetch_rows;

/// The interval of each worker's progress reports, if there are few workers.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// The number of workers that may report this often: a report takes a fifth of a millisecond of the controller's time,
/// so 1000 of them would exceed its thread.
const FEW: u32 = 64;

/// The interval of the progress reports of each of `members` workers. A new phase is reported at
/// once.
pub(crate) fn tell_every(members: usize) -> Duration {
    // The controller needs 0.2 ms for each report. Up to 64 workers report ten times a second; for more workers the
    // interval grows in steps, so that the load of the one thread stays constant.
    TELL_EVERY * (members as u32).div_ceil(FEW).max(1)
}

/// The same after a stop request to all hosts: nothing waits longer than this for a host that may never have received
/// it.
pub(crate) const GONE_AFTER_STOP: Duration = Duration::from_secs(1);

/// The known state of a host during its run.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) snapshot: RunSnapshot,
    /// When it told something last.
    heard: Instant,
    /// Since when it is cut off.
    pub(crate) lost: Option<Instant>,
    /// Why it is given up, or why its worker has no such run.
    pub(crate) gone: Option<Failure>,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { snapshot: RunSnapshot::default(), heard: Instant::now(), lost: None, gone: None }
    }
}

/// A host with its run.
pub(crate) struct Member {
    pub(crate) connection: Connection,
    pub(crate) run: u64,
    pub(crate) clock: ClockComparison,
    pub(crate) seed: u64,
    /// Where its rows go, a directory and a place below it; `None` where they are not kept.
    pub(crate) rows_to: Option<(PathBuf, String)>,
    pub(crate) seen: Arc<Mutex<Seen>>,
    /// Whether its worker answered that it stops the run.
    pub(crate) stop_heard: bool,
}

impl Seen {
    /// Gives up the host `name` if it is silent, whether its connection was found dead yet or not.
    fn give_up_if_silent(&mut self, name: &str, longer_than: Duration) {
        // A host that has ended sends no more snapshots. Its silence is no cut, and its record waits for the controller.
        if self.snapshot.phase == RunPhase::Ended || self.heard.elapsed() <= longer_than {
            return;
        }
        let message = format!("{name} was cut off when the run was stopped");
        // The first reason is kept: the stream may have recorded a better one,
        // such as a worker that was restarted.
        self.gone.get_or_insert_with(|| Failure::failed(message));
    }
}

impl Member {
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn phase(&self) -> RunPhase {
        self.seen().snapshot.phase
    }

    /// Gives it up if it is silent, unless it has ended.
    pub(crate) fn give_up_if_silent(&self, longer_than: Duration) {
        self.seen().give_up_if_silent(&self.connection.name, longer_than);
    }

    /// Tells its worker to stop the run, unless the worker has answered before or the run is over.
    pub(crate) async fn stop(&mut self) {
        if self.stop_heard || self.is_over() {
            return;
        }
        let stop = self.connection.stop(self.run);
        // The wait has a limit, so a host without a network does not delay the end of the others.
        let answered = tokio::time::timeout(GONE_AFTER_STOP, stop).await;
        self.stop_heard = matches!(answered, Ok(Ok(())));
    }

    pub(crate) fn is_over(&self) -> bool {
        let seen = self.seen();
        seen.gone.is_some() || seen.snapshot.phase == RunPhase::Ended
    }

    /// Follows the run of a member in the background; it connects again after a cut.
    pub(crate) fn follow(&self, every: Duration) {
        let (mut connection, run, seen) =
            (self.connection.clone(), self.run, Arc::clone(&self.seen));
        tokio::spawn(async move {
            let state = || seen.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                match connection.watch(run, every).await {
                    Ok(mut stream) => {
                        while let Ok(Some(told)) = stream.message().await {
                            // The lock is taken for each message and released before the next `await`. The front end
                            // reads the same state 40 times a second and must never wait for a network.
                            let mut seen = state();
                            (seen.snapshot, seen.lost) = (told.snapshot, None);
                            seen.heard = Instant::now();
                            if seen.snapshot.phase == RunPhase::Ended {
                                return;
                            }
                        }
                    }
                    // The worker answers, and it has no such run: it was restarted, or its lease ended. More attempts
                    // would not bring the run back, so the host is given up at once.
                    Err(failure) if failure.key.as_deref() == Some(NO_RUN) => {
                        state().gone = Some(failure);
                        return;
                    }
                    Err(_) => {}
                }
                // `get_or_insert_with` keeps the time of the first failure. Each failed attempt would otherwise
                // extend the limit, and a dead host would never be given up.
                let since = *state().lost.get_or_insert_with(Instant::now);
                if since.elapsed() > GONE_AFTER {
                    let message = format!(
                        "{} was cut off and did not come back within {} s",
                        connection.name,
                        GONE_AFTER.as_secs()
                    );
                    state().gone = Some(Failure::failed(message));
                    return;
                }
                // Without a pause a worker that refuses connections would be
                // asked as fast as one core can ask.
                tokio::time::sleep(TRY_EVERY).await;
            }
        });
    }
}

/// Fetches a record. A cut of the network in that moment is survived: the worker keeps the record until it is released.
async fn collect(connection: &mut Connection, run: u64) -> Result<HostRecord, Failure> {
    let began = Instant::now();
    loop {
        match connection.collect(run).await {
            // Only a missing answer is worth a second attempt. A failure that the worker itself reported is the
            // result of the run on that host, and asking again does not change it.
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
pub(crate) async fn fetch(member: &mut Member, hurry: &Notify) -> HostOutcome {
    let Member { connection, run, clock, seed, rows_to, seen, .. } = member;
    let gone = seen.lock().unwrap_or_else(PoisonError::into_inner).gone.clone();
    let name = connection.name.clone();
    let fetched = match gone {
        Some(failure) => Err(failure),
        None => tokio::select! {
            done = collect(connection, *run) => done,
            () = hurry.notified() => {
                let message = format!("{name} did not send its record in time after the run was stopped");
                Err(Failure::failed(message))
            }
        },
    };
    let mut rows = None;
    // Rows are fetched only after the record. The figures do not depend on rows, so a cut or an interrupt
    // during this long transfer costs the rows and nothing else.
    if let (Ok(_), Some((directory, place))) = (&fetched, rows_to) {
        let late = || {
            let message = format!("{name} did not send its rows in time after the run was stopped");
            Failure::failed(message)
        };
        let path = directory.join(&*place);
        rows = Some(tokio::select! {
            done = fetch_rows(connection, *run, &path) => done.map(|()| place.clone()),
            () = hurry.notified() => Err(late()),
        });
    }
    let (name, machine) = (connection.name.clone(), connection.machine.clone());
    HostOutcome { host: HostIdentity { name, machine, seed: *seed, clock: *clock }, rows, fetched }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that ended before the stop has its record; only a host in the middle of its run can be cut off.
    #[test]
    fn a_host_that_has_ended_is_not_given_up() {
        let silent = |phase| {
            let heard = Instant::now().checked_sub(Duration::from_secs(5)).unwrap();
            let snapshot = RunSnapshot { phase, ..RunSnapshot::default() };
            let mut seen = Seen { snapshot, heard, ..Seen::default() };
            seen.give_up_if_silent("a", GONE_AFTER_STOP);
            seen.gone
        };
        assert_eq!(silent(RunPhase::Ended), None);
        assert!(silent(RunPhase::Loaded).is_some_and(|why| why.message.contains("a was cut off")));
    }
}
