//! Intervals as texts beside their figures.

use ssdyno_figures::{Interval, significant};

/// The interval of a figure as text that follows it: ` ± 0.3 %`. It is empty without an interval, and tells no bound that is more than
/// 100 % off.
pub fn plus_minus(interval: Option<Interval>) -> String {
    let half = interval.and_then(|i| i.relative_half_width());
    match (half, interval) {
        (Some(half), _) if half < 0.000_05 => " ± 0.00 %".into(),
        // Such bounds would include zero, which no rate is.
        (Some(half), _) if half > 1.0 => " (interval wider than ± 100 %)".into(),
        (Some(_), Some(one)) if is_lopsided(&one) => format!(" {}", either_side(&one)),
        (Some(half), _) => format!(" ± {} %", significant(half * 100.0, 2)),
        (None, _) => String::new(),
    }
}

/// True if one side is so much longer that one number for both misses a bound, as with a warm-up.
fn is_lopsided(interval: &Interval) -> bool {
    let (down, up) = (interval.estimate - interval.low, interval.high - interval.estimate);
    down.max(up) > 1.5 * down.min(up)
}

/// `± 0.3 %`, or `-3 +12 %` where the sides differ: percentiles have lopsided intervals. `± 0 %`
/// where both bounds are the figure itself, as with a latency that never varies. `-38 % or more`
/// where the upper one is not known.
pub(crate) fn either_side(interval: &Interval) -> String {
    let Interval { estimate, low, high, .. } = *interval;
    if estimate == 0.0 {
        return "-".into();
    }
    let [down, up] = [estimate - low, high - estimate].map(|side| 100.0 * side / estimate.abs());
    let digits = |percent: f64| match percent {
        p if p < 0.005 => "0".to_owned(),
        p if p < 9.95 => significant(p, if p < 0.1 { 1 } else { 2 }),
        p => significant(p, 3).split('.').next().unwrap_or_default().to_owned(),
    };
    if down > 99.5 && up > 100.0 {
        return "unknown".to_owned();
    }
    match (digits(down), digits(up)) {
        // Nobody can use a bound at more than twice the figure.
        (down, _) if interval.upper().is_none() || up > 100.0 => format!("-{down} +∞ %"),
        (down, up) if down == up => format!("± {up} %"),
        _ if down.max(up) < 1.5 * down.min(up) => format!("± {} %", digits((down + up) / 2.0)),
        (down, up) => format!("-{down} +{up} %"),
    }
}
