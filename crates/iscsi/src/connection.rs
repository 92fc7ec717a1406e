//! One connection: the responses to requests, without sockets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::login::{Login, Outcome};
use crate::parameters::{Parameters, RECEIVE_BYTES_MAX};
use crate::pdu::{CONTINUE, FINAL, Framing, NO_TAG, Pdu, opcode, reject};
use crate::pending::{Mailbox, Transport};
use crate::target::{IscsiTarget, Portal, Session};
use crate::tasks::{Sequence, Tasks};
use crate::text::{self, TEXT_BYTES_MAX};

/// Whether a connection goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum ConnectionFlow {
    /// It does.
    Goes,
    /// It is to be closed, after what was answered.
    Ends,
}

/// One connection of an initiator to a target. Dropped, it ends its session.
pub struct Connection {
    target: Arc<IscsiTarget>,
    portal: String,
    mailbox: Arc<Mailbox>,
    phase: Phase,
}

enum Phase {
    Login(Box<Login>),
    Full(Box<Full>),
    Over,
}

/// The full-feature phase.
struct Full {
    session: Session,
    tasks: Tasks,
    /// Requests before their turn, by CmdSN, with the Data-Out that followed them.
    early: BTreeMap<u32, (Pdu, Vec<Pdu>)>,
    /// Text of requests with bit C.
    text: Vec<u8>,
}

impl Connection {
    /// A connection that was just opened. `portal` is the address at which the initiator found us,
    /// such as `192.0.2.1:3260`; `transport` is whoever reads and writes its bytes.
    pub fn new(
        target: Arc<IscsiTarget>,
        portal: String,
        transport: Arc<dyn Transport>,
    ) -> Connection {
        let mailbox = Arc::new(Mailbox::new(transport));
        Connection { target, portal, mailbox, phase: Phase::Login(Box::default()) }
    }

    /// The layout of the next PDU in either direction. What [`receive`](Connection::receive) answers
    /// is written in the layout from before it.
    pub fn framing(&self) -> Framing {
        match &self.phase {
            Phase::Full(full) => full.tasks.parameters.framing(),
            _ => Framing { data_bytes_max: RECEIVE_BYTES_MAX, ..Parameters::default().framing() },
        }
    }

    /// No initiator has logged in yet.
    pub fn is_logging_in(&self) -> bool {
        matches!(self.phase, Phase::Login(_))
    }

    /// Takes a PDU and appends what is answered.
    pub fn receive(&mut self, pdu: Pdu, out: &mut Vec<Pdu>) -> ConnectionFlow {
        match &mut self.phase {
            Phase::Login(login) => match login.receive(&pdu, &self.target, &self.mailbox, out) {
                Outcome::Goes => ConnectionFlow::Goes,
                Outcome::Refused => self.end(),
                Outcome::Done(session, numbers) => {
                    let sequence = Sequence::new(numbers.status, numbers.command);
                    let tasks = Tasks::new(login.parameters, sequence, self.mailbox.clone());
                    let (early, text) = (BTreeMap::new(), Vec::new());
                    self.phase = Phase::Full(Box::new(Full { session, tasks, early, text }));
                    ConnectionFlow::Goes
                }
            },
            Phase::Full(full) => {
                full.tasks.deliver(out);
                let flow = full.receive(&self.target, &self.portal, pdu, out);
                full.tasks.deliver(out);
                match flow {
                    ConnectionFlow::Goes => ConnectionFlow::Goes,
                    ConnectionFlow::Ends => self.end(),
                }
            }
            Phase::Over => ConnectionFlow::Ends,
        }
    }

    /// Appends the responses to commands that have ended meanwhile; to be called after
    /// [`Transport::wake`].
    pub fn completed(&mut self, out: &mut Vec<Pdu>) {
        if let Phase::Full(full) = &mut self.phase {
            full.tasks.deliver(out);
        }
    }

    fn end(&mut self) -> ConnectionFlow {
        if let Phase::Full(full) = std::mem::replace(&mut self.phase, Phase::Over) {
            self.target.log_out(&full.session);
        }
        ConnectionFlow::Ends
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _over = self.end();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("portal", &self.portal).finish_non_exhaustive()
    }
}

