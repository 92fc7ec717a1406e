//! libCacheSim's oracleGeneral (`traceReader/customizedReader/oracle/oracleGeneralBin.h`).

use ssdyno_block::Op;

use super::super::number::Fault;
use super::objects::Objects;
use super::reader::{NO_OPERATIONS, RecordReader, WHOLE_SECONDS};
use super::sink::Sink;

/// Bytes of a record.
pub(crate) const RECORD_BYTES: usize = 24;

/// One record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    pub(crate) seconds: u32,
    pub(crate) object: u64,
    pub(crate) length_bytes: u32,
    /// Position of the next use of the object, from 1; `None` if there is none.
    pub(crate) next: Option<i64>,
}

impl Access {
    /// Of the first bytes of `record`; `None` where they are too few.
    pub(crate) fn parse(record: &[u8]) -> Option<Access> {
        let (seconds, rest) = record.split_first_chunk()?;
        let (object, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let next = i64::from_le_bytes(*rest.first_chunk()?);
        Some(Access {
            seconds: u32::from_le_bytes(*seconds),
            object: u64::from_le_bytes(*object),
            length_bytes: u32::from_le_bytes(*length),
            // libCacheSim's tools write either value if there is no next use. Taken as positions,
            // they would make the detection reject the trace.
            next: (next != -1 && next != i64::MAX).then_some(next),
        })
    }
}

pub(super) struct OracleGeneral {
    objects: Objects,
    /// Seconds of the record before.
    seconds: u32,
    /// Records read.
    count: i64,
}

impl OracleGeneral {
    pub(super) fn new(objects: Objects) -> OracleGeneral {
        OracleGeneral { objects, seconds: 0, count: 0 }
    }
}

impl RecordReader for OracleGeneral {
    fn size(&self) -> usize {
        RECORD_BYTES
    }

    fn record(&mut self, record: &[u8], sink: &mut Sink) -> Result<(), Fault> {
        let lost = || Fault::new("the record is cut short", "copy the file again");
        let access = Access::parse(record).ok_or_else(lost)?;
        self.count += 1;
        // The only redundancy that there is; a shift by a byte breaks it at once.
        if let Some(next) = access.next.filter(|&next| next < 0) {
            return Err(Fault::new(
                format!("the next use of the object {} is at position {next}", access.object),
                "the file is damaged here or has another format: name it with `trace.format`",
            ));
        }
        if access.seconds.abs_diff(self.seconds) > YEARS_100 && self.count > 1 {
            return Err(Fault::new(
                format!("the time goes from {} s to {} s", self.seconds, access.seconds),
                "the file is damaged here or has another format: name it with `trace.format`",
            ));
        }
        self.seconds = access.seconds;
        let length = u64::from(access.length_bytes);
        let offset = if length == 0 { 0 } else { self.objects.place(access.object, length)? };
        sink.push_object(u128::from(access.seconds) * 1_000_000_000_000, Op::Read, offset, length);
        Ok(())
    }

    fn notes(&self) -> Vec<&'static str> {
        vec![NO_OPERATIONS, self.objects.note(), WHOLE_SECONDS]
    }
}

/// No recording has such a gap.
const YEARS_100: u32 = 3_155_760_000;
