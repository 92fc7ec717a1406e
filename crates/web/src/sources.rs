//! Metrics of programs that are read beside a run, as the page draws them.

use serde::Serialize;
use ssdyno_cluster::MetricsReading;
use ssdyno_prober::{MetricKind, MetricPoint};

/// Readings that are kept at most of a program: ten minutes at one a second, as of machines.
const KEPT: usize = 600;

/// Series of a program that are drawn at most: a page of charts. The result has up to 200.
const SERIES_MAX: usize = 48;

/// What a series is.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct SeriesName {
    name: String,
    /// `device="sda", mode="read"`; empty without labels.
    labels: String,
    unit: String,
    /// Whether values are changes a second of what only grows.
    is_rate: bool,
}

/// One reading: a value for each series, up to the newest series then.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct ReadingView {
    /// On the clock of the run; `None` where that is not the clock on the wall.
    run_s: Option<f64>,
    values: Vec<Option<f64>>,
}

/// Readings of one program that a viewer has not seen.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct MetricsNews {
    run: u64,
    source: String,
    series: Vec<SeriesName>,
    /// Series that are not drawn.
    left_out: usize,
    samples: Vec<ReadingView>,
}

/// The last readings of the programs of a run.
#[derive(Debug, Default)]
pub(crate) struct LiveSources(Vec<Source>);

#[derive(Debug, Default)]
struct Source {
    name: String,
    /// Number of the newest reading.
    newest: u64,
    series: Vec<(MetricPoint, SeriesName)>,
    left_out: usize,
    /// The last values of all series, and when they were read.
    last: (u64, Vec<Option<f64>>),
    /// How many readings there were before the first that is kept.
    before: usize,
    readings: Vec<ReadingView>,
}

/// Whether a value only grows, so that its change is what a person wants to see.
fn grows(kind: MetricKind) -> bool {
    matches!(kind, MetricKind::Counter | MetricKind::Histogram | MetricKind::Summary)
}

impl Source {
    fn take(&mut self, reading: &MetricsReading, run_s: Option<f64>) {
        self.newest = reading.number;
        self.left_out = 0;
        // A series that is missing in this reading has no value, and keeps its place: the
        // page identifies a series by its position.
        let mut values = vec![None; self.series.len()];
        for point in reading.points.iter() {
            let same = |(known, _): &(MetricPoint, SeriesName)| {
                known.name == point.name && known.labels == point.labels
            };
            match self.series.iter().position(same) {
                Some(at) => values[at] = Some(point.value),
                None if self.series.len() == SERIES_MAX => self.left_out += 1,
                None => {
                    let labels: Vec<String> = point
                        .labels
                        .iter()
                        .map(|(name, value)| format!("{name}={value:?}"))
                        .collect();
                    let name = SeriesName {
                        name: point.name.clone(),
                        labels: labels.join(", "),
                        unit: point.unit.clone(),
                        is_rate: grows(point.kind),
                    };
                    self.series.push((point.clone(), name));
                    values.push(Some(point.value));
                }
            }
        }
        let (at_ns, before) = std::mem::replace(&mut self.last, (reading.monotonic_ns, values));
        let seconds = reading.monotonic_ns.saturating_sub(at_ns) as f64 / 1e9;
        let shown = self.series.iter().enumerate().map(|(at, (_, name))| {
            let now = self.last.1[at]?;
            if !name.is_rate {
                return Some(now);
            }
            let change = now - before.get(at).copied().flatten()?;
            // A counter that went back began again at zero. Its difference would be a large
            // negative rate, so there is a gap for one reading.
            (change >= 0.0 && seconds > 0.0).then(|| change / seconds)
        });
        self.readings.push(ReadingView { run_s, values: shown.collect() });
        // Old readings are dropped one at a time. `before` counts them, so that a
        // viewer's place in the series stays right.
        if self.readings.len() > KEPT {
            self.readings.remove(0);
            self.before += 1;
        }
    }
}

impl LiveSources {
    /// Takes in the newest reading of each program; the run's clock is at `run_s`, if it is that on the wall.
    pub(crate) fn add(&mut self, newest: &[MetricsReading], run_s: Option<f64>) {
        for reading in newest {
            let at = self.0.iter().position(|source| source.name == reading.source);
            let at = at.unwrap_or_else(|| {
                self.0.push(Source { name: reading.source.clone(), ..Source::default() });
                self.0.len() - 1
            });
            if reading.number > self.0[at].newest {
                self.0[at].take(reading, run_s);
            }
        }
    }

    /// The readings that a viewer with this number of readings of each program has not seen; `seen` is brought forward.
    pub(crate) fn news(&self, run: u64, seen: &mut Vec<usize>) -> Vec<MetricsNews> {
        seen.resize(self.0.len(), 0);
        let news = self.0.iter().zip(seen).filter_map(|(source, seen)| {
            let new = seen.saturating_sub(source.before).min(source.readings.len());
            *seen = source.before + source.readings.len();
            let samples = source.readings[new..].to_vec();
            (!samples.is_empty()).then(|| MetricsNews {
                run,
                source: source.name.clone(),
                series: source.series.iter().map(|(_, name)| name.clone()).collect(),
                left_out: source.left_out,
                samples,
            })
        });
        news.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn reading(number: u64, values: &[(&str, MetricKind, f64)]) -> MetricsReading {
        let point = |(name, kind, value): &(&str, MetricKind, f64)| MetricPoint {
            name: (*name).to_owned(),
            labels: vec![("device".to_owned(), "sda".to_owned())],
            kind: *kind,
            value: *value,
            ..MetricPoint::default()
        };
        MetricsReading {
            source: "http://a:1/metrics".to_owned(),
            number,
            monotonic_ns: number * 2_000_000_000,
            points: Arc::new(values.iter().map(point).collect()),
        }
    }

    /// Counters are rates over the time between two readings; one that begins again and a reading that failed are gaps.
    #[test]
    fn counters_are_rates_and_gauges_are_values() {
        let (counter, gauge) = (MetricKind::Counter, MetricKind::Gauge);
        let mut live = LiveSources::default();
        let mut seen = Vec::new();
        let mut told = Vec::new();
        for (number, values) in [
            (1, &[("c", counter, 10.0), ("g", gauge, 7.0)][..]),
            (2, &[("c", counter, 30.0), ("g", gauge, 8.0)]),
            (3, &[("c", counter, 5.0)]),
            (4, &[]),
            (5, &[("c", counter, 9.0), ("n", gauge, 1.0)]),
        ] {
            let reading = [reading(number, values)];
            live.add(&reading, Some(number as f64));
            live.add(&reading, Some(9.0));
            let news = live.news(3, &mut seen);
            assert_eq!((news.len(), news[0].samples.len(), news[0].run), (1, 1, 3));
            told.push(news[0].samples[0].values.clone());
        }
        let expected: [&[Option<f64>]; 5] = [
            &[None, Some(7.0)],
            &[Some(10.0), Some(8.0)],
            &[None, None],
            &[None, None],
            &[None, None, Some(1.0)],
        ];
        assert_eq!(told, expected.map(<[_]>::to_vec));
        assert_eq!(live.0[0].series[0].1.labels, "device=\"sda\"");
        assert!(live.news(3, &mut seen).is_empty());
        let whole = live.news(3, &mut Vec::new());
        assert_eq!((whole[0].samples.len(), whole[0].samples[1].run_s), (5, Some(2.0)));
    }
}