impl Full {
    fn receive(
        &mut self,
        t: &IscsiTarget,
        portal: &str,
        pdu: Pdu,
        out: &mut Vec<Pdu>,
    ) -> ConnectionFlow {
        if self.session.is_closed() {
            return ConnectionFlow::Ends;
        }
        match pdu.opcode() {
            opcode::DATA_OUT => {
                self.data_out(t, pdu, out);
                return ConnectionFlow::Goes;
            }
            opcode::SNACK => {
                self.tasks.reject(&pdu, reject::SNACK, out);
                return ConnectionFlow::Goes;
            }
            _ => {}
        }
        if pdu.damaged {
            // As if it had not come: its CmdSN is still expected (RFC 7143, clause 7.8).
            self.tasks.reject(&pdu, reject::DATA_DIGEST, out);
            return ConnectionFlow::Goes;
        }
        if pdu.is_immediate() {
            return self.request(t, portal, pdu, out);
        }
        let sequence = &mut self.tasks.sequence;
        let number = pdu.command_number();
        let ahead = number.wrapping_sub(sequence.command);
        if ahead > sequence.command_max.wrapping_sub(sequence.command) || ahead >= 1 << 31 {
            // Outside the window: not there (RFC 7143, clause 4.2.2.1).
            return ConnectionFlow::Goes;
        }
        if ahead > 0 {
            self.early.entry(number).or_insert((pdu, Vec::new()));
            return ConnectionFlow::Goes;
        }
        let mut next = Some((pdu, Vec::new()));
        while let Some((pdu, data)) = next {
            self.tasks.sequence.command = self.tasks.sequence.command.wrapping_add(1);
            if self.request(t, portal, pdu, out) == ConnectionFlow::Ends {
                return ConnectionFlow::Ends;
            }
            data.into_iter().for_each(|pdu| self.data_out(t, pdu, out));
            next = self.early.remove(&self.tasks.sequence.command);
        }
        ConnectionFlow::Goes
    }

    fn data_out(&mut self, t: &IscsiTarget, pdu: Pdu, out: &mut Vec<Pdu>) {
        let tag = pdu.task_tag();
        let command = |early: &&mut (Pdu, Vec<Pdu>)| {
            early.0.opcode() == opcode::SCSI_COMMAND && early.0.task_tag() == tag
        };
        if let Some((_, data)) = self.early.values_mut().find(command) {
            // No more than what a first burst can be made of.
            if data.len() < 1024 {
                data.push(pdu);
            }
        } else if let Some(nexus) = self.session.nexus {
            self.tasks.data_out(t, nexus, &pdu, out);
        }
    }

    /// A request in its turn.
    fn request(
        &mut self,
        t: &IscsiTarget,
        portal: &str,
        pdu: Pdu,
        out: &mut Vec<Pdu>,
    ) -> ConnectionFlow {
        match (pdu.opcode(), self.session.nexus) {
            (opcode::NOP_OUT, _) => self.nop(&pdu, out),
            (opcode::TEXT, _) => return self.text(t, portal, &pdu, out),
            (opcode::LOGOUT, _) => return self.logout(&pdu, out),
            (opcode::SCSI_COMMAND, Some(nexus)) => self.tasks.command(t, nexus, pdu, out),
            (opcode::TASK_MANAGEMENT, Some(nexus)) => {
                let waiting = self.forget_early(&pdu);
                if self.tasks.manage(t, nexus, &pdu, waiting, out) {
                    t.end_all();
                    return ConnectionFlow::Ends;
                }
            }
            (opcode::SCSI_COMMAND | opcode::TASK_MANAGEMENT | opcode::LOGIN, _) => {
                self.tasks.reject(&pdu, reject::PROTOCOL_ERROR, out);
            }
            _ => self.tasks.reject(&pdu, reject::NOT_SUPPORTED, out),
        }
        ConnectionFlow::Goes
    }

