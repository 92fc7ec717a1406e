//! SCSI commands in the full-feature phase: their data, their answers, and their end before the time.

use ssdyno_scsi::{Nexus, Sense, SenseBytes};
use ssdyno_spec::scsi::{AdditionalSense, SenseKey, status};

use crate::parameters::Parameters;
use crate::pdu::{FINAL, NO_TAG, Pdu, READ, WRITE, opcode, reject};
use crate::target::Target;
use crate::transfer::{DataError, Transfer};
use crate::units::{Answer, Task};

/// Commands that may be on their way or wait for data.
pub(crate) const WINDOW: u32 = 64;

/// Bits of byte 1 of answers: residual overflow and underflow; a Data-In with status.
const OVERFLOW: u8 = 0x04;
const UNDERFLOW: u8 = 0x02;
const WITH_STATUS: u8 = 0x01;

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

/// Sequence numbers (RFC 7143, clause 4.2.2).
#[derive(Debug)]
pub(crate) struct Sequence {
    status: u32,
    pub(crate) command: u32,
    pub(crate) command_max: u32,
}

impl Sequence {
    pub(crate) fn new(status: u32, command: u32) -> Sequence {
        Sequence { status, command, command_max: command.wrapping_add(WINDOW - 1) }
    }

    /// Opens the window again as far as `waiting` commands allow; it never closes.
    fn open(&mut self, waiting: usize) {
        let room = WINDOW.saturating_sub(waiting as u32);
        let most = self.command.wrapping_add(room).wrapping_sub(1);
        if (most.wrapping_sub(self.command_max) as i32) > 0 {
            self.command_max = most;
        }
    }
}

/// Commands of a session, and the numbers of its connection.
#[derive(Debug)]
pub(crate) struct Tasks {
    pub(crate) parameters: Parameters,
    pub(crate) sequence: Sequence,
    transfers: Vec<Transfer>,
    next_tag: u32,
}

impl Tasks {
    pub(crate) fn new(parameters: Parameters, sequence: Sequence) -> Tasks {
        Tasks { parameters, sequence, transfers: Vec::new(), next_tag: 0 }
    }

    /// Sends an answer that takes a StatSN.
    pub(crate) fn answer(&mut self, mut pdu: Pdu, out: &mut Vec<Pdu>) {
        self.stamp(&mut pdu);
        self.sequence.status = self.sequence.status.wrapping_add(1);
        out.push(pdu);
    }

    fn stamp(&mut self, pdu: &mut Pdu) {
        self.sequence.open(self.transfers.len());
        pdu.set_word(24, self.sequence.status);
        pdu.set_word(28, self.sequence.command);
        pdu.set_word(32, self.sequence.command_max);
    }

    /// Rejects `pdu` (RFC 7143, clause 11.17).
    pub(crate) fn reject(&mut self, pdu: &Pdu, reason: u8, out: &mut Vec<Pdu>) {
        let mut answer = Pdu::new(opcode::REJECT);
        answer.header[1] = FINAL;
        answer.header[2] = reason;
        answer.set_word(16, NO_TAG);
        answer.data = pdu.header.to_vec();
        self.answer(answer, out);
    }

    /// A SCSI Command.
    pub(crate) fn command(&mut self, t: &Target, nexus: Nexus, pdu: Pdu, out: &mut Vec<Pdu>) {
        let tag = pdu.task_tag();
        if self.transfers.iter().any(|transfer| transfer.command.task_tag() == tag) {
            return self.reject(&pdu, reject::TASK_IN_PROGRESS, out);
        }
        if self.transfers.len() >= WINDOW as usize {
            return self.reject(&pdu, reject::TOO_MANY_IMMEDIATE, out);
        }
        let writes = pdu.flags() & WRITE != 0;
        let (goes_on, immediate) = (writes && !pdu.is_final(), writes && !pdu.data.is_empty());
        let Parameters { immediate_data, initial_r2t, first_burst_bytes_max, .. } = self.parameters;
        let unsolicited = goes_on && initial_r2t
            || immediate && !immediate_data
            || pdu.data.len() > first_burst_bytes_max as usize;
        let extended = !pdu.additional.is_empty() || pdu.flags() & (READ | WRITE) == READ | WRITE;
        let (owed, resets) = {
            let state = t.lock();
            (state.units.data_out_bytes(pdu.lun(), cdb(&pdu)), state.resets(pdu.lun()))
        };
        let follows = goes_on.then_some(first_burst_bytes_max);
        let transfer = Transfer::new(pdu, owed, resets, follows);
        if unsolicited {
            return self.fail(&transfer, DataError::UNEXPECTED_UNSOLICITED, out);
        }
        if extended {
            let sense = Sense::illegal(AdditionalSense::INVALID_FIELD_IN_INFORMATION_UNIT);
            return self.refuse(&transfer, sense, out);
        }
        self.proceed(t, nexus, transfer, out);
    }

