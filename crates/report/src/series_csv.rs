//! The series of a result as CSV.

use ssdyno_figures::{RunResult, SeriesPoint, csv_cell};

/// The series of `result` as CSV, a line for each point: times in seconds, latencies in nanoseconds. Unknown values are
/// empty. With several hosts the lines of all together come first, with an empty `host`, then those of each host.
pub fn series_csv(result: &RunResult) -> String {
    let hosts = !result.hosts.is_empty();
    let mut text = if hosts { "host," } else { "" }.to_owned();
    text.push_str(
        "start_seconds,length_seconds,reads,writes,trims,flushes,errors,read_bytes,write_bytes,iops,\
                    throughput_bytes_per_second,latency_ns_mean,latency_ns_p50,latency_ns_p95,latency_ns_p99,\
                    latency_ns_max,power_watts\n",
    );
    let lines = |name: Option<&str>, series: &[SeriesPoint], text: &mut String| {
        for point in series {
            if let Some(name) = name {
                text.push_str(&csv_cell(name));
                text.push(',');
            }
            line(point, text);
        }
    };
    lines(hosts.then_some(""), &result.series, &mut text);
    for host in &result.hosts {
        lines(Some(&host.name), &host.series, &mut text);
    }
    text
}

fn line(point: &SeriesPoint, text: &mut String) {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let SeriesPoint { start_seconds, length_seconds, reads, writes, trims, flushes, .. } = point;
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

#[cfg(test)]
mod tests {
    use ssdyno_figures::HostRun;

    use super::*;

    #[test]
    fn points_of_hosts_follow_those_of_all() {
        let point = SeriesPoint { reads: 7, ..SeriesPoint::default() };
        let host = |name: &str| HostRun {
            name: name.to_owned(),
            series: vec![point],
            ..HostRun::default()
        };
        let result = RunResult {
            series: vec![SeriesPoint { reads: 14, ..point }],
            hosts: vec![host("a"), host("b,c")],
            ..RunResult::default()
        };
        let text = series_csv(&result);
        let starts: Vec<&str> = text.lines().map(|line| &line[..9]).collect();
        assert_eq!(starts, ["host,star", ",0,0,14,0", "a,0,0,7,0", "\"b,c\",0,0"]);
    }

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
