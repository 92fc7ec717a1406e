//! The metrics of a sample.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::{MetricLabels, OpenMetricsError, OpenMetricsWriter};
use crate::figures::{FigureFacts, Figures};
use crate::sample::{
    CpuFractions, DiscardRates, DiskRates, FlushRates, KernelActivity, MemoryLevels, NetworkRates,
    SensorLevel, StalledTime, SwapRates, SystemSample,
};

/// Time that the figures cover.
const INTERVAL: FigureFacts = FigureFacts {
    name: "ssdyno_sample_interval_seconds",
    unit: "seconds",
    help: "Time over which the rates of this exposition are means.",
};

/// A sample and the labels of its machine.
type Labelled<'a> = (&'a SystemSample, &'a MetricLabels);

/// The text of one sample, for `Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8`. All metrics
/// are gauges, since rates are. Those of parts have a label: `core`, `interface`, `disk`, `sensor` or `resource`. What
/// is unknown is left out.
pub fn to_open_metrics(sample: &SystemSample, labels: &MetricLabels) -> String {
    to_open_metrics_of_many(&[(sample, labels)])
}

/// The text of samples of several machines, whose labels tell them apart: a metric must be in one place of a text.
pub fn to_open_metrics_of_many(samples: &[(&SystemSample, &MetricLabels)]) -> String {
    let mut writer = OpenMetricsWriter::new();
    let written = writer.samples(samples);
    // The names are constants of this crate, and a test writes each of them. An error here is
    // therefore a bug, which a debug build reports at once.
    debug_assert_eq!(written, Ok(()));
    writer.finish()
}

impl OpenMetricsWriter {
    /// The families of samples, beside those of other parts of a program.
    ///
    /// # Errors
    /// One of these families was there before.
    pub fn samples(
        &mut self,
        samples: &[(&SystemSample, &MetricLabels)],
    ) -> Result<(), OpenMetricsError> {
        write_all(self, samples)
    }
}

/// The names of all metrics that a sample can have, for dashboards and their tests.
pub fn metric_names() -> Vec<String> {
    // The dashboard and the tests need the names without a machine. They are computed from the same
    // facts as the exposition, so they cannot differ from it.
    fn add<const N: usize, F: Figures<N>>(names: &mut Vec<String>, of: &str) {
        names.extend(F::FACTS.iter().map(|facts| named(facts, of)));
    }
    let mut names = vec![INTERVAL.name.to_owned()];
    add::<8, CpuFractions>(&mut names, "cpu");
    add::<8, CpuFractions>(&mut names, "core");
    add::<5, KernelActivity>(&mut names, "");
    add::<8, MemoryLevels>(&mut names, "");
    add::<2, SwapRates>(&mut names, "");
    add::<8, NetworkRates>(&mut names, "");
    add::<9, DiskRates>(&mut names, "");
    add::<3, DiscardRates>(&mut names, "");
    add::<2, FlushRates>(&mut names, "");
    add::<1, SensorLevel>(&mut names, "");
    add::<1, StalledTime>(&mut names, "");
    names
}

/// Cores have metrics of their own: a sum over `ssdyno_cpu_*` must not count the machine and its cores.
fn named(facts: &FigureFacts, of: &str) -> String {
    match (of, facts.name.strip_prefix("ssdyno_cpu_")) {
        ("core", Some(rest)) => format!("ssdyno_core_{rest}"),
        _ => facts.name.to_owned(),
    }
}

fn write_all(
    writer: &mut OpenMetricsWriter,
    samples: &[Labelled<'_>],
) -> Result<(), OpenMetricsError> {
    // A family without a value is valid, but Prometheus shows it as a
    // metric that never arrives. It is left out.
    if !samples.is_empty() {
        writer.gauge(INTERVAL.name, INTERVAL.unit, INTERVAL.help)?;
    }
    for (sample, labels) in samples {
        writer.value(labels, None, sample.interval_ns as f64 / 1e9)?;
    }
    write_whole(writer, samples, |sample| sample.cpu)?;
    write_parts(writer, samples, "core", |sample| &sample.cores)?;
    write_whole(writer, samples, |sample| sample.activity)?;
    write_whole(writer, samples, |sample| sample.memory)?;
    write_whole(writer, samples, |sample| sample.swap)?;
    write_parts(writer, samples, "interface", |sample| &sample.interfaces)?;
    write_parts(writer, samples, "disk", |sample| &sample.disks)?;
    write_parts(writer, samples, "disk", |sample| &sample.discards)?;
    write_parts(writer, samples, "disk", |sample| &sample.flushes)?;
    write_parts(writer, samples, "sensor", |sample| &sample.power)?;
    write_parts(writer, samples, "resource", |sample| &sample.pressure)
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
        writer.gauge(facts.name, facts.unit, facts.help.trim())?;
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
        writer.gauge(&named(facts, label), facts.unit, facts.help.trim())?;
        for (labels, name, figures) in &all {
            writer.value(labels, Some((label, name)), figures.values()[index])?;
        }
    }
    Ok(())
}
