//! The translated commands: for each its length, its supported bits, and the initiators that may
//! send it while another one holds a reservation.
//!
//! One table serves the look-up of an operation code, the check of reserved bits, REPORT SUPPORTED
//! OPERATION CODES and the rules of reservations, so they cannot disagree.

use ssdyno_spec::scsi::opcode::{self, maintenance_in, service_action_in};

use crate::fields::unknown_field;
use crate::sense::Sense;

/// What a command does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    TestUnitReady,
    RequestSense,
    FormatUnit,
    Read,
    Write,
    Inquiry,
    ModeSelect,
    Reserve,
    Release,
    ModeSense,
    StartStopUnit,
    SendDiagnostic,
    ReadCapacity10,
    ReadCapacity16,
    GetLbaStatus,
    WriteAndVerify,
    Verify,
    PreFetch,
    SynchronizeCache,
    ReadDefectData,
    WriteSame,
    Unmap,
    Sanitize,
    LogSense,
    PersistentReserveIn,
    PersistentReserveOut,
    CompareAndWrite,
    OrWrite,
    ReportLuns,
    ReportOperationCodes,
    ReportTaskManagement,
}

/// The initiators that may send a command while another nexus holds a reservation (SPC-4, table 66;
/// SBC-3, table 13; for RESERVE and RELEASE SPC-2, table 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Everybody.
    Free,
    /// Everybody, unless the logical unit is held by RESERVE.
    Status,
    /// As reading.
    Read,
    /// As writing.
    Write,
    /// START STOP UNIT: starting is free, all else is as writing.
    Start,
    /// RESERVE and RELEASE: nobody, while anybody is registered for persistent reservations (SPC-2,
    /// 5.5.1; SPC-3, 5.6.3 with CRH = 0).
    Legacy,
    /// PERSISTENT RESERVE IN and OUT: nobody, while anybody holds the logical unit by RESERVE, not even
    /// who does (SPC-2, 5.5.1).
    Persistent,
}

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Command {
    /// First byte of the CDB.
    pub(crate) opcode: u8,
    /// Service action in bits 4:0 of byte 1, where the operation code has some.
    pub(crate) service_action: Option<u8>,
    /// CDB usage data (SPC-4, 6.35.3): bits that are evaluated; as long as the CDB.
    pub(crate) usage: &'static [u8],
    /// Who may send it.
    pub(crate) access: Access,
    /// What it does.
    pub(crate) operation: Operation,
    /// The thesis has it (S1-48).
    pub(crate) thesis: bool,
    /// It sends data that the translator must see, not only move.
    pub(crate) parameters: bool,
}

impl Command {
    /// Checks that the CDB is long enough and sets no bit that the command does not know.
    pub(crate) fn check(&self, cdb: &[u8]) -> Result<(), Sense> {
        if cdb.len() < self.usage.len() {
            return Err(Sense::cdb(cdb.len() as u16, 7));
        }
        for (index, (&byte, &known)) in cdb.iter().zip(self.usage).enumerate().skip(1) {
            // The service action selects the row, so its bits are valid whatever the usage data
            // say. The usage data hold only the bits of this one action.
            let known =
                if index == 1 && self.service_action.is_some() { known | 0x1f } else { known };
            let unknown = byte & !known;
            if unknown != 0 {
                // SPC-4 requires the bit pointer to name the leftmost bit of the wrong field, so
                // the highest unknown bit counts. `unknown_field` corrects it where a field spans
                // several bytes.
                let bit = 7 - unknown.leading_zeros() as u8;
                return Err(unknown_field(self, index, bit, !known));
            }
        }
        Ok(())
    }
}

/// A row without service action.
const fn row(usage: &'static [u8], access: Access, operation: Operation) -> Command {
    let opcode = usage[0];
    Command {
        opcode,
        service_action: None,
        usage,
        access,
        operation,
        thesis: matches!(
            opcode,
            opcode::INQUIRY
                | opcode::REPORT_LUNS
                | opcode::READ_CAPACITY_10
                | opcode::READ_16
                | opcode::WRITE_16
        ),
        parameters: matches!(
            operation,
            Operation::FormatUnit
                | Operation::ModeSelect
                | Operation::Unmap
                | Operation::Sanitize
                | Operation::WriteSame
                | Operation::PersistentReserveOut
                | Operation::OrWrite
        ),
    }
}

/// A row with the service action that is in its usage data.
const fn action(usage: &'static [u8], access: Access, operation: Operation) -> Command {
    let mut command = row(usage, access, operation);
    command.service_action = Some(usage[1] & 0x1f);
    command
}

