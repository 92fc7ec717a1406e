//! A command whose data are on their way from the initiator (RFC 7143, clauses 4.2.5.2, 11.7, 11.8).

use crate::pdu::{NO_TAG, Pdu, WRITE};

/// The state of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waits {
    /// Nothing: all that is needed is there.
    Nothing,
    /// Data-Out that were not asked for.
    Unsolicited,
    /// Those of the R2T with this target transfer tag.
    Solicited(u32),
}

/// The error of a Data-Out: additional sense code and qualifier for ABORTED COMMAND (SPC-4, table
/// 49; RFC 7143, clause 11.4.7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DataError(pub(crate) u16);

impl DataError {
    pub(crate) const UNEXPECTED_UNSOLICITED: DataError = DataError(0x0c0c);
    pub(crate) const DIGEST: DataError = DataError(0x4705);
    const PHASE: DataError = DataError(0x4b00);
    const TRANSFER_TAG: DataError = DataError(0x4b01);
    const TOO_MUCH: DataError = DataError(0x4b02);
    const OFFSET: DataError = DataError(0x4b05);
}

/// One command and its data so far. In order: data arrive by offset, one R2T at a time.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// The SCSI Command PDU, without its data.
    pub(crate) command: Pdu,
    /// What [`LogicalUnits::data_out_bytes`](crate::LogicalUnits::data_out_bytes) says.
    pub(crate) owed_bytes: u64,
    /// Resets of the logical unit when the command came.
    pub(crate) resets: u64,
    /// The first `needed` bytes of what arrives.
    pub(crate) data: Vec<u8>,
    needed: u32,
    arrived: u32,
    waits: Waits,
    /// Where the burst ends that is waited for.
    burst_end: u32,
    data_number: u32,
    ready_number: u32,
}

impl Transfer {
    /// From a command with what came in the same PDU. `unsolicited`: how much may follow without
    /// being asked for; `None` where nothing follows.
    pub(crate) fn new(
        mut command: Pdu,
        owed_bytes: u64,
        resets: u64,
        unsolicited: Option<u32>,
    ) -> Transfer {
        let expected = expected_bytes(&command);
        let mut data = std::mem::take(&mut command.data);
        let needed = owed_bytes.min(u64::from(expected)) as u32;
        let arrived = (data.len() as u32).min(expected);
        data.truncate(needed as usize);
        let (waits, burst_end) = match unsolicited {
            Some(most) => (Waits::Unsolicited, most.min(expected).max(arrived)),
            None => (Waits::Nothing, arrived),
        };
        Transfer {
            command,
            owed_bytes,
            resets,
            data,
            needed,
            arrived,
            waits,
            burst_end,
            data_number: 0,
            ready_number: 0,
        }
    }

    /// The initiator's data for the command.
    pub(crate) fn expected_bytes(&self) -> u32 {
        expected_bytes(&self.command)
    }

    /// Nothing is on its way, and nothing more is needed.
    pub(crate) fn is_complete(&self) -> bool {
        self.waits == Waits::Nothing && self.arrived >= self.needed
    }

    /// Nothing is on its way: the next burst is to be asked for.
    pub(crate) fn wants_burst(&self) -> bool {
        self.waits == Waits::Nothing && self.arrived < self.needed
    }

    /// Asks for the next burst, with this transfer tag: R2TSN, offset, length.
    pub(crate) fn ask(&mut self, tag: u32, burst_bytes_max: u32) -> (u32, u32, u32) {
        let length = (self.needed - self.arrived).min(burst_bytes_max);
        self.waits = Waits::Solicited(tag);
        self.burst_end = self.arrived + length;
        self.data_number = 0;
        let number = self.ready_number;
        self.ready_number += 1;
        (number, self.arrived, length)
    }

    /// Takes a Data-Out.
    pub(crate) fn take(&mut self, pdu: &Pdu) -> Result<(), DataError> {
        match (self.waits, pdu.word(20)) {
            (Waits::Unsolicited, NO_TAG) => {}
            (_, NO_TAG) => return Err(DataError::UNEXPECTED_UNSOLICITED),
            (Waits::Solicited(tag), given) if tag == given => {}
            _ => return Err(DataError::TRANSFER_TAG),
        }
        if pdu.word(36) != self.data_number {
            return Err(DataError::PHASE);
        }
        if pdu.word(40) != self.arrived {
            return Err(DataError::OFFSET);
        }
        let length = pdu.data.len() as u32;
        if length > self.burst_end - self.arrived {
            return Err(DataError::TOO_MUCH);
        }
        let room = (self.needed as usize).saturating_sub(self.data.len()).min(pdu.data.len());
        self.data.extend_from_slice(&pdu.data[..room]);
        self.arrived += length;
        self.data_number = self.data_number.wrapping_add(1);
        let full = self.arrived == self.burst_end;
        if pdu.is_final() && !full && self.waits != Waits::Unsolicited {
            return Err(DataError::PHASE);
        }
        if pdu.is_final() || full && self.waits != Waits::Unsolicited {
            self.waits = Waits::Nothing;
        }
        Ok(())
    }
}

