//! Options that several verbs take, and the values of options.

use clap::Args;
use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_figures::Until;
use ssdyno_session::RunSpec;

use crate::host::HostArgs;
use crate::trace_args::TraceArgs;

/// The load of a target.
#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArgs {
    /// Workload: a preset (see `ssdyno list`), FILE.toml, or a trace, which may be compressed [default:
    /// randread for a real device or file, mixed for other targets].
    #[arg(short, long, value_name = "WORKLOAD")]
    pub(crate) workload: Option<String>,
    /// Run the jobs of a fio job file instead of a workload. Jobs run at the same time; groups (stonewall)
    /// run one after the other. Unsupported options are reported with their line.
    #[arg(long, value_name = "FILE.fio",
          conflicts_with_all = ["workload", "depth", "block_size", "read_percent", "rate", "requests", "trace_format", "timing", "trace_depth",
                                "trace_device", "trace_origin", "trace_slot", "trace_ids",
                                "trace_columns", "beyond_end"])]
    pub(crate) fio: Option<String>,
    /// Random seed: the same seed repeats a simulated run (fio: randseed).
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
          value_parser = seed)]
    pub(crate) seed: u64,
    /// Stop issuing after this much device time, such as 10s (fio: runtime). With --fio, no job runs
    /// longer.
    #[arg(short = 't', long = "for", alias = "runtime", value_name = "TIME", value_parser = positive_span,
          conflicts_with = "requests")]
    pub(crate) duration: Option<Span>,
    /// Issue this many requests, such as 5000, 40k or 1.5M (fio: number_ios). Requests of a ramp-up are not
    /// counted.
    #[arg(long, value_name = "N", value_parser = requests)]
    pub(crate) requests: Option<u64>,
    /// Run until the 95 % intervals of mean latency and IOPS are this narrow, such as 1%, or the interval
    /// of one figure, such as p99=2%.
    ///
    /// Figures: mean, iops, throughput, p50, p95, p99, p99.9. --for or --requests limits the run [default
    /// limits: 10 minutes and 20 million requests].
    #[arg(long, value_name = "[FIGURE=]N%")]
    pub(crate) until: Option<Until>,
    /// Number of outstanding requests: workload.depth (fio: iodepth).
    #[arg(short, long, alias = "iodepth", value_name = "N")]
    pub(crate) depth: Option<String>,
    /// Size of every request, such as 4k: workload.block_size (fio: bs).
    #[arg(short, long, alias = "bs", value_name = "SIZE")]
    pub(crate) block_size: Option<String>,
    /// Percentage of reads: workload.read_percent (fio: rwmixread).
    #[arg(short, long, alias = "rwmixread", value_name = "N")]
    pub(crate) read_percent: Option<String>,
    /// Requests per second in an open loop with Poisson arrivals: workload.arrivals (fio: rate_iops with
    /// rate_process=poisson).
    #[arg(long, alias = "rate-iops", value_name = "N")]
    pub(crate) rate: Option<String>,
    /// Set a key of the device or the workload; see below. May be repeated.
    #[arg(short, long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

impl LoadArgs {
    /// As a spec has it.
    pub(crate) fn spec(&self) -> RunSpec {
        RunSpec {
            workload: self.workload.clone(),
            fio: self.fio.clone(),
            seed: self.seed,
            duration: self.duration,
            requests: self.requests,
            until: self.until,
            set: self.set(),
            trace: self.trace.spec(),
            host: self.host.spec(),
            ..RunSpec::default()
        }
    }
}

impl LoadArgs {
    /// What is set: by options of its own first, because what `--set` says in full goes over it.
    fn set(&self) -> Vec<String> {
        let own = [
            ("depth", &self.depth),
            ("block_size", &self.block_size),
            ("read_percent", &self.read_percent),
            ("arrivals.rate", &self.rate),
        ];
        let kind = self.rate.as_ref().map(|_| "workload.arrivals.kind=poisson".to_owned());
        let given = own.into_iter().filter_map(|(key, value)| {
            value.as_ref().map(|value| format!("workload.{key}={value}"))
        });
        kind.into_iter().chain(given).chain(self.set.iter().cloned()).collect()
    }
}

/// A time; nothing needs no unit.
pub(crate) fn span_or_zero(text: &str) -> Result<Span, String> {
    if text.trim() == "0" {
        return Ok(Span(Time::ZERO));
    }
    text.parse().map_err(|error: ssdyno_block::units::UnitError| error.to_string())
}

/// A time above zero.
pub(crate) fn positive_span(text: &str) -> Result<Span, String> {
    let span: Span =
        text.parse().map_err(|error: ssdyno_block::units::UnitError| error.to_string())?;
    if span.0 == Time::ZERO {
        return Err("it must be greater than zero".to_owned());
    }
    Ok(span)
}

/// Rows of a table.
pub(crate) fn rows(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("use at least 1".to_owned()),
        Ok(rows) => Ok(rows),
        Err(_) => Err("use a whole number from 1".to_owned()),
    }
}

/// What everything random is drawn from.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("it must be a whole number from 0 to {}", u64::MAX))
}

/// A number of requests above zero: a whole one, in thousands (k), millions (M) or billions (G).
pub(crate) fn requests(text: &str) -> Result<u64, String> {
    let help = || "it must be a whole number above zero, such as 5000, 40k or 1.5M".to_owned();
    if let Some((number, power)) = text.split_once(['e', 'E'])
        && let (Ok(_), Ok(power)) = (number.parse::<f64>(), power.parse::<u32>())
    {
        // As a shift of the point: 1e6 and 1.5e3 are whole, 1.5e0 is not.
        let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len() as u32);
        let whole: Option<u64> = number.replace('.', "").parse().ok();
        let shift = power.checked_sub(digits).and_then(|shift| 10u64.checked_pow(shift));
        let count = whole.zip(shift).and_then(|(whole, shift)| whole.checked_mul(shift));
        return count.filter(|n| (1..=1_000_000_000_000_000).contains(n)).ok_or_else(help);
    }
    let (number, factor) = match text.chars().last() {
        Some('k' | 'K') => (&text[..text.len() - 1], 1e3),
        Some('M') => (&text[..text.len() - 1], 1e6),
        Some('G') => (&text[..text.len() - 1], 1e9),
        _ => return text.replace('_', "").parse().ok().filter(|n| *n > 0).ok_or_else(help),
    };
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_'));
    let count = number.replace('_', "").parse::<f64>().ok().filter(|_| plain).ok_or_else(help)?;
    // Nine digits after the point at most: what is left is the noise of the multiplication.
    let count = (count * factor * 1e3).round() / 1e3;
    if count.fract() != 0.0 || !(1.0..=1e15).contains(&count) {
        return Err(help());
    }
    Ok(count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_in_thousands_and_millions() {
        let read = [("1", 1), ("40k", 40_000), ("1.5M", 1_500_000), ("2G", 2_000_000_000)];
        let more = [("1_000", 1000), ("1.001k", 1001), ("1e6", 1_000_000), ("1.5e3", 1500)];
        for (text, count) in read.into_iter().chain(more) {
            assert_eq!(requests(text), Ok(count), "{text}");
        }
        for text in [
            "", "k", "0", "0k", "-1", "1.5", "1.0001k", "1e3k", "1.5e0", "1e99", "-1e3", "nank",
            "4KiB", "9999999G",
        ] {
            assert!(requests(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans() {
        assert!(positive_span("0s").is_err() && positive_span("10").is_err());
        assert!(span_or_zero("0").is_ok() && span_or_zero("10").is_err());
    }
}
