//! Log pages about what the controller offers: pages, commands, features (base 2.0c, clauses 5.16.1.1,
//! 5.16.1.6 and 5.16.1.18).

use ssdyno_spec::nvme::{admin, effects, feature, nvm, page};

use super::NvmeSubsystem;
use super::versions::{Field, Part};
use ssdyno_device::Device;

/// Entries of each table: one for each number of 8 bits.
const NUMBERS: usize = 256;
/// The page of commands ends with reserved dwords.
const COMMAND_EFFECTS_BYTES: usize = 4096;

/// Log pages.
const PAGES: [u8; 8] = [
    page::SUPPORTED,
    page::ERROR,
    page::SMART,
    page::FIRMWARE_SLOT,
    page::CHANGED_NAMESPACES,
    page::COMMAND_EFFECTS,
    page::FEATURE_EFFECTS,
    page::SANITIZE,
];

const FORMAT_EFFECTS: u32 =
    effects::DATA | effects::NAMESPACE_CAPABILITY | effects::ALONE_IN_NAMESPACE;

/// Admin commands with what they do beyond being there.
const ADMIN_COMMANDS: [(u8, u32); 15] = [
    (admin::DELETE_SUBMISSION_QUEUE, 0),
    (admin::CREATE_SUBMISSION_QUEUE, 0),
    (admin::GET_LOG_PAGE, 0),
    (admin::DELETE_COMPLETION_QUEUE, 0),
    (admin::CREATE_COMPLETION_QUEUE, 0),
    (admin::IDENTIFY, 0),
    (admin::ABORT, 0),
    (admin::SET_FEATURES, 0),
    (admin::GET_FEATURES, 0),
    (admin::ASYNCHRONOUS_EVENT_REQUEST, 0),
    (admin::NAMESPACE_MANAGEMENT, effects::DATA | effects::NAMESPACE_INVENTORY),
    (admin::NAMESPACE_ATTACHMENT, effects::NAMESPACE_INVENTORY),
    (admin::KEEP_ALIVE, 0),
    (admin::FORMAT_NVM, FORMAT_EFFECTS),
    (admin::SANITIZE, effects::DATA | effects::ALONE),
];

/// I/O commands with what they do.
const IO_COMMANDS: [(u8, u32); 8] = [
    (nvm::FLUSH, 0),
    (nvm::WRITE, effects::DATA),
    (nvm::READ, 0),
    (nvm::WRITE_UNCORRECTABLE, effects::DATA),
    (nvm::COMPARE, 0),
    (nvm::WRITE_ZEROES, effects::DATA),
    (nvm::DATASET_MANAGEMENT, effects::DATA),
    (nvm::VERIFY, 0),
];

/// Features, each of the controller or of a namespace.
const FEATURES: [(u8, u32); 14] = [
    (feature::ARBITRATION, effects::OF_CONTROLLER),
    (feature::POWER_MANAGEMENT, effects::OF_CONTROLLER),
    (feature::LBA_RANGE_TYPE, effects::OF_NAMESPACE),
    (feature::TEMPERATURE_THRESHOLD, effects::OF_CONTROLLER),
    (feature::ERROR_RECOVERY, effects::OF_NAMESPACE),
    (feature::VOLATILE_WRITE_CACHE, effects::OF_CONTROLLER),
    (feature::NUMBER_OF_QUEUES, effects::OF_CONTROLLER),
    (feature::INTERRUPT_COALESCING, effects::OF_CONTROLLER),
    (feature::INTERRUPT_VECTOR, effects::OF_CONTROLLER),
    (feature::WRITE_ATOMICITY, effects::OF_CONTROLLER),
    (feature::ASYNCHRONOUS_EVENTS, effects::OF_CONTROLLER),
    (feature::AUTONOMOUS_POWER, effects::OF_CONTROLLER),
    (feature::KEEP_ALIVE, effects::OF_CONTROLLER),
    (feature::HOST_BEHAVIOR, effects::OF_CONTROLLER),
];

impl<D: Device> NvmeSubsystem<D> {
    /// LPA of Identify: the page of command effects, offsets, the pages of version 2.0.
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
            _ => None,
        }
    }

    /// A dword for each number, little-endian, with the effects of those that there are.
    fn table(&self, part: fn(u8) -> Part, entries: &[(u8, u32)]) -> Vec<u8> {
        let mut dwords = [0; NUMBERS];
        for (number, effect) in entries.iter().filter(|(number, _)| self.has(part(*number))) {
            dwords[usize::from(*number)] = effects::SUPPORTED | effect;
        }
        dwords.iter().flat_map(|dword: &u32| dword.to_le_bytes()).collect()
    }
}
