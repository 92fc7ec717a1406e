//! Reads OpenMetrics text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{OpenMetricsError, is_label_name, is_metric_name};

/// The most labels of a metric. Prometheus' exporters have up to some 30, and every pair of names is compared.
const LABELS_MAX: usize = 128;

/// The most bytes of a line. The texts come from a network, and messages and results contain the labels.
const LINE_BYTES_MAX: usize = 64 << 10;

ssdyno_block::named! {
    /// What a family of metrics is (clause 5.2 of the specification).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum MetricKind: word {
        /// Only grows, or begins again at 0; its values end with `_total`.
        Counter = "counter",
        /// Goes up and down.
        Gauge = "gauge",
        /// Counts by bucket, of events.
        Histogram = "histogram",
        /// Counts by bucket, of what there is now.
        GaugeHistogram = "gaugehistogram",
        /// States that are on or off.
        StateSet = "stateset",
        /// Labels that hold for long; the value is 1.
        Info = "info",
        /// Quantiles, count and sum.
        Summary = "summary",
        /// The text does not say it.
        #[default]
        Unknown = "unknown",
    }
}

impl MetricKind {
    /// What the names of its values have behind that of the family.
    pub(super) fn suffixes(self) -> &'static [&'static str] {
        match self {
            MetricKind::Counter => &["_total", "_created"],
            MetricKind::Histogram => &["_bucket", "_count", "_sum", "_created"],
            MetricKind::GaugeHistogram => &["_bucket", "_gcount", "_gsum"],
            MetricKind::Info => &["_info"],
            MetricKind::Summary => &["", "_count", "_sum", "_created"],
            MetricKind::Gauge | MetricKind::StateSet | MetricKind::Unknown => &[""],
        }
    }
}

/// A value of a metric.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MetricPoint {
    /// The name with suffix: `http_requests_total`.
    pub name: String,
    /// Names and values of labels, in the order of the text.
    pub labels: Vec<(String, String)>,
    /// The value; it may be infinite or not a number, which JSON cannot hold.
    pub value: f64,
    /// The time of the value in seconds since 1970 (UTC), if the text has one.
    pub timestamp_seconds: Option<f64>,
    /// What the family is.
    pub kind: MetricKind,
    /// The unit of the family; empty if the text has none.
    pub unit: String,
}

/// Reads the values of an OpenMetrics text. Exemplars are checked and left out. Empty lines and comments, which other
/// programs write, are skipped.
///
/// # Errors
/// A line is not OpenMetrics, or the text does not end with `# EOF`: then a part of it may be missing, or it is in
/// Prometheus' older format, in which times are milliseconds. Or a line has more than 64 KiB or 128 labels.
pub fn read_open_metrics(text: &str) -> Result<Vec<MetricPoint>, OpenMetricsError> {
    let mut points = Vec::new();
    let mut family = Family::default();
    // Only a line feed ends a line. A carriage return may be part of a
    // label, and `str::lines` would remove it.
    let mut lines = text.split('\n').enumerate();
    for (index, line) in lines.by_ref() {
        let at = |problem| OpenMetricsError { line: index + 1, problem };
        if line.len() > LINE_BYTES_MAX {
            return Err(at(format!("the line has more than {LINE_BYTES_MAX} bytes")));
        }
        // Nothing may follow `# EOF`. Text after it means that two answers were glued together, and
        // the second one would be lost without a message.
        if line == "# EOF" {
            return match lines.find(|(_, rest)| !rest.is_empty()) {
                None => Ok(points),
                Some((index, _)) => Err(OpenMetricsError {
                    line: index + 1,
                    problem: "there is text after `# EOF`".to_owned(),
                }),
            };
        }
        if line.starts_with('#') {
            family.read(line).map_err(at)?;
        } else if !line.is_empty() {
            points.push(Cursor { rest: line }.point(&family).map_err(at)?);
        }
    }
    // An HTTP answer that was cut off has no `# EOF`. Its values would look complete, and
    // missing series would look like series that ended.
    Err(OpenMetricsError {
        line: text.split('\n').count(),
        problem: "the text ends without `# EOF`: ask the program for application/openmetrics-text"
            .to_owned(),
    })
}

/// The information about a value in the lines before it.
#[derive(Default)]
struct Family {
    name: String,
    kind: MetricKind,
    unit: String,
}

