//! Presets of the program that papers start from, perhaps with keys of their own.

use std::collections::BTreeMap;

use crate::PaperError;
use crate::assumptions::Changes;
use crate::error::defect;

/// A preset of the program.
#[derive(Clone, Debug)]
pub(crate) struct PresetFile {
    /// Its path, for messages.
    pub(crate) file: String,
    pub(crate) text: &'static str,
}

/// The device called `name`.
pub(crate) fn device(name: &str) -> Result<PresetFile, PaperError> {
    let text = ssdyno_device::presets::find(name).map(|preset| preset.text);
    found(format!("presets/devices/{name}.toml"), text)
}

/// The host called `name`.
pub(crate) fn host(name: &str) -> Result<PresetFile, PaperError> {
    let text = ssdyno_host::presets::find(name).map(|preset| preset.text);
    found(format!("presets/hosts/{name}.toml"), text)
}

fn found(file: String, text: Option<&'static str>) -> Result<PresetFile, PaperError> {
    match text {
        Some(text) => Ok(PresetFile { file, text }),
        None => Err(defect(&file, "there is no such preset")),
    }
}

impl PresetFile {
    /// Its configuration, read by `parse`.
    pub(crate) fn read<T, E: ToString>(
        &self,
        parse: impl Fn(&'static str) -> Result<T, E>,
    ) -> Result<T, PaperError> {
        parse(self.text).map_err(|error| defect(&self.file, error))
    }

    /// The host that it describes, with what differs in `host.…`.
    pub(crate) fn host_with(
        &self,
        changes: Changes<'_>,
    ) -> Result<ssdyno_host::HostConfig, PaperError> {
        let text = changes.applied(&self.file, "host", self.text)?;
        ssdyno_host::HostConfig::parse(&text).map_err(|error| defect(&self.file, error))
    }

    /// Its text without the tables `without`, and with the keys of `changes`, by table.
    pub(crate) fn changed(
        &self,
        without: &[String],
        changes: &BTreeMap<String, toml::Table>,
    ) -> Result<String, PaperError> {
        let mut table: toml::Table = self.read(toml::from_str)?;
        table.retain(|key, _| !without.iter().any(|name| name == key));
        for (key, changes) in changes {
            let old = table.entry(key.clone()).or_insert_with(|| toml::Table::new().into());
            if let Some(old) = old.as_table_mut() {
                old.extend(changes.clone());
            }
        }
        Ok(table.to_string())
    }
}
