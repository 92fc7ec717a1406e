//! What latencies consist of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of the latency of requests, by operation: only requests in `latency_ns`, without requests that never
/// completed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPartsByOp {
    /// Reads; left out without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<OpLatencyParts>,
    /// Writes; left out without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<OpLatencyParts>,
    /// Trims; left out without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<OpLatencyParts>,
    /// Flushes; left out without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<OpLatencyParts>,
}

impl LatencyPartsByOp {
    /// The operations that occurred, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &OpLatencyParts)> {
        let all = [
            ("read", &self.read),
            ("write", &self.write),
            ("trim", &self.trim),
            ("flush", &self.flush),
        ];
        all.into_iter().filter_map(|(name, parts)| Some((name, parts.as_ref()?)))
    }
}

/// Parts of the latency of one operation's requests.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OpLatencyParts {
    /// Number of requests.
    pub requests: u64,
    /// Mean over all requests: the parts sum to the mean latency.
    pub mean: MeanParts,
    /// Mean over the slowest 1 % of the requests, with a latency threshold that is exact within 3 %; `null` with fewer
    /// than 1000 requests.
    pub slowest_1_percent: Option<MeanParts>,
}

/// A mean latency, and the parts that sum to it, in nanoseconds. A part includes the wait for it and its
/// use. For a request of several pages, the parts are of the page that arrives last.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MeanParts {
    /// Sum of all parts.
    pub total: f64,
    /// Outside the device: host, driver, interrupts, network; 0 if the workload goes directly to the device.
    pub host: f64,
    /// Waiting because the depth of the load or the queue of the device is full, or inside the device for parts that are not listed here.
    pub queue: f64,
    /// Waiting until the device has woken up, or until a power limit allows the request.
    pub power: f64,
    /// Firmware cores of the controller.
    pub firmware: f64,
    /// The link to the host.
    pub link: f64,
    /// DRAM of the controller.
    pub dram: f64,
    /// The flash channel: transfers of the request's pages, and of pages before them.
    pub channel: f64,
    /// The die reads or programs the request's own pages.
    pub flash: f64,
    /// The die reads for other requests.
    pub reads: f64,
    /// The die programs for other requests. A write that waits for room in the write buffer waits for the write-back.
    pub programs: f64,
    /// The die erases blocks.
    pub erases: f64,
    /// The die moves pages: garbage collection, merges, wear levelling.
    pub cleaning: f64,
    /// The die reads or programs the mapping table.
    pub mapping: f64,
}

impl MeanParts {
    /// Each part: its key, what it is called in tables, and its time.
    pub fn list(&self) -> [(&'static str, &'static str, f64); 13] {
        [
            ("host", "host", self.host),
            ("queue", "queue", self.queue),
            ("power", "waking up, power limit", self.power),
            ("firmware", "firmware", self.firmware),
            ("link", "link", self.link),
            ("dram", "DRAM", self.dram),
            ("channel", "flash channel", self.channel),
            ("flash", "die: own pages", self.flash),
            ("reads", "die: other reads", self.reads),
            ("programs", "die: programs", self.programs),
            ("erases", "die: erases", self.erases),
            ("cleaning", "die: garbage collection", self.cleaning),
            ("mapping", "die: mapping table", self.mapping),
        ]
    }
}
