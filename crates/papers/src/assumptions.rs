//! Values that a paper does not print: what we assume, how far that may be off, and what runs with
//! another value look like. The file is `papers/<paper>/assumptions.toml`.

use serde::Deserialize;
use ssdyno_session::Failure;
use toml::Value;

use crate::Vary;
use crate::error::{defect, parse};

/// `assumptions.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Assumptions {
    /// Values that claims may depend on.
    pub(crate) values: Vec<AssumedValue>,
    /// Assumed values that no claim is about.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for readers, and for the test of completeness")
    )]
    #[serde(default)]
    pub(crate) left_out: Vec<LeftOut>,
}

/// A value, or several that are varied together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AssumedValue {
    /// What it is, for people.
    pub(crate) name: String,
    /// Where it stands: `host.costs.copy`, with `host`, `device`, `network` or `plan` first.
    pub(crate) keys: Vec<String>,
    /// What is assumed; left out where all keys are varied as multiples of what the presets have.
    #[serde(default = "once")]
    pub(crate) assumed: f64,
    /// Unit of `assumed` as the preset writes it; left out with multiples.
    pub(crate) unit: Option<String>,
    /// Least and most that is plausible.
    pub(crate) range: [f64; 2],
    /// The value at which the effect is not put in, where there is one: a number as in `range`, or what
    /// the key is set to.
    pub(crate) neutral: Option<Value>,
    /// All values that are possible, where not all are.
    #[serde(default)]
    pub(crate) allowed: Vec<f64>,
    /// Source of the range.
    pub(crate) reason: String,
    /// Claims whose answer may depend on it.
    pub(crate) claims: Vec<String>,
}

/// Assumed values without influence on any claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), expect(dead_code, reason = "for readers, and for the test of completeness"))]
pub(crate) struct LeftOut {
    /// Keys; `*` at the end stands for all below.
    pub(crate) keys: Vec<String>,
    /// Why no claim is about them.
    pub(crate) reason: String,
}

fn once() -> f64 {
    1.0
}

/// A value that was tried.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Level {
    /// A number, or a multiple.
    Number(f64),
    /// Anything else: only where a value is neutral.
    Other(Value),
}

impl AssumedValue {
    /// Whether it is varied for `claim`.
    pub(crate) fn bears_on(&self, claim: &str, vary: Vary) -> bool {
        // The table names the claims for each value, so a run varies only what can matter.
        // `Vary::All` checks this table itself: it also varies values that are said to have no
        // influence.
        vary == Vary::All || self.claims.iter().any(|own| own == claim)
    }

    /// The neutral value.
    pub(crate) fn neutral(&self) -> Option<Level> {
        let neutral = self.neutral.as_ref()?;
        let number = neutral.as_float().or(neutral.as_integer().map(|whole| whole as f64));
        Some(number.map_or_else(|| Level::Other(neutral.clone()), Level::Number))
    }

    /// `level` as people read it.
    pub(crate) fn shown(&self, level: &Level) -> String {
        match (level, &self.unit) {
            (Level::Number(number), Some(unit)) => format!("{number} {unit}").trim_end().to_owned(),
            (Level::Number(number), None) => format!("{number} times"),
            (Level::Other(value), _) => value.to_string(),
        }
    }

    /// A possible value between two; `None` if there is none worth a run.
    pub(crate) fn between(&self, one: f64, other: f64) -> Option<f64> {
        let (least, most) = (one.min(other), one.max(other));
        if !self.allowed.is_empty() {
            let inside: Vec<f64> =
                self.allowed.iter().copied().filter(|v| *v > least && *v < most).collect();
            // Some values exist only in steps, such as 1, 2, 4 and 8 lanes. A value between two of
            // them would simulate a link that nobody can build.
            return inside.get(inside.len() / 2).copied();
        }
        // Ranges of costs span factors and not differences, so the geometric mean halves the range
        // in equal factors. A range that begins at zero has no such mean.
        let middle = if least > 0.0 { (least * most).sqrt() } else { (least + most) / 2.0 };
        // Two digits: the value that is shown is the one that is run.
        let power = 10f64.powf(middle.abs().log10().floor() - 1.0);
        let middle = ((middle / power).round() * power * 1e9).round() / 1e9;
        (middle > least * 1.02 && middle < most / 1.02).then_some(middle)
    }
}

