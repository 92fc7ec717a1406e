//! Many specs from one: keys whose values are varied.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::spec::RunSpec;

/// Runs of a grid, at the most: more are a mistake, and take their memory before the first begins.
const RUNS_MAX: usize = 1_000_000;

/// Keys of a spec that are tables.
const TABLES: [&str; 4] = ["trace", "host", "real", "write"];

/// Keys of a spec that have one value.
const VALUES: [&str; 9] =
    ["target", "workload", "fio", "seed", "for", "requests", "until", "keep", "interval"];

/// A spec, and keys of it whose values are varied: each value of one with each of the others.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpecGrid {
    /// What all runs have in common.
    pub base: RunSpec,
    /// What is varied. The last one varies fastest: that is the order of the runs.
    pub axes: Vec<GridAxis>,
}

/// A key, and the values that it takes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GridAxis {
    /// A key of a spec (`target`, `seed`, `host.queues`), or one that `set` takes (`flash.channels`,
    /// `workload.depth`, `network.faults.drop`).
    pub key: String,
    /// Its values, one or more.
    pub values: Vec<Value>,
}

impl SpecGrid {
    /// The spec of each run, in order.
    ///
    /// # Errors
    /// An axis has no value, a value does not fit its key, or there are too many.
    pub fn specs(&self) -> Result<Vec<RunSpec>, Failure> {
        let mut specs = vec![self.base.clone()];
        for GridAxis { key, values } in &self.axes {
            if values.is_empty() {
                return Err(Failure::usage(format!("the axis `{key}` has no values"))
                    .with_help("give it one or more, or leave it out")
                    .with_key(key));
            }
            if specs.len().saturating_mul(values.len()) > RUNS_MAX {
                return Err(Failure::usage(format!("the grid has more than {RUNS_MAX} runs"))
                    .with_help("leave out values, or an axis")
                    .with_key(key));
            }
            let of_one = |spec: &RunSpec| {
                values.iter().map(|value| spec.with(key, value)).collect::<Result<Vec<_>, _>>()
            };
            let varied = specs.iter().map(of_one).collect::<Result<Vec<_>, _>>()?;
            specs = varied.into_iter().flatten().collect();
        }
        Ok(specs)
    }
}

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Queues, Unattended, resolve};

    fn axis(key: &str, values: &[Value]) -> GridAxis {
        GridAxis { key: key.to_owned(), values: values.to_vec() }
    }

    fn grid(axes: Vec<GridAxis>) -> SpecGrid {
        let requests = Some(100);
        SpecGrid { base: RunSpec { requests, ..RunSpec::default() }, axes }
    }

    #[test]
    fn each_value_meets_each_other_and_the_last_axis_varies_fastest() {
        let all = grid(vec![
            axis("target", &[json!("sim:config-a"), json!("sim:nvme-tlc")]),
            axis("host.queues", &[json!("per-core"), json!("single")]),
            axis("flash.read_time", &[json!("25us"), json!("40us"), json!("60us")]),
        ]);
        let specs = all.specs().unwrap();
        assert_eq!(specs.len(), 12);
        assert!(specs.iter().all(|spec| spec.requests == Some(100)));
        let told = |at: usize| {
            let spec = &specs[at];
            (spec.target(), spec.host.queues, spec.set.join(" "))
        };
        assert_eq!(
            told(0),
            ("sim:config-a", Some(Queues::PerCore), "flash.read_time=\"25us\"".into())
        );
        assert_eq!(told(1).2, "flash.read_time=\"40us\"");
        assert_eq!((told(3).1, told(6).0), (Some(Queues::Single), "sim:nvme-tlc"));
        // They are specs as others are.
        assert!(resolve(&specs[11], &mut Unattended).is_ok());
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<SpecGrid>(&text).unwrap(), all);
        assert_eq!(grid(Vec::new()).specs().unwrap(), [grid(Vec::new()).base]);
    }

    #[test]
    fn what_is_wrong_names_its_key() {
        let key = |axes| grid(axes).specs().unwrap_err().key.unwrap();
        assert_eq!(key(vec![axis("seed", &[])]), "seed");
        assert_eq!(key(vec![axis("seed", &[json!(1), json!("two")])]), "seed");
        assert_eq!(key(vec![axis("host.colour", &[json!(1)])]), "host.colour");
        let many: Vec<Value> = (0..2000).map(Value::from).collect();
        assert_eq!(key(vec![axis("seed", &many), axis("requests", &many[1..])]), "requests");
        // A key of no schema is found when the spec is resolved.
        let specs = grid(vec![axis("flash.chanels", &[json!(1)])]).specs().unwrap();
        assert_eq!(resolve(&specs[0], &mut Unattended).unwrap_err().key.unwrap(), "flash.chanels");
    }
}
