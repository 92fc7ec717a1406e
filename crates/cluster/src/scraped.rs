//! Metrics of other programs, read over HTTP while a run goes on: the exporter of the target's server, say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONNECTION, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use ssdyno_figures::{MetricSeries, ScrapedMetrics};
use ssdyno_prober::{MetricPoint, monotonic_ns, read_open_metrics};
use ssdyno_session::Failure;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::hosts::HostAddress;
use crate::progress::MetricsReading;

/// Bytes of an answer at most: an exporter of a large machine has some 100 kB.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Series of a source at most: each is in the result with all its points.
const SERIES_MAX: usize = 200;

/// Points of a series at most; when there are more, every second one is left out.
const POINTS_MAX: usize = 240;

/// The programs sampled beside the hosts of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProberAddress {
    /// A machine, by a prober or a worker on it.
    Machine(HostAddress),
    /// A program that publishes metrics.
    Metrics(MetricsSource),
}

/// `http://HOST:PORT[/PATH][#PREFIX[+PREFIX…]]`: OpenMetrics over HTTP, and with which prefixes names are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricsSource {
    host: String,
    path: String,
    prefixes: Vec<String>,
}

impl FromStr for ProberAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ProberAddress, String> {
        let Some(rest) = text.trim().strip_prefix("http://") else {
            return text.parse().map(ProberAddress::Machine);
        };
        // The fragment of a URL is never sent to a server, so its place is free for the
        // prefixes. `?` would be part of the request.
        let (place, prefixes) = rest.split_once('#').unwrap_or((rest, ""));
        let (host, path) = place.find('/').map_or((place, "/metrics"), |at| place.split_at(at));
        let port = host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        // The rules for addresses of workers apply here, too. In particular a name cannot begin with a hyphen or
        // contain control characters, which would end up in the `Host` header.
        let is_host = matches!(host.parse(), Ok(HostAddress::Listening { .. }));
        // Blanks and line feeds in a path would let the user write
        // further header lines into the request.
        let is_path = path.chars().all(|c| c.is_ascii_graphic());
        if port.is_none() || !is_host || !is_path {
            return Err(format!(
                "`{text}` is not the address of metrics: use http://HOST:PORT/metrics, with `#PREFIX+PREFIX` for the names to keep"
            ));
        }
        let prefixes = prefixes.split('+').filter(|prefix| !prefix.is_empty());
        Ok(ProberAddress::Metrics(MetricsSource {
            host: host.to_owned(),
            path: path.to_owned(),
            prefixes: prefixes.map(str::to_owned).collect(),
        }))
    }
}

impl fmt::Display for ProberAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProberAddress::Machine(host) => host.fmt(f),
            ProberAddress::Metrics(source) => source.fmt(f),
        }
    }
}

impl fmt::Display for MetricsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.host, self.path)?;
        if self.prefixes.is_empty() {
            return Ok(());
        }
        write!(f, "#{}", self.prefixes.join("+"))
    }
}

/// The metrics of an answer.
fn points_of(text: &[u8]) -> Result<Vec<MetricPoint>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "its answer is not UTF-8".to_owned())?;
    read_open_metrics(text).map_err(|error| format!("its answer is not OpenMetrics: {error}"))
}

impl MetricsSource {
    fn keeps(&self, point: &MetricPoint) -> bool {
        let named = |prefix: &String| point.name.starts_with(prefix.as_str());
        self.prefixes.is_empty() || self.prefixes.iter().any(named)
    }

    /// Its metrics now.
    async fn read(&self) -> Result<Vec<MetricPoint>, String> {
        let answer = async {
            let text = self.fetch().await?;
            // The one thread of the controller carries all hosts. A long answer must not delay their messages.
            let read = tokio::task::spawn_blocking(move || points_of(&text)).await;
            read.map_err(|error| format!("its answer could not be read: {error}"))?
        };
        let answer = tokio::time::timeout(ANSWER_WITHIN, answer).await;
        answer.map_err(|_| format!("no answer within {} s", ANSWER_WITHIN.as_secs()))?
    }