    /// A Data-Out. One for a task that is not there (any more) is thrown away.
    pub(crate) fn data_out(&mut self, t: &Target, nexus: Nexus, pdu: &Pdu, out: &mut Vec<Pdu>) {
        let same = |transfer: &Transfer| transfer.command.task_tag() == pdu.task_tag();
        let Some(index) = self.transfers.iter().position(same) else { return };
        let mut transfer = self.transfers.remove(index);
        let taken = if pdu.damaged { Err(DataError::DIGEST) } else { transfer.take(pdu) };
        match taken {
            Ok(()) => self.proceed(t, nexus, transfer, out),
            Err(error) => self.fail(&transfer, error, out),
        }
    }

    /// Does the command, asks for its data, or waits for them.
    fn proceed(&mut self, t: &Target, nexus: Nexus, mut transfer: Transfer, out: &mut Vec<Pdu>) {
        if transfer.is_complete() {
            return self.execute(t, nexus, &transfer, out);
        }
        if transfer.wants_burst() {
            self.next_tag = self.next_tag.wrapping_add(1) & 0x7fff_ffff;
            let (number, offset, length) =
                transfer.ask(self.next_tag, self.parameters.burst_bytes_max);
            let mut ready = Pdu::new(opcode::READY_TO_TRANSFER);
            ready.header[1] = FINAL;
            ready.set_lun(transfer.command.lun());
            ready.set_word(16, transfer.command.task_tag());
            ready.set_word(20, self.next_tag);
            ready.set_word(36, number);
            ready.set_word(40, offset);
            ready.set_word(44, length);
            self.transfers.push(transfer);
            self.stamp(&mut ready);
            out.push(ready);
        } else {
            self.transfers.push(transfer);
        }
    }

    fn execute(&mut self, t: &Target, nexus: Nexus, transfer: &Transfer, out: &mut Vec<Pdu>) {
        let lun = transfer.command.lun();
        let mut data_in = Vec::new();
        let answer = {
            let mut state = t.lock();
            if state.resets(lun) != transfer.resets {
                // Ended by a reset: no answer (SAM-5, 5.6).
                return;
            }
            let (cdb, data_out) = (cdb(&transfer.command), &transfer.data[..]);
            let expected_out_bytes = u64::from(transfer.expected_bytes());
            let task = Task { nexus, lun, cdb, expected_out_bytes, data_out };
            state.units.execute(&task, &mut data_in)
        };
        self.respond(transfer, &answer, &data_in, out);
    }

    fn fail(&mut self, transfer: &Transfer, error: DataError, out: &mut Vec<Pdu>) {
        let additional = AdditionalSense(error.0);
        self.refuse(transfer, Sense::new(SenseKey::AbortedCommand, additional), out);
    }

    fn refuse(&mut self, transfer: &Transfer, sense: Sense, out: &mut Vec<Pdu>) {
        let answer = Answer { status: status::CHECK_CONDITION, sense: sense.encode(false) };
        self.respond(transfer, &answer, &[], out);
    }

    /// Data-In, status, sense data and residual of a command.
    fn respond(
        &mut self,
        transfer: &Transfer,
        answer: &Answer,
        data_in: &[u8],
        out: &mut Vec<Pdu>,
    ) {
        let command = &transfer.command;
        let (flags, expected) = (command.flags(), command.word(20));
        let reads = flags & READ != 0;
        let (wanted, offered) = if reads {
            (data_in.len() as u64, expected)
        } else if flags & WRITE != 0 {
            (transfer.owed_bytes, expected)
        } else {
            ((data_in.len() as u64).max(transfer.owed_bytes), 0)
        };
        let (residual_flag, residual) = residual(wanted, offered);
        let good = answer.status == status::GOOD && answer.sense == SenseBytes::NONE;
        let sent = if reads { &data_in[..data_in.len().min(expected as usize)] } else { &[] };
        let packets = self.send(command, sent, out);
        if good && packets > 0 {
            // Status in the last Data-In.
            if let Some(mut last) = out.pop() {
                last.header[1] |= WITH_STATUS | residual_flag;
                last.set_word(44, residual);
                self.answer(last, out);
            }
            return;
        }
        let mut pdu = Pdu::new(opcode::SCSI_RESPONSE);
        pdu.header[1] = FINAL | residual_flag;
        pdu.header[3] = answer.status;
        pdu.set_word(16, command.task_tag());
        pdu.set_word(36, packets);
        pdu.set_word(44, residual);
        let sense = answer.sense.as_bytes();
        if !sense.is_empty() {
            pdu.data.extend_from_slice(&(sense.len() as u16).to_be_bytes());
            pdu.data.extend_from_slice(sense);
        }
        self.answer(pdu, out);
    }

