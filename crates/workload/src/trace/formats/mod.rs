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
    /// Names of the devices that were met, the first few.
    devices: Vec<String>,
    more_devices: bool,
    /// The device of the line before, which most often is that of this one.
    latest: (String, String),
}

/// So many devices are named in notes.
const NAMED_MOST: usize = 8;

impl Sink {
    pub(crate) fn new(filter: Option<String>) -> Sink {
        Sink {
            records: std::collections::VecDeque::with_capacity(4),
            skipped: Vec::new(),
            filter,
            devices: Vec::new(),
            more_devices: false,
            latest: Default::default(),
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
        self.meet(host, name);
        let Some(filter) = &self.filter else { return true };
        let both = filter.strip_prefix(host).and_then(|rest| rest.strip_prefix('.'));
        let wanted = filter == name || (!host.is_empty() && (filter == host || both == Some(name)));
        if !wanted {
            self.skip("another device");
        }
        wanted
    }

    fn meet(&mut self, host: &str, name: &str) {
        let (latest_host, latest) = &mut self.latest;
        if !self.devices.is_empty() && latest == name && latest_host == host {
            return;
        }
        host.clone_into(latest_host);
        name.clone_into(latest);
        let device = if host.is_empty() { name.to_owned() } else { format!("{host}.{name}") };
        if self.devices.contains(&device) {
        } else if self.devices.len() < NAMED_MOST {
            self.devices.push(device);
        } else {
            self.more_devices = true;
        }
    }

    /// The devices of the trace so far, for messages.
    pub(crate) fn devices(&self) -> String {
        let names = self.devices.join(", ");
        if self.more_devices { format!("{names}, …") } else { names }
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
        if self.filter.is_none() && self.devices.len() > 1 {
            out.push(format!(
                "the trace has several devices ({}); all were played to one target \
                 (`--trace-device` selects one)",
                self.devices()
            ));
        }
    }
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

pub(crate) use blkparse::{names_input as blkparse_input, opens_summary as blkparse_summary};
pub(crate) use csv::is_header as csv_header;
pub(crate) use fio::version as fio_version;
pub(crate) use msr::is_header as msr_header;
