//! The data that a command takes from its initiator, by its CDB alone: for transports.

use ssdyno_spec::scsi::opcode;

use crate::blocks::Extent;
use crate::bytes::{u16_at, u32_at};
use crate::commands::{Found, Operation};
use crate::target::ScsiTarget;

impl ScsiTarget {
    /// Whether [`Request::data_out`](crate::ScsiRequest::data_out) must hold the data of this command:
    /// parameter lists, and data that are compared or combined: here where the controller cannot; and to
    /// say where they differ, which it does not.
    pub fn needs_data_out(&self, cdb: &[u8]) -> bool {
        let Found::Command(command) = self.find(cdb) else { return false };
        command.parameters
            || match command.operation {
                // BYTCHK 1, and 3, where the one block is repeated.
                Operation::Verify | Operation::WriteAndVerify => {
                    cdb.get(1).is_some_and(|byte| byte >> 1 & 1 == 1)
                }
                Operation::CompareAndWrite => true,
                _ => false,
            }
    }

    /// How much data-out a command asks for, by its CDB and the block size of the unit at `lun`: what
    /// the expected length of a transport is compared with for the residual (SAM-5, 5.1), and what
    /// it fetches. 0 for a command that takes none, is unknown or cut off, and for LUNs without
    /// unit.
    pub fn data_out_bytes(&self, lun: u64, cdb: &[u8]) -> u64 {
        let (Some(unit), Found::Command(command)) = (self.unit_index(lun), self.find(cdb)) else {
            return 0;
        };
        let Some(cdb) = cdb.get(..command.usage.len()) else { return 0 };
        let blocks = |count: u64| count << self.units[unit].block_shift();
        let extent = || Extent::parse(cdb).blocks;
        let bytcheck = cdb[1] >> 1 & 3;
        match command.operation {
            Operation::Write | Operation::WriteAndVerify | Operation::OrWrite => blocks(extent()),
            Operation::Verify if extent() == 0 => 0,
            Operation::Verify => match bytcheck {
                1 => blocks(extent()),
                3 => blocks(1),
                _ => 0,
            },
            Operation::CompareAndWrite => 2 * blocks(extent()),
            // NDOB: no data-out buffer.
            Operation::WriteSame if cdb.len() == 16 && cdb[1] & 1 != 0 => 0,
            Operation::WriteSame => blocks(1),
            Operation::Unmap | Operation::Sanitize => u64::from(u16_at(cdb, 7)),
            Operation::ModeSelect if cdb[0] == opcode::MODE_SELECT_6 => u64::from(cdb[4]),
            Operation::ModeSelect => u64::from(u16_at(cdb, 7)),
            Operation::PersistentReserveOut => u64::from(u32_at(cdb, 5)),
            // FMTDATA: the header, long or short; no defect list is taken.
            Operation::FormatUnit if cdb[1] & 0x10 != 0 => 4 << (cdb[1] >> 5 & 1),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_spec::scsi::opcode as op;

    use crate::{
        CommandSet, ControllerFacts, NamespaceFacts, Translator, TranslatorConfig, lun_field,
    };

    fn translator(commands: CommandSet) -> Translator {
        let mut controller = ControllerFacts::named("m", "s", "f");
        controller.optional.format = true;
        controller.optional.dataset_management = true;
        let config = TranslatorConfig { commands, ..TranslatorConfig::default() };
        Translator::new(controller, &[NamespaceFacts::plain(2, 1000, 4096)], config).unwrap()
    }

    /// SBC-3, clause 5, and SPC-4, clause 6: the lengths in the CDBs.
    #[test]
    fn lengths_are_those_of_the_cdb() {
        let translator = translator(CommandSet::Full);
        let owed = |cdb: &[u8]| translator.data_out_bytes(lun_field(1), cdb);
        let ten = |opcode, flags, length| [opcode, flags, 0, 0, 0, 0, 0, 0, length, 0];
        assert_eq!(owed(&[op::WRITE_6, 0, 0, 0, 0, 0]), 256 * 4096, "0 stands for 256");
        assert_eq!(owed(&ten(op::WRITE_10, 0, 0)), 0);
        assert_eq!(owed(&ten(op::WRITE_10, 0, 3)), 3 * 4096);
        assert_eq!(owed(&ten(op::WRITE_AND_VERIFY_10, 0, 3)), 3 * 4096);
        assert_eq!(owed(&ten(op::READ_10, 0, 3)), 0);
        assert_eq!(owed(&ten(op::VERIFY_10, 0, 3)), 0);
        assert_eq!(owed(&ten(op::VERIFY_10, 2, 3)), 3 * 4096, "BYTCHK 1");
        assert_eq!(owed(&ten(op::VERIFY_10, 6, 3)), 4096, "BYTCHK 3");
        assert_eq!(owed(&ten(op::VERIFY_10, 6, 0)), 0);
        assert_eq!(owed(&ten(op::WRITE_SAME_10, 0, 3)), 4096);
        assert_eq!(owed(&ten(op::UNMAP, 0, 24)), 24);
        assert_eq!(owed(&ten(op::MODE_SELECT_10, 0, 28)), 28);
        assert_eq!(owed(&ten(op::PERSISTENT_RESERVE_OUT, 0, 24)), 24);
        assert_eq!(owed(&[op::MODE_SELECT_6, 0x10, 0, 0, 24, 0]), 24);
        assert_eq!(owed(&[op::FORMAT_UNIT, 0x10, 0, 0, 0, 0]), 4);
        assert_eq!(owed(&[op::FORMAT_UNIT, 0x30, 0, 0, 0, 0]), 8);
        assert_eq!(owed(&[op::FORMAT_UNIT, 0, 0, 0, 0, 0]), 0);
        let mut sixteen = [0; 16];
        (sixteen[0], sixteen[13]) = (op::COMPARE_AND_WRITE, 2);
        assert_eq!(owed(&sixteen), 4 * 4096);
        (sixteen[0], sixteen[10]) = (op::WRITE_16, 0xff);
        assert_eq!(owed(&sixteen), (0xff00_0002 * 4096_u64));
        (sixteen[0], sixteen[1]) = (op::WRITE_SAME_16, 1);
        assert_eq!(owed(&sixteen), 0, "NDOB");
    }

    #[test]
    fn what_is_not_there_takes_nothing() {
        let full = translator(CommandSet::Full);
        let write = [op::WRITE_10, 0, 0, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(full.data_out_bytes(lun_field(0), &write), 0, "no such LUN");
        assert_eq!(full.data_out_bytes(lun_field(1), &write[..9]), 0, "cut off");
        assert_eq!(full.data_out_bytes(lun_field(1), &[]), 0);
        assert_eq!(translator(CommandSet::Thesis).data_out_bytes(lun_field(1), &write), 0);
    }
}