const MAINTENANCE: u8 = opcode::MAINTENANCE_IN;
const SERVICE_IN: u8 = opcode::SERVICE_ACTION_IN_16;
const CAPACITY: u8 = service_action_in::READ_CAPACITY_16;
const LBA_STATUS: u8 = service_action_in::GET_LBA_STATUS;
const CODES: u8 = maintenance_in::REPORT_SUPPORTED_OPERATION_CODES;
const FUNCTIONS: u8 = maintenance_in::REPORT_SUPPORTED_TASK_MANAGEMENT_FUNCTIONS;
const PR_IN: u8 = opcode::PERSISTENT_RESERVE_IN;
const SANITIZE: u8 = opcode::SANITIZE;
const PR_OUT: u8 = opcode::PERSISTENT_RESERVE_OUT;
const F: u8 = 0xff;
/// DPO, FUA and the obsolete FUA_NV.
const D: u8 = 0x1a;
/// DPO and BYTCHK.
const V: u8 = 0x16;
/// IMMED and AUSE, beside a service action.
const I: u8 = 0xa0;
/// GROUP NUMBER.
const G: u8 = 0x3f;

/// Usage data of a command with a logical block address, GROUP NUMBER and a number of blocks.
const fn blocks_10(opcode: u8, flags: u8) -> [u8; 10] {
    [opcode, flags, F, F, F, F, G, F, F, 0]
}

/// The same in 12 bytes.
const fn blocks_12(opcode: u8, flags: u8) -> [u8; 12] {
    [opcode, flags, F, F, F, F, F, F, F, F, G, 0]
}

/// The same in 16 bytes.
const fn blocks_16(opcode: u8, flags: u8) -> [u8; 16] {
    [opcode, flags, F, F, F, F, F, F, F, F, F, F, F, F, G, 0]
}

