//! fio iolog, versions 2 and 3 (HOWTO, "Trace file format"; `iolog.c`).

use ssdyno_block::Op;

use super::super::number::{Fault, bytes, missing, time_ps};
use super::{LineReader, Sink};

#[derive(Default)]
pub(super) struct Fio {
    /// 2 or 3; 0 before the first line.
    version: u32,
    /// Sum of the waits of version 2, in ps.
    waited_ps: u128,
}

const V2: &str = "filename action [offset length]";
const V3: &str = "timestamp filename action [offset length]";

/// The version that a first line announces.
pub(crate) fn version(line: &str) -> Option<u32> {
    let mut words = line.split_whitespace();
    let known = words.next() == Some("fio") && words.next() == Some("version");
    let version = words.next().filter(|_| known)?;
    (words.next() == Some("iolog")).then(|| version.parse().unwrap_or(0))
}

impl LineReader for Fio {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        if self.version == 0 {
            self.version = match version(line) {
                Some(version @ 2..=3) => version,
                found => {
                    let what = match found {
                        Some(version) => format!("version {version} of fio's iolog"),
                        None => "the first line does not name the iolog's version".to_owned(),
                    };
                    return Err(Fault::new(what, "it must be `fio version 2 iolog` or 3"));
                }
            };
            return Ok(());
        }
        let shape = if self.version == 3 { V3 } else { V2 };
        let mut fields = line.split_whitespace();
        let mut field = |name: &str| fields.next().ok_or_else(|| missing(name, shape));
        let time = match self.version {
            // Microseconds: `log_io_u` writes `utime_since_now`.
            3 => time_ps(field("the timestamp")?, "the timestamp", 6)?,
            _ => self.waited_ps,
        };
        let file = field("the file name")?;
        let action = field("the action")?;
        let op = match action {
            "add" | "open" | "close" => return Ok(()),
            "read" => Op::Read,
            "write" => Op::Write,
            "trim" => Op::Trim,
            "sync" | "datasync" => Op::Flush,
            "wait" => {
                let wait_ps = time_ps(field("the time to wait")?, "the time to wait", 6)?;
                self.wait(wait_ps, sink);
                return Ok(());
            }
            _ => {
                let what = format!("the action is `{action}`");
                let help = "use one of add, open, close, read, write, trim, sync, datasync, wait";
                return Err(Fault::new(what, help));
            }
        };
        if op == Op::Flush {
            if sink.wants("", file) {
                sink.flush(time);
            }
            return Ok(());
        }
        let offset = bytes(field("the offset")?, "the offset", 1)?;
        let length = bytes(field("the length")?, "the length", 1)?;
        if let Some(extra) = fields.next() {
            let what = format!("`{extra}` after the last field");
            return Err(Fault::new(what, format!("each line needs `{shape}`")));
        }
        if sink.wants("", file) {
            sink.push(time, op, offset, length)?;
        }
        Ok(())
    }

    fn untimed(&self) -> bool {
        self.version == 2
    }
}

impl Fio {
    fn wait(&mut self, wait_ps: u128, sink: &mut Sink) {
        if self.version == 3 {
            // fio itself passes it over.
            sink.skip("`wait` is not part of iolog version 3");
        } else if wait_ps >= 100_000_000 {
            // "Everything below 100 [us] is discarded."
            self.waited_ps = self.waited_ps.saturating_add(wait_ps);
        }
    }
}
