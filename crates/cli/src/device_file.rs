//! What a device file describes: an SSD, a ring card or a delay.

use ssdyno_device::Config;
use ssdyno_device::delay::DelayConfig;
use ssdyno_device::ring::RingConfig;
use ssdyno_rig::BlockDevice;

/// What a device file describes.
#[derive(Clone, Debug)]
pub(crate) enum DeviceFile {
    /// An SSD.
    Ssd(Config),
    /// A ring card.
    Card(RingConfig),
    /// A device with a given delay.
    Delay(DelayConfig),
}

impl DeviceFile {
    /// The full resolved form.
    pub(crate) fn to_toml(&self) -> String {
        match self {
            DeviceFile::Ssd(config) => config.to_toml(),
            DeviceFile::Card(card) => card.to_toml(),
            DeviceFile::Delay(delay) => delay.to_toml(),
        }
    }

    /// Its kind, in words.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            DeviceFile::Ssd(_) => "an SSD",
            DeviceFile::Card(_) => "a ring card",
            DeviceFile::Delay(_) => "a delay",
        }
    }

    /// The device, where it needs no driver of its own.
    pub(crate) fn block(self) -> Option<BlockDevice> {
        match self {
            DeviceFile::Ssd(config) => Some(BlockDevice::Ssd(config)),
            DeviceFile::Delay(delay) => Some(BlockDevice::Delay(delay)),
            DeviceFile::Card(_) => None,
        }
    }
}
