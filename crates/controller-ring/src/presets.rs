//! The cards that come with the program: TOML files, built in.

use ssdyno_block::{Preset, presets};

/// Cards with a descriptor ring: files of [`RingConfig`](crate::RingConfig).
pub const CARDS: &[Preset] = presets!["../presets/devices": "zc706-ring"];