    async fn fetch(&self) -> Result<Bytes, String> {
        let text = |error: &dyn fmt::Display| error.to_string();
        let stream = TcpStream::connect(&self.host).await.map_err(|error| text(&error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| text(&e))?;
        // The task ends with the answer, because the request asks the server to close the connection. It is not
        // joined: a server that keeps the connection open must not delay the run.
        tokio::spawn(async move { drop(connection.await) });
        let request = Request::get(&self.path)
            .header(HOST, &self.host)
            .header(ACCEPT, "application/openmetrics-text; version=1.0.0")
            .header(CONNECTION, "close")
            .body(Empty::<Bytes>::new())
            .map_err(|error| text(&error))?;
        let answer = sender.send_request(request).await.map_err(|error| text(&error))?;
        // Redirects are not followed. A redirect could name a host that the user
        // never listed, and a login page is no metric.
        if answer.status() != StatusCode::OK {
            return Err(format!("it answers {}", answer.status()));
        }
        // The limit applies while the body arrives. An endless answer would otherwise fill the memory of the
        // controller within the five seconds of the timeout.
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        Ok(body.map_err(|error| text(&error))?.to_bytes())
    }
}

/// A name and its labels.
type Key = (String, Vec<(String, String)>);

/// The readings so far.
#[derive(Debug, Default)]
struct Table {
    /// When, on the controller's monotonic clock.
    times_ns: Vec<u64>,
    /// For each series its description, and a value for each of the times from its first on.
    series: BTreeMap<Key, (MetricPoint, Vec<Option<f64>>)>,
    /// Series that had no place.
    left_out: u64,
    /// Series that never had a finite value, as many as there is place for.
    never_finite: BTreeSet<Key>,
    /// One in so many readings is kept.
    every: u64,
    readings: u64,
    /// Readings that failed, and why the last did.
    failed: Option<(u64, String)>,
    /// The last reading, whether it is among those that are kept or not.
    latest: (u64, Arc<Vec<MetricPoint>>),
}

impl Table {
    fn add(&mut self, at_ns: u64, read: Result<Vec<MetricPoint>, String>) {
        self.readings += 1;
        // JSON has neither infinity nor NaN. Exporters use both (a bucket `+Inf`, a sensor without a value),
        // and one of them would make `result.json` unreadable: such a value is a gap.
        let read = read.map(|points| {
            let (finite, others): (Vec<MetricPoint>, Vec<MetricPoint>) =
                points.into_iter().partition(|point| point.value.is_finite());
            self.note_never_finite(others);
            finite
        });
        // The live view gets the newest reading also when the series skips it. It has the same limit of series,
        // so that a page does not receive thousands of lines.
        let newest =
            read.as_ref().map_or(&[][..], |points| &points[..points.len().min(SERIES_MAX)]);
        self.latest = (at_ns, Arc::new(newest.to_vec()));
        // A failure counts whether or not its place in the series is kept.
        let points = read.unwrap_or_else(|why| {
            let failed = self.failed.get_or_insert((0, String::new()));
            *failed = (failed.0 + 1, why);
            Vec::new()
        });
        if !self.readings.is_multiple_of(self.every.max(1)) {
            return;
        }
        let before = self.times_ns.len();
        self.times_ns.push(at_ns);
        for point in points {
            let key = (point.name.clone(), point.labels.clone());
            self.never_finite.remove(&key);
            let is_new = !self.series.contains_key(&key);
            // The table keeps the series that came first. New names, such as a container that starts during the run,
            // are counted and left out; otherwise the result would grow without a limit.
            if is_new && self.series.len() == SERIES_MAX {
                self.left_out += 1;
                continue;
            }
            let value = Some(point.value);
            let (_, values) = self.series.entry(key).or_insert_with(|| (point, vec![None; before]));
            // A series may have been missing for several readings. The gap is filled here, so that
            // each value stands at the index of its time.
            values.resize(before, None);
            values.push(value);
        }
        self.series.values_mut().for_each(|(_, values)| values.resize(before + 1, None));
        if self.times_ns.len() > POINTS_MAX {
            self.thin_out();
        }
    }

