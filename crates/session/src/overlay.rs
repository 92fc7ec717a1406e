//! `--set KEY=VALUE`: one value over a file.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use toml::{Table, Value};

use crate::failure::{Failure, FailurePlace, in_place_of};
use crate::kinds::DEVICE_KINDS;
use crate::schema_keys::keys;

/// The prefix of keys that belong to the workload.
pub(crate) const WORKLOAD: &str = "workload.";

/// The prefix of keys that belong to the network.
pub(crate) const NETWORK: &str = "network.";

/// One `--set`.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// As it was typed.
    argument: String,
    /// What stands before the `=`.
    pub key: String,
    /// What the value means.
    value: Value,
}

impl Setting {
    /// Reads `KEY=VALUE`. The value is read as TOML; what is no TOML is a string.
    ///
    /// # Errors
    /// It is not KEY=VALUE.
    pub fn parse(argument: &str) -> Result<Setting, Failure> {
        let parts = argument.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) = parts.filter(|(key, _)| key.split('.').all(|p| !p.is_empty()))
        else {
            return Err(Failure::usage(format!("the setting `{argument}` is not KEY=VALUE"))
                .with_help("write it as flash.channels=4 or workload.depth=8")
                .with_key(argument.split('=').next().unwrap_or_default()));
        };
        Ok(Setting { argument: argument.to_owned(), key: key.to_owned(), value: read(value) })
    }

    /// The argument, with its key or its value marked.
    pub(crate) fn place(&self, of_key: bool, label: &str) -> FailurePlace {
        let equals = self.argument.find('=').unwrap_or(self.argument.len());
        let span = if of_key { 0..equals } else { equals + 1..self.argument.len() };
        FailurePlace {
            name: "set".to_owned(),
            text: self.argument.clone(),
            span,
            first_line: 1,
            label: label.to_owned(),
            is_file: false,
        }
    }

    /// The key without the prefix `workload.` or `network.`.
    fn local_key(&self) -> &str {
        let strip = |prefix| self.key.strip_prefix(prefix);
        strip(WORKLOAD).or_else(|| strip(NETWORK)).unwrap_or(&self.key)
    }

    /// Whether it is of the device: of neither workload nor network.
    pub(crate) fn is_of_device(&self) -> bool {
        !self.key.starts_with(WORKLOAD) && !self.key.starts_with(NETWORK)
    }

    /// Whether it decides about `path`: it sets the key, one above or one below it.
    pub(crate) fn touches(&self, path: &[String]) -> bool {
        let own: Vec<&str> = self.local_key().split('.').collect();
        own.iter().zip(path).all(|(own, other)| own == other) && own.len() <= path.len()
    }

    /// Puts the value into its place; tables on the way are made.
    pub(crate) fn apply(&self, table: &mut Table) {
        let mut parts: Vec<&str> = self.local_key().split('.').collect();
        let Some(last) = parts.pop() else { return };
        let mut inner = table;
        for part in parts {
            let entry = inner.entry(part).or_insert_with(|| Value::Table(Table::new()));
            if !entry.is_table() {
                // The schema says that it is a table: what the file has there is wrong anyway.
                *entry = Value::Table(Table::new());
            }
            let Value::Table(next) = entry else { return };
            inner = next;
        }
        inner.insert(last.to_owned(), self.value.clone());
    }

    /// Refuses a key that is in no schema, with the nearest that is.
    ///
    /// # Errors
    /// The key is in no schema.
    pub fn check(&self) -> Result<(), Failure> {
        let own = match self.key.split_once('.') {
            Some(("workload", _)) => workload_keys(),
            Some(("network", _)) => network_keys(),
            _ => device_keys(),
        };
        if own.contains(self.local_key()) {
            return Ok(());
        }
        let mut known = device_keys().clone();
        known.extend(workload_keys().iter().map(|key| format!("{WORKLOAD}{key}")));
        known.extend(network_keys().iter().map(|key| format!("{NETWORK}{key}")));
        let of_workload = known.get(&format!("{WORKLOAD}{}", self.key)).map(String::as_str);
        let of_workload = of_workload.map(|key| format!("did you mean `{key}`?"));
        let help = of_workload
            .or_else(|| in_place_of(&self.key, &known))
            .unwrap_or_else(|| "`ssdyno explain` lists all keys".to_owned());
        Err(Failure::usage(format!("there is no key `{}`", self.key))
            .with_help(help)
            .with_key(&self.key)
            .at(Some(self.place(true, "unknown key"))))
    }
}

