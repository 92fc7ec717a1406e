//! From a connected socket to the full-feature phase: login (RFC 7143, clauses 6 and 11.12).

use std::hash::{BuildHasher, Hasher, RandomState};

use ssdyno_spec::iscsi::stage::{FULL_FEATURE, OPERATIONAL, SECURITY};
use ssdyno_spec::iscsi::{CONTINUE, FINAL, IMMEDIATE, NO_TAG, opcode};

use super::conversation::{Conversation, Pdu};
use super::pdu::RECEIVE_MOST;
use crate::network::protocol::{Talk, Trouble};

/// The most exchanges that a login takes before it is given up.
const EXCHANGES_MOST: u32 = 32;

/// Most bytes of text in one answer.
const TEXT_MOST: usize = 64 << 10;

/// The help for a name that the server does not know.
pub(crate) const UNKNOWN_TARGET: &str = "check the name of the target";

/// The negotiated parameters for the data of writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parameters {
    /// Most bytes of a data segment that the target takes.
    pub(crate) segment_bytes: usize,
    /// Most bytes that go without being asked for.
    pub(crate) first_burst_bytes: usize,
    /// Most bytes that the target asks for at once.
    pub(crate) burst_bytes: usize,
    /// Only immediate data is sent without a request.
    pub(crate) initial_r2t: bool,
    /// Data goes in the message of a command.
    pub(crate) immediate: bool,
}

impl Default for Parameters {
    /// The defaults without negotiation (clause 13).
    fn default() -> Parameters {
        Parameters {
            segment_bytes: 8192,
            first_burst_bytes: 65_536,
            burst_bytes: 262_144,
            initial_r2t: true,
            immediate: true,
        }
    }
}

/// What is offered. Declared parameters, and those with only one possible value, are not checked in the response.
const OFFERED: [(&str, &str); 12] = [
    ("HeaderDigest", "None"),
    ("DataDigest", "None"),
    ("ErrorRecoveryLevel", "0"),
    ("MaxConnections", "1"),
    ("InitialR2T", "No"),
    ("ImmediateData", "Yes"),
    ("MaxBurstLength", "16776192"),
    ("FirstBurstLength", "262144"),
    ("MaxOutstandingR2T", "1"),
    ("DataPDUInOrder", "Yes"),
    ("DataSequenceInOrder", "Yes"),
    ("DefaultTime2Retain", "0"),
];

