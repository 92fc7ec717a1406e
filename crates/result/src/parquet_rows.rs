//! One Parquet row a request.
//!
//! The library lays out the file; the pages are encoded here, because that is what a run pays for each
//! request after it has been measured: see [`pages`].

mod column;
mod pages;

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use ssdyno_block::Op;

use crate::rows::{Chunk, Row, Rows};
use column::Column;
use pages::Bounds;

/// Columns in the order that [`write_group`] writes them. Parquet keeps unsigned integers in the
/// signed types of the same width (Parquet format, LogicalTypes.md, "Unsigned Integers").
const SCHEMA: &str = "message requests {
    REQUIRED INT64 issue_ns (INTEGER(64, false));
    REQUIRED INT64 latency_ns (INTEGER(64, false));
    REQUIRED BINARY op (STRING);
    REQUIRED INT64 offset_bytes (INTEGER(64, false));
    REQUIRED INT32 length_bytes (INTEGER(32, false));
    REQUIRED BINARY status (STRING);
}";

/// Names of [`ssdyno_block::Status`], in the order of its discriminant.
pub(crate) const STATUS_NAMES: [&str; 4] = ["ok", "error", "read_only", "abandoned"];

/// Rows of a page: what is unpacked of them stays in a core's own cache until it is encoded.
const PAGE_ROWS: usize = 1 << 13;

/// Streams `rows` into `file`. A chunk of them is a row group: 2^20 rows, what readers take at a
/// time.
pub(crate) fn write(rows: &Rows, file: File) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = Arc::new(WriterProperties::builder().build());
    let descriptor = SchemaDescriptor::new(Arc::clone(&schema));
    let mut writer = SerializedFileWriter::new(file, schema, properties)?;
    let lengths = Lengths::of(rows);
    let mut page = Page::default();
    for chunk in rows.chunks().filter(|chunk| chunk.len() > 0) {
        let mut columns = Columns::new(&descriptor, &lengths)?;
        for part in chunk.parts(PAGE_ROWS) {
            page.fill(part, &lengths);
            columns.add(&page)?;
        }
        columns.close(&lengths, writer.next_row_group()?)?;
    }
    // A full disk may show only in these two; `into_inner` would hide the system's error in a text.
    writer.finish()?;
    writer.inner().sync_all().map_err(ParquetError::from)
}

/// Every length that requests have, once.
struct Lengths {
    /// Those of narrow rows come first, so that their index is the one in the row.
    list: Vec<u32>,
    /// Only the others.
    index: HashMap<u32, u32>,
}

impl Lengths {
    fn of(rows: &Rows) -> Lengths {
        let mut list = rows.narrow_lengths().to_vec();
        let mut index = HashMap::new();
        for row in rows.wide() {
            index.entry(row.request.length_bytes).or_insert_with(|| {
                list.push(row.request.length_bytes);
                list.len() as u32 - 1
            });
        }
        Lengths { list, index }
    }
}

/// The rows of a page, by columns: values, and indices into dictionaries, of which there is one where all
/// are the same.
#[derive(Default)]
struct Page {
    rows: usize,
    issue_ns: Vec<u64>,
    latency_ns: Vec<u64>,
    op: Vec<u32>,
    offset_bytes: Vec<u64>,
    length: Vec<u32>,
    status: Vec<u32>,
}

impl Page {
    fn fill(&mut self, part: Chunk<'_>, lengths: &Lengths) {
        self.rows = part.len();
        let columns = [&mut self.issue_ns, &mut self.latency_ns, &mut self.offset_bytes];
        let [issue, latency, offset] = columns.map(|column| {
            column.resize(part.len(), 0);
            column.iter_mut()
        });
        for (row, ((issue, latency), offset)) in part.iter().zip(issue.zip(latency).zip(offset)) {
            (*issue, *latency) = (row.issue_ns, row.latency_ns);
            *offset = row.request.offset_bytes;
        }
        // Most loads are of one kind; then one row speaks for all.
        let kinds = if part.is_uniform() { part.first() } else { part };
        refill(&mut self.op, kinds, |row| row.request.op as u32);
        refill(&mut self.status, kinds, |row| row.status as u32);
        self.length.clear();
        self.length.extend(kinds.iter_with_length().map(|(row, narrow)| match narrow {
            Some(index) => index,
            None => lengths.index.get(&row.request.length_bytes).copied().unwrap_or(0),
        }));
    }
}

