//! Labels that a whole exposition carries.

use super::{OpenMetricsError, is_label_name};

/// Labels that name the kind of thing of a figure; nobody else may use them.
const OWN: [&str; 5] = ["core", "interface", "disk", "sensor", "resource"];

/// Labels of the machine that a sample is of, such as `host="a"`. Each name is valid and appears once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MetricLabels(Vec<(String, String)>);

impl MetricLabels {
    /// From names and values, in the order in which they are written.
    ///
    /// # Errors
    /// A name is not `[a-zA-Z_][a-zA-Z0-9_]*`, appears twice, or is one of those that the figures of a sample
    /// have: `core`, `interface`, `disk`, `sensor`, `resource`.
    pub fn new<N: Into<String>, V: Into<String>>(
        labels: impl IntoIterator<Item = (N, V)>,
    ) -> Result<MetricLabels, OpenMetricsError> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (name, value) in labels {
            let name = name.into();
            // A label of the caller with the name `disk` would collide with the label of a disk's own figures,
            // and a scrape with a label twice is invalid as a whole.
            let problem = if !is_label_name(&name) {
                "is not a name: use letters, digits and `_`, and begin with no digit"
            } else if OWN.contains(&name.as_str()) {
                "is a label of the figures: choose another name"
            } else if all.iter().any(|(other, _)| *other == name) {
                "appears twice"
            } else {
                all.push((name, value.into()));
                continue;
            };
            // Labels are not lines of a text, so there is no
            // line number; zero says so.
            return Err(OpenMetricsError { line: 0, problem: format!("label `{name}` {problem}") });
        }
        Ok(MetricLabels(all))
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}
