//! Seconds since 1970 as a date and a time.

use std::fmt;

/// A moment in UTC. Shown, it is as RFC 3339 has it: `2026-11-21T01:02:03Z`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CalendarTime {
    /// The year.
    pub year: u64,
    /// The month, from 1.
    pub month: u64,
    /// The day of the month, from 1.
    pub day: u64,
    /// The hour, from 0 to 23.
    pub hour: u64,
    /// The minute, from 0 to 59.
    pub minute: u64,
    /// The second, from 0 to 59.
    pub second: u64,
}

impl CalendarTime {
    /// So many seconds after the beginning of 1970, leap seconds not counted.
    pub fn of(seconds: u64) -> CalendarTime {
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        // Years begin in March here, so that the leap day is the last day of one: the day count of a
        // month then is linear, (153 m + 2) / 5.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
        CalendarTime { year, month, day, hour, minute, second }
    }
}

impl fmt::Display for CalendarTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CalendarTime { year, month, day, hour, minute, second } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        assert_eq!(CalendarTime::of(1_795_222_923).to_string(), "2026-11-21T01:02:03Z");
        assert_eq!(CalendarTime::of(951_782_400).to_string(), "2000-02-29T00:00:00Z");
    }
}
