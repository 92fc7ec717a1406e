//! The rows of all jobs of a run.

use std::io;
use std::sync::Arc;

use ssdyno_block::Op;

use super::names::RowNames;
use super::order::Batch;
use super::packed::Lengths;
use super::row::Row;
use super::spool::{Line, Shared};
use super::strip::Strip;

/// The rows of a run: of each job in the order they were recorded (that of completion).
#[derive(Debug, Default)]
pub struct Rows {
    strips: Vec<Strip>,
    names: RowNames,
}

impl Rows {
    /// The rows of one job.
    pub(crate) fn of(strip: Strip) -> Rows {
        Rows { strips: vec![strip], names: RowNames::default() }
    }

    /// The rows of jobs that ran beside one another.
    pub(crate) fn merge(parts: Vec<Rows>) -> Rows {
        let strips = parts.into_iter().flat_map(|part| part.strips).collect();
        Rows { strips, names: RowNames::default() }
    }

    /// Rows that lie in a file, of each job with the lengths of its requests.
    pub(crate) fn in_file(file: Arc<Shared>, jobs: Vec<Vec<u32>>) -> Rows {
        let strip = |(job, lengths): (usize, Vec<u32>)| {
            let line = Line::to_read(Arc::clone(&file));
            Strip::in_file(job as u32, line, Lengths::of(lengths))
        };
        let strips = jobs.into_iter().enumerate().map(strip).collect();
        Rows { strips, names: RowNames::default() }
    }

    /// Whether they lie in a file.
    pub fn are_in_file(&self) -> bool {
        self.strips.iter().any(|strip| strip.file().is_some())
    }

    /// Rows that were dropped because the disk of results was too slow or full, and its error if it accepted no more.
    pub fn lost(&self) -> (u64, Option<String>) {
        let file = self.strips.iter().find_map(Strip::file);
        file.map_or((0, None), |file| (file.lost(), file.error()))
    }

    /// Removes the file that they lie in, if they do: they are kept elsewhere now.
    pub fn remove_file(&self) -> io::Result<()> {
        self.strips.iter().find_map(Strip::file).map_or(Ok(()), Shared::remove)
    }

    /// Says what jobs and devices are called.
    pub fn name(&mut self, names: RowNames) {
        self.names = names;
    }

    /// The names of jobs and devices.
    pub fn names(&self) -> &RowNames {
        &self.names
    }

    /// The strip of job number `job`, which is made where it is missing.
    #[inline]
    pub(crate) fn strip(&mut self, job: u32) -> &mut Strip {
        if job as usize >= self.strips.len() {
            self.add_strips(job);
        }
        &mut self.strips[job as usize]
    }

    #[cold]
    fn add_strips(&mut self, job: u32) {
        self.strips.extend((self.strips.len() as u32..=job).map(Strip::of_job));
    }

    pub(crate) fn strips(&self) -> &[Strip] {
        &self.strips
    }

    /// The highest number of a job.
    pub(crate) fn last_job(&self) -> u32 {
        self.strips.iter().map(Strip::job).max().unwrap_or(0)
    }

    /// Whether recording should end, because memory does.
    pub(crate) fn must_end(&self) -> bool {
        self.strips.iter().any(Strip::must_end)
    }

    /// Rows recorded.
    pub fn len(&self) -> usize {
        self.strips.iter().map(Strip::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.strips.iter().all(Strip::is_empty)
    }

    /// Shows `each` the number of the job and the row of every request, in the order of completion.
    ///
    /// # Errors
    /// Errors of `each`, and of reading rows from a file.
    pub fn for_each(&self, mut each: impl FnMut(u32, &Row) -> io::Result<()>) -> io::Result<()> {
        self.in_order(&mut |batch| match batch {
            Batch::Block(job, block) => block.iter().try_for_each(|row| each(job, &row)),
            Batch::Rows(rows) => rows.iter().try_for_each(|(job, row)| each(*job, row)),
        })
    }

    /// All rows in the order of completion, in memory.
    ///
    /// # Errors
    /// Those of reading rows that are in a file.
    pub fn to_vec(&self) -> io::Result<Vec<Row>> {
        let mut all = Vec::with_capacity(self.len());
        self.for_each(|_, row| {
            all.push(*row);
            Ok(())
        })?;
        Ok(all)
    }

    /// Operation and latency of every row that has one, in no order, see [`for_each_latency`](super::packed::Block::for_each_latency).
    pub(crate) fn for_each_latency(&self, mut visit: impl FnMut(Op, u64, u64)) -> io::Result<()> {
        self.in_any_order(&mut |block| block.for_each_latency(&mut visit))
    }
}
