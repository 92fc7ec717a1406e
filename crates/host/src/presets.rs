//! The hosts that come with the program: TOML files, built in.

/// A named host.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// What follows `--host`.
    pub name: &'static str,
    /// The host file.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset {
            name: $name,
            text: include_str!(concat!("../../../presets/hosts/", $name, ".toml")),
        }),*]
    };
}

/// All hosts; the first is the default.
pub const ALL: &[Preset] = presets!["server", "e5430", "s0-host", "s4-spek", "s4-iometer"];

/// The host called `name`.
pub fn find(name: &str) -> Option<&'static Preset> {
    ALL.iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn presets_are_sound_and_complete() {
        for preset in ALL {
            let config = Config::parse(preset.text).unwrap();
            assert!(!config.description.is_empty(), "{}", preset.name);
            assert_eq!(Config::parse(&config.to_toml()).unwrap(), config, "{}", preset.name);
        }
    }
}
