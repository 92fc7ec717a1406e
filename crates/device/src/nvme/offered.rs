//! Log pages about what the controller offers: pages, commands, features (base 2.0c, clauses 5.16.1.1,
//! 5.16.1.6 and 5.16.1.18).

use ssdyno_spec::nvme::{admin, effects, feature, nvm, page};

use super::NvmeController;
use crate::Device;

/// Entries of each table: one for each number of 8 bits.
const NUMBERS: usize = 256;
/// The page of commands ends with reserved dwords.
const COMMAND_EFFECTS_BYTES: usize = 4096;

const PAGES: [u8; 7] = [
    page::SUPPORTED,
    page::ERROR,
    page::SMART,
    page::FIRMWARE_SLOT,
    page::CHANGED_NAMESPACES,
    page::COMMAND_EFFECTS,
    page::FEATURE_EFFECTS,
];

const FORMAT_EFFECTS: u32 =
    effects::DATA | effects::NAMESPACE_CAPABILITY | effects::ALONE_IN_NAMESPACE;

/// Admin commands with what they do beyond being there.
const ADMIN_COMMANDS: [(u8, u32); 14] = [
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
    // The page of effects and the command came with the same version.
    (admin::KEEP_ALIVE, 0),
    (admin::FORMAT_NVM, FORMAT_EFFECTS),
];

/// I/O commands; Compare only where data is kept.
const IO_COMMANDS: [(u8, u32); 7] = [
    (nvm::FLUSH, 0),
    (nvm::WRITE, effects::DATA),
    (nvm::READ, 0),
    (nvm::WRITE_UNCORRECTABLE, effects::DATA),
    (nvm::WRITE_ZEROES, effects::DATA),
    (nvm::DATASET_MANAGEMENT, effects::DATA),
    (nvm::VERIFY, 0),
];

/// Features of the controller; two more depend on the device.
const FEATURES: [u8; 10] = [
    feature::ARBITRATION,
    feature::POWER_MANAGEMENT,
    feature::TEMPERATURE_THRESHOLD,
    feature::NUMBER_OF_QUEUES,
    feature::INTERRUPT_COALESCING,
    feature::INTERRUPT_VECTOR,
    feature::WRITE_ATOMICITY,
    feature::ASYNCHRONOUS_EVENTS,
    feature::KEEP_ALIVE,
    feature::HOST_BEHAVIOR,
];

/// What decides about the pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Offered {
    /// VS.
    version: u32,
    compare: bool,
    write_cache: bool,
    autonomous_power: bool,
}

impl<D: Device> NvmeController<D> {
    pub(super) fn offered_logs(&self) -> Offered {
        Offered {
            version: self.config.version_register().unwrap_or(0),
            compare: self.contents.is_some(),
            write_cache: self.has_cache,
            autonomous_power: !self.low_power_states.is_empty(),
        }
    }
}

impl Offered {
    fn has_command_effects(self) -> bool {
        self.version >= 0x1_0200
    }
    fn has_all(self) -> bool {
        self.version >= 0x2_0000
    }

    /// LPA of Identify: the page of command effects, offsets, the pages of version 2.0.
    pub(super) fn attributes(self) -> u8 {
        u8::from(self.has_command_effects()) << 1 | 1 << 2 | u8::from(self.has_all()) << 5
    }

    /// Page `id`; `None` where it is not one of these, or of a later version.
    pub(super) fn page(self, id: u8) -> Option<Vec<u8>> {
        match id {
            page::SUPPORTED if self.has_all() => {
                Some(table(PAGES.map(|page| (page, 0)).into_iter()))
            }
            page::COMMAND_EFFECTS if self.has_command_effects() => {
                let compare = self.compare.then_some((nvm::COMPARE, 0));
                let mut both = table(ADMIN_COMMANDS.into_iter());
                both.extend(table(IO_COMMANDS.into_iter().chain(compare)));
                both.resize(COMMAND_EFFECTS_BYTES, 0);
                Some(both)
            }
            page::FEATURE_EFFECTS if self.has_all() => {
                let cache = self.write_cache.then_some(feature::VOLATILE_WRITE_CACHE);
                let power = self.autonomous_power.then_some(feature::AUTONOMOUS_POWER);
                let own = FEATURES.into_iter().chain(cache).chain(power);
                let of_namespace = [feature::LBA_RANGE_TYPE, feature::ERROR_RECOVERY];
                let of_namespace = of_namespace.map(|id| (id, effects::OF_NAMESPACE)).into_iter();
                Some(table(own.map(|id| (id, effects::OF_CONTROLLER)).chain(of_namespace)))
            }
            _ => None,
        }
    }
}

/// A dword for each number, little-endian.
fn table(entries: impl Iterator<Item = (u8, u32)>) -> Vec<u8> {
    let mut dwords = [0; NUMBERS];
    for (number, effect) in entries {
        dwords[usize::from(number)] = effects::SUPPORTED | effect;
    }
    dwords.iter().flat_map(|dword: &u32| dword.to_le_bytes()).collect()
}
