//! A controller neither announces nor takes what the version that it reports lacks.

use ssdyno_spec::nvme::registers;
use ssdyno_spec::nvme::{IdentifyController, IdentifyNamespace, NvmeStatus, admin, cns, nvm};
use zerocopy::FromBytes;

use super::{Data, EVERY, FIELD, OK, OPCODE, Row, controller};
use crate::support::{DATA, FixedTime, Host, identify};

const NO_PAGE: NvmeStatus = NvmeStatus::LOG_PAGE_INVALID;
/// All versions, oldest first.
const VERSIONS: [&str; 6] = ["1.0", "1.1", "1.2", "1.3", "1.4", "2.0"];

const fn command(opcode: u8, nsid: u32) -> Row {
    Row::admin(opcode, nsid, OK, "5")
}
const fn structure(cns: u32, nsid: u32) -> Row {
    command(admin::IDENTIFY, nsid).dword(10, cns)
}
const fn page(id: u32) -> Row {
    command(admin::GET_LOG_PAGE, EVERY).dword(10, 127 << 16 | id)
}
const fn get(id: u32, nsid: u32) -> Row {
    command(admin::GET_FEATURES, nsid).dword(10, id)
}
const fn set(id: u32, value: u32, nsid: u32) -> Row {
    command(admin::SET_FEATURES, nsid).dword(10, id).dword(11, value)
}

/// The command, its first version, and the refusal by earlier versions.
const CAME: &[(Row, &str, NvmeStatus)] = &[
    (Row::io(nvm::READ, 1, OK, "NVM 3.2.4"), "1.0", OPCODE),
    (Row::io(nvm::FLUSH, 1, OK, "7.1"), "1.0", OPCODE),
    (Row::io(nvm::COMPARE, 1, OK, "NVM 3.2.1"), "1.0", OPCODE),
    (Row::io(nvm::WRITE_UNCORRECTABLE, 1, OK, "NVM 3.2.7"), "1.0", OPCODE),
    (Row::io(nvm::DATASET_MANAGEMENT, 1, OK, "NVM 3.2.3"), "1.0", OPCODE),
    (Row::io(nvm::WRITE_ZEROES, 1, OK, "NVM 3.2.8"), "1.1", OPCODE),
    (Row::io(nvm::VERIFY, 1, OK, "NVM 3.2.5"), "1.4", OPCODE),
    (command(admin::FORMAT_NVM, 1), "1.0", OPCODE),
    (command(admin::ABORT, 0), "1.0", OPCODE),
    (command(admin::NAMESPACE_MANAGEMENT, 2).dword(10, 1), "1.2", OPCODE),
    (
        command(admin::NAMESPACE_ATTACHMENT, 2).dword(10, 1).with(Data::Words(&[1, 1])),
        "1.2",
        OPCODE,
    ),
    (command(admin::KEEP_ALIVE, 0), "1.2", OPCODE),
    (command(admin::SANITIZE, 0).dword(10, 2), "1.3", OPCODE),
    (structure(0x00, 1), "1.0", FIELD),
    (structure(0x01, 0), "1.0", FIELD),
    (structure(0x02, 0), "1.1", FIELD),
    (structure(0x03, 1), "1.3", FIELD),
    (structure(0x05, 1), "2.0", FIELD),
    (structure(0x06, 0), "2.0", FIELD),
    (structure(0x07, 0), "2.0", FIELD),
    (structure(0x08, 1), "2.0", FIELD),
    (structure(0x10, 0), "1.2", FIELD),
    (structure(0x11, 1), "1.2", FIELD),
    (structure(0x12, 1), "1.2", FIELD),
    (structure(0x13, 0), "1.2", FIELD),
    (structure(0x1a, 0), "2.0", FIELD),
    (structure(0x1b, 1), "2.0", FIELD),
    // What all namespaces have in common came with Namespace Management.
    (structure(0x00, EVERY), "1.2", NvmeStatus::INVALID_NAMESPACE),
    (page(0x00), "2.0", NO_PAGE),
    (page(0x01), "1.0", NO_PAGE),
    (page(0x02), "1.0", NO_PAGE),
    (page(0x03), "1.0", NO_PAGE),
    (page(0x04), "1.2", NO_PAGE),
    (page(0x05), "1.2", NO_PAGE),
    (page(0x12), "2.0", NO_PAGE),
    (page(0x13), "2.0", NO_PAGE),
    (page(0x81), "1.3", NO_PAGE),
    (page(0x02).dword(12, 4), "1.2", FIELD),
    (get(0x01, 0), "1.0", FIELD),
    (get(0x02, 0), "1.0", FIELD),
    (get(0x03, 1), "1.0", FIELD),
    (get(0x04, 0), "1.0", FIELD),
    (get(0x05, 1), "1.0", FIELD),
    (get(0x07, 0), "1.0", FIELD),
    (get(0x08, 0), "1.0", FIELD),
    (get(0x09, 0), "1.0", FIELD),
    (get(0x0a, 0), "1.0", FIELD),
    (get(0x0b, 0), "1.0", FIELD),
    (get(0x0c, 0), "1.1", FIELD),
    (set(0x0c, 1, 0), "1.1", FIELD),
    (get(0x0f, 0), "1.2", FIELD),
    (set(0x0f, 0, 0), "1.2", FIELD),
    (get(0x16, 0), "1.4", FIELD),
    (set(0x16, 0, 0), "1.4", FIELD),
    // SEL, a default value; an under temperature; a state without commands.
    (get(1 << 8 | 0x01, 0), "1.1", FIELD),
    (set(0x04, 1 << 20 | 300, 0), "1.2", FIELD),
    (set(0x02, 1, 0), "1.0", FIELD),
    (set(0x02, 2, 0), "1.1", FIELD),
];

