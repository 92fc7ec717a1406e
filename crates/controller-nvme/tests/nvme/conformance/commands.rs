//! Admin commands but for Identify, features and log pages (clause 5).

use ssdyno_spec::nvme::{NvmeStatus, admin};

use super::{Data, EVERY, FIELD, NAMESPACE, OK, OPCODE, Row, check};

const QUEUE_ID: NvmeStatus = NvmeStatus::QUEUE_ID_INVALID;
const QUEUE_SIZE: NvmeStatus = NvmeStatus::QUEUE_SIZE_INVALID;
const PRP_OFFSET: NvmeStatus = NvmeStatus::PRP_OFFSET_INVALID;
const FORMAT: NvmeStatus = NvmeStatus::FORMAT_INVALID;
const LIST: NvmeStatus = NvmeStatus::CONTROLLER_LIST_INVALID;

/// A completion queue of `entries`; `dword11`: vector, interrupts, in one piece.
const fn completion(id: u32, entries: u32, dword11: u32, ends: NvmeStatus) -> Row {
    let row = Row::admin(admin::CREATE_COMPLETION_QUEUE, 0, ends, "5.4");
    row.dword(10, (entries - 1) << 16 | id).dword(11, dword11)
}
/// A submission queue of `entries`; `dword11`: completion queue, class, in one piece.
const fn submission(id: u32, entries: u32, dword11: u32, ends: NvmeStatus) -> Row {
    let row = Row::admin(admin::CREATE_SUBMISSION_QUEUE, 0, ends, "5.5");
    row.dword(10, (entries - 1) << 16 | id).dword(11, dword11)
}
const fn delete(opcode: u8, id: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    Row::admin(opcode, 0, ends, clause).dword(10, id)
}
const fn abort(queue: u32, command: u32) -> Row {
    Row::admin(admin::ABORT, 0, OK, "5.1").dword(10, command << 16 | queue)
}
/// Namespace Management, create.
const fn create(size: u64, capacity: u64, format: u8, ends: NvmeStatus) -> Row {
    let row = Row::admin(admin::NAMESPACE_MANAGEMENT, 0, ends, "5.23");
    row.with(Data::Create(size, capacity, format))
}
/// Namespace Management, any other.
const fn manage(select: u32, nsid: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    Row::admin(admin::NAMESPACE_MANAGEMENT, nsid, ends, clause).dword(10, select)
}
/// Namespace Attachment: 0 attach, 1 detach; the list of controllers.
const fn attach(select: u32, nsid: u32, list: &'static [u16], ends: NvmeStatus) -> Row {
    let row = Row::admin(admin::NAMESPACE_ATTACHMENT, nsid, ends, "5.22");
    row.dword(10, select).with(Data::Words(list))
}
const fn format(nsid: u32, dword10: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    Row::admin(admin::FORMAT_NVM, nsid, ends, clause).dword(10, dword10)
}
const fn sanitize(nsid: u32, dword10: u32, ends: NvmeStatus) -> Row {
    Row::admin(admin::SANITIZE, nsid, ends, "5.24").dword(10, dword10)
}
const fn unknown(opcode: u8) -> Row {
    Row::admin(opcode, 0, OPCODE, "figure 138")
}

/// In one piece; with interrupts.
const PC: u32 = 1;
const IEN: u32 = 2;
/// The only controller.
const ONE: &[u16] = &[1, 1];

