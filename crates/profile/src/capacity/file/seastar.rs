//! `io_properties.yaml` of Seastar (doc/io-properties-file.md).

use super::one_line::one_line;
use crate::capacity::load::Figure;
use crate::capacity::result::CapacityResult;
use crate::result::ProfileResult;

/// The lowest share of what Seastar's model promises that a checked load got; `None` without one below 1.
fn rate_factor(capacity: &CapacityResult) -> Option<f64> {
    let kept =
        capacity.checks.iter().filter_map(|check| Some(check.measured_iops / check.seastar_iops?));
    let least = kept.fold(f64::INFINITY, f64::min);
    (least < 1.0).then_some(least)
}

/// A list of one disk.
pub(super) fn file(result: &ProfileResult, capacity: &CapacityResult) -> String {
    let value = |figure| capacity.rounded(figure);
    let mut text = format!(
        "# Replace the mount point with that of the file system on {}.\n\
         disks:\n  \
         - mountpoint: /MOUNTPOINT\n    \
         read_iops: {}\n    \
         read_bandwidth: {}\n    \
         write_iops: {}\n    \
         write_bandwidth: {}\n",
        one_line(&result.target),
        value(Figure::Rrandiops),
        value(Figure::Rbps),
        value(Figure::Wrandiops),
        value(Figure::Wbps),
    );
    if let Some(factor) = rate_factor(capacity) {
        // The factor is rounded down. Rounded up, it would promise more than the
        // checked load got.
        let factor = (factor * 1000.0).floor() / 1000.0;
        text += &format!(
            "    # The lowest ratio of measured to predicted rate among the checked loads. Uncomment it to scale the model by this ratio:\n    \
             # rate_factor: {factor}\n"
        );
    }
    text
}
