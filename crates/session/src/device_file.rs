//! What a device file describes: an SSD, a ring card or a delay.

use schemars::JsonSchema;
use ssdyno_device::Config;
use ssdyno_device::delay::DelayConfig;
use ssdyno_device::ring::RingConfig;
use ssdyno_rig::BlockDevice;
use toml::Table;

use crate::document::Document;

/// What a device file describes.
#[derive(Clone, Debug)]
pub enum DeviceFile {
    /// An SSD.
    Ssd(Config),
    /// A ring card.
    Card(RingConfig),
    /// A device with a given delay.
    Delay(DelayConfig),
}

impl DeviceFile {
    /// The full resolved form.
    pub fn to_toml(&self) -> String {
        match self {
            DeviceFile::Ssd(config) => config.to_toml(),
            DeviceFile::Card(card) => card.to_toml(),
            DeviceFile::Delay(delay) => delay.to_toml(),
        }
    }

    /// Every key of it, which was read from `document`.
    pub(crate) fn written_out(&self, document: &Document) -> Table {
        match self {
            DeviceFile::Ssd(config) => document.written_out(config),
            DeviceFile::Card(card) => document.written_out(card),
            DeviceFile::Delay(delay) => document.written_out(delay),
        }
    }

    /// Its kind, in words.
    pub fn what(&self) -> &'static str {
        match self {
            DeviceFile::Ssd(_) => "an SSD",
            DeviceFile::Card(_) => "a ring card",
            DeviceFile::Delay(_) => "a delay",
        }
    }

    /// The device, where it needs no driver of its own.
    pub fn block(self) -> Option<BlockDevice> {
        match self {
            DeviceFile::Ssd(config) => Some(BlockDevice::Ssd(config)),
            DeviceFile::Delay(delay) => Some(BlockDevice::Delay(delay)),
            DeviceFile::Card(_) => None,
        }
    }
}

/// The shape of any device file: its tables say which.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "a schema only: the tables of the file decide, before it is read")]
pub(crate) enum AnyDevice {
    Ssd(Config),
    Card(RingConfig),
    Delay(DelayConfig),
}
