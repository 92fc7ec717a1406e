//! I/O commands (clause 7; NVM command set 1.0c, clause 3).

use ssdyno_spec::nvme::{NvmeStatus, nvm};

use super::{Data, EVERY, FIELD, NAMESPACE, OK, OPCODE, Row, check};

const RANGE: NvmeStatus = NvmeStatus::LBA_OUT_OF_RANGE;
const COMPARE_FAILURE: NvmeStatus = NvmeStatus::COMPARE_FAILURE;
const READ_CLAUSE: &str = "NVM 3.2.4";
const WRITE_CLAUSE: &str = "NVM 3.2.6";
/// Blocks of 512 bytes in namespace 1.
const BLOCKS: u32 = 32768;

const fn io(opcode: u8, nsid: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    Row::io(opcode, nsid, ends, clause)
}
/// For `blocks` of namespace 1 from `first`.
const fn range(opcode: u8, first: u32, blocks: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    io(opcode, 1, ends, clause).dword(10, first).dword(12, blocks - 1)
}
/// With bits of dword 12 set.
const fn bits(opcode: u8, bits: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    io(opcode, 1, ends, clause).dword(12, bits)
}
const fn dataset(ranges: u32, attributes: u32, ends: NvmeStatus) -> Row {
    let row = io(nvm::DATASET_MANAGEMENT, 1, ends, "NVM 3.2.3");
    row.dword(10, ranges - 1).dword(11, attributes)
}

/// PRINFO: PRACT and the three bits of PRCHK; STC.
const PRACT: u32 = 1 << 29;
const GUARD: u32 = 1 << 28;
const APPLICATION_TAG: u32 = 1 << 27;
const REFERENCE_TAG: u32 = 1 << 26;
const PRCHK: u32 = 7 << 26;
const STORAGE_TAG: u32 = 1 << 24;

