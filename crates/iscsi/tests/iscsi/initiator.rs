//! A small initiator without sockets.

use std::sync::Arc;

use ssdyno_iscsi::{Connection, ConnectionFlow, IscsiTarget, Pdu, Transport, opcode};

use crate::device::NAME;

pub(crate) const NO_TAG: u32 = 0xffff_ffff;

/// One connection of an initiator, which counts its commands and its answers.
pub(crate) struct Initiator {
    pub(crate) connection: Connection,
    pub(crate) command: u32,
    tag: u32,
}

/// Pairs of key and value.
pub(crate) fn text(pairs: &[(&str, &str)]) -> Vec<u8> {
    pairs.iter().map(|(key, value)| format!("{key}={value}\0")).collect::<String>().into_bytes()
}

/// A Login Request that goes from `from` to the full-feature phase.
pub(crate) fn login(from: u8, isid: u8, pairs: &[(&str, &str)]) -> Pdu {
    let mut pdu = Pdu::new(opcode::LOGIN | 0x40);
    pdu.header[1] = 0x80 | from << 2 | 3;
    pdu.header[13] = isid;
    pdu.set_word(24, 1);
    pdu.set_word(28, 7);
    pdu.data = text(pairs);
    pdu
}

/// Nobody reads or writes: the test looks by itself.
struct Nobody;

impl Transport for Nobody {
    fn hang_up(&self) {}
    fn wake(&self) {}
}

pub(crate) fn connection(target: &Arc<IscsiTarget>) -> Connection {
    Connection::new(target.clone(), "192.0.2.1:3260".to_owned(), Arc::new(Nobody))
}

impl Initiator {
    /// Logged in as the port `isid`, with these keys beside the names.
    pub(crate) fn new(target: &Arc<IscsiTarget>, isid: u8, keys: &[(&str, &str)]) -> Initiator {
        let mut connection = connection(target);
        let names = [("InitiatorName", "iqn.2026-01.org.ssdyno:initiator"), ("TargetName", NAME)];
        let all: Vec<_> = names.iter().chain(keys).copied().collect();
        let mut out = Vec::new();
        assert_eq!(connection.receive(login(1, isid, &all), &mut out), ConnectionFlow::Goes);
        assert_eq!((out.len(), out[0].opcode(), out[0].word(36)), (1, opcode::LOGIN_RESPONSE, 0));
        assert_eq!(out[0].header[1], 0x87, "transit to the full-feature phase");
        let mut initiator = Initiator { connection, command: 1, tag: 100 };
        // Takes what there is to hear of the power on, for which no time is needed.
        let attention = initiator.scsi(&[0; 6], 0, &[]);
        assert_eq!(attention.status, 2);
        initiator
    }

    pub(crate) fn send(&mut self, pdu: Pdu) -> Vec<Pdu> {
        let mut out = Vec::new();
        assert_eq!(self.connection.receive(pdu, &mut out), ConnectionFlow::Goes);
        out
    }

    /// The responses to commands that have ended meanwhile.
    pub(crate) fn completed(&mut self) -> Vec<Pdu> {
        let mut out = Vec::new();
        self.connection.completed(&mut out);
        out
    }

    /// A SCSI Command with `flags`, the expected length and data in the same PDU.
    pub(crate) fn command(&mut self, cdb: &[u8], flags: u8, expected: u32, data: &[u8]) -> Pdu {
        let mut pdu = Pdu::new(opcode::SCSI_COMMAND);
        pdu.header[1] = flags;
        self.tag += 1;
        pdu.set_word(16, self.tag);
        pdu.set_word(20, expected);
        pdu.set_word(24, self.command);
        self.command += 1;
        pdu.header[32..32 + cdb.len()].copy_from_slice(cdb);
        pdu.data = data.to_vec();
        pdu
    }

