//! The series of a result as CSV.

use ssdyno_figures::{RunResult, SeriesPoint};

/// The series of `result` as CSV, a line for each point: times in seconds, latencies in nanoseconds. What is not known is empty.
pub fn series_csv(result: &RunResult) -> String {
    let mut text = "start_seconds,length_seconds,reads,writes,trims,flushes,errors,read_bytes,write_bytes,iops,\
                    throughput_bytes_per_second,latency_ns_mean,latency_ns_p50,latency_ns_p95,latency_ns_p99,\
                    latency_ns_max,power_watts\n"
        .to_owned();
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for point in &result.series {
        let SeriesPoint { start_seconds, length_seconds, reads, writes, trims, flushes, .. } =
            point;
        let SeriesPoint { errors, read_bytes, write_bytes, iops, .. } = point;
        text.push_str(&format!(
            "{start_seconds},{length_seconds},{reads},{writes},{trims},{flushes},{errors},{read_bytes},{write_bytes},\
             {iops},{}",
            point.throughput_bytes_per_second
        ));
        let latencies = [
            point.latency_ns_mean,
            point.latency_ns_p50,
            point.latency_ns_p95,
            point.latency_ns_p99,
            point.latency_ns_max,
            point.power_watts.map(|power| power.total),
        ];
        latencies.into_iter().for_each(|value| text.push_str(&format!(",{}", number(value))));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_is_a_line_with_all_columns() {
        let known = SeriesPoint {
            reads: 7,
            iops: 3.5,
            latency_ns_p99: Some(12.5),
            ..SeriesPoint::default()
        };
        let result =
            RunResult { series: vec![known, SeriesPoint::default()], ..RunResult::default() };
        let text = series_csv(&result);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
        let cell = |line: usize, name: &str| {
            lines[line][lines[0].iter().position(|column| *column == name).unwrap()]
        };
        assert_eq!(
            (cell(1, "reads"), cell(1, "iops"), cell(1, "latency_ns_p99")),
            ("7", "3.5", "12.5")
        );
        assert_eq!((cell(2, "latency_ns_max"), cell(2, "power_watts")), ("", ""));
    }
}
