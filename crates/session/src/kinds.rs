//! Every kind of device: the one place where a kind is registered.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use ssdyno_device::array::ArrayConfig;
use ssdyno_device::delay::DelayConfig;
use ssdyno_device::ring::RingConfig;
use ssdyno_device::{Config, DeviceKind, DeviceKinds, presets};

/// Every kind of device. The first is the kind of a file that has the table of none; a kind stands after those whose
/// tables its files may have, too.
pub const DEVICE_KINDS: DeviceKinds = DeviceKinds::new(&[
    DeviceKind::of::<Config>(presets::ALL),
    DeviceKind::of::<RingConfig>(presets::CARDS),
    DeviceKind::of::<DelayConfig>(presets::DELAYS),
    DeviceKind::of::<ArrayConfig>(&[]),
]);

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
