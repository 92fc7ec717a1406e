//! How precise a figure is to be before a run ends, and how precise it became.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

ssdyno_block::named! {
    /// A figure whose interval decides when a run is long enough.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Metric: name {
        /// Mean latency and requests per second; both must be within the width.
        MeanAndIops = "mean latency and IOPS",
        /// Mean latency.
        Mean = "mean",
        /// Requests per second.
        Iops = "iops",
        /// Bytes per second.
        Throughput = "throughput",
        /// Median latency.
        P50 = "p50",
        /// 95th percentile of the latency.
        P95 = "p95",
        /// 99th percentile of the latency.
        P99 = "p99",
        /// 99.9th percentile of the latency.
        P99_9 = "p99.9",
    }
}

impl Metric {
    /// Those that are typed by their names. Without a name it is the one of mean and IOPS.
    fn typed() -> impl Iterator<Item = Metric> {
        Metric::ALL.into_iter().filter(|metric| *metric != Metric::MeanAndIops)
    }

    /// The share of requests below the percentile, 0 to 1; `None` for a goal that is not a
    /// percentile.
    pub fn share(self) -> Option<f64> {
        match self {
            Metric::P50 => Some(0.5),
            Metric::P95 => Some(0.95),
            Metric::P99 => Some(0.99),
            Metric::P99_9 => Some(0.999),
            _ => None,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How narrow the interval of which figure must be: `1%`, `p99=2%`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Until {
    /// The figure.
    pub metric: Metric,
    /// Half the width of its interval divided by the figure: greater than 0, at most 0.1.
    pub relative_half_width: f64,
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * self.relative_half_width;
        // As it is typed: 0.1 + 0.2 would show its rounding.
        let percent = (percent * 1e6).round() / 1e6;
        match self.metric {
            Metric::MeanAndIops => write!(f, "{percent}%"),
            metric => write!(f, "{metric}={percent}%"),
        }
    }
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Until, String> {
        let (metric, percent) = match text.split_once('=') {
            None => (Metric::MeanAndIops, text),
            Some((name, percent)) => {
                let found = Metric::typed().find(|metric| metric.name() == name.trim());
                let Some(metric) = found else {
                    let names: Vec<&str> = Metric::typed().map(Metric::name).collect();
                    return Err(format!("`{name}` is not one of {}", names.join(", ")));
                };
                (metric, percent)
            }
        };
        let number = percent.trim().strip_suffix('%').map(str::trim_end);
        let number = number.and_then(|number| number.parse::<f64>().ok());
        // Zero could never be reached. The upper limit is explained below: wider intervals do
        // not cover the truth as often as they say.
        let number = number.filter(|number| *number > 0.0 && *number <= 10.0);
        let number = number.ok_or(
            "use a percentage greater than 0 and at most 10, such as 1%, or p99=2%".to_owned(),
        )?;
        // Above 10 % a run may end before it has seen the target's slow moments at all: simulated
        // queues at load 0.8 then cover the truth 85 times of 100 only, and not 95.
        // Percentiles are watched in bins of 0.8 %.
        if metric.share().is_some() && number < 1.0 {
            return Err("the smallest goal for a percentile is 1%; use 1% or more".to_owned());
        }
        Ok(Until { metric, relative_half_width: number / 100.0 })
    }
}

/// Result of an [`Until`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Precision {
    /// The figure that decided.
    pub metric: Metric,
    /// The goal: half the width of the interval divided by the figure, 0 to 1.
    pub asked: f64,
    /// The same ratio when the run stopped; `null` without an interval, or without an upper bound.
    pub at_stop: Option<f64>,
    /// Whether the run stopped because the interval was narrow enough.
    pub reached: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_typed_and_back() {
        for text in ["1%", "0.3%", "mean=2%", "p99=2%", "p99.9=10%", "iops=0.5%", "throughput=1%"] {
            assert_eq!(text.parse::<Until>().unwrap().to_string(), text);
        }
        for wrong in ["", "1", "%", "0%", "-1%", "11%", "nan%", "p98=1%", "p99=0.5%", "p99", "=1%"]
        {
            assert!(wrong.parse::<Until>().is_err(), "{wrong}");
        }
    }
}
