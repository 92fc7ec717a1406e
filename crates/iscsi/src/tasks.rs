//! SCSI commands in the full-feature phase: their data and their answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use ssdyno_scsi::{Nexus, Sense, SenseBytes};
use ssdyno_spec::scsi::{AdditionalSense, SenseKey, status};

use crate::parameters::Parameters;
use crate::pdu::{FINAL, NO_TAG, Pdu, READ, WRITE, opcode, reject};
use crate::pending::{Mail, Mailbox, Owner};
use crate::target::IscsiTarget;
use crate::transfer::{DataError, Transfer};
use crate::units::{ScsiTask, TaskAttribute, TaskId, TaskResponse};

/// Commands of a session that may be on their way, wait for data, or be pending.
pub(crate) const WINDOW: u32 = 64;

/// Bits of byte 1 of answers: residual overflow and underflow; a Data-In with status.
const OVERFLOW: u8 = 0x04;
const UNDERFLOW: u8 = 0x02;
const WITH_STATUS: u8 = 0x01;

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
    /// Commands that wait for data.
    pub(crate) transfers: Vec<Transfer>,
    /// Those that the units do, without their data.
    pub(crate) running: BTreeMap<TaskId, Transfer>,
    pub(crate) mailbox: Arc<Mailbox>,
    next_tag: u32,
}

impl Tasks {
    pub(crate) fn new(parameters: Parameters, sequence: Sequence, mailbox: Arc<Mailbox>) -> Tasks {
        let (transfers, running) = (Vec::new(), BTreeMap::new());
        Tasks { parameters, sequence, transfers, running, mailbox, next_tag: 0 }
    }

    /// Commands that have come and are not answered.
    fn open_commands(&self) -> usize {
        self.transfers.len() + self.running.len()
    }

    /// Answers what has ended.
    pub(crate) fn deliver(&mut self, out: &mut Vec<Pdu>) {
        for mail in self.mailbox.take() {
            match mail {
                Mail::Managed { tag, response } => self.answer_function(tag, response, out),
                Mail::Ended(ended) => {
                    // One that a task management function has ended is not waited for any more.
                    let transfer = self.running.remove(&ended.id);
                    if let (Some(transfer), Some(answer)) = (transfer, ended.answer) {
                        self.respond(&transfer, &answer, &ended.data_in, out);
                    }
                }
            }
        }
    }

    /// Sends an answer that takes a StatSN.
    pub(crate) fn answer(&mut self, mut pdu: Pdu, out: &mut Vec<Pdu>) {
        self.stamp(&mut pdu);
        self.sequence.status = self.sequence.status.wrapping_add(1);
        out.push(pdu);
    }

    fn stamp(&mut self, pdu: &mut Pdu) {
        self.sequence.open(self.open_commands());
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
    pub(crate) fn command(&mut self, t: &IscsiTarget, nexus: Nexus, pdu: Pdu, out: &mut Vec<Pdu>) {
        let tag = pdu.task_tag();
        let mut open = self.transfers.iter().chain(self.running.values());
        if open.any(|transfer| transfer.command.task_tag() == tag) {
            return self.reject(&pdu, reject::TASK_IN_PROGRESS, out);
        }
        // Those in the window have their place.
        if pdu.is_immediate() && self.open_commands() >= WINDOW as usize {
            return self.reject(&pdu, reject::TOO_MANY_IMMEDIATE, out);
        }
        let writes = pdu.flags() & WRITE != 0;
        let (goes_on, immediate) = (writes && !pdu.is_final(), writes && !pdu.data.is_empty());
        let Parameters { immediate_data, initial_r2t, first_burst_bytes_max, .. } = self.parameters;
        let unsolicited = goes_on && initial_r2t
            || immediate && !immediate_data
            || pdu.data.len() > first_burst_bytes_max as usize;
        let extended = !pdu.additional.is_empty() || pdu.flags() & (READ | WRITE) == READ | WRITE;
        let (owed, resets) = t.owed(pdu.lun(), cdb(&pdu));
        let follows = goes_on.then_some(first_burst_bytes_max);
        let transfer = Transfer::new(pdu, owed, resets, follows);
        if unsolicited {
            return self.fail(&transfer, DataError::UNEXPECTED_UNSOLICITED, out);
        }
        if extended {
            return self.refuse(&transfer, Sense::information_unit(), out);
        }
        self.proceed(t, nexus, transfer, out);
    }

    /// A Data-Out. One for a task that is not there (any more) is thrown away.
    pub(crate) fn data_out(
        &mut self,
        t: &IscsiTarget,
        nexus: Nexus,
        pdu: &Pdu,
        out: &mut Vec<Pdu>,
    ) {
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
    fn proceed(
        &mut self,
        t: &IscsiTarget,
        nexus: Nexus,
        mut transfer: Transfer,
        out: &mut Vec<Pdu>,
    ) {
        if transfer.is_complete() {
            return self.execute(t, nexus, transfer);
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

    /// Has the units do the command, unless a reset has ended it meanwhile: then there is no answer
    /// (SAM-5, 5.6).
    fn execute(&mut self, t: &IscsiTarget, nexus: Nexus, mut transfer: Transfer) {
        let command = &transfer.command;
        let (lun, flags) = (command.lun(), command.flags());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(cdb(command));
        let expected_out_bytes = u64::from(transfer.expected_bytes());
        let data_out = std::mem::take(&mut transfer.data);
        // RFC 7143, clause 11.3.1.
        let attribute = match flags & 7 {
            2 => TaskAttribute::Ordered,
            3 => TaskAttribute::HeadOfQueue,
            _ => TaskAttribute::Simple,
        };
        let owner = Owner { nexus, lun, mailbox: self.mailbox.clone() };
        let id = t.submit(owner, transfer.resets, |id| ScsiTask {
            id,
            nexus,
            lun,
            attribute,
            cdb: bytes,
            expected_out_bytes,
            data_out,
        });
        if let Some(id) = id {
            self.running.insert(id, transfer);
        }
    }

    fn fail(&mut self, transfer: &Transfer, error: DataError, out: &mut Vec<Pdu>) {
        let additional = AdditionalSense(error.0);
        self.refuse(transfer, Sense::new(SenseKey::AbortedCommand, additional), out);
    }

    fn refuse(&mut self, transfer: &Transfer, sense: Sense, out: &mut Vec<Pdu>) {
        let answer = TaskResponse { status: status::CHECK_CONDITION, sense: sense.encode(false) };
        self.respond(transfer, &answer, &[], out);
    }

    /// Data-In, status, sense data and residual of a command.
    fn respond(
        &mut self,
        transfer: &Transfer,
        answer: &TaskResponse,
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
