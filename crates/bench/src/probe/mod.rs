//! What the machine does while a target is loaded (S4-18 … S4-20).
//!
//! A [`Prober`] samples in a thread of its own, on the clock of the run, so that samples and requests
//! lie on one timeline. It costs a few hundred microseconds of one processor a sample. Power comes
//! from RAPL zones and hwmon sensors; a machine without them (most virtual ones) says `null`, never
//! a number.
//!
//! Not probed: other machines (many hosts come later), processes, temperatures.

mod sample;
mod snapshot;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use sample::{CpuShares, Disk, Memory, Network, Power, Sample};
use snapshot::{Sensors, Snapshot};

/// Where the machine describes itself.
const SYS: &str = "/sys";

/// Samples the machine at an interval until it is stopped.
#[derive(Debug)]
pub struct Prober {
    stop: Sender<()>,
    thread: JoinHandle<()>,
    samples: Receiver<Sample>,
}

impl Prober {
    /// Begins now; times count from `zero`. `disk` is the name of the device under test in the
    /// kernel, such as `nvme0n1`.
    pub fn start(zero: Instant, interval: Duration, disk: Option<String>) -> Prober {
        let (stop, stopped) = channel();
        let (out, samples) = channel();
        let thread = std::thread::spawn(move || {
            let mut probe = Probe::new(zero, disk);
            let mut next = Instant::now() + interval;
            loop {
                let wait = next.saturating_duration_since(Instant::now());
                let ended = stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
                // Nobody listens any more: nothing to do.
                if out.send(probe.sample()).is_err() || ended {
                    return;
                }
                next += interval;
            }
        });
        Prober { stop, thread, samples }
    }

    /// Samples since the last call.
    pub fn take(&self) -> Vec<Sample> {
        self.samples.try_iter().collect()
    }

    /// Takes a last sample, which may be shorter, and gives all that were not yet taken.
    pub fn finish(self) -> Vec<Sample> {
        drop(self.stop);
        // A thread that panicked has lost its last samples; those before are worth keeping.
        let _ = self.thread.join();
        self.samples.try_iter().collect()
    }
}

/// One probe, sampled by whoever owns it: what `ssdyno probe` uses.
#[derive(Debug)]
pub struct Probe {
    zero: Instant,
    disk: Option<String>,
    sensors: Sensors,
    last: Snapshot,
}

impl Probe {
    /// Begins now; times count from `zero`.
    pub fn new(zero: Instant, disk: Option<String>) -> Probe {
        let sensors = Sensors::find(Path::new(SYS));
        let last = Snapshot::take(zero.elapsed(), disk.as_deref(), &sensors);
        Probe { zero, disk, sensors, last }
    }

    /// What happened since the last sample, or since the beginning.
    pub fn sample(&mut self) -> Sample {
        let now = Snapshot::take(self.zero.elapsed(), self.disk.as_deref(), &self.sensors);
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
        let prober = Prober::start(Instant::now(), Duration::from_millis(20), None);
        std::thread::sleep(Duration::from_millis(70));
        let samples = prober.finish();
        assert!(samples.len() >= 2, "{samples:?}");
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
    fn a_device_that_is_not_there_has_no_figures() {
        let mut probe = Probe::new(Instant::now(), Some("no-such-disk".to_owned()));
        assert_eq!(probe.sample().disk, None);
    }
}
