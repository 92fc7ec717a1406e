//! How long the arm takes for a distance.

use ssdyno_block::{ConfigError, Time};

use crate::check::error;
use crate::config::{DiskTable, SeekTable};

/// Time by distance.
#[derive(Clone, Debug)]
pub(crate) enum SeekCurve {
    /// Measured: cylinders and picoseconds, both with straight lines between.
    Points(Vec<(u32, u64)>),
    /// a + b sqrt(d - 1) + c (d - 1), in picoseconds.
    Fitted { a: f64, b: f64, c: f64 },
}

const HELP: &str =
    "set points = [[1, \"1.1ms\"], [100, \"2.9ms\"], ...], or single, average and full";

impl SeekCurve {
    /// The curve of a drive with this number of cylinders.
    pub(crate) fn new(disk: &DiskTable, cylinders: u32) -> Result<SeekCurve, ConfigError> {
        let SeekTable { points, single, average, full } = &disk.seek;
        match (&points[..], single, average, full) {
            ([], Some(single), Some(average), Some(full)) => {
                fit(cylinders, [single.0, average.0, full.0])
            }
            ([_, ..], None, None, None) => measured(points.iter().map(|p| (p.0, p.1.0))),
            ([], ..) => {
                Err(error("seek", "the curve needs points, or single, average and full", HELP))
            }
            _ => Err(error("seek", "has both points and a fitted curve", HELP)),
        }
    }

    /// The time of a seek over `distance` cylinders, in picoseconds; 0 for none.
    pub(crate) fn ps(&self, distance: u32) -> u64 {
        if distance == 0 {
            return 0;
        }
        match self {
            SeekCurve::Fitted { a, b, c } => {
                let more = f64::from(distance - 1);
                (a + b * more.sqrt() + c * more) as u64
            }
            SeekCurve::Points(points) => {
                let after = points.partition_point(|point| point.0 < distance);
                match (after.checked_sub(1).and_then(|i| points.get(i)), points.get(after)) {
                    (Some(low), Some(high)) => {
                        let share = f64::from(distance - low.0) / f64::from(high.0 - low.0);
                        (low.1 as f64 + share * (high.1 as f64 - low.1 as f64)) as u64
                    }
                    // There is no measurement of such a short or long seek.
                    (None, Some(only)) | (Some(only), None) => only.1,
                    (None, None) => 0,
                }
            }
        }
    }
}

/// Longer seeks are a mistake of a unit.
const LONGEST: Time = Time::from_s(1);

fn measured(points: impl Iterator<Item = (u32, Time)>) -> Result<SeekCurve, ConfigError> {
    let points: Vec<(u32, u64)> = points.map(|(d, time)| (d, time.as_ps())).collect();
    let rising = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if !rising || points.first().is_none_or(|first| first.0 == 0) {
        let help = "list the distances in ascending order from 1, each once";
        return Err(error("seek.points", "the distances do not rise", help));
    }
    match points.iter().find(|point| point.1 > LONGEST.as_ps()) {
        Some((distance, _)) => {
            let problem = format!("the seek over {distance} cylinders is longer than a second");
            Err(error("seek.points", problem, "use times such as \"8.5ms\""))
        }
        None => Ok(SeekCurve::Points(points)),
    }
}

/// The curve through the three figures of a data sheet.
fn fit(cylinders: u32, times: [Time; 3]) -> Result<SeekCurve, ConfigError> {
    let [single, average, full] = times.map(|time| time.as_ps() as f64);
    let (third, whole) = (f64::from(cylinders / 3) - 1.0, f64::from(cylinders) - 2.0);
    if third < 1.0 {
        let help = "set points for a drive this small";
        return Err(error("seek", "a fitted curve needs at least six cylinders", help));
    }
    // b sqrt(x) + c x through (third, average - single) and (whole, full - single).
    let (y1, y2) = (average - single, full - single);
    let (r1, r2) = (third.sqrt(), whole.sqrt());
    let b = (y1 * whole - y2 * third) / (r1 * whole - r2 * third);
    let c = (y1 - b * r1) / third;
    // A concave curve may fall again before the last cylinder: its slope there must not be negative.
    let slope = b / (2.0 * r2) + c;
    let ordered =
        0.0 < single && single <= average && average <= full && full <= LONGEST.as_ps() as f64;
    if !ordered || b < 0.0 || slope < 0.0 {
        let help = "check that single <= average <= full, with the average nearer to full than a third of the way; or set measured points";
        return Err(error("seek", "no rising curve goes through single, average and full", help));
    }
    Ok(SeekCurve::Fitted { a: single, b, c })
}
