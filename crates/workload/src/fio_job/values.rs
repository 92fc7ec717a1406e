//! Numbers, sizes and times as fio writes them (fio documentation, "Parameter types").

use std::ops::RangeBounds;

use ssdyno_block::Time;

/// A size or a share of the target.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Size {
    Bytes(u64),
    Percent(f64),
}

/// Splits `12.5k` into its number and its lower-case unit.
fn split(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    // Hexadecimal numbers have no unit: in `0x1b`, `b` is a digit. The text is therefore not split
    // into number and unit.
    if let Some(hex) = text.strip_prefix("0x") {
        return Some((u64::from_str_radix(hex, 16).ok()? as f64, String::new()));
    }
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let value: f64 = text[..at].parse().ok()?;
    value.is_finite().then(|| (value, text[at..].trim().to_ascii_lowercase()))
}

/// A number with a prefix. By default (`kb_base=1024`) `k` is 1024 and `kib` is 1000: fio's
/// documentation calls that the opposite of the standard, and keeps it. `ki` should be `kib`, too,
/// but fio reads it as `k` (parse.c, `__get_mult_bytes`).
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (value, unit) = split(text)?;
    let (prefix, base) = match unit.strip_suffix("ib") {
        Some(prefix) => (prefix, 1000.0_f64),
        None => (unit.trim_end_matches('b').trim_end_matches('i'), 1024.0),
    };
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|p| *p == prefix)?;
    let bytes = value * base.powi(power as i32);
    // The bound is just below 2^63. Offsets of the kernel are signed 64-bit numbers, and a larger
    // one would become negative there.
    (bytes < 9.2e18).then_some(bytes.round() as u64)
}

/// `text` as it reads under `kb_base=1000` (`k` is 1000, `kib` is 1024), in words of the usual base.
pub(super) fn in_usual_base(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = |from: usize, inside: fn(char) -> bool| {
            rest[from..].find(|c| !inside(c)).map_or(rest.len(), |length| from + length)
        };
        let digits = end(at, |c| c.is_ascii_digit() || c == '.');
        let word = end(digits, |c| c.is_ascii_alphabetic());
        let unit = rest[digits..word].to_ascii_lowercase();
        out.push_str(&rest[..digits]);
        match unit.trim_end_matches('b').trim_end_matches('i') {
            prefix @ ("k" | "m" | "g" | "t" | "p") => {
                out.push_str(prefix);
                out.push_str(if unit.ends_with("ib") { "" } else { "ib" });
            }
            _ => out.push_str(&rest[digits..word]),
        }
        rest = &rest[word..];
    }
    out + rest
}

/// A distance forwards or backwards.
pub(super) fn gap(text: &str) -> Option<i64> {
    let (sign, size) = text.trim().strip_prefix('-').map_or((1, text), |size| (-1, size));
    Some(sign * i64::try_from(bytes(size)?).ok()?)
}

/// A size, or a share as `50%`.
pub(super) fn size(text: &str) -> Option<Size> {
    match text.trim().strip_suffix('%') {
        Some(share) => {
            let share: f64 = share.parse().ok()?;
            (share > 0.0 && share <= 100.0).then_some(Size::Percent(share))
        }
        None => bytes(text).map(Size::Bytes),
    }
}

/// A time; seconds where no unit stands.
pub(super) fn seconds(text: &str) -> Option<Time> {
    time(text, "s")
}

/// A time; in `usual` where no unit stands.
pub(super) fn time(text: &str, usual: &str) -> Option<Time> {
    let (value, unit) = split(text)?;
    let unit = if unit.is_empty() { usual } else { unit.as_str() };
    let factor = match unit {
        "d" => 86_400.0,
        "h" => 3_600.0,
        "m" => 60.0,
        "s" | "sec" => 1.0,
        "ms" | "msec" => 1e-3,
        "us" | "usec" => 1e-6,
        _ => return None,
    };
    let seconds = value * factor;
    // The limit of 115 days leaves room in 64 bits of picoseconds (213 days) for a sum of delay,
    // ramp and run time.
    (seconds < 1e7).then(|| Time::from_s_f64(seconds))
}

/// A whole number, perhaps with a prefix.
pub(super) fn whole(text: &str) -> Option<u64> {
    bytes(text)
}

/// A whole number within `range`.
pub(super) fn whole_in(range: impl RangeBounds<u64>) -> impl Fn(&str) -> Option<u64> {
    move |text| whole(text).filter(|number| range.contains(number))
}

/// A switch; present without a value means on.
pub(super) fn switch(value: Option<&str>) -> Option<bool> {
    match value {
        None | Some("1" | "true") => Some(true),
        Some("0" | "false") => Some(false),
        Some(_) => None,
    }
}

/// `0-3,7`.
pub(super) fn cores(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // The bound prevents that a mistyped list such as 0-4000000000 allocates memory for every
        // number in it.
        if first > last || last > 65_535 {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// `reads,writes,trims`: a single value applies to all, an empty value sets nothing, and an omitted value equals the
/// one before it.
pub(super) fn directions<T: Clone>(
    text: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<[Option<T>; 3]> {
    let mut values = [const { None }; 3];
    let mut last: Option<T> = None;
    let mut parts = text.split(',').map(str::trim);
    for value in &mut values {
        if let Some(part) = parts.next() {
            last = if part.is_empty() { None } else { Some(parse(part)?) };
        }
        *value = last.clone();
    }
    parts.next().is_none().then_some(values)
}

pub(super) fn percent(text: &str) -> Option<f64> {
    let value: f64 = text.trim_end_matches('%').trim().parse().ok()?;
    (0.0..=100.0).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_fios() {
        assert_eq!(bytes("4k"), Some(4096));
        assert_eq!(bytes("4K"), Some(4096));
        assert_eq!(bytes("4kb"), Some(4096));
        assert_eq!(bytes("4kib"), Some(4000));
        assert_eq!(bytes("4KiB"), Some(4000));
        assert_eq!(bytes("4ki"), Some(4096));
        assert_eq!(bytes("1.5g"), Some(3 << 29));
        assert_eq!(bytes("0x200"), Some(512));
        assert_eq!(bytes("4x"), None);
        assert_eq!(size("25%"), Some(Size::Percent(25.0)));
        assert_eq!(size("101%"), None);
        assert_eq!(seconds("5"), Some(Time::from_s(5)));
        assert_eq!(seconds("2m"), Some(Time::from_s(120)));
        assert_eq!(seconds("250ms"), Some(Time::from_ms(250)));
        assert_eq!(seconds("250msec"), Some(Time::from_ms(250)));
        assert_eq!(time("7usec", "s"), Some(Time::from_us(7)));
        assert_eq!(time("40", "us"), Some(Time::from_us(40)));
        assert_eq!(time("40ms", "us"), Some(Time::from_ms(40)));
        assert_eq!(cores("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cores("3-1"), None);
    }

    #[test]
    fn the_other_base_swaps_the_prefixes() {
        let swapped = |text: &str| in_usual_base(text);
        assert_eq!(bytes(&swapped("4k")), Some(4000));
        assert_eq!(bytes(&swapped("4KiB")), Some(4096));
        assert_eq!(bytes(&swapped("2MB")), Some(2_000_000));
        assert_eq!(swapped("4k/60:16kib/40"), "4kib/60:16k/40");
        assert_eq!(swapped("randread:8"), "randread:8");
        assert_eq!(swapped("zipf:1.2,512,25%"), "zipf:1.2,512,25%");
    }
}