const QUEUES: &[Row] = &[
    completion(2, 8, PC, OK),
    completion(2, 8, 2 << 16 | IEN | PC, OK),
    completion(2, 2, PC, OK),
    completion(0, 8, PC, QUEUE_ID),
    completion(1, 8, PC, QUEUE_ID),
    completion(5, 8, PC, QUEUE_ID),
    completion(0xffff, 8, PC, QUEUE_ID),
    completion(2, 1, PC, QUEUE_SIZE),
    completion(2, 1025, PC, QUEUE_SIZE),
    completion(2, 8, 0, FIELD),
    completion(2, 8, 99 << 16 | IEN | PC, NvmeStatus::INTERRUPT_VECTOR_INVALID),
    completion(2, 8, PC, PRP_OFFSET).offset(4),
    submission(2, 8, 1 << 16 | PC, OK),
    submission(2, 8, 1 << 16 | 3 << 1 | PC, OK),
    submission(0, 8, 1 << 16 | PC, QUEUE_ID),
    submission(1, 8, 1 << 16 | PC, QUEUE_ID),
    submission(5, 8, 1 << 16 | PC, QUEUE_ID),
    submission(2, 8, PC, QUEUE_ID),
    submission(2, 8, 5 << 16 | PC, QUEUE_ID),
    submission(2, 8, 2 << 16 | PC, NvmeStatus::COMPLETION_QUEUE_INVALID),
    submission(2, 1, 1 << 16 | PC, QUEUE_SIZE),
    submission(2, 1025, 1 << 16 | PC, QUEUE_SIZE),
    submission(2, 8, 1 << 16, FIELD),
    submission(2, 8, 1 << 16 | PC, PRP_OFFSET).offset(8),
    delete(admin::DELETE_SUBMISSION_QUEUE, 1, OK, "5.7"),
    delete(admin::DELETE_SUBMISSION_QUEUE, 0, QUEUE_ID, "5.7"),
    delete(admin::DELETE_SUBMISSION_QUEUE, 2, QUEUE_ID, "5.7"),
    delete(admin::DELETE_SUBMISSION_QUEUE, 0xffff, QUEUE_ID, "5.7"),
    delete(admin::DELETE_COMPLETION_QUEUE, 0, QUEUE_ID, "5.6"),
    delete(admin::DELETE_COMPLETION_QUEUE, 2, QUEUE_ID, "5.6"),
    delete(admin::DELETE_COMPLETION_QUEUE, 1, NvmeStatus::QUEUE_DELETION_INVALID, "5.6"),
    delete(admin::DELETE_COMPLETION_QUEUE, 1, OK, "5.6").after(GONE),
];
const GONE: &[Row] = &[delete(admin::DELETE_SUBMISSION_QUEUE, 1, OK, "5.7")];

const NAMESPACES: &[Row] = &[
    create(8, 8, 0, OK),
    create(8, 8, 1, OK),
    // There is no thin provisioning.
    create(16, 8, 0, NvmeStatus::THIN_PROVISIONING_NOT_SUPPORTED),
    create(u64::MAX, 8, 0, NvmeStatus::THIN_PROVISIONING_NOT_SUPPORTED),
    create(8, 16, 0, FIELD),
    create(0, 0, 0, FIELD),
    create(1 << 40, 1 << 40, 0, NvmeStatus::NAMESPACE_INSUFFICIENT_CAPACITY),
    create(8, 8, 2, FORMAT),
    create(8, 8, 0xf, FORMAT),
    create(8, 8, 1 << 5, FORMAT),
    create(8, 8, 0, NvmeStatus::COMMAND_SET_NOT_SUPPORTED).dword(11, 1 << 24),
    create(8, 8, 0, NvmeStatus::COMMAND_SET_NOT_SUPPORTED).dword(11, 2 << 24),
    create(8, 8, 0, NvmeStatus::NAMESPACE_ID_UNAVAILABLE).after(FULL),
    manage(1, 1, OK, "5.23"),
    manage(1, 3, OK, "5.23"),
    manage(1, EVERY, OK, "5.23"),
    manage(1, 4, FIELD, "figure 87"),
    manage(1, 0, NAMESPACE, "figure 87"),
    manage(1, 9, NAMESPACE, "figure 87"),
    manage(2, 0, FIELD, "5.23"),
    manage(15, 0, FIELD, "5.23"),
    attach(0, 3, ONE, OK),
    attach(1, 1, ONE, OK),
    attach(0, 1, ONE, NvmeStatus::NAMESPACE_ALREADY_ATTACHED),
    attach(1, 3, ONE, NvmeStatus::NAMESPACE_NOT_ATTACHED),
    attach(0, 3, &[0], LIST),
    attach(0, 3, &[1, 2], LIST),
    attach(0, 3, &[2, 1, 2], LIST),
    attach(0, 3, &[2048, 1], LIST),
    attach(0, 4, ONE, FIELD),
    attach(0, 0, ONE, NAMESPACE),
    attach(0, 9, ONE, NAMESPACE),
    attach(0, EVERY, ONE, FIELD),
    attach(2, 3, ONE, FIELD),
    attach(15, 3, ONE, FIELD),
    format(1, 0, OK, "5.14"),
    format(1, 1, OK, "5.14"),
    format(1, 1 << 9, OK, "5.14"),
    format(EVERY, 0, OK, "5.14"),
    format(1, 2, FORMAT, "5.14"),
    format(1, 15, FORMAT, "5.14"),
    format(1, 1 << 12, FORMAT, "5.14"),
    // Metadata and protection information.
    format(1, 1 << 4, FORMAT, "5.14"),
    format(1, 1 << 5, FORMAT, "5.14"),
    format(1, 3 << 5, FORMAT, "5.14"),
    // Cryptographic erase is not offered (FNA bit 2); the rest is reserved.
    format(1, 2 << 9, FIELD, "5.14"),
    format(1, 3 << 9, FIELD, "5.14"),
    format(1, 7 << 9, FIELD, "5.14"),
    format(3, 0, FIELD, "figure 87"),
    format(4, 0, FIELD, "figure 87"),
    format(0, 0, NAMESPACE, "figure 87"),
    format(9, 0, NAMESPACE, "figure 87"),
];
const FULL: &[Row] =
    &[create(8, 8, 0, OK), create(8, 8, 0, OK), create(8, 8, 0, OK), create(8, 8, 0, OK), LAST];
