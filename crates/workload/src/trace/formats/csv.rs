//! Plain columns with a header.

use ssdyno_block::Op;

use super::super::number::{Fault, bytes, time_ps};
use super::{LineReader, Sink, op_named};

/// What the header says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    delimiter: char,
    /// Column, and the power of ten of its unit in ps.
    time: Option<(usize, u32)>,
    op: usize,
    /// Column, and bytes per unit.
    offset: (usize, u64),
    length: (usize, u64),
    device: Option<usize>,
}

const HELP: &str =
    "the first line must name the columns, as `time_us,op,offset_bytes,length_bytes`";

fn clean(field: &str) -> &str {
    field.trim().trim_matches('"')
}

impl Header {
    /// Reads the header; the error names the column that is missing.
    pub(crate) fn parse(line: &str) -> Result<Header, Fault> {
        let delimiter =
            [',', ';', '\t'].into_iter().find(|&mark| line.contains(mark)).unwrap_or(',');
        let names: Vec<String> =
            line.split(delimiter).map(|name| clean(name).to_ascii_lowercase()).collect();
        let find = |wanted: &str| names.iter().position(|name| name == wanted);
        let sized = |what: &str| {
            let in_bytes = find(&format!("{what}_bytes")).map(|column| (column, 1));
            in_bytes.or_else(|| find(&format!("{what}_sectors")).map(|column| (column, 512)))
        };
        let lacks = |column: &str| Fault::new(format!("the header has no column `{column}`"), HELP);
        let units = [("s", 12), ("ms", 9), ("us", 6), ("ns", 3), ("ps", 0)];
        // `issue_ns` is what `requests.parquet` calls it: a recorded run is a trace.
        let time = units.iter().find_map(|(unit, exponent)| {
            let column =
                find(&format!("time_{unit}")).or_else(|| find(&format!("issue_{unit}")))?;
            Some((column, *exponent))
        });
        if time.is_none() && names.iter().any(|name| name.starts_with("time")) {
            let what = "the time column has no known unit";
            return Err(Fault::new(what, "name it time_s, time_ms, time_us, time_ns or time_ps"));
        }
        Ok(Header {
            delimiter,
            time,
            op: find("op").ok_or_else(|| lacks("op"))?,
            offset: sized("offset").ok_or_else(|| lacks("offset_bytes"))?,
            length: sized("length").ok_or_else(|| lacks("length_bytes"))?,
            device: find("device"),
        })
    }

    fn last(&self) -> usize {
        let optional = self.time.map_or(0, |(column, _)| column).max(self.device.unwrap_or(0));
        self.op.max(self.offset.0).max(self.length.0).max(optional)
    }
}

#[derive(Default)]
pub(super) struct Csv {
    header: Option<Header>,
}

impl LineReader for Csv {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        let Some(header) = &self.header else {
            self.header = Some(Header::parse(line)?);
            return Ok(());
        };
        let (mut time, mut op, mut offset, mut length, mut device) = ("", "", "", "", "");
        let mut count = 0;
        for (column, field) in line.split(header.delimiter).enumerate() {
            let field = clean(field);
            count = column + 1;
            if header.time.is_some_and(|(at, _)| at == column) {
                time = field;
            } else if header.op == column {
                op = field;
            } else if header.offset.0 == column {
                offset = field;
            } else if header.length.0 == column {
                length = field;
            } else if header.device == Some(column) {
                device = field;
            }
        }
        if count <= header.last() {
            let what = "the line is cut short: a column is missing";
            return Err(Fault::new(what, "each line needs as many columns as the header"));
        }
        let time = match header.time {
            Some((_, exponent)) => time_ps(time, "the time", exponent)?,
            None => 0,
        };
        let op = op_named(op).ok_or_else(|| {
            Fault::new(format!("op is `{op}`"), "known are read, write, trim and flush")
        })?;
        if !sink.wants("", device) {
            return Ok(());
        }
        if op == Op::Flush {
            sink.flush(time);
            return Ok(());
        }
        let offset = bytes(offset, "the offset", header.offset.1)?;
        sink.push(time, op, offset, bytes(length, "the length", header.length.1)?)
    }

    fn keeps_blanks(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.delimiter == '\t')
    }

    fn untimed(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.time.is_none())
    }

    fn calendar(&self) -> bool {
        true
    }
}

/// Whether a line can be a header: it has a column `op`.
pub(crate) fn is_header(line: &str) -> bool {
    line.split([',', ';', '\t']).any(|name| clean(name).eq_ignore_ascii_case("op"))
}
