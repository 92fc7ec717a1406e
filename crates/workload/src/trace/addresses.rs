//! Where a record lies on the target.

use ssdyno_block::Op;

use super::formats::Record;
use super::number::Fault;
use super::options::BeyondEnd;
use crate::TargetFacts;

/// Puts recorded addresses on the target.
pub(crate) struct Addresses {
    device: TargetFacts,
    beyond_end: BeyondEnd,
    /// Space of each device of the trace.
    slot_bytes: Option<u64>,
    pub(crate) widened: u64,
    pub(crate) wrapped: u64,
    pub(crate) beyond: u64,
    pub(crate) beyond_slot: u64,
}

impl Addresses {
    pub(crate) fn new(
        device: TargetFacts,
        beyond_end: BeyondEnd,
        slot_bytes: Option<u64>,
    ) -> Addresses {
        let (widened, wrapped, beyond, beyond_slot) = (0, 0, 0, 0);
        Addresses { device, beyond_end, slot_bytes, widened, wrapped, beyond, beyond_slot }
    }

    /// Bytes of the target in whole sectors.
    pub(crate) fn capacity(&self) -> u64 {
        let sector = u64::from(self.device.sector_bytes);
        // A target can end with a partial sector (a file of any size). This rest cannot be
        // addressed with direct I/O, so it does not belong to the capacity.
        self.device.capacity_bytes / sector * sector
    }

    /// First byte and length in whole sectors; `None` where the record is left out.
    pub(crate) fn range(&mut self, record: &Record) -> Result<Option<(u64, u64)>, Fault> {
        if record.op == Op::Flush {
            return Ok(Some((0, 0)));
        }
        let Some(offset) = self.in_slot(record)? else { return Ok(None) };
        let sector = u64::from(self.device.sector_bytes);
        let capacity = self.capacity();
        let first = offset / sector * sector;
        let end = offset.checked_add(record.length_bytes);
        let end = end.and_then(|end| end.checked_next_multiple_of(sector));
        let fits = end.filter(|&end| end <= capacity);
        let (at, length) = match (fits, self.beyond_end) {
            (Some(end), _) => (first, end - first),
            (None, BeyondEnd::Fail) => {
                let what = format!(
                    "a {} of {} bytes at byte {offset} ends beyond the target's {capacity} bytes",
                    record.op.name(),
                    record.length_bytes,
                );
                let help = if record.object {
                    "use a larger target, `trace.beyond_end=wrap` or `trace.beyond_end=skip`; or, if objects are not sectors, `trace.ids=byte` or `trace.ids=hash`"
                } else {
                    "use a larger target, `trace.beyond_end=wrap` or `trace.beyond_end=skip`"
                };
                return Err(Fault::new(what, help));
            }
            (None, BeyondEnd::Skip) => {
                self.beyond += 1;
                return Ok(None);
            }
            (None, BeyondEnd::Wrap) => {
                let head = offset - first;
                let length = record.length_bytes.checked_add(head);
                let length = length.and_then(|length| length.checked_next_multiple_of(sector));
                let Some(length) = length.filter(|&length| length <= capacity) else {
                    let what = format!(
                        "a {} of {} bytes is longer than the target's {capacity} bytes",
                        record.op.name(),
                        record.length_bytes
                    );
                    return Err(Fault::new(what, "use a larger target, or skip such requests"));
                };
                self.wrapped += 1;
                // The start is taken modulo the capacity, and the length stays. A clipped request
                // would move less data than the trace and change its throughput.
                (first % capacity, length)
            }
        };
        self.widened += u64::from(length != record.length_bytes);
        Ok(Some((at, length)))
    }

    /// The first byte, in the slot of its device if devices have slots.
    fn in_slot(&mut self, record: &Record) -> Result<Option<u64>, Fault> {
        let Some(slot) = self.slot_bytes else { return Ok(Some(record.offset_bytes)) };
        let end = record.offset_bytes.checked_add(record.length_bytes);
        if end.is_some_and(|end| end <= slot) {
            let at =
                record.device.checked_mul(slot).and_then(|at| at.checked_add(record.offset_bytes));
            // The end of all addresses is beyond the end of any target.
            return Ok(Some(at.unwrap_or(u64::MAX)));
        }
        if self.beyond_end == BeyondEnd::Skip {
            self.beyond_slot += 1;
            return Ok(None);
        }
        let what = format!(
            "a {} of {} bytes at byte {} of its device ends beyond the {slot} bytes of its slot",
            record.op.name(),
            record.length_bytes,
            record.offset_bytes,
        );
        Err(Fault::new(what, "give devices more with `trace.slot`, or `trace.beyond_end=skip`"))
    }
}
