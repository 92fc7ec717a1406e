//! The samples of the machine while a target is loaded (S4-18 … S4-20).
//!
//! A [`RunProbe`] samples in a thread of its own, on the clock of the run, so that samples and requests
//! lie on one timeline. The counters are read by `ssdyno-prober`; a sample costs some hundred microseconds of one
//! processor. Power comes from RAPL zones and hwmon sensors; a machine without them (most virtual ones) says `null`, never
//! a number.
//!
//! Not probed: other machines (many hosts come later), processes, temperatures.

mod disk;
mod snapshot;

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) use disk::of as disk_of;
pub use disk::{disk_name, disks};
use ssdyno_prober::{PowerSensors, Sources};

use snapshot::Snapshot;
pub use ssdyno_figures::probe::{CpuShares, Disk, Memory, Moved, Network, Sample, SensorPower};

/// The shortest default interval: ten samples per second.
const INTERVAL_LEAST: Duration = Duration::from_millis(100);

/// Without a requested interval, samples take this fraction of one processor's time.
const COST_SHARE: u32 = 1_000;

/// Most snapshots that are kept. Then every other one goes and the interval doubles, so that a run
/// of any length has some hundred, and costs less the longer it is.
const SNAPSHOTS_MOST: usize = 600;

/// Samples the machine at an interval until it is stopped.
#[derive(Debug)]
pub struct RunProbe {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Snapshot>>,
    /// The device under test.
    disk: Option<String>,
}

/// What a [`RunProbe`] saw.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Probed {
    /// One after the other without gaps.
    pub samples: Vec<Sample>,
    /// The device's transfers from the first to the last moment; `None` where it has no counters.
    pub moved: Option<Moved>,
}

impl RunProbe {
    /// Begins now, which is also where times count from. `disk` is the name of the device under
    /// test in the kernel, such as `nvme0n1` (see [`disk_name`]). Without an `interval` there is a
    /// sample ten times a second, or less often where that would take more than a thousandth of a
    /// processor.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(interval: Option<Duration>, disk: Option<String>) -> std::io::Result<RunProbe> {
        let began = Instant::now();
        let sensors = PowerSensors::find(&Sources::default());
        let disks: Vec<String> = disk.into_iter().collect();
        let first = Snapshot::take(Duration::ZERO, &disks, &sensors);
        let zero = Instant::now();
        // The first snapshot shows what a sample costs on this machine: some hundred
        // microseconds, more with many disks. The interval follows it, so that probing takes a
        // thousandth of a processor at most.
        let interval =
            interval.unwrap_or_else(|| ((zero - began) * COST_SHARE).max(INTERVAL_LEAST));
        let (stop, stopped) = channel::<()>();
        let name = disks.first().cloned();
        let take = move || Snapshot::take(zero.elapsed(), &disks, &sensors);
        let watch = move || {
            // The measured process comes first; if that is refused, samples are still taken.
            let _ = rustix::process::nice(19);
            let mut snapshots = Snapshots { kept: vec![first], interval };
            let mut next = zero + interval;
            loop {
                let wait = next.saturating_duration_since(Instant::now());
                let ended = stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
                snapshots.add(take());
                if ended {
                    return snapshots.kept;
                }
                // A machine that was too busy to take some in time leaves them out.
                next = (next + snapshots.interval).max(Instant::now());
            }
        };
        let thread = std::thread::Builder::new().name("probes".to_owned()).spawn(watch)?;
        Ok(RunProbe { stop, thread, disk: name })
    }

    /// Takes a last sample, which may be shorter, and gives all of them.
    pub fn finish(self) -> Probed {
        drop(self.stop);
        // A thread that panicked takes its samples with it; the run has its own figures.
        let snapshots = self.thread.join().unwrap_or_default();
        let moved = || {
            let (first, last) = snapshots.first().zip(snapshots.last())?;
            first.moved_until(last, self.disk.as_deref()?)
        };
        let sample = |pair: &[Snapshot]| {
            let mut sample = pair[0].until(&pair[1]);
            // The only one that is looked at.
            sample.disk = std::mem::take(&mut sample.disks).into_values().next();
            sample
        };
        Probed { moved: moved(), samples: snapshots.windows(2).map(sample).collect() }
    }
}

/// A bounded number of snapshots over any time.
struct Snapshots {
    kept: Vec<Snapshot>,
    interval: Duration,
}

impl Snapshots {
    fn add(&mut self, snapshot: Snapshot) {
        if self.kept.len() >= SNAPSHOTS_MOST {
            let mut even = false;
            self.kept.retain(|_| {
                even = !even;
                even
            });
            // Every other snapshot goes and the interval doubles. Counters only grow, so the
            // difference of two neighbours is still exact over the longer time.
            self.interval *= 2;
        }
        self.kept.push(snapshot);
    }
}

/// One probe, sampled by whoever owns it: what `ssdyno probe` uses.
#[derive(Debug)]
pub struct Probe {
    zero: Instant,
    disks: Vec<String>,
    sensors: PowerSensors,
    last: Snapshot,
}

impl Probe {
    /// Begins now, with the block devices `disks`, as the kernel names them; times count from `zero`.
    pub fn new(zero: Instant, disks: Vec<String>) -> Probe {
        let sensors = PowerSensors::find(&Sources::default());
        let last = Snapshot::take(zero.elapsed(), &disks, &sensors);
        Probe { zero, disks, sensors, last }
    }

    /// The activity since the last sample, or since the beginning.
    pub fn sample(&mut self) -> Sample {
        let now = Snapshot::take(self.zero.elapsed(), &self.disks, &self.sensors);
        let sample = self.last.until(&now);
        self.last = now;
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_probed_and_the_samples_join() {
        let prober = RunProbe::start(Some(Duration::from_millis(20)), None).unwrap();
        std::thread::sleep(Duration::from_millis(70));
        let Probed { samples, moved } = prober.finish();
        assert!(samples.len() >= 2 && moved.is_none(), "{samples:?}");
        assert_eq!(samples[0].start_seconds, 0.0);
        for pair in samples.windows(2) {
            let end = pair[0].start_seconds + pair[0].length_seconds;
            assert!((end - pair[1].start_seconds).abs() < 1e-6, "{pair:?}");
        }
        let last = &samples[samples.len() - 1];
        assert!(last.memory.is_some_and(|memory| memory.free_bytes > 0));
        assert!(last.context_switches_per_second.is_some());
        assert_eq!(last.disk, None);
    }

    #[test]
    fn any_length_of_run_has_a_bounded_number_of_samples_over_all_of_it() {
        let mut snapshots = Snapshots { kept: Vec::new(), interval: Duration::from_millis(100) };
        let mut at = Duration::ZERO;
        let mut taken = 0u32;
        // A day.
        while at < Duration::from_secs(86_400) {
            snapshots.add(Snapshot { at, ..Snapshot::default() });
            at += snapshots.interval;
            taken += 1;
        }
        let kept = &snapshots.kept;
        assert!((SNAPSHOTS_MOST / 2..=SNAPSHOTS_MOST).contains(&kept.len()), "{}", kept.len());
        assert!(taken < 5_000, "{taken} samples in a day");
        assert_eq!(kept[0].at, Duration::ZERO);
        let steps: Vec<f64> =
            kept.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect();
        assert!(steps.iter().all(|step| *step <= 2.0 * snapshots.interval.as_secs_f64()));
    }

    #[test]
    fn a_device_that_is_not_there_has_no_figures() {
        let mut probe = Probe::new(Instant::now(), vec!["no-such-disk".to_owned()]);
        assert!(probe.sample().disks.is_empty());
    }
}
