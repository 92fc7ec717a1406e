//! What the controller offers, and the log pages about it: pages, commands, features (base 2.0c, clauses
//! 5.16.1.1, 5.16.1.6 and 5.16.1.18).

use ssdyno_spec::nvme::{admin, effects, feature, nvm, page};

use super::NvmeSubsystem;
use super::versions::{Field, Part};
use ssdyno_device::Device;

/// Entries of each table: one for each number of 8 bits.
const NUMBERS: usize = 256;
/// The pages of commands end with reserved dwords.
const COMMAND_EFFECTS_BYTES: usize = 4096;

/// Log pages.
const PAGES: [u8; 9] = [
    page::SUPPORTED,
    page::ERROR,
    page::SMART,
    page::FIRMWARE_SLOT,
    page::CHANGED_NAMESPACES,
    page::COMMAND_EFFECTS,
    page::FEATURE_EFFECTS,
    page::MI_COMMAND_EFFECTS,
    page::SANITIZE,
];

const FORMAT_EFFECTS: u32 =
    effects::DATA | effects::NAMESPACE_CAPABILITY | effects::ALONE_IN_NAMESPACE;
const OF_CONTROLLER: u32 = effects::OF_CONTROLLER;
const OF_NAMESPACE: u32 = effects::OF_NAMESPACE;
const OF_SUBSYSTEM: u32 = effects::OF_SUBSYSTEM;

/// Admin commands with what they do beyond being there, and their scope.
const ADMIN_COMMANDS: [(u8, u32); 15] = [
    (admin::DELETE_SUBMISSION_QUEUE, OF_CONTROLLER),
    (admin::CREATE_SUBMISSION_QUEUE, OF_CONTROLLER),
    (admin::GET_LOG_PAGE, OF_CONTROLLER),
    (admin::DELETE_COMPLETION_QUEUE, OF_CONTROLLER),
    (admin::CREATE_COMPLETION_QUEUE, OF_CONTROLLER),
    (admin::IDENTIFY, OF_CONTROLLER),
    (admin::ABORT, OF_CONTROLLER),
    (admin::SET_FEATURES, OF_CONTROLLER),
    (admin::GET_FEATURES, OF_CONTROLLER),
    (admin::ASYNCHRONOUS_EVENT_REQUEST, OF_CONTROLLER),
    (admin::NAMESPACE_MANAGEMENT, OF_SUBSYSTEM | effects::DATA | effects::NAMESPACE_INVENTORY),
    (admin::NAMESPACE_ATTACHMENT, OF_SUBSYSTEM | effects::NAMESPACE_INVENTORY),
    (admin::KEEP_ALIVE, OF_CONTROLLER),
    (admin::FORMAT_NVM, OF_NAMESPACE | FORMAT_EFFECTS),
    (admin::SANITIZE, OF_SUBSYSTEM | effects::DATA | effects::ALONE),
];

/// I/O commands with what they do, and their scope.
const IO_COMMANDS: [(u8, u32); 8] = [
    (nvm::FLUSH, OF_NAMESPACE),
    (nvm::WRITE, OF_NAMESPACE | effects::DATA),
    (nvm::READ, OF_NAMESPACE),
    (nvm::WRITE_UNCORRECTABLE, OF_NAMESPACE | effects::DATA),
    (nvm::COMPARE, OF_NAMESPACE),
    (nvm::WRITE_ZEROES, OF_NAMESPACE | effects::DATA),
    (nvm::DATASET_MANAGEMENT, OF_NAMESPACE | effects::DATA),
    (nvm::VERIFY, OF_NAMESPACE),
];

/// Features, each of the controller or of a namespace.
const FEATURES: [(u8, u32); 14] = [
    (feature::ARBITRATION, OF_CONTROLLER),
    (feature::POWER_MANAGEMENT, OF_CONTROLLER),
    (feature::LBA_RANGE_TYPE, OF_NAMESPACE),
    (feature::TEMPERATURE_THRESHOLD, OF_CONTROLLER),
    (feature::ERROR_RECOVERY, OF_NAMESPACE),
    (feature::VOLATILE_WRITE_CACHE, OF_CONTROLLER),
    (feature::NUMBER_OF_QUEUES, OF_CONTROLLER),
    (feature::INTERRUPT_COALESCING, OF_CONTROLLER),
    (feature::INTERRUPT_VECTOR, OF_CONTROLLER),
    (feature::WRITE_ATOMICITY, OF_CONTROLLER),
    (feature::ASYNCHRONOUS_EVENTS, OF_CONTROLLER),
    (feature::AUTONOMOUS_POWER, OF_CONTROLLER),
    (feature::KEEP_ALIVE, OF_CONTROLLER),
    (feature::HOST_BEHAVIOR, OF_CONTROLLER),
];

impl<D: Device> NvmeSubsystem<D> {
    /// Whether this controller has `part`: its version does, and so does its device.
    pub(crate) fn has(&self, part: Part) -> bool {
        let fits = match part {
            Part::Io(nvm::COMPARE) => self.media.contents.is_some(),
            Part::Feature(feature::VOLATILE_WRITE_CACHE) => self.limits.has_cache,
            Part::Feature(feature::AUTONOMOUS_POWER) => !self.limits.low_power_states.is_empty(),
            Part::Admin(admin::SANITIZE) | Part::Log(page::SANITIZE) => {
                self.sanitize_capabilities() != 0
            }
            _ => true,
        };
        fits && self.version.has(part)
    }
    /// Whether this controller's version has `field`.
    pub(crate) fn has_field(&self, field: Field) -> bool {
        self.version.has(Part::Field(field))
    }

    /// LPA of Identify: the page of command effects, offsets, the pages of version 2.0 with the scopes of
    /// commands.
    pub(crate) fn log_attributes(&self) -> u8 {
        u8::from(self.has(Part::Log(page::COMMAND_EFFECTS))) << 1
            | u8::from(self.has_field(Field::LogOffset)) << 2
            | u8::from(self.has(Part::Log(page::SUPPORTED))) << 5
    }

    /// Page `id`; `None` where it is not one of these.
    pub(crate) fn offered_page(&self, id: u8) -> Option<Vec<u8>> {
        match id {
            page::SUPPORTED => Some(self.table(Part::Log, &PAGES.map(|page| (page, 0)))),
            page::COMMAND_EFFECTS => {
                let mut both = self.table(Part::Admin, &ADMIN_COMMANDS);
                both.extend(self.table(Part::Io, &IO_COMMANDS));
                both.resize(COMMAND_EFFECTS_BYTES, 0);
                Some(both)
            }
            page::FEATURE_EFFECTS => Some(self.table(Part::Feature, &FEATURES)),
            // No NVMe-MI Send or Receive, so none of its commands.
            page::MI_COMMAND_EFFECTS => Some(vec![0; COMMAND_EFFECTS_BYTES]),
            _ => None,
        }
    }

    /// A dword for each number, little-endian, with the effects of those that there are.
    fn table(&self, part: fn(u8) -> Part, entries: &[(u8, u32)]) -> Vec<u8> {
        let scopes = if self.has_field(Field::Scopes) { effects::SCOPE } else { 0 };
        let told = !effects::SCOPE | scopes;
        let mut dwords = [0; NUMBERS];
        for (number, effect) in entries.iter().filter(|(number, _)| self.has(part(*number))) {
            dwords[usize::from(*number)] = effects::SUPPORTED | effect & told;
        }
        dwords.iter().flat_map(|dword: &u32| dword.to_le_bytes()).collect()
    }
}