/// All commands, by operation code, then service action.
pub(crate) static COMMANDS: &[Command] = {
    use Access::{Free, Legacy, Persistent, Read, Start, Status, Write};
    use Operation as O;
    &[
        row(&[opcode::TEST_UNIT_READY, 0, 0, 0, 0, 0], Status, O::TestUnitReady),
        row(&[opcode::REQUEST_SENSE, 1, 0, 0, F, 0], Free, O::RequestSense),
        row(&[opcode::FORMAT_UNIT, 0x38, 0, 0, 0, 0], Write, O::FormatUnit),
        row(&[opcode::READ_6, 0x1f, F, F, F, 0], Read, O::Read),
        row(&[opcode::WRITE_6, 0x1f, F, F, F, 0], Write, O::Write),
        row(&[opcode::INQUIRY, 1, F, F, F, 0], Free, O::Inquiry),
        row(&[opcode::MODE_SELECT_6, 0x11, 0, 0, F, 0], Write, O::ModeSelect),
        row(&[opcode::RESERVE_6, 0, 0, 0, 0, 0], Legacy, O::Reserve),
        row(&[opcode::RELEASE_6, 0, 0, 0, 0, 0], Legacy, O::Release),
        row(&[opcode::MODE_SENSE_6, 8, F, F, F, 0], Write, O::ModeSense),
        row(&[opcode::START_STOP_UNIT, 1, 0, 0x0f, 0xf7, 0], Start, O::StartStopUnit),
        row(&[opcode::SEND_DIAGNOSTIC, 0x17, 0, 0, 0, 0], Write, O::SendDiagnostic),
        row(&[opcode::READ_CAPACITY_10, 0, F, F, F, F, 0, 0, 1, 0], Free, O::ReadCapacity10),
        row(&blocks_10(opcode::READ_10, D), Read, O::Read),
        row(&blocks_10(opcode::WRITE_10, D), Write, O::Write),
        row(&blocks_10(opcode::WRITE_AND_VERIFY_10, V), Write, O::WriteAndVerify),
        row(&blocks_10(opcode::VERIFY_10, V), Read, O::Verify),
        row(&blocks_10(opcode::PRE_FETCH_10, 2), Read, O::PreFetch),
        row(&blocks_10(opcode::SYNCHRONIZE_CACHE_10, 6), Write, O::SynchronizeCache),
        row(&[opcode::READ_DEFECT_DATA_10, 0, 0x1f, 0, 0, 0, 0, F, F, 0], Read, O::ReadDefectData),
        row(&blocks_10(opcode::WRITE_SAME_10, 8), Write, O::WriteSame),
        row(&[opcode::UNMAP, 0, 0, 0, 0, 0, G, F, F, 0], Write, O::Unmap),
        action(&[SANITIZE, I | 0x01, 0, 0, 0, 0, 0, F, F, 0], Write, O::Sanitize),
        action(&[SANITIZE, I | 0x02, 0, 0, 0, 0, 0, F, F, 0], Write, O::Sanitize),
        action(&[SANITIZE, I | 0x03, 0, 0, 0, 0, 0, F, F, 0], Write, O::Sanitize),
        action(&[SANITIZE, I | 0x1f, 0, 0, 0, 0, 0, F, F, 0], Write, O::Sanitize),
        row(&[opcode::LOG_SENSE, 0, F, F, 0, F, F, F, F, 0], Status, O::LogSense),
        row(&[opcode::MODE_SELECT_10, 0x11, 0, 0, 0, 0, 0, F, F, 0], Write, O::ModeSelect),
        row(&[opcode::RESERVE_10, 0, 0, 0, 0, 0, 0, 0, 0, 0], Legacy, O::Reserve),
        row(&[opcode::RELEASE_10, 0, 0, 0, 0, 0, 0, 0, 0, 0], Legacy, O::Release),
        row(&[opcode::MODE_SENSE_10, 0x18, F, F, 0, 0, 0, F, F, 0], Write, O::ModeSense),
        action(&[PR_IN, 0, 0, 0, 0, 0, 0, F, F, 0], Persistent, O::PersistentReserveIn),
        action(&[PR_IN, 1, 0, 0, 0, 0, 0, F, F, 0], Persistent, O::PersistentReserveIn),
        action(&[PR_IN, 2, 0, 0, 0, 0, 0, F, F, 0], Persistent, O::PersistentReserveIn),
        action(&[PR_IN, 3, 0, 0, 0, 0, 0, F, F, 0], Persistent, O::PersistentReserveIn),
        action(&[PR_OUT, 0, F, 0, 0, F, F, F, F, 0], Persistent, O::PersistentReserveOut),
        action(&[PR_OUT, 1, F, 0, 0, F, F, F, F, 0], Persistent, O::PersistentReserveOut),
        action(&[PR_OUT, 2, F, 0, 0, F, F, F, F, 0], Persistent, O::PersistentReserveOut),
        action(&[PR_OUT, 3, F, 0, 0, F, F, F, F, 0], Persistent, O::PersistentReserveOut),
        action(&[PR_OUT, 4, F, 0, 0, F, F, F, F, 0], Persistent, O::PersistentReserveOut),
        action(&[PR_OUT, 5, F, 0, 0, F, F, F, F, 0], Persistent, O::PersistentReserveOut),
        action(&[PR_OUT, 6, F, 0, 0, F, F, F, F, 0], Persistent, O::PersistentReserveOut),
        row(&blocks_16(opcode::READ_16, D), Read, O::Read),
        row(
            &[opcode::COMPARE_AND_WRITE, D, F, F, F, F, F, F, F, F, 0, 0, 0, F, G, 0],
            Write,
            O::CompareAndWrite,
        ),
        row(&blocks_16(opcode::WRITE_16, D), Write, O::Write),
        row(&blocks_16(opcode::ORWRITE_16, D), Write, O::OrWrite),
        row(&blocks_16(opcode::WRITE_AND_VERIFY_16, V), Write, O::WriteAndVerify),
        row(&blocks_16(opcode::VERIFY_16, V), Read, O::Verify),
        row(&blocks_16(opcode::PRE_FETCH_16, 2), Read, O::PreFetch),
        row(&blocks_16(opcode::SYNCHRONIZE_CACHE_16, 6), Write, O::SynchronizeCache),
        row(&blocks_16(opcode::WRITE_SAME_16, 9), Write, O::WriteSame),
        action(
            &[SERVICE_IN, CAPACITY, F, F, F, F, F, F, F, F, F, F, F, F, 1, 0],
            Free,
            O::ReadCapacity16,
        ),
        action(
            &[SERVICE_IN, LBA_STATUS, F, F, F, F, F, F, F, F, F, F, F, F, 0, 0],
            Read,
            O::GetLbaStatus,
        ),
        row(&[opcode::REPORT_LUNS, 0, F, 0, 0, 0, F, F, F, F, 0, 0], Free, O::ReportLuns),
        action(
            &[MAINTENANCE, CODES, 0x87, F, F, F, F, F, F, F, 0, 0],
            Read,
            O::ReportOperationCodes,
        ),
        action(
            &[MAINTENANCE, FUNCTIONS, 0x80, 0, 0, 0, F, F, F, F, 0, 0],
            Read,
            O::ReportTaskManagement,
        ),
        row(&blocks_12(opcode::READ_12, D), Read, O::Read),
        row(&blocks_12(opcode::WRITE_12, D), Write, O::Write),
        row(&blocks_12(opcode::WRITE_AND_VERIFY_12, V), Write, O::WriteAndVerify),
        row(&blocks_12(opcode::VERIFY_12, V), Read, O::Verify),
        row(
            &[opcode::READ_DEFECT_DATA_12, 0x1f, F, F, F, F, F, F, F, F, 0, 0],
            Read,
            O::ReadDefectData,
        ),
    ]
};

