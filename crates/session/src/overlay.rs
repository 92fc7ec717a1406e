//! `--set KEY=VALUE`: one value over a file.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use schemars::JsonSchema;
use toml::{Table, Value};

use crate::failure::{Failure, FailurePlace};
use crate::kinds::DEVICE_KINDS;
use crate::schema_keys::{KeyEntry, NETWORK, WORKLOAD, entries};

/// Keys of which a table has one: the second leaves where the first is set.
const EITHER: [(&str, &str); 2] = [("block_size", "block_sizes"), ("block_sizes", "block_size")];

/// One `--set`.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// As it was typed.
    argument: String,
    /// The text before the `=`.
    pub key: String,
    /// What the value means.
    value: Value,
}

impl Setting {
    /// Reads `KEY=VALUE`. The value is read as TOML; what is not TOML is a string.
    ///
    /// # Errors
    /// It is not KEY=VALUE.
    pub fn parse(argument: &str) -> Result<Setting, Failure> {
        let parts = argument.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) = parts.filter(|(key, _)| key.split('.').all(|p| !p.is_empty()))
        else {
            return Err(Failure::usage(format!("the setting `{argument}` is not KEY=VALUE"))
                .with_help("use the form flash.channels=4 or workload.depth=8")
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

    /// Whether a file of its kind has the key.
    pub(crate) fn is_known(&self) -> bool {
        self.file().keys.contains(self.local_key())
    }

    /// The keys of the kind of file that it is set over.
    fn file(&self) -> &'static FileKeys {
        match self.key.split_once('.') {
            Some(("workload", _)) => &WORKLOADS,
            Some(("network", _)) => &NETWORKS,
            _ => &DEVICE,
        }
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
        // A setting replaces keys with the same meaning in another form.
        if let Some((_, other)) = EITHER.iter().find(|(key, _)| *key == last) {
            inner.remove(*other);
        }
        inner.insert(last.to_owned(), self.value.clone());
    }

    /// Takes the value as people write it in a shell, where the key takes no such value as it is: `1e6` and `40k` for a whole
    /// number, `7%` for a share, `FIFO` for `fifo`, `8192` for a size of so many bytes.
    fn understand(&mut self) {
        let key = self.local_key();
        let entries = self.file().entries.iter().filter(|entry| entry.key == key);
        let understood = entries.filter_map(|entry| understood(&self.value, entry)).next();
        if let Some(value) = understood {
            self.value = value;
        }
    }
}

/// `value` as `entry` takes it; `None` where it means nothing else there.
fn understood(value: &Value, entry: &KeyEntry) -> Option<Value> {
    let is_whole = entry.form.contains("a whole number");
    let is_number = is_whole || entry.form.starts_with("a number");
    let number = |number: f64| match is_whole {
        true => {
            (number.fract() == 0.0 && number.abs() < 1e15).then_some(Value::Integer(number as i64))
        }
        false => is_number.then_some(Value::Float(number)),
    };
    let text = match value {
        Value::Float(given) if is_whole => return number(*given),
        // fio takes `bs=8192`, and a number in the place of a size can mean nothing but bytes.
        Value::Integer(given @ 0..) if entry.form.starts_with("a size") => {
            return Some(Value::String(format!("{given}B")));
        }
        Value::String(text) if !entry.words.iter().any(|word| word.word == *text) => text,
        _ => return None,
    };
    if let Some(share) = text.strip_suffix('%').and_then(|share| share.trim().parse::<f64>().ok()) {
        // A key in per cent has its unit in its name. `50%` of a rate or of a weight means nothing: the text stays, and
        // the file refuses it.
        return match entry.key.ends_with("percent") {
            true => number(share),
            false if entry.meaning.to_lowercase().contains("share") => number(share / 100.0),
            false => None,
        };
    }
    let factor = match text.chars().last()? {
        'k' | 'K' => 1e3,
        'M' => 1e6,
        'G' => 1e9,
        _ => {
            let low = text.to_lowercase().replace('_', "-");
            let word = entry.words.iter().find(|word| word.word.replace('_', "-") == low)?;
            return Some(Value::String(word.word.clone()));
        }
    };
    // A thousandth of a thousand is whole, whatever the multiplication leaves.
    let given = text[..text.len() - 1].parse::<f64>().ok()? * factor;
    number((given * 1e3).round() / 1e3)
}

/// All `--set`, checked.
///
/// # Errors
/// One is not KEY=VALUE, or its key is in no schema.
pub fn settings(arguments: &[String]) -> Result<Vec<Setting>, Failure> {
    let parse = |argument: &String| {
        let mut setting = Setting::parse(argument)?;
        setting.check()?;
        setting.understand();
        Ok(setting)
    };
    let settings = arguments.iter().map(parse).collect::<Result<Vec<Setting>, Failure>>()?;
    check_together(&settings)?;
    Ok(settings)
}

/// Refuses a value for a table of which a later setting sets a key: the table would replace the value without a word.
fn check_together(settings: &[Setting]) -> Result<(), Failure> {
    let below =
        |key: &str, of: &str| key.strip_prefix(of).is_some_and(|rest| rest.starts_with('.'));
    for (at, value) in settings.iter().enumerate().filter(|(_, one)| !one.value.is_table()) {
        let Some(later) = settings[at + 1..].iter().find(|later| below(&later.key, &value.key))
        else {
            continue;
        };
        let what = format!("`{}` is a table: `{}` is one of its keys", value.key, later.key);
        return Err(Failure::usage(what)
            .with_help(format!("`ssdyno explain {}` lists its keys; set one of them", value.key))
            .with_key(&value.key)
            .at(Some(value.place(false, "not a table"))));
    }
    Ok(())
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

/// The keys of some kind of file. Each schema takes a millisecond, and many runs may be resolved.
struct FileKeys {
    keys: BTreeSet<String>,
    entries: Vec<KeyEntry>,
}

impl FileKeys {
    fn of(entries: Vec<KeyEntry>) -> FileKeys {
        let keys = entries.iter().filter(|entry| entry.can_be_set());
        FileKeys { keys: keys.map(|entry| entry.key.clone()).collect(), entries }
    }

    fn of_type<T: JsonSchema>() -> FileKeys {
        FileKeys::of(entries(schemars::schema_for!(T).as_value()))
    }
}

static DEVICE: LazyLock<FileKeys> = LazyLock::new(|| {
    let kinds = DEVICE_KINDS.all().iter();
    FileKeys::of(kinds.flat_map(|kind| entries(kind.schema().as_value())).collect())
});
static NETWORKS: LazyLock<FileKeys> = LazyLock::new(FileKeys::of_type::<ssdyno_rig::NetworkConfig>);
static WORKLOADS: LazyLock<FileKeys> =
    LazyLock::new(FileKeys::of_type::<ssdyno_workload::WorkloadConfig>);

/// Every key of a device file, of whatever kind.
pub fn device_keys() -> &'static BTreeSet<String> {
    &DEVICE.keys
}

/// Every key of a host file.
pub(crate) fn host_keys() -> &'static BTreeSet<String> {
    static KEYS: LazyLock<FileKeys> = LazyLock::new(FileKeys::of_type::<ssdyno_host::HostConfig>);
    &KEYS.keys
}

