//! One line of CSV a request, in the order of issue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use ssdyno_block::Request;

use crate::parquet_rows::STATUS_NAMES;
use crate::rows::{Row, RowNames, Rows};

/// Times are rounded down one by one: completions in order may go back by so much.
const ROUNDING_NS: u64 = 2;

/// Rows that may take far longer than all others: a request that hangs, or never completes.
const LATE_MOST: usize = 1 << 14;

/// Writes `rows` into `file`.
///
/// Rows lie in the order of completion. A request that completes at `t` was issued no earlier than `t` less the longest
/// latency; requests issued before that are complete and can be written. The 16384 longest are known beforehand and do
/// not count for that: a single request that is as long as the run would keep all rows in memory.
///
/// # Errors
/// Errors of the file, and of reading rows from a file.
pub fn write(rows: &Rows, file: File) -> io::Result<()> {
    write_with(rows, file, LATE_MOST).map(|_| ())
}

/// The same where `late_most` rows may be late; the most rows that waited.
fn write_with(rows: &Rows, file: File, late_most: usize) -> io::Result<usize> {
    // The rows are read twice. The longest latency must be known before the first line is
    // written, and a guess that is too short would break the order.
    let (late, longest_ns) = latest(rows, late_most)?;
    let mut next_late = late.iter().peekable();
    let mut numbers: Vec<u64> = late.iter().map(|row| row.number).collect();
    numbers.sort_unstable();
    let mut numbers = numbers.into_iter().peekable();
    let names = rows.names();
    let mut out = BufWriter::with_capacity(1 << 20, file);
    writeln!(
        out,
        "issue_ns,latency_ns,op,offset_bytes,length_bytes,status,submit_ns,job,device,errno"
    )?;
    // Only rows that were issued within the longest latency wait here. The file may be larger
    // than memory, so it is never sorted as a whole.
    let mut waiting = BinaryHeap::new();
    let (mut number, mut most) = (0, 0);
    let mut put = |out: &mut BufWriter<File>, first: &Waiting| {
        while let Some(late) = next_late.next_if(|late| **late < *first) {
            line(out, late.job, &late.row, names)?;
        }
        line(out, first.job, &first.row, names)
    };
    rows.for_each(|job, row| {
        let done_ns = row.issue_ns.saturating_add(row.latency_ns);
        // Rows that were issued at the same moment keep the order of completion. Without a
        // number the heap would give them in any order.
        if numbers.next_if_eq(&number).is_none() {
            waiting.push(Reverse(Waiting { issue_ns: row.issue_ns, number, job, row: *row }));
        }
        number += 1;
        most = most.max(waiting.len());
        let sure_ns = done_ns.saturating_sub(longest_ns);
        while let Some(Reverse(first)) = waiting.peek()
            && first.issue_ns < sure_ns
        {
            let Some(Reverse(first)) = waiting.pop() else { break };
            put(&mut out, &first)?;
        }
        Ok(())
    })?;
    while let Some(Reverse(first)) = waiting.pop() {
        put(&mut out, &first)?;
    }
    for late in next_late {
        line(&mut out, late.job, &late.row, names)?;
    }
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(most)
}

/// The rows that took longest, `most` of them, in the order of issue; and how long the others took at most.
fn latest(rows: &Rows, most: usize) -> io::Result<(Vec<Waiting>, u64)> {
    let mut late = BinaryHeap::new();
    let (mut number, mut longest_ns) = (0, 0);
    rows.for_each(|job, row| {
        let waiting = Waiting { issue_ns: row.issue_ns, number, job, row: *row };
        number += 1;
        // Nearly every row is shorter than all that are kept.
        if late.len() == most && row.latency_ns <= shortest_of(&late) {
            longest_ns = longest_ns.max(row.latency_ns);
            return Ok(());
        }
        late.push((Reverse(row.latency_ns), waiting));
        if late.len() > most
            && let Some((Reverse(shortest_ns), _)) = late.pop()
        {
            longest_ns = longest_ns.max(shortest_ns);
        }
        Ok(())
    })?;
    let mut late: Vec<Waiting> = late.into_iter().map(|(_, waiting)| waiting).collect();
    late.sort_unstable();
    Ok((late, longest_ns.saturating_add(ROUNDING_NS)))
}

