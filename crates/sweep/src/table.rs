//! The rows of a sweep as one table: Parquet and CSV.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::Value;
use ssdyno_figures::csv_cell;
use ssdyno_report::HEADLINES;

use crate::cost::COSTS;
use crate::row::{Standing, SweepResult, SweepRow};
use crate::warned;

/// The cells of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum Cells {
    /// Whole numbers.
    Counts(Vec<u64>),
    /// Numbers; `None` where there is none.
    Numbers(Vec<Option<f64>>),
    /// Texts; `None` where there is none.
    Texts(Vec<Option<String>>),
    /// Yes or no.
    Flags(Vec<bool>),
}

/// The columns of a sweep, in their order.
#[derive(Clone, PartialEq, Debug)]
pub struct SweepTable {
    /// Name and cells of each.
    pub columns: Vec<(String, Cells)>,
    rows: usize,
}

impl SweepTable {
    /// The table of `result`: the number of the design, what is varied, what became of it, its figures with the bounds
    /// of their 95 % intervals (`….low`, `….high`) and whether they are lower bounds (`….is_lower_bound`, if any is), its
    /// standing, and what it was run from.
    pub fn of(result: &SweepResult) -> SweepTable {
        let rows = &result.rows;
        let mut columns = vec![("design".to_owned(), counts(rows, |row| row.design))];
        for (at, axis) in result.plan.vary.iter().enumerate() {
            columns.push((axis.key().to_owned(), values(rows, at)));
        }
        let state = |row: &SweepRow| Some(row.state.word().to_owned());
        columns.push(("state".to_owned(), texts(rows, state)));
        columns.push(("why".to_owned(), texts(rows, |row| row.why.clone())));
        for name in HEADLINES.iter().map(|(name, _)| *name).chain(COSTS) {
            // A column that is empty in all rows is left out. A table of a simulated sweep would
            // otherwise have a dozen columns for real targets only.
            if !rows.iter().any(|row| row.figures.contains_key(name)) {
                continue;
            }
            columns.push((name.to_owned(), numbers(rows, |row| row.figure(name))));
            if rows.iter().any(|row| row.figures.get(name).is_some_and(|f| f.low.is_some())) {
                let low = |row: &SweepRow| row.figures.get(name)?.low;
                let high = |row: &SweepRow| row.figures.get(name)?.high;
                columns.push((format!("{name}.low"), numbers(rows, low)));
                columns.push((format!("{name}.high"), numbers(rows, high)));
            }
            if rows.iter().any(|row| row.is_lower_bound(name)) {
                let is_lower_bound = flags(rows, |row| row.is_lower_bound(name));
                columns.push((format!("{name}.is_lower_bound"), is_lower_bound));
            }
        }
        columns.push(("requests".to_owned(), counts(rows, |row| row.requests)));
        columns.push(("errors".to_owned(), counts(rows, |row| row.errors)));
        columns.push(("overloaded".to_owned(), flags(rows, |row| row.overloaded)));
        let words = |row: &SweepRow| warned::words(row);
        columns.push(("warnings".to_owned(), texts(rows, words)));
        let stands = |standing| move |row: &SweepRow| row.standing == Some(standing);
        columns.push(("front".to_owned(), flags(rows, stands(Standing::Front))));
        columns.push(("within_chance".to_owned(), flags(rows, |row| row.within_chance)));
        columns.push(("undecided".to_owned(), flags(rows, stands(Standing::Undecided))));
        let unrepresentative = stands(Standing::Unrepresentative);
        columns.push(("unrepresentative".to_owned(), flags(rows, unrepresentative)));
        columns.push(("excluded".to_owned(), flags(rows, stands(Standing::Excluded))));
        columns.push(("stopped".to_owned(), texts(rows, |row| row.stopped.clone())));
        columns.push(("run_seed".to_owned(), counts(rows, |row| row.seed)));
        columns.push(("spec_hash".to_owned(), texts(rows, |row| Some(row.spec_hash.clone()))));
        SweepTable { columns, rows: rows.len() }
    }

    /// Writes the table as CSV (RFC 4180), with a header.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write_csv(&self, file: File) -> io::Result<()> {
        let mut out = BufWriter::new(file);
        let header: Vec<String> = self.columns.iter().map(|(name, _)| csv_cell(name)).collect();
        write!(out, "{}\r\n", header.join(","))?;
        for row in 0..self.rows {
            let cells: Vec<String> =
                self.columns.iter().map(|(_, cells)| cell(cells, row)).collect();
            write!(out, "{}\r\n", cells.join(","))?;
        }
        // `into_inner` reports the error of the last flush. Dropping the writer would lose it, and
        // a file that is cut off would count as written.
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }

    /// Writes the table as Parquet, in one row group.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write_parquet(&self, file: File) -> io::Result<()> {
        self.parquet(file).map_err(|error| match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(error) => *error,
                Err(other) => io::Error::other(other),
            },
            other => io::Error::other(other),
        })
    }

    fn parquet(&self, file: File) -> Result<(), ParquetError> {
        let fields = self.columns.iter().map(|(name, cells)| field(name, cells).map(Arc::new));
        let schema = Type::group_type_builder("sweep")
            .with_fields(fields.collect::<Result<_, _>>()?)
            .build()?;
        // The texts of a table repeat themselves (states, reasons, values). LZ4 makes them
        // small and costs little time on both sides.
        let properties = WriterProperties::builder().set_compression(Compression::LZ4_RAW).build();
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (_, cells) in &self.columns {
            if let Some(mut column) = group.next_column()? {
                write_cells(&mut column, cells)?;
                column.close()?;
            }
        }
        group.close()?;
        writer.finish()?;
        writer.inner().sync_all().map_err(ParquetError::from)
    }
}

