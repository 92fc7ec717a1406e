//! Recording several streams that run side by side, each apart.

use ssdyno_block::{Completion, Request, Time};
use ssdyno_figures::{JobResult, Keep, Warning};
use ssdyno_record::{RatedJob, Recorder, Recording, RowNames, overloads_of_jobs};
use ssdyno_workload::FioEntry;

/// Recorders of the streams of a workload, see [`Workload::stream`](ssdyno_workload::Workload).
#[derive(Debug)]
pub struct Streams {
    /// A separately reported stream, with its recorder once it has begun.
    entries: Vec<(FioEntry, Option<Recorder>)>,
    /// The entry of each stream, and from when on it is recorded.
    streams: Vec<(usize, Time)>,
}

impl Streams {
    /// For streams that belong to `entries` as `entry_of` says.
    pub fn new(entries: Vec<FioEntry>, entry_of: Vec<usize>) -> Streams {
        Streams {
            entries: entries.into_iter().map(|entry| (entry, None)).collect(),
            streams: entry_of.into_iter().map(|entry| (entry, Time::ZERO)).collect(),
        }
    }

    /// The names of the streams in rows.
    pub(crate) fn names(&self) -> Vec<String> {
        let entry = |(entry, _): &(usize, Time)| {
            self.entries.get(*entry).map(|(entry, _)| entry.name.clone()).unwrap_or_default()
        };
        RowNames::of_jobs(&self.streams.iter().map(entry).collect::<Vec<_>>())
    }

    /// A request of `stream` came into being at `intended`; the stream is recorded from `start` on.
    pub(crate) fn arrived(&mut self, stream: u32, intended: Time, start: Time) {
        let Some((entry, from)) = self.streams.get_mut(stream as usize) else { return };
        *from = start;
        if start == Time::MAX {
            // Its depth is being searched for.
            return;
        }
        // The recorder is created with the first request, because the beginning of a stream is
        // known only then: groups begin when the previous group has ended.
        if let Some((_, recorder)) = self.entries.get_mut(*entry) {
            let new = || Recorder::new(Keep::Summary, None).start_recording_at(start);
            recorder.get_or_insert_with(new).arrived(intended);
        }
    }

    /// Records a request of `stream`. False if it belongs to the stream's ramp.
    pub(crate) fn record(
        &mut self,
        stream: u32,
        request: &Request,
        intended: Time,
        completion: &Completion,
    ) -> bool {
        let Some((entry, from)) = self.streams.get(stream as usize) else { return true };
        if let Some((_, Some(recorder))) = self.entries.get_mut(*entry)
            && *from < Time::MAX
        {
            recorder.record(request, intended, completion);
        }
        // The time of completion decides, as everywhere in the recorder. A request that began in
        // the ramp and ends after it shows the load of the measured part.
        completion.completed >= *from
    }

    /// A request of `stream` was still outstanding at `end`, when nothing was to be expected any more.
    pub(crate) fn never_answered(
        &mut self,
        stream: u32,
        request: &Request,
        times: [Time; 2],
        end: Time,
    ) {
        let Some((entry, from)) = self.streams.get(stream as usize) else { return };
        if let Some((_, Some(recorder))) = self.entries.get_mut(*entry)
            && *from < Time::MAX
        {
            recorder.never_answered(0, request, times, end);
        }
    }

    /// The figures of each entry, in a run that was recorded from `start` on, and the warnings about overloaded entries.
    pub(crate) fn finish(self, start: Time) -> (Vec<JobResult>, Vec<Warning>) {
        let finished = |(entry, recorder): (FioEntry, Option<Recorder>)| {
            (entry, recorder.map(|recorder| recorder.finish(Time::ZERO)))
        };
        let entries: Vec<(FioEntry, Option<Recording>)> =
            self.entries.into_iter().map(finished).collect();
        let rated: Vec<_> = entries
            .iter()
            .map(|(entry, recording)| RatedJob {
                name: &entry.name,
                depth: entry.rated_depth,
                pauses: entry.pauses,
                recording: recording.as_ref(),
            })
            .collect();
        let overloads = overloads_of_jobs(&rated);
        let figures = |(entry, recording): (FioEntry, Option<Recording>)| {
            let figures = recording.map(|recording| recording.job_result(start));
            JobResult {
                name: entry.name,
                group: entry.group,
                copies: entry.copies,
                ..figures.unwrap_or_default()
            }
        };
        (entries.into_iter().map(figures).collect(), overloads)
    }
}
