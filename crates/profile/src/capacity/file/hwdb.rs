//! An entry of systemd's hardware database (hwdb.d/90-iocost.hwdb).

use super::iocost::{RULE, coefficients, qos};
use crate::capacity::result::CapacityResult;

/// A model or firmware in a match: what would end the field or match more is left to a wildcard.
fn field(text: Option<&str>) -> String {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return "*".to_owned() };
    let safe = |c: char| if c.is_control() || ":*?[]\\".contains(c) { '?' } else { c };
    text.chars().map(safe).collect()
}

/// One solution, called `ssdyno`.
pub(super) fn file(capacity: &CapacityResult) -> Result<String, String> {
    let disk = &capacity.disk;
    let qos = qos(capacity)?;
    let unknown = match &disk.model {
        Some(_) => "",
        None => "# The model is not known: replace MODEL (cat /sys/block/DISK/device/model).\n",
    };
    let model = disk.model.as_deref().map_or("MODEL".to_owned(), |model| field(Some(model)));
    let firmware = field(disk.firmware.as_deref());
    let coefficients = coefficients(capacity);
    Ok(format!(
        "{RULE}{unknown}# Place it in /etc/udev/hwdb.d/, then: systemd-hwdb update; udevadm trigger --subsystem-match=block\n\
         \n\
         block:*:name:{model}:fwrev:{firmware}:\n \
         IOCOST_SOLUTIONS=ssdyno\n \
         IOCOST_MODEL_SSDYNO={coefficients}\n \
         IOCOST_QOS_SSDYNO={qos}\n"
    ))
}
