//! Commands of SBC-3 and SPC-4 as bytes.

use ssdyno_block::{Op, Request};
use ssdyno_spec::scsi::opcode;

/// READ CAPACITY (16), a service action of SERVICE ACTION IN (16).
const READ_CAPACITY_16: u8 = 0x10;

/// Bit FUA of READ and WRITE.
const FUA: u8 = 0x08;

/// Bytes of the parameters of UNMAP with one descriptor.
pub(crate) const UNMAP_BYTES: usize = 24;

pub(crate) type Cdb = [u8; 16];

/// The properties of a logical unit that commands depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) block_bytes: u32,
    /// It takes commands with addresses of 64 bits.
    pub(crate) long: bool,
}

impl Shape {
    /// The command for `request`; with `fua` a write is durable when it completes.
    pub(crate) fn command(&self, request: &Request, fua: bool) -> Cdb {
        let (address, blocks) = self.blocks(request);
        let (long, short) = match request.op {
            Op::Read => (opcode::READ_16, opcode::READ_10),
            Op::Write => (opcode::WRITE_16, opcode::WRITE_10),
            // Address and length 0: all of the medium.
            Op::Flush => (opcode::SYNCHRONIZE_CACHE_16, opcode::SYNCHRONIZE_CACHE_10),
            Op::Trim => return cdb(opcode::UNMAP, &[(7, &(UNMAP_BYTES as u16).to_be_bytes())]),
        };
        let mut cdb = [0; 16];
        // Reads have the bit, too. There it would make the target go past its cache, which is
        // not what durable writes ask for.
        cdb[1] = if fua && request.op == Op::Write { FUA } else { 0 };
        if self.long {
            cdb[0] = long;
            cdb[2..10].copy_from_slice(&address.to_be_bytes());
            cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
        } else {
            // The capacity of such a unit comes from READ CAPACITY (10), whose last address has
            // 32 bits. So the cast keeps every address.
            cdb[0] = short;
            cdb[2..6].copy_from_slice(&(address as u32).to_be_bytes());
            cdb[7..9].copy_from_slice(&(blocks as u16).to_be_bytes());
        }
        cdb
    }

    /// The parameters of UNMAP for `request`.
    pub(crate) fn unmap(&self, request: &Request) -> [u8; UNMAP_BYTES] {
        let (address, blocks) = self.blocks(request);
        let mut data = [0; UNMAP_BYTES];
        // Neither length counts the bytes before its own end: the first excludes two bytes, the
        // second the whole header of eight (SBC-3, 5.28).
        data[..2].copy_from_slice(&(UNMAP_BYTES as u16 - 2).to_be_bytes());
        data[2..4].copy_from_slice(&(UNMAP_BYTES as u16 - 8).to_be_bytes());
        data[8..16].copy_from_slice(&address.to_be_bytes());
        data[16..20].copy_from_slice(&blocks.to_be_bytes());
        data
    }

    /// Address and length; none of a flush.
    fn blocks(&self, request: &Request) -> (u64, u32) {
        match request.op {
            Op::Flush => (0, 0),
            _ => {
                let address = request.offset_bytes / u64::from(self.block_bytes);
                (address, request.length_bytes / self.block_bytes)
            }
        }
    }
}

/// A command with these fields, by their first bytes.
fn cdb(opcode: u8, fields: &[(usize, &[u8])]) -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    for (at, field) in fields {
        cdb[*at..at + field.len()].copy_from_slice(field);
    }
    cdb
}

pub(crate) fn test_unit_ready() -> Cdb {
    [0; 16]
}

/// INQUIRY: standard data, or a page of vital product data.
pub(crate) fn inquiry(page: Option<u8>, bytes: u16) -> Cdb {
    let page = [u8::from(page.is_some()), page.unwrap_or(0)];
    cdb(opcode::INQUIRY, &[(1, &page), (3, &bytes.to_be_bytes())])
}

pub(crate) fn read_capacity_16(bytes: u32) -> Cdb {
    cdb(opcode::SERVICE_ACTION_IN_16, &[(1, &[READ_CAPACITY_16]), (10, &bytes.to_be_bytes())])
}

pub(crate) fn read_capacity_10() -> Cdb {
    cdb(opcode::READ_CAPACITY_10, &[])
}

/// MODE SENSE (6) of a page, without block descriptors.
pub(crate) fn mode_sense(page: u8, bytes: u8) -> Cdb {
    // DBD.
    cdb(opcode::MODE_SENSE_6, &[(1, &[0x08, page]), (4, &[bytes])])
}

pub(crate) fn report_luns(bytes: u32) -> Cdb {
    cdb(opcode::REPORT_LUNS, &[(6, &bytes.to_be_bytes())])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Byte by byte as SBC-3 has them (5.14, 5.15, 5.19, 5.28, 5.33).
    #[test]
    fn commands_are_those_of_the_standard() {
        let long = Shape { block_bytes: 512, long: true };
        let short = Shape { block_bytes: 4096, long: false };
        let read = Request::read(0x1234_5678_9a00, 4096);
        assert_eq!(
            long.command(&read, true),
            [0x88, 0, 0, 0, 0, 0x09, 0x1a, 0x2b, 0x3c, 0x4d, 0, 0, 0, 8, 0, 0]
        );
        let write = Request::write(0x5000, 8192);
        assert_eq!(
            short.command(&write, true),
            [0x2a, 8, 0, 0, 0, 5, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(long.command(&Request::flush(), true)[..2], [0x91, 0]);
        assert_eq!(short.command(&Request::flush(), false)[..2], [0x35, 0]);
        let trim = Request::trim(512 * 7, 512 * 9);
        assert_eq!(
            long.command(&trim, false),
            [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0]
        );
        let data = long.unmap(&trim);
        assert_eq!(
            data,
            [0, 22, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0]
        );
        assert_eq!(inquiry(Some(0xb0), 64)[..6], [0x12, 1, 0xb0, 0, 64, 0]);
        assert_eq!(read_capacity_16(32)[..2], [0x9e, 0x10]);
        assert_eq!(mode_sense(0x3f, 255)[..6], [0x1a, 8, 0x3f, 0, 255, 0]);
    }
}