/// Every key of a network file.
pub(crate) fn network_keys() -> &'static BTreeSet<String> {
    &NETWORKS.keys
}

/// Every key of a workload file.
pub fn workload_keys() -> &'static BTreeSet<String> {
    &WORKLOADS.keys
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
    fn values_are_understood_as_people_write_them() {
        let cases = [
            ("workload.depth=1e1", Value::Integer(10)),
            ("workload.requests=40k", Value::Integer(40_000)),
            ("workload.requests=1.5M", Value::Integer(1_500_000)),
            ("workload.read_percent=70%", Value::Float(70.0)),
            ("ftl.over_provisioning=7%", Value::Float(0.07)),
            ("ftl.cleaning=FIFO", Value::String("fifo".to_owned())),
            ("ftl.cleaning=Cost_Benefit", Value::String("cost-benefit".to_owned())),
            ("workload.arrivals.rate=20k", Value::Float(20_000.0)),
            // An impossible value stays, for the error that names it.
            ("workload.depth=1.5", Value::Float(1.5)),
            ("workload.depth=many", Value::String("many".to_owned())),
            ("workload.depth=1.5%", Value::String("1.5%".to_owned())),
            ("workload.arrivals.rate=50%", Value::String("50%".to_owned())),
            ("flash.endurance_spread=10%", Value::Float(0.1)),
            ("flash.page_size=4k", Value::String("4k".to_owned())),
            ("workload.block_size=8192", Value::String("8192B".to_owned())),
            ("workload.block_size=-1", Value::Integer(-1)),
            // A time without its unit could be seconds or milliseconds.
            ("flash.read_time=25", Value::Integer(25)),
            ("flash.read_time=25us", Value::String("25us".to_owned())),
            ("workload.buffer.compress=50%", Value::String("50%".to_owned())),
        ];
        for (argument, value) in cases {
            let read = settings(&[argument.to_owned()]).unwrap();
            assert_eq!(read[0].value, value, "{argument}");
        }
    }

    #[test]
    fn one_size_goes_over_several_and_back() {
        let mut table: Table = toml::from_str("block_sizes = [{ size = \"4KiB\" }]").unwrap();
        Setting::parse("workload.block_size=8k").unwrap().apply(&mut table);
        assert_eq!(table.keys().collect::<Vec<_>>(), ["block_size"]);
        Setting::parse("workload.block_sizes=[]").unwrap().apply(&mut table);
        assert_eq!(table.keys().collect::<Vec<_>>(), ["block_sizes"]);
    }

    #[test]
    fn a_value_for_a_table_is_refused_whatever_follows() {
        let given = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|one| (*one).to_owned()).collect();
            settings(&arguments).map_err(|failure| failure.message)
        };
        let told = "`workload.address` is a table: `workload.address.theta` is one of its keys";
        let wrong = ["workload.address=zipf", "workload.depth=4", "workload.address.theta=1.2"];
        assert_eq!(given(&wrong).unwrap_err(), told);
        let table = ["workload.address={ pattern = \"zipf\" }", "workload.address.theta=1.2"];
        assert!(given(&table).is_ok());
        assert!(given(&["workload.read_percent=70", "workload.requests=4"]).is_ok());
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
