//! REPORT SUPPORTED OPERATION CODES (SPC-4, 6.35).

use alloc::vec::Vec;

use ssdyno_spec::scsi::TimeoutDescriptor;
use zerocopy::IntoBytes;

use crate::bytes::{u16_at, u32_at};
use crate::commands::{self, COMMANDS, Command, Operation};
use crate::job::ScsiJob;
use crate::sense::{Checked, Sense};
use crate::target::ScsiTarget;

/// No timeouts are recommended.
const TIMEOUTS: TimeoutDescriptor = TimeoutDescriptor {
    length: zerocopy::byteorder::U16::from_bytes([0, 10]),
    reserved: 0,
    command_specific: 0,
    nominal_seconds: zerocopy::byteorder::U32::ZERO,
    recommended_seconds: zerocopy::byteorder::U32::ZERO,
};

impl ScsiTarget {
    /// REPORT SUPPORTED OPERATION CODES.
    pub(crate) fn report_operation_codes(&self, job: &mut ScsiJob, cdb: &[u8]) -> Checked {
        let timeouts = cdb[2] & 0x80 != 0;
        let allocation = u32_at(cdb, 6) as usize;
        let data = match cdb[2] & 7 {
            0 => self.all_operation_codes(timeouts),
            options @ 1..=3 => {
                let command = self.one_command(options, cdb[3], u16_at(cdb, 4))?;
                command.map_or_else(not_supported, |command| self.one_descriptor(command, timeouts))
            }
            _ => return Err(Sense::cdb(2, 2).into()),
        };
        job.answer(&data, allocation);
        Ok(())
    }

    /// All commands (SPC-4, table 302).
    fn all_operation_codes(&self, timeouts: bool) -> Vec<u8> {
        let mut data = alloc::vec![0; 4];
        for command in COMMANDS.iter().filter(|command| self.supports(command)) {
            let has_action = command.service_action.is_some();
            data.extend_from_slice(&[command.opcode, 0, 0]);
            data.push(command.service_action.unwrap_or(0));
            // Reserved; CTDP and SERVACTV; CDB length.
            data.extend_from_slice(&[0, u8::from(timeouts) << 1 | u8::from(has_action)]);
            data.extend_from_slice(&(command.usage.len() as u16).to_be_bytes());
            if timeouts {
                data.extend_from_slice(TIMEOUTS.as_bytes());
            }
        }
        let length = (data.len() - 4) as u32;
        data[..4].copy_from_slice(&length.to_be_bytes());
        data
    }

    /// The command that is asked for; `None` when it is not supported.
    fn one_command(
        &self,
        options: u8,
        opcode: u8,
        action: u16,
    ) -> Checked<Option<&'static Command>> {
        let mut rows = commands::rows(opcode).iter().filter(|command| self.supports(command));
        let first = rows.clone().next();
        let has_actions = first.is_some_and(|command| command.service_action.is_some());
        match (options, first) {
            // An operation code that has service actions cannot be asked for alone, and the other
            // way round.
            (1, Some(_)) if has_actions => return Err(Sense::cdb(2, 2).into()),
            (2, Some(_)) if !has_actions => return Err(Sense::cdb(2, 2).into()),
            (_, Some(command)) if !has_actions && (options == 1 || action == 0) => {
                return Ok(Some(command));
            }
            _ => {}
        }
        Ok(rows.find(|command| command.service_action.map(u16::from) == Some(action)))
    }

    /// One command (SPC-4, table 304).
    fn one_descriptor(&self, command: &Command, timeouts: bool) -> Vec<u8> {
        // SUPPORT 3: as in a standard.
        let mut data = alloc::vec![0, u8::from(timeouts) << 7 | 3];
        data.extend_from_slice(&(command.usage.len() as u16).to_be_bytes());
        data.extend_from_slice(command.usage);
        // Fields that this controller does not support are refused, although the command has them.
        data[4 + 1] &= !self.absent_bits(command);
        if timeouts {
            data.extend_from_slice(TIMEOUTS.as_bytes());
        }
        data
    }

    /// Bits of byte 1 that stand for something that the controller cannot do: UNMAP of WRITE SAME, and
    /// SP of MODE SELECT.
    fn absent_bits(&self, command: &Command) -> u8 {
        match command.operation {
            Operation::WriteSame if !self.write_same_unmaps() => 0x08,
            Operation::ModeSelect if !self.controller.optional.saveable_cache => 0x01,
            _ => 0,
        }
    }
}

/// SUPPORT 1: there is no such command.
fn not_supported() -> Vec<u8> {
    alloc::vec![0, 1, 0, 0]
}
