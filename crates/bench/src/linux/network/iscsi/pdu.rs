//! Headers of protocol data units (RFC 7143, clause 11), without digests.

use ssdyno_spec::iscsi::{BHS_BYTES, FINAL, IMMEDIATE, NO_TAG, STATUS, event, opcode};

/// Most bytes of a data segment that is received: what is declared at login.
pub(crate) const RECEIVE_MOST: u32 = 256 << 10;

/// Most bytes of a data segment that is not data of a request: it must fit into what is received at once.
const TEXT_MOST: u32 = 32 << 10;

/// A basic header segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header(pub(crate) [u8; BHS_BYTES]);

impl Header {
    pub(crate) fn new(opcode: u8) -> Header {
        let mut bytes = [0; BHS_BYTES];
        bytes[0] = opcode;
        Header(bytes)
    }

    pub(crate) fn opcode(&self) -> u8 {
        self.0[0] & 0x3f
    }

    pub(crate) fn flags(&self) -> u8 {
        self.0[1]
    }

    pub(crate) fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.0[at..at + 4]);
        u32::from_be_bytes(word)
    }

    pub(crate) fn set(&mut self, at: usize, word: u32) {
        self.0[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }

    /// Sets the length of the data segment.
    pub(crate) fn set_data_bytes(&mut self, bytes: usize) {
        self.0[5..8].copy_from_slice(&(bytes as u32).to_be_bytes()[1..]);
    }

    pub(crate) fn data_bytes(&self) -> usize {
        u32::from_be_bytes([0, self.0[5], self.0[6], self.0[7]]) as usize
    }

    /// Bytes of all headers.
    pub(crate) fn head_bytes(&self) -> usize {
        BHS_BYTES + usize::from(self.0[4]) * 4
    }

    /// Bytes of headers, data and padding.
    pub(crate) fn whole_bytes(&self) -> usize {
        self.head_bytes() + self.data_bytes().next_multiple_of(4)
    }

    /// Itself, where it is not longer than was agreed on.
    pub(crate) fn checked(self) -> Result<Header, String> {
        let most = if self.opcode() == opcode::DATA_IN { RECEIVE_MOST } else { TEXT_MOST };
        if self.data_bytes() > most as usize {
            let (kind, bytes) = (self.opcode(), self.data_bytes());
            return Err(format!("the target sent a message of kind {kind:#04x} with {bytes} B"));
        }
        Ok(self)
    }
}

/// The numbers of a session that commands and answers carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbers {
    /// CmdSN of the next command.
    pub(crate) command: u32,
    /// The last CmdSN that the target takes.
    pub(crate) command_most: u32,
    /// ExpStatSN.
    pub(crate) status: u32,
}

impl Numbers {
    /// How many commands the target takes now.
    pub(crate) fn window(&self) -> u32 {
        // Numbers wrap at 32 bits. Both are never half of the range apart, so the sign of the
        // difference says which one is ahead.
        let left = self.command_most.wrapping_sub(self.command).wrapping_add(1);
        if (left as i32) < 0 { 0 } else { left }
    }

    /// Takes the numbers of what the target sent.
    pub(crate) fn hear(&mut self, header: &Header) {
        // Only an answer with a status takes a number of its own. The others show the next
        // number without using it; to count them would acknowledge an answer that is still to
        // come.
        let counted = match header.opcode() {
            opcode::DATA_IN => header.flags() & STATUS != 0,
            opcode::READY_TO_TRANSFER => false,
            opcode::NOP_IN => header.word(16) != NO_TAG,
            _ => true,
        };
        if counted {
            self.status = header.word(24).wrapping_add(1);
        }
        let (expected, most) = (header.word(28), header.word(32));
        // An answer may overtake none, but a window that is smaller than closed is to be ignored
        // (clause 4.2.2.1), and so is one that is older.
        let valid = most.wrapping_sub(expected).wrapping_add(1) as i32 >= 0;
        if valid && most.wrapping_sub(self.command_most) as i32 > 0 {
            self.command_most = most;
        }
    }

    /// The header of a command with `lun`, `tag` and the next number.
    pub(crate) fn command(&mut self, lun: [u8; 8], tag: u32, cdb: &[u8; 16]) -> Header {
        let mut header = self.numbered(opcode::SCSI_COMMAND, tag);
        header.0[8..16].copy_from_slice(&lun);
        header.0[32..].copy_from_slice(cdb);
        self.command = self.command.wrapping_add(1);
        header
    }

    /// The answer to a ping of the target; `None` where it wants none.
    pub(crate) fn pong(&self, ping: &Header) -> Option<Header> {
        if ping.word(20) == NO_TAG {
            return None;
        }
        // An immediate command carries the next number without using it (RFC 7143, clause
        // 4.2.2.1). The ping is thus answered even while the target takes no commands.
        let mut header = self.immediate(opcode::NOP_OUT, NO_TAG);
        header.0[8..16].copy_from_slice(&ping.0[8..16]);
        header.set(20, ping.word(20));
        Some(header)
    }

    /// A ping, which the target answers with this `tag`.
    pub(crate) fn ping(&self, tag: u32) -> Header {
        let mut header = self.immediate(opcode::NOP_OUT, tag);
        header.set(20, NO_TAG);
        header
    }

    /// Ends the session.
    pub(crate) fn logout(&self) -> Header {
        // Reason 0: close the session.
        self.immediate(opcode::LOGOUT, 0)
    }

    /// A header of an immediate command, complete in itself, with `tag`.
    pub(crate) fn immediate(&self, opcode: u8, tag: u32) -> Header {
        let mut header = self.numbered(opcode | IMMEDIATE, tag);
        header.0[1] = FINAL;
        header
    }

    /// A header with `tag` and the numbers of the session.
    pub(crate) fn numbered(&self, opcode: u8, tag: u32) -> Header {
        let mut header = Header::new(opcode);
        header.set(16, tag);
        header.set(24, self.command);
        header.set(28, self.status);
        header
    }
}

/// Why the connection is of no use after the event that the asynchronous message `header` tells of; `None` where the
/// session goes on (RFC 7143, clause 11.9).
pub(crate) fn farewell(header: &Header) -> Option<&'static str> {
    match header.0[36] {
        event::LOGOUT => Some("the target asks to log out"),
        event::DROP_CONNECTION | event::DROP_SESSION => Some("the target drops the connection"),
        event::NEGOTIATE => Some("the target asks for a new negotiation"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_wrap_and_never_shrink() {
        let mut numbers = Numbers { command: 0xffff_fffe, command_most: 1, status: 0 };
        assert_eq!(numbers.window(), 4);
        let hear = |numbers: &mut Numbers, expected, most| {
            let mut header = Header::new(opcode::SCSI_RESPONSE);
            header.set(24, 7);
            header.set(28, expected);
            header.set(32, most);
            numbers.hear(&header);
            numbers.window()
        };
        assert_eq!(hear(&mut numbers, 0xffff_ffff, 0), 4, "an older one");
        assert_eq!(hear(&mut numbers, 9, 5), 4, "less than closed");
        assert_eq!(hear(&mut numbers, 0, 9), 12);
        numbers.command = 10;
        assert_eq!((numbers.window(), numbers.status), (0, 8));
        numbers.command = 11;
        assert_eq!(numbers.window(), 0);
    }
}