const LAST: Row = create(8, 8, 0, OK);

const OTHERS: &[Row] = &[
    abort(1, 7),
    abort(0, 7),
    abort(4, 7),
    abort(0xffff, 0xffff),
    Row::admin(admin::KEEP_ALIVE, 0, OK, "5.18"),
    // Optional commands that are not offered (OACS), fabrics, reserved, vendors'.
    unknown(0x03),
    unknown(0x07),
    unknown(0x0b),
    unknown(0x10),
    unknown(0x11),
    unknown(0x14),
    unknown(0x19),
    unknown(0x1a),
    unknown(0x1c),
    unknown(0x1d),
    unknown(0x1e),
    unknown(0x20),
    unknown(0x24),
    unknown(0x7c),
    unknown(0x7f),
    unknown(0x81),
    unknown(0x82),
    unknown(0x86),
    unknown(0x86),
    unknown(0xc0),
    unknown(0xff),
];

const SANITIZE: &[Row] = &[
    // Leave a failure mode that there is not; block erase, overwrite, crypto erase.
    sanitize(0, 1, OK),
    sanitize(0, 2, OK),
    sanitize(0, 3, OK),
    sanitize(0, 4, OK),
    sanitize(EVERY, 2, OK),
    // Reserved actions.
    sanitize(0, 0, FIELD),
    sanitize(0, 5, FIELD),
    sanitize(0, 6, FIELD),
    sanitize(0, 7, FIELD),
    // It is for the whole subsystem.
    sanitize(1, 2, FIELD),
    sanitize(3, 2, FIELD),
    sanitize(9, 2, FIELD),
    // AUSE; passes; inverted between them; no deallocation; each where it means nothing, too.
    sanitize(0, 1 << 3 | 2, OK),
    sanitize(0, 1 << 3 | 1, OK),
    sanitize(0, 15 << 4 | 3, OK),
    sanitize(0, 15 << 4 | 2, OK),
    sanitize(0, 1 << 8 | 2 << 4 | 3, OK),
    sanitize(0, 1 << 8 | 4, OK),
    sanitize(0, 1 << 9 | 2, OK),
    sanitize(0, 1 << 9 | 1 << 4 | 3, OK),
    sanitize(0, 1 << 9 | 4, OK),
    sanitize(0, 1 << 9 | 1, OK),
    sanitize(0, 1 << 4 | 3, OK).dword(11, 0xdead_beef),
    // Once more, after it has ended; what it leaves can be used.
    sanitize(0, 4, OK).after(&[sanitize(0, 2, OK)]),
    format(1, 0, OK, "5.14").after(&[sanitize(0, 2, OK)]),
    sanitize(0, 2, FIELD).flags(0x80),
];

#[test]
fn sanitize_ends_as_specified() {
    check(SANITIZE, 26);
}

#[test]
fn queue_commands_end_as_specified() {
    check(QUEUES, 32);
}

#[test]
fn namespace_commands_end_as_specified() {
    check(NAMESPACES, 52);
}

#[test]
fn other_admin_commands_end_as_specified() {
    check(OTHERS, 26);
}
