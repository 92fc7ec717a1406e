//! A key and the values that it takes: `flash.channels=4,8,16`, `ftl.over_provisioning=0.07..0.28/5`.

use std::fmt;
use std::str::FromStr;

use serde_json::{Number, Value};
use ssdyno_block::text_form;

use crate::swept::{RATE, plain_rates, whole_key};

/// Values of one axis at the most. More are a mistake: a range with a step that is too small.
const VALUES_MAX: usize = 100_000;

/// Positions of a range without steps, for a search.
const POSITIONS: u32 = 1001;

/// A key of a spec or of what `set` takes, and its values.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    key: String,
    /// As it was typed, which [`Display`](fmt::Display) gives back.
    typed: String,
    values: Values,
}

#[derive(Clone, PartialEq, Debug)]
enum Values {
    /// One or more.
    List(Vec<Value>),
    /// Anything from `low` to `high`, for designs that are drawn.
    Range { low: f64, high: f64, form: Form },
}

/// How a number of a range is written.
#[derive(Clone, PartialEq, Debug)]
struct Form {
    /// What follows the number, such as `us`; with it values are texts.
    unit: String,
    /// Both ends are whole numbers, so the values are.
    is_whole: bool,
}

impl Form {
    fn value(&self, number: f64) -> Value {
        // A whole number must stay whole, because a key such as `flash.channels` refuses 4.0. A
        // fraction loses the digits that only rounding put there.
        let rounded = if self.is_whole { number.round() } else { shortened(number) };
        if !self.unit.is_empty() {
            return Value::String(format!("{rounded}{}", self.unit));
        }
        match self.is_whole {
            true => Value::Number(Number::from(rounded as i64)),
            false => Number::from_f64(rounded).map_or(Value::Null, Value::Number),
        }
    }
}

/// `number` with twelve significant digits: 0.07 + 3 x 0.0525 is 0.2275, not 0.22750000000000004.
fn shortened(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}

impl Axis {
    /// The key that is varied.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How many values the axis has; `None` of a range without steps.
    pub fn count(&self) -> Option<usize> {
        match &self.values {
            Values::List(values) => Some(values.len()),
            Values::Range { .. } => None,
        }
    }

    /// The value with this number, from 0; of a range without steps, and beyond the last, there is none.
    pub fn value(&self, number: usize) -> Option<&Value> {
        match &self.values {
            Values::List(values) => values.get(number),
            Values::Range { .. } => None,
        }
    }

    /// How many values a search tells apart: those of a list, the whole numbers of a range, or evenly spaced ones.
    pub(crate) fn positions(&self) -> u32 {
        match &self.values {
            Values::List(values) => values.len() as u32,
            // A range of five whole numbers has five positions. With 1001 positions a search would run each
            // design hundreds of times under different names.
            Values::Range { low, high, form } if form.is_whole => {
                (high - low + 1.0).min(f64::from(POSITIONS)) as u32
            }
            Values::Range { .. } => POSITIONS,
        }
    }

    /// The value at this position.
    pub(crate) fn at_position(&self, position: u32) -> Value {
        match &self.values {
            Values::List(values) => values[position as usize].clone(),
            Values::Range { low, high, form } => {
                // The last position must be exactly the high end. `max(1.0)` only guards a range
                // with a single position, whose share is 0.
                let share = f64::from(position) / f64::from(self.positions() - 1).max(1.0);
                form.value(low + share * (high - low))
            }
        }
    }

    /// Whether values at near positions are alike: numbers and ranges, not names.
    pub(crate) fn is_ordered(&self) -> bool {
        match &self.values {
            Values::List(values) => {
                // A list that came from a range has an order, even if its values are texts with
                // units. Names such as `greedy,random` have none.
                self.typed.contains("..") || values.iter().all(Value::is_number)
            }
            Values::Range { .. } => true,
        }
    }

