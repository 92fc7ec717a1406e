//! Every kind of device: the one place where a kind is registered.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use ssdyno_block::Preset;
use ssdyno_controller_ring::RingConfig;
use ssdyno_device::array::ArrayConfig;
use ssdyno_device::delay::{self, DelayConfig};
use ssdyno_device::volume::{self, VolumeConfig};
use ssdyno_device::{DeviceKind, DeviceKinds};
use ssdyno_disk::DiskConfig;
use ssdyno_ssd::Config;

/// Every kind of device. The first is the kind of a file that has the table of none; a kind stands after those whose
/// tables its files may have, too.
pub const DEVICE_KINDS: DeviceKinds = DeviceKinds::new(&[
    DeviceKind::of::<Config>(ssdyno_ssd::presets::SSDS),
    DeviceKind::of::<RingConfig>(ssdyno_controller_ring::presets::CARDS),
    DeviceKind::of::<DelayConfig>(delay::presets::DELAYS),
    DeviceKind::of::<ArrayConfig>(ARRAYS),
    DeviceKind::of::<DiskConfig>(ssdyno_disk::presets::DISKS),
    DeviceKind::of::<VolumeConfig>(volume::presets::VOLUMES),
]);

/// Arrays: their members are of any kind, so their files stand here.
const ARRAYS: &[Preset] = ssdyno_block::presets!["../presets/devices":
    "s1-sas-pair",
    "s2-pastel",
    "s2-graphene",
    "s2-bali-hdd",
    "s2-edel",
    "s2-graphite",
    "s2-bali-ssd",
    "s2-chimint",
    "s2-suno",
    "s2-taurus",
];

/// The shape of a device file of any kind.
pub(crate) struct AnyDevice;

impl JsonSchema for AnyDevice {
    fn schema_name() -> Cow<'static, str> {
        "AnyDevice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        DEVICE_KINDS.schema(generator)
    }
}
