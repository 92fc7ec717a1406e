//! Columns of Arrow.

use std::io;
use std::sync::Arc;

use arrow_array::types::{Int32Type, UInt8Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, Float64Array, PrimitiveArray,
    RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use ssdyno_block::Op;
use ssdyno_record::{Rows, STATUS_NAMES};
use ssdyno_sweep::{Cells, SweepTable};

/// The requests of a run, in the order of completion, with the columns of `requests.parquet`. What there are few of,
/// such as operations, is a dictionary.
pub(crate) fn of_rows(rows: &Rows) -> io::Result<RecordBatch> {
    let names = rows.names();
    let mut columns = Columns::with_room(rows.len());
    rows.for_each(|job, row| {
        columns.issue_ns.push(row.issue_ns);
        columns.latency_ns.push(row.latency_ns);
        columns.op.push(row.request.op as u8);
        columns.offset_bytes.push(row.request.offset_bytes);
        columns.length_bytes.push(row.request.length_bytes);
        columns.status.push(row.status as u8);
        columns.submit_ns.push(row.submit_ns);
        columns.job.push(job.cast_signed());
        columns.device.push(i32::try_from(names.device_at(row.request.offset_bytes)).unwrap_or(0));
        columns.errno.push(u32::from(row.errno));
        Ok(())
    })?;
    let last_job = columns.job.iter().copied().max().unwrap_or(0).cast_unsigned();
    let jobs = (0..=last_job).map(|job| names.job(job)).collect();
    let mut devices: Vec<String> = names.devices.iter().map(|(_, name)| name.clone()).collect();
    // A dictionary has an entry.
    if devices.is_empty() {
        devices.push(String::new());
    }
    columns.batch(jobs, devices)
}

/// A table of no requests.
pub(crate) fn empty() -> RecordBatch {
    of_rows(&Rows::default())
        .unwrap_or_else(|_| RecordBatch::new_empty(Arc::new(arrow_schema::Schema::empty())))
}

/// The designs of a sweep, with the columns of `sweep.parquet`.
pub(crate) fn of_sweep(table: &SweepTable) -> io::Result<RecordBatch> {
    let column = |cells: &Cells| -> ArrayRef {
        match cells {
            Cells::Counts(all) => Arc::new(UInt64Array::from(all.clone())),
            Cells::Numbers(all) => Arc::new(Float64Array::from(all.clone())),
            Cells::Texts(all) => Arc::new(StringArray::from(all.clone())),
            Cells::Flags(all) => Arc::new(BooleanArray::from(all.clone())),
        }
    };
    let columns = table.columns.iter().map(|(name, cells)| (name, column(cells), true));
    RecordBatch::try_from_iter_with_nullable(columns).map_err(io::Error::other)
}

struct Columns {
    issue_ns: Vec<u64>,
    latency_ns: Vec<u64>,
    op: Vec<u8>,
    offset_bytes: Vec<u64>,
    length_bytes: Vec<u32>,
    status: Vec<u8>,
    submit_ns: Vec<u64>,
    job: Vec<i32>,
    device: Vec<i32>,
    errno: Vec<u32>,
}

impl Columns {
    fn with_room(rows: usize) -> Columns {
        Columns {
            issue_ns: Vec::with_capacity(rows),
            latency_ns: Vec::with_capacity(rows),
            op: Vec::with_capacity(rows),
            offset_bytes: Vec::with_capacity(rows),
            length_bytes: Vec::with_capacity(rows),
            status: Vec::with_capacity(rows),
            submit_ns: Vec::with_capacity(rows),
            job: Vec::with_capacity(rows),
            device: Vec::with_capacity(rows),
            errno: Vec::with_capacity(rows),
        }
    }

    fn batch(self, jobs: Vec<String>, devices: Vec<String>) -> io::Result<RecordBatch> {
        let ops = Op::ALL.map(|op| op.name().to_owned()).to_vec();
        let statuses = STATUS_NAMES.map(str::to_owned).to_vec();
        let columns: [(&str, ArrayRef); 10] = [
            ("issue_ns", Arc::new(UInt64Array::from(self.issue_ns))),
            ("latency_ns", Arc::new(UInt64Array::from(self.latency_ns))),
            ("op", named::<UInt8Type>(self.op, ops)?),
            ("offset_bytes", Arc::new(UInt64Array::from(self.offset_bytes))),
            ("length_bytes", Arc::new(UInt32Array::from(self.length_bytes))),
            ("status", named::<UInt8Type>(self.status, statuses)?),
            ("submit_ns", Arc::new(UInt64Array::from(self.submit_ns))),
            ("job", named::<Int32Type>(self.job, jobs)?),
            ("device", named::<Int32Type>(self.device, devices)?),
            ("errno", Arc::new(UInt32Array::from(self.errno))),
        ];
        RecordBatch::try_from_iter(columns).map_err(io::Error::other)
    }
}

/// Numbers of names.
fn named<K: ArrowPrimitiveType + arrow_array::types::ArrowDictionaryKeyType>(
    numbers: Vec<K::Native>,
    names: Vec<String>,
) -> io::Result<ArrayRef>
where
    PrimitiveArray<K>: From<Vec<K::Native>>,
{
    let keys = PrimitiveArray::<K>::from(numbers);
    let names = Arc::new(StringArray::from(names));
    let column = DictionaryArray::<K>::try_new(keys, names).map_err(io::Error::other)?;
    Ok(Arc::new(column))
}
