//! The metrics of a sample.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::{MetricKind, MetricLabels, OpenMetricsError, OpenMetricsWriter};
use crate::figures::{FigureFacts, Figures};
use crate::sample::SystemSample;

/// Time that the figures cover.
const INTERVAL: FigureFacts = FigureFacts {
    name: "ssdyno_sample_interval_seconds",
    unit: "seconds",
    help: "Time over which the rates of this exposition are means.",
};

/// A sample and the labels of its machine.
type Labelled<'a> = (&'a SystemSample, &'a MetricLabels);

/// Cores have metrics of their own: a sum over `ssdyno_cpu_*` must not count the machine and its cores.
fn named(facts: &FigureFacts, of: &str) -> String {
    match (of, facts.name.strip_prefix("ssdyno_cpu_")) {
        ("core", Some(rest)) => format!("ssdyno_core_{rest}"),
        _ => facts.name.to_owned(),
    }
}

impl OpenMetricsWriter {
    /// The families of samples of several machines, whose labels tell them apart, beside those of other parts of a program. All
    /// metrics are gauges, since rates are. Those of parts have a label: `core`, `interface`, `disk`, `sensor` or `resource`.
    /// What is unknown is left out.
    ///
    /// # Errors
    /// One of these families was there before.
    pub fn samples(
        &mut self,
        samples: &[(&SystemSample, &MetricLabels)],
    ) -> Result<(), OpenMetricsError> {
        // A family without a value is valid, but Prometheus shows it as a
        // metric that never arrives. It is left out.
        if !samples.is_empty() {
            self.family(MetricKind::Gauge, INTERVAL.name, INTERVAL.unit, INTERVAL.help)?;
        }
        for (sample, labels) in samples {
            self.value(labels, None, sample.interval_ns as f64 / 1e9)?;
        }
        write_whole(self, samples, |sample| sample.cpu)?;
        write_parts(self, samples, "core", |sample| &sample.cores)?;
        write_whole(self, samples, |sample| sample.activity)?;
        write_whole(self, samples, |sample| sample.memory)?;
        write_whole(self, samples, |sample| sample.swap)?;
        write_parts(self, samples, "interface", |sample| &sample.interfaces)?;
        write_parts(self, samples, "disk", |sample| &sample.disks)?;
        write_parts(self, samples, "disk", |sample| &sample.discards)?;
        write_parts(self, samples, "disk", |sample| &sample.flushes)?;
        write_parts(self, samples, "sensor", |sample| &sample.power)?;
        write_parts(self, samples, "resource", |sample| &sample.pressure)
    }
}

fn write_whole<const N: usize, F: Figures<N>>(
    writer: &mut OpenMetricsWriter,
    samples: &[Labelled<'_>],
    pick: impl Fn(&SystemSample) -> Option<F>,
) -> Result<(), OpenMetricsError> {
    // All values of a family must stand together. The figures of all machines are therefore
    // collected first, and each figure then writes its lines.
    let all: Vec<(&MetricLabels, F)> =
        samples.iter().filter_map(|(sample, labels)| Some((*labels, pick(sample)?))).collect();
    for (index, facts) in F::FACTS.iter().enumerate().filter(|_| !all.is_empty()) {
        writer.family(MetricKind::Gauge, facts.name, facts.unit, facts.help.trim())?;
        for (labels, figures) in &all {
            writer.value(labels, None, figures.values()[index])?;
        }
    }
    Ok(())
}

fn write_parts<const N: usize, K: Display, F: Figures<N>>(
    writer: &mut OpenMetricsWriter,
    samples: &[Labelled<'_>],
    label: &str,
    pick: impl Fn(&SystemSample) -> &BTreeMap<K, F>,
) -> Result<(), OpenMetricsError> {
    // A large machine has hundreds of parts. They are collected once for all
    // figures of the group, not once for each figure.
    let mut all: Vec<(&MetricLabels, String, F)> = Vec::new();
    for (sample, labels) in samples {
        let parts = pick(sample).iter();
        all.extend(parts.map(|(name, figures)| (*labels, name.to_string(), *figures)));
    }
    for (index, facts) in F::FACTS.iter().enumerate().filter(|_| !all.is_empty()) {
        writer.family(MetricKind::Gauge, &named(facts, label), facts.unit, facts.help.trim())?;
        for (labels, name, figures) in &all {
            writer.value(labels, Some((label, name)), figures.values()[index])?;
        }
    }
    Ok(())
}