impl Parameters {
    /// Hears a value of the target; whether it is known.
    fn hear(&mut self, key: &str, value: &str) -> Talk<bool> {
        let bytes = |most: u32| {
            let wrong = || Trouble::protocol(format!("{key}={value}"));
            let found = number(value).filter(|bytes| (512..1 << 24).contains(bytes));
            Ok(found.ok_or_else(wrong)?.min(most) as usize)
        };
        match key {
            "MaxRecvDataSegmentLength" => self.segment_bytes = bytes(u32::MAX)?,
            "MaxBurstLength" => self.burst_bytes = bytes(16_776_192)?,
            "FirstBurstLength" => self.first_burst_bytes = bytes(262_144)?,
            "InitialR2T" => self.initial_r2t = value != "No",
            "ImmediateData" => self.immediate = value == "Yes",
            "HeaderDigest"
            | "DataDigest"
            | "ErrorRecoveryLevel"
            | "MaxConnections"
            | "DataPDUInOrder"
            | "DataSequenceInOrder"
                if OFFERED.iter().all(|offered| *offered != (key, value)) =>
            {
                return Err(Trouble::new(
                    format!("the target wants {key}={value}, which is not supported"),
                    "configure the target to accept sessions without digests and error recovery",
                ));
            }
            "TargetAlias"
            | "TargetPortalGroupTag"
            | "TargetName"
            | "TargetAddress"
            | "DefaultTime2Wait"
            | "AuthMethod" => {}
            _ if value == "NotUnderstood" || value == "Reject" || value == "Irrelevant" => {}
            key if OFFERED.iter().any(|(offered, _)| *offered == key) => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// In whole words: no message but the last of a burst is padded then.
    fn settled(self) -> Parameters {
        Parameters {
            // A segment that is not a multiple of 4 would need padding after each message of a
            // burst. Cut to whole words only the last one can need it.
            segment_bytes: self.segment_bytes & !3,
            first_burst_bytes: self.first_burst_bytes.min(self.burst_bytes) & !3,
            ..self
        }
    }
}

/// Logs in to `target` as `initiator`; `None` is for a session that only asks which targets there are.
pub(crate) fn log_in(
    conversation: &mut Conversation<'_>,
    initiator: &str,
    target: Option<&str>,
) -> Talk<Parameters> {
    let mut login = Login { isid: isid(), handle: 0, parameters: Parameters::default() };
    let names = match target {
        Some(target) => {
            vec![("InitiatorName", initiator), ("SessionType", "Normal"), ("TargetName", target)]
        }
        None => vec![("InitiatorName", initiator), ("SessionType", "Discovery")],
    };
    let mut stage = SECURITY;
    let mut text = self::text(&[&names[..], &[("AuthMethod", "None")]].concat());
    for _ in 0..EXCHANGES_MOST {
        let (next, answer) = login.exchange(conversation, stage, &text)?;
        text = login.hear(&answer)?;
        if next == FULL_FEATURE {
            return Ok(login.parameters.settled());
        }
        // Parameters are offered once, when the operational stage begins. A target may refuse a
        // login that offers them again (RFC 7143, clause 6.3).
        if next == OPERATIONAL && stage == SECURITY {
            let most = RECEIVE_MOST.to_string();
            text.extend(self::text(&OFFERED));
            text.extend(self::text(&[("MaxRecvDataSegmentLength", &most)]));
        }
        stage = next;
    }
    Err(Trouble::protocol("too many login responses".to_owned()))
}

/// The identifier of the session for the target, besides the name: random, because a second session with the same
/// identifier would end the first.
fn isid() -> [u8; 6] {
    let random = RandomState::new().build_hasher().finish().to_be_bytes();
    [0x80, random[0], random[1], random[2], random[3], random[4]]
}

struct Login {
    isid: [u8; 6],
    handle: u16,
    parameters: Parameters,
}

impl Login {
    /// Sends `text` in `stage` and requests the next stage; returns the stage that follows, and the text of the
    /// response.
    fn exchange(
        &mut self,
        conversation: &mut Conversation<'_>,
        stage: u8,
        text: &[u8],
    ) -> Talk<(u8, Vec<u8>)> {
        let wanted = if stage == SECURITY { OPERATIONAL } else { FULL_FEATURE };
        self.request(conversation, FINAL | stage << 2 | wanted, text)?;
        let mut answer = Vec::new();
        for _ in 0..EXCHANGES_MOST {
            let Pdu { header, data } = conversation.receive()?;
            if header.opcode() != opcode::LOGIN_RESPONSE {
                let kind = header.opcode();
                return Err(Trouble::protocol(format!("a message of kind {kind:#04x}")));
            }
            refusal(header.0[36], header.0[37], &data)?;
            self.handle = u16::from_be_bytes([header.0[14], header.0[15]]);
            // ExpStatSN follows each answer of the target, also during the login. The
            // full-feature phase goes on from the number that the login has reached.
            conversation.numbers.status = header.word(24).wrapping_add(1);
            conversation.numbers.command_most = header.word(32);
            answer.extend(data);
            if answer.len() > TEXT_MOST {
                break;
            }
            let flags = header.flags();
            // A long answer comes in several messages. An empty request asks for the next part; the
            // text counts only when it is complete.
            if flags & CONTINUE != 0 {
                self.request(conversation, stage << 2, &[])?;
                continue;
            }
            let next = if flags & FINAL == 0 { stage } else { flags & 3 };
            if next < stage || next == 2 {
                return Err(Trouble::protocol(format!("login stage {next} after stage {stage}")));
            }
            return Ok((next, answer));
        }
        Err(Trouble::protocol("a login response that is too long".to_owned()))
    }

    fn request(&self, conversation: &mut Conversation<'_>, flags: u8, text: &[u8]) -> Talk {
        let mut header = conversation.numbers.numbered(opcode::LOGIN | IMMEDIATE, 0);
        header.0[1] = flags;
        header.0[8..14].copy_from_slice(&self.isid);
        header.0[14..16].copy_from_slice(&self.handle.to_be_bytes());
        conversation.send(header, text)
    }

    /// Hears the text of an answer; the text that must be said to it.
    fn hear(&mut self, answer: &[u8]) -> Talk<Vec<u8>> {
        let pairs = pairs(answer)
            .ok_or_else(|| Trouble::protocol("text without key=value pairs".into()))?;
        let mut said = Vec::new();
        for (key, value) in pairs {
            if key == "AuthMethod" && value != "None" {
                return Err(demands_authentication());
            }
            if !self.parameters.hear(key, value)? {
                said.extend(text(&[(key, "NotUnderstood")]));
            }
        }
        Ok(said)
    }
}

fn demands_authentication() -> Trouble {
    Trouble::new(
        "the target demands authentication (CHAP), which is not supported".to_owned(),
        "configure the target to accept sessions without authentication, on a network that you trust",
    )
}

/// The refusal that a status of login is (clause 11.13.5); none where the login goes on.
fn refusal(class: u8, detail: u8, data: &[u8]) -> Talk {
    let (what, help) = match (class, detail) {
        (0, _) => return Ok(()),
        (1, _) => {
            let address = pairs(data).and_then(|pairs| {
                let found = pairs.into_iter().find(|(key, _)| *key == "TargetAddress");
                found.map(|(_, address)| address.to_owned())
            });
            let address = address.unwrap_or_else(|| "another address".to_owned());
            return Err(Trouble {
                what: format!("the target has moved to {address}; redirects are not followed"),
                help: format!("use {address} instead of this host"),
            });
        }
        (2, 1) => return Err(demands_authentication()),
        (2, 2) => (
            "the target does not accept this initiator".to_owned(),
            "add the initiator to the target's access list, or use an initiator that it accepts: add `?initiator=IQN` to the name of the target",
        ),
        (2, 3) => ("the server has no target of this name".to_owned(), UNKNOWN_TARGET),
        (2, 4) => ("the target was removed".to_owned(), "ask its owner where it is now"),
        (2, 6) => (
            "the target accepts no more connections".to_owned(),
            "end other sessions, or use fewer jobs (`--jobs`)",
        ),
        (3, 1) => ("the target is out of service".to_owned(), "start it, or wait"),
        (3, 2) => (
            "the target is out of resources".to_owned(),
            "end other sessions, or use fewer jobs (`--jobs`)",
        ),
        _ => (
            format!("the target refuses the login (status {class:#04x}/{detail:#04x})"),
            "look at the target's log",
        ),
    };
    Err(Trouble::new(what, help))
}

/// The names of the targets that a server has, in a session of discovery.
pub(crate) fn targets(conversation: &mut Conversation<'_>, initiator: &str) -> Talk<Vec<String>> {
    log_in(conversation, initiator, None)?;
    let mut header = conversation.numbers.immediate(opcode::TEXT, 1);
    header.set(20, NO_TAG);
    conversation.send(header, &text(&[("SendTargets", "All")]))?;
    let Pdu { header, data } = conversation.receive()?;
    if header.opcode() != opcode::TEXT_RESPONSE {
        return Err(Trouble::protocol("no list of targets".to_owned()));
    }
    let pairs = pairs(&data).unwrap_or_default();
    let names = pairs.into_iter().filter(|(key, _)| *key == "TargetName");
    Ok(names.map(|(_, name)| name.to_owned()).collect())
}

/// Pairs as text (clause 6.1).
fn text(pairs: &[(&str, &str)]) -> Vec<u8> {
    pairs.iter().flat_map(|(key, value)| format!("{key}={value}\0").into_bytes()).collect()
}

/// The pairs of a text; `None` if it is not one.
fn pairs(data: &[u8]) -> Option<Vec<(&str, &str)>> {
    let items = data.split(|byte| *byte == 0).filter(|item| !item.is_empty());
    items.map(|item| std::str::from_utf8(item).ok()?.split_once('=')).collect()
}

/// A number: decimal or hexadecimal (clause 6.1).
fn number(value: &str) -> Option<u32> {
    match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}