/// The expected length of a command that writes.
fn expected_bytes(command: &Pdu) -> u32 {
    if command.flags() & WRITE != 0 { command.word(20) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu::{FINAL, opcode};
    use proptest::prelude::*;

    fn write(expected: u32, immediate: &[u8]) -> Pdu {
        let mut pdu = Pdu::new(opcode::SCSI_COMMAND);
        pdu.header[1] = FINAL | 0x20;
        pdu.set_word(20, expected);
        pdu.data = immediate.to_vec();
        pdu
    }

    fn data(tag: u32, number: u32, offset: u32, bytes: &[u8], last: bool) -> Pdu {
        let mut pdu = Pdu::new(opcode::DATA_OUT);
        pdu.header[1] = if last { FINAL } else { 0 };
        pdu.set_word(20, tag);
        pdu.set_word(36, number);
        pdu.set_word(40, offset);
        pdu.data = bytes.to_vec();
        pdu
    }

    #[test]
    fn bursts_are_asked_for_one_by_one() {
        let mut transfer = Transfer::new(write(1000, &[1; 100]), 700, 0, None);
        assert!(transfer.wants_burst());
        assert_eq!(transfer.ask(5, 512), (0, 100, 512));
        assert_eq!(transfer.take(&data(5, 0, 100, &[2; 300], false)), Ok(()));
        assert_eq!(
            transfer.take(&data(5, 0, 400, &[2; 212], true)),
            Err(DataError::PHASE),
            "DataSN"
        );
        assert_eq!(transfer.take(&data(6, 1, 400, &[2; 212], true)), Err(DataError::TRANSFER_TAG));
        assert_eq!(transfer.take(&data(5, 1, 401, &[2; 211], true)), Err(DataError::OFFSET));
        assert_eq!(transfer.take(&data(5, 1, 400, &[2; 213], true)), Err(DataError::TOO_MUCH));
        assert_eq!(transfer.take(&data(5, 1, 400, &[2; 212], true)), Ok(()));
        assert_eq!(transfer.ask(6, 512), (1, 612, 88), "what the CDB needs, not what is offered");
        assert_eq!(transfer.take(&data(6, 0, 612, &[3; 88], true)), Ok(()));
        assert!(transfer.is_complete());
        assert_eq!(transfer.data.len(), 700);
        assert_eq!(transfer.take(&data(6, 1, 700, &[3; 1], true)), Err(DataError::TRANSFER_TAG));
    }

    #[test]
    fn unsolicited_data_end_with_the_final_bit() {
        let mut transfer = Transfer::new(write(1000, &[1; 100]), 200, 0, Some(600));
        assert!(!transfer.is_complete() && !transfer.wants_burst());
        assert_eq!(transfer.take(&data(NO_TAG, 0, 100, &[2; 400], false)), Ok(()));
        assert_eq!(transfer.take(&data(NO_TAG, 1, 500, &[2; 101], true)), Err(DataError::TOO_MUCH));
        assert_eq!(transfer.take(&data(NO_TAG, 1, 500, &[], true)), Ok(()));
        assert!(transfer.is_complete());
        assert_eq!(transfer.data.len(), 200);
        let more = transfer.take(&data(NO_TAG, 2, 500, &[], true));
        assert_eq!(more, Err(DataError::UNEXPECTED_UNSOLICITED));
    }

    proptest! {
        #[test]
        fn whatever_comes_no_more_is_kept_than_needed(
            expected in 0..3000_u32,
            owed in 0..3000_u64,
            unsolicited in prop::option::of(0..3000_u32),
            pdus in prop::collection::vec((0..3_u32, 0..4_u32, 0..3000_u32, 0..900_usize, any::<bool>()), 0..12),
        ) {
            let mut transfer = Transfer::new(write(expected, &[0; 64]), owed, 0, unsolicited);
            for (tag, number, offset, length, last) in pdus {
                if transfer.wants_burst() {
                    let (_, at, length) = transfer.ask(1, 512);
                    prop_assert!(u64::from(at + length) <= owed.min(u64::from(expected)));
                }
                let tag = if tag == 2 { NO_TAG } else { tag };
                let fits = transfer.arrived;
                let offset = if offset % 3 == 0 { offset } else { fits };
                let number = if number == 3 { number } else { transfer.data_number };
                let _taken = transfer.take(&data(tag, number, offset, &vec![0; length], last));
                prop_assert!(transfer.data.len() as u64 <= owed);
                prop_assert!(!(transfer.is_complete() && transfer.data.len() < transfer.needed as usize));
            }
        }
    }
}