    /// Remembers the series of `points`, whose values cannot be kept.
    fn note_never_finite(&mut self, points: Vec<MetricPoint>) {
        for point in points {
            let key = (point.name, point.labels);
            if self.never_finite.len() < SERIES_MAX && !self.series.contains_key(&key) {
                self.never_finite.insert(key);
            }
        }
    }

    /// Leaves out every second reading; the first and the newest stay, or nearly so.
    fn thin_out(&mut self) {
        fn halve<T: Clone>(values: &mut Vec<T>) {
            // Every second value is dropped and not averaged: many metrics are counters, and the
            // mean of two counter values belongs to no moment.
            *values = values.iter().step_by(2).cloned().collect();
        }
        halve(&mut self.times_ns);
        self.series.values_mut().for_each(|(_, values)| halve(values));
        self.every = self.every.max(1) * 2;
    }
}

/// A source that is read while a run goes on.
pub(crate) struct Scraped {
    source: MetricsSource,
    table: Arc<Mutex<Table>>,
    reading: JoinHandle<()>,
}

impl Drop for Scraped {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Scraped {
    /// Reads `source` once, and then every `every`.
    ///
    /// # Errors
    /// It cannot be read, or has none of the names that are to be kept.
    pub(crate) async fn start(source: &MetricsSource, every: Duration) -> Result<Scraped, Failure> {
        let refuse = |why: String, help: &str| {
            let message = format!("cannot read the metrics of {source}: {why}");
            Failure::failed(message).with_help(help).with_key("probers")
        };
        let keep = |points: Vec<MetricPoint>, source: &MetricsSource| -> Vec<MetricPoint> {
            points.into_iter().filter(|point| source.keeps(point)).collect()
        };
        // The first reading happens before the load. A wrong address is an error then, and not a run of an
        // hour without the metrics that the user asked for.
        let first = source.read().await.map_err(|why| {
            refuse(why, "name a program that answers with OpenMetrics text there, or leave it out")
        })?;
        let first = keep(first, source);
        if !first.iter().any(|point| point.value.is_finite()) {
            return Err(refuse(
                "no metric has a finite value and a name with these prefixes".to_owned(),
                "look at its names, and change the prefixes",
            ));
        }
        let table = Arc::new(Mutex::new(Table::default()));
        lock(&table).add(monotonic_ns(), Ok(first));
        let (mine, of) = (Arc::clone(&table), source.clone());
        let reading = tokio::spawn(async move {
            let mut timer = tokio::time::interval(every);
            // A server that hangs delays a reading by up to five seconds. `Skip` continues on the old grid;
            // the default would send all missed readings at once.
            timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
            timer.tick().await;
            loop {
                timer.tick().await;
                let asked_ns = monotonic_ns();
                let read = of.read().await.map(|points| keep(points, &of));
                // The server made the values at some moment between question and answer. The middle halves the
                // largest possible error, as with the clocks of workers.
                lock(&mine).add(u64::midpoint(asked_ns, monotonic_ns()), read);
            }
        });
        Ok(Scraped { source: source.clone(), table, reading })
    }

    /// What was read last.
    pub(crate) fn latest(&self) -> MetricsReading {
        let table = lock(&self.table);
        let (monotonic_ns, points) = table.latest.clone();
        MetricsReading {
            source: self.source.to_string(),
            number: table.readings,
            monotonic_ns,
            points,
        }
    }

