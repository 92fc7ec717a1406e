//! Request and response on a blocking socket: the messages before the load.

use std::io;
use std::time::Instant;

use ssdyno_spec::iscsi::{FINAL, READ, STATUS, opcode};

use super::cdb::Cdb;
use super::pdu::{Header, Numbers, farewell};
use super::sense::Ended;
use crate::network::protocol::{Talk, Trouble};
use crate::network::stream::Stream;

/// Messages that are read for one answer, at most: a target may ping, and say things by itself.
const MESSAGES_MOST: u32 = 1_000;

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pdu {
    pub(crate) header: Header,
    pub(crate) data: Vec<u8>,
}

/// A connection whose requests are answered one by one, until a deadline.
#[derive(Debug)]
pub(crate) struct Conversation<'a> {
    pub(crate) stream: &'a mut Stream,
    pub(crate) deadline: Instant,
    pub(crate) numbers: Numbers,
}

impl Conversation<'_> {
    pub(crate) fn send(&mut self, mut header: Header, data: &[u8]) -> Talk {
        header.set_data_bytes(data.len());
        let mut bytes = header.0.to_vec();
        bytes.extend(data);
        // Messages are padded to words of four bytes (RFC 7143, clause 11.1). The length in the
        // header does not count the padding, so it was set before.
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.stream.write_until(&bytes, self.deadline).map_err(|error| failed(&error))
    }

    /// The next message, whatever it is.
    pub(crate) fn receive(&mut self) -> Talk<Pdu> {
        let mut header = Header::new(0);
        let read = self.stream.read_until(&mut header.0, self.deadline);
        read.map_err(|error| failed(&error))?;
        // The kind is looked at before the lengths. A server of another protocol has no length
        // in bytes 5 to 7, and we would wait for bytes that never come.
        if !is_of_targets(header.opcode()) {
            return Err(Trouble::new(
                format!("the server does not speak iSCSI: it begins with {:02x?}", &header.0[..8]),
                "check the port: the default iSCSI port is 3260",
            ));
        }
        let header = header.checked().map_err(|what| Trouble::new(what, HELP))?;
        let mut rest = vec![0; header.whole_bytes() - header.0.len()];
        self.stream.read_until(&mut rest, self.deadline).map_err(|error| failed(&error))?;
        // Further headers may lie between the first one and the data (RFC 7143, clause 11.2). We
        // need none of them, but must not take them for data.
        let data = rest.split_off(header.head_bytes() - header.0.len());
        Ok(Pdu { header, data: data[..header.data_bytes()].to_vec() })
    }

    /// Sends a command to the logical unit `lun`, and reads up to `bytes` bytes: its status, and
    /// the data read.
    pub(crate) fn ask(&mut self, lun: [u8; 8], cdb: &Cdb, bytes: u32) -> Talk<(Ended, Vec<u8>)> {
        let tag = self.numbers.command;
        let mut header = self.numbers.command(lun, tag, cdb);
        // Bits 2:0: simple task.
        header.0[1] = FINAL | 1 | if bytes > 0 { READ } else { 0 };
        header.set(20, bytes);
        self.send(header, &[])?;
        let mut read: Vec<u8> = Vec::new();
        for _ in 0..MESSAGES_MOST {
            let Pdu { header, data } = self.receive()?;
            self.numbers.hear(&header);
            match header.opcode() {
                opcode::DATA_IN if header.word(16) == tag => {
                    // Data comes in order, as was agreed on at login. Another offset (bytes 40
                    // to 43) would leave a gap, and the fields in it would read as zeros.
                    let fits = read.len() + data.len() <= bytes as usize;
                    if header.word(40) as usize != read.len() || !fits {
                        return Err(Trouble::protocol("data that was not requested".to_owned()));
                    }
                    read.extend(data);
                    // A target may put a good status into the last message of data (RFC 7143,
                    // clause 11.7). No response follows then, and a wait for it would end at the
                    // deadline.
                    if header.flags() & STATUS != 0 {
                        return Ok((Ended::of(0, header.0[3], &[]), read));
                    }
                }
                opcode::SCSI_RESPONSE if header.word(16) == tag => {
                    return Ok((Ended::of(header.0[2], header.0[3], &data), read));
                }
                opcode::REJECT => {
                    let what =
                        format!("the target rejects a command (reason {:#04x})", header.0[2]);
                    return Err(Trouble::new(what, HELP));
                }
                _ => self.heed(&header)?,
            }
        }
        Err(Trouble::protocol("too many other messages before the response".to_owned()))
    }

    /// Asks the target whether it is there, in a session on which nothing is outstanding.
    pub(crate) fn ping(&mut self) -> Talk {
        let tag = self.numbers.command;
        self.send(self.numbers.ping(tag), &[])?;
        for _ in 0..MESSAGES_MOST {
            let Pdu { header, .. } = self.receive()?;
            self.numbers.hear(&header);
            if header.opcode() == opcode::NOP_IN && header.word(16) == tag {
                return Ok(());
            }
            self.heed(&header)?;
        }
        Err(Trouble::protocol("too many other messages before the response".to_owned()))
    }

    /// Goes on after a message that is not the response that is waited for. An asynchronous message may end the
    /// session: whoever waited for an answer then would wait until the deadline, and be told of a target that does not
    /// answer.
    fn heed(&mut self, header: &Header) -> Talk {
        let ends = match header.opcode() {
            opcode::NOP_IN => match self.numbers.pong(header) {
                Some(pong) => return self.send(pong, &[]),
                None => None,
            },
            opcode::ASYNC_MESSAGE => farewell(header),
            kind => return Err(Trouble::protocol(format!("a message of kind {kind:#04x}"))),
        };
        ends.map_or(Ok(()), |why| Err(Trouble::new(why.to_owned(), HELP)))
    }
}

