//! `ssdyno probe`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_bench::probe::{Disk, Sample};
use ssdyno_block::units::Span;
use ssdyno_figures::rate;
use ssdyno_session::{ErrorBody, Failure};
use ssdyno_task::{ProbeTask, Task, TaskOutcome, TaskResult};

use crate::args::positive_span;
use crate::diagnose;
use crate::output::{Output, end};
use crate::task::{self, TakePartial};

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Show the counters of this block device, such as /dev/nvme0n1, or of the device that contains this
    /// file. May be repeated [default: all disks].
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Vec<String>,
    /// Interval between samples.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_span)]
    pub(crate) interval: Span,
    /// Number of samples.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) samples: u32,
}

/// Output of `probe --json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Probe")]
pub(crate) struct ProbeOutput {
    /// One sample for each interval.
    samples: Vec<Sample>,
    /// Whether the command was interrupted before all samples were taken.
    partial: bool,
    /// The error, if the command failed.
    error: Option<ErrorBody>,
}

pub(crate) fn run(args: &ProbeArgs, output: Output) -> Result<(), Failure> {
    let asked =
        ProbeTask { device: args.device.clone(), interval: args.interval, samples: args.samples };
    let prepared = task::prepare(&Task::Probe(asked))?;
    let print = &mut |samples: TaskResult| match samples {
        TaskResult::Probe(samples) => print(&samples, output),
        _ => Err(task::other_result()),
    };
    // One object has all samples, at the end.
    let take = (!output.json).then_some(print as &mut TakePartial<'_>);
    let outcome = task::watch(prepared, output, None, take)?;
    let TaskOutcome { result: TaskResult::Probe(samples), failure } = outcome else {
        return Err(task::other_result());
    };
    let error = failure.as_ref().map(diagnose::body);
    let told = match output.json {
        true => output.object(&ProbeOutput { samples, partial: failure.is_some(), error }),
        false => Ok(()),
    };
    end(told, failure)
}

fn print(samples: &[Sample], output: Output) -> Result<(), Failure> {
    samples.iter().try_for_each(|sample| output.text(&text(sample)))
}

/// One sample: a line about the machine and a table of its devices, as `iostat -x` has them; `-` where
/// the machine does not tell, or where there is nothing to take a mean of.
fn text(sample: &Sample) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let share = |share: Option<f64>| or_dash(share.map(|share| format!("{:.1} %", share * 100.0)));
    let cpu = sample.cpu;
    let power: f64 = sample.power.iter().flatten().map(|sensor| sensor.watts).sum();
    let power = sample.power.as_ref().map(|_| ssdyno_figures::watts(power));
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