impl Family {
    /// A line `# TYPE`, `# UNIT` or `# HELP`; others are comments.
    fn read(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.splitn(4, ' ').skip(1);
        let keyword = match words.next() {
            Some(keyword @ ("TYPE" | "UNIT" | "HELP")) => keyword,
            _ => return Ok(()),
        };
        let name = words.next().unwrap_or_default();
        if !is_metric_name(name) {
            return Err(format!("`{name}` after {keyword} is not the name of a metric"));
        }
        // A new name begins a new family. Its type must not be taken from the
        // family before, so everything is reset first.
        if self.name != name {
            *self = Family { name: name.to_owned(), ..Family::default() };
        }
        let rest = words.next().unwrap_or_default();
        match keyword {
            "TYPE" => {
                let kind = MetricKind::named(rest);
                self.kind = kind.ok_or_else(|| format!("`{rest}` is not a type of metric"))?;
            }
            "UNIT" => {
                let suffix = name.strip_suffix(rest);
                // The unit must be the end of the name, after an underscore. Exporters that get this wrong
                // mix up units, and their figures cannot be trusted.
                if !rest.is_empty() && !suffix.is_some_and(|name| name.ends_with('_')) {
                    return Err(format!("`{name}` does not end with its unit `{rest}`"));
                }
                rest.clone_into(&mut self.unit);
            }
            _ => {}
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        let suffix = name.strip_prefix(self.name.as_str());
        suffix.is_some_and(|suffix| self.kind.suffixes().contains(&suffix))
    }
}

/// What is left of a line.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn point(mut self, family: &Family) -> Result<MetricPoint, String> {
        let name = self.until(|c| matches!(c, '{' | ' '));
        if !is_metric_name(name) {
            return Err(format!("`{name}` is not the name of a metric"));
        }
        // Exemplars follow after ` # `. Without this test the word `#`
        // would be read as the time of the value.
        let labels = if self.rest.starts_with('{') { self.labels()? } else { Vec::new() };
        let value = self.number("the value")?;
        let mut timestamp_seconds = None;
        // `f64::from_str` accepts `inf` and `NaN`. They are values of
        // OpenMetrics, but a time must be finite.
        if !self.rest.is_empty() && !self.rest.starts_with(" # ") {
            timestamp_seconds = Some(self.number("the time")?).filter(|time| time.is_finite());
            if timestamp_seconds.is_none() {
                return Err("the time is not finite".to_owned());
            }
        }
        self.exemplar()?;
        // A value whose name does not belong to the family before it has no known type. It is read as an
        // unknown metric, because many exporters omit the type.
        let (kind, unit) = match family.has(name) {
            true => (family.kind, family.unit.clone()),
            false => (MetricKind::Unknown, String::new()),
        };
        Ok(MetricPoint { name: name.to_owned(), labels, value, timestamp_seconds, kind, unit })
    }

    /// Checks what is left of the line: nothing, or ` # {labels} value [time]`.
    fn exemplar(&mut self) -> Result<(), String> {
        if self.rest.is_empty() {
            return Ok(());
        }
        self.expect(" # ")?;
        self.labels()?;
        self.number("the value of the exemplar")?;
        if !self.rest.is_empty() {
            self.number("the time of the exemplar")?;
        }
        if self.rest.is_empty() { Ok(()) } else { Err(format!("`{}` is too much", self.rest)) }
    }

    /// From `{` to `}`.
    fn labels(&mut self) -> Result<Vec<(String, String)>, String> {
        self.expect("{")?;
        let mut labels: Vec<(String, String)> = Vec::new();
        while !self.rest.starts_with('}') {
            if !labels.is_empty() {
                self.expect(",")?;
            }
            let name = self.until(|c| c == '=');
            if !is_label_name(name) {
                return Err(format!("`{name}` is not the name of a label"));
            }
            if labels.len() == LABELS_MAX {
                return Err(format!("a metric has more than {LABELS_MAX} labels"));
            }
            // Two labels of the same name would make two different series equal. The limit above keeps this search
            // linear in the length of the text.
            if labels.iter().any(|(other, _)| other == name) {
                return Err(format!("label `{name}` appears twice"));
            }
            self.expect("=\"")?;
            let value = self.quoted()?;
            labels.push((name.to_owned(), value));
        }
        self.expect("}")?;
        Ok(labels)
    }

    /// To the quote that is not escaped.
    fn quoted(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((index, character)) = characters.next() {
            match character {
                '"' => {
                    // `get` instead of an index: the quote is one byte, so the position is valid, but the text came
                    // over a network, and no input may cause a panic.
                    self.rest = self.rest.get(index + 1..).unwrap_or_default();
                    return Ok(text);
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, escaped @ ('\\' | '"'))) => text.push(escaped),
                    // Another character after a backslash stands for itself, with the backslash (clause
                    // 5.1). Exporters write Windows paths in this way.
                    Some((_, other)) => text.extend(['\\', other]),
                    None => break,
                },
                other => text.push(other),
            }
        }
        Err("the value of a label does not end with a quote".to_owned())
    }

    /// A blank, and the number after it.
    fn number(&mut self, what: &str) -> Result<f64, String> {
        self.expect(" ")?;
        let word = self.until(|c| c == ' ');
        word.parse().map_err(|_| format!("{what} is `{word}`, which is not a number"))
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        let rest = self.rest.strip_prefix(text);
        // The message quotes 20 characters at most. A line from the network may have megabytes, and the
        // message goes into a result and onto a terminal.
        self.rest = rest.ok_or_else(|| {
            let found: String = self.rest.chars().take(20).collect();
            format!("expected `{text}`, found `{found}`")
        })?;
        Ok(())
    }

    fn until(&mut self, end: impl Fn(char) -> bool) -> &'a str {
        let (found, rest) = self.rest.split_at(self.rest.find(end).unwrap_or(self.rest.len()));
        self.rest = rest;
        found
    }
}
