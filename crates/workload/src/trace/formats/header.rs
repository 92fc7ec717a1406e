//! The meaning of the columns of a CSV trace.

use ssdyno_block::Op;

use super::super::number::Fault;
use super::reader::op_named;

/// How operations are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ops {
    /// In words or their first letter.
    Words,
    /// 0 reads, 1 writes.
    ZeroReads,
    /// Words, or the code of a SCSI command in hexadecimal.
    Scsi,
}

impl Ops {
    /// The operation that `text` stands for.
    pub(super) fn read(self, text: &str) -> Result<Op, Fault> {
        let scsi = || {
            Some(match u8::from_str_radix(text, 16).ok()? {
                0x08 | 0x28 | 0x88 | 0xA8 => Op::Read,
                0x0A | 0x2A | 0x8A | 0xAA => Op::Write,
                _ => return None,
            })
        };
        let (op, known) = match (self, text) {
            (Ops::Words, _) => (op_named(text), "use read, write, trim or flush"),
            (Ops::ZeroReads, "0") => (Some(Op::Read), ""),
            (Ops::ZeroReads, "1") => (Some(Op::Write), ""),
            (Ops::ZeroReads, _) => (None, "0 is a read, 1 a write"),
            (Ops::Scsi, _) => (
                op_named(text).filter(|op| *op != Op::Flush).or_else(scsi),
                "use read, write or one of the SCSI commands 28, 2a, 88 and 8a",
            ),
        };
        op.ok_or_else(|| Fault::new(format!("op is `{text}`"), known))
    }
}

/// Where a request lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Column, and bytes per unit.
    Offset(usize, u64),
    /// Column of an object's name.
    Object(usize),
}

impl Place {
    fn column(self) -> usize {
        match self {
            Place::Offset(column, _) | Place::Object(column) => column,
        }
    }
}

/// What each column is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(super) delimiter: char,
    /// Column, and the power of ten of its unit in ps.
    pub(super) time: Option<(usize, u32)>,
    /// `None`: every request is a read.
    pub(super) op: Option<usize>,
    pub(super) ops: Ops,
    pub(super) place: Place,
    /// Column, and bytes per unit.
    pub(super) length: (usize, u64),
    pub(super) device: Option<usize>,
}

const HELP: &str = "the first line must name the columns, as `time_us,op,offset_bytes,length_bytes` \
     (docs/traces.md); for a file without a header, name them with `trace.columns`";

/// The names of columns in libCacheSim's tools and traces.
const TIMES: [&str; 5] = ["time", "real_time", "clock_time", "timestamp", "time_s"];
const OBJECTS: [&str; 6] = ["object", "obj_id", "obj", "id", "lbn", "lba"];
const SIZES: [&str; 4] = ["size", "obj_size", "object_size", "len"];

pub(super) fn clean(field: &str) -> &str {
    field.trim().trim_matches('"')
}

fn names(line: &str) -> (char, Vec<String>) {
    // The comma comes first, because no name of a column contains one. Spreadsheets write
    // semicolons in countries with a decimal comma.
    let delimiter = [',', ';', '\t'].into_iter().find(|&mark| line.contains(mark)).unwrap_or(',');
    (delimiter, line.split(delimiter).map(|name| clean(name).to_ascii_lowercase()).collect())
}

impl Header {
    /// Reads a header; the error names the column that is missing.
    pub(crate) fn parse(line: &str) -> Result<Header, Fault> {
        let (delimiter, names) = names(line);
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
        // S4-40 shows how a wrong unit spoils a paper (ms for us). A time without a unit is
        // therefore an error and not a guess.
        if time.is_none() && names.iter().any(|name| name.starts_with("time")) {
            let what = "the time column has no known unit";
            return Err(Fault::new(what, "name it time_s, time_ms, time_us, time_ns or time_ps"));
        }
        // Objects have no operations in most traces; a trace with addresses that has none is a mistake.
        let object = find("object").map(Place::Object);
        let op = find("op");
        if op.is_none() && object.is_none() {
            return Err(lacks("op"));
        }
        let place = sized("offset").map(|(column, unit)| Place::Offset(column, unit)).or(object);
        Ok(Header {
            delimiter,
            time,
            op,
            ops: Ops::Words,
            place: place.ok_or_else(|| lacks("offset_bytes"))?,
            length: sized("length").ok_or_else(|| lacks("length_bytes"))?,
            device: find("device"),
        })
    }

    /// Reads a header as libCacheSim's tools and traces have it; `None` for any other.
    pub(crate) fn libcachesim(line: &str) -> Option<Header> {
        let (delimiter, names) = names(line);
        let find = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
        Some(Header {
            delimiter,
            time: Some((find(&TIMES)?, 12)),
            op: find(&["op", "opcode", "cmd"]),
            ops: Ops::Scsi,
            place: Place::Object(find(&OBJECTS)?),
            length: (find(&SIZES)?, 1),
            device: None,
        })
    }

    /// The columns that libCacheSim's `tracePrint` and `traceConv` write without a header.
    pub(super) fn libcachesim_fixed(line: &str) -> Header {
        let delimiter = names(line).0;
        let (time, place, length) = (Some((0, 12)), Place::Object(1), (2, 1));
        Header { delimiter, time, op: None, ops: Ops::Scsi, place, length, device: None }
    }

    /// Takes the delimiter of `line`, where it has not the one of the names.
    pub(super) fn separate(&mut self, line: &str) {
        if !line.contains(self.delimiter) {
            self.delimiter = names(line).0;
        }
    }

    /// The last column that counts.
    pub(super) fn last(&self) -> usize {
        let optional = [self.op, self.device, self.time.map(|(column, _)| column)];
        let optional = optional.into_iter().flatten().max().unwrap_or(0);
        self.place.column().max(self.length.0).max(optional)
    }

    /// Whether `line` names columns where numbers are wanted, in all of them.
    pub(super) fn is_named_by(&self, line: &str) -> bool {
        let wanted = [Some(self.place.column()), Some(self.length.0), self.time.map(|(at, _)| at)];
        let fields: Vec<&str> = line.split(self.delimiter).map(clean).collect();
        let word = |at: usize| {
            fields.get(at).is_some_and(|field| field.starts_with(|c: char| c.is_ascii_alphabetic()))
        };
        wanted.into_iter().flatten().all(word)
    }
}

/// Whether a line can be a header: it has a column `op`.
pub(crate) fn is_header(line: &str) -> bool {
    line.split([',', ';', '\t']).any(|name| clean(name).eq_ignore_ascii_case("op"))
}

/// Whether a comment is the one that libCacheSim's `tracePrint` begins with.
pub(crate) fn is_comment(line: &str) -> bool {
    line.strip_prefix('#').is_some_and(|rest| rest.trim_start().starts_with("time,object,size"))
}
