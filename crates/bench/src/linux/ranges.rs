//! The parts of a target that the reads of a load can reach.

use std::ops::Range;

use ssdyno_figures::probe::Moved;
use ssdyno_workload::{HotPart, Source, WorkloadConfig, WorkloadKind, fio_streams};

use crate::run::BenchRun;
use crate::share::{length_of, shares};
use crate::target::RealTarget;

/// A part of a target that reads can reach.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ReadRange {
    /// The job of a job file that reads it; `None` for another load.
    pub(crate) job: Option<String>,
    /// The stream that reads it, see [`JobPlan::stream`](crate::plan::JobPlan::stream).
    pub(crate) stream: usize,
    /// In bytes of the target.
    pub(crate) bytes: Range<u64>,
    /// The stream reads it alone, from the start to the end, and then again.
    pub(crate) in_order: bool,
    /// The part of it that many of the reads go to.
    pub(crate) hot: Option<HotPart>,
}

impl ReadRange {
    fn new(start: u64, length: u64) -> ReadRange {
        let bytes = start..start.saturating_add(length);
        ReadRange { job: None, stream: 0, bytes, in_order: false, hot: None }
    }

    /// The part of it that was read in a run whose streams moved `by_stream`, with their ramp-up.
    pub(crate) fn covered(&self, by_stream: &[Moved]) -> ReadRange {
        let read = by_stream.get(self.stream).map_or(0, |moved| moved.read_bytes);
        let end = match self.in_order {
            true => self.bytes.start.saturating_add(read).min(self.bytes.end),
            false => self.bytes.end,
        };
        ReadRange { bytes: self.bytes.start..end, ..self.clone() }
    }
}

/// The ranges that `run` reads on `target` in this number of `streams`, one for each file of each stream. A trace counts as a
/// load of the whole target: its addresses are known only when it is played.
pub(crate) fn of_reads(run: &BenchRun, target: &RealTarget, streams: usize) -> Vec<ReadRange> {
    let facts = target.facts();
    let mut found: Vec<ReadRange> = match &run.source {
        Source::Generator(config) if config.kind == WorkloadKind::DiskSimSynthetic => {
            vec![ReadRange::new(0, config.disksim.clone().unwrap_or_default().space.0)]
        }
        Source::Generator(config) => {
            // The plan made the same shares.
            let parts = shares(config, streams as u32, &facts).unwrap_or_default();
            let ranges = parts.iter().enumerate().map(|(stream, part)| {
                let length = length_of(&part.address, &facts);
                ReadRange {
                    stream,
                    in_order: reads_in_order(part),
                    hot: part.hot_part(length),
                    ..ReadRange::new(part.address.start.0, length)
                }
            });
            ranges.collect()
        }
        Source::Trace { .. } => vec![ReadRange::new(0, facts.capacity_bytes)],
        Source::Jobs { jobs, .. } => {
            let streams = fio_streams(jobs, &target.files(), run.seed);
            let reading = streams.iter().enumerate().filter(|(_, one)| jobs[one.job].reads());
            let ranges = reading.flat_map(|(index, stream)| {
                stream.ranges.iter().map(move |range| ReadRange {
                    job: Some(jobs[stream.job].name.clone()),
                    stream: index,
                    in_order: stream.reads_in_order(),
                    hot: stream.hot_part(range.length_bytes),
                    ..ReadRange::new(range.start_bytes, range.length_bytes)
                })
            });
            ranges.collect()
        }
    };
    // Requests beyond the end of the target fail.
    found.iter_mut().for_each(|read| read.bytes.end = read.bytes.end.min(facts.capacity_bytes));
    found
}

/// Whether the reads of `config` go through its range in order. Writes without a range of their own move the place of the
/// next read.
fn reads_in_order(config: &WorkloadConfig) -> bool {
    let [_, write, trim] = config.op_weights();
    let reads_alone = write + trim == 0.0 || (config.writes.is_some() && trim == 0.0);
    config.is_one_stream() && reads_alone
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 100 B from byte 10 on, a stream that reads 30 B in order has read the first 30; one that reads 100 B or more, and
    /// one without an order, all of them.
    #[test]
    fn reads_in_order_cover_a_part_of_their_range() {
        let covered = |in_order, read_bytes| {
            let range = ReadRange { stream: 1, in_order, ..ReadRange::new(10, 100) };
            range.covered(&[Moved::default(), Moved { read_bytes, ..Moved::default() }]).bytes
        };
        assert_eq!([covered(true, 0), covered(true, 30)], [10..10, 10..40]);
        assert_eq!([covered(true, 100), covered(true, 250)], [10..110, 10..110]);
        assert_eq!(covered(false, 30), 10..110);
    }

    #[test]
    fn only_reads_alone_go_through_their_range_in_order() {
        let of = |keys: &str| {
            let text = format!("{keys}\naddress = {{ pattern = \"sequential\" }}\n");
            reads_in_order(&WorkloadConfig::from_toml(&text).unwrap())
        };
        assert!(of("") && of("threads = 1"));
        assert!(!of("threads = 2") && !of("read_percent = 50"));
        assert!(!reads_in_order(&WorkloadConfig::from_toml("").unwrap()));
    }
}
