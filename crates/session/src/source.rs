//! The load of a run: from the names in a spec to a generator, a trace or the jobs of a file.

use std::path::{Path, PathBuf};

use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_rig::Source;
use ssdyno_workload::{TraceOptions, TraceTiming, WorkloadConfig};
use toml::Table;

use crate::document::Document;
use crate::failure::Failure;
use crate::file_mark::FileMark;
use crate::overlay::{Setting, refuse_workload_keys};
use crate::spec::words::FAST_DEPTH;
use crate::spec::{RunSpec, TraceSpec, given};
use crate::{fio, named};

/// Where `until` gives up if nothing else is said: long enough for what can be known at all,
/// and rows that fit in memory.
const UNTIL_REQUESTS_MAX: u64 = 20_000_000;
const UNTIL_TIME_MAX: Time = Time::from_s(600);

/// A load, and where it comes from.
pub(crate) struct LoadedSource {
    pub(crate) source: Source,
    /// The file of a generator.
    pub(crate) document: Option<Document>,
    /// Every key of it.
    pub(crate) contents: Option<Table>,
    /// Files whose contents are not in the spec.
    pub(crate) files: Vec<FileMark>,
}

impl LoadedSource {
    /// One that is read from the file at `path` and those that it names.
    fn of_file(path: &str, source: Source) -> LoadedSource {
        let mut paths = vec![Path::new(path)];
        match &source {
            Source::Trace { path, .. } if !paths.contains(&path.as_path()) => paths.push(path),
            _ => {}
        }
        let files = paths.into_iter().filter_map(FileMark::of).collect();
        LoadedSource { source, document: None, contents: None, files }
    }

    /// The load that `spec` names for `target`, which may be followed by the files `more`.
    pub(crate) fn new(
        spec: &RunSpec,
        target: &str,
        more: &[String],
        settings: &[Setting],
    ) -> Result<LoadedSource, Failure> {
        if let Some(path) = &spec.fio {
            refuse_workload_keys(settings, "a job file", "change the options in the file")?;
            let duration = spec.duration.map(|span| span.0);
            let source = fio::source(path, target, more, duration)?;
            return Ok(LoadedSource::of_file(path, source));
        }
        let name = spec.load(target);
        let contents = spec.contents.workload.as_ref();
        if let Some(mut generator) = named::workload(contents, name, settings)? {
            refuse_trace_options(&spec.trace)?;
            limit(&mut generator.config, spec);
            let contents = generator.document.written_out(&generator.config);
            let source = Source::Generator(generator.config);
            let (document, contents) = (Some(generator.document), Some(contents));
            return Ok(LoadedSource { source, document, contents, files: Vec::new() });
        }
        let help =
            "`trace.timing`, `trace.depth` and `trace.beyond_end` configure the replay of a trace";
        refuse_workload_keys(settings, "a trace", help)?;
        let options = spec.trace.options(spec.requests, spec.duration);
        Ok(LoadedSource::of_file(name, Source::Trace { path: PathBuf::from(name), options }))
    }
}

/// `for` and `requests` take the place of both limits of the workload; so do those of `until`, for which a
/// workload's own are too short.
fn limit(config: &mut WorkloadConfig, spec: &RunSpec) {
    if spec.duration.is_some() || spec.requests.is_some() {
        (config.duration, config.requests) = (spec.duration, spec.requests);
    } else if spec.until.is_some() {
        (config.duration, config.requests) = (Some(Span(UNTIL_TIME_MAX)), Some(UNTIL_REQUESTS_MAX));
    }
}

fn refuse_trace_options(trace: &TraceSpec) -> Result<(), Failure> {
    match given("trace", trace).into_iter().next() {
        None => Ok(()),
        Some((key, _)) => Err(Failure::usage(format!("`{key}` needs a trace"))
            .with_help("name a trace file as the workload, or leave it out")
            .with_key(key)),
    }
}

impl TraceSpec {
    /// As a workload reads them, with the limits of the run.
    fn options(&self, requests: Option<u64>, duration: Option<Span>) -> TraceOptions {
        let timing = match self.timing {
            Some(TraceTiming::AsFastAsPossible { .. }) => {
                TraceTiming::AsFastAsPossible { depth: self.depth.unwrap_or(FAST_DEPTH) }
            }
            Some(timing) => timing,
            None => TraceTiming::Original,
        };
        TraceOptions {
            format: self.format,
            timing,
            depth_limit: self.depth,
            beyond_end: self.beyond_end.unwrap_or_default(),
            devices: self.device.clone(),
            slot_bytes: self.slot.map(|size| size.0),
            object_ids: self.ids.unwrap_or_default(),
            columns: self.columns.clone(),
            origin: self.origin.unwrap_or_default(),
            requests,
            duration: duration.map(|span| span.0),
            ..TraceOptions::default()
        }
    }
}
