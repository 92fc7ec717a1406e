//! How a trace is read and played.

use clap::{Args, ValueEnum};
use ssdyno_block::units::{Bytes, Span};
use ssdyno_workload::{BeyondEnd, Format, ObjectIds, Timing, TraceOptions, TraceOrigin};

/// How a trace is read and played.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Traces")]
pub(crate) struct TraceArgs {
    /// disksim, mqsim, msr, blkparse, fio, csv, alibaba, tencent, libcachesim, oraclegeneral or vscsi:
    /// docs/traces.md has their columns [default: told from the content].
    #[arg(long, value_name = "FORMAT", value_parser = trace_format)]
    pub(crate) trace_format: Option<Format>,
    /// When requests start: original, scaled=FACTOR (0.5 is twice as fast), or fast (as soon as
    /// fewer than --trace-depth are outstanding) [default: original].
    #[arg(long, value_name = "TIMING", value_parser = timing)]
    pub(crate) timing: Option<Timing>,
    /// Which time of the trace is time 0 of the run, in every format: first (of the first request that
    /// is replayed) or absolute (the trace's own 0: idle time before the first request is replayed)
    /// [default: first].
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) trace_origin: Option<TraceOriginArg>,
    /// Most requests outstanding; later ones wait, and their latency counts from the recorded
    /// time [default: no limit; 32 with --timing fast].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) trace_depth: Option<u32>,
    /// Only the requests of this device (disk, volume) of the trace; may be repeated [default: all].
    #[arg(long, value_name = "DEVICE", visible_alias = "trace-volume")]
    pub(crate) trace_device: Vec<String>,
    /// Lay the devices of the trace one after the other on the target, in the order in which they first
    /// appear, with so much space each, such as 100GiB [default: all at the same addresses].
    #[arg(long, value_name = "SIZE", value_parser = slot)]
    pub(crate) trace_slot: Option<Bytes>,
    /// What the objects of libCacheSim's traces are: sector (of 512 B), byte, or hash (only names:
    /// each lies where a hash of it says) [default: sector].
    #[arg(long, value_name = "WHAT")]
    pub(crate) trace_ids: Option<TraceIdsArg>,
    /// The columns of a CSV trace that has no header, such as time_us,device,op,offset_bytes,length_bytes;
    /// other names are passed over.
    #[arg(long, value_name = "NAMES")]
    pub(crate) trace_columns: Option<String>,
    /// What becomes of requests behind the end of the target [default: fail].
    #[arg(long, value_name = "WHAT")]
    pub(crate) beyond_end: Option<BeyondEndArg>,
}

impl TraceArgs {
    /// The first option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        [
            (self.trace_format.is_some(), "--trace-format"),
            (self.timing.is_some(), "--timing"),
            (self.trace_depth.is_some(), "--trace-depth"),
            (self.trace_origin.is_some(), "--trace-origin"),
            (!self.trace_device.is_empty(), "--trace-device"),
            (self.trace_slot.is_some(), "--trace-slot"),
            (self.trace_ids.is_some(), "--trace-ids"),
            (self.trace_columns.is_some(), "--trace-columns"),
            (self.beyond_end.is_some(), "--beyond-end"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }

    /// As a workload reads them, with the limits of the run.
    pub(crate) fn options(&self, requests: Option<u64>, duration: Option<Span>) -> TraceOptions {
        let timing = match self.timing {
            Some(Timing::AsFastAsPossible { .. }) => {
                Timing::AsFastAsPossible { depth: self.trace_depth.unwrap_or(FAST_DEPTH) }
            }
            Some(timing) => timing,
            None => Timing::Original,
        };
        TraceOptions {
            format: self.trace_format,
            timing,
            depth_limit: self.trace_depth,
            beyond_end: self.beyond_end.map(Into::into).unwrap_or_default(),
            devices: self.trace_device.clone(),
            slot_bytes: self.trace_slot.map(|size| size.0),
            object_ids: self.trace_ids.map(Into::into).unwrap_or_default(),
            columns: self.trace_columns.clone(),
            origin: self.trace_origin.map(Into::into).unwrap_or_default(),
            requests,
            duration: duration.map(|span| span.0),
            ..TraceOptions::default()
        }
    }
}

/// See [`TraceOrigin`].
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TraceOriginArg {
    /// Time 0 is that of the first request that is replayed.
    First,
    /// Time 0 is that of the trace's own clock.
    Absolute,
}

impl From<TraceOriginArg> for TraceOrigin {
    fn from(arg: TraceOriginArg) -> TraceOrigin {
        match arg {
            TraceOriginArg::First => TraceOrigin::First,
            TraceOriginArg::Absolute => TraceOrigin::Absolute,
        }
    }
}

/// See [`ObjectIds`].
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TraceIdsArg {
    /// Sectors of 512 B.
    Sector,
    /// Bytes.
    Byte,
    /// Names only.
    Hash,
}

impl From<TraceIdsArg> for ObjectIds {
    fn from(arg: TraceIdsArg) -> ObjectIds {
        match arg {
            TraceIdsArg::Sector => ObjectIds::Sector,
            TraceIdsArg::Byte => ObjectIds::Byte,
            TraceIdsArg::Hash => ObjectIds::Hash,
        }
    }
}

/// See [`BeyondEnd`].
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BeyondEndArg {
    /// The run ends with an error.
    Fail,
    /// Addresses are taken modulo the size of the target.
    Wrap,
    /// They are left out, and counted.
    Skip,
}

impl BeyondEndArg {
    pub(crate) fn name(self) -> &'static str {
        match self {
            BeyondEndArg::Fail => "fail",
            BeyondEndArg::Wrap => "wrap",
            BeyondEndArg::Skip => "skip",
        }
    }
}

impl From<BeyondEndArg> for BeyondEnd {
    fn from(arg: BeyondEndArg) -> BeyondEnd {
        match arg {
            BeyondEndArg::Fail => BeyondEnd::Fail,
            BeyondEndArg::Wrap => BeyondEnd::Wrap,
            BeyondEndArg::Skip => BeyondEnd::Skip,
        }
    }
}

fn trace_format(text: &str) -> Result<Format, String> {
    let names = || Format::ALL.map(Format::name).join(", ");
    text.parse().map_err(|_| format!("known are {}", names()))
}

/// Space for a device, more than none.
fn slot(text: &str) -> Result<Bytes, String> {
    let size: Bytes =
        text.parse().map_err(|error: ssdyno_block::units::UnitError| error.to_string())?;
    if size.0 == 0 {
        return Err("it must be more than nothing".to_owned());
    }
    Ok(size)
}

fn timing(text: &str) -> Result<Timing, String> {
    match text {
        "original" => Ok(Timing::Original),
        "fast" => Ok(Timing::AsFastAsPossible { depth: FAST_DEPTH }),
        _ => {
            let factor = text.strip_prefix("scaled=").and_then(|factor| factor.parse().ok());
            let sane = factor.filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
            let help = "write original, scaled=FACTOR with a factor above 0, or fast";
            sane.map(Timing::Scaled).ok_or_else(|| help.to_owned())
        }
    }
}

/// Requests outstanding with `--timing fast` where `--trace-depth` does not say.
pub(crate) const FAST_DEPTH: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings() {
        assert_eq!(timing("scaled=0.5"), Ok(Timing::Scaled(0.5)));
        for wrong in ["", "scaled", "scaled=", "scaled=0", "scaled=-1", "scaled=inf", "scaled=nan"]
        {
            assert!(timing(wrong).is_err(), "{wrong}");
        }
    }
}
