//! Identify (clause 5.17).

use ssdyno_spec::nvme::{IndependentNamespace, NvmeStatus, admin, cns};
use zerocopy::{FromBytes, IntoBytes};

use super::{EVERY, FIELD, NAMESPACE, OK, Row, check, controller};
use crate::support::{DATA, identify as command};

const fn identify(cns: u8, nsid: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    Row::admin(admin::IDENTIFY, nsid, ends, clause).dword(10, cns as u32)
}
/// With CSI, the I/O command set: 0 NVM, 1 key value, 2 zoned.
const fn of_set(cns: u8, csi: u32, nsid: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    identify(cns, nsid, ends, clause).dword(11, csi << 24)
}
/// With CNTID, the first controller of a list.
const fn from(cns: u8, controller: u32, nsid: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    Row::admin(admin::IDENTIFY, nsid, ends, clause).dword(10, controller << 16 | cns as u32)
}

const LISTED: &[Row] = &[
    // Identify namespace: zeroes for what could be there and is not.
    identify(0x00, 1, OK, "NVM 4.1.5.1"),
    identify(0x00, 2, OK, "NVM 4.1.5.1"),
    identify(0x00, 3, OK, "NVM 4.1.5.1"),
    identify(0x00, 8, OK, "NVM 4.1.5.1"),
    identify(0x00, EVERY, OK, "NVM 4.1.5.1"),
    identify(0x00, 0, NAMESPACE, "figure 87"),
    identify(0x00, 9, NAMESPACE, "figure 87"),
    identify(0x00, EVERY - 1, NAMESPACE, "figure 87"),
    identify(0x01, 0, OK, "5.17.2.1"),
    // Active namespaces above an identifier.
    identify(0x02, 0, OK, "5.17.2.2"),
    identify(0x02, 1, OK, "5.17.2.2"),
    identify(0x02, 9, OK, "5.17.2.2"),
    identify(0x02, EVERY - 2, OK, "5.17.2.2"),
    identify(0x02, EVERY - 1, NAMESPACE, "5.17.2.2"),
    identify(0x02, EVERY, NAMESPACE, "5.17.2.2"),
    // Identification descriptors: of an active namespace.
    identify(0x03, 1, OK, "5.17.2.3"),
    identify(0x03, 3, FIELD, "figure 87"),
    identify(0x03, 4, FIELD, "figure 87"),
    identify(0x03, 0, NAMESPACE, "figure 87"),
    identify(0x03, 9, NAMESPACE, "figure 87"),
    identify(0x03, EVERY, FIELD, "figure 87"),
    // There are no NVM sets (CTRATT bit 2).
    identify(0x04, 0, FIELD, "5.17.2.4"),
    of_set(0x05, 0, 1, OK, "5.17.2.5"),
    of_set(0x05, 0, 2, OK, "5.17.2.5"),
    of_set(0x05, 0, 3, OK, "5.17.2.5"),
    of_set(0x05, 0, 5, OK, "5.17.2.5"),
    of_set(0x05, 0, EVERY, OK, "5.17.2.5"),
    of_set(0x05, 0, 0, NAMESPACE, "figure 87"),
    of_set(0x05, 0, 9, NAMESPACE, "figure 87"),
    of_set(0x05, 1, 1, FIELD, "5.17.2.5"),
    of_set(0x05, 2, 1, FIELD, "5.17.2.5"),
    of_set(0x06, 0, 0, OK, "5.17.2.6"),
    of_set(0x06, 1, 0, FIELD, "5.17.2.6"),
    of_set(0x06, 2, 0, FIELD, "5.17.2.6"),
    of_set(0x07, 0, 0, OK, "5.17.2.7"),
    of_set(0x07, 0, 1, OK, "5.17.2.7"),
    of_set(0x07, 0, EVERY - 2, OK, "5.17.2.7"),
    of_set(0x07, 0, EVERY - 1, NAMESPACE, "5.17.2.7"),
    of_set(0x07, 0, EVERY, NAMESPACE, "5.17.2.7"),
    of_set(0x07, 2, 0, FIELD, "5.17.2.7"),
    of_set(0x07, 0xff, 0, FIELD, "5.17.2.7"),
    identify(0x08, 1, OK, "5.17.2.8"),
    identify(0x08, 2, OK, "5.17.2.8"),
    identify(0x08, 3, OK, "5.17.2.8"),
    identify(0x08, 8, OK, "5.17.2.8"),
    identify(0x08, EVERY, OK, "5.17.2.8"),
    identify(0x08, 0, NAMESPACE, "figure 87"),
    identify(0x08, 9, NAMESPACE, "figure 87"),
    // Allocated namespaces, attached or not.
    identify(0x10, 0, OK, "5.17.2.9"),
    identify(0x10, 3, OK, "5.17.2.9"),
    identify(0x10, EVERY - 1, NAMESPACE, "5.17.2.9"),
    identify(0x10, EVERY, NAMESPACE, "5.17.2.9"),
    identify(0x11, 1, OK, "5.17.2.10"),
    identify(0x11, 3, OK, "5.17.2.10"),
    identify(0x11, 4, OK, "5.17.2.10"),
    identify(0x11, 0, NAMESPACE, "5.17.2.10"),
    identify(0x11, 9, NAMESPACE, "5.17.2.10"),
    identify(0x11, EVERY, NAMESPACE, "5.17.2.10"),
    from(0x12, 0, 1, OK, "5.17.2.11"),
    from(0x12, 0, 3, OK, "5.17.2.11"),
    from(0x12, 2, 1, OK, "5.17.2.11"),
    from(0x12, 0, 4, FIELD, "figure 87"),
    from(0x12, 0, 0, NAMESPACE, "figure 87"),
    from(0x12, 0, 9, NAMESPACE, "figure 87"),
    from(0x12, 0, EVERY, FIELD, "5.17.2.11"),
    from(0x13, 0, 0, OK, "5.17.2.12"),
    from(0x13, 0xffff, 0, OK, "5.17.2.12"),
    // No virtualization, granularity, UUIDs, domains, endurance groups, several command sets.
    identify(0x14, 0, FIELD, "figure 274"),
    identify(0x15, 0, FIELD, "figure 274"),
    identify(0x16, 0, FIELD, "figure 274"),
    identify(0x17, 0, FIELD, "figure 274"),
    identify(0x18, 0, FIELD, "figure 274"),
    identify(0x19, 0, FIELD, "figure 274"),
    of_set(0x1a, 0, 0, OK, "figure 274"),
    of_set(0x1a, 0, EVERY - 1, NAMESPACE, "figure 274"),
    of_set(0x1a, 0, EVERY, NAMESPACE, "figure 274"),
    of_set(0x1a, 2, 0, FIELD, "figure 274"),
    of_set(0x1b, 0, 1, OK, "figure 274"),
    of_set(0x1b, 0, 3, OK, "figure 274"),
    of_set(0x1b, 0, 4, OK, "figure 274"),
    of_set(0x1b, 0, 0, NAMESPACE, "figure 274"),
    of_set(0x1b, 0, EVERY, NAMESPACE, "figure 274"),
    of_set(0x1b, 1, 1, FIELD, "figure 274"),
    identify(0x1c, 0, FIELD, "figure 274"),
    // Reserved, and of vendors.
    identify(0x09, 0, FIELD, "figure 274"),
    identify(0x0f, 0, FIELD, "figure 274"),
    identify(0x1d, 0, FIELD, "figure 274"),
    identify(0x7f, 0, FIELD, "figure 274"),
    identify(0xff, 0, FIELD, "figure 274"),
    // Data pointers.
    identify(0x01, 0, NvmeStatus::PRP_OFFSET_INVALID, "4.1.1").offset(2),
    identify(0x01, 0, FIELD, "figure 86").flags(0x40),
    identify(0x01, 0, FIELD, "figure 86").flags(1),
];

