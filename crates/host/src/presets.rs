//! The hosts that come with the program: TOML files, built in.

use ssdyno_block::{Preset, presets};

/// All hosts; the first is the default.
pub const ALL: &[Preset] = presets!["../presets/hosts":
    "server",
    "e5430",
    "s0-host",
    "s4-spek",
    "s4-iometer",
];

/// The host called `name`, as after `--host`.
pub fn find(name: &str) -> Option<&'static Preset> {
    Preset::find(ALL, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostConfig;

    #[test]
    fn presets_are_sound_and_complete() {
        for preset in ALL {
            let config = HostConfig::parse(preset.text).unwrap();
            assert!(!config.description.is_empty(), "{}", preset.name);
            assert_eq!(HostConfig::parse(&config.to_toml()).unwrap(), config, "{}", preset.name);
        }
    }
}