fn refill<T>(values: &mut Vec<T>, part: Chunk<'_>, value: impl Fn(Row) -> T) {
    values.clear();
    values.extend(part.iter().map(value));
}

/// A row group that is being filled.
struct Columns {
    issue: Column,
    latency: Column,
    op: Column,
    offset: Column,
    length: Column,
    status: Column,
    /// Of issue, latency and offset.
    bounds: [Bounds; 3],
    /// Which entries of the dictionaries of operation, length and status occur.
    used: [Vec<bool>; 3],
}

impl Columns {
    fn new(schema: &SchemaDescriptor, lengths: &Lengths) -> Result<Columns, ParquetError> {
        let names = |number, names: &[&str]| {
            Column::of_indices(schema, number, names.len(), plain_names(names))
        };
        let list = &lengths.list;
        let plain_lengths = list.iter().flat_map(|length| length.to_le_bytes()).collect();
        Ok(Columns {
            // Requests come and go in batches, so that both repeat in a way that packing does not see.
            issue: Column::of_deltas(schema, 0).compressed(),
            latency: Column::of_deltas(schema, 1).compressed(),
            op: names(2, &Op::ALL.map(Op::name))?,
            offset: Column::of_deltas(schema, 3),
            length: Column::of_indices(schema, 4, list.len(), plain_lengths)?,
            status: names(5, &STATUS_NAMES)?,
            bounds: [Bounds::NONE; 3],
            used: [vec![false; Op::ALL.len()], vec![false; list.len()], vec![false; 4]],
        })
    }

    fn add(&mut self, page: &Page) -> Result<(), ParquetError> {
        let numbers = [
            (&mut self.issue, &page.issue_ns),
            (&mut self.latency, &page.latency_ns),
            (&mut self.offset, &page.offset_bytes),
        ];
        for ((column, values), bounds) in numbers.into_iter().zip(&mut self.bounds) {
            let mut encoded = Vec::with_capacity(values.len() * 4);
            pages::delta(values, bounds, &mut encoded);
            column.add(values.len(), encoded)?;
        }
        let indices = [
            (&mut self.op, &page.op),
            (&mut self.length, &page.length),
            (&mut self.status, &page.status),
        ];
        for ((column, indices), used) in indices.into_iter().zip(&mut self.used) {
            indices.iter().for_each(|index| used[*index as usize] = true);
            let mut encoded = Vec::new();
            pages::indices(indices, page.rows, used.len(), &mut encoded);
            column.add(page.rows, encoded)?;
        }
        Ok(())
    }

    fn close(
        self,
        lengths: &Lengths,
        mut group: SerializedRowGroupWriter<'_, File>,
    ) -> Result<(), ParquetError> {
        let [issue, latency, offset] = self.bounds.map(bounds_of_numbers);
        let [ops, used_lengths, statuses] = &self.used;
        self.issue.close(issue, &mut group)?;
        self.latency.close(latency, &mut group)?;
        self.op.close(bounds_of_names(&Op::ALL.map(Op::name), ops), &mut group)?;
        self.offset.close(offset, &mut group)?;
        self.length.close(bounds_of_lengths(&lengths.list, used_lengths), &mut group)?;
        self.status.close(bounds_of_names(&STATUS_NAMES, statuses), &mut group)?;
        group.close()?;
        Ok(())
    }
}

/// Names as a dictionary page has them: each behind its length (Encodings.md, "Plain").
fn plain_names(names: &[&str]) -> Vec<u8> {
    let with_length = |name: &&str| [&(name.len() as u32).to_le_bytes(), name.as_bytes()].concat();
    names.iter().flat_map(with_length).collect()
}

/// What of `entries` occurs.
fn occurring<'a, T: Copy>(entries: &'a [T], used: &'a [bool]) -> impl Iterator<Item = T> + 'a {
    entries.iter().zip(used).filter(|(_, used)| **used).map(|(entry, _)| *entry)
}

/// The casts keep the bits: see [`SCHEMA`].
fn bounds_of_numbers(bounds: Bounds) -> Statistics {
    let (least, most) = (bounds.least as i64, bounds.most as i64);
    Statistics::int64(Some(least), Some(most), None, Some(0), false)
}

fn bounds_of_names(names: &[&str], used: &[bool]) -> Statistics {
    let bound = |name: Option<&str>| name.map(ByteArray::from);
    let (least, most) = (occurring(names, used).min(), occurring(names, used).max());
    Statistics::byte_array(bound(least), bound(most), None, Some(0), false)
}

