//! Writes OpenMetrics text.

use std::fmt::Write as _;

use super::{MetricKind, MetricLabels, OpenMetricsError, is_label_name, is_metric_name};

fn wrong(problem: String) -> OpenMetricsError {
    OpenMetricsError { line: 0, problem }
}

/// A bound is a label, and labels are compared as text: a whole number has `.0` (clause 5.1 of the specification).
fn canonical(bound: f64) -> String {
    let text = Number(bound).to_string();
    // Bounds are compared as text by the receiver: `1` and `1.0` would be
    // two different buckets of one histogram.
    if text.contains(['.', 'e']) { text } else { text + ".0" }
}

/// Writes families of metrics one after the other. Other parts of a program may add theirs to those of a sample.
#[derive(Clone, Debug, Default)]
pub struct OpenMetricsWriter {
    text: String,
    /// Names so far: a family must not appear twice.
    families: Vec<String>,
    /// Of the family that was begun last.
    kind: MetricKind,
}

impl OpenMetricsWriter {
    /// Without a family yet.
    pub fn new() -> OpenMetricsWriter {
        OpenMetricsWriter::default()
    }

    /// Begins the family `name` of values of a `kind`. The writer appends what the kind puts behind the name of a value
    /// (`_total`, `_info`). `unit` is empty or the last words of the name, as in `ssdyno_memory_free_bytes`.
    ///
    /// # Errors
    /// The name is not valid, was there before, ends with what the writer appends, or does not end with `_` and the
    /// unit.
    pub fn family(
        &mut self,
        kind: MetricKind,
        name: &str,
        unit: &str,
        help: &str,
    ) -> Result<(), OpenMetricsError> {
        // A unit alone is not a name: `bytes` would pass the test for the suffix, so
        // something must stand before the underscore.
        let ends = unit.is_empty()
            || name.strip_suffix(unit).is_some_and(|rest| rest.len() > 1 && rest.ends_with('_'));
        // The writer appends `_total` and the like itself. A name that already has the suffix would get it
        // twice, and the type line would not match its values.
        let appended = kind.suffixes().iter().find(|one| !one.is_empty() && name.ends_with(**one));
        let problem = if !is_metric_name(name) {
            "is not a name: use letters, digits, `_` and `:`, and begin with no digit"
        } else if !ends {
            "does not end with its unit"
        } else if appended.is_some() {
            "ends with what the writer appends"
        } else if self.families.iter().any(|other| other == name) {
            "appears twice"
        } else {
            self.families.push(name.to_owned());
            self.kind = kind;
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "# TYPE {name} {}", kind.word());
            if !unit.is_empty() {
                let _ = writeln!(self.text, "# UNIT {name} {unit}");
            }
            let _ = writeln!(self.text, "# HELP {name} {}", Escaped(help));
            return Ok(());
        };
        Err(OpenMetricsError { line: 0, problem: format!("metric `{name}` {problem}") })
    }

    /// A value of the family that was begun last, with `labels` and, behind them, `own`.
    ///
    /// # Errors
    /// No family of single values was begun, or the name of `own` is not that of a label.
    pub fn value(
        &mut self,
        labels: &MetricLabels,
        own: Option<(&str, &str)>,
        value: f64,
    ) -> Result<(), OpenMetricsError> {
        // A histogram and a set of states have methods of their own, because their lines
        // need a label that a plain value does not have.
        let suffix = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge => "",
            _ => return Err(wrong("a value belongs to a family: begin one first".to_owned())),
        };
        self.line(suffix, labels, own, value)
    }

    /// The states of the family that was begun last, each with whether it is on.
    ///
    /// # Errors
    /// No family of states was begun.
    pub fn states(
        &mut self,
        labels: &MetricLabels,
        states: &[(&str, bool)],
    ) -> Result<(), OpenMetricsError> {
        let name = self.families.last().filter(|_| self.kind == MetricKind::StateSet).cloned();
        let name =
            name.ok_or_else(|| wrong("states belong to a set of states: begin one".to_owned()))?;
        states.iter().try_for_each(|(state, is_on)| {
            self.line("", labels, Some((&name, state)), f64::from(u8::from(*is_on)))
        })
    }

    /// A histogram of the family that was begun last: for each bound, ascending, the count of values up to and
    /// with it; then the count and the sum of all values.
    ///
    /// # Errors
    /// No histogram was begun; bounds or counts do not ascend.
    pub fn buckets(
        &mut self,
        labels: &MetricLabels,
        up_to: &[(f64, u64)],
        count: u64,
        sum: f64,
    ) -> Result<(), OpenMetricsError> {
        if self.kind != MetricKind::Histogram {
            return Err(wrong("buckets belong to a histogram: begin one first".to_owned()));
        }
        // Prometheus computes percentiles from differences of neighbouring buckets. Counts that fall would
        // give negative differences and nonsense percentiles.
        let ascend = |pair: &[(f64, u64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
        let ends = up_to.last().is_none_or(|(bound, last)| bound.is_finite() && *last <= count);
        if !up_to.windows(2).all(ascend) || !ends {
            return Err(wrong("the bounds and counts of a histogram must ascend".to_owned()));
        }
        for (bound, below) in up_to {
            let bound = canonical(*bound);
            self.line("_bucket", labels, Some(("le", &bound)), *below as f64)?;
        }
        // The bucket `+Inf` is mandatory, and its count is the total. Latencies
        // above the last bound are found only there.
        self.line("_bucket", labels, Some(("le", "+Inf")), count as f64)?;
        self.line("_count", labels, None, count as f64)?;
        self.line("_sum", labels, None, sum)
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: &MetricLabels,
        own: Option<(&str, &str)>,
        value: f64,
    ) -> Result<(), OpenMetricsError> {
        let Some(name) = self.families.last() else {
            return Err(wrong("a value belongs to a family: begin one first".to_owned()));
        };
        if let Some((own, _)) = own
            && !is_label_name(own)
        {
            return Err(wrong(format!("label `{own}` is not a name")));
        }
        // The same label twice makes the whole exposition invalid for Prometheus, not only
        // this line. The error names the label instead.
        if let Some((own, _)) = own
            && labels.iter().any(|(other, _)| other == own)
        {
            return Err(wrong(format!("label `{own}` appears twice")));
        }
        self.text.push_str(name);
        self.text.push_str(suffix);
        let mut before = '{';
        for (name, value) in labels.iter().chain(own) {
            let _ = write!(self.text, "{before}{name}=\"{}\"", Escaped(value));
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
        // The value is written in the shortest form that reads back as the same number. More digits
        // would make each scrape longer and no more exact.
        let _ = writeln!(self.text, " {}", Number(value));
        Ok(())
    }

    /// The whole text with its end mark.
    pub fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

/// Text in which backslash, line feed and quote are escaped.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '"' => f.write_str("\\\"")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// The shortest text that reads back as the same number.
struct Number(f64);

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            value if value.is_nan() => f.write_str("NaN"),
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            // Display writes every digit of very large and very small numbers. A counter of
            // 1e300 would fill a line with 300 zeros.
            value if value != 0.0 && !(1e-5..1e16).contains(&value.abs()) => write!(f, "{value:e}"),
            value => write!(f, "{value}"),
        }
    }
}
