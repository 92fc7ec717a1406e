//! MSR Cambridge traces.

use super::super::number::{Fault, bytes, time_ps};
use super::reader::{LineReader, exactly, op_named};
use super::sink::Sink;

const SHAPE: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

pub(super) struct Msr;

impl LineReader for Msr {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        if is_header(line) {
            return Ok(());
        }
        let names = [
            "the time",
            "the host",
            "the disk",
            "the type",
            "the offset",
            "the size",
            "the response time",
        ];
        let fields = line.split(',').map(str::trim);
        let [time, host, disk, kind, offset, size, _response] = exactly(fields, names, SHAPE)?;
        // Units of 100 ns since 1601 (FILETIME).
        let time = time_ps(time, "the time", 5)?;
        let offset = bytes(offset, "the offset", 1)?;
        let length = bytes(size, "the size", 1)?;
        let op = op_named(kind).filter(|op| *op != ssdyno_block::Op::Flush).ok_or_else(|| {
            Fault::new(format!("the type is `{kind}`"), "it must be Read or Write")
        })?;
        if sink.wants(host, disk) {
            sink.push(time, op, offset, length)?;
        }
        Ok(())
    }
}

/// Whether a line names the columns.
pub(crate) fn is_header(line: &str) -> bool {
    line.split(',')
        .zip(SHAPE.split(','))
        .take(2)
        .all(|(found, name)| found.trim().trim_matches('"').eq_ignore_ascii_case(name))
        && line.contains(',')
}
