//! Capacity options of Ceph's mClock scheduler (doc/rados/configuration/mclock-config-ref.rst).

use crate::capacity::load::Figure;
use crate::capacity::result::{CapacityResult, MediaKind};

/// The IOPS above which Ceph discards the result of its own benchmark (`osd_mclock_iops_capacity_threshold_*`), and the
/// lower bound (`osd_mclock_iops_capacity_low_threshold_*`).
fn believed(media: MediaKind) -> (u64, u64) {
    match media {
        MediaKind::Hdd => (50, 500),
        MediaKind::Ssd => (1000, 80_000),
    }
}

/// A section for `ceph.conf`, and the commands that set the same.
pub(super) fn file(capacity: &CapacityResult) -> Result<String, String> {
    let Some(media) = capacity.disk.media else {
        return Err(
            "the profile did not measure whether it is a hard disk: allow more `time`".to_owned()
        );
    };
    let kind = if media == MediaKind::Hdd { "hdd" } else { "ssd" };
    let iops = capacity.rounded(Figure::Wrandiops);
    // The scheduler has one bandwidth for reads and writes. The lower one promises no operation
    // more than the device can do.
    let bandwidth = capacity.rounded(Figure::Rbps).min(capacity.rounded(Figure::Wbps));
    let options = [
        (format!("osd_mclock_max_capacity_iops_{kind}"), iops),
        (format!("osd_mclock_max_sequential_bandwidth_{kind}"), bandwidth),
    ];
    let mut text = format!(
        "# {kind} by measurement. IOPS are small random writes to the device; an OSD on it needs more than one write for \
         a client's write.\n# The bandwidth is the lower of reads and writes, in bytes per second.\n"
    );
    let (least, most) = believed(media);
    if !(least..=most).contains(&iops) {
        text += &format!(
            "# Ceph's own benchmark would discard {iops} IOPS: it accepts {least} to {most} for an {kind}.\n"
        );
    }
    for (key, value) in &options {
        text += &format!("# ceph config set osd.ID {key} {value}\n");
    }
    text += "[osd]\n";
    for (key, value) in &options {
        text += &format!("{key} = {value}\n");
    }
    Ok(text)
}
