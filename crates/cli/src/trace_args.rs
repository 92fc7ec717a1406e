//! How a trace is read and played.

use clap::Args;
use ssdyno_block::units::Bytes;
use ssdyno_session::{TraceSpec, timing};
use ssdyno_workload::{BeyondEnd, Format, ObjectIds, TraceOrigin, TraceTiming};

use crate::words::words;

/// How a trace is read and played.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Traces")]
pub(crate) struct TraceArgs {
    /// disksim, mqsim, msr, blkparse, fio, csv, alibaba, tencent, libcachesim, oraclegeneral or vscsi:
    /// docs/traces.md describes their columns [default: detected from the content].
    #[arg(long, value_name = "FORMAT", value_parser = trace_format)]
    pub(crate) trace_format: Option<Format>,
    /// When requests start: original, scaled=FACTOR (0.5 is twice as fast), or fast (as soon as
    /// fewer than --trace-depth are outstanding) [default: original].
    #[arg(long, value_name = "TIMING", value_parser = timing)]
    pub(crate) timing: Option<TraceTiming>,
    /// Point in the trace at which the run starts: the first replayed request, or time 0 of the trace
    /// [default: first].
    #[arg(long, value_name = "ORIGIN", value_parser = words::<TraceOrigin>())]
    pub(crate) trace_origin: Option<TraceOrigin>,
    /// Maximum number of outstanding requests (fio: iodepth). Later requests wait, and their latency counts
    /// from the recorded time [default: no limit; 32 with --timing fast].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) trace_depth: Option<u32>,
    /// Replay only requests for this device (disk, volume) of the trace. May be repeated [default: all].
    #[arg(long, value_name = "DEVICE", visible_alias = "trace-volume")]
    pub(crate) trace_device: Vec<String>,
    /// Give each device of the trace its own range of this size on the target, such as 100GiB, in order of
    /// first appearance [default: all devices at the same addresses].
    #[arg(long, value_name = "SIZE", value_parser = slot)]
    pub(crate) trace_slot: Option<Bytes>,
    /// Meaning of an object identifier in a libCacheSim trace: a sector of 512 B, a byte address, or a name
    /// whose hash decides the address [default: sector].
    #[arg(long, value_name = "WHAT", value_parser = words::<ObjectIds>())]
    pub(crate) trace_ids: Option<ObjectIds>,
    /// Column names for a CSV trace without a header, such as time_us,device,op,offset_bytes,length_bytes.
    /// Columns with other names are ignored.
    #[arg(long, value_name = "NAMES")]
    pub(crate) trace_columns: Option<String>,
    /// Action for requests beyond the end of the target [default: fail].
    #[arg(long, value_name = "WHAT", value_parser = words::<BeyondEnd>())]
    pub(crate) beyond_end: Option<BeyondEnd>,
}

impl TraceArgs {
    /// As a spec has it.
    pub(crate) fn spec(&self) -> TraceSpec {
        TraceSpec {
            format: self.trace_format,
            timing: self.timing,
            origin: self.trace_origin,
            depth: self.trace_depth,
            device: self.trace_device.clone(),
            slot: self.trace_slot,
            ids: self.trace_ids,
            columns: self.trace_columns.clone(),
            beyond_end: self.beyond_end,
        }
    }
}

fn trace_format(text: &str) -> Result<Format, String> {
    let names = || Format::ALL.map(Format::name).join(", ");
    text.parse().map_err(|_| format!("use one of {}", names()))
}

/// Space for a device, more than none.
fn slot(text: &str) -> Result<Bytes, String> {
    let size: Bytes =
        text.parse().map_err(|error: ssdyno_block::units::UnitError| error.to_string())?;
    if size.0 == 0 {
        return Err("it must be greater than zero".to_owned());
    }
    Ok(size)
}