#[test]
fn identify_ends_as_specified() {
    check(LISTED, 92);
}

/// Base 2.0c, clauses 5.17.2.7 and 5.17.2.8, figure 280: the content of the structures.
#[test]
fn structures_of_version_2_0() {
    let mut host = controller("2.0");
    let mut words = |what: u8, nsid: u32| {
        host.data(DATA, 4096).fill(0xee);
        assert_eq!(host.admin(command(what, nsid)).status(), OK, "CNS {what:#x} of {nsid:#x}");
        <[u32; 1024]>::read_from_bytes(host.data(DATA, 4096)).unwrap()
    };
    let lists = [cns::ACTIVE_NAMESPACES_OF_COMMAND_SET, cns::ALLOCATED_NAMESPACES_OF_COMMAND_SET];
    for list in lists {
        assert_eq!(words(list, 0)[..3], [1, 2, 0]);
        assert_eq!(words(list, 1)[..2], [2, 0]);
    }
    let mut of = |nsid| {
        let words = words(cns::INDEPENDENT_NAMESPACE, nsid);
        IndependentNamespace::read_from_bytes(words.as_bytes()).unwrap()
    };
    assert_eq!(of(1).status, IndependentNamespace::READY);
    // Nothing is shared, reserved or grouped.
    let IndependentNamespace { features, sharing, reservations, access_group, .. } = of(2);
    assert_eq!((features, sharing, reservations, access_group.get()), (0, 0, 0, 0));
    assert_eq!(of(4).status, 0, "not active: all zero");
}
