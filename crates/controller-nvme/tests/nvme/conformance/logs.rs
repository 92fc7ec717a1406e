//! Get Log Page (clause 5.16).

use ssdyno_spec::nvme::{NvmeStatus, admin};

use super::{EVERY, FIELD, OK, Row, check};

const NO_PAGE: NvmeStatus = NvmeStatus::LOG_PAGE_INVALID;

/// `bytes` of page `id`.
const fn log(id: u8, bytes: u32, nsid: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    let dwords = bytes / 4 - 1;
    let row = Row::admin(admin::GET_LOG_PAGE, nsid, ends, clause);
    row.dword(10, id as u32 | (dwords & 0xffff) << 16).dword(11, dwords >> 16)
}
/// From byte `offset` on.
const fn at(id: u8, offset: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    log(id, 64, EVERY, ends, clause).dword(12, offset)
}

const LISTED: &[Row] = &[
    log(0x00, 1024, 0, OK, "5.16.1.1"),
    log(0x01, 64, 0, OK, "5.16.1.2"),
    log(0x01, 4096, EVERY, OK, "5.16.1.2"),
    log(0x02, 512, 0, OK, "5.16.1.3"),
    log(0x02, 512, EVERY, OK, "5.16.1.3"),
    log(0x03, 512, 0, OK, "5.16.1.4"),
    log(0x04, 4096, 0, OK, "5.16.1.5"),
    log(0x04, 4096, EVERY, OK, "5.16.1.5"),
    log(0x05, 4096, 0, OK, "5.16.1.6"),
    log(0x12, 1024, 0, OK, "5.16.1.18"),
    log(0x13, 4096, 0, OK, "5.16.1.19"),
    log(0x13, 512, EVERY, OK, "5.16.1.19"),
    log(0x81, 512, 0, OK, "5.16.1.25"),
    log(0x81, 512, EVERY, OK, "5.16.1.25"),
    log(0x81, 512, 1, FIELD, "5.16.1.25"),
    // Health is the controller's (LPA bit 0), not a namespace's.
    log(0x02, 512, 1, FIELD, "5.16.1.3"),
    log(0x02, 512, 9, FIELD, "5.16.1.3"),
    // Pages that are not offered.
    log(0x06, 564, 0, NO_PAGE, "figure 202"),
    log(0x07, 512, 0, NO_PAGE, "figure 202"),
    log(0x08, 512, 0, NO_PAGE, "figure 202"),
    log(0x09, 512, 0, NO_PAGE, "figure 202"),
    log(0x0a, 512, 0, NO_PAGE, "figure 202"),
    log(0x0b, 512, 0, NO_PAGE, "figure 202"),
    log(0x0c, 512, 0, NO_PAGE, "figure 202"),
    log(0x0d, 512, 0, NO_PAGE, "figure 202"),
    log(0x0e, 512, 0, NO_PAGE, "figure 202"),
    log(0x0f, 512, 0, NO_PAGE, "figure 202"),
    log(0x10, 512, 0, NO_PAGE, "figure 202"),
    log(0x11, 512, 0, NO_PAGE, "figure 202"),
    log(0x14, 512, 0, NO_PAGE, "figure 202"),
    log(0x15, 512, 0, NO_PAGE, "figure 202"),
    log(0x70, 512, 0, NO_PAGE, "figure 202"),
    log(0x80, 512, 0, NO_PAGE, "figure 202"),
    log(0xc0, 512, 0, NO_PAGE, "figure 202"),
    log(0xff, 512, 0, NO_PAGE, "figure 202"),
    // Offsets: whole dwords, not beyond the page, not of entries.
    at(0x02, 32, OK, "5.16"),
    at(0x02, 512, OK, "5.16"),
    at(0x02, 516, FIELD, "5.16"),
    at(0x02, 30, FIELD, "5.16"),
    at(0x01, 64, OK, "5.16"),
    log(0x02, 64, EVERY, FIELD, "5.16").dword(13, 1),
    log(0x02, 64, EVERY, FIELD, "5.16").dword(14, 1 << 23),
    // As much as a command may move (MDTS), and more.
    log(0x02, 8192, EVERY, OK, "5.16"),
    log(0x02, 64 << 10, EVERY, NvmeStatus::PRP_OFFSET_INVALID, "4.1.1").offset(1),
    log(0x02, (64 << 10) + 4, EVERY, FIELD, "figure 275"),
    log(0x02, 1 << 20, EVERY, FIELD, "figure 275"),
    log(0x02, 512, EVERY, FIELD, "figure 86").flags(0x80),
];

#[test]
fn log_pages_end_as_specified() {
    check(LISTED, 47);
}
