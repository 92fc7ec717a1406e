//! Writes OpenMetrics text.

use std::fmt::Write as _;

use super::{MetricLabels, OpenMetricsError, is_label_name, is_metric_name};

/// Writes families of gauges one after the other. Other parts of a program may add theirs to those of a sample.
#[derive(Clone, Debug, Default)]
pub struct OpenMetricsWriter {
    text: String,
    /// Names so far: a family must not appear twice.
    families: Vec<String>,
}

impl OpenMetricsWriter {
    /// Without a family yet.
    pub fn new() -> OpenMetricsWriter {
        OpenMetricsWriter::default()
    }

    /// Begins the family `name`. `unit` is empty or the last words of the name, as in `ssdyno_memory_free_bytes`.
    ///
    /// # Errors
    /// The name is not valid, was there before, or does not end with `_` and the unit.
    pub fn gauge(&mut self, name: &str, unit: &str, help: &str) -> Result<(), OpenMetricsError> {
        let ends = unit.is_empty()
            || name.strip_suffix(unit).is_some_and(|rest| rest.len() > 1 && rest.ends_with('_'));
        let problem = if !is_metric_name(name) {
            "is not a name: use letters, digits, `_` and `:`, and begin with no digit"
        } else if !ends {
            "does not end with its unit"
        } else if self.families.iter().any(|other| other == name) {
            "appears twice"
        } else {
            self.families.push(name.to_owned());
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "# TYPE {name} gauge");
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
    /// No family was begun, or the name of `own` is not that of a label.
    pub fn value(
        &mut self,
        labels: &MetricLabels,
        own: Option<(&str, &str)>,
        value: f64,
    ) -> Result<(), OpenMetricsError> {
        let error = |problem: String| Err(OpenMetricsError { line: 0, problem });
        let Some(name) = self.families.last() else {
            return error("a value belongs to a family: begin one first".to_owned());
        };
        if let Some((own, _)) = own
            && !is_label_name(own)
        {
            return error(format!("label `{own}` is not a name"));
        }
        self.text.push_str(name);
        let mut before = '{';
        for (name, value) in labels.iter().chain(own) {
            let _ = write!(self.text, "{before}{name}=\"{}\"", Escaped(value));
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
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
            value if value != 0.0 && !(1e-5..1e16).contains(&value.abs()) => write!(f, "{value:e}"),
            value => write!(f, "{value}"),
        }
    }
}
