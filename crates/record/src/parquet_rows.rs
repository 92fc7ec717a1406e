//! One Parquet row a request.
//!
//! The library lays out the file; the pages are encoded here, because that is what a run pays for each
//! request after it has been measured: see [`pages`].

mod column;
mod page;
mod pages;

use std::fs::File;
use std::io;
use std::sync::Arc;

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use ssdyno_block::Op;

use crate::rows::{Batch, Rows};
use column::{Column, Encoded, Indexed};
use page::Page;
use pages::Bounds;

/// Columns in the order that [`Columns::close`] writes them. Parquet keeps unsigned integers in the
/// signed types of the same width (Parquet format, LogicalTypes.md, "Unsigned Integers").
const SCHEMA: &str = "message requests {
    REQUIRED INT64 issue_ns (INTEGER(64, false));
    REQUIRED INT64 latency_ns (INTEGER(64, false));
    REQUIRED BINARY op (STRING);
    REQUIRED INT64 offset_bytes (INTEGER(64, false));
    REQUIRED INT32 length_bytes (INTEGER(32, false));
    REQUIRED BINARY status (STRING);
    REQUIRED INT64 submit_ns (INTEGER(64, false));
    REQUIRED BINARY job (STRING);
    REQUIRED BINARY device (STRING);
    REQUIRED INT32 errno (INTEGER(32, true));
}";

/// Names of [`ssdyno_block::Status`], in the order of its discriminant.
pub const STATUS_NAMES: [&str; 4] = ["ok", "error", "read_only", "abandoned"];

/// Rows of a row group: what readers take at a time.
const GROUP_ROWS: usize = 1 << 20;

/// Writes `rows` into `file`, a row group after the other.
///
/// # Errors
/// Errors of the file, and of reading rows from a file.
pub fn write(rows: &Rows, file: File) -> io::Result<()> {
    let mut writer = Writer::new(rows, file).map_err(of_system)?;
    let mut page = Page::default();
    rows.in_order(&mut |batch| writer.add(batch, &mut page).map_err(of_system))?;
    writer.finish().map_err(of_system)
}

/// The error of the system, where there is one behind it.
fn of_system(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(io) => *io,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

/// The dictionary entries that are known before the first row.
struct Names {
    jobs: Vec<String>,
    devices: Vec<String>,
}

/// A file with its group that is being filled.
struct Writer<'a> {
    rows: &'a Rows,
    names: Names,
    file: SerializedFileWriter<File>,
    descriptor: SchemaDescriptor,
    group: Option<Columns>,
}

impl<'a> Writer<'a> {
    fn new(rows: &'a Rows, file: File) -> Result<Writer<'a>, ParquetError> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let properties = Arc::new(WriterProperties::builder().build());
        let descriptor = SchemaDescriptor::new(Arc::clone(&schema));
        let file = SerializedFileWriter::new(file, schema, properties)?;
        let mut devices: Vec<String> =
            rows.names().devices.iter().map(|(_, name)| name.clone()).collect();
        // Every row has an index into the dictionary of devices. So the dictionary has an
        // entry, also if no device has a name.
        if devices.is_empty() {
            devices.push(String::new());
        }
        let jobs = (0..=rows.last_job()).map(|job| rows.names().job(job)).collect();
        Ok(Writer { rows, names: Names { jobs, devices }, file, descriptor, group: None })
    }

    fn add(&mut self, batch: Batch<'_>, page: &mut Page) -> Result<(), ParquetError> {
        page.fill(batch, self.rows.names());
        // A page is never divided, so a group may be a little shorter than its most. All columns
        // of a group have the same rows that way.
        if self.group.as_ref().is_some_and(|group| group.rows + page.rows > GROUP_ROWS) {
            self.close_group()?;
        }
        let group = match &mut self.group {
            Some(group) => group,
            none => none.insert(Columns::new(&self.descriptor, &self.names)?),
        };
        group.add(page)
    }

    fn close_group(&mut self) -> Result<(), ParquetError> {
        let Some(group) = self.group.take() else { return Ok(()) };
        group.close(&self.descriptor, &self.names, self.file.next_row_group()?)
    }

