//! One reader per format: a line or a record in, requests out.

mod blkparse;
mod columns;
mod csv;
mod fio;
mod header;
mod msr;
mod objects;
mod oracle;
mod sink;
mod vscsi;

use ssdyno_block::Op;

use super::number::Fault;
use super::{BlkEvent, Format};

/// One request as recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    /// In ps from the trace's own 0, which may be centuries ago.
    pub(crate) time_ps: u128,
    pub(crate) op: Op,
    pub(crate) offset_bytes: u64,
    /// 0 for a flush alone.
    pub(crate) length_bytes: u64,
    /// Position of its device among those of the trace, where that matters.
    pub(crate) device: u64,
    /// The offset was made of the name of an object.
    pub(crate) object: bool,
}

/// What readers must know beside the trace.
pub(crate) struct ReaderOptions<'a> {
    pub(crate) event: BlkEvent,
    pub(crate) objects: Objects,
    /// See [`TraceOptions::columns`](super::TraceOptions::columns).
    pub(crate) columns: Option<&'a str>,
}

/// Reads the lines of one format. Called with every line in order that is neither empty nor a
/// comment, without blanks at its ends but for what [`keeps_blanks`](LineReader::keeps_blanks) says.
pub(crate) trait LineReader: Send {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault>;

    /// Blanks at the ends of a line are told, too: they are columns.
    fn keeps_blanks(&self) -> bool {
        false
    }

    /// The requests of this trace carry no times.
    fn untimed(&self) -> bool {
        false
    }

    /// What a reader of the figures must know of the trace.
    fn notes(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// Reads the records of one binary format.
pub(crate) trait RecordReader: Send {
    /// Bytes of a record.
    fn size(&self) -> usize;

    /// Called with every record in order.
    fn record(&mut self, record: &[u8], sink: &mut Sink) -> Result<(), Fault>;

    /// What a reader of the figures must know of the trace.
    fn notes(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// A reader for `format`, which is made of lines.
pub(crate) fn line_reader(
    format: Format,
    options: &ReaderOptions<'_>,
) -> Result<Box<dyn LineReader>, Fault> {
    Ok(match format {
        Format::DiskSim => Box::new(columns::DiskSim),
        Format::MqSim => Box::new(columns::MqSim),
        Format::Msr => Box::new(msr::Msr),
        Format::Blkparse => Box::new(blkparse::Blkparse::new(options.event)),
        Format::Fio => Box::new(fio::Fio::default()),
        Format::Alibaba => Box::new(csv::Csv::alibaba()?),
        Format::Tencent => Box::new(csv::Csv::tencent()?),
        Format::LibCacheSim => Box::new(csv::Csv::libcachesim(options.objects)),
        _ => Box::new(csv::Csv::plain(options)?),
    })
}

/// A reader for `format`, which is binary; `head` is the beginning of the trace.
pub(crate) fn record_reader(
    format: Format,
    head: &[u8],
    options: &ReaderOptions<'_>,
) -> Result<Box<dyn RecordReader>, Fault> {
    Ok(match format {
        Format::Vscsi => Box::new(vscsi::Vscsi::new(head)?),
        _ => Box::new(oracle::OracleGeneral::new(options.objects)),
    })
}

/// The times of a trace are whole seconds.
const WHOLE_SECONDS: &str = "the trace's times are whole seconds: all requests of a second start \
    together (`--timing fast` starts each as another completes)";

/// The trace does not say what was done.
const NO_OPERATIONS: &str = "the trace has no operations: all requests were played as reads";

/// Exactly `N` fields.
fn exactly<'a, const N: usize>(
    mut fields: impl Iterator<Item = &'a str>,
    names: [&str; N],
    shape: &str,
) -> Result<[&'a str; N], Fault> {
    let mut found = [""; N];
    for (place, name) in found.iter_mut().zip(names) {
        *place = fields.next().ok_or_else(|| super::number::missing(name, shape))?;
    }
    match fields.next() {
        None => Ok(found),
        Some(extra) => Err(Fault::new(
            format!("`{extra}` after the last field"),
            format!("each line needs `{shape}`"),
        )),
    }
}

/// The operation that a word stands for.
fn op_named(word: &str) -> Option<Op> {
    let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    if is(&["read", "r"]) {
        Some(Op::Read)
    } else if is(&["write", "w"]) {
        Some(Op::Write)
    } else if is(&["trim", "discard", "unmap", "d", "t"]) {
        Some(Op::Trim)
    } else if is(&["flush", "sync", "f"]) {
        Some(Op::Flush)
    } else {
        None
    }
}

pub(crate) use blkparse::{names_input as blkparse_input, opens_summary as blkparse_summary};
pub(crate) use fio::version as fio_version;
pub(crate) use header::{Header, is_comment as libcachesim_comment, is_header as csv_header};
pub(crate) use msr::is_header as msr_header;
pub(crate) use objects::Objects;
pub(crate) use oracle::{Access as OracleAccess, RECORD_BYTES as ORACLE_BYTES};
pub(crate) use sink::Sink;
pub(crate) use vscsi::{Command as VscsiCommand, Version as VscsiVersion};