fn bounds_of_lengths(lengths: &[u32], used: &[bool]) -> Statistics {
    let (least, most) = (occurring(lengths, used).min(), occurring(lengths, used).max());
    let bound = |length: Option<u32>| length.map(|length| length as i32);
    Statistics::int32(bound(least), bound(most), None, Some(0), false)
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use proptest::prelude::*;
    use ssdyno_block::{Request, Status, Time};

    use super::*;
    use crate::rows::CHUNK_ROWS;

    /// Rows of every operation and status; the last ones need every bit of a column.
    fn sample(count: u64) -> Rows {
        let statuses = [Status::Ok, Status::Error, Status::ReadOnly, Status::Abandoned];
        let mut rows = Rows::default();
        for i in 0..count {
            let request = Request {
                op: Op::ALL[(i % 4) as usize],
                offset_bytes: i * 512,
                length_bytes: 1024 + (i % 3 * 512) as u32,
            };
            rows.push(&request, Time::from_ns(i * 10), i, statuses[(i / 4 % 4) as usize]);
        }
        let most = Request { op: Op::Write, offset_bytes: u64::MAX, length_bytes: u32::MAX };
        rows.push(&most, Time::MAX, u64::MAX, Status::ReadOnly);
        rows
    }

    /// The columns of a row, in order.
    type Values = (u64, u64, String, u64, u32, String);

    /// The number of row groups, and the rows.
    fn read(file: File) -> (usize, Vec<Values>) {
        let reader = SerializedFileReader::new(file).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| {
            let row = row.unwrap();
            (
                row.get_ulong(0).unwrap(),
                row.get_ulong(1).unwrap(),
                row.get_string(2).unwrap().clone(),
                row.get_ulong(3).unwrap(),
                row.get_uint(4).unwrap(),
                row.get_string(5).unwrap().clone(),
            )
        });
        (reader.num_row_groups(), rows.collect())
    }

    fn columns(row: Row) -> Values {
        let status = match row.status {
            Status::Ok => "ok",
            Status::Error => "error",
            Status::ReadOnly => "read_only",
            Status::Abandoned => "abandoned",
        };
        let Row { issue_ns, latency_ns, request, .. } = row;
        let op = request.op.name().to_owned();
        (issue_ns, latency_ns, op, request.offset_bytes, request.length_bytes, status.to_owned())
    }

    #[test]
    fn rows_come_back_from_the_file() {
        let rows = sample(CHUNK_ROWS as u64 + 7_000);
        let file = tempfile::NamedTempFile::new().unwrap();
        write(&rows, file.reopen().unwrap()).unwrap();
        let (groups, back) = read(file.reopen().unwrap());
        assert_eq!((groups, back.len()), (2, rows.len()));
        for (i, (row, back)) in rows.iter().zip(&back).enumerate() {
            assert_eq!(*back, columns(row), "row {i}");
        }
    }

    proptest! {
        /// Steps of every size between neighbours, also ones that a row cannot pack; pages that end
        /// anywhere in a block.
        #[test]
        fn any_rows_come_back(
            rows in prop::collection::vec(
                (any::<(u64, u64, u64, u32)>(), (0u32..64, 0u32..64, 0u32..64, 0u32..32), 0usize..16),
                0..300,
            ),
            repeated in 1usize..5,
        ) {
            let statuses = [Status::Ok, Status::Error, Status::ReadOnly, Status::Abandoned];
            let mut kept = Rows::default();
            for ((issue, latency, offset, length), shift, kind) in &rows {
                let request = Request {
                    op: Op::ALL[kind % 4],
                    offset_bytes: offset >> shift.2,
                    length_bytes: length >> shift.3,
                };
                for _ in 0..repeated {
                    let latency_ns = latency >> shift.1;
                    kept.push_ns(&request, issue >> shift.0, latency_ns, statuses[kind / 4]);
                }
            }
            let file = tempfile::NamedTempFile::new().unwrap();
            write(&kept, file.reopen().unwrap()).unwrap();
            let (_, back) = read(file.reopen().unwrap());
            prop_assert_eq!(back, kept.iter().map(columns).collect::<Vec<_>>());
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
        let expected = ["issue_ns", "latency_ns", "op", "offset_bytes", "length_bytes", "status"];
        assert_eq!(names, expected);
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }
}
