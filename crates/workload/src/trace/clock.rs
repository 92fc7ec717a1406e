//! When a record is meant to start: the trace's clock on that of the run.

use ssdyno_block::Time;

use super::number::Fault;
use super::options::TraceOrigin;

/// One rule for all formats: [`TraceOrigin`].
pub(crate) struct Clock {
    /// Recorded times count.
    timed: bool,
    /// Factor on recorded times.
    scale: f64,
    origin: TraceOrigin,
    /// Recorded time of the first request that is replayed.
    first_ps: Option<u128>,
    last: Time,
    /// Requests earlier than the line before.
    pub(crate) late: u64,
}

impl Clock {
    pub(crate) fn new(timed: bool, scale: f64, origin: TraceOrigin) -> Clock {
        Clock { timed, scale, origin, first_ps: None, last: Time::ZERO, late: 0 }
    }

    /// Whether recorded times count.
    pub(crate) fn timed(&self) -> bool {
        self.timed
    }

    /// When a request recorded at `time_ps` starts in the run. To be asked once for each request that
    /// is replayed, in the order of the file.
    pub(crate) fn start(&mut self, time_ps: u128) -> Result<Time, Fault> {
        if !self.timed {
            return Ok(Time::ZERO);
        }
        // The first record that is played sets the origin, not the first line. If earlier lines
        // belong to another device, the run would begin with a pause in which nothing happens.
        let first = *self.first_ps.get_or_insert(time_ps);
        let base = match self.origin {
            TraceOrigin::First => first,
            TraceOrigin::Absolute => 0,
        };
        let since = time_ps.saturating_sub(base);
        // A float has 53 bits, which is 2.5 hours in picoseconds. Unscaled times therefore stay
        // integers and exact for the whole trace.
        let scaled = if self.scale == 1.0 { since } else { (since as f64 * self.scale) as u128 };
        // A start at Time::MAX could never be reached.
        let ps = u64::try_from(scaled).ok().filter(|&ps| ps < u64::MAX);
        let time = Time::from_ps(ps.ok_or_else(|| {
            let days = scaled / 86_400_000_000_000_000;
            let help = match self.origin {
                TraceOrigin::First => "correct the line, or scale the times",
                TraceOrigin::Absolute => {
                    "count times from the first request (`trace.origin=first`), or scale them"
                }
            };
            let what =
                format!("the time lies {days} days after the start; the limit of a run is 213");
            Fault::new(what, help)
        })?);
        // Order is the file's: a late line starts with the one before it.
        if time_ps < base || time < self.last {
            self.late += 1;
        }
        self.last = self.last.max(time);
        Ok(self.last)
    }

    /// The meaning of time 0 of the run; `None` where recorded times do not count.
    pub(crate) fn note(&self) -> Option<String> {
        let first = seconds(self.first_ps?);
        Some(match self.origin {
            TraceOrigin::First => format!(
                "time 0 is the time of the first replayed request: {first} s on the trace's clock \
                 (`trace.origin=first`)"
            ),
            TraceOrigin::Absolute => format!(
                "time 0 is that of the trace's own clock; the first replayed request is at \
                 {first} s (`trace.origin=absolute`)"
            ),
        })
    }
}

/// `ps` in seconds, exactly, without zeros at the end.
fn seconds(ps: u128) -> String {
    let (whole, part) = (ps / 1_000_000_000_000, ps % 1_000_000_000_000);
    let part = format!("{part:012}");
    match part.trim_end_matches('0') {
        "" => whole.to_string(),
        part => format!("{whole}.{part}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(0), "0");
        assert_eq!(seconds(11_413_000_000), "0.011413");
        assert_eq!(seconds(1_577_808_000_000_626_000_000), "1577808000.000626");
        assert_eq!(seconds(60_000_000_000_000), "60");
    }
}