/// No row.
const NOWHERE: u8 = u8::MAX;

// A search of the table for each CDB would cost about 60 comparisons. The constant index makes the
// look-up one load, which matters because S1-51 measures the cost of this layer.
/// The first row of each operation code.
static FIRST: [u8; 256] = {
    let mut first = [NOWHERE; 256];
    let mut index = COMMANDS.len();
    while index > 0 {
        index -= 1;
        first[COMMANDS[index].opcode as usize] = index as u8;
    }
    first
};

/// All rows of an operation code: they stand together.
pub(crate) fn rows(opcode: u8) -> &'static [Command] {
    let first = FIRST[usize::from(opcode)];
    if first == NOWHERE {
        return &[];
    }
    let rest = &COMMANDS[usize::from(first)..];
    &rest[..rest.iter().take_while(|row| row.opcode == opcode).count()]
}

/// The meaning of an operation code and service action.
pub(crate) enum Found {
    /// A command.
    Command(&'static Command),
    /// The operation code is there, the service action is not.
    NoSuchAction,
    /// There is no such operation code.
    NoSuchOpcode,
}

/// Looks a CDB up.
pub(crate) fn find(cdb: &[u8], supported: impl Fn(&Command) -> bool) -> Found {
    let first = cdb.first().map_or(NOWHERE, |&opcode| FIRST[usize::from(opcode)]);
    if first == NOWHERE {
        return Found::NoSuchOpcode;
    }
    let command = &COMMANDS[usize::from(first)];
    // The first row decides: the rows of an operation code either all have a service action or none
    // has. READ and WRITE leave here and never build the iterator.
    if command.service_action.is_none() {
        return if supported(command) { Found::Command(command) } else { Found::NoSuchOpcode };
    }
    let mut rows = rows(command.opcode).iter().filter(|row| supported(row)).peekable();
    // If no action of an operation code is supported (SANITIZE without a sanitize method), the code
    // itself does not exist. SPC-4 then requires INVALID COMMAND OPERATION CODE, not INVALID FIELD
    // IN CDB.
    if rows.peek().is_none() {
        return Found::NoSuchOpcode;
    }
    let wanted = cdb.get(1).map(|byte| byte & 0x1f);
    rows.find(|row| row.service_action == wanted).map_or(Found::NoSuchAction, Found::Command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_ordered_and_as_long_as_their_group_says() {
        let key = |c: &Command| (c.opcode, c.service_action);
        assert!(COMMANDS.windows(2).all(|pair| key(&pair[0]) < key(&pair[1])));
        for command in COMMANDS {
            // SPC-4, 4.2.5.1: the group code gives the length.
            let length = match command.opcode >> 5 {
                0 => 6,
                1 | 2 => 10,
                4 => 16,
                5 => 12,
                group => panic!("group {group}"),
            };
            assert_eq!(command.usage.len(), length, "{:#x}", command.opcode);
            assert_eq!(command.usage.last(), Some(&0), "NACA is not supported");
        }
    }

    #[test]
    fn an_unknown_bit_is_pointed_at() {
        let Found::Command(read) = find(&[0x28], |_| true) else { panic!("READ (10)") };
        let cdb = [0x28, 0x20, 0, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(read.check(&cdb), Err(Sense::cdb(1, 7)), "RDPROTECT: its leftmost bit");
        let naca = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 4];
        assert_eq!(read.check(&naca), Err(Sense::cdb(9, 2)));
        assert_eq!(read.check(&naca[..9]), Err(Sense::cdb(9, 7)), "too short");
        let good = [0x28, 0x18, 0, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(read.check(&good), Ok(()));
    }

    #[test]
    fn the_thesis_has_five_commands() {
        let opcodes: Vec<u8> = COMMANDS.iter().filter(|c| c.thesis).map(|c| c.opcode).collect();
        assert_eq!(opcodes, [0x12, 0x25, 0x88, 0x8a, 0xa0]);
    }

    extern crate alloc;
    use alloc::vec::Vec;
}