    fn finish(mut self) -> Result<(), ParquetError> {
        self.close_group()?;
        // A full disk may show only here. `into_inner` would turn the error of the system into
        // a text, and the caller could not tell what happened.
        self.file.finish()?;
        self.file.inner().sync_all().map_err(ParquetError::from)
    }
}

/// A row group that is being filled.
struct Columns {
    rows: usize,
    issue: Column,
    latency: Column,
    op: Column,
    offset: Column,
    length: Indexed,
    status: Column,
    submit: Column,
    job: Column,
    device: Column,
    errno: Indexed,
    /// Of issue, latency, offset and submission.
    bounds: [Bounds; 4],
    /// Which entries of the dictionaries of operation, status, job and device occur.
    used: [Vec<bool>; 4],
}

impl Columns {
    fn new(schema: &SchemaDescriptor, names: &Names) -> Result<Columns, ParquetError> {
        let column = |number, names: &[&str]| {
            Column::of_indices(schema, number, names.len(), plain_names(names))
        };
        let (jobs, devices) = (texts(&names.jobs), texts(&names.devices));
        let ops = Op::ALL.map(Op::name);
        Ok(Columns {
            rows: 0,
            // Requests are issued and completed in batches. Their times repeat over longer
            // distances than bit packing sees, so a codec makes them smaller.
            issue: Column::of_deltas(schema, 0).compressed(),
            latency: Column::of_deltas(schema, 1).compressed(),
            op: column(2, &ops)?,
            offset: Column::of_deltas(schema, 3),
            length: Indexed::default(),
            status: column(5, &STATUS_NAMES)?,
            submit: Column::of_deltas(schema, 6).compressed(),
            job: column(7, &jobs)?,
            device: column(8, &devices)?,
            errno: Indexed::default(),
            bounds: [Bounds::NONE; 4],
            used: [ops.len(), STATUS_NAMES.len(), jobs.len(), devices.len()]
                .map(|n| vec![false; n]),
        })
    }

    fn add(&mut self, page: &Page) -> Result<(), ParquetError> {
        self.rows += page.rows;
        let [issue, latency, offset, submit] = &mut self.bounds;
        let issued = add_numbers(&mut self.issue, &page.issue_ns, issue)?;
        add_numbers(&mut self.latency, &page.latency_ns, latency)?;
        add_numbers(&mut self.offset, &page.offset_bytes, offset)?;
        match page.submit_ns() {
            Some(values) => drop(add_numbers(&mut self.submit, values, submit)?),
            // All rows were submitted when they were meant to start. Both columns have the same
            // numbers, so the encoded page is used twice.
            None => {
                submit.merge(&issued.1);
                self.submit.add_encoded(page.rows, issued.0)?;
            }
        }
        let indices = [
            (&mut self.op, &page.op),
            (&mut self.status, &page.status),
            (&mut self.job, &page.job),
            (&mut self.device, &page.device),
        ];
        for ((column, indices), used) in indices.into_iter().zip(&mut self.used) {
            indices.iter().for_each(|index| used[*index as usize] = true);
            column.add_indices(indices, page.rows, used.len())?;
        }
        self.length.add(page.rows, &page.length);
        self.errno.add(page.rows, &page.errno);
        Ok(())
    }

    fn close(
        self,
        schema: &SchemaDescriptor,
        names: &Names,
        mut group: SerializedRowGroupWriter<'_, File>,
    ) -> Result<(), ParquetError> {
        let [issue, latency, offset, submit] = self.bounds.map(bounds_of_numbers);
        let [ops, statuses, jobs, devices] = &self.used;
        self.issue.close(issue, &mut group)?;
        self.latency.close(latency, &mut group)?;
        self.op.close(bounds_of_names(&Op::ALL.map(Op::name), ops), &mut group)?;
        self.offset.close(offset, &mut group)?;
        self.length.close(schema, 4, &mut group)?;
        self.status.close(bounds_of_names(&STATUS_NAMES, statuses), &mut group)?;
        self.submit.close(submit, &mut group)?;
        self.job.close(bounds_of_names(&texts(&names.jobs), jobs), &mut group)?;
        self.device.close(bounds_of_names(&texts(&names.devices), devices), &mut group)?;
        self.errno.close(schema, 9, &mut group)?;
        group.close()?;
        Ok(())
    }
}

