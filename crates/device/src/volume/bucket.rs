//! A limit of rate with credits for bursts.

use ssdyno_block::Time;

use super::config::Numbers;

/// Parts of a picosecond: no rounding of a request adds up with those of the others.
const PART_BITS: u32 = 32;

/// A moment, or a span, in parts of a picosecond.
pub(super) type Fine = i128;

/// `time` in parts.
pub(super) fn fine(time: Time) -> Fine {
    Fine::from(time.as_ps()) << PART_BITS
}

/// The first picosecond that is not before `at`. A wait without a foreseeable end stops at 100 days, far beyond any
/// run, with enough room for the time after it.
pub(super) fn whole(at: Fine) -> Time {
    let ps = (at + (1 << PART_BITS) - 1) >> PART_BITS;
    Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX).min(u64::MAX / 2))
}

/// The time that `tokens` take at `a_second` per second.
fn span(tokens: f64, a_second: f64) -> Fine {
    (tokens / a_second * 1e12 * (1u64 << PART_BITS) as f64).round() as Fine
}

/// The limit. Everything is counted in the time that it takes at the baseline: what is asked beyond that runs ahead
/// of the clock, and the bucket pays for how far.
///
/// With the refill that is the default, the baseline, it is a token bucket (ITU-T I.371 has it as
/// the continuous-state leaky bucket): after `bucket / (burst - baseline)` seconds at the burst rate the bucket is empty,
/// and requests go at the baseline.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    numbers: Numbers,
    /// The content of the bucket, as time at the baseline.
    credits: Fine,
    most: Fine,
    /// Up to when the baseline is used up.
    used_to: Fine,
    /// When the burst rate allows the next request.
    next: Fine,
}

impl Bucket {
    pub(super) fn new(numbers: Numbers, initial: f64) -> Bucket {
        let most = span(numbers.bucket, numbers.baseline);
        let credits = span(numbers.bucket * initial, numbers.baseline).min(most);
        Bucket { numbers, credits, most, used_to: 0, next: 0 }
    }

    /// The credits at `now`, and what the limit allows per second without them; `None` of a limit without bursts.
    pub(super) fn left(&self, now: Fine) -> Option<(f64, f64)> {
        let Numbers { baseline, burst, refill, .. } = self.numbers;
        let idle = now - self.used_to;
        let change = if idle >= 0 { (idle as f64 * (refill / baseline)) as Fine } else { idle };
        let credits = self.credits.saturating_add(change).clamp(0, self.most);
        let seconds = credits as f64 / 1e12 / (1u64 << PART_BITS) as f64;
        (burst > baseline).then_some((seconds * baseline, baseline))
    }

    /// When a request may go that comes at `at`.
    pub(super) fn earliest(&self, at: Fine) -> Fine {
        at.max(self.next).max(self.used_to - self.credits)
    }

    /// One of `tokens` goes at `at`, which [`earliest`](Bucket::earliest) allows.
    pub(super) fn take(&mut self, at: Fine, tokens: f64) {
        let idle = at - self.used_to;
        if idle >= 0 {
            let filled = idle as f64 * (self.numbers.refill / self.numbers.baseline);
            self.credits = self.credits.saturating_add(filled as Fine).min(self.most);
        } else {
            // How far the baseline was ahead of the clock is bought.
            self.credits += idle;
        }
        self.used_to = at + span(tokens, self.numbers.baseline);
        self.next = at + span(tokens, self.numbers.burst);
    }
}
