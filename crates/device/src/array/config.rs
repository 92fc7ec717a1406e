//! The file of an array: devices made one.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use ssdyno_block::units::Bytes;
use ssdyno_block::{ConfigError, SECTOR_BYTES};
use toml::Value;

use super::controller::ControllerTable;
use crate::faults::FaultConfig;
use crate::nvme::NvmeControllerConfig;
use crate::{DeviceFileError, DeviceKinds, DeviceSpec};

/// Most devices in an array, with those that its members are made of.
pub(crate) const UNITS_MOST: usize = 256;

/// The message for a member that is neither.
const NEITHER: &str = "expected the name of a device, or a table";
/// And what to do.
const HELP: &str = "use a name in quotes, or a table with the keys of a device file";

/// A device that another is made of: the name of one that comes with the program, or a table with all that its
/// own file would have.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum MemberSpec {
    /// As written: a name or a table, not yet read.
    Written(Value),
    /// Its file.
    Device(DeviceSpec),
}

impl MemberSpec {
    /// Reads what is written; `key` is where.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn resolve(&mut self, key: &str, kinds: DeviceKinds) -> Result<(), ConfigError> {
        let device = match self {
            MemberSpec::Device(device) => {
                return device.resolve(kinds).map_err(|error| within(key, error.into()));
            }
            MemberSpec::Written(Value::String(name)) => {
                let known = name.strip_prefix("sim:").unwrap_or(name);
                let Some(preset) = kinds.find(known) else {
                    let names: Vec<_> = kinds.presets().map(|preset| preset.name).collect();
                    let names = names.join(", ");
                    let help =
                        format!("use one of {names}, or a table with the keys of a device file");
                    let problem = format!("there is no device \"{name}\"");
                    return Err(ConfigError::new(key, problem, help));
                };
                kinds.parse(preset.text)
            }
            MemberSpec::Written(Value::Table(table)) => kinds.parse(&table.to_string()),
            MemberSpec::Written(_) => return Err(ConfigError::new(key, NEITHER, HELP)),
        };
        *self = MemberSpec::Device(device.map_err(|error| within(key, error))?);
        Ok(())
    }

    /// The device, which `whole` can be made of.
    ///
    /// # Errors
    /// The value at `key` was not read; or it accepts requests only from its own driver; or it could hang forever,
    /// because a member has no component before it with a time limit or a reset.
    pub(crate) fn checked(&self, key: &str, whole: &str) -> Result<&DeviceSpec, ConfigError> {
        let member = self.device(key)?;
        if member.own_driver() {
            let problem = "accepts requests only from its own driver";
            return Err(ConfigError::new(key, problem, "choose an SSD, a delay or an array"));
        }
        let faults = member.faults();
        for (fault, asked, what) in [
            ("drop", faults.drop > 0.0, "a request that is never completed"),
            ("hang_at", faults.hang_at.is_some(), "a member that hangs"),
            ("lost_interrupts", faults.lost_interrupts > 0.0, "a lost interrupt"),
        ] {
            if asked {
                let problem = format!("{whole} has no time limit, so {what} would hang it forever");
                let help = "use error, delay or remove_at, or test the fault on a single SSD";
                return Err(ConfigError::new(format!("{key}.faults.{fault}"), problem, help));
            }
        }
        Ok(member)
    }

    /// See [`DeviceConfig::sector_bytes`](crate::DeviceConfig::sector_bytes).
    pub(crate) fn sector_bytes(&self) -> u32 {
        match self {
            MemberSpec::Device(device) => device.sector_bytes(),
            MemberSpec::Written(_) => SECTOR_BYTES,
        }
    }

    /// The device.
    ///
    /// # Errors
    /// The value at `key` was not read.
    pub(super) fn device(&self, key: &str) -> Result<&DeviceSpec, ConfigError> {
        match self {
            MemberSpec::Device(device) => Ok(device),
            MemberSpec::Written(_) => Err(ConfigError::new(
                key,
                "was not read with the kinds of devices that there are",
                "read the file with `DeviceKinds::parse`",
            )),
        }
    }
}

/// An error of the member at `key`.
fn within(key: &str, error: DeviceFileError) -> ConfigError {
    match error {
        DeviceFileError::Member(error) => {
            ConfigError { key: format!("{key}.{}", error.key), ..error }
        }
        DeviceFileError::Unreadable(error) => {
            let message = error.message();
            let (problem, help) = match message.find(", expected") {
                Some(at) => (&message[..at], message[at..].trim_start_matches(", ")),
                None => (message, "set all the keys that a device file needs"),
            };
            ConfigError::new(key, problem, help)
        }
    }
}

impl<'de> Deserialize<'de> for MemberSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MemberSpec, D::Error> {
        match Value::deserialize(deserializer)? {
            value @ (Value::String(_) | Value::Table(_)) => Ok(MemberSpec::Written(value)),
            _ => Err(D::Error::custom(NEITHER)),
        }
    }
}

impl JsonSchema for MemberSpec {
    fn schema_name() -> Cow<'static, str> {
        "MemberSpec".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The name of a device preset, or a table with the contents of a device file.",
            "type": ["string", "object"],
        })
    }
}

fn stripe() -> Bytes {
    Bytes(64 << 10)
}

/// The `[array]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayTable {
    /// Number of contiguous bytes in a member before the next member follows (`chunk` of Linux's md); a multiple of the
    /// members' sectors.
    #[serde(default = "stripe")]
    pub stripe: Bytes,
    /// The members: for each, the name of a device, or a table with the contents of its file, such as `{ delay = {
    /// capacity = "1GiB", read = "100us", write = "30us" } }`. A member may be an array.
    pub members: Vec<MemberSpec>,
    /// The RAID controller before the members; if omitted, the array itself takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerTable>,
}

/// The file of a striped array, RAID-0 (Patterson, Gibson and Katz, SIGMOD 1988: no redundancy at all). Stripes go to
/// the members in turn, and each member provides the capacity of the smallest member.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayConfig {
    /// One line about the array.
    #[serde(default)]
    pub description: String,
    /// Members and stripes.
    pub array: ArrayTable,
    /// An NVMe controller in front of the array, for `--driver nvme`; if omitted, every key has its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme: Option<NvmeControllerConfig>,
    /// Faults injected into the array as a whole; members have tables of their own.
    #[serde(default, skip_serializing_if = "FaultConfig::is_none")]
    pub faults: FaultConfig,
}

/// Where member `index` stands.
pub(super) fn key_of(index: usize) -> String {
    format!("array.members[{index}]")
}

impl ArrayConfig {
    /// Checks what can be known before the members are built.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.faults.check()?;
        let stripe = self.array.stripe;
        let sector = u64::from(SECTOR_BYTES);
        if stripe.0 < sector || !stripe.0.is_multiple_of(sector) || stripe.0 > 1 << 30 {
            return Err(ConfigError::new(
                "array.stripe",
                format!("{stripe} is not a multiple of 512 B up to 1 GiB"),
                "use a size such as \"64KiB\"",
            ));
        }
        if self.array.members.is_empty() {
            let help = "name its devices, such as members = [\"nvme-tlc\", \"nvme-tlc\"]";
            return Err(ConfigError::new("array.members", "the array has none", help));
        }
        for (index, member) in self.array.members.iter().enumerate() {
            let place = key_of(index);
            member.checked(&place, "the array")?;
        }
        self.array.controller.as_ref().map_or(Ok(()), ControllerTable::check)
    }
}
