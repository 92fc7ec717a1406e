//! A spec with another value of one key.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use schemars::schema_for;
use serde_json::Value;

use super::RunSpec;
use crate::failure::Failure;
use crate::schema_keys::keys;

/// Keys of a spec that are tables.
const TABLES: [&str; 4] = ["trace", "host", "real", "write"];

/// Keys of a spec that have one value.
const VALUES: [&str; 10] =
    ["target", "workload", "fio", "seed", "for", "requests", "until", "keep", "interval", "why"];

impl RunSpec {
    /// This spec with `value` for `key`: a key of a spec (`target`, `seed`, `host.queues`), or one that `set` takes
    /// (`flash.channels`, `workload.depth`).
    ///
    /// # Errors
    /// The value does not fit the key.
    pub fn with(&self, key: &str, value: &Value) -> Result<RunSpec, Failure> {
        let refused = |error: String| {
            Failure::usage(format!("`{key}` cannot be {value}: {error}"))
                .with_help("`ssdyno schema spec` has the keys of a spec and their values")
                .with_key(key)
        };
        let (table, last) = match key.split_once('.') {
            None if VALUES.contains(&key) => (None, key),
            None if TABLES.contains(&key) => return Err(without_key(key)),
            Some((table, last)) if TABLES.contains(&table) => (Some(table), last),
            _ => {
                // The last setting of a key wins.
                let value =
                    toml::Value::try_from(value).map_err(|error| refused(error.to_string()))?;
                let mut spec = self.clone();
                spec.set.push(format!("{key}={value}"));
                return Ok(spec);
            }
        };
        let mut whole = serde_json::to_value(self).map_err(|error| refused(error.to_string()))?;
        let inner = match table {
            Some(table) => &mut whole[table],
            None => &mut whole,
        };
        // A table that is left out is not there yet.
        inner[last] = value.clone();
        serde_json::from_value(whole).map_err(|error| refused(error.to_string()))
    }
}

/// Every key in a table of a spec, such as `host.queues`, without the contents of files.
pub fn keys_in_tables() -> &'static BTreeSet<String> {
    static KEYS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let table = |key: &String| key.split_once('.').map(|(table, _)| table.to_owned());
        let mut all = keys(&schema_for!(RunSpec).to_value());
        all.retain(|key| table(key).is_some_and(|table| TABLES.contains(&table.as_str())));
        all
    });
    &KEYS
}

/// The failure of a table that is given a value.
fn without_key(table: &str) -> Failure {
    let is_own = |key: &&String| key.split_once('.').is_some_and(|(before, _)| before == table);
    let own: Vec<&str> = keys_in_tables().iter().filter(is_own).map(String::as_str).collect();
    Failure::usage(format!("`{table}` is a table of keys and has no value itself"))
        .with_help(format!("use one of its keys: {}", own.join(", ")))
        .with_key(table)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Queues, Unattended, resolve};

    #[test]
    fn keys_of_a_spec_and_of_what_set_takes() {
        let base = RunSpec { requests: Some(100), ..RunSpec::default() };
        let spec = base.with("target", &json!("sim:nvme-tlc")).unwrap();
        let spec = spec.with("host.queues", &json!("single")).unwrap();
        let spec = spec.with("flash.read_time", &json!("25us")).unwrap();
        assert_eq!((spec.target(), spec.host.queues), ("sim:nvme-tlc", Some(Queues::Single)));
        assert_eq!(
            (spec.set.join(" "), spec.requests),
            ("flash.read_time=\"25us\"".into(), Some(100))
        );
        // It is a spec as others are.
        assert!(resolve(&spec, &mut Unattended).is_ok());
    }

    #[test]
    fn what_is_wrong_names_its_key() {
        let with = |key: &str, value| RunSpec::default().with(key, &value);
        for (key, value) in [("seed", json!("two")), ("host.colour", json!(1))] {
            assert_eq!(with(key, value).unwrap_err().key.unwrap(), key);
        }
        let table = with("host", json!("server")).unwrap_err();
        assert_eq!(table.key.as_deref(), Some("host"));
        let help = table.help.unwrap();
        assert!(help.contains("host.name") && !help.contains("real.jobs"), "{help}");
        // A key of no schema is found when the spec is resolved.
        let spec = with("flash.chanels", json!(1)).unwrap();
        assert_eq!(resolve(&spec, &mut Unattended).unwrap_err().key.unwrap(), "flash.chanels");
    }
}
