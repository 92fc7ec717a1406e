//! The devices that come with the program: TOML files, built in.

/// A named device.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// What follows `sim:`.
    pub name: &'static str,
    /// The device file.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset {
            name: $name,
            text: include_str!(concat!("../../../presets/devices/", $name, ".toml")),
        }),*]
    };
}

/// All devices; the first is the default.
pub const ALL: &[Preset] = presets![
    "nvme-tlc",
    "p3600",
    "gen4-consumer",
    "gen5-datacenter",
    "config-a",
    "s3-nand1",
    "s3-nand2",
    "s3-nand3"
];

/// Cards with a descriptor ring: files of [`RingConfig`](crate::ring::RingConfig).
pub const CARDS: &[Preset] = presets!["zc706-ring"];

/// Devices with a given delay: files of [`DelayConfig`](crate::delay::DelayConfig).
pub const DELAYS: &[Preset] = presets!["delay-100us", "delay-10us"];

/// Every device: SSDs, cards, delays.
pub fn every() -> impl Iterator<Item = &'static Preset> {
    ALL.iter().chain(CARDS).chain(DELAYS)
}

/// The device called `name`: an SSD, a card or a delay.
pub fn find(name: &str) -> Option<&'static Preset> {
    every().find(|preset| preset.name == name)
}
