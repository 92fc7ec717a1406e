//! Quantities of configuration files: a number and its unit in one string.
//!
//! `"25us"`, `"4KiB"`, `"3.3V"`, `"15mA"`, `"333MB/s"`. A number without a unit is refused, because
//! its meaning is unclear. Binary prefixes (KiB) are powers of 1024, decimal ones (KB) of 1000.

use std::fmt;
use std::str::FromStr;

use crate::Time;

/// A quantity that could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` {}{expected}", refusal(text, expected))]
pub struct UnitError {
    /// What was written.
    pub text: String,
    /// The expected form, with examples.
    pub expected: &'static str,
}

/// What stands between a text and the form that is expected of it: a number may only lack its unit.
fn refusal(text: &str, expected: &str) -> &'static str {
    let is_number = text.trim().replace('_', "").parse::<f64>().is_ok();
    match is_number && expected.contains("with its unit") {
        true => "has no unit; expected ",
        false => "is not ",
    }
}

/// Splits `12.5us` into 12.5 and `us`; the number must be finite and not negative.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))?;
    let number = text[..at].replace('_', "");
    let value: f64 = number.parse().ok()?;
    value.is_finite().then_some((value, text[at..].trim()))
}

fn scale(table: &[(&str, f64)], unit: &str) -> Option<f64> {
    table.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

/// Writes `value` with the largest unit of `table` (ascending) that leaves it at 1 or above.
fn show(f: &mut fmt::Formatter<'_>, table: &[(&str, f64)], value: f64) -> fmt::Result {
    let fits = table.iter().rev().find(|(_, factor)| value >= *factor);
    let (unit, factor) = fits.or(table.first()).copied().unwrap_or(("", 1.0));
    let shown = value / factor;
    // Nine digits give back what was read and hide the noise of the division.
    let rounded = format!("{shown:.9}");
    let rounded = rounded.trim_end_matches('0').trim_end_matches('.');
    write!(f, "{rounded}{unit}")
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $pattern:literal, $table:expr, $show:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
        pub struct $name(pub f64);

        impl FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                let error = || UnitError { text: text.to_owned(), expected: $expected };
                let (value, unit) = split(text).ok_or_else(error)?;
                let factor = scale(&$table, unit).ok_or_else(error)?;
                Ok($name(value * factor))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                show(f, &$show, self.0)
            }
        }

        text_form!($name, $expected, $pattern);
    };
}

/// A type with [`FromStr`] and [`Display`](fmt::Display) is written in files as its text: what
/// deserialises, serialises and describes it, with what was `$expected` for messages and a regular
/// expression for the schema, or with the name and all of the schema. For units of other crates, too, which then depend on `serde` and
/// `schemars`.
#[macro_export]
macro_rules! text_form {
    ($name:ident, $expected:expr, $pattern:literal) => {
        $crate::text_form!($name as stringify!($name), $expected, {
            "type": "string",
            "description": format!("must be {}", $expected),
            "pattern": $pattern,
        });
    };
    ($name:ident as $schema_name:expr, $expected:expr, $schema:tt) => {
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                struct Text;
                impl ::serde::de::Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: ::serde::de::Error>(
                        self,
                        text: &str,
                    ) -> ::core::result::Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $schema_name.into()
            }
            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!($schema)
            }
        }
    };
}

/// `m` is a minute, as in fio; a size has `m` for MiB.
const SPAN: [(&str, f64); 9] = [
    ("ps", 1.0),
    ("ns", 1e3),
    ("us", 1e6),
    ("ms", 1e9),
    ("s", 1e12),
    ("m", 60e12),
    ("min", 60e12),
    ("h", 3600e12),
    ("d", 86_400e12),
];

/// A span of time; resolution 1 ps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(pub Time);

impl FromStr for Span {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let expected = "a time with its unit, such as \"25us\" or \"1.5ms\"";
        let error = |expected| UnitError { text: text.to_owned(), expected };
        let (value, unit) = split(text).ok_or_else(|| error(expected))?;
        let unit = if unit == "µs" { "us" } else { unit };
        let ps = value * scale(&SPAN, unit).ok_or_else(|| error(expected))?;
        if ps >= u64::MAX as f64 {
            return Err(error("a time below 213 days (2^64 ps)"));
        }
        Ok(Span(Time::from_ps(ps.round() as u64)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, &SPAN[..5], self.0.as_ps() as f64)
    }
}

text_form!(
    Span,
    "a time with its unit, such as \"25us\" or \"1.5ms\"",
    "^[0-9._]+ *(ps|ns|us|µs|ms|s|m|min|h|d)$"
);

const BYTES: [(&str, u64); 9] = [
    ("B", 1),
    ("KB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

/// The unit that a suffix of one letter means: powers of 1024, as in fio (`kb_base=1024`) and dd.
fn suffix(unit: &str) -> Option<&'static str> {
    Some(match unit {
        "k" | "K" => "KiB",
        "m" | "M" => "MiB",
        "g" | "G" => "GiB",
        "t" | "T" => "TiB",
        _ => return None,
    })
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let expected = "a size with its unit, such as \"4KiB\" or \"512B\"";
        let error = || UnitError { text: text.to_owned(), expected };
        let (value, unit) = split(text).ok_or_else(error)?;
        let unit = suffix(unit).unwrap_or(unit);
        let factor = BYTES.iter().find(|(name, _)| *name == unit).ok_or_else(error)?.1;
        let bytes = value * factor as f64;
        if bytes.fract() != 0.0 || bytes >= u64::MAX as f64 {
            return Err(error());
        }
        Ok(Bytes(bytes as u64))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = BYTES.iter().rev().find(|(_, factor)| {
            self.0 >= *factor && self.0.is_multiple_of(*factor) && factor.is_power_of_two()
        });
        let (unit, factor) = exact.copied().unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / factor)
    }
}

