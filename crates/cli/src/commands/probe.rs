//! `ssdyno probe`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_bench::probe::{self, Disk, Probe, Sample};
use ssdyno_block::units::Span;
use ssdyno_result::rate;
use ssdyno_session::{ErrorBody, Failure, FailureKind};

use crate::args::positive_span;
use crate::output::{Output, end};
use crate::progress::interrupted;

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// A block device whose own counters are shown, such as /dev/nvme0n1, or a file on one. May be
    /// repeated [default: all disks].
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Vec<String>,
    /// Length of a sample.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_span)]
    pub(crate) interval: Span,
    /// How many samples.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) samples: u32,
}

/// What `probe --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Probe")]
pub(crate) struct ProbeOutput {
    /// One for each interval.
    samples: Vec<Sample>,
    /// Whether it was interrupted before all samples were taken.
    partial: bool,
    /// Why the whole is no success, if it is none.
    error: Option<ErrorBody>,
}

/// How often the interrupt is looked at.
const STEP: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &ProbeArgs, output: Output) -> Result<(), Failure> {
    let interval = Duration::from_secs_f64(args.interval.0.as_s_f64());
    let zero = Instant::now();
    let mut disks: Vec<String> =
        args.device.iter().map(|given| device(given)).collect::<Result<_, _>>()?;
    if disks.is_empty() {
        disks = probe::disks();
    }
    let mut probe = Probe::new(zero, disks);
    let mut samples = Vec::new();
    for number in 1..=args.samples {
        let next = zero + interval * number;
        while Instant::now() < next && !interrupted() {
            std::thread::sleep(next.saturating_duration_since(Instant::now()).min(STEP));
        }
        if interrupted() {
            break;
        }
        let sample = probe.sample();
        if output.json {
            samples.push(sample);
        } else {
            output.text(&text(&sample))?;
        }
    }
    let failure = interrupted().then(|| {
        Failure::new(FailureKind::Interrupted, "interrupted")
            .with_help("the samples until then are whole")
    });
    let error = failure.as_ref().map(Failure::body);
    let told = match output.json {
        true => output.object(&ProbeOutput { samples, partial: failure.is_some(), error }),
        false => Ok(()),
    };
    end(told, failure)
}

/// The kernel's name of a device, given as a path or under that name.
fn device(given: &str) -> Result<String, Failure> {
    let path = match given.contains('/') {
        true => PathBuf::from(given),
        false => Path::new("/dev").join(given),
    };
    let found = probe::disk_name(&path).map_err(|error| {
        Failure::usage(format!("cannot look at {}: {error}", path.display()))
            .with_help("name a block device, such as /dev/nvme0n1 (`lsblk` lists them)")
    })?;
    found.ok_or_else(|| {
        Failure::usage(format!("{given} is no block device, nor does it lie on one"))
            .with_help("name a block device, such as /dev/nvme0n1 (`lsblk` lists them)")
    })
}

/// One sample: a line about the machine and a table of its devices, as `iostat -x` has them; `-` where
/// the machine does not tell, or where there is nothing to take a mean of.
fn text(sample: &Sample) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let share = |share: Option<f64>| or_dash(share.map(|share| format!("{:.1} %", share * 100.0)));
    let cpu = sample.cpu;
    let power: f64 = sample.power.iter().flatten().map(|sensor| sensor.watts).sum();
    let power = sample.power.as_ref().map(|_| ssdyno_result::watts(power));
    let mut out = format!(
        "{:.1} s  CPU {} user, {} system, {} iowait  {} interrupts/s  {} switches/s\n\
         memory {} free  power {}\n",
        sample.start_seconds + sample.length_seconds,
        share(cpu.map(|cpu| cpu.user)),
        share(cpu.map(|cpu| cpu.system + cpu.irq + cpu.softirq)),
        share(cpu.map(|cpu| cpu.iowait)),
        or_dash(sample.interrupts_per_second.map(rate)),
        or_dash(sample.context_switches_per_second.map(rate)),
        or_dash(sample.memory.map(|memory| format!("{} MiB", memory.free_bytes >> 20))),
        power.unwrap_or_else(|| "not available".to_owned()),
    );
    if !sample.disks.is_empty() {
        out.push_str(HEAD);
    }
    for (name, disk) in &sample.disks {
        out.push_str(&line(name, disk));
    }
    out.push('\n');
    out
}

/// Trims and flushes are in the JSON: a line has 80 columns.
const HEAD: &str =
    "device        reads/s  writes/s   read MB/s  write MB/s  r ms   w ms  queue  util %\n";

/// The figures of a device: mean latency of reads and writes, requests in flight, and share of the time
/// with any in flight.
fn line(name: &str, disk: &Disk) -> String {
    let milliseconds = |ns: Option<f64>| match ns {
        Some(ns) => format!("{:.2}", ns / 1e6),
        None => "-".to_owned(),
    };
    format!(
        "{name:<12} {:>8.0}  {:>8.0}  {:>10.1}  {:>10.1} {:>5}  {:>5}  {:>5.1}  {:>6.1}\n",
        disk.reads_per_second,
        disk.writes_per_second,
        disk.read_bytes_per_second / 1e6,
        disk.write_bytes_per_second / 1e6,
        milliseconds(disk.read_latency_ns_mean),
        milliseconds(disk.write_latency_ns_mean),
        disk.in_flight_mean,
        disk.busy_share * 100.0,
    )
}
