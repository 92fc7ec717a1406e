//! The rows of a page, by columns.

use crate::rows::{Batch, Block, Row, RowNames};

/// Values, and indices into dictionaries, of which there is one where all are the same.
#[derive(Default)]
pub(super) struct Page {
    pub(super) rows: usize,
    pub(super) issue_ns: Vec<u64>,
    pub(super) latency_ns: Vec<u64>,
    pub(super) offset_bytes: Vec<u64>,
    submit_ns: Vec<u64>,
    pub(super) op: Vec<u32>,
    pub(super) status: Vec<u32>,
    pub(super) job: Vec<u32>,
    pub(super) device: Vec<u32>,
    /// Lengths themselves.
    pub(super) length: Vec<u32>,
    /// Error numbers themselves.
    pub(super) errno: Vec<u32>,
}

impl Page {
    /// Takes the rows of `batch` instead of what it has.
    pub(super) fn fill(&mut self, batch: Batch<'_>, names: &RowNames) {
        self.clear();
        match batch {
            Batch::Block(job, block) if block.is_plain() => self.fill_plain(job, block, names),
            Batch::Block(job, block) => block.iter().for_each(|row| self.push(job, &row, names)),
            Batch::Rows(rows) => rows.iter().for_each(|(job, row)| self.push(*job, row, names)),
        }
        self.rows = self.issue_ns.len();
        self.indices().into_iter().for_each(collapse);
    }

    fn clear(&mut self) {
        let numbers =
            [&mut self.issue_ns, &mut self.latency_ns, &mut self.offset_bytes, &mut self.submit_ns];
        numbers.into_iter().for_each(Vec::clear);
        self.indices().into_iter().for_each(Vec::clear);
    }

    /// The columns in which one value represents all, if they are equal.
    fn indices(&mut self) -> [&mut Vec<u32>; 6] {
        [
            &mut self.op,
            &mut self.status,
            &mut self.job,
            &mut self.device,
            &mut self.length,
            &mut self.errno,
        ]
    }

    /// As [`push`](Page::push) of each, for rows of one word.
    fn fill_plain(&mut self, job: u32, block: Block<'_>, names: &RowNames) {
        // The columns get their length first and are written then. To push would look at the
        // room of three columns for each row.
        let numbers = [&mut self.issue_ns, &mut self.latency_ns, &mut self.offset_bytes];
        let [issue, latency, offset] = numbers.map(|column| {
            column.resize(block.len(), 0);
            column.iter_mut()
        });
        for (numbers, ((issue, latency), offset)) in
            block.numbers().zip(issue.zip(latency).zip(offset))
        {
            (*issue, *latency, *offset) = numbers;
        }
        // Most loads have one operation, length and status. The first row then stands for all,
        // and the other rows are not unpacked.
        let kinds = if block.is_uniform() { block.first() } else { block };
        self.op.extend(kinds.iter().map(|row| row.request.op as u32));
        self.status.extend(kinds.iter().map(|row| row.status as u32));
        self.length.extend(kinds.iter().map(|row| row.request.length_bytes));
        self.job.push(job);
        self.errno.push(0);
        if names.devices.len() < 2 {
            self.device.push(0);
        } else {
            let device = |offset: &u64| names.device_at(*offset) as u32;
            self.device.extend(self.offset_bytes.iter().map(device));
        }
    }

    fn push(&mut self, job: u32, row: &Row, names: &RowNames) {
        self.issue_ns.push(row.issue_ns);
        self.latency_ns.push(row.latency_ns);
        self.offset_bytes.push(row.request.offset_bytes);
        self.submit_ns.push(row.submit_ns);
        self.op.push(row.request.op as u32);
        self.status.push(row.status as u32);
        self.job.push(job);
        self.device.push(names.device_at(row.request.offset_bytes) as u32);
        self.length.push(row.request.length_bytes);
        self.errno.push(u32::from(row.errno));
    }

    /// When requests were submitted; `None` where all were when they were meant to start.
    pub(super) fn submit_ns(&self) -> Option<&[u64]> {
        // Rows of one word leave the column empty. They were submitted when they were meant to
        // start, so both columns are the same page.
        (!self.submit_ns.is_empty() && self.submit_ns != self.issue_ns).then_some(&self.submit_ns)
    }
}

/// Leaves one of many that are the same.
fn collapse(values: &mut Vec<u32>) {
    if let Some(first) = values.first()
        && values.iter().all(|value| value == first)
    {
        values.truncate(1);
    }
}