const LISTED: &[Row] = &[
    range(nvm::READ, 0, 8, OK, READ_CLAUSE),
    range(nvm::READ, BLOCKS - 1, 1, OK, READ_CLAUSE),
    range(nvm::READ, BLOCKS, 1, RANGE, READ_CLAUSE),
    range(nvm::READ, BLOCKS - 1, 2, RANGE, READ_CLAUSE),
    io(nvm::READ, 1, RANGE, READ_CLAUSE).dword(10, u32::MAX).dword(11, u32::MAX),
    io(nvm::READ, 2, OK, READ_CLAUSE).dword(10, 4095),
    io(nvm::READ, 2, RANGE, READ_CLAUSE).dword(10, 4096),
    io(nvm::READ, 3, FIELD, "figure 87"),
    io(nvm::READ, 4, FIELD, "figure 87"),
    io(nvm::READ, 0, NAMESPACE, "figure 87"),
    io(nvm::READ, 9, NAMESPACE, "figure 87"),
    io(nvm::READ, EVERY, FIELD, "figure 87"),
    range(nvm::READ, 0, 129, FIELD, "figure 275"),
    bits(nvm::READ, 1 << 31, OK, READ_CLAUSE),
    bits(nvm::READ, 1 << 30, OK, READ_CLAUSE),
    // Without protection information PRINFO means nothing.
    bits(nvm::READ, PRACT, OK, READ_CLAUSE),
    bits(nvm::READ, PRCHK, OK, READ_CLAUSE),
    bits(nvm::READ, PRACT | PRCHK, OK, READ_CLAUSE),
    bits(nvm::READ, GUARD, OK, READ_CLAUSE),
    bits(nvm::READ, APPLICATION_TAG, OK, READ_CLAUSE),
    bits(nvm::READ, REFERENCE_TAG, OK, READ_CLAUSE),
    bits(nvm::READ, STORAGE_TAG, OK, READ_CLAUSE),
    bits(nvm::READ, 0, OK, READ_CLAUSE).dword(13, 0xff),
    bits(nvm::READ, 0, OK, READ_CLAUSE).dword(14, 5).dword(15, u32::MAX),
    range(nvm::READ, 0, 1, FIELD, "figure 86").flags(1),
    range(nvm::READ, 0, 1, FIELD, "figure 86").flags(2),
    range(nvm::READ, 0, 1, FIELD, "figure 86").flags(0x40),
    range(nvm::READ, 0, 1, FIELD, "figure 86").flags(0x80),
    range(nvm::READ, 0, 1, NvmeStatus::PRP_OFFSET_INVALID, "4.1.1").offset(1),
    range(nvm::READ, 0, 1, OK, "4.1.1").offset(4),
    range(nvm::WRITE, 0, 8, OK, WRITE_CLAUSE),
    range(nvm::WRITE, BLOCKS - 1, 1, OK, WRITE_CLAUSE),
    range(nvm::WRITE, BLOCKS, 1, RANGE, WRITE_CLAUSE),
    range(nvm::WRITE, BLOCKS - 1, 2, RANGE, WRITE_CLAUSE),
    range(nvm::WRITE, 0, 129, FIELD, "figure 275"),
    io(nvm::WRITE, 3, FIELD, "figure 87"),
    io(nvm::WRITE, 0, NAMESPACE, "figure 87"),
    io(nvm::WRITE, 9, NAMESPACE, "figure 87"),
    io(nvm::WRITE, EVERY, FIELD, "figure 87"),
    bits(nvm::WRITE, 1 << 31, OK, WRITE_CLAUSE),
    bits(nvm::WRITE, 1 << 30, OK, WRITE_CLAUSE),
    bits(nvm::WRITE, PRACT, OK, WRITE_CLAUSE),
    bits(nvm::WRITE, PRCHK, OK, WRITE_CLAUSE),
    bits(nvm::WRITE, PRACT | PRCHK | STORAGE_TAG, OK, WRITE_CLAUSE),
    // Directives are not offered (OACS bit 5).
    bits(nvm::WRITE, 1 << 20, FIELD, "8.7"),
    range(nvm::WRITE, 0, 1, NvmeStatus::PRP_OFFSET_INVALID, "4.1.1").offset(3),
    range(nvm::COMPARE, 0, 1, OK, "NVM 3.2.1"),
    range(nvm::COMPARE, 0, 1, COMPARE_FAILURE, "NVM 3.2.1").with(Data::Byte(511, 1)),
    range(nvm::COMPARE, BLOCKS, 1, RANGE, "NVM 3.2.1"),
    range(nvm::COMPARE, 0, 129, FIELD, "figure 275"),
    bits(nvm::COMPARE, PRACT | PRCHK, OK, "NVM 3.2.1"),
    io(nvm::COMPARE, EVERY, FIELD, "figure 87"),
    io(nvm::FLUSH, 1, OK, "7.1"),
    io(nvm::FLUSH, EVERY, OK, "7.1"),
    io(nvm::FLUSH, 3, FIELD, "figure 87"),
    io(nvm::FLUSH, 0, NAMESPACE, "figure 87"),
    io(nvm::FLUSH, 9, NAMESPACE, "figure 87"),
    // No data move, so MDTS is no limit.
    range(nvm::VERIFY, 0, 1024, OK, "NVM 3.2.5"),
    range(nvm::VERIFY, BLOCKS, 1, RANGE, "NVM 3.2.5"),
    bits(nvm::VERIFY, PRACT | PRCHK, OK, "NVM 3.2.5"),
    io(nvm::VERIFY, 4, FIELD, "figure 87"),
    io(nvm::VERIFY, EVERY, FIELD, "figure 87"),
    range(nvm::WRITE_ZEROES, 0, 1024, OK, "NVM 3.2.8"),
    range(nvm::WRITE_ZEROES, BLOCKS, 1, RANGE, "NVM 3.2.8"),
    bits(nvm::WRITE_ZEROES, 1 << 25, OK, "NVM 3.2.8"),
    bits(nvm::WRITE_ZEROES, PRACT | PRCHK, OK, "NVM 3.2.8"),
    io(nvm::WRITE_ZEROES, 9, NAMESPACE, "figure 87"),
    io(nvm::WRITE_ZEROES, EVERY, FIELD, "figure 87"),
    range(nvm::WRITE_UNCORRECTABLE, 0, 8, OK, "NVM 3.2.7"),
    range(nvm::WRITE_UNCORRECTABLE, BLOCKS, 1, RANGE, "NVM 3.2.7"),
    io(nvm::WRITE_UNCORRECTABLE, EVERY, FIELD, "figure 87"),
    range(nvm::READ, 0, 8, NvmeStatus::UNRECOVERED_READ, "NVM 3.2.7").after(SPOILT),
    range(nvm::VERIFY, 0, 8, NvmeStatus::UNRECOVERED_READ, "NVM 3.2.7").after(SPOILT),
    range(nvm::COMPARE, 3, 1, NvmeStatus::UNRECOVERED_READ, "NVM 3.2.7").after(SPOILT),
    range(nvm::WRITE, 0, 8, OK, "NVM 3.2.7").after(SPOILT),
    range(nvm::READ, 8, 8, OK, "NVM 3.2.7").after(SPOILT),
    dataset(1, 4, OK).with(Data::Ranges(&[(0, 8)])),
    dataset(2, 4, OK).with(Data::Ranges(&[(0, 8), (BLOCKS as u64 - 1, 1)])),
    dataset(1, 4, RANGE).with(Data::Ranges(&[(BLOCKS as u64, 1)])),
    dataset(2, 4, RANGE).with(Data::Ranges(&[(0, 8), (0, BLOCKS + 1)])),
    dataset(256, 4, OK),
    dataset(1, 1, OK).with(Data::Ranges(&[(0, 8)])),
    dataset(1, 2, OK).with(Data::Ranges(&[(0, 8)])),
    dataset(1, 0, OK).with(Data::Ranges(&[(0, 8)])),
    io(nvm::DATASET_MANAGEMENT, 3, FIELD, "figure 87"),
    io(nvm::DATASET_MANAGEMENT, 0, NAMESPACE, "figure 87"),
    io(nvm::DATASET_MANAGEMENT, EVERY, FIELD, "figure 87"),
    // Reservations, Copy, and reserved or vendor specific commands.
    io(0x0d, 1, OPCODE, "NVM figure 18"),
    io(0x0e, 1, OPCODE, "NVM figure 18"),
    io(0x11, 1, OPCODE, "NVM figure 18"),
    io(0x15, 1, OPCODE, "NVM figure 18"),
    io(0x19, 1, OPCODE, "NVM figure 18"),
    io(0x03, 1, OPCODE, "NVM figure 18"),
    io(0x7f, 1, OPCODE, "NVM figure 18"),
    io(0x80, 1, OPCODE, "NVM figure 18"),
    io(0xff, 1, OPCODE, "NVM figure 18"),
];

const SPOILT: &[Row] = &[range(nvm::WRITE_UNCORRECTABLE, 0, 8, OK, "NVM 3.2.7")];

#[test]
fn io_commands_end_as_specified() {
    check(LISTED, 95);
}