/// The shortest latency of those that are kept.
fn shortest_of(late: &BinaryHeap<(Reverse<u64>, Waiting)>) -> u64 {
    late.peek().map_or(u64::MAX, |(Reverse(shortest_ns), _)| *shortest_ns)
}

/// A row that an earlier one may come before. No two have the same number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    issue_ns: u64,
    number: u64,
    job: u32,
    row: Row,
}

fn line(out: &mut impl Write, job: u32, row: &Row, names: &RowNames) -> io::Result<()> {
    let Row { issue_ns, latency_ns, submit_ns, errno, request, status } = row;
    let Request { op, offset_bytes, length_bytes } = request;
    let (op, status) = (op.name(), STATUS_NAMES[*status as usize]);
    let device = names.devices.get(names.device_at(*offset_bytes));
    let (job, device) = (names.job(job), device.map_or("", |(_, name)| name));
    writeln!(
        out,
        "{issue_ns},{latency_ns},{op},{offset_bytes},{length_bytes},{status},{submit_ns},{},{},{errno}",
        Quoted(&job),
        Quoted(device),
    )
}

/// A name as a field of CSV (RFC 4180, section 2).
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.contains([',', '"', '\n', '\r']) {
            true => write!(f, "\"{}\"", self.0.replace('"', "\"\"")),
            false => f.write_str(self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ssdyno_block::Status;

    use super::*;

    proptest! {
        /// As sorting all of them by issue.
        #[test]
        fn lines_are_in_the_order_of_issue(
            stays in prop::collection::vec((0u64..10_000, 1u64..3_000, 0u32..2), 0..200),
            late in 0usize..20,
        ) {
            let mut done: Vec<_> = stays.iter().map(|(at, stay, job)| (at + stay, *at, *job)).collect();
            done.sort_unstable();
            let mut rows = Rows::default();
            for (end, issue, job) in done {
                let row = Row::punctual(&Request::read(0, 512), issue, end - issue, Status::Ok);
                rows.strip(job).push(&row);
            }
            let file = tempfile::NamedTempFile::new().unwrap();
            write_with(&rows, file.reopen().unwrap(), late).unwrap();
            let text = std::fs::read_to_string(file.path()).unwrap();
            let field = |line: &str, at: usize| line.split(',').nth(at).unwrap().parse::<u64>().unwrap();
            let got: Vec<u64> = text.lines().skip(1).map(|line| field(line, 0)).collect();
            prop_assert!(got.is_sorted());
            prop_assert_eq!(got.len(), stays.len());
        }
    }

    /// One request hangs for the whole run, and another never completes: the others do not wait for them in memory.
    #[test]
    fn a_request_as_long_as_the_run_keeps_no_rows_in_memory() {
        let mut rows = Rows::default();
        let row =
            |issue, latency| Row::punctual(&Request::read(0, 512), issue, latency, Status::Ok);
        for at in 0..100_000 {
            rows.strip(0).push(&row(at * 1_000 + 1, 5_000));
        }
        rows.strip(0).push(&row(0, 100_100_000));
        rows.strip(0).push(&row(50_000_500, 50_100_000));
        let file = tempfile::NamedTempFile::new().unwrap();
        let most = write_with(&rows, file.reopen().unwrap(), 100).unwrap();
        assert!(most < 100, "{most} rows waited");
        let text = std::fs::read_to_string(file.path()).unwrap();
        let issues: Vec<u64> =
            text.lines().skip(1).map(|l| l.split(',').next().unwrap().parse().unwrap()).collect();
        assert!(issues.is_sorted() && issues.len() == 100_002);
    }

    #[test]
    fn names_are_quoted_where_they_must_be() {
        let mut rows = Rows::default();
        let names = RowNames {
            jobs: vec!["a, \"b\"".to_owned()],
            devices: vec![(0, "/dev/sda".to_owned()), (4096, "/dev/sdb".to_owned())],
        };
        rows.name(names);
        let late = Row {
            submit_ns: 9,
            errno: 5,
            ..Row::punctual(&Request::read(4096, 512), 7, 3, Status::Error)
        };
        rows.strip(0).push(&late);
        let file = tempfile::NamedTempFile::new().unwrap();
        write(&rows, file.reopen().unwrap()).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(
            text.ends_with("\n7,3,read,4096,512,error,9,\"a, \"\"b\"\"\",/dev/sdb,5\n"),
            "{text}"
        );
    }
}