/// What differs from the presets: nothing, or one value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changes<'a>(Option<(&'a AssumedValue, &'a Level)>);

impl<'a> Changes<'a> {
    /// Everything as assumed.
    pub(crate) fn none() -> Changes<'a> {
        Changes(None)
    }

    /// `value` at `level`.
    pub(crate) fn one(value: &'a AssumedValue, level: &'a Level) -> Changes<'a> {
        Changes(Some((value, level)))
    }

    /// Those of `seeds` that are run: all where everything is as assumed, three of them elsewhere, which
    /// is what an interval needs.
    pub(crate) fn seeds<'s>(&self, seeds: &'s [u64]) -> &'s [u64] {
        match self.0 {
            None => seeds,
            // An interval needs a standard deviation. Two seeds give one degree of freedom, with a
            // Student factor of 12.7 at 95 %; with three it is 4.3.
            Some(_) => &seeds[..seeds.len().min(3)],
        }
    }

    /// `text`, the contents of `file`, with what differs below `prefix`. A key that it does not have
    /// stays away: presets of several machines share a table of values.
    pub(crate) fn applied(&self, file: &str, prefix: &str, text: &str) -> Result<String, Failure> {
        let Some((value, level)) = self.0 else { return Ok(text.to_owned()) };
        let mut table: toml::Table = parse(file, text)?;
        for key in &value.keys {
            // A value can have keys in several files, for example a host and a device. Each file
            // takes only the keys with its own prefix.
            let Some(path) = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.'))
            else {
                continue;
            };
            if let Some(old) = entry(&mut table, path) {
                let wrong = || defect(file, format!("{key} cannot be varied"));
                *old = changed(old, level, value.unit.as_deref()).ok_or_else(wrong)?;
            }
        }
        Ok(table.to_string())
    }

    /// By how much `key`, which is worked out rather than read, is to be multiplied.
    pub(crate) fn factor(&self, key: &str) -> f64 {
        match self.0 {
            Some((value, Level::Number(factor)))
                // A derived value has no text in a preset, so it can only be multiplied. A value
                // with a unit replaces the text and must not also be applied as a factor.
                if value.unit.is_none() && value.keys.iter().any(|own| own == key) =>
            {
                *factor
            }
            _ => 1.0,
        }
    }
}

/// The value at `path`.
pub(crate) fn entry<'t>(table: &'t mut toml::Table, path: &str) -> Option<&'t mut Value> {
    let mut parts = path.split('.');
    let mut at = table.get_mut(parts.next()?)?;
    for part in parts {
        at = at.as_table_mut()?.get_mut(part)?;
    }
    Some(at)
}

/// What stands instead of `old`.
fn changed(old: &Value, level: &Level, unit: Option<&str>) -> Option<Value> {
    let number = match level {
        Level::Other(value) => return Some(value.clone()),
        Level::Number(number) => *number,
    };
    match (old, unit) {
        // A list such as the costs of a switch for 1, 2 and 3 sessions is scaled as a whole. Its
        // shape is printed (S4-39); only its level is assumed.
        (Value::Array(all), None) => {
            let each = all.iter().map(|one| changed(one, level, None)).collect::<Option<_>>();
            each.map(Value::Array)
        }
        (Value::Integer(old), None) => Some(Value::Integer((*old as f64 * number).round() as i64)),
        (Value::Integer(_), Some(_)) => Some(Value::Integer(number.round() as i64)),
        (Value::Float(old), None) => Some(Value::Float(old * number)),
        (Value::Float(_), Some(_)) => Some(Value::Float(number)),
        (Value::String(_), Some(unit)) => Some(Value::String(format!("{number}{unit}"))),
        (Value::String(old), None) => {
            let (digits, unit) = split(old)?;
            Some(Value::String(format!("{}{unit}", digits * number)))
        }
        _ => None,
    }
}

