//! Samples of this machine as a task.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_bench::probe::{self, Probe};
use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_session::{Failure, FailureKind};

use crate::runner::{PreparedTask, TaskControl, TaskOutcome, TaskResult};

/// The samples, and their interval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeTask {
    /// Block devices to sample, such as `/dev/nvme0n1`, or files on them. Default: all disks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<String>,
    /// Length of a sample, 1 ms or more.
    pub interval: Span,
    /// Number of samples, 1 to 1000000.
    pub samples: u32,
}

/// The kernel counts some of the sampled times in ticks of this length or longer.
const INTERVAL_LEAST: Time = Time::from_ms(1);

/// All samples of a task are in memory until its end: some hundred bytes for each device.
const SAMPLES_MOST: u32 = 1_000_000;

impl Default for ProbeTask {
    /// Ten samples of a second.
    fn default() -> ProbeTask {
        ProbeTask { device: Vec::new(), interval: Span(Time::from_s(1)), samples: 10 }
    }
}

impl ProbeTask {
    pub(crate) fn prepare(&self) -> Result<PreparedTask, Failure> {
        if self.interval.0 < INTERVAL_LEAST {
            let message = format!("samples of {} are too short", self.interval);
            return Err(Failure::usage(message).with_help("give 1ms or more").with_key("interval"));
        }
        if !(1..=SAMPLES_MOST).contains(&self.samples) {
            let message = format!("{} samples are not possible", self.samples);
            let help = format!("give 1 to {SAMPLES_MOST}");
            return Err(Failure::usage(message).with_help(help).with_key("samples"));
        }
        let interval = Duration::from_secs_f64(self.interval.0.as_s_f64());
        let mut disks: Vec<String> =
            self.device.iter().map(|given| device(given)).collect::<Result<_, _>>()?;
        if disks.is_empty() {
            disks = probe::disks();
        }
        let samples = self.samples;
        let carry_out = move |control: &TaskControl| Ok(sample(disks, interval, samples, control));
        Ok(PreparedTask::new("samples of this machine".to_owned(), Vec::new(), carry_out))
    }
}

fn sample(
    disks: Vec<String>,
    interval: Duration,
    samples: u32,
    control: &TaskControl,
) -> TaskOutcome {
    let zero = Instant::now();
    let mut probe = Probe::new(zero, disks);
    let mut taken = 0;
    // The moments are multiples of the interval after the start. Waiting for a whole interval
    // after each sample would let the series drift.
    while taken < samples && control.wait_until(zero + interval * (taken + 1)) {
        taken += 1;
        let sample = probe.sample();
        // Each sample is available at once: a front end prints it while the task goes
        // on, and takes it out of the partial result.
        control.keep(|partial| match partial {
            Some(TaskResult::Probe(samples)) => samples.push(sample),
            other => *other = Some(TaskResult::Probe(vec![sample])),
        });
        control.report(|snapshot| {
            "sampling".clone_into(&mut snapshot.step);
            (snapshot.done, snapshot.of) = (u64::from(taken), u64::from(samples));
        });
    }
    let mut result = None;
    control.keep(|partial| result = partial.take());
    // The task ended early if samples are missing. The samples that were taken are
    // complete, because each is taken in one piece.
    let failure = (taken < samples).then(|| {
        Failure::new(FailureKind::Interrupted, "interrupted")
            .with_help("the samples until then are complete")
    });
    TaskOutcome { result: result.unwrap_or(TaskResult::Probe(Vec::new())), failure }
}

/// The kernel's name of a device, given as a path or under that name.
fn device(given: &str) -> Result<String, Failure> {
    let path = match given.contains('/') {
        // A bare name is one of the kernel (`nvme0n1`). A relative path must
        // contain a slash, as for a program in a shell.
        true => PathBuf::from(given),
        false => Path::new("/dev").join(given),
    };
    let help = "name a block device, such as /dev/nvme0n1 (`lsblk` lists them)";
    let found = probe::disk_name(&path).map_err(|error| {
        let message = format!("cannot examine {}: {error}", path.display());
        Failure::usage(message).with_help(help).with_key("device")
    })?;
    found.ok_or_else(|| {
        let message = format!("{given} is not a block device or a file on one");
        Failure::usage(message).with_help(help).with_key("device")
    })
}
