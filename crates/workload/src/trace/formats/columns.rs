//! DiskSim and MQSim: five columns.

use ssdyno_block::Op;

use super::super::number::{Fault, bytes, time_ps, whole};
use super::reader::{LineReader, exactly};
use super::sink::Sink;

/// Unit of both formats' addresses.
const SECTOR: u64 = 512;

/// `iotrace_ascii_get_ioreq_event` of DiskSim 4.0: `%lf %d %d %d %x`.
pub(super) struct DiskSim;

const DISKSIM: &str = "time_ms devno blkno size flags";

impl LineReader for DiskSim {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        let names = ["the time", "devno", "blkno", "size", "flags"];
        let [time, device, block, size, flags] = exactly(line.split_whitespace(), names, DISKSIM)?;
        let time = time_ps(time, "time", 9)?;
        whole(device, "devno")?;
        let offset = bytes(block, "blkno", SECTOR)?;
        let length = bytes(size, "size", SECTOR)?;
        // `from_str_radix` accepts a plus sign, which no trace writes in front of its flags. A `+`
        // shows that the columns are shifted.
        let hex = flags.strip_prefix("0x").unwrap_or(flags);
        let flags = u32::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+'));
        let flags = flags.ok_or_else(|| {
            Fault::new(format!("flags are `{hex}`, not hexadecimal"), "bit 0 set means read")
        })?;
        let op = if flags & 1 == 1 { Op::Read } else { Op::Write };
        if sink.wants("", device) {
            sink.push(time, op, offset, length)?;
        }
        Ok(())
    }
}

/// `ASCII_Trace_Definition.h` of MQSim: write is 0, read is 1.
pub(super) struct MqSim;

const MQSIM: &str = "time_ns devno lba size type";

impl LineReader for MqSim {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        let names = ["the time", "devno", "lba", "size", "type"];
        let [time, device, lba, size, kind] = exactly(line.split_whitespace(), names, MQSIM)?;
        let time = time_ps(time, "time", 3)?;
        whole(device, "devno")?;
        let offset = bytes(lba, "lba", SECTOR)?;
        let length = bytes(size, "size", SECTOR)?;
        let op = match kind {
            "0" => Op::Write,
            "1" => Op::Read,
            _ => {
                let what = format!("type is `{kind}`");
                return Err(Fault::new(what, "0 is a write, 1 a read"));
            }
        };
        if sink.wants("", device) {
            sink.push(time, op, offset, length)?;
        }
        Ok(())
    }
}
