//! Task management: commands that end before their time.

use ssdyno_scsi::Nexus;

use crate::pdu::{FINAL, Pdu, opcode};
use crate::pending::Aborts;
use crate::target::IscsiTarget;
use crate::tasks::Tasks;
use crate::transfer::Transfer;

/// Functions of task management (RFC 7143, clause 11.5.1).
mod function {
    pub(super) const ABORT_TASK: u8 = 1;
    pub(super) const ABORT_TASK_SET: u8 = 2;
    pub(super) const LOGICAL_UNIT_RESET: u8 = 5;
    pub(super) const TARGET_WARM_RESET: u8 = 6;
    pub(super) const TARGET_COLD_RESET: u8 = 7;
    pub(super) const TASK_REASSIGN: u8 = 8;
}

/// Responses of task management (RFC 7143, clause 11.6.1).
mod response {
    pub(super) const COMPLETE: u8 = 0;
    pub(super) const NO_TASK: u8 = 1;
    pub(super) const NO_UNIT: u8 = 2;
    pub(super) const NO_REASSIGNMENT: u8 = 4;
    pub(super) const NOT_SUPPORTED: u8 = 5;
}

impl Tasks {
    /// A task management function; true where all connections are to end. It completes when the last of its tasks has
    /// ended (SAM-5, 7.2 to 7.7), which takes as long as the drive's work for them. `waiting`: the task to abort had
    /// not had its turn.
    pub(crate) fn manage(
        &mut self,
        t: &IscsiTarget,
        nexus: Nexus,
        pdu: &Pdu,
        waiting: bool,
        out: &mut Vec<Pdu>,
    ) -> bool {
        let (lun, tag) = (pdu.lun(), pdu.task_tag());
        let function = pdu.flags() & 0x7f;
        let aborts = match function {
            function::ABORT_TASK => self.abort_task(lun, pdu.word(20)).map_err(|found| {
                if found || waiting { response::COMPLETE } else { response::NO_TASK }
            }),
            function::ABORT_TASK_SET => Ok(Aborts::TaskSet(nexus, lun)),
            function::LOGICAL_UNIT_RESET => Ok(Aborts::Unit(lun)),
            function::TARGET_WARM_RESET | function::TARGET_COLD_RESET => Ok(Aborts::Everything),
            function::TASK_REASSIGN => Err(response::NO_REASSIGNMENT),
            _ => Err(response::NOT_SUPPORTED),
        };
        let aborts = match aborts {
            Ok(aborts) => aborts,
            Err(response) => {
                self.answer_function(tag, response, out);
                return false;
            }
        };
        let stays = |transfer: &Transfer| match aborts {
            Aborts::Task(_) => true,
            Aborts::TaskSet(..) | Aborts::Unit(_) => transfer.command.lun() != lun,
            Aborts::Everything => false,
        };
        self.transfers.retain(stays);
        let cold = function == function::TARGET_COLD_RESET;
        match t.abort(aborts, &self.mailbox, tag, response::COMPLETE) {
            None => self.answer_function(tag, response::NO_UNIT, out),
            // Commands that ended first are answered first.
            Some(waits) => {
                self.deliver(out);
                if cold || !waits {
                    self.answer_function(tag, response::COMPLETE, out);
                }
            }
        }
        cold
    }

    /// ABORT TASK of the command with `tag`. `Ok`: the units do it, and are to abort it. Otherwise whether it was
    /// there, waiting for its data; then it is gone now.
    fn abort_task(&mut self, lun: u64, tag: u32) -> Result<Aborts, bool> {
        let named = |t: &Transfer| t.command.task_tag() == tag && t.command.lun() == lun;
        if let Some((id, _)) = self.running.iter().find(|(_, transfer)| named(transfer)) {
            return Ok(Aborts::Task(*id));
        }
        let before = self.transfers.len();
        self.transfers.retain(|transfer| !named(transfer));
        Err(self.transfers.len() < before)
    }

    /// Answers the function with `tag`.
    pub(crate) fn answer_function(&mut self, tag: u32, response: u8, out: &mut Vec<Pdu>) {
        let mut answer = Pdu::new(opcode::TASK_MANAGEMENT_RESPONSE);
        answer.header[1] = FINAL;
        answer.header[2] = response;
        answer.set_word(16, tag);
        self.answer(answer, out);
    }
}
