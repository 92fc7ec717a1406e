//! RAPL zones below `/sys/class/powercap` (Documentation/power/powercap/powercap.rst) and sensors below
//! `/sys/class/hwmon` (Documentation/hwmon/sysfs-interface.rst).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::sources::{SourceError, SourceText, Sources};

/// Where a machine measures power. To look for the files takes longer than to read them, so a prober does it once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PowerSensors {
    /// Directories of RAPL zones, which count energy.
    zones: Vec<(String, PathBuf)>,
    /// Files of hwmon sensors, which measure power in microwatts.
    meters: Vec<(String, PathBuf)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PowerReading {
    /// Energy so far, and where the counter begins again at 0 if the zone says it.
    Counter { microjoules: u64, wraps_at: Option<u64> },
    /// Power now.
    Meter { microwatts: u64 },
}

impl PowerSensors {
    /// The sensors of the machine; having none is not an error.
    pub fn find(sources: &Sources) -> PowerSensors {
        let mut sensors = PowerSensors::default();
        for (place, zone) in entries(&sources.sys.join("class/powercap")) {
            // Some zones have a name and no counter of energy, such as the control type `intel-rapl` itself.
            // Only zones with the file `energy_uj` can be sampled.
            if zone.join("energy_uj").exists() {
                let name = first_line(zone.join("name"));
                // Two sockets have zones with the same name (`package-0` in two trees). The directory in brackets
                // makes the names unique, because the map has one entry for each name.
                let name = name.map_or_else(|| place.clone(), |name| format!("{name} ({place})"));
                sensors.zones.push((name, zone));
            }
        }
        let monitors = entries(&sources.sys.join("class/hwmon"));
        let drivers: Vec<Option<String>> =
            monitors.iter().map(|(_, monitor)| first_line(monitor.join("name"))).collect();
        for ((place, monitor), driver) in monitors.iter().zip(&drivers) {
            // Two graphics cards have monitors with the same name, that of their driver. The place makes the names
            // unique. It depends on the order in which the drivers started, so a single card keeps the short name.
            let name = match driver {
                Some(driver)
                    if drivers.iter().filter(|one| one.as_ref() == Some(driver)).count() > 1 =>
                {
                    format!("{driver} ({place})")
                }
                Some(driver) => driver.clone(),
                None => place.clone(),
            };
            for (file, path) in entries(monitor) {
                // A sensor has many files (`power1_cap`, `power1_label`, …). Only the
                // input and the average are measurements.
                let Some((power, "input" | "average")) = file.split_once('_') else { continue };
                let number = power.strip_prefix("power").unwrap_or_default();
                let sensor = format!("{name} {power}");
                // A sensor may have both files. The directory is sorted, so the average comes first and is kept: an
                // instantaneous value misses everything between two samples.
                let known = sensors.meters.last().is_some_and(|(other, _)| *other == sensor);
                if number.parse::<u16>().is_ok() && !known {
                    sensors.meters.push((sensor, path));
                }
            }
        }
        sensors
    }

    /// `None` if there is no readable sensor: since 2020 only root may read RAPL.
    pub(super) fn read(&self) -> Result<Option<BTreeMap<String, PowerReading>>, SourceError> {
        let mut readings = BTreeMap::new();
        for (name, zone) in &self.zones {
            // Since 2020 only root may read RAPL counters (CVE-2020-8694). A zone that cannot be read is missing
            // without an error, because the user can do nothing about each sample.
            let Some(microjoules) = number(zone.join("energy_uj"))? else { continue };
            let wraps_at = number(zone.join("max_energy_range_uj"))?;
            readings.insert(name.clone(), PowerReading::Counter { microjoules, wraps_at });
        }
        for (name, file) in &self.meters {
            let Some(microwatts) = number(file.clone())? else { continue };
            readings.insert(name.clone(), PowerReading::Meter { microwatts });
        }
        // A machine with sensors that nobody may read gives `None`, the same as a machine without sensors. An
        // empty map would look like a machine that draws no power.
        Ok((!readings.is_empty()).then_some(readings))
    }
}

/// Names and paths of what is in a directory, by name.
fn entries(directory: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut entries: Vec<(String, PathBuf)> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .collect();
    // The kernel lists a directory in any order. Sorted names keep the order of figures, and of the
    // rule for averages above, the same on each start.
    entries.sort_unstable();
    entries
}

fn first_line(file: PathBuf) -> Option<String> {
    let source = SourceText::read(file).ok()?;
    source.lines().next().map(|line| line.text.trim().to_owned())
}

/// The number in a file; `None` if it is not there or may not be read.
fn number(file: PathBuf) -> Result<Option<u64>, SourceError> {
    // A sensor may disappear between the search and the reading, for example with a
    // hot-plugged card. That is not an error of the other sensors.
    let Ok(source) = SourceText::read(file) else { return Ok(None) };
    let line = source.lines().next().ok_or_else(|| source.ends_before("a number"))?;
    line.number(Some(line.text.trim()), "the reading").map(Some)
}
