//! How far the hosts of a run are.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_figures::{LiveSnapshot, RunProgress};
use ssdyno_prober::{MetricPoint, SystemSample};
use ssdyno_session::RunSnapshot;

/// Progress of all hosts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClusterProgress {
    /// Each host: its name, its last snapshot, and, if it is cut off, the time since its last
    /// message.
    pub hosts: Vec<(String, RunSnapshot, Option<Duration>)>,
    /// Each machine that is sampled: its name and its newest sample.
    pub systems: Vec<(String, Option<SystemSample>)>,
    /// The newest reading of each program whose metrics are read.
    #[serde(skip)]
    pub metrics: Vec<MetricsReading>,
}

/// The last metrics of a program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MetricsReading {
    /// Where they are read, as `run --probers` names it.
    pub source: String,
    /// How often it was read, from 1, with readings that failed.
    pub number: u64,
    /// When, in nanoseconds of the controller's monotonic clock.
    pub monotonic_ns: u64,
    /// The metrics that are kept; empty where the reading failed.
    pub points: Arc<Vec<MetricPoint>>,
}

impl ClusterProgress {
    /// All hosts as one run: requests are summed, and it is as far as the slowest.
    pub fn merged(&self) -> RunProgress {
        let all = || self.hosts.iter().map(|(_, snapshot, _)| &snapshot.progress);
        let completed: u64 = all().map(|progress| progress.completed).sum();
        // The mean of means is weighted by the number of requests. A slow host with few requests
        // would otherwise count as much as a fast one.
        let latency: f64 = all().map(|one| one.latency_ns_mean * one.completed as f64).sum();
        let preparing = all().filter_map(|progress| progress.preparing);
        let mut glance: Option<LiveSnapshot> = None;
        for one in all().filter_map(|progress| progress.glance.as_deref()) {
            match &mut glance {
                Some(sum) => sum.merge(one),
                None => glance = Some(one.clone()),
            }
        }
        RunProgress {
            // The slowest host decides: the load begins only when all hosts are prepared. A mean
            // would show 90 % while one host has just begun.
            preparing: preparing.min_by(f64::total_cmp),
            now: all().map(|progress| progress.now).min().unwrap_or(Time::ZERO),
            issued: all().map(|progress| progress.issued).sum(),
            completed,
            // `max(1)`: before the first completion the sum is zero, and the mean is shown as
            // 0 and not as NaN, which JSON cannot hold.
            latency_ns_mean: latency / completed.max(1) as f64,
            glance: glance.map(Arc::new),
        }
    }
}
