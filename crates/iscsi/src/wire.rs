//! PDUs from a stream of bytes.

use std::io::{self, Read};

use crate::pdu::{BHS_BYTES, Framing, Pdu, PduError};

/// The next PDU; `None` where the stream ends between two.
///
/// # Errors
/// The stream fails or ends inside a PDU, or the bytes are none.
pub(crate) fn read(stream: &mut impl Read, framing: Framing) -> io::Result<Option<Pdu>> {
    let mut header = [0; BHS_BYTES];
    let first = loop {
        match stream.read(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut header[first..])?;
    let mut rest = vec![0; Pdu::rest_bytes(&header, framing).map_err(bad)?];
    stream.read_exact(&mut rest)?;
    Pdu::parse(&header, &rest, framing).map(Some).map_err(bad)
}

fn bad(error: PduError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu::opcode;

    #[test]
    fn pdus_follow_each_other() {
        let framing = Framing { header_digest: true, data_digest: true, data_bytes_max: 16 };
        let (mut first, second) = (Pdu::new(opcode::NOP_OUT), Pdu::new(opcode::LOGOUT));
        first.data = vec![1, 2, 3];
        let mut bytes = Vec::new();
        first.write(framing, &mut bytes);
        second.write(framing, &mut bytes);
        let mut stream = &bytes[..];
        assert_eq!(read(&mut stream, framing).unwrap().unwrap().data, [1, 2, 3]);
        assert_eq!(read(&mut stream, framing).unwrap().unwrap(), second);
        assert_eq!(read(&mut stream, framing).unwrap(), None);
        assert!(read(&mut &bytes[..59], framing).is_err(), "cut off");
        let small = Framing { data_bytes_max: 2, ..framing };
        assert!(read(&mut &bytes[..], small).is_err(), "too long");
    }
}
