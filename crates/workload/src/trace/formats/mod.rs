//! One reader per format: a line in, requests out.

mod blkparse;
mod columns;
mod csv;
mod fio;
mod msr;

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
}

/// Where a reader puts what it found: requests, and what it passed over.
pub(crate) struct Sink {
    pub(crate) records: std::collections::VecDeque<Record>,
    /// Reasons in the order of their first use, with how often.
    skipped: Vec<(&'static str, u64)>,
    /// The only device wanted.
    filter: Option<String>,
    first_device: Option<(String, String)>,
    several_devices: bool,
}

impl Sink {
    pub(crate) fn new(filter: Option<String>) -> Sink {
        Sink {
            records: std::collections::VecDeque::with_capacity(4),
            skipped: Vec::new(),
            filter,
            first_device: None,
            several_devices: false,
        }
    }

    /// A line was passed over.
    fn skip(&mut self, reason: &'static str) {
        match self.skipped.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => self.skipped.push((reason, 1)),
        }
    }

    /// Whether the device `name` of `host` (empty where the format has none) is wanted.
    fn wants(&mut self, host: &str, name: &str) -> bool {
        if let Some(filter) = &self.filter {
            let both = filter.strip_prefix(host).and_then(|rest| rest.strip_prefix('.'));
            let wanted =
                filter == name || (!host.is_empty() && (filter == host || both == Some(name)));
            if !wanted {
                self.skip("another device");
            }
            return wanted;
        }
        match &self.first_device {
            None => self.first_device = Some((host.to_owned(), name.to_owned())),
            Some((first_host, first)) => {
                self.several_devices |= first != name || first_host != host;
            }
        }
        true
    }

    /// A request with data. Its length must be above 0.
    fn push(
        &mut self,
        time_ps: u128,
        op: Op,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), Fault> {
        if length_bytes == 0 {
            let what = format!("a {} of zero length", op.name());
            return Err(Fault::new(what, "correct or remove the line"));
        }
        self.records.push_back(Record { time_ps, op, offset_bytes, length_bytes });
        Ok(())
    }

    fn flush(&mut self, time_ps: u128) {
        self.records.push_back(Record { time_ps, op: Op::Flush, offset_bytes: 0, length_bytes: 0 });
    }

    pub(crate) fn notes(&self, out: &mut Vec<String>) {
        for (reason, count) in &self.skipped {
            out.push(format!("{count} trace lines skipped: {reason}"));
        }
        if self.several_devices {
            out.push(
                "the trace has several devices; all were played to one target (option `device` \
                 selects one)"
                    .to_owned(),
            );
        }
    }
}

/// Reads the lines of one format. Called with every line in order that is neither empty nor a
/// comment.
pub(crate) trait LineReader: Send {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault>;

    /// The requests of this trace carry no times.
    fn untimed(&self) -> bool {
        false
    }

    /// The trace's clock is the calendar's.
    fn calendar(&self) -> bool {
        false
    }
}

/// A reader for `format`.
pub(crate) fn reader(format: Format, event: BlkEvent) -> Box<dyn LineReader> {
    match format {
        Format::DiskSim => Box::new(columns::DiskSim),
        Format::MqSim => Box::new(columns::MqSim),
        Format::Msr => Box::new(msr::Msr),
        Format::Blkparse => Box::new(blkparse::Blkparse::new(event)),
        Format::Fio => Box::new(fio::Fio::default()),
        Format::Csv => Box::new(csv::Csv::default()),
    }
}

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
            format!("`{extra}` behind the last field"),
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

pub(crate) use blkparse::opens_summary as blkparse_summary;
pub(crate) use csv::is_header as csv_header;
pub(crate) use fio::version as fio_version;
