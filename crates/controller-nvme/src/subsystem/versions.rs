//! The features of each version of NVM Express. A controller neither announces nor takes what its
//! version lacks.
//!
//! One table for commands, structures, features, log pages and fields. Its clauses are those of base
//! 2.0c and NVM 1.0c (*NVM*), where each is defined today. A device file names versions to the minor
//! number: what came with 1.2.1 counts as 1.2.

use ssdyno_device::nvme::VERSIONS;
use ssdyno_spec::nvme::{NvmeStatus, admin, cns, feature, nvm, page};

/// A version of NVM Express, as register VS has it (base 2.0c, clause 3.1.3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Version(u32);

const V1_0: Version = Version(0x1_0000);
const V1_1: Version = Version(0x1_0100);
const V1_2: Version = Version(0x1_0200);
const V1_3: Version = Version(0x1_0300);
const V1_4: Version = Version(0x1_0400);
const V2_0: Version = Version(0x2_0000);

impl Version {
    /// The latest.
    pub(crate) const LATEST: Version = V2_0;

    /// The version that a device file names.
    pub(crate) fn parse(name: &str) -> Option<Version> {
        let at = VERSIONS.iter().position(|known| *known == name)?;
        [V1_0, V1_1, V1_2, V1_3, V1_4, V2_0].get(at).copied()
    }
    /// As register VS.
    pub(crate) fn register(self) -> u32 {
        self.0
    }
    /// `status` as this version says it: a code that came later is *invalid field in command*.
    pub(crate) fn status(self, status: NvmeStatus) -> NvmeStatus {
        // A host of an older version does not know the newer codes. Invalid Field is what that
        // version gave for the same mistake.
        let late = CODES.iter().any(|(code, since)| status.kind() == *code && self < *since);
        if late { NvmeStatus::INVALID_FIELD.with_do_not_retry() } else { status }
    }
    /// Whether this version has `part`; what the table does not name, no version here has.
    pub(crate) fn has(self, part: Part) -> bool {
        SINCE.iter().any(|row| row.0 == part && row.1 <= self)
    }
}

/// Something that a host can request or that the controller reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// An admin command, by opcode.
    Admin(u8),
    /// An I/O command, by opcode.
    Io(u8),
    /// A structure of Identify, by CNS.
    Identify(u8),
    /// A feature, by its identifier.
    Feature(u8),
    /// A log page, by its identifier.
    Log(u8),
    /// A field of a register, a structure or a command.
    Field(Field),
}

/// A field that not every version has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    /// CAP.NSSRS and register NSSR.
    SubsystemReset,
    /// CNTLID of Identify controller.
    ControllerId,
    /// NOPS and MXPS of a power state: states without I/O commands, powers in 0.1 mW.
    NonOperational,
    /// Bit SV of Set Features, SEL of Get Features, ONCS bit 4.
    SaveAndSelect,
    /// EUI64 of a namespace.
    Eui64,
    /// VER of Identify controller.
    VersionOfController,
    /// Namespace attribute notices: OAES bit 8 and the same bit of feature 0Bh.
    NamespaceNotices,
    /// WCTEMP and CCTEMP of Identify controller.
    TemperatureLimits,
    /// TMPSEL and THSEL of feature 04h.
    TemperatureSelect,
    /// TNVMCAP and UNVMCAP of Identify controller, NVMCAP of a namespace.
    Capacities,
    /// WH of feature 02h.
    WorkloadHint,
    /// NGUID of a namespace.
    Guid,
    /// An error recovery feature for each namespace; before, one for the controller.
    NamespaceErrorRecovery,
    /// Offset and more than 4096 dwords in Get Log Page (LPA bit 2).
    LogOffset,
    /// SUBNQN of Identify controller.
    SubsystemName,
    /// RAE of Get Log Page.
    RetainEvent,
    /// DLFEAT of a namespace.
    DeallocatedReads,
    /// CNTRLTYPE of Identify controller.
    ControllerType,
    /// VWC bits 2:1 of Identify controller.
    FlushOfAll,
    /// NPWG, NPWA, NPDG, NPDA and NOWS of a namespace, and their bit in NSFEAT.
    PreferredSizes,
    /// NODMMAS of Identify controller, and the times of operations without deallocation in page 81h.
    SanitizeMedia,
    /// CAP.CRMS, register CRTO, CC.CRIME.
    ReadyModes,
    /// The scope of a command in page 05h, of a feature in page 12h.
    Scopes,
    /// CSI: command sets by name, in Identify, Namespace Management and identification descriptors.
    CommandSets,
}

