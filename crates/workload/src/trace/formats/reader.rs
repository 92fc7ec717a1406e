//! The interface of a format's reader, and the parts that several readers share.

use ssdyno_block::Op;

use super::super::number::{self, Fault};
use super::super::options::BlkEvent;
use super::objects::Objects;
use super::sink::Sink;

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

/// The parameters of a reader besides the trace.
pub(crate) struct ReaderOptions<'a> {
    pub(crate) event: BlkEvent,
    pub(crate) objects: Objects,
    /// See [`TraceOptions::columns`](crate::TraceOptions::columns).
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

    /// The notes on the trace for a reader of the figures.
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

    /// The notes on the trace for a reader of the figures.
    fn notes(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// The times of a trace are whole seconds.
pub(super) const WHOLE_SECONDS: &str = "the trace's times are whole seconds: all requests of a second start \
    together (`trace.timing=fast` starts each as another completes)";

/// The trace does not contain the operation.
pub(super) const NO_OPERATIONS: &str =
    "the trace has no operations: all requests were replayed as reads";

/// Exactly `N` fields.
pub(super) fn exactly<'a, const N: usize>(
    mut fields: impl Iterator<Item = &'a str>,
    names: [&str; N],
    shape: &str,
) -> Result<[&'a str; N], Fault> {
    // The fields are collected into an array whose length is known, so no line allocates. An
    // additional field is an error, because it often means that the format is another one.
    let mut found = [""; N];
    for (place, name) in found.iter_mut().zip(names) {
        *place = fields.next().ok_or_else(|| number::missing(name, shape))?;
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
pub(super) fn op_named(word: &str) -> Option<Op> {
    // Upper and lower case are equal: MSR writes `Read`, Alibaba `R`, and exports from databases
    // often change the case.
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