fn counts(rows: &[SweepRow], pick: impl Fn(&SweepRow) -> u64) -> Cells {
    Cells::Counts(rows.iter().map(pick).collect())
}

fn numbers(rows: &[SweepRow], pick: impl Fn(&SweepRow) -> Option<f64>) -> Cells {
    // JSON and CSV have no NaN, and a reader of Parquet would take it for a
    // figure. An empty cell says that there is none.
    Cells::Numbers(rows.iter().map(|row| pick(row).filter(|value| value.is_finite())).collect())
}

fn texts(rows: &[SweepRow], pick: impl Fn(&SweepRow) -> Option<String>) -> Cells {
    Cells::Texts(rows.iter().map(pick).collect())
}

fn flags(rows: &[SweepRow], pick: impl Fn(&SweepRow) -> bool) -> Cells {
    Cells::Flags(rows.iter().map(pick).collect())
}

/// The values of axis `at`: numbers where all are, and texts otherwise.
fn values(rows: &[SweepRow], at: usize) -> Cells {
    let value = |row: &SweepRow| row.values.get(at).cloned().unwrap_or_default();
    // One text among numbers makes the column a column of texts. Readers of
    // Parquet need one type for a column.
    if rows.iter().all(|row| value(row).is_number()) {
        return numbers(rows, |row| value(row).as_f64());
    }
    texts(rows, |row| {
        Some(match value(row) {
            Value::String(text) => text,
            other => other.to_string(),
        })
    })
}

fn cell(cells: &Cells, row: usize) -> String {
    match cells {
        Cells::Counts(all) => all[row].to_string(),
        Cells::Numbers(all) => all[row].map(|value| value.to_string()).unwrap_or_default(),
        Cells::Texts(all) => all[row].as_deref().map(csv_cell).unwrap_or_default(),
        Cells::Flags(all) => all[row].to_string(),
    }
}

fn field(name: &str, cells: &Cells) -> Result<Type, ParquetError> {
    let (physical, repetition) = match cells {
        Cells::Counts(_) => (Physical::INT64, Repetition::REQUIRED),
        Cells::Numbers(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
        Cells::Texts(_) => (Physical::BYTE_ARRAY, Repetition::OPTIONAL),
        Cells::Flags(_) => (Physical::BOOLEAN, Repetition::REQUIRED),
    };
    let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
    match cells {
        Cells::Texts(_) => builder
            .with_converted_type(ConvertedType::UTF8)
            .with_logical_type(Some(LogicalType::String)),
        Cells::Counts(_) => builder.with_converted_type(ConvertedType::UINT_64),
        _ => builder,
    }
    .build()
}

fn write_cells(column: &mut SerializedColumnWriter<'_>, cells: &Cells) -> Result<(), ParquetError> {
    match cells {
        Cells::Counts(all) => {
            // Parquet has no unsigned integers of its own. The converted type says how the bits are
            // to be read, so no value above 2^63 is lost.
            let values: Vec<i64> = all.iter().map(|value| value.cast_signed()).collect();
            column.typed::<Int64Type>().write_batch(&values, None, None)?;
        }
        Cells::Flags(all) => {
            column.typed::<BoolType>().write_batch(all, None, None)?;
        }
        Cells::Numbers(all) => {
            let values: Vec<f64> = all.iter().flatten().copied().collect();
            column.typed::<DoubleType>().write_batch(&values, Some(&levels(all)), None)?;
        }
        Cells::Texts(all) => {
            let values: Vec<ByteArray> =
                all.iter().flatten().map(|text| ByteArray::from(text.as_str())).collect();
            column.typed::<ByteArrayType>().write_batch(&values, Some(&levels(all)), None)?;
        }
    }
    Ok(())
}

/// Definition levels: 1 where there is a value.
fn levels<T>(all: &[Option<T>]) -> Vec<i16> {
    all.iter().map(|value| i16::from(value.is_some())).collect()
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::KeepGoing;

    use super::*;
    use crate::plan::SweepPlan;
    use crate::row::SweepFigure;

    #[test]
    fn a_lower_bound_has_a_column() {
        let plan = "vary = [\"seed=1,2\"]\n[run]\ntarget = \"sim:delay-10us\"\nrequests = 100\n";
        let plan = SweepPlan::from_toml("plan.toml", plan).unwrap();
        let sweep = plan.prepare(&mut ssdyno_session::Unattended).unwrap();
        let (mut result, _) = sweep.execute(&mut |_| KeepGoing::Continue).unwrap();
        let column = |result: &SweepResult, name: &str| {
            let columns = SweepTable::of(result).columns;
            columns.into_iter().find(|(known, _)| known == name).map(|(_, cells)| cells)
        };
        let name = "latency_ns.mean.is_lower_bound";
        assert_eq!(column(&result, name), None);
        let mean = SweepFigure { value: 1e4, is_lower_bound: true, ..SweepFigure::default() };
        result.rows[1].figures.insert("latency_ns.mean".to_owned(), mean);
        assert_eq!(column(&result, name), Some(Cells::Flags(vec![false, true])));
        assert_eq!(column(&result, "latency_ns.p99.is_lower_bound"), None);
    }
}
