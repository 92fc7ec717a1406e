//! Protocol data units as bytes (RFC 7143, clause 11).

pub use ssdyno_spec::iscsi::{BHS_BYTES, opcode};
pub(crate) use ssdyno_spec::iscsi::{CONTINUE, FINAL, NO_TAG, READ, WRITE, reject};

use ssdyno_spec::iscsi::IMMEDIATE;

/// Why bytes are no PDU that can be taken; the connection cannot go on after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PduError {
    /// The data segment is longer than what was declared.
    #[error("a data segment has {bytes} bytes; the declared limit is {limit}")]
    DataTooLong {
        /// Its length.
        bytes: u32,
        /// What is taken.
        limit: u32,
    },
    /// The digest of the header is wrong: where the next PDU begins is not known.
    #[error("the digest of the header is wrong")]
    HeaderDigest,
    /// The bytes end before the PDU does.
    #[error("the PDU is cut off")]
    Truncated,
}

/// How PDUs are laid out on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// A digest follows the headers.
    pub header_digest: bool,
    /// A digest follows the data segment.
    pub data_digest: bool,
    /// Most bytes of a data segment that is received.
    pub data_bytes_max: u32,
}

/// Rounded up to whole words.
const fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(4)
}

/// A protocol data unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pdu {
    /// The basic header segment.
    pub header: [u8; BHS_BYTES],
    /// Additional header segments.
    pub additional: Vec<u8>,
    /// The data segment, without padding.
    pub data: Vec<u8>,
    /// The data segment arrived, but not as its digest says; it is empty here.
    pub damaged: bool,
}

impl Pdu {
    /// An empty one with this operation code.
    pub fn new(opcode: u8) -> Pdu {
        let mut header = [0; BHS_BYTES];
        header[0] = opcode;
        Pdu { header, additional: Vec::new(), data: Vec::new(), damaged: false }
    }

    /// Operation code.
    pub fn opcode(&self) -> u8 {
        self.header[0] & 0x3f
    }
    /// Bit I: the command is not numbered in its turn.
    pub(crate) fn is_immediate(&self) -> bool {
        self.header[0] & IMMEDIATE != 0
    }
    /// Byte 1.
    pub(crate) fn flags(&self) -> u8 {
        self.header[1]
    }
    /// The final bit.
    pub(crate) fn is_final(&self) -> bool {
        self.header[1] & FINAL != 0
    }
    /// The LUN field.
    pub(crate) fn lun(&self) -> u64 {
        u64::from(self.word(8)) << 32 | u64::from(self.word(12))
    }
    /// Initiator task tag.
    pub fn task_tag(&self) -> u32 {
        self.word(16)
    }
    /// CmdSN of requests.
    pub(crate) fn command_number(&self) -> u32 {
        self.word(24)
    }
    /// The word at `offset` of the header.
    pub fn word(&self, offset: usize) -> u32 {
        let h = &self.header[offset..offset + 4];
        u32::from_be_bytes([h[0], h[1], h[2], h[3]])
    }
    /// Sets the word at `offset` of the header.
    pub fn set_word(&mut self, offset: usize, value: u32) {
        self.header[offset..offset + 4].copy_from_slice(&value.to_be_bytes());
    }
    /// Sets the LUN field.
    pub(crate) fn set_lun(&mut self, lun: u64) {
        self.header[8..16].copy_from_slice(&lun.to_be_bytes());
    }

    /// Bytes that follow the basic header, digests and padding among them; with the place of the
    /// data segment.
    ///
    /// # Errors
    /// [`PduError::DataTooLong`].
    pub fn rest_bytes(header: &[u8; BHS_BYTES], framing: Framing) -> Result<usize, PduError> {
        let additional = usize::from(header[4]) * 4;
        let data = data_bytes(header);
        if data > framing.data_bytes_max {
            return Err(PduError::DataTooLong { bytes: data, limit: framing.data_bytes_max });
        }
        let data = data as usize;
        let data_digest = if framing.data_digest && data > 0 { 4 } else { 0 };
        let header_digest = if framing.header_digest { 4 } else { 0 };
        Ok(additional + header_digest + padded(data) + data_digest)
    }