    /// Sends `data` in Data-In PDUs, and gives how many.
    fn send(&mut self, command: &Pdu, data: &[u8], out: &mut Vec<Pdu>) -> u32 {
        let burst = self.parameters.burst_bytes_max as usize;
        let most = self.parameters.send_bytes_max as usize;
        let (mut offset, mut number) = (0, 0);
        for sequence in data.chunks(burst) {
            let mut rest = sequence.chunks(most).peekable();
            while let Some(segment) = rest.next() {
                let mut pdu = Pdu::new(opcode::DATA_IN);
                pdu.header[1] = if rest.peek().is_none() { FINAL } else { 0 };
                pdu.set_word(16, command.task_tag());
                pdu.set_word(20, NO_TAG);
                pdu.set_word(36, number);
                pdu.set_word(40, offset);
                pdu.data = segment.to_vec();
                self.stamp(&mut pdu);
                // StatSN counts only where there is status (RFC 7143, clause 11.7.4).
                pdu.set_word(24, 0);
                out.push(pdu);
                offset += segment.len() as u32;
                number += 1;
            }
        }
        number
    }

    /// A task management function; true where all connections are to end.
    pub(crate) fn manage(
        &mut self,
        t: &Target,
        nexus: Nexus,
        pdu: &Pdu,
        waiting: bool,
        out: &mut Vec<Pdu>,
    ) -> bool {
        let lun = pdu.lun();
        let of_unit = |transfer: &Transfer| transfer.command.lun() == lun;
        let unit = |there: bool| if there { response::COMPLETE } else { response::NO_UNIT };
        let function = pdu.flags() & 0x7f;
        let result = match function {
            function::ABORT_TASK => {
                let before = self.transfers.len();
                let tag = pdu.word(20);
                self.transfers.retain(|t| t.command.task_tag() != tag || !of_unit(t));
                let found = self.transfers.len() < before || waiting;
                if found { response::COMPLETE } else { response::NO_TASK }
            }
            function::ABORT_TASK_SET => {
                self.transfers.retain(|t| !of_unit(t));
                unit(t.lock().units.abort_task_set(nexus, lun))
            }
            function::LOGICAL_UNIT_RESET => {
                self.transfers.retain(|t| !of_unit(t));
                unit(t.lock().reset_unit(lun))
            }
            function::TARGET_WARM_RESET | function::TARGET_COLD_RESET => {
                self.transfers.clear();
                t.lock().reset_target();
                response::COMPLETE
            }
            function::TASK_REASSIGN => response::NO_REASSIGNMENT,
            _ => response::NOT_SUPPORTED,
        };
        let mut answer = Pdu::new(opcode::TASK_MANAGEMENT_RESPONSE);
        answer.header[1] = FINAL;
        answer.header[2] = result;
        answer.set_word(16, pdu.task_tag());
        self.answer(answer, out);
        function == function::TARGET_COLD_RESET
    }
}

/// The CDB of a SCSI Command.
fn cdb(command: &Pdu) -> &[u8] {
    &command.header[32..48]
}

/// Flag and count for a command that wants to move so much of what is offered.
fn residual(wanted: u64, offered: u32) -> (u8, u32) {
    let short = u64::from(offered);
    match wanted.cmp(&short) {
        std::cmp::Ordering::Equal => (0, 0),
        std::cmp::Ordering::Less => (UNDERFLOW, (short - wanted) as u32),
        std::cmp::Ordering::Greater => (OVERFLOW, (wanted - short).min(u64::from(u32::MAX)) as u32),
    }
}
