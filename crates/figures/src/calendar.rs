//! Seconds since 1970 as a date and a time.

use time::OffsetDateTime;

/// So many seconds after the beginning of 1970, leap seconds not counted, in UTC as RFC 3339 has it:
/// `2026-11-21T01:02:03Z`.
pub fn rfc3339(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or_default();
    // Beyond the year 9999 there is nothing to tell.
    let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (hour, minute, second) = at.to_hms();
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", at.date())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        assert_eq!(rfc3339(1_795_222_923), "2026-11-21T01:02:03Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
    }
}
