//! One number that is swept: `depth=1..256`, `rate=1k..200k`, `flash.channels=2,4,8`.

use serde_json::Value;
use ssdyno_block::units::{Bytes, Span};

use crate::axis::Axis;

/// The key of the rate at which requests arrive.
pub const RATE: &str = "workload.arrivals.rate";

/// Short words for keys of a load, as the command line has them.
const SHORT: [(&str, &str); 4] = [
    ("depth", "workload.depth"),
    ("rate", RATE),
    ("block_size", "workload.block_size"),
    ("read_percent", "workload.read_percent"),
];

/// The whole name of a key for which there is a short word; other keys as they are.
pub(crate) fn whole_key(typed: &str) -> &str {
    SHORT.iter().find(|(short, _)| *short == typed).map_or(typed, |(_, key)| *key)
}

impl Axis {
    /// The axis of a sweep over one number. The notation is that of [`FromStr`](std::str::FromStr), with short words for the keys of
    /// a load (`depth`, `rate`, `block_size`, `read_percent`), and a range without steps doubles from its first end to its second,
    /// which belongs to it. Rates may be written as `200k`.
    ///
    /// # Errors
    /// It is not a key with two or more numbers; the message says which part is wrong.
    pub fn swept(text: &str) -> Result<Axis, String> {
        let (typed, values) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` is not KEY=VALUES, such as depth=1..256"))?;
        let typed = typed.trim();
        let key = whole_key(typed);
        let values = if key == RATE { plain_rates(values) } else { values.to_owned() };
        // The values are typed as a list, so that the table and the command that repeats
        // the sweep show every value that was run.
        let values = if is_without_steps(&values) { doubled(key, &values)? } else { values };
        let axis: Axis = format!("{key}={values}").parse()?;
        let all: Vec<&Value> =
            (0..axis.count().unwrap_or(0)).filter_map(|at| axis.value(at)).collect();
        // A curve needs numbers on its axis. Names belong
        // into a plan with a grid.
        if let Some(other) = all.iter().find(|value| number(value).is_none()) {
            return Err(format!("`{key}` cannot be swept over {other}: it is not a number"));
        }
        if all.len() < 2 {
            return Err(format!("`{key}` needs at least two values, such as {typed}=1..8"));
        }
        Ok(axis)
    }
}

/// A value of an axis as a number, for comparison with the other values: times in nanoseconds, sizes in bytes.
pub(crate) fn number(value: &Value) -> Option<f64> {
    let Some(text) = value.as_str() else { return value.as_f64() };
    let time = || text.parse().ok().map(|span: Span| span.0.as_ns_f64());
    let size = || text.parse().ok().map(|bytes: Bytes| bytes.0 as f64);
    // Of other units, such as a rate of bytes or a voltage, only the prefix counts: `500MB/s` is less than `1GB/s`. All
    // values of one axis have the same unit, so the order is right.
    let other = || {
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-')))
            .unwrap_or(text.len());
        let number: f64 = text[..end].parse().ok()?;
        let scale = match text[end..].trim_start().chars().next() {
            Some('k') => 1e3,
            Some('M') => 1e6,
            Some('G') => 1e9,
            Some('T') => 1e12,
            _ => 1.0,
        };
        Some(number * scale)
    };
    time().or_else(size).or_else(other).filter(|number: &f64| number.is_finite())
}

fn is_without_steps(values: &str) -> bool {
    let steps = |rest: &str| {
        let count = rest.rsplit_once('/').is_some_and(|(_, n)| n.trim().parse::<f64>().is_ok());
        count || rest.contains('*')
    };
    values.split_once("..").is_some_and(|(_, rest)| !steps(rest))
}

/// The list of the values of a range: each twice the one before, and the second end.
fn doubled(key: &str, values: &str) -> Result<String, String> {
    let list = |steps: &str| -> Result<Vec<String>, String> {
        let axis: Axis = format!("{key}={values}{steps}").parse()?;
        let values = (0..axis.count().unwrap_or(0)).filter_map(|at| axis.value(at));
        Ok(values.map(|value| value.as_str().map_or(value.to_string(), str::to_owned)).collect())
    };
    let mut all = list("*2")?;
    let ends = list("/2")?;
    all.extend(ends.into_iter().last());
    // The second end belongs to the range, although it may be no power of two. If it is
    // one, it appears twice in a row and is removed.
    all.dedup();
    Ok(all.join(","))
}

/// `1k..200k` as `1000..200000`: rates are counted in thousands, and both ends have the same unit then.
pub(crate) fn plain_rates(values: &str) -> String {
    let plain = |text: &str| {
        let scale = match text.chars().last() {
            Some('k') => 1e3,
            Some('M') => 1e6,
            Some('G') => 1e9,
            _ => return text.to_owned(),
        };
        let number: Option<f64> = text[..text.len() - 1].trim().parse().ok();
        number.map_or(text.to_owned(), |number| (number * scale).to_string())
    };
    let ends = |item: &str| {
        // Steps are not scaled: `1k..200k*2` has the factor
        // 2, and `/5` counts values.
        let at = item.find(['/', '*']).unwrap_or(item.len());
        let (range, steps) = item.split_at(at);
        let ends: Vec<String> = range.split("..").map(|end| plain(end.trim())).collect();
        ends.join("..") + steps
    };
    values.split(',').map(|item| ends(item.trim())).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ranges_double_and_have_both_ends() {
        for (text, key, wanted) in [
            ("depth=1..8", "workload.depth", json!([1, 2, 4, 8])),
            ("depth=1..12", "workload.depth", json!([1, 2, 4, 8, 12])),
            ("depth=1..9/3", "workload.depth", json!([1, 5, 9])),
            ("depth=3,1,2", "workload.depth", json!([3, 1, 2])),
            ("rate=1k..5k", RATE, json!([1000, 2000, 4000, 5000])),
            ("rate=500k..1M", RATE, json!([500_000, 1_000_000])),
            ("rate=0.5k,2k", RATE, json!([500, 2000])),
            ("rate=10k..30k/3", RATE, json!([10_000, 20_000, 30_000])),
            ("block_size=4k..16k", "workload.block_size", json!(["4k", "8k", "16k"])),
            ("flash.read_time=25us..60us", "flash.read_time", json!(["25us", "50us", "60us"])),
            ("flash.bus=200MB/s,333MB/s", "flash.bus", json!(["200MB/s", "333MB/s"])),
        ] {
            let axis = Axis::swept(text).unwrap();
            let values: Vec<&Value> =
                (0..axis.count().unwrap()).map(|at| axis.value(at).unwrap()).collect();
            assert_eq!((axis.key(), json!(values)), (key, wanted), "{text}");
            // What it is written as is the same axis.
            assert_eq!(Axis::swept(&axis.to_string()), Ok(axis));
        }
    }

    #[test]
    fn axes_of_designs_have_the_same_short_words() {
        let axis: Axis = "depth=1,2".parse().unwrap();
        assert_eq!((axis.key(), axis.count()), ("workload.depth", Some(2)));
        // Rates are counted in thousands here, too.
        let axis: Axis = "rate=5k,9.9k,12k".parse().unwrap();
        let values: Vec<_> = (0..3).map(|at| axis.value(at).unwrap().clone()).collect();
        assert_eq!(values, [json!(5000), json!(9900), json!(12_000)]);
    }

    #[test]
    fn what_is_wrong_says_so() {
        for (text, says) in [
            ("depth", "KEY=VALUES"),
            ("=1..8", "no key"),
            ("depth=", "empty"),
            ("depth=..", "not a number"),
            ("depth=4..4", "below the second"),
            ("depth=8..1", "below the second"),
            ("rate=2M..1k", "below the second"),
            ("depth=0..8", "must begin above 0"),
            ("depth=4", "two values"),
            ("depth=one,two", "not a number"),
            ("workload.address=true,false", "not a number"),
        ] {
            let error = Axis::swept(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_with_units_are_compared_in_one_unit() {
        let of = |text: &str| number(&json!(text));
        assert_eq!((of("25us"), of("4KiB"), of("x")), (Some(25_000.0), Some(4096.0), None));
        assert!(of("1ms") > of("25us") && of("333MB/s") > of("200MB/s"));
        assert!(of("1GB/s") > of("500MB/s") && of("1.2V") > of("0.9V"));
    }
}
