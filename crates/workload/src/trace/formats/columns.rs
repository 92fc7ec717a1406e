//! DiskSim and MQSim: five columns.

use ssdyno_block::Op;

use super::super::number::{Fault, bytes, time_ps, whole};
use super::reader::{LineReader, exactly};
use super::sink::Sink;

/// Unit of both formats' addresses.
const SECTOR: u64 = 512;

/// A line of columns `names`: a time with so many digits below its unit, a device, a sector, a count of
/// sectors, and what `op` reads.
fn columns(
    line: &str,
    sink: &mut Sink,
    names: [&'static str; 5],
    (digits, shape): (u32, &str),
    op: fn(&str) -> Result<Op, Fault>,
) -> Result<(), Fault> {
    let [time, device, start, size, kind] = exactly(line.split_whitespace(), names, shape)?;
    let time = time_ps(time, "time", digits)?;
    whole(device, "devno")?;
    let offset = bytes(start, names[2], SECTOR)?;
    let length = bytes(size, "size", SECTOR)?;
    let op = op(kind)?;
    if sink.wants("", device) { sink.push(time, op, offset, length) } else { Ok(()) }
}

/// `iotrace_ascii_get_ioreq_event` of DiskSim 4.0: `%lf %d %d %d %x`.
pub(super) struct DiskSim;

impl LineReader for DiskSim {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        let names = ["the time", "devno", "blkno", "size", "flags"];
        columns(line, sink, names, (9, "time_ms devno blkno size flags"), |flags| {
            // `from_str_radix` accepts a plus sign, which no trace writes in front of its flags. A `+`
            // shows that the columns are shifted.
            let hex = flags.strip_prefix("0x").unwrap_or(flags);
            let flags = u32::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+'));
            let flags = flags.ok_or_else(|| {
                Fault::new(format!("flags are `{hex}`, not hexadecimal"), "bit 0 set means read")
            })?;
            Ok(if flags & 1 == 1 { Op::Read } else { Op::Write })
        })
    }
}

/// `ASCII_Trace_Definition.h` of MQSim: write is 0, read is 1.
pub(super) struct MqSim;

impl LineReader for MqSim {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        let names = ["the time", "devno", "lba", "size", "type"];
        columns(line, sink, names, (3, "time_ns devno lba size type"), |kind| match kind {
            "0" => Ok(Op::Write),
            "1" => Ok(Op::Read),
            _ => Err(Fault::new(format!("type is `{kind}`"), "0 is a write, 1 a read")),
        })
    }
}