/// All `--set`, checked.
///
/// # Errors
/// One is not KEY=VALUE, or its key is in no schema.
pub fn settings(arguments: &[String]) -> Result<Vec<Setting>, Failure> {
    let parse = |argument: &String| {
        let setting = Setting::parse(argument)?;
        setting.check()?;
        Ok(setting)
    };
    arguments.iter().map(parse).collect()
}

/// Refuses settings of the workload for `what`, which has none.
///
/// # Errors
/// There is one.
pub fn refuse_workload_keys(settings: &[Setting], what: &str, help: &str) -> Result<(), Failure> {
    match settings.iter().find(|setting| setting.key.starts_with(WORKLOAD)) {
        None => Ok(()),
        Some(setting) => Err(Failure::usage(format!("{what} has no key `{}`", setting.key))
            .with_help(help)
            .with_key(&setting.key)
            .at(Some(setting.place(true, "no effect here")))),
    }
}

fn read(text: &str) -> Value {
    let table: Option<Table> = toml::from_str(&format!("value = {text}")).ok();
    // More than one key: the text had a line of its own.
    let alone = table.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    // TOML has no `.5`.
    let number = || text.strip_prefix('.').and_then(|_| text.parse().ok()).map(Value::Float);
    alone.or_else(number).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Every key of a device file, of whatever kind. Each schema takes a millisecond, and many runs may be resolved.
pub fn device_keys() -> &'static BTreeSet<String> {
    static KEYS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        DEVICE_KINDS.all().iter().flat_map(|kind| keys(kind.schema().as_value())).collect()
    });
    &KEYS
}

/// Every key of a host file.
pub(crate) fn host_keys() -> &'static BTreeSet<String> {
    static KEYS: LazyLock<BTreeSet<String>> =
        LazyLock::new(|| keys(schemars::schema_for!(ssdyno_host::HostConfig).as_value()));
    &KEYS
}

/// Every key of a network file.
pub(crate) fn network_keys() -> &'static BTreeSet<String> {
    static KEYS: LazyLock<BTreeSet<String>> =
        LazyLock::new(|| keys(schemars::schema_for!(ssdyno_rig::NetworkConfig).as_value()));
    &KEYS
}

/// Every key of a workload file.
pub fn workload_keys() -> &'static BTreeSet<String> {
    static KEYS: LazyLock<BTreeSet<String>> =
        LazyLock::new(|| keys(schemars::schema_for!(ssdyno_workload::WorkloadConfig).as_value()));
    &KEYS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_toml_or_text() {
        assert_eq!(read("4"), Value::Integer(4));
        assert_eq!(read("0.5"), Value::Float(0.5));
        assert_eq!(read(".05"), Value::Float(0.05));
        assert_eq!(read("./file"), Value::String("./file".into()));
        assert_eq!(read("true"), Value::Boolean(true));
        assert_eq!(read("\"4\""), Value::String("4".into()));
        assert_eq!(read("25us"), Value::String("25us".into()));
        assert_eq!(read("fifo"), Value::String("fifo".into()));
        assert_eq!(read("1\nother = 2"), Value::String("1\nother = 2".into()));
        assert_eq!(read("[1, 2]").as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn keys_come_from_the_schemas() {
        let device = device_keys();
        for key in ["flash.channels", "ftl.cleaning", "host_link.kind", "host_link.lanes"] {
            assert!(device.contains(key), "{key} in {device:?}");
        }
        let workload = workload_keys();
        for key in ["depth", "address.theta", "arrivals.rate"] {
            assert!(workload.contains(key), "{key} in {workload:?}");
        }
    }

    #[test]
    fn settings_make_tables_on_the_way() {
        let mut table = Table::new();
        for argument in ["a.b=1", "a.c=x", "a.b=2", "workload.d=3"] {
            Setting::parse(argument).unwrap().apply(&mut table);
        }
        assert_eq!(table.to_string().replace('\n', " "), "d = 3  [a] b = 2 c = \"x\" ");
    }

    #[test]
    fn nonsense_is_refused() {
        for argument in ["", "flash.channels", "=4", "flash..x=1", ".=1"] {
            assert_eq!(
                Setting::parse(argument).unwrap_err().kind,
                crate::failure::FailureKind::Usage
            );
        }
        let error = Setting::parse("flash.chanels=4").unwrap().check().unwrap_err();
        assert_eq!(error.help.as_deref(), Some("did you mean `flash.channels`?"));
        let error = Setting::parse("depth=4").unwrap().check().unwrap_err();
        assert!(error.help.is_some_and(|h| h.contains("depth`?")));
    }
}
