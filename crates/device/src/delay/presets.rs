//! The delays that come with the program: TOML files, built in.

use ssdyno_block::{Preset, presets};

/// All of them: files of [`DelayConfig`](super::DelayConfig).
pub const DELAYS: &[Preset] = presets!["../../presets/devices": "delay-100us", "delay-10us"];