    /// From a basic header and the [`rest_bytes`](Pdu::rest_bytes) that follow it.
    ///
    /// # Errors
    /// [`PduError`]. A wrong digest of the data is none: see [`Pdu::damaged`].
    pub fn parse(header: &[u8; BHS_BYTES], rest: &[u8], framing: Framing) -> Result<Pdu, PduError> {
        if rest.len() < Pdu::rest_bytes(header, framing)? {
            return Err(PduError::Truncated);
        }
        let (additional, mut rest) = rest.split_at(usize::from(header[4]) * 4);
        if framing.header_digest {
            let digest = crc32c::crc32c_append(crc32c::crc32c(header), additional);
            if rest[..4] != digest.to_le_bytes() {
                return Err(PduError::HeaderDigest);
            }
            rest = &rest[4..];
        }
        let bytes = data_bytes(header) as usize;
        let (segment, rest) = rest.split_at(padded(bytes));
        let damaged =
            framing.data_digest && bytes > 0 && rest[..4] != crc32c::crc32c(segment).to_le_bytes();
        let data = if damaged { Vec::new() } else { segment[..bytes].to_vec() };
        Ok(Pdu { header: *header, additional: additional.to_vec(), data, damaged })
    }

    /// Appends it to `out` as bytes. Lengths in the header are set here.
    pub fn write(&self, framing: Framing, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.header);
        out[start + 4] = (self.additional.len() / 4) as u8;
        let length = (self.data.len() as u32).to_be_bytes();
        out[start + 5..start + 8].copy_from_slice(&length[1..]);
        out.extend_from_slice(&self.additional);
        if framing.header_digest {
            let digest = crc32c::crc32c(&out[start..]);
            out.extend_from_slice(&digest.to_le_bytes());
        }
        if self.data.is_empty() {
            return;
        }
        let segment = out.len();
        out.extend_from_slice(&self.data);
        out.resize(segment + padded(self.data.len()), 0);
        if framing.data_digest {
            let digest = crc32c::crc32c(&out[segment..]);
            out.extend_from_slice(&digest.to_le_bytes());
        }
    }
}

/// DataSegmentLength.
fn data_bytes(header: &[u8; BHS_BYTES]) -> u32 {
    u32::from_be_bytes([0, header[5], header[6], header[7]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framings() -> impl Strategy<Value = Framing> {
        (any::<bool>(), any::<bool>(), 0..70_000_u32).prop_map(
            |(header_digest, data_digest, data_bytes_max)| Framing {
                header_digest,
                data_digest,
                data_bytes_max,
            },
        )
    }

    /// As a reader does it: header, length of the rest, rest.
    fn read(bytes: &[u8], framing: Framing) -> Result<(Pdu, usize), PduError> {
        let header = bytes.first_chunk::<BHS_BYTES>().ok_or(PduError::Truncated)?;
        let rest = Pdu::rest_bytes(header, framing)?;
        let pdu = Pdu::parse(header, &bytes[BHS_BYTES..], framing)?;
        Ok((pdu, BHS_BYTES + rest))
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_pdu_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            framing in framings(),
        ) {
            if let Ok((pdu, length)) = read(&bytes, framing) {
                prop_assert!(length <= bytes.len());
                prop_assert!(pdu.data.len() <= framing.data_bytes_max as usize);
            }
        }

        #[test]
        fn what_is_written_is_read_again(
            header in prop::array::uniform32(any::<u8>()),
            words in 0..5_usize,
            data in prop::collection::vec(any::<u8>(), 0..300),
            framing in framings(),
            spoilt in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let framing = Framing { data_bytes_max: 300, ..framing };
            let mut pdu = Pdu::new(header[0]);
            pdu.header[8..40].copy_from_slice(&header);
            pdu.additional = vec![7; words * 4];
            pdu.data = data;
            let mut bytes = Vec::new();
            pdu.write(framing, &mut bytes);
            pdu.header[4..8].copy_from_slice(&bytes[4..8]);
            prop_assert_eq!(bytes.len() % 4, 0);
            prop_assert_eq!(read(&bytes, framing), Ok((pdu.clone(), bytes.len())));
            // With both digests no flipped bit goes by.
            let strict = Framing { header_digest: true, data_digest: true, ..framing };
            bytes.clear();
            pdu.write(strict, &mut bytes);
            if let Some(spoilt) = spoilt {
                let at = spoilt.index(bytes.len());
                bytes[at] ^= 1;
                if let Ok((read, _)) = read(&bytes, strict) {
                    prop_assert!(read.damaged);
                }
            }
        }
    }

    /// RFC 7143, 13.1 and RFC 3720, appendix B.4: 32 zeroes have the CRC aa 36 91 8a.
    #[test]
    fn digest_is_that_of_the_standard() {
        let framing = Framing { header_digest: false, data_digest: true, data_bytes_max: 64 };
        let mut pdu = Pdu::new(opcode::NOP_IN);
        pdu.data = vec![0; 32];
        let mut bytes = Vec::new();
        pdu.write(framing, &mut bytes);
        assert_eq!(bytes[80..], [0xaa, 0x36, 0x91, 0x8a]);
    }
}