/// The feature, its first version, and the clause.
type Row = (Part, Version, &'static str);

/// Everything that the controller does.
static SINCE: &[Row] = &[
    (Part::Admin(admin::DELETE_SUBMISSION_QUEUE), V1_0, "5.7"),
    (Part::Admin(admin::CREATE_SUBMISSION_QUEUE), V1_0, "5.5"),
    (Part::Admin(admin::GET_LOG_PAGE), V1_0, "5.16"),
    (Part::Admin(admin::DELETE_COMPLETION_QUEUE), V1_0, "5.6"),
    (Part::Admin(admin::CREATE_COMPLETION_QUEUE), V1_0, "5.4"),
    (Part::Admin(admin::IDENTIFY), V1_0, "5.17"),
    (Part::Admin(admin::ABORT), V1_0, "5.1"),
    (Part::Admin(admin::SET_FEATURES), V1_0, "5.27"),
    (Part::Admin(admin::GET_FEATURES), V1_0, "5.15"),
    (Part::Admin(admin::ASYNCHRONOUS_EVENT_REQUEST), V1_0, "5.2"),
    (Part::Admin(admin::FORMAT_NVM), V1_0, "5.14"),
    (Part::Admin(admin::NAMESPACE_MANAGEMENT), V1_2, "5.23"),
    (Part::Admin(admin::NAMESPACE_ATTACHMENT), V1_2, "5.22"),
    (Part::Admin(admin::KEEP_ALIVE), V1_2, "5.18"),
    (Part::Admin(admin::SANITIZE), V1_3, "5.24"),
    (Part::Io(nvm::FLUSH), V1_0, "7.1"),
    (Part::Io(nvm::WRITE), V1_0, "NVM 3.2.6"),
    (Part::Io(nvm::READ), V1_0, "NVM 3.2.4"),
    (Part::Io(nvm::WRITE_UNCORRECTABLE), V1_0, "NVM 3.2.7"),
    (Part::Io(nvm::COMPARE), V1_0, "NVM 3.2.1"),
    (Part::Io(nvm::DATASET_MANAGEMENT), V1_0, "NVM 3.2.3"),
    (Part::Io(nvm::WRITE_ZEROES), V1_1, "NVM 3.2.8"),
    (Part::Io(nvm::VERIFY), V1_4, "NVM 3.2.5"),
    (Part::Identify(cns::NAMESPACE), V1_0, "NVM 4.1.5.1"),
    (Part::Identify(cns::CONTROLLER), V1_0, "5.17.2.1"),
    (Part::Identify(cns::ACTIVE_NAMESPACES), V1_1, "5.17.2.2"),
    (Part::Identify(cns::ALLOCATED_NAMESPACES), V1_2, "5.17.2.9"),
    (Part::Identify(cns::ALLOCATED_NAMESPACE), V1_2, "5.17.2.10"),
    (Part::Identify(cns::ATTACHED_CONTROLLERS), V1_2, "5.17.2.11"),
    (Part::Identify(cns::CONTROLLERS), V1_2, "5.17.2.12"),
    (Part::Identify(cns::NAMESPACE_DESCRIPTORS), V1_3, "5.17.2.3"),
    (Part::Identify(cns::NAMESPACE_OF_COMMAND_SET), V2_0, "5.17.2.5"),
    (Part::Identify(cns::CONTROLLER_OF_COMMAND_SET), V2_0, "5.17.2.6"),
    (Part::Identify(cns::ACTIVE_NAMESPACES_OF_COMMAND_SET), V2_0, "5.17.2.7"),
    (Part::Identify(cns::INDEPENDENT_NAMESPACE), V2_0, "5.17.2.8"),
    (Part::Identify(cns::ALLOCATED_NAMESPACES_OF_COMMAND_SET), V2_0, "figure 274"),
    (Part::Identify(cns::ALLOCATED_NAMESPACE_OF_COMMAND_SET), V2_0, "figure 274"),
    (Part::Feature(feature::ARBITRATION), V1_0, "5.27.1.1"),
    (Part::Feature(feature::POWER_MANAGEMENT), V1_0, "5.27.1.2"),
    (Part::Feature(feature::LBA_RANGE_TYPE), V1_0, "NVM 4.1.3.1"),
    (Part::Feature(feature::TEMPERATURE_THRESHOLD), V1_0, "5.27.1.3"),
    (Part::Feature(feature::ERROR_RECOVERY), V1_0, "NVM 4.1.3.2"),
    (Part::Feature(feature::VOLATILE_WRITE_CACHE), V1_0, "5.27.1.4"),
    (Part::Feature(feature::NUMBER_OF_QUEUES), V1_0, "5.27.1.5"),
    (Part::Feature(feature::INTERRUPT_COALESCING), V1_0, "5.27.1.6"),
    (Part::Feature(feature::INTERRUPT_VECTOR), V1_0, "5.27.1.7"),
    (Part::Feature(feature::WRITE_ATOMICITY), V1_0, "NVM 4.1.3.3"),
    (Part::Feature(feature::ASYNCHRONOUS_EVENTS), V1_0, "5.27.1.8"),
    (Part::Feature(feature::AUTONOMOUS_POWER), V1_1, "5.27.1.9"),
    (Part::Feature(feature::KEEP_ALIVE), V1_2, "5.27.1.12"),
    (Part::Feature(feature::HOST_BEHAVIOR), V1_4, "5.27.1.18"),
    (Part::Log(page::ERROR), V1_0, "5.16.1.2"),
    (Part::Log(page::SMART), V1_0, "5.16.1.3"),
    (Part::Log(page::FIRMWARE_SLOT), V1_0, "5.16.1.4"),
    (Part::Log(page::CHANGED_NAMESPACES), V1_2, "5.16.1.5"),
    (Part::Log(page::COMMAND_EFFECTS), V1_2, "5.16.1.6"),
    (Part::Log(page::SUPPORTED), V2_0, "5.16.1.1"),
    (Part::Log(page::FEATURE_EFFECTS), V2_0, "5.16.1.18"),
    (Part::Log(page::MI_COMMAND_EFFECTS), V2_0, "5.16.1.19"),
    (Part::Log(page::SANITIZE), V1_3, "5.16.1.25"),
    (Part::Field(Field::SubsystemReset), V1_1, "3.1.3.1 and 3.1.3.7"),
    (Part::Field(Field::ControllerId), V1_1, "figure 275"),
    (Part::Field(Field::NonOperational), V1_1, "8.15"),
    (Part::Field(Field::SaveAndSelect), V1_1, "5.15 and 5.27"),
    (Part::Field(Field::Eui64), V1_1, "NVM figure 97"),
    (Part::Field(Field::VersionOfController), V1_2, "figure 275"),
    (Part::Field(Field::NamespaceNotices), V1_2, "5.27.1.8"),
    (Part::Field(Field::TemperatureLimits), V1_2, "figure 275"),
    (Part::Field(Field::TemperatureSelect), V1_2, "5.27.1.3"),
    (Part::Field(Field::Capacities), V1_2, "figure 275 and NVM figure 97"),
    (Part::Field(Field::WorkloadHint), V1_2, "5.27.1.2"),
    (Part::Field(Field::Guid), V1_2, "NVM figure 97"),
    (Part::Field(Field::NamespaceErrorRecovery), V1_2, "NVM 4.1.3.2"),
    (Part::Field(Field::LogOffset), V1_2, "5.16"),
    (Part::Field(Field::SubsystemName), V1_2, "figure 275"),
    (Part::Field(Field::RetainEvent), V1_3, "5.16"),
    (Part::Field(Field::DeallocatedReads), V1_3, "NVM figure 97"),
    (Part::Field(Field::ControllerType), V1_4, "figure 275"),
    (Part::Field(Field::FlushOfAll), V1_4, "figure 275"),
    (Part::Field(Field::PreferredSizes), V1_4, "NVM figure 97"),
    (Part::Field(Field::SanitizeMedia), V1_4, "figure 275 and 5.16.1.25"),
    (Part::Field(Field::ReadyModes), V2_0, "3.1.3.1 and 3.1.3.5"),
    (Part::Field(Field::Scopes), V2_0, "figures 211 and 256"),
    (Part::Field(Field::CommandSets), V2_0, "5.17"),
];

/// Status codes that a command of an older version could end with (figures 31 and 32 of 1.1 and of 1.2).
const CODES: [(NvmeStatus, Version); 3] = [
    (NvmeStatus::PRP_OFFSET_INVALID, V1_2),
    (NvmeStatus::FEATURE_NOT_NAMESPACE_SPECIFIC, V1_1),
    (NvmeStatus::OVERLAPPING_RANGE, V1_2),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Base 2.0c has everything; no part is there twice.
    #[test]
    fn every_part_has_one_row() {
        for (index, (part, _, clause)) in SINCE.iter().enumerate() {
            assert!(V2_0.has(*part) && !clause.is_empty(), "{part:?}");
            assert!(SINCE[..index].iter().all(|(other, ..)| other != part), "{part:?} twice");
        }
    }

    #[test]
    fn versions_are_those_of_the_register() {
        for (name, register) in [("1.0", 0x1_0000), ("1.4", 0x1_0400), ("2.0", 0x2_0000)] {
            assert_eq!(Version::parse(name).map(Version::register), Some(register));
        }
        assert!(VERSIONS.iter().all(|name| Version::parse(name).is_some()));
        assert_eq!(Version::parse("2.1"), None);
        assert!(!V1_1.has(Part::Admin(admin::KEEP_ALIVE)), "1.2");
        assert!(!V2_0.has(Part::Admin(0x86)), "not offered");
    }
}