    /// Sends a command that reads `expected` bytes, or writes `data`, to its end.
    pub(crate) fn scsi(&mut self, cdb: &[u8], expected: u32, data: &[u8]) -> Ended {
        let writes = !data.is_empty();
        let length = if writes { data.len() as u32 } else { expected };
        let pdu = self.command(cdb, 0x80 | if writes { 0x20 } else { 0x40 }, length, &[]);
        let out = self.send(pdu);
        self.finish(out, data)
    }

    /// Answers R2Ts out of `data` until the command has ended.
    pub(crate) fn finish(&mut self, mut out: Vec<Pdu>, data: &[u8]) -> Ended {
        let mut ended =
            Ended { status: 0xff, sense: None, residual: 0, data: Vec::new(), bursts: 0 };
        while let Some(pdu) = (!out.is_empty()).then(|| out.remove(0)) {
            match pdu.opcode() {
                opcode::READY_TO_TRANSFER => {
                    ended.bursts += 1;
                    let (from, length) = (pdu.word(40) as usize, pdu.word(44) as usize);
                    let burst = &data[from..from + length];
                    for (number, part) in burst.chunks(1000).enumerate() {
                        let offset = number * 1000;
                        let last = offset + part.len() == burst.len();
                        out.extend(self.send(data_out(&pdu, number, from + offset, part, last)));
                    }
                }
                opcode::DATA_IN => {
                    assert_eq!(pdu.word(40) as usize, ended.data.len(), "in order");
                    ended.data.extend(&pdu.data);
                    if pdu.header[1] & 1 != 0 {
                        ended.end(&pdu);
                    }
                }
                opcode::SCSI_RESPONSE => {
                    ended.end(&pdu);
                    let code = |at: usize| u16::from_be_bytes([pdu.data[at], pdu.data[at + 1]]);
                    ended.sense = (pdu.data.len() >= 16).then(|| (pdu.data[4] & 0xf, code(14)));
                }
                other => panic!("{other:#x}"),
            }
        }
        ended
    }

    /// A task management function about `tag` or LUN 0; its response.
    pub(crate) fn manage(&mut self, function: u8, tag: u32) -> u8 {
        let out = self.ask_to_manage(function, tag);
        assert_eq!((out.len(), out[0].opcode()), (1, opcode::TASK_MANAGEMENT_RESPONSE));
        out[0].header[2]
    }

    /// The same, with what is answered at once.
    pub(crate) fn ask_to_manage(&mut self, function: u8, tag: u32) -> Vec<Pdu> {
        let mut pdu = Pdu::new(opcode::TASK_MANAGEMENT | 0x40);
        pdu.header[1] = 0x80 | function;
        pdu.set_word(16, 9);
        pdu.set_word(20, tag);
        pdu.set_word(24, self.command);
        let mut out = Vec::new();
        let _flow = self.connection.receive(pdu, &mut out);
        out
    }
}

/// A Data-Out that answers an R2T.
pub(crate) fn data_out(ready: &Pdu, number: usize, offset: usize, part: &[u8], last: bool) -> Pdu {
    let mut pdu = Pdu::new(opcode::DATA_OUT);
    pdu.header[1] = if last { 0x80 } else { 0 };
    pdu.set_word(16, ready.task_tag());
    pdu.set_word(20, if ready.opcode() == opcode::SCSI_COMMAND { NO_TAG } else { ready.word(20) });
    pdu.set_word(36, number as u32);
    pdu.set_word(40, offset as u32);
    pdu.data = part.to_vec();
    pdu
}

/// The end of a command.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Ended {
    pub(crate) status: u8,
    pub(crate) sense: Option<(u8, u16)>,
    /// Positive: overflow; negative: underflow.
    pub(crate) residual: i64,
    pub(crate) data: Vec<u8>,
    /// R2Ts that came.
    pub(crate) bursts: u32,
}

impl Ended {
    fn end(&mut self, pdu: &Pdu) {
        assert_eq!(self.status, 0xff, "ended twice");
        self.status = pdu.header[3];
        let residual = i64::from(pdu.word(44));
        self.residual = match pdu.header[1] & 6 {
            0 => 0,
            2 => -residual,
            4 => residual,
            _ => panic!("both residuals"),
        };
    }
}
