//! Presets of the program that papers start from, perhaps with keys of their own.

use std::collections::BTreeMap;

use ssdyno_session::Failure;
use toml::Table;

use crate::assumptions::Changes;
use crate::error::{defect, parse};

/// A preset of the program.
#[derive(Clone, Debug)]
pub(crate) struct PresetFile {
    /// Its path, for messages.
    pub(crate) file: String,
    pub(crate) text: &'static str,
}

/// The device called `name`.
pub(crate) fn device(name: &str) -> Result<PresetFile, Failure> {
    let text = ssdyno_session::DEVICE_KINDS.find(name).map(|preset| preset.text);
    found(format!("presets/devices/{name}.toml"), text)
}

/// The network of S4's table 4.
pub(crate) fn network() -> PresetFile {
    let text = include_str!("../presets/networks/s4-iscsi.toml");
    PresetFile { file: "presets/networks/s4-iscsi.toml".to_owned(), text }
}

/// The host called `name`.
pub(crate) fn host(name: &str) -> Result<PresetFile, Failure> {
    let text = ssdyno_host::presets::find(name).map(|preset| preset.text);
    found(format!("presets/hosts/{name}.toml"), text)
}

fn found(file: String, text: Option<&'static str>) -> Result<PresetFile, Failure> {
    match text {
        Some(text) => Ok(PresetFile { file, text }),
        None => Err(defect(&file, "there is no such preset")),
    }
}

impl PresetFile {
    /// Its configuration, read by `parse`.
    pub(crate) fn read<T, E: std::fmt::Display>(
        &self,
        parse: impl Fn(&'static str) -> Result<T, E>,
    ) -> Result<T, Failure> {
        parse(self.text).map_err(|error| defect(&self.file, error))
    }

    /// Its keys, with what differs in `part.…`.
    pub(crate) fn table(&self, part: &str, changes: Changes<'_>) -> Result<Table, Failure> {
        parse(&self.file, &changes.applied(&self.file, part, self.text)?)
    }

    /// Its text without the tables `without`, and with the keys of `changes`, by table.
    pub(crate) fn changed(
        &self,
        without: &[String],
        changes: &BTreeMap<String, Table>,
    ) -> Result<String, Failure> {
        let mut table: Table = self.read(toml::from_str)?;
        // Tables are removed before the changes are applied. A plan can thus replace a table as a
        // whole instead of merging with the keys of the preset.
        table.retain(|key, _| !without.iter().any(|name| name == key));
        for (key, changes) in changes {
            let old = table.entry(key.clone()).or_insert_with(|| Table::new().into());
            if let Some(old) = old.as_table_mut() {
                old.extend(changes.clone());
            }
        }
        Ok(table.to_string())
    }
}
