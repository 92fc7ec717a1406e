//! What the controller offers, and the log pages about it: pages, commands, features (base 2.0c, clauses
//! 5.16.1.1, 5.16.1.6 and 5.16.1.18).

use ssdyno_spec::nvme::{admin, effects, feature, nvm, page};

use super::NvmeSubsystem;
use super::versions::{Field, Part};
use ssdyno_device::Device;

/// The pages of commands end with reserved dwords.
const COMMAND_EFFECTS_BYTES: usize = 4096;

/// What `part` does beyond being there, and its scope.
fn effects_of(part: Part) -> u32 {
    use effects::{ALONE, ALONE_IN_NAMESPACE, DATA, NAMESPACE_CAPABILITY, NAMESPACE_INVENTORY};
    use effects::{OF_CONTROLLER, OF_NAMESPACE, OF_SUBSYSTEM};
    match part {
        Part::Admin(admin::NAMESPACE_MANAGEMENT) => OF_SUBSYSTEM | DATA | NAMESPACE_INVENTORY,
        Part::Admin(admin::NAMESPACE_ATTACHMENT) => OF_SUBSYSTEM | NAMESPACE_INVENTORY,
        Part::Admin(admin::FORMAT_NVM) => {
            OF_NAMESPACE | DATA | NAMESPACE_CAPABILITY | ALONE_IN_NAMESPACE
        }
        Part::Admin(admin::SANITIZE) => OF_SUBSYSTEM | DATA | ALONE,
        Part::Io(nvm::FLUSH | nvm::READ | nvm::COMPARE | nvm::VERIFY) => OF_NAMESPACE,
        Part::Io(_) => OF_NAMESPACE | DATA,
        Part::Feature(feature::LBA_RANGE_TYPE | feature::ERROR_RECOVERY) => OF_NAMESPACE,
        Part::Admin(_) | Part::Feature(_) => OF_CONTROLLER,
        Part::Identify(_) | Part::Log(_) | Part::Field(_) => 0,
    }
}

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
            page::SUPPORTED => Some(self.table(Part::Log)),
            page::COMMAND_EFFECTS => {
                let mut both = self.table(Part::Admin);
                both.extend(self.table(Part::Io));
                both.resize(COMMAND_EFFECTS_BYTES, 0);
                Some(both)
            }
            page::FEATURE_EFFECTS => Some(self.table(Part::Feature)),
            // No NVMe-MI Send or Receive, so none of its commands.
            page::MI_COMMAND_EFFECTS => Some(vec![0; COMMAND_EFFECTS_BYTES]),
            _ => None,
        }
    }

    /// A dword for each number of 8 bits, little-endian, with the effects of those that there are.
    fn table(&self, part: fn(u8) -> Part) -> Vec<u8> {
        let scopes = if self.has_field(Field::Scopes) { effects::SCOPE } else { 0 };
        let told = !effects::SCOPE | scopes;
        let dword = |part| match self.has(part) {
            true => effects::SUPPORTED | effects_of(part) & told,
            false => 0,
        };
        (0..=u8::MAX).flat_map(|number| dword(part(number)).to_le_bytes()).collect()
    }
}