    /// What was read. Times count from `origin_ns` of the controller's monotonic clock, or from the first reading.
    pub(crate) fn metrics(self, origin_ns: Option<i128>) -> ScrapedMetrics {
        // The table is taken and not copied. The reading task may add one more reading
        // to the empty table, which nobody looks at.
        let table = std::mem::take(&mut *lock(&self.table));
        let first = table.times_ns.first().copied().unwrap_or(0);
        let origin = origin_ns.unwrap_or(i128::from(first));
        let seconds = |ns: &u64| (i128::from(*ns) - origin) as f64 / 1e9;
        let series = table.series.into_values().map(|(point, values)| MetricSeries {
            name: point.name,
            labels: point.labels.into_iter().collect(),
            kind: point.kind.word().to_owned(),
            unit: point.unit,
            values,
        });
        ScrapedMetrics {
            source: self.source.to_string(),
            times_seconds: table.times_ns.iter().map(seconds).collect(),
            series: series.collect(),
            left_out: table.left_out + table.never_finite.len() as u64,
            readings_failed: table.failed.as_ref().map_or(0, |(count, _)| *count),
            last_error: table.failed.map(|(_, why)| why),
        }
    }
}

/// A panic elsewhere leaves the table whole.
fn lock(table: &Mutex<Table>) -> std::sync::MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_from_machines() {
        for (text, again) in [
            ("http://a:9100/metrics", "http://a:9100/metrics"),
            ("http://127.0.0.1:9100", "http://127.0.0.1:9100/metrics"),
            (
                "http://[::1]:1/x?y=1#node_disk_+node_cpu",
                "http://[::1]:1/x?y=1#node_disk_+node_cpu",
            ),
        ] {
            let address: ProberAddress = text.parse().unwrap();
            assert!(matches!(address, ProberAddress::Metrics(_)), "{text}");
            assert_eq!(address.to_string(), again);
            assert_eq!(again.parse::<ProberAddress>().unwrap(), address);
        }
        assert!(matches!("admin@b".parse(), Ok(ProberAddress::Machine(_))));
        for bad in [
            "http://",
            "http://a",
            "http://a:0",
            "http://a b:1",
            "http://-x:1",
            "http://u@h:1",
            "https://a:1/m",
        ] {
            assert!(bad.parse::<ProberAddress>().is_err(), "{bad}");
        }
    }

    fn point(name: &str, value: f64) -> MetricPoint {
        MetricPoint { name: name.to_owned(), value, ..MetricPoint::default() }
    }

    /// Each series has a value or a gap for each time, whenever it came and went, and memory is bounded.
    #[test]
    fn gaps_stay_gaps_and_memory_is_bounded() {
        let mut table = Table::default();
        for at in 0..1000_u64 {
            let read = match at % 10 {
                3 => Err(format!("gone at {at}")),
                _ => Ok((0..if at < 500 { 2 } else { 1 })
                    .map(|n| point(&format!("m{n}"), at as f64))
                    .collect()),
            };
            table.add(at, read);
        }
        assert!(table.times_ns.len() <= POINTS_MAX && table.times_ns.len() > POINTS_MAX / 3);
        assert_eq!(table.failed, Some((100, "gone at 993".to_owned())));
        for (point, values) in table.series.values() {
            assert_eq!(values.len(), table.times_ns.len(), "{}", point.name);
            for (at, value) in table.times_ns.iter().zip(values) {
                let ends = point.name == "m1" && *at >= 500;
                let expected = (at % 10 != 3 && !ends).then_some(*at as f64);
                assert_eq!(*value, expected, "{} at {at}", point.name);
            }
        }
        let mut wide = Table::default();
        wide.add(0, Ok((0..SERIES_MAX + 7).map(|n| point(&format!("m{n}"), 1.0)).collect()));
        assert_eq!((wide.series.len(), wide.left_out), (SERIES_MAX, 7));
        let mut odd = Table::default();
        for value in [f64::NAN, 2.0, f64::INFINITY] {
            odd.add(0, Ok(vec![point("never", f64::NAN), point("once", value), point("m", 1.0)]));
        }
        let names: Vec<&str> = odd.series.keys().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["m", "once"]);
        let key = ("once".to_owned(), Vec::new());
        assert_eq!(odd.series[&key].1, [None, Some(2.0), None]);
        let never: Vec<&str> = odd.never_finite.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(never, ["never"], "a series without a value is counted, and not lost");
        assert!(odd.latest.1.iter().all(|point| point.value.is_finite()));
    }
}
