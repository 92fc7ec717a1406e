//! How a trace is read and played.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::Time;

use super::Format;

/// When the requests of a trace start.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum TraceTiming {
    /// As recorded.
    #[default]
    Original,
    /// Recorded times multiplied by this, above 0: 0.5 runs twice as fast.
    Scaled(f64),
    /// As soon as fewer than `depth` are outstanding, in the order of the file.
    AsFastAsPossible {
        /// Requests outstanding, 1 or more.
        depth: u32,
    },
}

ssdyno_block::named! {
    /// The time in a trace that becomes time 0 of the run.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum TraceOrigin: name {
        /// The first request that is replayed starts at time 0. Earlier parts of the trace (other devices, requests
        /// that were left out, a lead-in) take no time in the run.
        #[default]
        First = "first",
        /// The trace's own time 0 is kept: a lead-in is replayed as idle time.
        Absolute = "absolute",
    }
}

ssdyno_block::named! {
    /// Addresses of the objects of a trace that has object names instead of addresses.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ObjectIds: name {
        /// The name is a sector of 512 B, as in libCacheSim's traces of block devices.
        #[default]
        Sector = "sector",
        /// The name is a byte address.
        Byte = "byte",
        /// The name is a string: a hash of the name decides the address of the object, a multiple of 4 KiB. Objects may
        /// overlap.
        Hash = "hash",
    }
}

ssdyno_block::named! {
    /// How to handle a request that ends beyond the last byte of the target.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum BeyondEnd: name {
        /// The workload ends with an error.
        #[default]
        Fail = "fail",
        /// Addresses are taken modulo the target's size; a request across the end is split. A request longer than the
        /// target is an error, and so is one that ends beyond the slot of its device.
        Wrap = "wrap",
        /// The request is left out, and counted in the notes.
        Skip = "skip",
    }
}

/// Which event of `blkparse` counts as the start of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlkEvent {
    /// `Q`: queued by who wanted it. The options of the user for a target.
    Queue,
    /// `D`: sent to the driver, after merging and sorting.
    Dispatch,
}

/// How to read and play a trace.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TraceOptions {
    /// `None`: told from the content.
    pub format: Option<Format>,
    /// When requests start.
    pub timing: TraceTiming,
    /// Most outstanding, 1 or more: later arrivals wait, and latency counts from their recorded
    /// time. `None`: no limit, but 1 for a trace without times. With
    /// [`TraceTiming::AsFastAsPossible`] the smaller of both depths holds.
    pub depth_limit: Option<u32>,
    /// The treatment of requests beyond the target's end.
    pub beyond_end: BeyondEnd,
    /// Only the requests of these devices: DiskSim and MQSim device number, MSR host, disk or
    /// `host.disk`, blkparse `maj,min`, fio file name, CSV column `device`, Alibaba's device and
    /// Tencent's volume. Empty: all.
    pub devices: Vec<String>,
    /// Space for each device of the trace, which then lie one after the other on the target, in the
    /// order in which they first appear. `None`: their addresses are played as they are, as if they
    /// were one device.
    pub slot_bytes: Option<u64>,
    /// The meaning of the objects of libCacheSim's formats. [`ObjectIds::Sector`] by default.
    pub object_ids: ObjectIds,
    /// The columns of a CSV file, as its header would name them. `None`: the file has a header.
    pub columns: Option<String>,
    /// The event of `blkparse` that counts. `None`: queueing, or dispatch where the beginning of the
    /// trace has only that (`blktrace -a issue`).
    pub event: Option<BlkEvent>,
    /// Which time of the trace is the run's 0; the same rule for every format.
    pub origin: TraceOrigin,
    /// At most this number of requests, 1 or more (pieces of a split request count).
    pub requests: Option<u64>,
    /// Nothing is issued that was meant to start at this time (of the run) or later.
    pub duration: Option<Time>,
}

impl TraceOptions {
    /// How the trace is read and played, a `key = value` for each option that decides about it, as the
    /// command line names them.
    pub fn describe(&self) -> Vec<String> {
        let text = |value: &str| format!("\"{value}\"");
        let timing = match self.timing {
            TraceTiming::Original => text("original"),
            TraceTiming::Scaled(factor) => text(&format!("scaled={factor}")),
            TraceTiming::AsFastAsPossible { .. } => text("fast"),
        };
        let depth = match self.timing {
            TraceTiming::AsFastAsPossible { depth } => {
                // Both limits hold at the same time, so the smaller one is the effective one. The
                // description states only this, because it is what the run did.
                Some(self.depth_limit.map_or(depth, |limit| limit.min(depth)))
            }
            _ => self.depth_limit,
        };
        let mut pairs = vec![
            // The resolved format of a detected trace is not known here. The text says so instead
            // of naming a format that another version might not detect.
            ("trace_format", text(self.format.map_or("detected from the content", Format::name))),
            ("timing", timing),
            ("trace_origin", text(self.origin.name())),
        ];
        pairs.extend(depth.map(|depth| ("trace_depth", depth.to_string())));
        pairs.extend(self.devices.iter().map(|device| ("trace_device", text(device))));
        pairs.extend(self.slot_bytes.map(|bytes| ("trace_slot", text(&format!("{bytes}B")))));
        pairs.push(("trace_ids", text(self.object_ids.name())));
        pairs.extend(self.columns.iter().map(|columns| ("trace_columns", text(columns))));
        pairs.push(("beyond_end", text(self.beyond_end.name())));
        pairs.into_iter().map(|(key, value)| format!("{key} = {value}")).collect()
    }
}