    /// ABORT TASK of a command before its turn: it becomes one that does nothing.
    fn forget_early(&mut self, pdu: &Pdu) -> bool {
        let (abort, tag) = (pdu.flags() & 0x7f == 1, pdu.word(20));
        let named = |early: &&mut (Pdu, Vec<Pdu>)| abort && early.0.task_tag() == tag;
        let Some(early) = self.early.values_mut().find(named) else { return false };
        let mut nothing = Pdu::new(opcode::NOP_OUT);
        nothing.set_word(16, NO_TAG);
        *early = (nothing, Vec::new());
        true
    }

    fn nop(&mut self, pdu: &Pdu, out: &mut Vec<Pdu>) {
        if pdu.task_tag() == NO_TAG {
            return;
        }
        let mut answer = Pdu::new(opcode::NOP_IN);
        answer.header[1] = FINAL;
        answer.set_lun(pdu.lun());
        answer.set_word(16, pdu.task_tag());
        answer.set_word(20, NO_TAG);
        let most = self.tasks.parameters.send_bytes_max as usize;
        answer.data = pdu.data[..pdu.data.len().min(most)].to_vec();
        self.tasks.answer(answer, out);
    }

    /// Text Request (RFC 7143, clause 11.10): SendTargets, and newly declared parameters.
    fn text(
        &mut self,
        t: &IscsiTarget,
        portal: &str,
        pdu: &Pdu,
        out: &mut Vec<Pdu>,
    ) -> ConnectionFlow {
        let mut answer = Pdu::new(opcode::TEXT_RESPONSE);
        answer.set_word(16, pdu.task_tag());
        answer.set_lun(pdu.lun());
        self.text.extend_from_slice(&pdu.data);
        if self.text.len() > TEXT_BYTES_MAX {
            self.text.clear();
            self.tasks.reject(pdu, reject::PROTOCOL_ERROR, out);
            return ConnectionFlow::Ends;
        }
        if pdu.flags() & CONTINUE != 0 {
            // A tag that asks for the rest.
            answer.set_word(20, 1);
            self.tasks.answer(answer, out);
            return ConnectionFlow::Goes;
        }
        let text = std::mem::take(&mut self.text);
        let Some(pairs) = text::pairs(&text) else {
            self.tasks.reject(pdu, reject::PROTOCOL_ERROR, out);
            return ConnectionFlow::Goes;
        };
        for (key, value) in pairs {
            match key {
                "SendTargets" => self.send_targets(t, portal, value, &mut answer.data),
                "MaxRecvDataSegmentLength" => {
                    self.tasks.parameters.hear(key, value, &mut answer.data);
                }
                _ => text::push(&mut answer.data, key, "NotUnderstood"),
            }
        }
        answer.header[1] = FINAL;
        answer.set_word(20, NO_TAG);
        answer.data.truncate(self.tasks.parameters.send_bytes_max as usize);
        self.tasks.answer(answer, out);
        ConnectionFlow::Goes
    }

    /// RFC 7143, appendix C.
    fn send_targets(&self, t: &IscsiTarget, portal: &str, value: &str, out: &mut Vec<u8>) {
        let ours = value == t.name() || value.is_empty() && self.session.nexus.is_some();
        if ours || value == "All" {
            text::push(out, "TargetName", t.name());
            let portal = match t.portal() {
                Portal::OfConnection => portal,
                Portal::Fixed(address) => address,
                Portal::WhereAsked => return,
            };
            text::push(out, "TargetAddress", &format!("{portal},1"));
        }
    }

    /// Logout Request (RFC 7143, clause 11.14): session, or its one connection, end alike.
    fn logout(&mut self, pdu: &Pdu, out: &mut Vec<Pdu>) -> ConnectionFlow {
        let mut answer = Pdu::new(opcode::LOGOUT_RESPONSE);
        answer.header[1] = FINAL;
        answer.set_word(16, pdu.task_tag());
        // Reason 2: remove a connection for recovery, which this target does not support.
        let ends = pdu.flags() & 0x7f < 2;
        answer.header[2] = if ends { 0 } else { 2 };
        self.tasks.answer(answer, out);
        if ends { ConnectionFlow::Ends } else { ConnectionFlow::Goes }
    }
}
