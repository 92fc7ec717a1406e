//! What the benchmarks share.

use ssdyno_rig::{KeepGoing, SimRun};
use ssdyno_workload::WorkloadConfig;

/// The preset workload `name`.
pub(crate) fn workload(name: &str) -> WorkloadConfig {
    let text = ssdyno_workload::presets::text(name).unwrap_or("");
    match WorkloadConfig::from_toml(text) {
        Ok(workload) => workload,
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Carries `run`, called `name`, out: million requests per CPU-second.
pub(crate) fn speed(name: &str, run: &SimRun) -> f64 {
    match run.execute(&mut |_| KeepGoing::Continue) {
        Ok(measured) => {
            let cost = measured.result.own_cost.map_or(f64::NAN, |cost| cost.cpu_ns_per_request);
            1e3 / cost
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

/// The median of `values`, with the lowest and the highest.
pub(crate) fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let median = values[values.len() / 2];
    let (low, high) = (values[0], values[values.len() - 1]);
    format!("{median:7.3} ({low:.3} to {high:.3})")
}
