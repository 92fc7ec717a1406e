//! The keys that a spec sets.

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
}
