//! RAPL zones below `/sys/class/powercap` (Documentation/power/powercap/powercap.rst).

use std::collections::BTreeMap;
use std::path::Path;

use crate::sources::{SourceError, SourceText, Sources};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ZoneCounter {
    pub(crate) microjoules: u64,
    /// Where the counter begins again at 0; `None` if the zone does not say it.
    pub(crate) wraps_at: Option<u64>,
}

/// `None` where there is no zone, or none that we may read: since 2020 only root may.
pub(super) fn read(
    sources: &Sources,
) -> Result<Option<BTreeMap<String, ZoneCounter>>, SourceError> {
    let mut zones = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(sources.sys.join("class/powercap")) else {
        return Ok(None);
    };
    for entry in entries.flatten() {
        let zone = entry.path();
        let Some(microjoules) = number(&zone.join("energy_uj"))? else { continue };
        let place = entry.file_name().to_string_lossy().into_owned();
        let name = match SourceText::read(zone.join("name")) {
            Ok(text) => text.lines().next().map(|line| line.text.trim().to_owned()),
            Err(_) => None,
        };
        let name = name.map_or_else(|| place.clone(), |name| format!("{name} ({place})"));
        let wraps_at = number(&zone.join("max_energy_range_uj"))?;
        zones.insert(name, ZoneCounter { microjoules, wraps_at });
    }
    Ok((!zones.is_empty()).then_some(zones))
}

/// The number in a file; `None` if it is not there or may not be read.
fn number(path: &Path) -> Result<Option<u64>, SourceError> {
    let Ok(source) = SourceText::read(path.to_owned()) else { return Ok(None) };
    let line = source.lines().next().ok_or_else(|| source.ends_before("a number"))?;
    line.number(Some(line.text.trim()), "the energy").map(Some)
}