/// Adds a page of numbers; gives it back, with what bounds it.
fn add_numbers(
    column: &mut Column,
    values: &[u64],
    bounds: &mut Bounds,
) -> Result<(Encoded, Bounds), ParquetError> {
    let mut of_page = Bounds::NONE;
    let mut page = Vec::with_capacity(values.len() * 4);
    pages::delta(values, &mut of_page, &mut page);
    bounds.merge(&of_page);
    let encoded = column.encode(page);
    column.add_encoded(values.len(), encoded.clone())?;
    Ok((encoded, of_page))
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Names as a dictionary page has them: each behind its length (Encodings.md, "Plain").
fn plain_names(names: &[&str]) -> Vec<u8> {
    let with_length = |name: &&str| [&(name.len() as u32).to_le_bytes(), name.as_bytes()].concat();
    names.iter().flat_map(with_length).collect()
}

/// The casts keep the bits: see [`SCHEMA`].
fn bounds_of_numbers(bounds: Bounds) -> Statistics {
    let (least, most) = (bounds.least as i64, bounds.most as i64);
    Statistics::int64(Some(least), Some(most), None, Some(0), false)
}

fn bounds_of_names(names: &[&str], used: &[bool]) -> Statistics {
    // Readers skip groups by these bounds. Names that do not occur in the group would make the
    // bounds wider and the readers read more.
    let occurring = || names.iter().zip(used).filter(|(_, used)| **used).map(|(name, _)| *name);
    let bound = |name: Option<&str>| name.map(ByteArray::from);
    Statistics::byte_array(bound(occurring().min()), bound(occurring().max()), None, Some(0), false)
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use proptest::prelude::*;
    use ssdyno_block::{Request, Status};

    use super::*;
    use crate::rows::tests::any_row;
    use crate::rows::{CHUNK_WORDS, Row, RowNames};

    /// Rows of every operation and status; the last one needs every bit of a column.
    fn sample(count: u64) -> Rows {
        let statuses = [Status::Ok, Status::Error, Status::ReadOnly, Status::Abandoned];
        let mut rows = Rows::default();
        for i in 0..count {
            let request = Request {
                op: Op::ALL[(i % 4) as usize],
                offset_bytes: i * 512,
                length_bytes: 1024 + (i % 3 * 512) as u32,
            };
            let row = Row::punctual(&request, i * 10, i, statuses[(i / 4 % 4) as usize]);
            rows.strip(0).push(&row);
        }
        let most = Request { op: Op::Write, offset_bytes: u64::MAX, length_bytes: u32::MAX };
        let row = Row::punctual(&most, u64::MAX, u64::MAX, Status::ReadOnly);
        rows.strip(0).push(&row);
        rows
    }

    /// Issue, latency, operation, offset, length, status; and submission, job, device, errno.
    type Values = ((u64, u64, String, u64, u32, String), (u64, String, String, i32));

    /// The number of row groups, and the rows.
    fn read(file: File) -> (usize, Vec<Values>) {
        let reader = SerializedFileReader::new(file).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| {
            let row = row.unwrap();
            let text = |column| row.get_string(column).unwrap().clone();
            let number = |column| row.get_ulong(column).unwrap();
            let length = row.get_uint(4).unwrap();
            let first = (number(0), number(1), text(2), number(3), length, text(5));
            (first, (number(6), text(7), text(8), row.get_int(9).unwrap()))
        });
        (reader.num_row_groups(), rows.collect())
    }

    fn columns(rows: &Rows, job: u32, row: &Row) -> Values {
        let status = match row.status {
            Status::Ok => "ok",
            Status::Error => "error",
            Status::ReadOnly => "read_only",
            Status::Abandoned => "abandoned",
        };
        let Row { issue_ns, latency_ns, submit_ns, errno, request, .. } = *row;
        let (op, offset) = (request.op.name().to_owned(), request.offset_bytes);
        let devices = &rows.names().devices;
        let device = devices.iter().rev().find(|(start, _)| *start <= offset);
        let device = device.map(|(_, name)| name.clone()).unwrap_or_default();
        let first = (issue_ns, latency_ns, op, offset, request.length_bytes, status.to_owned());
        (first, (submit_ns, rows.names().job(job), device, i32::from(errno)))
    }

    fn all(rows: &Rows) -> Vec<Values> {
        let mut all = Vec::new();
        rows.for_each(|job, row| {
            all.push(columns(rows, job, row));
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn rows_come_back_from_the_file() {
        let rows = sample(CHUNK_WORDS as u64 + 7_000);
        let file = tempfile::NamedTempFile::new().unwrap();
        write(&rows, file.reopen().unwrap()).unwrap();
        let (groups, back) = read(file.reopen().unwrap());
        assert_eq!((groups, back.len()), (2, rows.len()));
        for (i, (row, back)) in all(&rows).iter().zip(&back).enumerate() {
            assert_eq!(back, row, "row {i}");
        }
    }

    proptest! {
        /// Steps of every size between neighbours, rows of every kind, of one job or several, on one
        /// device or several; pages that end anywhere in a block.
        #[test]
        fn any_rows_come_back(
            made in prop::collection::vec((any_row(), 0u32..3, 0u32..64), 0..300),
            repeated in 1usize..5,
            devices in 0usize..3,
            apart in any::<bool>(),
        ) {
            let mut rows = Rows::default();
            let devices: Vec<(u64, String)> =
                (0..devices).map(|i| (i as u64 * (1 << 30), format!("device {i}"))).collect();
            rows.name(RowNames { jobs: vec!["first".to_owned()], devices });
            for (row, job, shift) in &made {
                let row = Row { issue_ns: row.issue_ns >> shift, ..*row };
                for _ in 0..repeated {
                    rows.strip(if apart { *job } else { 1 }).push(&row);
                }
            }
            let file = tempfile::NamedTempFile::new().unwrap();
            write(&rows, file.reopen().unwrap()).unwrap();
            let (_, back) = read(file.reopen().unwrap());
            prop_assert_eq!(back, all(&rows));
        }
    }

    #[test]
    fn bounds_of_a_column_are_unsigned() {
        let file = tempfile::NamedTempFile::new().unwrap();
        write(&sample(10), file.reopen().unwrap()).unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        let column = reader.metadata().row_group(0).column(3);
        let bounds = column.statistics().unwrap();
        assert_eq!(bounds.min_bytes_opt(), Some(&0u64.to_le_bytes()[..]));
        assert_eq!(bounds.max_bytes_opt(), Some(&u64::MAX.to_le_bytes()[..]));
        let bounds = |column: usize| {
            let bounds =
                reader.metadata().row_group(0).column(column).statistics().unwrap().clone();
            [bounds.min_bytes_opt().unwrap().to_vec(), bounds.max_bytes_opt().unwrap().to_vec()]
        };
        assert_eq!(bounds(2), [b"flush".to_vec(), b"write".to_vec()]);
        assert_eq!(bounds(4), [1024u32.to_le_bytes().to_vec(), u32::MAX.to_le_bytes().to_vec()]);
        assert_eq!(bounds(5), [b"error".to_vec(), b"read_only".to_vec()], "none was abandoned");
    }

    #[test]
    fn no_rows_make_a_file_with_columns() {
        let file = tempfile::NamedTempFile::new().unwrap();
        write(&Rows::default(), file.reopen().unwrap()).unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        let names: Vec<_> = reader
            .metadata()
            .file_metadata()
            .schema_descr()
            .columns()
            .iter()
            .map(|c| c.name().to_owned())
            .collect();
        let first = ["issue_ns", "latency_ns", "op", "offset_bytes", "length_bytes", "status"];
        assert_eq!(names, [&first[..], &["submit_ns", "job", "device", "errno"]].concat());
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }
}
