//! One reader per format: a line or a record in, requests out.

mod blkparse;
mod columns;
mod csv;
mod fio;
mod header;
mod msr;
mod objects;
mod oracle;
mod reader;
mod sink;
mod vscsi;

use super::format::Format;
use super::number::Fault;

/// A reader for `format`, which is made of lines.
pub(crate) fn line_reader(
    format: Format,
    options: &ReaderOptions<'_>,
) -> Result<Box<dyn LineReader>, Fault> {
    // Readers are boxed: the call through a pointer costs less than parsing one line, and a generic
    // reader would compile the replay once per format.
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

pub(crate) use blkparse::{names_input as blkparse_input, opens_summary as blkparse_summary};
pub(crate) use fio::version as fio_version;
pub(crate) use header::{Header, is_comment as libcachesim_comment, is_header as csv_header};
pub(crate) use msr::is_header as msr_header;
pub(crate) use objects::Objects;
pub(crate) use oracle::{Access as OracleAccess, RECORD_BYTES as ORACLE_BYTES};
pub(crate) use reader::{LineReader, ReaderOptions, Record, RecordReader};
pub(crate) use sink::Sink;
pub(crate) use vscsi::{Command as VscsiCommand, Version as VscsiVersion};
