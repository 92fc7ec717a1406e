//! One Parquet row a request.
//!
//! Written with the format's low-level writer: its layer for Arrow arrays would multiply what this
//! crate has to build, for six columns without nulls.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use ssdyno_block::Op;

use crate::rows::{Chunk, Row, Rows};

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
const STATUS_NAMES: [&str; 4] = ["ok", "error", "read_only", "abandoned"];

/// Chunks of a row group: 2^20 rows, what readers take at a time.
const GROUP_CHUNKS: usize = 16;

fn properties() -> WriterProperties {
    let mut builder = WriterProperties::builder()
        // The codec has to be pure Rust, so that other systems can be built for without a C
        // compiler; every common reader knows this one.
        .set_compression(Compression::LZ4_RAW)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    // Times and addresses hardly repeat: a dictionary of them costs time and gains nothing.
    for column in ["issue_ns", "latency_ns", "offset_bytes"] {
        builder = builder
            .set_column_dictionary_enabled(ColumnPath::from(column), false)
            .set_column_encoding(ColumnPath::from(column), Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

/// Streams `rows` into `file`, a chunk at a time.
pub(crate) fn write(rows: &Rows, file: File) -> Result<(), ParquetError> {
    write_grouped(rows, file, GROUP_CHUNKS)
}

fn write_grouped(rows: &Rows, file: File, group_chunks: usize) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties()))?;
    let chunks: Vec<Chunk<'_>> = rows.chunks().filter(|chunk| chunk.len() > 0).collect();
    for group in chunks.chunks(group_chunks) {
        write_group(group, writer.next_row_group()?)?;
    }
    // A full disk may show only in these two; `into_inner` would hide the system's error in a text.
    writer.finish()?;
    writer.inner().sync_all().map_err(ParquetError::from)
}

fn write_group(
    chunks: &[Chunk<'_>],
    mut group: SerializedRowGroupWriter<'_, File>,
) -> Result<(), ParquetError> {
    let ops = Op::ALL.map(|op| ByteArray::from(op.name()));
    let statuses = STATUS_NAMES.map(ByteArray::from);
    // The casts keep the bits: see `SCHEMA`.
    column::<Int64Type>(chunks, &mut group, |row| row.issue_ns as i64)?;
    column::<Int64Type>(chunks, &mut group, |row| row.latency_ns as i64)?;
    column::<ByteArrayType>(chunks, &mut group, |row| ops[row.request.op as usize].clone())?;
    column::<Int64Type>(chunks, &mut group, |row| row.request.offset_bytes as i64)?;
    column::<Int32Type>(chunks, &mut group, |row| row.request.length_bytes as i32)?;
    column::<ByteArrayType>(chunks, &mut group, |row| statuses[row.status as usize].clone())?;
    group.close()?;
    Ok(())
}

/// Writes the next column of a row group: of every row what `value` takes from it.
fn column<T: DataType>(
    chunks: &[Chunk<'_>],
    group: &mut SerializedRowGroupWriter<'_, File>,
    value: impl Fn(Row) -> T::T,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns than are written".into());
    let mut column: SerializedColumnWriter<'_> = group.next_column()?.ok_or_else(missing)?;
    let mut values = Vec::with_capacity(chunks.first().map_or(0, |chunk| chunk.len()));
    for chunk in chunks {
        values.clear();
        values.extend(chunk.iter().map(&value));
        column.typed::<T>().write_batch(&values, None, None)?;
    }
    column.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use ssdyno_block::{Request, Status, Time};

    use super::*;

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
    type Columns = (u64, u64, String, u64, u32, String);

    /// The number of row groups, and the rows.
    fn read(file: File) -> (usize, Vec<Columns>) {
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

    #[test]
    fn rows_come_back_from_the_file() {
        let rows = sample(70_000);
        let file = tempfile::NamedTempFile::new().unwrap();
        write_grouped(&rows, file.reopen().unwrap(), 1).unwrap();
        let (groups, back) = read(file.reopen().unwrap());
        assert_eq!((groups, back.len()), (2, rows.len()));
        for (i, (row, back)) in rows.iter().zip(&back).enumerate() {
            let request = row.request;
            let status = match row.status {
                Status::Ok => "ok",
                Status::Error => "error",
                Status::ReadOnly => "read_only",
                Status::Abandoned => "abandoned",
            };
            let expected = (
                row.issue_ns,
                row.latency_ns,
                request.op.name().to_owned(),
                request.offset_bytes,
                request.length_bytes,
                status.to_owned(),
            );
            assert_eq!(*back, expected, "row {i}");
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
