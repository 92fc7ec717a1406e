//! The text format of OpenMetrics 1.0 (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
//!
//! Writer and reader are our own: of the crates that read it, openmetrics-parser is under the LGPL, and
//! prometheus-parse reads the older format of Prometheus and skips lines that it does not understand.

mod labels;
mod read;
mod sample;
mod write;

pub use labels::MetricLabels;
pub use read::{MetricKind, MetricPoint, read_open_metrics};
pub use write::OpenMetricsWriter;

/// Text or a label that OpenMetrics does not allow.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct OpenMetricsError {
    /// Counted from 1; 0 for a label or a name that is not in a text.
    pub line: usize,
    /// The problem.
    pub problem: String,
}

/// Whether `name` is that of a metric: `[a-zA-Z_:][a-zA-Z0-9_:]*`.
fn is_metric_name(name: &str) -> bool {
    name.bytes().enumerate().all(|(index, byte)| {
        byte.is_ascii_alphabetic()
            || matches!(byte, b'_' | b':')
            || (index > 0 && byte.is_ascii_digit())
    }) && !name.is_empty()
}

/// Whether `name` is that of a label: as of a metric, but without colons.
fn is_label_name(name: &str) -> bool {
    is_metric_name(name) && !name.contains(':')
}
