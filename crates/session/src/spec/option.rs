//! What is asked for in a spec, key by key, and what the command line calls it.

use serde::Serialize;
use serde_json::Value;

/// Every key of `part` that is not at its default, with its value, in the order of the shape; `table` is where
/// the part is in a [`RunSpec`](crate::RunSpec), empty for the whole of it. Without the version and the
/// contents of files.
pub fn given(table: &str, part: &impl Serialize) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    // A structure of named keys always has a JSON form.
    collect(table, serde_json::to_value(part).unwrap_or_default(), &mut found);
    found
}

fn collect(key: &str, value: Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(table) => {
            for (name, value) in table {
                let below = if key.is_empty() { name } else { format!("{key}.{name}") };
                if !["version", "contents"].contains(&below.as_str()) {
                    collect(&below, value, found);
                }
            }
        }
        value => found.push((key.to_owned(), value)),
    }
}

/// The option of the command line that stands for `key`, such as `--queues` for `host.queues`.
pub fn option_of(key: &str) -> String {
    let (table, last) = key.rsplit_once('.').unwrap_or(("", key));
    let name = match (table, last) {
        ("host", "name") => "host".to_owned(),
        ("write", "allowed") => "write".to_owned(),
        ("trace", "timing" | "beyond_end") => last.to_owned(),
        ("trace", _) => format!("trace-{last}"),
        _ => last.to_owned(),
    };
    format!("--{}", name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostSpec, RunSpec};

    #[test]
    fn only_what_differs_is_given() {
        let spec = RunSpec {
            host: HostSpec { cores: Some(4), namespaces: vec![2, 1], ..HostSpec::default() },
            ..RunSpec::default()
        };
        let all: Vec<String> =
            given("", &spec).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(all, ["seed=1", "host.cores=4", "host.namespaces=[2,1]"]);
        assert_eq!(given("host", &spec.host)[0].0, "host.cores");
        assert!(given("real", &spec.real).is_empty());
    }

    #[test]
    fn keys_have_the_names_of_options() {
        for (key, option) in [
            ("seed", "--seed"),
            ("host.name", "--host"),
            ("host.time_limit", "--time-limit"),
            ("trace.timing", "--timing"),
            ("trace.slot", "--trace-slot"),
            ("trace.beyond_end", "--beyond-end"),
            ("write.allowed", "--write"),
        ] {
            assert_eq!(option_of(key), option);
        }
    }
}