const HELP: &str = "look at the target's log";

/// Whether targets send messages of this kind.
fn is_of_targets(kind: u8) -> bool {
    matches!(kind, opcode::NOP_IN..=opcode::LOGOUT_RESPONSE)
        || matches!(kind, opcode::READY_TO_TRANSFER | opcode::ASYNC_MESSAGE | opcode::REJECT)
}

fn failed(error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::TimedOut => Trouble::new(
            "the server does not answer during the login or the first commands".to_owned(),
            "check that it is an iSCSI target and that its device answers",
        ),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Trouble::new(
            "the server closed the connection during the login or the first commands".to_owned(),
            "check that it is an iSCSI target that accepts more sessions, and look at its log",
        ),
        _ => Trouble::new(format!("the login failed: {error}"), HELP),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use ssdyno_spec::iscsi::event;

    use super::*;
    use crate::network::iscsi::cdb;

    /// The results of `ask` and `ping` with a target that sends an event of this kind and then the response.
    fn after(code: u8) -> [Talk; 2] {
        let [mut asked, mut pinged] = [opcode::SCSI_RESPONSE, opcode::NOP_IN].map(|kind| {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let mut told = Header::new(opcode::ASYNC_MESSAGE);
            told.0[36] = code;
            let mut answer = Header::new(kind);
            answer.set(16, 1);
            theirs.write_all(&[told.0, answer.0].concat()).unwrap();
            (Stream::from(ours), theirs)
        });
        let deadline = Instant::now() + Duration::from_secs(10);
        let numbers = Numbers { command: 1, command_most: 1, status: 0 };
        let talk = |stream| Conversation { stream, deadline, numbers };
        let ended = talk(&mut asked.0).ask([0; 8], &cdb::test_unit_ready(), 0);
        [ended.map(|(ended, _)| assert!(ended.is_good())), talk(&mut pinged.0).ping()]
    }

    /// RFC 7143, clause 11.9: events of a unit, of the vendor and those that are not known concern no session.
    #[test]
    fn only_a_farewell_ends_a_conversation() {
        for code in [event::SCSI, 255, 9] {
            assert!(after(code).iter().all(Result::is_ok), "{code}");
        }
        for (code, says) in [
            (event::LOGOUT, "log out"),
            (event::DROP_CONNECTION, "drops"),
            (event::DROP_SESSION, "drops"),
            (event::NEGOTIATE, "negotiation"),
        ] {
            for ended in after(code) {
                let trouble = ended.unwrap_err();
                assert!(trouble.what.contains(says), "{trouble:?}");
            }
        }
    }
}
