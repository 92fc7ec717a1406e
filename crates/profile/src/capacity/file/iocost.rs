//! `io.cost.model` and `io.cost.qos` of Linux (Documentation/admin-guide/cgroup-v2.rst, block/blk-iocost.c).

use super::one_line::one_line;
use crate::capacity::load::Figure;
use crate::capacity::result::{CapacityResult, DiskFacts};

/// Stands for the device numbers where none are known.
const PLACEHOLDER: &str = "MAJ:MIN";
/// Percentile of the latencies of `io.cost.qos`.
const PERCENTILE: f64 = 99.0;
/// Least and most of `min` and `max`, in percent (`VRATE_MIN_PPM`, `VRATE_MAX_PPM`).
const VRATE: (f64, f64) = (1.0, 10_000.0);
/// `min` where the model does not promise too much; that of the solution `naive` of resctl-bench.
const MIN_PERCENT: f64 = 75.0;

/// `MAJ:MIN`, and the notes on it.
fn number(disk: &DiskFacts) -> (String, Vec<String>) {
    let Some(number) = &disk.number else {
        let text = format!(
            "# Replace {PLACEHOLDER} with the numbers of the whole disk: lsblk -dno MAJ:MIN /dev/DISK\n"
        );
        return (PLACEHOLDER.to_owned(), vec![text]);
    };
    let (number, name) = (one_line(number), one_line(disk.name.as_deref().unwrap_or("the disk")));
    let mut lines =
        vec![format!("# {number} is {name}, the whole disk: the kernel takes no partition.\n")];
    if !disk.below.is_empty() {
        lines.push(format!(
            "# {name} lies on {}: a kernel that refuses it accepts one line for each of these devices.\n",
            one_line(&disk.below.join(", "))
        ));
    }
    (number, lines)
}

fn usage(file: &str) -> String {
    format!("# Load it: grep -v '^#' THIS_FILE > /sys/fs/cgroup/{file}\n")
}

/// The six coefficients, as the kernel reads them.
pub(super) fn coefficients(capacity: &CapacityResult) -> String {
    let pair = |figure: Figure| format!("{}={}", figure.key(), capacity.rounded(figure));
    Figure::ALL.map(pair).join(" ")
}

/// The comment about the numbers, and the line.
pub(super) fn model_file(capacity: &CapacityResult) -> String {
    let (number, comments) = number(&capacity.disk);
    let coefficients = coefficients(capacity);
    let usage = usage("io.cost.model");
    format!("{}{usage}{number} ctrl=user model=linear {coefficients}\n", comments.concat())
}

/// The keys of `io.cost.qos` but `enable` and `ctrl`.
pub(super) fn qos(capacity: &CapacityResult) -> Result<String, String> {
    let Some(moderate) = capacity.moderate else {
        return Err("latencies at a moderate load were not measured: allow more `time`".to_owned());
    };
    let Some(write) = moderate.write_p99_us else {
        return Err("latencies of writes at a moderate load were not measured".to_owned());
    };
    let mixes = capacity.checks.iter().filter(|check| check.read_share < 1.0);
    let kept = mixes.filter_map(|check| Some(check.measured_iops / check.iocost_iops?));
    // This is the share of the promised rate that the worst mixed load got. `min` lets the
    // kernel slow down to that share.
    let worst = 100.0 * kept.fold(f64::INFINITY, f64::min);
    let worst = if worst.is_finite() { worst } else { 100.0 };
    let (least, most) = VRATE;
    let min = MIN_PERCENT.min(worst).max(least);
    let max = worst.clamp(100.0, most);
    // The geometric mean lies half way on a scale of ratios. The kernel takes latencies above the
    // target for saturation, so a target below the latency of a moderate load would slow that load
    // down. A target of 0 would switch the control by latency off, so the least target is 1 us.
    let latency = |moderate: f64, saturated: Option<f64>| {
        let between = (moderate * saturated.unwrap_or(moderate)).sqrt();
        between.max(moderate).ceil().clamp(1.0, f64::from(u32::MAX)) as u64
    };
    Ok(format!(
        "rpct={PERCENTILE:.2} rlat={} wpct={PERCENTILE:.2} wlat={} min={min:.2} max={max:.2}",
        latency(moderate.read_p99_us, moderate.read_p99_us_saturated),
        latency(write, moderate.write_p99_us_saturated),
    ))
}

/// The rule that [`qos`] follows, as comments.
pub(super) const RULE: &str = "\
# A proposal. rlat and wlat (us) are the geometric mean of the 99th percentiles of the small mix at a moderate load (up to 80 %
# of its sustained rate) and at saturation, or the former if it is higher: the kernel slows down when latencies exceed them.
# max is 100 %, or more if the model predicts too little for every mixed load. min is 75 %, or less if a mixed load gets less
# than that share of its prediction.
";

/// The proposal for `io.cost.qos`.
pub(super) fn qos_file(capacity: &CapacityResult) -> Result<String, String> {
    let (number, comments) = number(&capacity.disk);
    let qos = qos(capacity)?;
    let usage = usage("io.cost.qos");
    Ok(format!("{RULE}{}{usage}{number} enable=1 ctrl=user {qos}\n", comments.concat()))
}
