//! Numbers of trace lines: exact, and every failure named.

/// The error of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) what: String,
    pub(crate) help: String,
}

impl Fault {
    pub(crate) fn new(what: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault { what: what.into(), help: help.into() }
    }
}

/// A field that is missing in a format whose lines look like `shape`.
pub(crate) fn missing(field: &str, shape: &str) -> Fault {
    Fault::new(
        format!("the line is cut short: {field} is missing"),
        format!("each line needs `{shape}`"),
    )
}

/// A whole number of 64 bits.
pub(crate) fn whole(text: &str, field: &str) -> Result<u64, Fault> {
    // `parse` of the standard library accepts a leading plus sign. No trace writes one, so it means
    // that the columns are shifted.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(value) if digits => Ok(value),
        _ if digits => Err(Fault::new(
            format!("{field} {text} does not fit in 64 bits"),
            "correct or remove the line",
        )),
        _ => Err(Fault::new(
            format!("{field} is `{text}`, not a whole number of 0 or more"),
            "correct or remove the line, or name the right format",
        )),
    }
}

/// A number of units of `unit` bytes as bytes.
pub(crate) fn bytes(text: &str, field: &str, unit: u64) -> Result<u64, Fault> {
    whole(text, field)?.checked_mul(unit).ok_or_else(|| {
        Fault::new(
            format!("{field} {text} is beyond any device: more than 2^64 bytes"),
            "correct or remove the line",
        )
    })
}

/// A time in units of 10^`exponent` ps, exactly: fractions below 1 ps are cut.
pub(crate) fn time_ps(text: &str, field: &str, exponent: u32) -> Result<u128, Fault> {
    let bad =
        |why: &str| Fault::new(format!("{field} is `{text}`, {why}"), "correct or remove the line");
    if text.starts_with('-') {
        return Err(bad("which is negative"));
    }
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if integer.len() + fraction.len() == 0 || !plain(integer) || !plain(fraction) {
        return scientific(text, exponent).ok_or_else(|| bad("not a time"));
    }
    if integer.len() > 24 {
        return Err(bad("too large"));
    }
    let digit = |ps: u128, byte: u8| ps * 10 + u128::from(byte - b'0');
    let whole = integer.bytes().fold(0, digit);
    // The digits are computed as whole numbers. A double has 53 bits, which resolve only 1.6 us in
    // the times of MSR: units of 100 ns since 1601. Arrivals would be rounded.
    let kept = fraction.len().min(exponent as usize);
    let part = fraction.bytes().take(kept).fold(0, digit);
    // At most 24 digits and 12 more: below 2^128.
    Ok(whole * 10_u128.pow(exponent) + part * 10_u128.pow(exponent - kept as u32))
}

/// The rare `1.5e+06`.
fn scientific(text: &str, exponent: u32) -> Option<u128> {
    let number = !text.starts_with('+') && text.bytes().any(|byte| byte.is_ascii_digit());
    let value: f64 = text.parse().ok().filter(|_| number)?;
    let ps = value * 10_f64.powi(exponent as i32);
    (0.0..1e36).contains(&ps).then_some(ps as u128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(time_ps("941714.123456789", "time", 9).unwrap(), 941_714_123_456_789);
        assert_eq!(time_ps("0.0000000019", "time", 9).unwrap(), 1);
        assert_eq!(time_ps(".5", "time", 12).unwrap(), 500_000_000_000);
        assert_eq!(time_ps("7", "time", 0).unwrap(), 7);
        assert_eq!(time_ps("1.5e3", "time", 9).unwrap(), 1_500_000_000_000);
        assert_eq!(
            time_ps("128166372003061629", "time", 5).unwrap(),
            12_816_637_200_306_162_900_000
        );
        for bad in [
            "", ".", "1inf", "nan0", "-1", "-0.1", "NaN", "inf", "1e400", "1,5", "0x10", "+1",
            "1e-", "e",
        ] {
            assert!(time_ps(bad, "time", 9).is_err(), "{bad}");
        }
        assert!(time_ps(&"9".repeat(25), "time", 12).is_err());
        assert!(time_ps(&"9".repeat(24), "time", 12).is_ok());
    }

    #[test]
    fn whole_numbers_do_not_wrap() {
        assert_eq!(whole("18446744073709551615", "size").unwrap(), u64::MAX);
        for bad in ["18446744073709551616", "-1", "", "1.0", "+1", " 1", "0x1"] {
            assert!(whole(bad, "size").is_err(), "{bad}");
        }
        assert!(bytes("36028797018963968", "blkno", 512).is_err());
    }

    proptest! {
        #[test]
        fn any_text_gives_an_answer(text in ".{0,40}", exponent in 0_u32..=12) {
            let _ = time_ps(&text, "time", exponent);
            let _ = whole(&text, "size");
        }
    }
}
