//! Samples of a machine for controllers, beside its runs or without any.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ssdyno_prober::{Prober, ProberOptions, SystemSample, SystemSeries};
use ssdyno_session::Failure;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::current_run::LEASE;
use crate::protocol::ProbeSample;

/// Probes at once at most: each costs a thread and half a millisecond a sample.
const PROBES_MAX: usize = 8;

/// Points of a series: 3 to 6 kB each in a result, of each machine.
const POINTS_MAX: usize = 240;

/// The probes of a machine, each for the controller that started it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probes(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    started: u64,
    probes: BTreeMap<u64, (Prober, Instant)>,
}

impl Probes {
    /// A panic elsewhere leaves it whole.
    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts one; gives its number.
    pub(crate) fn start(&self, every: Duration) -> Result<u64, Failure> {
        let mut running = self.running();
        // Every probe has its own thread. The limit keeps controllers that are started and killed in
        // a loop from taking the threads of the machine.
        if running.probes.len() >= PROBES_MAX {
            let message = format!("this machine has {PROBES_MAX} probes already");
            return Err(Failure::failed(message).with_help(
                "end a run that probes it, or wait until the probes of lost controllers end (45 s)",
            ));
        }
        let options =
            ProberOptions { interval: every, keep: POINTS_MAX, ..ProberOptions::default() };
        let prober = Prober::start(options);
        let prober = prober.map_err(|error| {
            Failure::usage(format!("cannot sample this machine: {error}"))
                .with_key("probe_interval")
        })?;
        running.started += 1;
        let number = running.started;
        running.probes.insert(number, (prober, Instant::now()));
        Ok(number)
    }

    /// The newest sample of probe `number`; `None` if there is no such probe.
    pub(crate) fn latest(&self, number: u64) -> Option<Option<SystemSample>> {
        let mut running = self.running();
        let (prober, heard) = running.probes.get_mut(&number)?;
        // Each question renews the lease. The stream of samples asks all the time, so a probe
        // ends only after its controller has been silent.
        *heard = Instant::now();
        Some(prober.latest())
    }

    /// The samples of probe `number`, of which the newest is looked for every `every`, until it ends or nobody receives
    /// them; `None` if there is no such probe.
    pub(crate) fn follow(
        &self,
        number: u64,
        every: Duration,
    ) -> Option<ReceiverStream<Result<ProbeSample, Status>>> {
        self.latest(number)?;
        // One sample at most waits for a slow controller.
        let (send, receive) = mpsc::channel(1);
        let probes = self.clone();
        tokio::spawn(async move {
            let mut told = 0;
            // Each look renews the lease. `send` fails only at the next sample, which may be an hour away, and until then
            // the probe of a lost controller would keep its place.
            while !send.is_closed()
                && let Some(latest) = probes.latest(number)
            {
                if let Some(sample) = latest.filter(|sample| sample.sequence > told) {
                    told = sample.sequence;
                    if send.send(Ok(ProbeSample { sample })).await.is_err() {
                        return;
                    }
                }
                tokio::time::sleep(every).await;
            }
        });
        Some(ReceiverStream::new(receive))
    }

    /// Ends probe `number` and gives what it sampled; `None` if there is no such probe.
    pub(crate) fn end(&self, number: u64) -> Option<SystemSeries> {
        let ended = self.running().probes.remove(&number);
        // The thread of the prober takes a last sample before it ends. The wait for it must not
        // hold the lock, which every other controller needs.
        ended.map(|(prober, _)| {
            let mut series = prober.stop();
            series.drop_idle();
            series
        })
    }

    /// Ends the probes that no controller has read for the duration of a run's lease.
    pub(crate) fn end_abandoned(&self) {
        let is_abandoned = |heard: &Instant| heard.elapsed() > LEASE;
        let mut running = self.running();
        // The probes leave the map under the lock and are dropped after it is released:
        // dropping a prober waits for its thread.
        let ended: Vec<_> =
            running.probes.extract_if(.., |_, (_, heard)| is_abandoned(heard)).collect();
        drop(running);
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A controller that was killed closes its stream, and its probe ends with the lease, however rare samples are.
    #[test]
    fn a_stream_that_nobody_reads_does_not_renew_the_lease() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let probes = Probes::default();
        let number = probes.start(Duration::from_secs(3600)).unwrap();
        let heard = || probes.running().probes[&number].1;
        let (look, pause) = (Duration::from_millis(5), Duration::from_millis(60));
        runtime.block_on(async {
            let stream = probes.follow(number, look).unwrap();
            let begun = heard();
            tokio::time::sleep(pause).await;
            let followed = heard();
            assert!(followed > begun, "a controller that reads keeps its probe");
            drop(stream);
            tokio::time::sleep(pause).await;
            let last = heard();
            tokio::time::sleep(pause).await;
            assert_eq!(heard(), last);
        });
    }
}
