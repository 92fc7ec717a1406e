//! The login phase (RFC 7143, clauses 6.3, 11.12 and 11.13).

use std::sync::Arc;

use ssdyno_spec::iscsi::stage::{FULL_FEATURE, OPERATIONAL};

use crate::parameters::Parameters;
use crate::pdu::{CONTINUE, FINAL, Pdu, opcode};
use crate::pending::Mailbox;
use crate::target::{IscsiTarget, Session};
use crate::text::{self, TEXT_BYTES_MAX};

/// Status class and detail (clause 11.13.5).
type Status = (u8, u8);
const INITIATOR_ERROR: Status = (2, 0x00);
const AUTHENTICATION_FAILURE: Status = (2, 0x01);
const TARGET_NOT_FOUND: Status = (2, 0x03);
const UNSUPPORTED_VERSION: Status = (2, 0x05);
const MISSING_PARAMETER: Status = (2, 0x07);
const SESSION_TYPE_NOT_SUPPORTED: Status = (2, 0x09);
const SESSION_DOES_NOT_EXIST: Status = (2, 0x0a);
const INVALID_DURING_LOGIN: Status = (2, 0x0b);
const OUT_OF_RESOURCES: Status = (3, 0x02);

/// The most exchanges that a login takes before it is given up.
const EXCHANGES_MAX: u32 = 32;

/// A login that goes on.
#[derive(Debug, Default)]
pub(crate) struct Login {
    pub(crate) parameters: Parameters,
    stage: Option<u8>,
    initiator: Option<String>,
    target: Option<String>,
    discovery: bool,
    text: Vec<u8>,
    exchanges: u32,
    number: Numbers,
}

/// Numbers that the connection begins with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    /// StatSN of the next answer.
    pub(crate) status: u32,
    /// ExpCmdSN.
    pub(crate) command: u32,
}

/// The result of a login PDU.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The login goes on.
    Goes,
    /// Full-feature phase.
    Done(Session, Numbers),
    /// Refused: the connection ends.
    Refused,
}

impl Login {
    /// Takes a request and appends the answer.
    pub(crate) fn receive(
        &mut self,
        pdu: &Pdu,
        target: &IscsiTarget,
        mailbox: &Arc<Mailbox>,
        out: &mut Vec<Pdu>,
    ) -> Outcome {
        let mut answer = Pdu::new(opcode::LOGIN_RESPONSE);
        answer.header[8..20].copy_from_slice(&pdu.header[8..20]);
        if self.exchanges == 0 {
            // StatSN begins where the initiator expects it.
            self.number = Numbers { status: pdu.word(28), command: pdu.command_number() };
        }
        self.exchanges += 1;
        let outcome = match self.step(pdu, target, &mut answer) {
            Ok(false) => Ok(None),
            Ok(true) => self.finish(pdu, target, mailbox, &mut answer).map(Some),
            Err(status) => Err(status),
        };
        answer.set_word(24, self.number.status);
        answer.set_word(28, self.number.command);
        answer.set_word(32, self.number.command.wrapping_add(crate::tasks::WINDOW - 1));
        self.number.status = self.number.status.wrapping_add(1);
        let outcome = match outcome {
            Ok(None) => Outcome::Goes,
            Ok(Some(session)) => Outcome::Done(session, self.number),
            Err((class, detail)) => {
                answer.data.clear();
                answer.header[1] = 0;
                (answer.header[36], answer.header[37]) = (class, detail);
                Outcome::Refused
            }
        };
        out.push(answer);
        outcome
    }

    /// One request; true where the full-feature phase begins.
    fn step(&mut self, pdu: &Pdu, target: &IscsiTarget, answer: &mut Pdu) -> Result<bool, Status> {
        let flags = pdu.flags();
        let (current, next) = (flags >> 2 & 3, flags & 3);
        let (transit, goes_on) = (flags & FINAL != 0, flags & CONTINUE != 0);
        if pdu.opcode() != opcode::LOGIN || self.exchanges > EXCHANGES_MAX {
            return Err(INVALID_DURING_LOGIN);
        }
        // VersionMin (clause 11.12.5): there is version 0 alone.
        if pdu.header[3] != 0 {
            return Err(UNSUPPORTED_VERSION);
        }
        if pdu.header[14..16] != [0, 0] {
            return Err(SESSION_DOES_NOT_EXIST);
        }
        let stage_fits = self.stage.is_none_or(|stage| stage == current);
        if !stage_fits
            || current > OPERATIONAL
            || transit && (goes_on || next <= current || next == 2)
        {
            return Err(INITIATOR_ERROR);
        }
        self.stage = Some(current);
        answer.header[1] = current << 2;
        self.text.extend_from_slice(&pdu.data);
        if self.text.len() > TEXT_BYTES_MAX {
            return Err(INITIATOR_ERROR);
        }
        if goes_on {
            return Ok(false);
        }
        let text = std::mem::take(&mut self.text);
        self.hear(&text, &mut answer.data)?;
        self.check_names(target)?;
        if current == OPERATIONAL {
            self.parameters.declare(&mut answer.data);
        }
        if !transit {
            return Ok(false);
        }
        answer.header[1] |= FINAL | next;
        self.stage = Some(next);
        Ok(next == FULL_FEATURE)
    }

    fn hear(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
        let first = self.initiator.is_none();
        for (key, value) in text::pairs(text).ok_or(INITIATOR_ERROR)? {
            match key {
                "InitiatorName" => self.initiator = Some(value.to_owned()),
                "TargetName" => self.target = Some(value.to_owned()),
                "SessionType" => match value {
                    "Normal" => self.discovery = false,
                    "Discovery" => self.discovery = true,
                    _ => return Err(SESSION_TYPE_NOT_SUPPORTED),
                },
                "AuthMethod" if !value.split(',').any(|method| method == "None") => {
                    return Err(AUTHENTICATION_FAILURE);
                }
                _ => {}
            }
            self.parameters.hear(key, value, out);
        }
        if first && !self.discovery && self.target.is_some() {
            text::push(out, "TargetPortalGroupTag", "1");
        }
        Ok(())
    }

    /// The first request names initiator and target (clause 6.3.1).
    fn check_names(&self, target: &IscsiTarget) -> Result<(), Status> {
        match (&self.initiator, &self.target) {
            (None, _) => Err(MISSING_PARAMETER),
            (Some(initiator), _) if initiator.is_empty() || initiator.len() > 223 => {
                Err(INITIATOR_ERROR)
            }
            (Some(_), None) if !self.discovery => Err(MISSING_PARAMETER),
            (Some(_), Some(name)) if !self.discovery && name != target.name() => {
                Err(TARGET_NOT_FOUND)
            }
            _ => Ok(()),
        }
    }

    fn finish(
        &mut self,
        pdu: &Pdu,
        target: &IscsiTarget,
        mailbox: &Arc<Mailbox>,
        answer: &mut Pdu,
    ) -> Result<Session, Status> {
        self.parameters.settle();
        let mut isid = [0; 6];
        isid.copy_from_slice(&pdu.header[8..14]);
        let initiator = self.initiator.as_deref().unwrap_or_default();
        let session =
            target.log_in(initiator, isid, self.discovery, mailbox).ok_or(OUT_OF_RESOURCES)?;
        answer.header[14..16].copy_from_slice(&session.handle.to_be_bytes());
        Ok(session)
    }
}
