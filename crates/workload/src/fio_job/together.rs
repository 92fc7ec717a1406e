//! All streams of a job file as one workload, for a runner with one clock.

use ssdyno_block::Time;

use super::FioStream;
use super::delayed::delayed;
use crate::{DepthSearchResult, Finished, TargetFacts, Workload, WorkloadError, WorkloadStep};

/// A stream and how far it is.
struct Part {
    stream: FioStream,
    /// Built for the target; its time counts from the start of its group until it begins.
    workload: Option<Box<dyn Workload + Send>>,
    /// When its group began.
    began: Time,
    outstanding: u64,
    /// It issues nothing more.
    done: bool,
    /// Its end has been told to the others.
    told: bool,
}

/// Streams side by side, group after group (fio: `stonewall`).
struct Together {
    parts: Vec<Part>,
    /// The group at work.
    group: u32,
    /// The part that is asked first: they take turns.
    turn: usize,
    /// The part that issued last.
    last: usize,
    done: bool,
}

/// One workload of all `streams`: those of a group begin together, and a group begins when the
/// previous group has completed. [`Workload::stream`] is the index of a stream.
///
/// # Errors
/// The first stream that `device` cannot carry.
pub fn run_together(
    streams: Vec<FioStream>,
    device: &TargetFacts,
) -> Result<Box<dyn Workload + Send>, WorkloadError> {
    let part = |stream: FioStream| {
        let workload = Some(stream.build(device)?);
        let (done, told) = (false, false);
        Ok(Part { stream, workload, began: Time::ZERO, outstanding: 0, done, told })
    };
    let parts = streams.into_iter().map(part).collect::<Result<Vec<_>, WorkloadError>>()?;
    let group = parts.iter().map(|part| part.stream.group).min().unwrap_or(0);
    let mut together = Together { parts, group, turn: 0, last: 0, done: false };
    together.begin(Time::ZERO);
    Ok(Box::new(together))
}

impl Together {
    /// Lets the streams of the present group begin at `now`.
    fn begin(&mut self, now: Time) {
        for part in self.parts.iter_mut().filter(|part| part.stream.group == self.group) {
            part.began = now;
            let start = now.saturating_add(part.stream.start_delay);
            part.workload = part.workload.take().map(|workload| delayed(workload, start));
        }
    }

    /// Where part `at` has ended, ends those that its end ends (`exitall`).
    fn tell_end(&mut self, at: usize) {
        let (Part { stream, outstanding, done, told, .. }, group) =
            (&mut self.parts[at], self.group);
        if !*done || *told || *outstanding > 0 {
            return;
        }
        *told = true;
        let exit = stream.exit;
        for part in &mut self.parts {
            if !part.done && exit.ends(part.stream.exit, part.stream.group <= group) {
                // No other job keeps in proportion with it any more.
                (part.done, part.workload) = (true, None);
            }
        }
    }

    /// The group after the present one, if there is one.
    fn next_group(&self) -> Option<u32> {
        self.parts.iter().map(|part| part.stream.group).filter(|group| *group > self.group).min()
    }
}

impl Part {
    fn next(&mut self, now: Time) -> WorkloadStep {
        let step = self.workload.as_mut().map_or(WorkloadStep::Done, |workload| workload.next(now));
        match step {
            WorkloadStep::Issue { .. } => self.outstanding += 1,
            WorkloadStep::Done => self.done = true,
            _ => {}
        }
        step
    }
}

impl Workload for Together {
    fn next(&mut self, now: Time) -> WorkloadStep {
        while !self.done {
            let (mut earliest, mut outstanding) = (Time::MAX, 0);
            let (count, mut ended) = (self.parts.len(), false);
            for at in (0..count).map(|step| (self.turn + step) % count) {
                let part = &mut self.parts[at];
                // Groups run one after the other, so parts of later groups are not asked. Their
                // time begins with their group and not with the run.
                if part.stream.group != self.group {
                    continue;
                }
                if !part.done {
                    match part.next(now) {
                        step @ WorkloadStep::Issue { .. } => {
                            // The next call begins with the following part. If it began with the
                            // first one, a job with a deep queue would take all submissions of a
                            // batch.
                            (self.last, self.turn) = (at, (at + 1) % count);
                            return step;
                        }
                        WorkloadStep::NotBefore(at) => earliest = earliest.min(at),
                        WorkloadStep::Wait => {}
                        WorkloadStep::Done => ended = true,
                    }
                }
                outstanding += part.outstanding;
            }
            if ended {
                // Others may have ended by it.
                (0..count).for_each(|at| self.tell_end(at));
                continue;
            }
            // A time is more useful than `Wait` if both are possible: the runner asks again at this
            // time or after any completion, whichever comes first.
            if earliest < Time::MAX {
                return WorkloadStep::NotBefore(earliest);
            }
            if outstanding > 0 {
                return WorkloadStep::Wait;
            }
            match self.next_group() {
                Some(group) => {
                    self.group = group;
                    self.begin(now);
                }
                None => self.done = true,
            }
        }
        WorkloadStep::Done
    }

    fn completed(&mut self, finished: Finished, now: Time) {
        let at = finished.stream as usize;
        let Some(part) = self.parts.get_mut(at) else { return };
        part.outstanding = part.outstanding.saturating_sub(1);
        if let Some(workload) = &mut part.workload {
            workload.completed(Finished { stream: 0, ..finished }, now);
        }
        self.tell_end(at);
    }

    fn heeds_latency(&self) -> bool {
        let mut workloads = self.parts.iter().filter_map(|part| part.workload.as_ref());
        workloads.any(|workload| workload.heeds_latency())
    }

    fn stream(&self) -> u32 {
        self.last as u32
    }

    fn recorded_from(&self, stream: u32) -> Time {
        let Some(part) = self.parts.get(stream as usize) else { return Time::ZERO };
        let start = part.began.saturating_add(part.stream.start_delay);
        let found = part.workload.as_ref().map_or(Time::ZERO, |workload| workload.recorded_from(0));
        start.saturating_add(part.stream.ramp).max(found)
    }

    fn depth_searches(&self) -> Vec<DepthSearchResult> {
        let workloads = self.parts.iter().filter_map(|part| part.workload.as_ref());
        workloads.flat_map(|workload| workload.depth_searches()).collect()
    }

    fn notes(&self) -> Vec<String> {
        let workloads = self.parts.iter().filter_map(|part| part.workload.as_ref());
        workloads.flat_map(|workload| workload.notes()).collect()
    }

    fn error(&mut self) -> Option<WorkloadError> {
        let workloads = self.parts.iter_mut().filter_map(|part| part.workload.as_mut());
        workloads.map(|workload| workload.error()).find(Option::is_some).flatten()
    }
}
