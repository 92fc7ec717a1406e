//! The devices that come with the program: TOML files, built in.

use ssdyno_block::{Preset, presets};

/// All SSDs; the first is the default device.
pub const ALL: &[Preset] = presets!["../../../presets/devices":
    "nvme-tlc",
    "p3600",
    "gen4-consumer",
    "gen5-datacenter",
    "config-a",
    "s3-nand1",
    "s3-nand2",
    "s3-nand3",
    "c400",
    "s3500",
    "samsung-840",
];

/// Devices with a given delay: files of [`DelayConfig`](crate::delay::DelayConfig).
pub const DELAYS: &[Preset] = presets!["../../../presets/devices": "delay-100us", "delay-10us"];

/// Every device whose kind is in this crate.
pub fn every() -> impl Iterator<Item = &'static Preset> {
    [ALL, DELAYS, crate::volume::presets::VOLUMES].into_iter().flatten()
}

/// The one of them called `name`.
pub fn find(name: &str) -> Option<&'static Preset> {
    every().find(|preset| preset.name == name)
}
