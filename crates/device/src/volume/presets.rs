//! The volumes that come with the program: TOML files, built in.

use ssdyno_block::{Preset, presets};

/// All of them: files of [`VolumeConfig`](super::VolumeConfig).
pub const VOLUMES: &[Preset] = presets!["../../presets/devices": "volume-gp2-100g", "volume-gp3"];