    /// The value at `share` of the axis, 0 to 1: each value of a list has the same part of it.
    pub fn at(&self, share: f64) -> Value {
        let share = share.clamp(0.0, 1.0);
        match &self.values {
            Values::List(values) => {
                // Each value has the same part of the interval from 0 to 1. A share of exactly 1
                // belongs to the last value and not beyond it.
                let number = ((share * values.len() as f64) as usize).min(values.len() - 1);
                values[number].clone()
            }
            // Every whole number has the same part, also the two at the ends. Rounding `low + share *
            // (high - low)` would give the ends only half of it.
            Values::Range { low, high, form } if form.is_whole => {
                let number = low - 0.5 + share * (high - low + 1.0);
                form.value(number.round().clamp(*low, *high))
            }
            Values::Range { low, high, form } => form.value(low + share * (high - low)),
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Axis, String> {
        let (key, values) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` is not KEY=VALUES, such as flash.channels=4,8,16"))?;
        let key = whole_key(key.trim());
        if key.is_empty() {
            return Err(format!("`{text}` has no key before the `=`"));
        }
        // `5k` would be 5120 of bytes, and `9.9k` no whole number of them.
        let values = if key == RATE { &plain_rates(values) } else { values };
        let values = match values.split_once("..") {
            // `../a.toml,./b.toml` is a list of paths.
            Some((low, high)) if !high.starts_with('/') => range(key, low.trim(), high.trim())?,
            _ => Values::List(list(key, values)?),
        };
        Ok(Axis { key: key.to_owned(), typed: text.trim().to_owned(), values })
    }
}

text_form!(
    Axis,
    "a key and its values, such as \"flash.channels=4,8,16\" or \"ftl.over_provisioning=0.07..0.28/5\"",
    "^[^=]+=.+$"
);

fn list(key: &str, text: &str) -> Result<Vec<Value>, String> {
    let values: Vec<&str> = text.split(',').map(str::trim).collect();
    if let Some(at) = values.iter().position(|value| value.is_empty()) {
        return Err(format!("value {} of `{key}` is empty", at + 1));
    }
    // A value that is listed twice would make two designs with equal specs. Their figures are equal,
    // and the effects of the axis would count them twice.
    if let Some(twice) = (1..values.len()).find(|at| values[..*at].contains(&values[*at])) {
        return Err(format!("`{key}` has the value {} twice", values[twice]));
    }
    values.into_iter().map(|value| one(key, value)).collect()
}

/// `true`, a number, a text in quotes, or the text itself.
fn one(key: &str, text: &str) -> Result<Value, String> {
    // TOML decides what a value is, as in a file. A bare word such as `greedy`
    // is not TOML, and is then taken as text.
    let as_toml: Option<toml::Table> = toml::from_str(&format!("value = {text}")).ok();
    let value = as_toml.and_then(|mut table| table.remove("value"));
    let value = value.unwrap_or_else(|| toml::Value::String(text.to_owned()));
    // TOML knows `inf` and `nan`, and JSON does not. The design would get the
    // value `null`, which means something else.
    if value.as_float().is_some_and(|number| !number.is_finite()) {
        return Err(format!("`{key}` cannot be {text}: that is not a number"));
    }
    serde_json::to_value(value).map_err(|error| format!("`{key}` cannot be {text}: {error}"))
}

/// What follows `..`: the end, and `/N` values or `*F` from one to the next.
enum Steps {
    Count(usize),
    Factor(f64),
}

fn range(key: &str, low: &str, rest: &str) -> Result<Values, String> {
    let (high, steps) = match (rest.split_once('/'), rest.split_once('*')) {
        // `333MB/s` is a unit with a slash. The slash begins a number of values
        // only if a number follows the last one.
        (Some(_), _)
            if rest.rsplit('/').next().is_some_and(|n| n.trim().parse::<f64>().is_ok()) =>
        {
            let (high, count) = rest.rsplit_once('/').unwrap_or((rest, ""));
            let count = count.trim().parse().ok().filter(|count| (2..=VALUES_MAX).contains(count));
            let count = count.ok_or_else(|| {
                format!("`{key}`: after the `/`, write the number of values, 2 to {VALUES_MAX}")
            })?;
            (high, Some(Steps::Count(count)))
        }
        (_, Some((high, factor))) => {
            let factor = factor.trim().parse().ok().filter(|f: &f64| *f > 1.0 && f.is_finite());
            let factor = factor.ok_or_else(|| {
                format!("`{key}`: after the `*`, write a factor above 1, such as 2")
            })?;
            (high, Some(Steps::Factor(factor)))
        }
        _ => (rest, None),
    };
    let ((low, low_unit), (high, high_unit)) = (number(key, low)?, number(key, high.trim())?);
    // `1..25us` means 1us to 25us. A unit on the first end alone would be
    // ambiguous: `1us..25` could mean 25 s.
    if !low_unit.is_empty() && low_unit != high_unit {
        return Err(format!(
            "`{key}`: both ends need the same unit, not `{low_unit}` and `{high_unit}`"
        ));
    }
    if low.value >= high.value {
        return Err(format!("`{key}`: the first end of a range must be below the second"));
    }
    let form = Form { unit: high_unit.to_owned(), is_whole: low.is_whole && high.is_whole };
    let (low, high) = (low.value, high.value);
    if let Some(Steps::Count(count)) = steps
        && form.is_whole
        && high - low + 1.0 < count as f64
    {
        // Rounded values would coincide, and the sweep would have fewer designs than the user asked for. The
        // message gives both remedies: fewer values, or fractions.
        let most = high - low + 1.0;
        return Err(format!(
            "`{key}`: there are {most} whole numbers from {low} to {high}, not {count}; write `/{most}`, or \
             give the ends a decimal point (`{low:.1}{high_unit}..{high:.1}{high_unit}/{count}`) to get fractions"
        ));
    }
    let numbers: Vec<f64> = match steps {
        None => return Ok(Values::Range { low, high, form }),
        Some(Steps::Count(count)) => {
            let step = (high - low) / (count - 1) as f64;
            (0..count)
                // The last value is exactly the end that was typed. The sum of steps could miss it by a
                // rounding error and show 0.27999999999999997.
                .map(|at| if at + 1 == count { high } else { low + step * at as f64 })
                .collect()
        }
        Some(Steps::Factor(_)) if low <= 0.0 => {
            return Err(format!("`{key}`: a range with a factor must begin above 0"));
        }
        Some(Steps::Factor(factor)) => {
            // The logarithm of an exact power can be slightly too small. The tolerance lets
            // `1..256*2` end with 256 and not with 128.
            let most = ((high / low).ln() / factor.ln() + 1e-9) as usize;
            if most >= VALUES_MAX {
                return Err(format!(
                    "`{key}` has more than {VALUES_MAX} values: use a larger factor"
                ));
            }
            (0..=most).map(|at| low * factor.powi(at as i32)).collect()
        }
    };
    let mut values: Vec<Value> = numbers.into_iter().map(|number| form.value(number)).collect();
    // Rounded whole numbers may coincide, for example 1 and 1.2 with the factor 1.2.
    // Neighbours that are equal become one value.
    values.dedup();
    Ok(Values::List(values))
}

struct End {
    value: f64,
    is_whole: bool,
}

/// `12.5us` as 12.5 and `us`, `2e3` as 2000.
fn number<'a>(key: &str, text: &'a str) -> Result<(End, &'a str), String> {
    let inner = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
    let mut at = text.find(|c: char| !inner(c)).unwrap_or(text.len());
    if let Some(power) = text[at..].strip_prefix(['e', 'E'])
        && power.starts_with(|c: char| c.is_ascii_digit() || c == '-')
    {
        at = text.len() - power.trim_start_matches(inner).len();
    }
    let digits = text[..at].replace('_', "");
    let value = digits.parse().ok().filter(|value: &f64| value.is_finite());
    let value = value.ok_or_else(|| {
        format!("`{key}`: `{text}` is not a number; a range has a number at each end")
    })?;
    let is_whole = !digits.contains('.') && value.fract() == 0.0;
    Ok((End { value, is_whole }, text[at..].trim()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values(text: &str) -> Vec<Value> {
        let axis: Axis = text.parse().unwrap();
        assert_eq!(axis.to_string(), text);
        (0..axis.count().unwrap()).map(|at| axis.value(at).unwrap().clone()).collect()
    }

    #[test]
    fn lists_and_ranges() {
        for (text, wanted) in [
            ("flash.channels=4,8,16", json!([4, 8, 16])),
            ("target=sim:config-a, sim:p3600", json!(["sim:config-a", "sim:p3600"])),
            ("ftl.over_provisioning=0.07..0.28/5", json!([0.07, 0.1225, 0.175, 0.2275, 0.28])),
            ("workload.depth=1..256*4", json!([1, 4, 16, 64, 256])),
            ("workload.depth=1..6/6", json!([1, 2, 3, 4, 5, 6])),
            ("flash.read_time=40.0us..41us/3", json!(["40us", "40.5us", "41us"])),
            // Rounded whole numbers are there once.
            ("seed=1..4*1.3", json!([1, 2, 3, 4])),
            ("flash.read_time=25us..100us/4", json!(["25us", "50us", "75us", "100us"])),
            ("flash.read_time=25..50us*2", json!(["25us", "50us"])),
            ("flash.channel_rate=100MB/s..300MB/s/3", json!(["100MB/s", "200MB/s", "300MB/s"])),
            ("workload.requests=1e3..3e3/3", json!([1000, 2000, 3000])),
            ("a=1e-1..2.5e0us/2", json!(["0.1us", "2.5us"])),
            ("target=../a.toml,./b.toml", json!(["../a.toml", "./b.toml"])),
            ("target=a/../b.toml", json!(["a/../b.toml"])),
            ("write.allowed=true,false", json!([true, false])),
            ("ftl.name=\"page\",bast", json!(["page", "bast"])),
        ] {
            assert_eq!(json!(values(text)), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_says_so() {
        for (text, says) in [
            ("flash.channels", "KEY=VALUES"),
            ("=4", "no key"),
            ("a=1,,2", "value 2 of `a` is empty"),
            ("a=1,2,1", "twice"),
            ("a=1..x", "`x` is not a number"),
            ("a=5..1", "below the second"),
            ("a=1us..5ms", "same unit"),
            ("a=0..8*2", "above 0"),
            ("a=1..8*1", "above 1"),
            ("a=1..8/1", "number of values"),
            ("a=1..8/1000000", "number of values"),
            ("a=40us..60us/200", "21 whole numbers from 40 to 60, not 200"),
            ("a=40us..60us/200", "`40.0us..60.0us/200`"),
            ("a=1..2*1.0000001", "larger factor"),
            ("a=nan", "not a number"),
        ] {
            let error = text.parse::<Axis>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    /// Each value of a list and each whole number of a range has the same part of the axis.
    #[test]
    fn drawn_values_are_spread_evenly() {
        for (text, count) in [("a=x,y,z", 3), ("a=4..6", 3), ("a=1,2,4,8", 4)] {
            let axis: Axis = text.parse().unwrap();
            let mut counts = std::collections::BTreeMap::new();
            for at in 0..1200 {
                *counts.entry(axis.at((f64::from(at) + 0.5) / 1200.0).to_string()).or_insert(0) +=
                    1;
            }
            assert!(
                counts.len() == count && counts.values().all(|n| *n == 1200 / count),
                "{text}: {counts:?}"
            );
        }
        let axis: Axis = "a=0.5..1.5".parse().unwrap();
        assert_eq!(
            (axis.at(0.0), axis.at(0.25), axis.at(1.0)),
            (json!(0.5), json!(0.75), json!(1.5))
        );
        assert_eq!(axis.count(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_an_axis_or_a_message(text in "\\PC{0,40}") {
            match text.parse::<Axis>() {
                Ok(axis) => {
                    prop_assert!(axis.count().is_none_or(|len| len > 0));
                    axis.at(0.5);
                    prop_assert_eq!(axis.to_string().parse::<Axis>(), Ok(axis));
                }
                Err(error) => prop_assert!(!error.is_empty()),
            }
        }

        #[test]
        fn ranges_have_their_ends_and_their_count(
            low in 0u32..1000, more in 1u32..100, count in 2usize..50,
        ) {
            let high = low + more;
            let axis = format!("a={low}..{high}/{count}").parse::<Axis>();
            prop_assert_eq!(axis.is_ok(), count <= more as usize + 1);
            let Ok(axis) = axis else { return Ok(()) };
            prop_assert_eq!(axis.count(), Some(count));
            let last = count - 1;
            prop_assert_eq!(axis.value(0), Some(&json!(low)));
            prop_assert_eq!(axis.value(last), Some(&json!(high)));
        }
    }
}