text_form!(
    Bytes,
    "a size with its unit, such as \"4KiB\" or \"512B\"",
    "^[0-9._]+ *(B|KB|KiB|MB|MiB|GB|GiB|TB|TiB|[kKmMgGtT])$"
);

quantity!(
    /// Bytes per second.
    Bandwidth,
    "a bandwidth with its unit, such as \"333MB/s\" or \"3.2GB/s\"",
    "^[0-9._]+ *(B|KB|KiB|MB|MiB|GB|GiB)/s$",
    [
        ("B/s", 1.0),
        ("KB/s", 1e3),
        ("KiB/s", 1024.0),
        ("MB/s", 1e6),
        ("MiB/s", 1_048_576.0),
        ("GB/s", 1e9),
        ("GiB/s", 1_073_741_824.0),
    ],
    [("B/s", 1.0), ("KB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)]
);

quantity!(
    /// Volts.
    Volts,
    "a voltage with its unit, such as \"3.3V\"",
    "^[0-9._]+ *(mV|V)$",
    [("mV", 1e-3), ("V", 1.0)],
    [("mV", 1e-3), ("V", 1.0)]
);

quantity!(
    /// Amperes.
    Amperes,
    "a current with its unit, such as \"15mA\"",
    "^[0-9._]+ *(nA|uA|mA|A)$",
    [("nA", 1e-9), ("uA", 1e-6), ("mA", 1e-3), ("A", 1.0)],
    [("nA", 1e-9), ("uA", 1e-6), ("mA", 1e-3), ("A", 1.0)]
);

quantity!(
    /// Watts.
    Watts,
    "a power with its unit, such as \"259mW\"",
    "^[0-9._]+ *(nW|uW|mW|W)$",
    [("nW", 1e-9), ("uW", 1e-6), ("mW", 1e-3), ("W", 1.0)],
    [("nW", 1e-9), ("uW", 1e-6), ("mW", 1e-3), ("W", 1.0)]
);

quantity!(
    /// A share of a hundred.
    Percent,
    "a percentage, such as \"50%\"",
    "^[0-9._]+ *%$",
    [("%", 1.0)],
    [("%", 1.0)]
);

impl Bandwidth {
    /// The time that `bytes` need, rounded up to a picosecond; `Time::MAX` at zero bandwidth.
    pub fn time_for(self, bytes: u64) -> Time {
        let ps = (bytes as f64 * 1e12 / self.0).ceil();
        if ps < u64::MAX as f64 { Time::from_ps(ps as u64) } else { Time::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_shows() {
        assert_eq!("25us".parse::<Span>().unwrap(), Span(Time::from_us(25)));
        assert_eq!("1.5 ms".parse::<Span>().unwrap().to_string(), "1.5ms");
        assert_eq!("3m".parse::<Span>().unwrap(), "180s".parse().unwrap());
        assert_eq!("1d".parse::<Span>().unwrap(), "1440min".parse().unwrap());
        assert_eq!("4KiB".parse::<Bytes>().unwrap(), Bytes(4096));
        for text in ["4k", "4K", "4 K"] {
            assert_eq!(text.parse::<Bytes>().unwrap(), Bytes(4096));
        }
        assert_eq!("1200M".parse::<Bytes>().unwrap().to_string(), "1200MiB");
        assert_eq!("2g".parse::<Bytes>().unwrap(), "2GiB".parse().unwrap());
        assert_eq!(Bytes(0).to_string(), "0B");
        assert_eq!(Bytes(1 << 40).to_string(), "1TiB");
        assert_eq!(Bytes(1000).to_string(), "1000B");
        assert_eq!("15mA".parse::<Amperes>().unwrap(), Amperes(0.015));
        assert_eq!("259mW".parse::<Watts>().unwrap().to_string(), "259mW");
        assert_eq!("333MB/s".parse::<Bandwidth>().unwrap().to_string(), "333MB/s");
        assert_eq!(Watts(0.0).to_string(), "0nW");
        assert_eq!("12.5%".parse::<Percent>().unwrap().to_string(), "12.5%");
    }

    #[test]
    fn refuses_what_means_nothing() {
        for text in ["25", "us", "-3us", "1e400s", "4 kib", "", "1..2us", "∞s", "NaNs"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        let error = "999999h".parse::<Span>().unwrap_err().to_string();
        assert_eq!(error, "`999999h` is not a time below 213 days (2^64 ps)");
        assert!("4kB".parse::<Bytes>().is_err() && "4 Ki".parse::<Bytes>().is_err());
        let error = "65_537".parse::<Bytes>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`65_537` has no unit; expected a size with its unit, such as \"4KiB\" or \"512B\""
        );
        let error = "0.3B".parse::<Bytes>().unwrap_err().to_string();
        assert_eq!(error, "`0.3B` is not a size with its unit, such as \"4KiB\" or \"512B\"");
    }

    #[test]
    fn bandwidth_gives_time() {
        assert_eq!(Bandwidth(1e9).time_for(4096), Time::from_ns(4096));
        assert_eq!(Bandwidth(0.0).time_for(1), Time::MAX);
    }
}
