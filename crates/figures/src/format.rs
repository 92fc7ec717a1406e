//! Figures as people read them: four significant digits and the unit that suits them.

/// `value` with `digits` significant digits and no exponent; trailing zeros are kept, because
/// they are measured too. Values that are not finite become a dash.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = |v: f64| v.abs().log10().floor() as i64;
    let decimals = |m: i64| (digits as i64 - 1 - m).max(0) as usize;
    let text = format!("{value:.*}", decimals(magnitude(value)));
    // 9.9996 rounds up to 10.000, which has a digit too many.
    let rounded: f64 = text.parse().unwrap_or(value);
    if rounded == 0.0 { text } else { format!("{value:.*}", decimals(magnitude(rounded))) }
}

/// Scales to the largest unit (ascending in `units`) in which the value is one or more.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    // The unit follows from the value as it will be shown. 999.99 ns is shown as 1.000 µs and
    // not as 1000 ns.
    let rounded: f64 = significant_value(value.abs());
    let unit = units.iter().rev().find(|(factor, _)| rounded >= *factor).or(units.first());
    match unit {
        Some((factor, name)) if value != 0.0 => {
            format!("{} {name}", significant(value / factor, 4)).trim_end().to_owned()
        }
        _ => format!("0 {}", units.first().map_or("", |u| u.1)).trim_end().to_owned(),
    }
}

/// Rounded to four digits, so that 999.99 ns is shown as 1.000 µs and not as 1000 ns.
fn significant_value(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// A span given in nanoseconds: `83.21 µs`.
pub fn nanoseconds(ns: f64) -> String {
    scaled(ns, &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")])
}

/// A span given in seconds: `1.234 s`, `20.00 min`.
pub fn seconds(s: f64) -> String {
    if s >= 600.0 { format!("{} min", significant(s / 60.0, 4)) } else { nanoseconds(s * 1e9) }
}

/// A number or rate with decimal prefixes: `1.234 M`.
pub fn rate(per_second: f64) -> String {
    scaled(per_second, &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")])
}

/// Bytes per second with decimal prefixes: `1.234 GB/s`.
pub fn bytes_per_second(value: f64) -> String {
    scaled(value, &[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s")])
}

/// Energy: `12.34 µJ`.
pub fn joules(value: f64) -> String {
    scaled(
        value,
        &[(1e-12, "pJ"), (1e-9, "nJ"), (1e-6, "µJ"), (1e-3, "mJ"), (1.0, "J"), (1e3, "kJ")],
    )
}

/// Energy-delay products: `12.34 nJ·s`.
pub fn joule_seconds(value: f64) -> String {
    format!("{}·s", joules(value))
}

/// Power: `1.234 W`.
pub fn watts(value: f64) -> String {
    scaled(value, &[(1e-9, "nW"), (1e-6, "µW"), (1e-3, "mW"), (1.0, "W")])
}

/// A count with its thousands apart: `1 234 567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A share of one: `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", significant(share * 100.0, 3))
}

/// `1 read`, `2 000 reads`.
pub fn things(n: u64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `2 errors` or `1 error` for each of `counts`, which have their words for one and for many; nothing for none.
pub fn counts_in_words(counts: &[(u64, &str, &str)]) -> Vec<String> {
    let some = counts.iter().filter(|(n, ..)| *n > 0);
    some.map(|(n, one, many)| format!("{} {}", count(*n), if *n == 1 { one } else { many }))
        .collect()
}

/// `text` as a cell of CSV: in quotes where it holds what separates cells or lines (RFC 4180, 2.6).
pub fn csv_cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_and_the_right_unit() {
        assert_eq!(nanoseconds(83_214.0), "83.21 µs");
        assert_eq!(nanoseconds(999.99), "1.000 µs");
        assert_eq!(nanoseconds(0.0), "0 ns");
        assert_eq!(nanoseconds(0.25), "0.2500 ns");
        assert_eq!(nanoseconds(62_610_000.0), "62.61 ms");
        assert_eq!(seconds(1_200.0), "20.00 min");
        assert_eq!(rate(1_234_567.0), "1.235 M");
        assert_eq!(rate(0.5), "0.5000");
        assert_eq!(bytes_per_second(333e6), "333.0 MB/s");
        assert_eq!(joules(1.5e-5), "15.00 µJ");
        assert_eq!(watts(0.259), "259.0 mW");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(count(12), "12");
        assert_eq!(significant(9.9999, 4), "10.00");
        assert_eq!(significant(f64::NAN, 4), "-");
        assert_eq!(percent(0.0734), "7.34 %");
    }
}