/// Number and unit of `2.2GB/s`.
pub(crate) fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(toml: &str) -> AssumedValue {
        toml::from_str(&format!("name = \"n\"\nreason = \"r\"\nclaims = []\n{toml}")).unwrap()
    }

    const TEXT: &str = "[costs]\ncopy = \"2.2GB/s\"\nread = \"0.8us\"\n[lock]\nweight = 2.5\n[link]\nlanes = 2\nswitch = [\"1us\", \"4us\"]\n";

    fn applied(value: &AssumedValue, level: Level) -> toml::Table {
        let text = Changes::one(value, &level).applied("f", "host", TEXT).unwrap();
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn a_value_is_set_and_several_are_scaled() {
        let weight =
            value("keys = [\"host.lock.weight\"]\nassumed = 2.5\nunit = \"\"\nrange = [1, 4]");
        assert_eq!(applied(&weight, Level::Number(1.0))["lock"]["weight"].as_float(), Some(1.0));
        let costs = value(
            "keys = [\"host.costs.copy\", \"host.costs.read\", \"host.link.switch\", \"host.no.such\", \"device.link.lanes\"]\nrange = [0.5, 2]\nneutral = [\"4us\"]",
        );
        let twice = applied(&costs, Level::Number(2.0));
        assert_eq!(twice["costs"]["copy"].as_str(), Some("4.4GB/s"));
        assert_eq!(twice["costs"]["read"].as_str(), Some("1.6us"));
        assert_eq!(twice["link"]["switch"].as_array().unwrap()[1].as_str(), Some("8us"));
        // Neither what is not there nor what belongs to another file.
        assert_eq!(twice["link"]["lanes"].as_integer(), Some(2));
        assert!(!twice.contains_key("no"));
        let lanes = value(
            "keys = [\"host.link.lanes\"]\nassumed = 2\nunit = \"\"\nrange = [1, 8]\nallowed = [1, 2, 4, 8]",
        );
        assert_eq!(applied(&lanes, Level::Number(4.0))["link"]["lanes"].as_integer(), Some(4));
        assert_eq!((lanes.between(2.0, 8.0), lanes.between(2.0, 4.0)), (Some(4.0), None));
        let switch = value("keys = [\"host.link.switch\"]\nrange = [0.5, 2]\nneutral = [\"4us\"]");
        let neutral = switch.neutral().unwrap();
        let one = applied(&switch, neutral);
        assert_eq!(one["link"]["switch"].as_array().map(Vec::len), Some(1));
        assert_eq!(Changes::none().applied("f", "host", TEXT).unwrap(), TEXT);
    }

    #[test]
    fn values_between_are_round_and_worth_a_run() {
        let weight = value("keys = []\nassumed = 2.5\nunit = \"\"\nrange = [1, 4]");
        assert_eq!(weight.between(2.5, 1.0), Some(1.6));
        assert_eq!(weight.between(1.6, 1.0), Some(1.3));
        assert_eq!(weight.between(1.01, 1.0), None);
        assert_eq!(weight.between(0.0, 1.0), Some(0.5));
        assert_eq!(weight.shown(&Level::Number(1.6)), "1.6");
        let copy = value("keys = []\nassumed = 2.2\nunit = \"GB/s\"\nrange = [1.1, 4.4]");
        assert_eq!(copy.shown(&Level::Number(1.1)), "1.1 GB/s");
        assert_eq!(value("keys = []\nrange = [0.5, 2]").shown(&Level::Number(0.5)), "0.5 times");
    }
}