#[test]
fn what_a_version_lacks_is_refused() {
    let mut wrong = Vec::new();
    for (row, since, refused) in CAME {
        for version in VERSIONS {
            let expected = if version >= *since { OK } else { *refused };
            let status = row.end(&mut controller(version));
            if status != expected {
                wrong.push(format!("{version}: {status:x?}, not {expected:x?}: {row:x?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Commands that fail in every version, the status code that says why, and the version with which the code
/// came: earlier ones say *invalid field in command*. (Figures 31 and 32 of 1.1 and of 1.2.)
const CODES: &[(Row, NvmeStatus, &str)] = &[
    (Row::io(nvm::READ, 1, OK, "4.1.1").offset(1), NvmeStatus::PRP_OFFSET_INVALID, "1.2"),
    (structure(0x01, 0).offset(2), NvmeStatus::PRP_OFFSET_INVALID, "1.2"),
    (set(0x01, 0, 1), NvmeStatus::FEATURE_NOT_NAMESPACE_SPECIFIC, "1.1"),
    (set(1 << 31 | 0x01, 0, 0), NvmeStatus::FEATURE_NOT_SAVEABLE, "1.1"),
    (
        set(0x03, 1, 1).with(Data::RangeTypes(&[(0, 8), (7, 1)])),
        NvmeStatus::OVERLAPPING_RANGE,
        "1.2",
    ),
];

#[test]
fn status_codes_are_those_of_the_version() {
    let mut wrong = Vec::new();
    for (row, code, since) in CODES {
        for version in VERSIONS {
            let expected = if version >= *since { *code } else { FIELD };
            let mut host = controller(version);
            let status = row.end(&mut host);
            // The error log says the same.
            let logged = page(0x01).end(&mut host);
            let entry = host.data(DATA, 64);
            let in_log = NvmeStatus::from_bits(u16::from_le_bytes([entry[12], entry[13]]) >> 1);
            if (status, logged, in_log.kind()) != (expected, OK, expected) {
                wrong.push(format!("{version}: {status:x?}, not {expected:x?}: {row:x?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn read<T: FromBytes>(host: &mut Host<FixedTime>, what: u8, nsid: u32) -> T {
    assert_eq!(host.admin(identify(what, nsid)).status(), OK);
    T::read_from_bytes(host.data(DATA, 4096)).unwrap()
}

/// A field of Identify controller, or several.
type Field = fn(&IdentifyController) -> u128;

/// Fields that some version brought: name, version, how they are read; zero before. Base 2.0c, figure 275.
const CONTROLLER_FIELDS: &[(&str, &str, Field)] = &[
    ("VID", "1.0", |id| id.vendor.get().into()),
    ("MDTS", "1.0", |id| id.max_transfer.into()),
    ("OACS Format NVM", "1.0", |id| (id.admin_commands.get() & 1 << 1).into()),
    ("ONCS Compare", "1.0", |id| (id.nvm_commands.get() & 1).into()),
    ("ONCS Write Uncorrectable", "1.0", |id| (id.nvm_commands.get() & 1 << 1).into()),
    ("ONCS Dataset Management", "1.0", |id| (id.nvm_commands.get() & 1 << 2).into()),
    ("FRMW", "1.0", |id| id.firmware_updates.into()),
    ("NN", "1.0", |id| id.namespaces.get().into()),
    ("CNTLID", "1.1", |id| id.controller_id.get().into()),
    ("APSTA", "1.1", |id| id.autonomous_power.into()),
    ("NPSS beyond 1", "1.1", |id| (id.power_states & 2).into()),
    ("PSD2 NOPS", "1.1", |id| id.power_state[2].flags.into()),
    ("ONCS Write Zeroes", "1.1", |id| (id.nvm_commands.get() & 1 << 3).into()),
    ("ONCS Save and Select", "1.1", |id| (id.nvm_commands.get() & 1 << 4).into()),
    ("VER", "1.2", |id| id.version.get().into()),
    ("OAES namespace attributes", "1.2", |id| (id.asynchronous_events.get() & 1 << 8).into()),
    ("OACS Namespace Management", "1.2", |id| (id.admin_commands.get() & 1 << 3).into()),
    ("LPA command effects", "1.2", |id| (id.log_attributes & 1 << 1).into()),
    ("LPA offset", "1.2", |id| (id.log_attributes & 1 << 2).into()),
    ("WCTEMP", "1.2", |id| id.warning_temperature.get().into()),
    ("CCTEMP", "1.2", |id| id.critical_temperature.get().into()),
    ("TNVMCAP", "1.2", |id| id.total_capacity.get()),
    ("UNVMCAP", "1.2", |id| id.unallocated_capacity.get()),
    ("KAS", "1.2", |id| id.keep_alive.get().into()),
    ("SUBNQN", "1.2", |id| id.subsystem_name[0].into()),
    ("SANICAP", "1.3", |id| (id.sanitize.get() & 7).into()),
    ("SANICAP NODMMAS", "1.4", |id| (id.sanitize.get() >> 30).into()),
    ("CNTRLTYPE", "1.4", |id| id.controller_type.into()),
    ("ONCS Verify", "1.4", |id| (id.nvm_commands.get() & 1 << 7).into()),
    ("VWC bits 2:1", "1.4", |id| (id.volatile_write_cache & 6).into()),
    ("LPA pages of 2.0", "2.0", |id| (id.log_attributes & 1 << 5).into()),
];

#[test]
fn what_a_version_lacks_is_not_announced() {
    for version in VERSIONS {
        let mut host = controller(version);
        let id: IdentifyController = read(&mut host, cns::CONTROLLER, 0);
        for (name, since, field) in CONTROLLER_FIELDS {
            assert_eq!(field(&id) != 0, version >= *since, "{name} in {version}");
        }
        // Unannounced bits are zero: OACS, ONCS and LPA have no other bits than those above.
        let rest = (id.admin_commands.get() & !0x0a, id.nvm_commands.get() & !0x9f);
        assert_eq!((rest, id.log_attributes & !0x26), ((0, 0), 0), "{version}");
        let namespace: IdentifyNamespace = read(&mut host, cns::NAMESPACE, 2);
        for (name, since, there) in [
            ("NSZE", "1.0", namespace.size.get() != 0),
            ("EUI64", "1.1", namespace.eui64 != [0; 8]),
            ("NVMCAP", "1.2", namespace.nvm_capacity.get() != 0),
            ("NGUID", "1.2", namespace.guid != [0; 16]),
            ("DLFEAT", "1.3", namespace.deallocate != 0),
            ("NSFEAT bit 4", "1.4", namespace.features != 0),
        ] {
            assert_eq!(there, version >= since, "{name} in {version}");
        }
        let one: IdentifyNamespace = read(&mut host, cns::NAMESPACE, 1);
        assert_eq!(one.write_granularity.get() != 0, version >= "1.4", "NPWG in {version}");
    }
}

/// Base 2.0c, clauses 3.1.3.1, 3.1.3.2 and 3.1.3.7: registers.
#[test]
fn registers_are_those_of_the_version() {
    for version in VERSIONS {
        let mut host = controller(version);
        let capabilities = host.read(registers::CAP + 4);
        let (major, minor) = version.split_once('.').unwrap();
        let register = major.parse::<u32>().unwrap() << 16 | minor.parse::<u32>().unwrap() << 8;
        assert_eq!(host.read(registers::VS), register);
        assert_eq!(capabilities >> 4 & 1 == 1, version >= "1.1", "CAP.NSSRS in {version}");
        assert_eq!(capabilities >> 27 & 1 == 1, version >= "2.0", "CAP.CRMS in {version}");
        assert_eq!(host.read(registers::CRTO) != 0, version >= "2.0", "CRTO in {version}");
        host.write(registers::NSSR, registers::NSSR_RESET);
        let reset = host.read(registers::CSTS) & registers::CSTS_READY == 0;
        assert_eq!(reset, version >= "1.1", "NSSR in {version}");
    }
}

/// Identification descriptors name the I/O command set since there are several (clause 5.17.2.3).
#[test]
fn identification_descriptors_grow_with_the_version() {
    for (version, kinds) in [("1.3", &[1, 2][..]), ("1.4", &[1, 2]), ("2.0", &[1, 2, 4])] {
        let mut host = controller(version);
        let list: [u8; 4096] = read(&mut host, cns::NAMESPACE_DESCRIPTORS, 1);
        let (mut found, mut at) = (Vec::new(), 0);
        while list[at] != 0 {
            found.push(list[at]);
            at += 4 + usize::from(list[at + 1]);
        }
        assert_eq!(found, kinds, "{version}");
    }
}

/// Error recovery was the controller's before it was each namespace's (NVM 1.0c, clause 4.1.3.2).
#[test]
fn error_recovery_was_the_controllers() {
    for version in ["1.0", "1.1"] {
        let mut host = controller(version);
        for nsid in [0, 1, EVERY] {
            assert_eq!(set(0x05, 7 + nsid.min(9), nsid).end(&mut host), OK);
            assert_eq!(host.admin(crate::support::get_feature(0x05)).dword0.get(), 7 + nsid.min(9));
        }
    }
}
