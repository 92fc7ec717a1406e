//! The SSDs that come with the program: TOML files, built in.

use ssdyno_block::{Preset, presets};

/// All of them: files of [`Config`](crate::Config). The first is the default device.
pub const SSDS: &[Preset] = presets!["../presets/devices":
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

/// The one of them called `name`.
pub fn find(name: &str) -> Option<&'static Preset> {
    SSDS.iter().find(|preset| preset.name == name)
}
