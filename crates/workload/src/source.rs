//! The source of the requests of a run.

use std::path::PathBuf;

use ssdyno_block::{Time, counted, each_once};

use crate::{
    FioFiles, FioJob, FioStream, TraceOptions, WorkloadConfig, WrittenPlaces, fio_streams,
};

/// The source of the requests to the device.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one a run")]
pub enum Source {
    /// A generator.
    Generator(WorkloadConfig),
    /// A recorded load.
    Trace {
        /// The file.
        path: PathBuf,
        /// How it is read and played.
        options: TraceOptions,
    },
    /// The jobs of a fio job file.
    Jobs {
        /// The file.
        path: PathBuf,
        /// Its sections.
        jobs: Vec<FioJob>,
    },
}

impl Source {
    /// True for a generator that issues each request because another one has completed.
    pub fn is_closed_loop(&self) -> bool {
        matches!(self, Source::Generator(config) if config.is_closed_loop())
    }

    /// What leaves the beginning of the load out of the figures; `None` where nothing does.
    pub fn ramp_up_key(&self) -> Option<&'static str> {
        match self {
            Source::Generator(_) => Some("workload.ramp_up"),
            Source::Jobs { .. } => Some("ramp_time"),
            Source::Trace { .. } => None,
        }
    }

    /// Whether the load pauses between its requests: a job of fio with a `thinktime`.
    pub fn pauses(&self) -> bool {
        matches!(self, Source::Jobs { jobs, .. } if jobs.iter().any(FioJob::pauses))
    }

    /// Largest number of outstanding requests of a generator; `None` without a bound, and for traces and job files.
    pub fn outstanding_limit(&self) -> Option<u64> {
        match self {
            Source::Generator(config) => config.outstanding_limit(),
            Source::Trace { .. } | Source::Jobs { .. } => None,
        }
    }

    /// The TOML that repeats the workload, for a target that consists of `files`.
    pub fn to_toml(&self, files: &FioFiles, seed: u64) -> String {
        match self {
            Source::Generator(config) => {
                // All defaults are written out, so that a later version of the program repeats the
                // same load even if a default has changed since.
                toml::to_string_pretty(&config.resolved()).unwrap_or_default()
            }
            Source::Trace { path, options } => {
                let lines = options.describe().into_iter().map(|line| format!("# {line}\n"));
                format!("# trace {}\n{}", path.display(), lines.collect::<String>())
            }
            Source::Jobs { path, jobs } => {
                let mut text = format!("# fio job file {}\n", path.display());
                // The streams are expanded again with the same seed. The text therefore shows the
                // ranges and seeds of each copy, which a reader cannot derive from `numjobs` and
                // `offset_increment` easily.
                for stream in fio_streams(jobs, files, seed) {
                    let job = &jobs[stream.job];
                    let (copy, group, seed) = (stream.copy, stream.group, stream.seed);
                    let parts = stream.ranges.iter().map(|range| {
                        let start = range.start_bytes;
                        format!("{start} to {}", start.saturating_add(range.length_bytes))
                    });
                    let parts = parts.collect::<Vec<_>>().join(", ");
                    text.push_str(&format!(
                        "\n# [{}], copy {copy}, group {group}, seed {seed}, bytes {parts}\n",
                        job.name,
                    ));
                    for (key, value) in &job.options {
                        let value = value.as_ref().map_or(String::new(), |v| format!("={v}"));
                        text.push_str(&format!("# {key}{value}\n"));
                    }
                }
                text
            }
        }
    }

    /// Why the load of a real target is not the one that its author described, each once.
    pub fn warnings(&self) -> Vec<String> {
        let Source::Jobs { jobs, .. } = self else { return Vec::new() };
        let warnings = jobs.iter().flat_map(|job| &job.warnings);
        each_once(warnings.map(|warning| format!("job file: {warning}")))
    }

    /// The notes on the workload for a reader of the figures.
    pub fn notes(&self) -> Vec<String> {
        let jobs = match self {
            Source::Jobs { jobs, .. } => jobs,
            Source::Generator(config) if !config.buffer.is_default() => {
                return vec![
                    "buffer: a simulated target stores no data; the keys have no effect".to_owned(),
                ];
            }
            _ => return Vec::new(),
        };
        let notes = jobs.iter().flat_map(|job| &job.notes);
        let mut notes = each_once(notes.map(|note| format!("job file: {note}")));
        if jobs.iter().any(|job| job.group > 0) {
            notes.push(
                "job file: groups ran one after the other; the figures of all jobs cover the whole time, the figures of a job cover its own time"
                    .to_owned(),
            );
        }
        notes
    }

    /// That the figures of all requests include so many `flushes`, for a job file: fio reports flushes apart from its IOPS.
    pub fn note_on_flushes(&self, flushes: u64) -> Option<String> {
        (matches!(self, Source::Jobs { .. }) && flushes > 0).then(|| {
            format!(
                "job file: IOPS and latency of all requests include {}; fio reports flushes separately",
                counted(flushes, "flush", "flushes")
            )
        })
    }

    /// The places that the load writes on a target of `capacity_bytes` with pages of `page_bytes`; `None` of loads that write
    /// in order, of traces, and of job files that do not have exactly one writing job with one file.
    pub fn written_places(&self, capacity_bytes: u64, page_bytes: u32) -> Option<WrittenPlaces> {
        let page_bytes = f64::from(page_bytes);
        match self {
            Source::Generator(load) => load.written_places(capacity_bytes, page_bytes),
            Source::Trace { .. } => None,
            Source::Jobs { jobs, .. } => {
                let mut streams = fio_streams(jobs, &FioFiles::one(capacity_bytes), 0);
                streams.retain(|stream| jobs[stream.job].changes_data());
                // Each job scatters its popular places by its own seed, and how often each writes
                // is known only after the run.
                let [stream] = &streams[..] else { return None };
                stream.written_places(page_bytes)
            }
        }
    }

    /// Requests (with ramp-up) and time at most, as far as it says so itself.
    pub fn bounds(&self) -> (Option<u64>, Option<Time>) {
        match self {
            Source::Generator(config) => {
                (config.total_requests(), config.duration.map(|span| span.0))
            }
            Source::Trace { options, .. } => (options.requests, options.duration),
            // Each job has its own.
            Source::Jobs { .. } => (None, None),
        }
    }
}

