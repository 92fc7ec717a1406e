//! VMware's vSCSI traces (`vscsiStats -t`), versions 1 and 2, as libCacheSim reads them
//! (`traceReader/customizedReader/vscsi.h`).

use ssdyno_block::Op;

use super::super::number::Fault;
use super::{RecordReader, Sink};

/// The mark that distinguishes the layouts of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    /// 32 bytes: serial number, length, scatter-gather elements (u32 each), command, version (u16
    /// each), block, time (u64 each).
    One,
    /// 40 bytes: command, version (u16 each), serial number, length, scatter-gather elements (u32
    /// each), block, time, response time (u64 each).
    Two,
}

impl Version {
    /// Bytes of a record.
    pub(crate) const fn record_bytes(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    /// High byte of the version field.
    const fn number(self) -> u16 {
        match self {
            Version::One => 1,
            Version::Two => 2,
        }
    }
}

/// One record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Command {
    /// Operation code of the command (SPC-4, clause 4.2.5.1).
    pub(crate) code: u16,
    pub(crate) version: u16,
    pub(crate) length_bytes: u32,
    pub(crate) block: u64,
    pub(crate) time_us: u64,
}

impl Command {
    /// Of the first bytes of `record`; `None` where they are too few.
    pub(crate) fn parse(record: &[u8], version: Version) -> Option<Command> {
        let u16_at = |at: usize| record.get(at..)?.first_chunk().copied().map(u16::from_le_bytes);
        let u32_at = |at: usize| record.get(at..)?.first_chunk().copied().map(u32::from_le_bytes);
        let u64_at = |at: usize| record.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
        let (code, number, length, block) = match version {
            Version::One => (12, 14, 4, 16),
            Version::Two => (0, 2, 8, 16),
        };
        Some(Command {
            code: u16_at(code)?,
            version: u16_at(number)?,
            length_bytes: u32_at(length)?,
            block: u64_at(block)?,
            time_us: u64_at(block + 8)?,
        })
    }

    /// Whether the record says that it is of `version`.
    pub(crate) fn is_of(&self, version: Version) -> bool {
        self.version >> 8 == version.number()
    }

    /// The operation of the command (SBC-3, clause 5); `None` for what neither reads nor writes.
    pub(crate) fn op(&self) -> Option<Op> {
        match self.code {
            0x08 | 0x28 | 0x88 | 0xA8 => Some(Op::Read),
            // The last two verify what they wrote.
            0x0A | 0x2A | 0x8A | 0xAA | 0x2E | 0x8E => Some(Op::Write),
            0x35 | 0x91 => Some(Op::Flush),
            _ => None,
        }
    }
}

pub(super) struct Vscsi {
    version: Version,
}

impl Vscsi {
    /// The first records show the version.
    pub(super) fn new(head: &[u8]) -> Result<Vscsi, Fault> {
        let of = |version: Version| {
            let records = head.chunks_exact(version.record_bytes()).take(2);
            let commands = records.filter_map(|record| Command::parse(record, version));
            // Two records must agree: the version of one record can be right by chance, since the
            // fields lie at different places in both layouts.
            let known: Vec<bool> = commands.map(|command| command.is_of(version)).collect();
            !known.is_empty() && !known.contains(&false)
        };
        let version = match (of(Version::One), of(Version::Two)) {
            (_, true) => Version::Two,
            (true, false) => Version::One,
            (false, false) => {
                return Err(Fault::new(
                    "not a version of vscsi: 1 (32-byte records) and 2 (40-byte records) are supported",
                    "check the format; a file that was cut must begin with a whole record",
                ));
            }
        };
        Ok(Vscsi { version })
    }
}

impl RecordReader for Vscsi {
    fn size(&self) -> usize {
        self.version.record_bytes()
    }

    fn record(&mut self, record: &[u8], sink: &mut Sink) -> Result<(), Fault> {
        let lost = || Fault::new("the record is cut short", "copy the file again");
        let command = Command::parse(record, self.version).ok_or_else(lost)?;
        // Each record repeats the version. The check finds a lost byte at once, while shifted
        // addresses would look like a random load.
        if !command.is_of(self.version) {
            let what = format!(
                "the record has version {:#06x} in a trace of version {}",
                command.version,
                self.version.number()
            );
            return Err(Fault::new(what, "the file is damaged here: copy it again"));
        }
        let time_ps = u128::from(command.time_us) * 1_000_000;
        match command.op() {
            Some(Op::Flush) => sink.flush(time_ps),
            Some(op) => {
                let offset = command.block.checked_mul(512).ok_or_else(|| {
                    let what = format!("the block {} is beyond any device", command.block);
                    Fault::new(what, "the file is damaged here: copy it again")
                })?;
                if command.length_bytes == 0 {
                    sink.skip("reads and writes without data");
                } else {
                    sink.push(time_ps, op, offset, u64::from(command.length_bytes))?;
                }
            }
            None => sink.skip("commands that neither read nor write blocks"),
        }
        Ok(())
    }
}
