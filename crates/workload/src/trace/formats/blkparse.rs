//! The default text output of `blkparse` (blktrace 1.3: `-f "%D %2c %8s %5T.%9t %5p %2a %3d "`).

use ssdyno_block::Op;

use super::super::BlkEvent;
use super::super::number::{Fault, bytes, missing, time_ps, whole};
use super::{LineReader, Sink};

const SHAPE: &str = "maj,min cpu sequence seconds pid action rwbs sector + sectors [process]";

/// The reasons why lines without requests are skipped.
const NO_DATA: &str = "commands without data";

pub(super) struct Blkparse {
    event: &'static str,
    /// The summary behind the events has begun.
    summary: bool,
}

impl Blkparse {
    pub(super) fn new(event: BlkEvent) -> Blkparse {
        let event = match event {
            BlkEvent::Queue => "Q",
            BlkEvent::Dispatch => "D",
        };
        Blkparse { event, summary: false }
    }
}

/// Whether a line opens the summary: `CPU0 (8,0):`, `Total (8,0):`, `Throughput (R/W):`,
/// `Events (8,0):`, `Skips: …`.
pub(crate) fn opens_summary(line: &str) -> bool {
    ["CPU", "Total", "Throughput", "Events", "Skips"].iter().any(|word| line.starts_with(word))
}

/// Whether a line names an input file, as `blkparse -i` prints before the first event.
pub(crate) fn names_input(line: &str) -> bool {
    line.starts_with("Input file ")
}

impl LineReader for Blkparse {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        self.summary |= opens_summary(line);
        if self.summary || names_input(line) {
            return Ok(());
        }
        let mut fields = line.split_whitespace();
        let mut field = |name: &str| fields.next().ok_or_else(|| missing(name, SHAPE));
        let device = field("the device")?;
        let numbers = device.split_once(',').map(|(major, minor)| {
            whole(major, "the major number").and(whole(minor, "the minor number"))
        });
        if !matches!(numbers, Some(Ok(_))) {
            let what = format!("the device is `{device}`");
            return Err(Fault::new(what, format!("each line needs `{SHAPE}`")));
        }
        whole(field("the CPU")?, "the CPU")?;
        whole(field("the sequence number")?, "the sequence number")?;
        let time = time_ps(field("the time")?, "the time", 12)?;
        whole(field("the process")?, "the process")?;
        let action = field("the action")?;
        // Each request appears as Q, G, I, D and C. Reading all of them would replay every request
        // five times.
        if action != self.event {
            return Ok(());
        }
        let rwbs = field("rwbs")?;
        let sector = field("the sector or process")?;
        // Without data there is neither sector nor size, only `[process]`, or `(elapsed) [process]`.
        if sector.starts_with(['[', '(']) {
            if sink.wants("", device) {
                match empties(rwbs) {
                    true => sink.flush(time),
                    false => sink.skip(NO_DATA),
                }
            }
            return Ok(());
        }
        let plus = field("the size")?;
        if plus != "+" {
            // `36 (12 00 …)` or `36 [process]`: bytes and command of a SCSI pass-through.
            if plus.starts_with(['(', '[']) || rwbs.contains('N') {
                sink.skip("commands without a sector (pass-through)");
                return Ok(());
            }
            let what = format!("`{plus}` in place of the `+` before the size");
            return Err(Fault::new(what, format!("each line needs `{SHAPE}`")));
        }
        let offset = bytes(sector, "the sector", 512)?;
        let length = bytes(field("the size")?, "the size", 512)?;
        if sink.wants("", device) {
            record(rwbs, time, offset, length, sink)?;
        }
        Ok(())
    }
}

/// Whether a request without data empties the write cache: a flush, or a barrier of older kernels.
fn empties(rwbs: &str) -> bool {
    rwbs.starts_with('F') || rwbs.contains('B')
}

/// Kernel `blk_fill_rwbs`: an F before the operation is a flush first, one behind it FUA.
fn record(rwbs: &str, time: u128, offset: u64, length: u64, sink: &mut Sink) -> Result<(), Fault> {
    let (flush, rest) = match rwbs.strip_prefix('F') {
        Some(rest) => (true, rest),
        None => (false, rwbs),
    };
    // A discard is D and a secure erase is DE. Both deallocate blocks without moving data, so both
    // are trims here.
    let op = if rest.contains(['D', 'E']) {
        Some(Op::Trim)
    } else if rest.contains('W') {
        Some(Op::Write)
    } else if rest.contains('R') {
        Some(Op::Read)
    } else {
        None
    };
    match op {
        _ if length == 0 && empties(rwbs) => sink.flush(time),
        Some(op) => {
            if flush {
                sink.flush(time);
            }
            sink.push(time, op, offset, length)?;
        }
        None if rest.contains('N') => sink.skip(NO_DATA),
        None if flush => sink.flush(time),
        None => {
            let what = format!("rwbs is `{rwbs}`");
            return Err(Fault::new(what, "it must contain R, W, D or F"));
        }
    }
    Ok(())
}