/// When the first of `streams` is recorded, from the start of the run; `None` where that is known only when
/// one has found its depth.
pub fn first_recorded(streams: &[FioStream]) -> Option<Time> {
    let first = streams.iter().map(|stream| stream.group).min();
    let first = streams.iter().filter(|stream| Some(stream.group) == first && !stream.searches());
    first.map(|stream| stream.start_delay.saturating_add(stream.ramp)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_of_a_job_file_have_a_note() {
        let jobs = Source::Jobs { path: PathBuf::from("a.fio"), jobs: Vec::new() };
        let note = jobs.note_on_flushes(1).unwrap();
        assert!(note.contains("include 1 flush;"), "{note}");
        assert_eq!(jobs.note_on_flushes(0), None);
        assert_eq!(Source::Generator(WorkloadConfig::default()).note_on_flushes(1), None);
    }

    fn load(text: &str) -> Source {
        let text = format!("write_percent = 100\nblock_size = \"4KiB\"\n[address]\n{text}");
        Source::Generator(WorkloadConfig::from_toml(&text).unwrap())
    }

    /// 990 writes to 100 places, of which one is hot: 9.9 of the writes go to the 99 cold places, 0.1 to each.
    #[test]
    fn cold_places_are_overwritten_late() {
        let hot_cold = "pattern = \"hot-cold\"\nhot_space_percent = 1\nhot_access_percent =";
        let of = |access: u32| {
            load(&format!("{hot_cold} {access}")).written_places(100 * 4096, 4096).unwrap()
        };
        let by_hand = 0.01 + 0.99 * (1.0 - (-0.1f64).exp());
        assert!((of(99).overwritten(990.0 * 4096.0) - by_hand).abs() < 1e-9, "{by_hand}");
        // What is never written does not count.
        assert!((of(100).overwritten(990.0 * 4096.0) - 1.0).abs() < 1e-9);
        assert!((of(99).bytes_until(by_hand) / (990.0 * 4096.0) - 1.0).abs() < 2e-3);
        assert_eq!(of(99).bytes_until(2.0), f64::INFINITY);
    }

    /// Eight writes of 512 B overwrite as many pages as eight of 4 KiB, and a range is a part of the target.
    #[test]
    fn small_writes_overwrite_whole_pages() {
        let text = "write_percent = 100\nblock_size = \"512B\"\n[address]\nlength_percent = 50";
        let source = Source::Generator(WorkloadConfig::from_toml(text).unwrap());
        let of = source.written_places(200 * 4096, 4096).unwrap();
        assert!((of.overwritten(100.0 * 512.0) - (1.0 - (-1f64).exp())).abs() < 1e-9);
    }

    #[test]
    fn writes_in_order_have_no_popular_places() {
        assert_eq!(load("pattern = \"sequential\"").written_places(1 << 20, 4096), None);
    }
}
