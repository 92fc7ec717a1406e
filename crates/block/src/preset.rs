//! Configurations that come with the program.

/// A named configuration file that is part of the program.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The user's name for it.
    pub name: &'static str,
    /// The TOML file, with comments and sources.
    pub text: &'static str,
}

impl Preset {
    /// The one of `all` that is called `name`.
    pub fn find(all: &'static [Preset], name: &str) -> Option<&'static Preset> {
        all.iter().find(|preset| preset.name == name)
    }
}

/// How the type of a configuration file is read and written. The crate of the type depends on `toml`.
#[macro_export]
macro_rules! toml_file {
    ($name:ident) => {
        impl $name {
            /// Reads the file.
            ///
            /// # Errors
            /// Not TOML, or a key or value that the schema does not have.
            pub fn parse(text: &str) -> Result<$name, ::toml::de::Error> {
                ::toml::from_str(text)
            }

            /// The full resolved form.
            pub fn to_toml(&self) -> String {
                // A struct of tables and plain values always has a TOML form.
                ::toml::to_string_pretty(self).unwrap_or_default()
            }
        }
    };
}

/// A list of [`Preset`](crate::Preset)s: the directory, seen from the file of the call, and the names of
/// the files in it.
#[macro_export]
macro_rules! presets {
    ($directory:literal: $($name:literal),* $(,)?) => {
        &[$($crate::Preset {
            name: $name,
            text: include_str!(concat!($directory, "/", $name, ".toml")),
        }),*]
    };
}

/// Values of keys that a file leaves out: functions without arguments, as `#[serde(default = "…")]` names them.
#[macro_export]
macro_rules! defaults {
    ($($(#[$meta:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        $(
            $(#[$meta])*
            fn $name() -> $type {
                $value
            }
        )*
    };
}
