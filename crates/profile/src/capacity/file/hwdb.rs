//! An entry of systemd's hardware database (hwdb.d/90-iocost.hwdb).

use super::iocost::{RULE, coefficients, qos};
use crate::capacity::result::CapacityResult;
use crate::solution;

/// A model or firmware in a match: what would end the field or match more is left to a wildcard.
fn field(text: Option<&str>) -> String {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return "*".to_owned() };
    // A colon ends a field of the match, and `*`, `?`, brackets and backslashes are patterns. A
    // `?` in their place matches exactly one character.
    let safe = |c: char| if c.is_control() || ":*?[]\\".contains(c) { '?' } else { c };
    text.chars().map(safe).collect()
}

/// One entry with the capacity of each solution, under its name. systemd applies the one that `iocost.conf` names, or the
/// first.
pub(super) fn file(all: &[(&str, &CapacityResult)]) -> Result<String, String> {
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    solution::check_all(&names).map_err(|error| error.to_string())?;
    let Some((_, first)) = all.first() else { return Err("it has no solution".to_owned()) };
    let disk = &first.disk;
    let unknown = match &disk.model {
        Some(_) => "",
        None => "# The model is not known: replace MODEL (cat /sys/block/DISK/device/model).\n",
    };
    let model = disk.model.as_deref().map_or("MODEL".to_owned(), |model| field(Some(model)));
    let firmware = field(disk.firmware.as_deref());
    let mut text = format!(
        "{RULE}{unknown}# Place it in /etc/udev/hwdb.d/, then: systemd-hwdb update; udevadm trigger --subsystem-match=block\n\
         \n\
         block:*:name:{model}:fwrev:{firmware}:\n \
         IOCOST_SOLUTIONS={}\n",
        names.join(" ")
    );
    for (name, capacity) in all {
        let (key, coefficients) = (solution::key(name), coefficients(capacity));
        let qos = qos(capacity).map_err(|reason| format!("solution {name}: {reason}"))?;
        text += &format!(" IOCOST_MODEL_{key}={coefficients}\n IOCOST_QOS_{key}={qos}\n");
    }
    Ok(text)
}
