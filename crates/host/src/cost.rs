//! Costs of configuration files: a time, or cycles of the core's clock.

use std::fmt;
use std::str::FromStr;

use ssdyno_block::units::{Span, UnitError};
use ssdyno_block::{Time, text_form};

/// The clock of a core, in hertz.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Frequency(pub f64);

const FREQUENCY: &str = "a frequency with its unit, such as \"2.66GHz\"";

impl FromStr for Frequency {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Frequency, UnitError> {
        let error = || UnitError { text: text.to_owned(), expected: FREQUENCY };
        let trimmed = text.trim();
        let (number, factor) = [("GHz", 1e9), ("MHz", 1e6)]
            .iter()
            .find_map(|(unit, factor)| Some((trimmed.strip_suffix(unit)?, *factor)))
            .ok_or_else(error)?;
        let hertz = number.trim().parse::<f64>().map_err(|_| error())? * factor;
        if hertz.is_finite() && hertz > 0.0 { Ok(Frequency(hertz)) } else { Err(error()) }
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            hertz if hertz >= 1e9 => write!(f, "{}GHz", hertz / 1e9),
            hertz => write!(f, "{}MHz", hertz / 1e6),
        }
    }
}

/// The cost of an action for a core.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cost {
    /// So long, whatever the clock.
    Time(Span),
    /// So many cycles of the clock.
    Cycles(f64),
}

impl Cost {
    /// Nothing.
    pub const ZERO: Cost = Cost::Time(Span(Time::ZERO));

    /// The time at `clock`.
    pub fn at(self, clock: Frequency) -> Time {
        match self {
            Cost::Time(span) => span.0,
            // S1-4 gives a cost in cycles (2000 per uncacheable read). A cost in cycles scales with
            // the clock of a host preset, while a cost of the bus in ns does not.
            Cost::Cycles(cycles) => Time::from_s_f64(cycles / clock.0),
        }
    }
}

impl Default for Cost {
    fn default() -> Cost {
        Cost::ZERO
    }
}

const COST: &str = "a time or cycles, such as \"250ns\" or \"2000cycles\"";

impl FromStr for Cost {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Cost, UnitError> {
        let error = || UnitError { text: text.to_owned(), expected: COST };
        let Some(number) = text.trim().strip_suffix("cycles") else {
            return text.parse().map(Cost::Time).map_err(|_| error());
        };
        let cycles = number.trim().parse::<f64>().map_err(|_| error())?;
        if (0.0..1e15).contains(&cycles) { Ok(Cost::Cycles(cycles)) } else { Err(error()) }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cost::Time(span) => span.fmt(f),
            Cost::Cycles(cycles) => write!(f, "{cycles}cycles"),
        }
    }
}

text_form!(Frequency, FREQUENCY, "^[0-9.]+ *(MHz|GHz)$");
text_form!(Cost, COST, "^[0-9._]+ *(ps|ns|us|µs|ms|s|m|min|h|d|cycles)$");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_follow_the_clock() {
        // S1-4: 4 uncacheable reads of about 2000 cycles are 3.0 us at 2.66 GHz.
        let clock: Frequency = "2.66GHz".parse().unwrap();
        let four = "8000cycles".parse::<Cost>().unwrap().at(clock);
        assert_eq!(four.as_ns(), 3_007);
        assert_eq!("3us".parse::<Cost>().unwrap().at(clock), Time::from_us(3));
    }

    #[test]
    fn shows_what_it_reads() {
        for text in ["250ns", "2000cycles", "0ps"] {
            assert_eq!(text.parse::<Cost>().unwrap().to_string(), text);
        }
        assert_eq!("2660MHz".parse::<Frequency>().unwrap().to_string(), "2.66GHz");
    }

    #[test]
    fn refuses_what_means_nothing() {
        for text in ["250", "-3us", "cycles", "-1cycles", "NaNcycles", "1e400cycles", ""] {
            assert!(text.parse::<Cost>().is_err(), "{text}");
        }
        for text in ["2.66", "0GHz", "-1GHz", "NaNGHz", "infGHz", "GHz"] {
            assert!(text.parse::<Frequency>().is_err(), "{text}");
        }
    }
}
